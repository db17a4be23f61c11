//! What goes wrong between `ibv_wr_start` and `ibv_wr_complete`, and who may be there (Q3, Q4, Q11).

use std::sync::atomic::{AtomicBool, Ordering};

use cq_verbs::setup::QpType;

use super::super::*;
use super::{SEND, end_in_reset, functions, named, pair, post_send, put_send, set_sge};
use crate::test::*;

/// What is called between two good requests: the errno that is told at the end.
fn between_good_ones(q: Qp, end: &End, wrong: &dyn Fn(Qp)) -> c_int {
    call!(q, wr_start());
    put_send(q, 1, end.sge(0, 8));
    wrong(named(q, 2));
    put_send(q, 3, end.sge(0, 8));
    let status = call!(q, wr_complete());
    assert_eq!(status, Errno::last().number());
    status
}

#[test]
fn q04_what_went_wrong_is_told_at_the_end_and_nothing_is_posted() {
    let (a, b) = pair(IBV_QPT_RC, SEND | IBV_QP_EX_WITH_BIND_MW);
    let q = functions(&a);
    (0..2).for_each(|wr_id| b.recv(wr_id, 0, 8));
    let (sges, null) = ([a.sge(0, 8); 5], ptr::null_mut::<c_void>());
    let inline = |q: Qp, addr, length| {
        call!(q, wr_send());
        call!(q, wr_set_inline_data(addr, length));
    };
    let mut bytes = [0_u8; MEMORY];
    let bytes = bytes.as_mut_ptr().cast();
    let wrongs: [(&dyn Fn(Qp), c_int); 15] = [
        (&|q| call!(q, wr_rdma_read(1, 2)), libc::EOPNOTSUPP),
        (&|q| call!(q, wr_send_tso(null, 0, 0)), libc::EOPNOTSUPP),
        (&|q| call!(q, wr_set_xrc_srqn(1)), libc::EOPNOTSUPP),
        (&|q| call!(q, wr_set_sge_list(5, sges.as_ptr())), libc::EINVAL),
        (&|q| call!(q, wr_set_sge_list(usize::MAX, sges.as_ptr())), libc::EINVAL),
        (&|q| call!(q, wr_set_sge_list(1, ptr::null())), libc::EINVAL),
        (&|q| call!(q, wr_set_inline_data(null, 1)), libc::EINVAL),
        (&|q| call!(q, wr_set_inline_data_list(1, ptr::null())), libc::EINVAL),
        (&|q| call!(q, wr_set_ud_addr(null.cast(), 1, 1)), libc::EINVAL),
        (&|q| call!(q, wr_bind_mw(null.cast(), 1, ptr::null())), libc::EINVAL),
        (&|q| call!(q, wr_set_ud_addr(q.cast(), 1, 1)), libc::ENOENT),
        // More than this queue pair takes, than the buffer holds anywhere, and than there can be.
        (&|q| inline(q, bytes, CAP.max_inline_data as usize + 1), libc::EINVAL),
        (&|q| inline(q, bytes, 257), libc::EINVAL),
        (&|q| inline(q, bytes, MEMORY), libc::EINVAL),
        (&|q| inline(q, bytes, usize::MAX), libc::EINVAL),
    ];
    for (at, (wrong, errno)) in wrongs.into_iter().enumerate() {
        assert_eq!(between_good_ones(q, &a, wrong), errno, "{at}");
    }
    a.expect(&[]);
    b.expect(&[]);
    assert_eq!(post_send(q, 4, a.sge(0, 8)), 0);
    a.expect(&[(4, S::SUCCESS)]);
}

#[test]
fn q04_more_than_the_queue_takes_is_refused_as_a_whole() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let q = functions(&a);
    let start = |count: u64| {
        call!(q, wr_start());
        (0..count).for_each(|wr_id| put_send(q, wr_id, a.sge(0, 8)));
        call!(q, wr_complete())
    };
    assert_eq!(start(u64::from(CAP.max_send_wr) + 1), libc::ENOMEM);
    (0..CAP.max_recv_wr).for_each(|wr_id| b.recv(wr_id.into(), 0, 8));
    assert_eq!(start(CAP.max_send_wr.into()), 0);
    let all: Vec<_> = (0..u64::from(CAP.max_send_wr)).map(|wr_id| (wr_id, S::SUCCESS)).collect();
    a.expect(&all);
}

#[test]
fn q03_what_is_completed_too_early_or_was_not_started_is_refused() {
    let a = end_in_reset(IBV_QPT_RC, SEND, 0);
    let q = functions(&a);
    assert_eq!(post_send(q, 1, a.sge(0, 8)), libc::EINVAL);
    a.connect(a.number());
    put_send(q, 1, a.sge(0, 8));
    assert_eq!(call!(q, wr_complete()), libc::EINVAL);
    call!(q, wr_abort());
    // A setter without a request.
    call!(q, wr_start());
    set_sge(q, a.sge(0, 8));
    assert_eq!(call!(q, wr_complete()), libc::EINVAL);
    a.expect(&[]);
}

#[test]
fn q11_a_garbled_handle_is_told_and_keeps_nobody_out() {
    let (a, b) = pair(IBV_QPT_RC, SEND);
    let q = functions(&a);
    // SAFETY: the handle of a queue pair that nobody else uses.
    let garble = || unsafe { (*a.qp).handle ^= 0xdead_beef };
    garble();
    assert_eq!(post_send(q, 1, a.sge(0, 8)), libc::ENOENT);
    garble();
    b.recv(2, 0, 8);
    assert_eq!(post_send(q, 1, a.sge(0, 8)), 0);
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
            assert_eq!(
                Draft::new(QpType(qp_type), Some(op)).is_ok(),
                is_carried,
                "{qp_type:?}, {opcode}"
            );
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
                let q = functions(a);
                for nth in 0..100 {
                    call!(q, wr_start());
                    assert!(!is_in.swap(true, Ordering::Relaxed));
                    put_send(q, thread * 1000 + nth, a.sge(0, 8));
                    thread::yield_now();
                    is_in.store(false, Ordering::Relaxed);
                    match nth % 2 {
                        0 => call!(q, wr_abort()),
                        _ => assert!(matches!(call!(q, wr_complete()), 0 | libc::ENOMEM)),
                    }
                }
            });
        }
        for _ in 0..20 {
            let _ = b.post_recv(&mut [recv(1, &[b.sge(0, 8)])]);
        }
    });
}
