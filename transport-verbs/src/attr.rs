//! The attributes of a queue pair, and addresses, as libibverbs takes them.

use cq_verbs::setup::{Access, AddressVector, GlobalRoute, QpAttr, QpAttrMask, QpState};
use rdma_sys::{ibv_ah_attr, ibv_gid, ibv_global_route, ibv_qp_attr};

use crate::sys::qp;

/// `struct ibv_qp_attr`. Attributes that are not given are 0.
pub fn raw(attr: &QpAttr) -> ibv_qp_attr {
    ibv_qp_attr {
        qp_state: attr.state.map_or(0, |state| state.0),
        cur_qp_state: attr.cur_state.map_or(0, |state| state.0),
        path_mtu: mtu_number(attr.path_mtu.unwrap_or_default()),
        qkey: attr.qkey.unwrap_or_default(),
        rq_psn: attr.rq_psn.unwrap_or_default(),
        sq_psn: attr.sq_psn.unwrap_or_default(),
        dest_qp_num: attr.dest_qp_num.unwrap_or_default(),
        qp_access_flags: attr.access.unwrap_or_default().bits(),
        ah_attr: raw_path(&attr.av.unwrap_or(NOWHERE)),
        pkey_index: attr.pkey_index.unwrap_or_default(),
        en_sqd_async_notify: attr.en_sqd_async_notify.unwrap_or_default().into(),
        max_rd_atomic: attr.max_rd_atomic.unwrap_or_default(),
        max_dest_rd_atomic: attr.max_dest_rd_atomic.unwrap_or_default(),
        min_rnr_timer: attr.min_rnr_timer.unwrap_or_default(),
        port_num: attr.port.unwrap_or_default(),
        timeout: attr.timeout.unwrap_or_default(),
        retry_cnt: attr.retry_cnt.unwrap_or_default(),
        rnr_retry: attr.rnr_retry.unwrap_or_default(),
        ..qp::no_attributes()
    }
}

/// Those of these attributes that are in the mask.
pub fn told(attr: &ibv_qp_attr, mask: QpAttrMask) -> QpAttr {
    let ibv_ah_attr { grh, dlid, sl, is_global, port_num, .. } = attr.ah_attr;
    let ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class } = grh;
    let gid = qp::gid(dgid);
    let route = GlobalRoute { gid, sgid_index, hop_limit, traffic_class, flow_label };
    let route = (is_global != 0).then_some(route);
    let all = QpAttr::to(QpState(attr.qp_state))
        .path_mtu(128_u32.checked_shl(attr.path_mtu).unwrap_or_default())
        .qkey(attr.qkey)
        .rq_psn(attr.rq_psn)
        .sq_psn(attr.sq_psn)
        .dest_qp_num(attr.dest_qp_num)
        .access(Access::from_bits_retain(attr.qp_access_flags))
        .av(AddressVector { port: port_num, lid: dlid, sl, route })
        .pkey_index(attr.pkey_index)
        .max_rd_atomic(attr.max_rd_atomic)
        .max_dest_rd_atomic(attr.max_dest_rd_atomic)
        .min_rnr_timer(attr.min_rnr_timer)
        .port(attr.port_num)
        .timeout(attr.timeout)
        .retry_cnt(attr.retry_cnt)
        .rnr_retry(attr.rnr_retry);
    all.without(mask.complement())
}

const NOWHERE: AddressVector = AddressVector { port: 0, lid: 0, sl: 0, route: None };

/// `struct ibv_ah_attr`.
pub fn raw_path(path: &AddressVector) -> ibv_ah_attr {
    let GlobalRoute { gid, sgid_index, hop_limit, traffic_class, flow_label } =
        path.route.unwrap_or_default();
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw: gid.0 },
            flow_label,
            sgid_index,
            hop_limit,
            traffic_class,
        },
        dlid: path.lid,
        sl: path.sl,
        src_path_bits: 0,
        static_rate: 0,
        is_global: path.route.is_some().into(),
        port_num: path.port,
    }
}

/// `enum ibv_mtu`; for what is no packet size a number that is larger than all of them, so that no device
/// takes it. (Soft-RoCE takes 0.)
const fn mtu_number(bytes: u32) -> u32 {
    match bytes {
        256 | 512 | 1024 | 2048 | 4096 => bytes.trailing_zeros() - 7,
        _ => 0xff,
    }
}
