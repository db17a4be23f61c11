//! Making, asking and destroying queue pairs, as C programs do (Q1).

use super::*;
use crate::test::*;

/// Why none is made that is changed like this.
fn refused(change: impl FnOnce(&mut ibv_qp_init_attr_ex)) -> Option<Errno> {
    End::of(change).err()
}

#[test]
fn q01_a_queue_pair_begins_in_reset_and_says_what_it_is() {
    let end = End::of(|init| {
        (init.sq_sig_all, init.cap.max_inline_data) = (7, 100);
    });
    let end = end.unwrap();
    // SAFETY: a queue pair, which stays as it is.
    let qp = unsafe { &*end.qp };
    assert_eq!((qp.context, qp.pd, qp.qp_context), (end.context, end.pd, end.pd.cast()));
    assert_eq!((qp.send_cq, qp.recv_cq, qp.srq), (end.cq, end.cq, ptr::null_mut()));
    assert_eq!((qp.state, qp.qp_type), (IBV_QPS_RESET, IBV_QPT_RC));
    assert_ne!(qp.qp_num, 0);
    let (attr, mut init) = end.query();
    assert_eq!((attr.qp_state, attr.cur_qp_state), (IBV_QPS_RESET, IBV_QPS_RESET));
    assert_eq!((init.qp_type, init.sq_sig_all), (IBV_QPT_RC, 1));
    assert_eq!((init.send_cq, init.recv_cq, init.qp_context), (end.cq, end.cq, end.pd.cast()));
    assert_eq!((attr.cap.max_inline_data, init.cap.max_inline_data), (100, 100));
    // What it has is told where it was asked for; null is nothing to ask for.
    init.srq = shared_queue(end.pd);
    // SAFETY: attributes, or null.
    unsafe {
        assert_eq!(ibv_destroy_qp(ibv_create_qp(end.pd, &raw mut init)), 0);
        assert!(ibv_create_qp(end.pd, ptr::null_mut()).is_null());
        assert!(ibv_create_qp_ex(end.context, ptr::null_mut()).is_null());
    }
    assert_eq!((init.cap.max_recv_wr, init.cap.max_send_wr), (0, CAP.max_send_wr));
}

#[test]
fn what_a_queue_pair_can_not_be_made_of_is_told() {
    for qp_type in [0, 1, 5, 8, 9, 10, 0xf0, 0xff, u32::MAX] {
        assert_eq!(refused(|init| init.qp_type = qp_type), Some(Errno::OPNOTSUPP), "{qp_type}");
    }
    let cap = ibv_qp_cap { max_inline_data: 257, ..CAP };
    assert_eq!(refused(|init| init.cap = cap), Some(Errno::INVAL));
    assert_eq!(refused(|init| init.send_cq = ptr::null_mut()), Some(Errno::INVAL));
    let cq = |cq: *mut ibv_cq| cq.wrapping_byte_add(8);
    assert_eq!(refused(|init| init.recv_cq = cq(init.recv_cq)), Some(Errno::NOENT));
    assert_eq!(refused(|init| init.srq = init.send_cq.cast()), Some(Errno::NOENT));
}

#[test]
fn a_longer_request_asks_for_a_domain_and_operations() {
    const FLAGS: u32 = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    assert_eq!(refused(|init| init.comp_mask = FLAGS), None);
    assert_eq!(
        refused(|init| (init.comp_mask, init.create_flags) = (FLAGS, 2)),
        Some(Errno::OPNOTSUPP)
    );
    assert_eq!(refused(|init| init.comp_mask = 0), Some(Errno::INVAL));
    for bit in [1, 3, 4, 5, 7, 31] {
        let asked = refused(|init| init.comp_mask |= 1 << bit);
        assert_eq!(asked, Some(Errno::OPNOTSUPP), "bit {bit}");
    }
    // The domain is of the same context.
    for pd in [domain(), ptr::null_mut()] {
        assert_eq!(refused(|init| (init.comp_mask, init.pd) = (FLAGS, pd)), Some(Errno::INVAL));
    }
}

#[test]
fn functions_of_its_own_are_for_a_queue_pair_that_asked_for_them() {
    let asking_for = |ops| {
        End::of(|init| {
            init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
            (init.send_ops_flags, init.qp_type) = (ops, IBV_QPT_UD);
        })
    };
    let asked = asking_for(IBV_QP_EX_WITH_SEND.into()).unwrap();
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert_eq!(ibv_qp_to_qp_ex(asked.qp), asked.qp.cast());
        assert!(ibv_qp_to_qp_ex(End::new(IBV_QPT_RC).qp).is_null());
    }
    for ops in [IBV_QP_EX_WITH_RDMA_READ.into(), IBV_QP_EX_WITH_TSO.into(), 1 << 40] {
        assert_eq!(asking_for(ops).err(), Some(Errno::OPNOTSUPP), "{ops:#x}");
    }
}
