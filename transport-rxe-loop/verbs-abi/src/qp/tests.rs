//! Making, asking and destroying queue pairs, as C programs do (Q1, Q11).

use std::ptr;
use std::thread;

use super::*;
use crate::exports::*;
use crate::test::ends::{CAP, End};
use crate::test::{domain, open};

/// The errno of making one of something else than usual.
fn refused(change: impl FnOnce(&mut ibv_qp_init_attr)) -> Errno {
    let end = End::new(IBV_QPT_RC);
    let (_, mut init) = end.query();
    change(&mut init);
    // SAFETY: what it is made of.
    assert!(unsafe { ibv_create_qp(end.pd, &raw mut init) }.is_null());
    Errno::last()
}

/// One that is made by the longer function, of what is usual; or the errno.
fn create_ex(change: impl FnOnce(&mut ibv_qp_init_attr_ex)) -> Result<End, Errno> {
    let mut why = None;
    let end = End::with(|mut init, context| {
        let ibv_qp_init_attr { qp_context, send_cq, recv_cq, cap, qp_type, .. } = init;
        let mut longer = ibv_qp_init_attr_ex {
            send_cq,
            recv_cq,
            cap,
            qp_type,
            comp_mask: IBV_QP_INIT_ATTR_PD,
            pd: qp_context.cast(),
            ..ibv_qp_init_attr_ex::ZEROED
        };
        change(&mut longer);
        // SAFETY: what it is made of, both times.
        unsafe {
            let qp = ibv_create_qp_ex(context, &raw mut longer);
            if !qp.is_null() {
                return qp;
            }
            why = Some(Errno::last());
            ibv_create_qp(qp_context.cast(), &raw mut init)
        }
    });
    why.map_or(Ok(end), Err)
}

#[test]
fn q01_a_queue_pair_begins_in_reset_and_says_what_it_is() {
    let end = End::with(|mut init, _| {
        (init.sq_sig_all, init.cap.max_inline_data) = (7, 100);
        // SAFETY: what it is made of.
        let qp = unsafe { ibv_create_qp(init.qp_context.cast(), &raw mut init) };
        assert!(init.cap.max_inline_data >= 100 && init.cap.max_send_wr >= CAP.max_send_wr);
        qp
    });
    // SAFETY: a queue pair, which stays as it is.
    let qp = unsafe { &*end.qp };
    assert_eq!((qp.context, qp.pd, qp.qp_context), (end.context, end.pd, end.pd.cast()));
    assert_eq!((qp.send_cq, qp.recv_cq, qp.srq), (end.cq, end.cq, ptr::null_mut()));
    assert_eq!((qp.state, qp.qp_type), (IBV_QPS_RESET, IBV_QPT_RC));
    assert_ne!(qp.qp_num, 0);
    let (attr, init) = end.query();
    assert_eq!((attr.qp_state, attr.cur_qp_state), (IBV_QPS_RESET, IBV_QPS_RESET));
    assert_eq!((init.qp_type, init.sq_sig_all), (IBV_QPT_RC, 1));
    assert_eq!((init.send_cq, init.recv_cq, init.qp_context), (end.cq, end.cq, end.pd.cast()));
    assert_eq!((attr.cap.max_inline_data, init.cap.max_inline_data), (100, 100));
}

#[test]
fn types_that_the_device_does_not_have_are_told() {
    for qp_type in [0, 1, 5, 8, 9, 10, 0xf0, 0xff, u32::MAX] {
        assert_eq!(refused(|init| init.qp_type = qp_type), Errno::OPNOTSUPP, "{qp_type}");
    }
}

#[test]
fn q04_capacities_past_the_limits_are_refused() {
    for cap in [
        ibv_qp_cap { max_send_wr: u32::MAX, ..CAP },
        ibv_qp_cap { max_recv_wr: u32::MAX, ..CAP },
        ibv_qp_cap { max_send_sge: 17, ..CAP },
        ibv_qp_cap { max_recv_sge: u32::MAX, ..CAP },
        ibv_qp_cap { max_inline_data: 257, ..CAP },
    ] {
        assert_eq!(refused(|init| init.cap = cap), Errno::INVAL);
    }
}

#[test]
fn q11_what_it_is_made_of_must_be_there() {
    assert_eq!(refused(|init| init.send_cq = ptr::null_mut()), Errno::INVAL);
    assert_eq!(refused(|init| init.recv_cq = init.recv_cq.wrapping_byte_add(8)), Errno::NOENT);
    assert_eq!(refused(|init| init.srq = init.send_cq.cast()), Errno::NOENT);
    let end = End::new(IBV_QPT_RC);
    let (_, mut init) = end.query();
    // SAFETY: any pointer may be handed in; nobody else uses the handles.
    unsafe {
        assert!(ibv_create_qp(ptr::null_mut(), &raw mut init).is_null());
        assert!(ibv_create_qp(end.pd, ptr::null_mut()).is_null());
        for handle in [&raw mut (*end.pd).handle, &raw mut (*end.cq).handle] {
            *handle ^= 0xdead_beef;
            assert!(ibv_create_qp(end.pd, &raw mut init).is_null());
            assert_eq!(Errno::last(), Errno::NOENT);
            *handle ^= 0xdead_beef;
        }
    }
}

