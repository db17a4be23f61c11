//! What goes wrong between `ibv_wr_start` and `ibv_wr_complete`, and who may be there (Q3, Q4, Q11).

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cq_core::wc::WcStatus as S;

use super::super::*;
use super::{Functions, SEND, end_in_reset, pair};
use crate::qp::type_of_c;
use crate::test::ends::{CAP, End, MEMORY, recv, send};

#[test]
fn q06_what_is_aborted_is_never_posted() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let f = Functions::of(&a);
    b.recv(1, 0, 8);
    f.start();
    f.send(2, a.sge(0, 8));
    f.abort();
    f.start();
    assert_eq!(f.complete(), 0);
    a.expect(&[]);
    b.expect(&[]);
}

/// What calls functions.
type Work<'a> = &'a dyn Fn(&ibv_qp_ex);

/// A request that is wrong, between two good ones: the errno that is told.
fn between_good_ones(f: &Functions, end: &End, wrong: Work<'_>) -> c_int {
    f.start();
    f.send(1, end.sge(0, 8));
    f.request(2, wrong);
    f.send(3, end.sge(0, 8));
    let status = f.complete();
    assert_eq!(status, Errno::last().number());
    status
}

#[test]
fn q04_what_went_wrong_is_told_at_the_end_and_nothing_is_posted() {
    let (a, b) = pair(IBV_QPT_RC, SEND | IBV_QP_EX_WITH_BIND_MW);
    let (f, q) = (Functions::of(&a), a.qp.cast::<ibv_qp_ex>());
    (0..2).for_each(|wr_id| b.recv(wr_id, 0, 8));
    let (sges, none) = ([a.sge(0, 8); 5], ptr::null_mut::<c_void>());
    // SAFETY: a queue pair with functions, and SGEs.
    let wrongs: [(Work<'_>, c_int); 11] = unsafe {
        [
            (&|qp| qp.wr_rdma_read.unwrap()(q, 1, 2), libc::EOPNOTSUPP),
            (&|qp| qp.wr_send_tso.unwrap()(q, none, 0, 0), libc::EOPNOTSUPP),
            (&|qp| qp.wr_set_xrc_srqn.unwrap()(q, 1), libc::EOPNOTSUPP),
            (&|qp| qp.wr_set_sge_list.unwrap()(q, 5, sges.as_ptr()), libc::EINVAL),
            (&|qp| qp.wr_set_sge_list.unwrap()(q, usize::MAX, sges.as_ptr()), libc::EINVAL),
            (&|qp| qp.wr_set_sge_list.unwrap()(q, 1, ptr::null()), libc::EINVAL),
            (&|qp| qp.wr_set_inline_data.unwrap()(q, none, 1), libc::EINVAL),
            (&|qp| qp.wr_set_inline_data_list.unwrap()(q, 1, ptr::null()), libc::EINVAL),
            (&|qp| qp.wr_set_ud_addr.unwrap()(q, none.cast(), 1, 1), libc::EINVAL),
            (&|qp| qp.wr_bind_mw.unwrap()(q, none.cast(), 1, ptr::null()), libc::EINVAL),
            (&|qp| qp.wr_set_ud_addr.unwrap()(q, q.cast(), 1, 1), libc::ENOENT),
        ]
    };
    for (at, (wrong, errno)) in wrongs.into_iter().enumerate() {
        assert_eq!(between_good_ones(&f, &a, wrong), errno, "{at}");
    }
    a.expect(&[]);
    b.expect(&[]);
    f.start();
    f.send(4, a.sge(0, 8));
    assert_eq!(f.complete(), 0);
    a.expect(&[(4, S::SUCCESS)]);
}

#[test]
fn q04_too_many_inline_bytes_are_told_at_the_end() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let (f, mut bytes) = (Functions::of(&a), [0_u8; MEMORY]);
    b.recv(1, 0, 8);
    for length in [CAP.max_inline_data as usize + 1, 257, MEMORY] {
        let first = bytes.as_mut_ptr();
        // SAFETY: a queue pair with functions, and bytes.
        let wrong = |qp: &ibv_qp_ex| unsafe {
            qp.wr_send.unwrap()(f.0);
            qp.wr_set_inline_data.unwrap()(f.0, first.cast(), length);
        };
        assert_eq!(between_good_ones(&f, &a, &wrong), libc::EINVAL, "{length}");
    }
    a.expect(&[]);
    b.expect(&[]);
}

