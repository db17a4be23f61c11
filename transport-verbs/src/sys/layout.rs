//! The layouts that the calls rely on, asserted field by field while compiling: some are written by hand in
//! `rdma-sys`, and three are our own, which libibverbs reads and writes as its own. The tests show the same
//! numbers, and those of every constant, to a C compiler.

use std::mem::offset_of;

use cq_core::wc::Wc;
use cq_verbs::wr::Sge;

use super::async_event::RawEvent;

/// What C calls a field: as Rust does, or otherwise.
#[cfg(test)]
macro_rules! c_name {
    ($rust:expr;) => {
        $rust
    };
    ($rust:expr; $c:literal) => {
        $c
    };
}

/// A type, what C calls it, its size, unless newer headers may add to its end, and the offsets of its
/// fields.
macro_rules! layouts {
    ($($type:ty => $c:literal $(= $size:literal)? {
        $($($field:ident).+ $(=> $c_field:literal)? = $offset:literal,)*
    })+) => {
        $(const _: () = {
            $(assert!(size_of::<$type>() == $size);)?
            $(assert!(offset_of!($type, $($field).+) == $offset);)*
        };)+

        #[cfg(test)]
        const LAYOUTS: &[Layout] = &[$(Layout {
            c: $c,
            size: &[$($size)?],
            fields: &[$((c_name!(stringify!($($field).+); $($c_field)?), $offset)),*],
        }),+];
    };
}

#[cfg(test)]
struct Layout {
    c: &'static str,
    size: &'static [usize],
    fields: &'static [(&'static str, usize)],
}

