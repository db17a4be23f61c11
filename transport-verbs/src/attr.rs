//! The attributes of a queue pair, and addresses, as libibverbs takes them.

use cq_verbs::setup::{
    Access, AckTimeout, AddressVector, GlobalRoute, Mtu, QpAttr, QpAttrMask, QpState, RnrTimer,
};
use rdma_sys::{ibv_ah_attr, ibv_gid, ibv_global_route, ibv_qp_attr};

use crate::sys::qp;

/// `struct ibv_qp_attr`. Attributes that are not given are 0.
pub fn raw(attr: &QpAttr) -> ibv_qp_attr {
    ibv_qp_attr {
        qp_state: attr.state.map_or(0, |state| state.0),
        cur_qp_state: attr.cur_state.map_or(0, |state| state.0),
        path_mtu: attr.path_mtu.map_or(0, Mtu::number),
        qkey: attr.qkey.unwrap_or_default(),
        rq_psn: attr.rq_psn.unwrap_or_default(),
        sq_psn: attr.sq_psn.unwrap_or_default(),
        dest_qp_num: attr.dest_qp_num.unwrap_or_default(),
        qp_access_flags: attr.access.unwrap_or_default().bits(),
        ah_attr: raw_path(&attr.av.unwrap_or_default()),
        pkey_index: attr.pkey_index.unwrap_or_default(),
        en_sqd_async_notify: attr.en_sqd_async_notify.unwrap_or_default().into(),
        max_rd_atomic: attr.max_rd_atomic.unwrap_or_default(),
        max_dest_rd_atomic: attr.max_dest_rd_atomic.unwrap_or_default(),
        min_rnr_timer: attr.min_rnr_timer.map_or(0, RnrTimer::number),
        port_num: attr.port.unwrap_or_default(),
        timeout: attr.timeout.map_or(0, AckTimeout::number),
        retry_cnt: attr.retry_cnt.unwrap_or_default(),
        rnr_retry: attr.rnr_retry.unwrap_or_default(),
        ..qp::no_attributes()
    }
}

/// Those of these attributes that are in the mask, without a size or time that is none.
pub fn told(attr: &ibv_qp_attr, mask: QpAttrMask) -> QpAttr {
    let ibv_ah_attr { grh, dlid, sl, is_global, port_num, .. } = attr.ah_attr;
    let ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class } = grh;
    let gid = qp::gid(dgid);
    let route = GlobalRoute::default()
        .gid(gid)
        .sgid_index(sgid_index)
        .hop_limit(hop_limit)
        .traffic_class(traffic_class)
        .flow_label(flow_label);
    let route = (is_global != 0).then_some(route);
    let mut judged = QpAttr::new();
    judged.path_mtu = Mtu::from_number(attr.path_mtu);
    judged.min_rnr_timer = RnrTimer::from_number(attr.min_rnr_timer);
    judged.timeout = AckTimeout::from_number(attr.timeout);
    let all = judged
        .state(QpState(attr.qp_state))
        .qkey(attr.qkey)
        .rq_psn(attr.rq_psn)
        .sq_psn(attr.sq_psn)
        .dest_qp_num(attr.dest_qp_num)
        .access(Access::from_bits_retain(attr.qp_access_flags))
        .av(AddressVector::default().port(port_num).lid(dlid).sl(sl).route(route))
        .pkey_index(attr.pkey_index)
        .max_rd_atomic(attr.max_rd_atomic)
        .max_dest_rd_atomic(attr.max_dest_rd_atomic)
        .port(attr.port_num)
        .retry_cnt(attr.retry_cnt)
        .rnr_retry(attr.rnr_retry);
    all.without(mask.complement())
}

/// `struct ibv_ah_attr`.
pub fn raw_path(path: &AddressVector) -> ibv_ah_attr {
    let GlobalRoute { gid, sgid_index, hop_limit, traffic_class, flow_label, .. } =
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
