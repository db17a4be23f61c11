//! Shared receive queues.

use cq_core::async_event::{AsyncEventType, Element};
use cq_core::transport::{Post, Refused};
use cq_core::wc::WcStatus as S;
use cq_core::wr::{RecvWr, SendWr, Sge};

use super::{EVERY, Pair, all, connect, taken};
use crate::device::{
    Destroy, Device, Mr, Qp, QpAttr, QpInit, QpState, QpType, Srq, SrqInit, attr, small,
};
use crate::model::{ModelQp, ModelSrq};

const CAPS: SrqInit = SrqInit { max_wr: 4, max_sge: 1 };

/// Two connections to queue pairs that take from the same queue; their receives complete at `at_b`.
struct Shared {
    pair: Pair,
    srq: ModelSrq,
    senders: [ModelQp; 2],
    receivers: [ModelQp; 2],
}

impl Shared {
    fn new() -> Self {
        let pair = Pair::new(16, attr::rts());
        let srq = pair.device.create_srq(&pair.pd, &CAPS).unwrap();
        let sender = small(&pair.at_a);
        let receiver = QpInit { srq: Some(&srq), ..small(&pair.at_b) };
        let mut senders = [(); 2].map(|()| pair.device.create_qp(&pair.pd, &sender).unwrap());
        let mut receivers = [(); 2].map(|()| pair.device.create_qp(&pair.pd, &receiver).unwrap());
        for (a, b) in senders.iter_mut().zip(&mut receivers) {
            connect(a, b.number(), &attr::rts());
            connect(b, a.number(), &attr::rts());
        }
        Self { pair, srq, senders, receivers }
    }

    fn post(&mut self, wr_ids: impl IntoIterator<Item = u64>) {
        for wr_id in wr_ids {
            let sges = [self.pair.memory.sge(0, 8)];
            self.srq.post_recv(&[RecvWr::new(wr_id, &sges)]).unwrap();
        }
    }

    fn send(&mut self, sender: usize) {
        self.senders[sender].post_send(&[SendWr::send_inline(1, b"x")]).unwrap();
    }
}

#[test]
fn q09_receives_are_taken_in_order_by_whoever_gets_a_message_and_complete_as_its() {
    let mut shared = Shared::new();
    shared.post(10..13);
    for sender in [1, 0, 1] {
        shared.send(sender);
    }
    let done = all(&mut shared.pair.at_b);
    let numbers = [1, 0, 1].map(|qp| shared.receivers[qp].number());
    let expected: Vec<_> = (10..).zip(numbers).collect();
    assert_eq!(done.iter().map(|wc| (wc.wr_id(), wc.qp_num())).collect::<Vec<_>>(), expected);
}

#[test]
fn q09_who_finds_no_receive_waits_until_one_is_posted_to_the_shared_queue() {
    let mut shared = Shared::new();
    shared.send(0);
    assert_eq!(taken(&mut shared.pair.at_a), []);
    shared.post([10]);
    assert_eq!(taken(&mut shared.pair.at_a), [(1, S::SUCCESS)]);
}

#[test]
fn q09_a_queue_pair_that_fails_takes_no_more_says_so_once_and_leaves_the_rest() {
    let mut shared = Shared::new();
    shared.post(10..13);
    let reply = shared.pair.memory.sge(0, 8);
    shared.receivers[0].post_send(&[SendWr::send(2, &[reply])]).unwrap();
    for _ in 0..2 {
        shared.receivers[0].modify(&QpAttr::to(QpState::ERR)).unwrap();
    }
    let number = shared.receivers[0].number();
    let last = (AsyncEventType::QP_LAST_WQE_REACHED, Element::Qp(number));
    assert_eq!(shared.pair.reports(), [last]);
    assert_eq!(taken(&mut shared.pair.at_b), [(2, S::WR_FLUSH_ERR)]);
    shared.send(1);
    assert_eq!(taken(&mut shared.pair.at_b), [(10, S::SUCCESS)]);

    // Over RESET it takes part again, and fails again.
    shared.receivers[0].modify(&QpAttr::to(QpState::RESET)).unwrap();
    connect(&mut shared.receivers[0], shared.senders[0].number(), &attr::rts());
    shared.send(0);
    assert_eq!(taken(&mut shared.pair.at_b), [(11, S::SUCCESS)]);
    shared.receivers[0].modify(&QpAttr::to(QpState::ERR)).unwrap();
    assert_eq!(shared.pair.reports(), [last]);
}

