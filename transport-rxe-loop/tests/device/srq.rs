//! Shared receive queues, beyond what the conformance suite asks: when the last receive of a queue pair is told, what
//! is judged by whom, and what is named no more (Q9).

use std::thread;

use crate::common::*;
use transport_rxe_loop::{ArmLimitError, SharedReceiveQueue};

/// A sender, and an end that takes its receives from a queue, which has those with these numbers.
fn sharing(wr_ids: impl IntoIterator<Item = u64>) -> (End, End, SharedReceiveQueue) {
    let (mut a, mut b) = pair();
    let mut srq = b.pd.create_srq(&SrqInit::new(8).max_sge(2)).unwrap();
    b.qp = b.pd.qp(&b.cq).srq(&srq).create().unwrap();
    a.to(QpState::RESET);
    connect(&mut a.qp, &mut b.qp);
    for wr_id in wr_ids {
        let sge = [b.region.sge(64 * wr_id as usize..64 * wr_id as usize + 64).unwrap()];
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
    srq.post_recv(&[RecvWr::new(1, &[to.sge(..LEN).unwrap()])]).unwrap();
    let last = AsyncEvent {
        event_type: AsyncEventType::QP_LAST_WQE_REACHED,
        element: Element::Qp(b.qp.number()),
    };
    thread::scope(|scope| {
        let source = [from.sge(..LEN).unwrap()];
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
    b.qp = other.qp(&b.cq).srq(&srq).create().unwrap();
    a.to(QpState::RESET);
    connect(&mut a.qp, &mut b.qp);
    let theirs = other.allocate(64, ALL).unwrap();
    srq.post_recv(&[RecvWr::new(2, &[theirs.sge(..64).unwrap()])]).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::SUCCESS)]);
    a.send(2, 0, 8);
    a.expect(&[(2, S::REM_OP_ERR)]);
    let done = settle(&mut b.cq, 2);
    assert_eq!(outcomes(&done), [(1, S::SUCCESS), (2, S::LOC_PROT_ERR)]);
}

/// Which of four senders with 6 messages each get the receives of a queue, where so many at a time are posted to it.
fn takers(at_a_time: usize) -> Vec<usize> {
    const SENDS: usize = 6;
    let context = open();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.cq(256).create().unwrap());
    let mut sent = context.cq(256).create().unwrap();
    let mut srq = pd.create_srq(&SrqInit::new(16)).unwrap();
    let mut pairs = [(); 4].map(|()| {
        let mut from = pd.qp(&sent).caps(CAPS).create().unwrap();
        let mut to = pd.qp(&cq).srq(&srq).create().unwrap();
        connect(&mut from, &mut to);
        (from, to)
    });
    pairs.iter_mut().for_each(|(from, _)| from.post_send(&[SendWr::send(1, &[]); SENDS]).unwrap());
    let mut takers = Vec::new();
    while takers.len() < 4 * SENDS {
        srq.post_recv(&vec![RecvWr::new(2, &[]); at_a_time]).unwrap();
        let is_of = |wc: &Wc| pairs.iter().position(|(_, to)| to.number() == wc.qp_num());
        takers.extend(settle(&mut cq, at_a_time).iter().filter_map(is_of));
    }
    assert_eq!(outcomes(&settle(&mut sent, 4 * SENDS)), [(1, S::SUCCESS); 4 * SENDS]);
    takers
}

#[test]
fn q09_senders_that_wait_for_a_shared_receive_are_run_in_turn() {
    for at_a_time in [1, 2, 3] {
        let takers = takers(at_a_time);
        // The table of queue pairs is filled from anywhere on: any of them may be the first.
        let mut order: Vec<_> = takers.iter().copied().step_by(at_a_time).take(4).collect();
        let turns = order.clone().into_iter().cycle().flat_map(|sender| vec![sender; at_a_time]);
        assert!(takers.iter().copied().eq(turns.take(24)), "{at_a_time}: {takers:?}");
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3], "{at_a_time}: {takers:?}");
    }
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