layouts! {
    rdma_sys::ibv_wc => "struct ibv_wc" = 48 {
        wr_id = 0, status = 8, opcode = 12, vendor_err = 16, byte_len = 20,
        imm_data_invalidated_rkey_union.imm_data => "imm_data" = 24,
        imm_data_invalidated_rkey_union.invalidated_rkey => "invalidated_rkey" = 24,
        qp_num = 28, src_qp = 32, wc_flags = 36, pkey_index = 40, slid = 42, sl = 44,
        dlid_path_bits = 45,
    }
    // Its fields are private; cq-core asserts the offsets of C1, which are those above.
    Wc => "struct ibv_wc" = 48 {}

    rdma_sys::ibv_sge => "struct ibv_sge" = 16 { addr = 0, length = 8, lkey = 12, }
    Sge => "struct ibv_sge" = 16 { addr = 0, length = 8, lkey = 12, }

    rdma_sys::ibv_async_event => "struct ibv_async_event" = 16 { element = 0, event_type = 8, }
    RawEvent => "struct ibv_async_event" = 16 {
        element = 0, element.cq = 0, element.qp = 0, element.srq = 0, element.port_num = 0,
        event_type = 8,
    }

    rdma_sys::ibv_send_wr => "struct ibv_send_wr" = 128 {
        wr_id = 0, next = 8, sg_list = 16, num_sge = 24, opcode = 28, send_flags = 32,
        imm_data_invalidated_rkey_union.imm_data => "imm_data" = 36,
        imm_data_invalidated_rkey_union.invalidated_rkey => "invalidate_rkey" = 36,
        wr.rdma.remote_addr = 40, wr.rdma.rkey = 48,
        wr.atomic.remote_addr = 40, wr.atomic.compare_add = 48, wr.atomic.swap = 56,
        wr.atomic.rkey = 64,
        wr.ud.ah = 40, wr.ud.remote_qpn = 48, wr.ud.remote_qkey = 52,
        qp_type.xrc.remote_srqn = 72,
        bind_mw_tso_union.bind_mw.mw => "bind_mw.mw" = 80,
        bind_mw_tso_union.bind_mw.rkey => "bind_mw.rkey" = 88,
        bind_mw_tso_union.bind_mw.bind_info => "bind_mw.bind_info" = 96,
        bind_mw_tso_union.tso.hdr => "tso.hdr" = 80,
        bind_mw_tso_union.tso.hdr_sz => "tso.hdr_sz" = 88,
        bind_mw_tso_union.tso.mss => "tso.mss" = 90,
    }
    rdma_sys::ibv_recv_wr => "struct ibv_recv_wr" = 32 {
        wr_id = 0, next = 8, sg_list = 16, num_sge = 24,
    }

    rdma_sys::ibv_qp_attr => "struct ibv_qp_attr" = 144 {
        qp_state = 0, cur_qp_state = 4, path_mtu = 8, path_mig_state = 12, qkey = 16, rq_psn = 20,
        sq_psn = 24, dest_qp_num = 28, qp_access_flags = 32, cap = 36, ah_attr = 56,
        alt_ah_attr = 88, pkey_index = 120, alt_pkey_index = 122, en_sqd_async_notify = 124,
        sq_draining = 125, max_rd_atomic = 126, max_dest_rd_atomic = 127, min_rnr_timer = 128,
        port_num = 129, timeout = 130, retry_cnt = 131, rnr_retry = 132, alt_port_num = 133,
        alt_timeout = 134, rate_limit = 136,
    }
    rdma_sys::ibv_qp_cap => "struct ibv_qp_cap" = 20 {
        max_send_wr = 0, max_recv_wr = 4, max_send_sge = 8, max_recv_sge = 12,
        max_inline_data = 16,
    }
    rdma_sys::ibv_qp_init_attr => "struct ibv_qp_init_attr" = 64 {
        qp_context = 0, send_cq = 8, recv_cq = 16, srq = 24, cap = 32, qp_type = 52,
        sq_sig_all = 56,
    }
    rdma_sys::ibv_srq_init_attr => "struct ibv_srq_init_attr" = 24 {
        srq_context = 0, attr.max_wr = 8, attr.max_sge = 12, attr.srq_limit = 16,
    }

    rdma_sys::ibv_gid => "union ibv_gid" = 16 {
        raw = 0, global.subnet_prefix = 0, global.interface_id = 8,
    }
    rdma_sys::ibv_global_route => "struct ibv_global_route" = 24 {
        dgid = 0, flow_label = 16, sgid_index = 20, hop_limit = 21, traffic_class = 22,
    }
    rdma_sys::ibv_ah_attr => "struct ibv_ah_attr" = 32 {
        grh = 0, dlid = 24, sl = 26, src_path_bits = 27, static_rate = 28, is_global = 29,
        port_num = 30,
    }

    rdma_sys::ibv_grh => "struct ibv_grh" = 40 {
        version_tclass_flow = 0, paylen = 4, next_hdr = 6, hop_limit = 7, sgid = 8, dgid = 24,
    }

    rdma_sys::ibv_port_attr => "struct ibv_port_attr" {
        state = 0, active_mtu = 8, gid_tbl_len = 12, max_msg_sz = 20, lid = 34, link_layer = 46,
    }
    rdma_sys::ibv_gid_entry => "struct ibv_gid_entry" = 32 {
        gid = 0, gid_index = 16, port_num = 20, gid_type = 24, ndev_ifindex = 28,
    }
    rdma_sys::ibv_modify_cq_attr => "struct ibv_modify_cq_attr" = 8 {
        attr_mask = 0, moderate.cq_count = 4, moderate.cq_period = 6,
    }

    rdma_sys::ibv_context => "struct ibv_context" = 328 {
        device = 0, ops = 8, cmd_fd = 264, async_fd = 268, num_comp_vectors = 272, mutex = 280,
        abi_compat = 320,
    }
    rdma_sys::ibv_comp_channel => "struct ibv_comp_channel" = 16 { context = 0, fd = 8, refcnt = 12, }
    rdma_sys::ibv_cq => "struct ibv_cq" = 128 {
        context = 0, channel = 8, cq_context = 16, handle = 24, cqe = 28,
    }
    rdma_sys::ibv_qp => "struct ibv_qp" = 160 {
        context = 0, qp_context = 8, pd = 16, send_cq = 24, recv_cq = 32, srq = 40, handle = 48,
        qp_num = 52, state = 56, qp_type = 60,
    }
    rdma_sys::ibv_srq => "struct ibv_srq" = 128 {
        context = 0, srq_context = 8, pd = 16, handle = 24,
    }
    rdma_sys::ibv_mr => "struct ibv_mr" = 48 {
        context = 0, pd = 8, addr = 16, length = 24, handle = 32, lkey = 36, rkey = 40,
    }

    rdma_sys::rdma_cm_id => "struct rdma_cm_id" = 416 {
        verbs = 0, channel = 8, context = 16, qp = 24, route = 32,
        route.addr.src_addr_union => "route.addr.src_addr" = 32,
        route.addr.dst_addr_union => "route.addr.dst_addr" = 160,
        route.addr.addr.ibaddr.sgid => "route.addr.addr.ibaddr.sgid" = 288,
        route.path_rec = 328, route.num_paths = 336,
        ps = 344, port_num = 348, event = 352, send_cq = 368, recv_cq = 384, srq = 392, pd = 400,
        qp_type = 408,
    }
    rdma_sys::rdma_event_channel => "struct rdma_event_channel" = 4 { fd = 0, }
    rdma_sys::rdma_cm_event => "struct rdma_cm_event" = 80 {
        id = 0, listen_id = 8, event = 16, status = 20, param.conn = 24, param.ud = 24,
    }
    rdma_sys::rdma_conn_param => "struct rdma_conn_param" = 24 {
        private_data = 0, private_data_len = 8, responder_resources = 9, initiator_depth = 10,
        flow_control = 11, retry_count = 12, rnr_retry_count = 13, srq = 14, qp_num = 16,
    }
    rdma_sys::rdma_ud_param => "struct rdma_ud_param" = 56 {
        private_data = 0, private_data_len = 8, ah_attr = 16, qp_num = 48, qkey = 52,
    }
}

const _: () = {
    assert!(align_of::<Wc>() == align_of::<rdma_sys::ibv_wc>());
    assert!(align_of::<Sge>() == align_of::<rdma_sys::ibv_sge>());
    assert!(align_of::<RawEvent>() == align_of::<rdma_sys::ibv_async_event>());
};

#[cfg(test)]
mod tests;
