//! Events that are held back, and queues that ignore overruns.

use std::time::Duration;

use cq_core::transport::{Arm, Events, Notify, PollCq, Post};
use cq_core::wc::{Wc, WcStatus as S};
use cq_core::wr::SendWr;

use super::{EVERY, Pair, connect, taken};
use crate::device::{Cq, Device, Mr, Qp, attr, small};
use crate::model::{ModelChannel, ModelCq, ModelQp};

/// A queue pair connected to itself, and a channel that tells of its completions.
struct Moderated {
    pair: Pair,
    channel: ModelChannel,
    cq: ModelCq,
    qp: ModelQp,
}

impl Moderated {
    fn new(count: u16, period: u16) -> Self {
        let pair = Pair::new(16, attr::rts());
        let mut channel = pair.device.create_channel();
        let mut cq = pair.device.create_cq(16, Some(&channel)).unwrap();
        let mut qp = pair.device.create_qp(&pair.pd, &small(&cq)).unwrap();
        let itself = qp.number();
        connect(&mut qp, itself, &attr::rts());
        cq.moderate(count, period).unwrap();
        let _ = cq.arm(Notify::Next).unwrap();
        assert_eq!(channel.take_event(), Ok(None));
        Self { pair, channel, cq, qp }
    }

    fn complete(&mut self, count: usize) {
        let write = SendWr::write_inline(1, b"x", self.pair.memory.remote(0));
        self.qp.post_send(&vec![write; count]).unwrap();
    }

    fn events(&mut self) -> usize {
        std::iter::from_fn(|| self.channel.take_event().unwrap()).count()
    }
}

#[test]
fn n12_the_event_comes_at_the_last_of_so_many_completions() {
    let mut all = Moderated::new(3, 1000);
    all.complete(2);
    // Neither polling nor arming again changes what was counted.
    assert_eq!(taken(&mut all.cq).len(), 2);
    let _ = all.cq.arm(Notify::Next).unwrap();
    assert_eq!(all.events(), 0);
    all.complete(1);
    assert_eq!(all.events(), 1);
    // N1: then it is disarmed, and counts anew.
    all.complete(3);
    assert_eq!(all.events(), 0);
    let _ = all.cq.arm(Notify::Next).unwrap();
    all.complete(2);
    assert_eq!(all.events(), 0);
}

#[test]
fn n12_the_event_comes_when_the_period_is_over() {
    for (period, waits) in [(70, Duration::from_micros(70)), (0, Duration::from_millis(10))] {
        let mut all = Moderated::new(3, period);
        let before = all.pair.now();
        all.complete(1);
        assert_eq!(all.events(), 0);
        all.pair.device.pause();
        assert_eq!((all.events(), all.pair.now() - before), (1, waits));
    }
}

#[test]
fn n12_a_count_of_one_holds_nothing_back() {
    for count in [0, 1] {
        let mut all = Moderated::new(count, 1000);
        all.complete(1);
        assert_eq!(all.events(), 1);
    }
}

#[test]
fn n12_a_failure_comes_at_once() {
    let mut all = Moderated::new(3, 1000);
    let read = SendWr::read(1, &[], cq_core::wr::RemoteAddr { addr: 1, rkey: 0 });
    let bad = SendWr::fetch_add(2, &[], all.pair.memory.remote(0), 1);
    all.qp.post_send(&[read, bad]).unwrap();
    assert_eq!(all.events(), 1);
}

#[test]
fn n12_a_change_raises_what_is_held_back() {
    let mut all = Moderated::new(3, 1000);
    all.complete(2);
    all.cq.moderate(0, 0).unwrap();
    assert_eq!(all.events(), 1);
    all.pair.device.pause();
    assert_eq!(all.events(), 0);
}

#[test]
fn o08_a_queue_that_ignores_overruns_loses_completions_and_nothing_else() {
    let pair = Pair::new(16, attr::rts());
    let mut channel = pair.device.create_channel();
    let mut cq = pair.device.create_cq_ignoring_overrun(2, Some(&channel)).unwrap();
    let mut qp = pair.device.create_qp(&pair.pd, &small(&cq)).unwrap();
    let itself = qp.number();
    connect(&mut qp, itself, &attr::rts());
    let slots = qp.caps().max_send_wr as usize;
    let memory = pair.device.register(&pair.pd, 8, EVERY).unwrap();
    let write = |wr_id| SendWr::write_inline(wr_id, b"x", memory.remote(0));

    qp.post_send(&[write(1), write(2)]).unwrap();
    let _ = cq.arm(Notify::Next).unwrap();
    // Q5: each dropped completion gives its slot back, and those of the two that are there.
    for wr_id in 3..3 + 2 * slots as u64 {
        qp.post_send(&[write(wr_id)]).unwrap();
    }
    assert!(channel.take_event().unwrap().is_some(), "who sleeps is not woken");
    assert_eq!(taken(&mut cq), [(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(cq.poll(&mut [Wc::default()]), Ok(0));
    qp.post_send(&[write(99)]).unwrap();
    assert_eq!(taken(&mut cq), [(99, S::SUCCESS)]);
    let mut pair = pair;
    assert_eq!(pair.reports(), []);
}
