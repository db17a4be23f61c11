//! Shared receive queues, beyond what the conformance suite asks: when the last receive of a queue pair is told, what
//! is judged by whom, and what is named no more (Q9).

use std::thread;

use crate::common::*;
use transport_rxe_loop::{ArmLimitError, SharedReceiveQueue};

/// A sender, and an end that takes its receives from a queue, which has those with these numbers.
fn sharing(wr_ids: impl IntoIterator<Item = u64>) -> (End, End, SharedReceiveQueue) {
    let (mut a, mut b) = pair();
    let mut srq = b.pd.create_srq(&SrqInit { max_wr: 8, max_sge: 2 }).unwrap();
    b.qp = b.pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&b.cq) }).unwrap();
    a.to(QpState::RESET);
    connect(&mut a.qp, &mut b.qp);
    for wr_id in wr_ids {
        let sge = [b.region.sge(64 * wr_id as usize, 64).unwrap()];
        srq.post_recv(&[RecvWr::new(wr_id, &sge)]).unwrap();
    }
    (a, b, srq)
}

#[test]
fn q09_the_last_receive_is_not_told_while_a_message_arrives() {
    const LEN: usize = 16 << 20;
    let (mut a, mut b, mut srq) = sharing([]);
    let (from, to) = (a.pd.allocate(LEN, ALL).unwrap(), b.pd.allocate(LEN, ALL).unwrap());
    from.write(0, &[7]).unwrap();
    srq.post_recv(&[RecvWr::new(1, &[to.sge(0, LEN).unwrap()])]).unwrap();
    let last = AsyncEvent {
        event_type: AsyncEventType::QP_LAST_WQE_REACHED,
        element: Element::Qp(b.qp.number()),
    };
    thread::scope(|scope| {
        let source = [from.sge(0, LEN).unwrap()];
        let a = &mut a;
        scope.spawn(move || a.post(SendWr::send(2, &source)));
        wait_for_first_byte(&to);
        b.to(QpState::ERR);
        // That returns when nothing arrives any more.
        assert_eq!(outcomes(&take(&mut b.cq)), [(1, S::SUCCESS)]);
    });
    wait_for(|| reports(&mut b.context) == [last]);
}

#[test]
fn q09_a_shared_receive_is_judged_by_its_own_domain() {
    let (mut a, mut b, mut srq) = sharing([1]);
    let other = b.context.alloc_pd().unwrap();
    b.qp = other.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&b.cq) }).unwrap();
    a.to(QpState::RESET);
    connect(&mut a.qp, &mut b.qp);
    let theirs = other.allocate(64, ALL).unwrap();
    srq.post_recv(&[RecvWr::new(2, &[theirs.sge(0, 64).unwrap()])]).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::SUCCESS)]);
    a.send(2, 0, 8);
    a.expect(&[(2, S::REM_OP_ERR)]);
    let done = settle(&mut b.cq, 2);
    assert_eq!(outcomes(&done), [(1, S::SUCCESS), (2, S::LOC_PROT_ERR)]);
}

#[test]
fn q09_a_dead_queue_is_never_named() {
    let (mut a, b, mut srq) = sharing([1]);
    let too_many = ArmLimitError::TooMany { asked: 9, max: 8 };
    assert_eq!(srq.arm_limit(9), Err(too_many));
    srq.arm_limit(1).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::SUCCESS)]);
    let End { mut context, qp, .. } = b;
    assert_eq!((qp.caps().max_recv_wr, qp.caps().max_recv_sge), (0, 0), "it has none of its own");
    qp.destroy();
    srq.destroy().unwrap();
    assert_eq!(reports(&mut context), []);
}