#[test]
fn q09_a_message_that_a_receive_cannot_take_costs_one_receive() {
    let mut shared = Shared::new();
    shared.post(10..12);
    shared.senders[0].post_send(&[SendWr::send_inline(1, b"too long")]).unwrap();
    shared.senders[1].post_send(&[SendWr::send_inline(2, b"much too long")]).unwrap();
    assert_eq!(taken(&mut shared.pair.at_b), [(10, S::SUCCESS), (11, S::LOC_LEN_ERR)]);
    let states = [0, 1].map(|qp| shared.receivers[qp].state());
    assert_eq!(states, [QpState::RTS, QpState::ERR]);
    let element = Element::Qp(shared.receivers[1].number());
    assert_eq!(shared.pair.reports(), [(AsyncEventType::QP_LAST_WQE_REACHED, element)]);
}

#[test]
fn q09_the_limit_is_reported_once_below_it_and_is_gone_then() {
    let mut shared = Shared::new();
    shared.post(10..14);
    shared.srq.arm_limit(3).unwrap();
    shared.send(0);
    assert_eq!((shared.srq.limit(), shared.pair.reports()), (3, vec![]));
    shared.send(1);
    let reached = (AsyncEventType::SRQ_LIMIT_REACHED, Element::Srq(shared.srq.number()));
    assert_eq!((shared.srq.limit(), shared.pair.reports()), (0, vec![reached]));
    shared.send(0);
    assert_eq!(shared.pair.reports(), []);

    // Armed below its limit, it is the next receive taken that says so.
    shared.srq.arm_limit(4).unwrap();
    assert_eq!(shared.pair.reports(), []);
    shared.send(0);
    assert_eq!(shared.pair.reports(), [reached]);
    assert!(shared.srq.arm_limit(5).is_err());
}

#[test]
fn q09_what_a_shared_queue_and_its_queue_pairs_refuse() {
    let mut shared = Shared::new();
    let refused = shared.receivers[0].post_recv(&[RecvWr::new(1, &[])]).unwrap_err();
    assert_eq!((refused.posted, refused.why), (0, Refused::SharedReceives));
    assert_eq!(shared.receivers[0].caps().max_recv_wr, 0);

    let two = [Sge::default(); 2];
    let refused = shared.srq.post_recv(&[RecvWr::new(1, &[]), RecvWr::new(2, &two)]);
    let refused = refused.unwrap_err();
    assert_eq!((refused.posted, refused.why), (1, Refused::TooManySges { max: 1 }));
    shared.post(10..13);
    let refused = shared.srq.post_recv(&[RecvWr::new(1, &[])]).unwrap_err();
    assert_eq!(refused.why, Refused::QueueFull);

    let Pair { device, pd, at_a, .. } = &shared.pair;
    for caps in [SrqInit { max_wr: 0, ..CAPS }, SrqInit { max_sge: 17, ..CAPS }] {
        assert!(device.create_srq(pd, &caps).is_err());
    }
    let other = device.alloc_pd();
    let init = QpInit { srq: Some(&shared.srq), ..small(at_a) };
    assert!(device.create_qp(&other, &init).is_ok(), "the queue's own domain is what counts");
    assert!(device.create_qp(pd, &init).is_ok());
    let unreliable = QpInit { qp_type: QpType::Uc, ..init };
    assert!(device.create_qp(pd, &unreliable).is_err());
}

#[test]
fn q11_a_shared_queue_is_destroyed_after_its_queue_pairs() {
    let shared = Shared::new();
    let srq = shared.srq.destroy().unwrap_err();
    drop((shared.senders, shared.receivers));
    assert!(srq.destroy().is_ok());
    let memory = shared.pair.device.register(&shared.pair.pd, 1, EVERY);
    assert!(memory.is_ok());
}