#[test]
fn q11_what_a_queue_pair_uses_stays() {
    let end = End::new(IBV_QPT_RC);
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert_eq!(ibv_destroy_cq(end.cq), libc::EBUSY);
        assert_eq!(ibv_dealloc_pd(end.pd), libc::EBUSY);
    }
}

#[test]
fn q11_what_is_destroyed_is_gone() {
    let mut end = End::new(IBV_QPT_RC);
    let qp = end.qp;
    let (mut attr, mut init) = (ibv_qp_attr::ZEROED, ibv_qp_init_attr::ZEROED);
    // SAFETY: any pointer may be handed in; nobody else uses the handle.
    unsafe {
        (*qp).handle ^= 0xdead_beef;
        assert_eq!(ibv_destroy_qp(qp), libc::ENOENT);
        assert_eq!(ibv_query_qp(qp, &raw mut attr, 0, &raw mut init), libc::ENOENT);
        (*qp).handle ^= 0xdead_beef;
        assert_eq!(ibv_query_qp(qp, ptr::null_mut(), 0, &raw mut init), libc::EINVAL);
        assert_eq!(ibv_query_qp(qp, &raw mut attr, 0, ptr::null_mut()), libc::EINVAL);
        assert_eq!(end.destroy_qp(), 0);
        assert_eq!(ibv_destroy_qp(qp), libc::ENOENT);
        assert_eq!(ibv_destroy_qp(ptr::null_mut()), libc::EINVAL);
        assert_eq!(ibv_query_qp(qp, &raw mut attr, 0, &raw mut init), libc::ENOENT);
        assert!(ibv_qp_to_qp_ex(qp).is_null());
    }
}

#[test]
fn n07_a_queue_pair_goes_once_its_events_are_acknowledged() {
    let mut end = End::new(IBV_QPT_RC);
    let slot = PAIRS.find(end.qp).unwrap();
    slot.side().reports.take();
    thread::scope(|scope| {
        let destroying = scope.spawn(|| end.destroy_qp());
        while slot.with(|_| ()).is_ok() {
            thread::yield_now();
        }
        assert!(!destroying.is_finished());
        slot.side().reports.acknowledge(1);
        assert_eq!(destroying.join().unwrap(), 0);
    });
}

#[test]
fn two_completion_queues_are_used_in_any_order() {
    let ends = [(); 2].map(|()| End::new(IBV_QPT_RC));
    thread::scope(|scope| {
        for (send, recv) in [(0, 1), (1, 0)] {
            let ends = &ends;
            scope.spawn(move || {
                for _ in 0..20 {
                    let (send_cq, recv_cq) = (ends[send].cq, ends[recv].cq);
                    let qp_type = IBV_QPT_RC;
                    let mut init =
                        ibv_qp_init_attr { send_cq, recv_cq, qp_type, ..ibv_qp_init_attr::ZEROED };
                    // SAFETY: what it is made of, and any pointer.
                    unsafe {
                        let qp = ibv_create_qp(ends[0].pd, &raw mut init);
                        assert_eq!(ibv_destroy_qp(qp), 0);
                    }
                }
            });
        }
    });
}

#[test]
fn a_longer_request_asks_for_a_domain_and_operations() {
    assert!(create_ex(|_| ()).is_ok());
    let no_flags = |init: &mut ibv_qp_init_attr_ex| init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    assert!(create_ex(no_flags).is_ok());
    assert_eq!(create_ex(|init| init.comp_mask = 0).err(), Some(Errno::INVAL));
    for bit in [1, 3, 4, 5, 7, 31] {
        let ask = |init: &mut ibv_qp_init_attr_ex| init.comp_mask |= 1 << bit;
        assert_eq!(create_ex(ask).err(), Some(Errno::OPNOTSUPP), "bit {bit}");
    }
    let one_flag = |init: &mut ibv_qp_init_attr_ex| {
        no_flags(init);
        init.create_flags = 2;
    };
    assert_eq!(create_ex(one_flag).err(), Some(Errno::OPNOTSUPP));
}

#[test]
fn a_longer_request_names_the_context_of_its_domain() {
    assert_eq!(create_ex(|init| init.pd = domain()).err(), Some(Errno::INVAL));
    assert_eq!(create_ex(|init| init.pd = ptr::null_mut()).err(), Some(Errno::INVAL));
    let mut init = ibv_qp_init_attr_ex::ZEROED;
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert!(ibv_create_qp_ex(ptr::null_mut(), &raw mut init).is_null());
        assert!(ibv_create_qp_ex(open(), ptr::null_mut()).is_null());
    }
}

#[test]
fn functions_of_its_own_are_for_a_queue_pair_that_asked_for_them() {
    let asking_for = |ops| {
        move |init: &mut ibv_qp_init_attr_ex| {
            init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
            (init.send_ops_flags, init.qp_type) = (ops, IBV_QPT_UD);
        }
    };
    let asked = create_ex(asking_for(IBV_QP_EX_WITH_SEND.into())).unwrap();
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert_eq!(ibv_qp_to_qp_ex(asked.qp), asked.qp.cast());
        assert!(ibv_qp_to_qp_ex(End::new(IBV_QPT_RC).qp).is_null());
    }
    for ops in [IBV_QP_EX_WITH_RDMA_READ.into(), IBV_QP_EX_WITH_TSO.into(), 1 << 40] {
        assert_eq!(create_ex(asking_for(ops)).err(), Some(Errno::OPNOTSUPP), "{ops:#x}");
    }
}