#[test]
fn q04_more_than_the_queue_takes_is_refused_as_a_whole() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let f = Functions::of(&a);
    let start = |count: u64| {
        f.start();
        (0..count).for_each(|wr_id| f.send(wr_id, a.sge(0, 8)));
        f.complete()
    };
    assert_eq!(start(u64::from(CAP.max_send_wr) + 1), libc::ENOMEM);
    (0..CAP.max_recv_wr).for_each(|wr_id| b.recv(wr_id.into(), 0, 8));
    assert_eq!(start(CAP.max_send_wr.into()), 0);
    let all: Vec<_> = (0..u64::from(CAP.max_send_wr)).map(|wr_id| (wr_id, S::SUCCESS)).collect();
    a.expect(&all);
}

#[test]
fn q03_what_is_completed_too_early_is_refused() {
    let a = end_in_reset(IBV_QPT_RC, SEND, 0);
    let f = Functions::of(&a);
    f.start();
    f.send(1, a.sge(0, 8));
    assert_eq!(f.complete(), libc::EINVAL);
    a.expect(&[]);
}

#[test]
fn what_was_not_started_can_not_be_completed() {
    let (a, _b) = pair(IBV_QPT_RC, SEND);
    let f = Functions::of(&a);
    f.send(1, a.sge(0, 8));
    assert_eq!(f.complete(), libc::EINVAL);
    f.abort();
    f.start();
    let ibv_sge { addr, length, lkey } = a.sge(0, 8);
    // A setter without a request. SAFETY: a queue pair with functions.
    unsafe { (*f.0).wr_set_sge.unwrap()(f.0, lkey, addr, length) };
    assert_eq!(f.complete(), libc::EINVAL);
    a.expect(&[]);
}

#[test]
fn q11_a_garbled_handle_is_told_and_keeps_nobody_out() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let f = Functions::of(&a);
    let garble = || {
        // SAFETY: the handle of a queue pair that nobody else uses.
        unsafe { (*a.qp).handle ^= 0xdead_beef };
    };
    garble();
    f.start();
    f.send(1, a.sge(0, 8));
    assert_eq!(f.complete(), libc::ENOENT);
    garble();
    b.recv(2, 0, 8);
    f.start();
    f.send(1, a.sge(0, 8));
    assert_eq!(f.complete(), 0);
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q06_the_operations_of_a_type_are_those_that_the_device_carries() {
    for qp_type in [IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD] {
        for (op, opcode) in [
            (IBV_QP_EX_WITH_RDMA_WRITE, 0),
            (IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, 1),
            (IBV_QP_EX_WITH_SEND, 2),
            (IBV_QP_EX_WITH_SEND_WITH_IMM, 3),
            (IBV_QP_EX_WITH_RDMA_READ, 4),
            (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, 5),
            (IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, 6),
            (IBV_QP_EX_WITH_LOCAL_INV, 7),
            (IBV_QP_EX_WITH_SEND_WITH_INV, 9),
            (IBV_QP_EX_WITH_ATOMIC_WRITE, 15),
        ] {
            let (a, _b) = crate::test::ends::pair(qp_type);
            let mut wr = ibv_send_wr { opcode, ..send(1, &[]) };
            if qp_type == IBV_QPT_UD && matches!(opcode, 2 | 3) {
                wr.wr.ud.ah = a.address();
            }
            let is_carried = a.post_send(&mut [wr]).is_ok();
            let qp_type = type_of_c(qp_type).unwrap();
            assert_eq!(Draft::new(qp_type, Some(op)).is_ok(), is_carried, "{qp_type:?}, {opcode}");
        }
    }
}

#[test]
fn one_thread_at_a_time_has_the_functions() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let is_in = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (a, is_in) = (&a, &is_in);
            scope.spawn(move || {
                let f = Functions::of(a);
                for nth in 0..100 {
                    f.start();
                    assert!(!is_in.swap(true, Ordering::Relaxed));
                    f.send(thread * 1000 + nth, a.sge(0, 8));
                    thread::yield_now();
                    is_in.store(false, Ordering::Relaxed);
                    match nth % 2 {
                        0 => f.abort(),
                        _ => assert!(matches!(f.complete(), 0 | libc::ENOMEM)),
                    }
                }
            });
        }
        for _ in 0..20 {
            let _ = b.post_recv(&mut [recv(1, &[b.sge(0, 8)])]);
        }
    });
}
