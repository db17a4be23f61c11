//! What is tricky in the model: time, overrun, and what one request does to both ends. That each rule
//! holds is for the conformance suite to show.

mod datagrams;
mod moderation;
mod operations;
mod shared_receives;
mod unreliable;
mod windows;

use std::thread;
use std::time::{Duration, Instant};

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::transport::{Arm, AsyncEvents, Block, Events, Notify, PollCq, PollError, Post, Woken};
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{RecvWr, SendWr};

use super::{Model, ModelCq, ModelMr, ModelPd, ModelQp};
use crate::device::{
    Access, Destroy, Device, Mr, Qp, QpAttr, QpInit, QpState, QpType, attr, small,
};

/// Two queue pairs that are connected, `a` on one completion queue, `b` on another.
struct Pair {
    device: Model,
    pd: ModelPd,
    memory: ModelMr,
    a: ModelQp,
    b: ModelQp,
    at_a: ModelCq,
    at_b: ModelCq,
}

impl Pair {
    /// `b` is the responder, up to RTR only; `capacity` is that of its completion queue.
    fn new(capacity: u32, rts: QpAttr) -> Self {
        let device = Model::open();
        let pd = device.alloc_pd();
        let memory = device.register(&pd, 256, EVERY).unwrap();
        let (at_a, at_b) =
            (device.create_cq(16, None).unwrap(), device.create_cq(capacity, None).unwrap());
        let a = device.create_qp(&pd, &small(&at_a)).unwrap();
        let b = device.create_qp(&pd, &small(&at_b)).unwrap();
        let mut pair = Self { device, pd, memory, a, b, at_a, at_b };
        connect(&mut pair.a, pair.b.number(), &rts);
        connect(&mut pair.b, pair.a.number(), &QpAttr::to(QpState::RTR));
        pair
    }

    /// Two queue pairs of another type, both in RTS.
    fn of(qp_type: QpType) -> Self {
        let mut pair = Self::new(16, attr::rts());
        let of = |cq| QpInit { qp_type, ..small(cq) };
        pair.a = pair.device.create_qp(&pair.pd, &of(&pair.at_a)).unwrap();
        pair.b = pair.device.create_qp(&pair.pd, &of(&pair.at_b)).unwrap();
        let numbers = [pair.b.number(), pair.a.number()];
        for (qp, peer) in [&mut pair.a, &mut pair.b].into_iter().zip(numbers) {
            for attr in [
                attr::init_as(qp_type, EVERY, QKEY),
                attr::rtr_as(qp_type, peer),
                attr::rts_as(qp_type),
            ] {
                qp.modify(&attr).unwrap();
            }
        }
        pair
    }

    /// A receive of so many bytes of the memory.
    fn recv(&mut self, wr_id: u64, offset: u64, length: u32) {
        let sges = [self.memory.sge(offset, length)];
        self.b.post_recv(&[RecvWr::new(wr_id, &sges)]).unwrap();
    }

    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read(offset, &mut bytes);
        bytes
    }

    /// Everything that was reported and not read yet.
    fn reports(&mut self) -> Vec<(AsyncEventType, Element)> {
        let mut reports = Vec::new();
        while let Some(event) = self.device.take_async_event().unwrap() {
            reports.push((event.event_type, event.element));
        }
        reports
    }

    fn send(&mut self, wr_id: u64) {
        self.a.post_send(&[SendWr::send_inline(wr_id, b"x")]).unwrap();
    }

    fn now(&self) -> Duration {
        self.device.with(|world, _| world.now)
    }
}

/// Everything that there is.
const EVERY: Access = Access::EVERY
    .union(Access::MW_BIND)
    .union(Access::FLUSH_GLOBAL)
    .union(Access::FLUSH_PERSISTENT);

/// That of every queue pair for datagrams.
const QKEY: u32 = 0x11;

/// From INIT as far as `last` goes, RTR or RTS.
fn connect(qp: &mut ModelQp, peer: u32, last: &QpAttr) {
    qp.modify(&attr::init(EVERY)).unwrap();
    qp.modify(&attr::rtr(peer)).unwrap();
    if last.state == Some(QpState::RTS) {
        qp.modify(last).unwrap();
    }
}

/// Everything in the queue.
fn all(cq: &mut ModelCq) -> Vec<Wc> {
    let mut room = [Wc::default(); 32];
    let count = cq.poll(&mut room).unwrap();
    room[..count].to_vec()
}

/// Everything in the queue: request and status.
fn taken(cq: &mut ModelCq) -> Vec<(u64, WcStatus)> {
    all(cq).iter().map(|wc| (wc.wr_id(), wc.status())).collect()
}

#[test]
fn q07_a_send_without_a_receive_is_tried_again_rnr_retry_times_after_the_responders_timer() {
    let mut pair = Pair::new(16, attr::rts().rnr_retry(2));
    pair.send(1);
    pair.device.pause();
    assert_eq!(taken(&mut pair.at_a), []);
    pair.device.pause();
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::RNR_RETRY_EXC_ERR)]);
    // `attr::rtr` asks for 0.64 ms.
    assert_eq!(pair.now(), Duration::from_micros(2 * 640));
    assert_eq!((pair.a.state(), pair.b.state()), (QpState::ERR, QpState::RTR));
}

#[test]
fn q07_rnr_retry_7_waits_for_ever_and_a_receive_lets_it_go_on() {
    let mut pair = Pair::new(16, attr::rts());
    pair.send(1);
    pair.device.pause();
    assert_eq!(taken(&mut pair.at_a), []);
    pair.b.post_recv(&[RecvWr::new(2, &[pair.memory.sge(0, 8)])]).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(2, WcStatus::SUCCESS)]);
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::SUCCESS)]);
}

#[test]
fn q07_a_peer_that_is_not_ready_is_asked_retry_cnt_times_more() {
    let mut pair = Pair::new(16, attr::rts().timeout(10).retry_cnt(2));
    pair.b.modify(&QpAttr::to(QpState::ERR)).unwrap();
    pair.send(1);
    for _ in 0..3 {
        assert_eq!(taken(&mut pair.at_a), []);
        pair.device.pause();
    }
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::RETRY_EXC_ERR)]);
    assert_eq!(pair.now(), Duration::from_nanos(3 * (4096 << 10)));
}

#[test]
fn q07_a_destroyed_peer_ends_a_wait_without_a_timeout() {
    let mut pair = Pair::new(16, attr::rts().timeout(0));
    pair.b.modify(&QpAttr::to(QpState::RESET)).unwrap();
    pair.send(1);
    pair.device.pause();
    assert_eq!(taken(&mut pair.at_a), []);
    drop(pair.b);
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_destroyed_peer_does_not_answer_in_time() {
    let mut pair = Pair::new(16, attr::rts().timeout(31));
    pair.b.modify(&QpAttr::to(QpState::RESET)).unwrap();
    pair.send(1);
    drop(pair.b);
    assert_eq!(taken(&mut pair.at_a), []);
    pair.a.modify(&QpAttr::to(QpState::ERR)).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::WR_FLUSH_ERR)]);
}

#[test]
fn q07_an_atomic_whose_answer_has_nowhere_to_go_was_carried_out() {
    let mut pair = Pair::new(16, attr::rts());
    let sges = [pair.memory.sge(8, 4), pair.memory.sge(254, 4)];
    let add = SendWr::fetch_add(1, &sges, pair.memory.remote(0), 5);
    pair.a.post_send(&[add]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::LOC_PROT_ERR)]);
    assert_eq!(pair.b.state(), QpState::RTR);
    let mut bytes = [1; 8];
    pair.memory.read(0, &mut bytes);
    assert_eq!(u64::from_ne_bytes(bytes), 5);
    pair.memory.read(8, &mut bytes[..4]);
    assert_eq!(bytes[..4], [0; 4], "no SGE before the bad one is written");
}

#[test]
fn q07_a_receive_is_judged_as_far_as_its_sges_go_that_bytes_reach() {
    for (sge, status) in [((248, 8), WcStatus::SUCCESS), ((248, 9), WcStatus::LOC_PROT_ERR)] {
        let mut pair = Pair::new(16, attr::rts());
        let sges = [pair.memory.sge(sge.0, sge.1), pair.memory.sge(255, 2)];
        pair.b.post_recv(&[RecvWr::new(2, &sges)]).unwrap();
        pair.send(1);
        assert_eq!(taken(&mut pair.at_b), [(2, status)]);
    }
}

#[test]
fn q06_bytes_that_overlap_move_as_if_they_were_copied_first() {
    let mut pair = Pair::new(16, attr::rts());
    pair.memory.write(0, b"abcdefgh");
    let sges = [pair.memory.sge(0, 6)];
    let write = SendWr::write(1, &sges, pair.memory.remote(2));
    pair.a.post_send(&[write]).unwrap();
    let mut bytes = [0; 8];
    pair.memory.read(0, &mut bytes);
    assert_eq!(&bytes, b"ababcdef");
}

#[test]
fn o04_an_overrun_breaks_its_queue_pairs_after_the_request_is_done_on_both_sides() {
    let mut pair = Pair::new(1, attr::rts());
    for wr_id in 10..13 {
        pair.b.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    }
    pair.a.post_send(&[SendWr::send(1, &[]), SendWr::send(2, &[])]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::SUCCESS), (2, WcStatus::SUCCESS)]);
    assert_eq!((pair.a.state(), pair.b.state()), (QpState::RTS, QpState::ERR));
    // The second receive was dropped, and so was the flush of the third.
    assert_eq!(taken(&mut pair.at_b), [(10, WcStatus::SUCCESS)]);
    let overrun = Err(PollError::Overrun { dropped: Some(2) });
    assert_eq!(pair.at_b.poll(&mut [Wc::default()]), overrun);

    let (queue, number) = (Element::Cq(pair.at_b.key()), Element::Qp(pair.b.number()));
    let expected = [(AsyncEventType::CQ_ERR, queue), (AsyncEventType::QP_FATAL, number)];
    assert_eq!(pair.reports(), expected);
}

#[test]
fn q01_a_draining_queue_pair_ends_what_it_began_and_says_so_then() {
    let mut pair = Pair::new(16, attr::rts());
    pair.send(1);
    pair.send(2);
    let drain = QpAttr::to(QpState::SQD).en_sqd_async_notify(true);
    pair.a.modify(&drain).unwrap();
    assert_eq!(pair.device.take_async_event(), Ok(None));
    pair.b.post_recv(&[RecvWr::new(10, &[pair.memory.sge(0, 8)]); 2]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, WcStatus::SUCCESS)]);
    let (event_type, element) = (AsyncEventType::SQ_DRAINED, Element::Qp(pair.a.number()));
    assert_eq!(pair.device.take_async_event(), Ok(Some(AsyncEvent { event_type, element })));
    assert_eq!(pair.device.take_async_event(), Ok(None));

    pair.a.modify(&QpAttr::to(QpState::RTS)).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(2, WcStatus::SUCCESS)]);
}

#[test]
fn q05_polling_a_completion_from_before_a_reset_gives_no_slot_back_twice() {
    let mut pair = Pair::new(16, attr::rts());
    let write = SendWr::write_inline(1, b"x", pair.memory.remote(0));
    let slots = pair.a.caps().max_send_wr as usize;
    pair.a.post_send(&vec![write; slots]).unwrap();
    pair.a.modify(&QpAttr::to(QpState::RESET)).unwrap();
    for attr in [attr::init(Access::EVERY), attr::rtr(pair.b.number()), attr::rts()] {
        pair.a.modify(&attr).unwrap();
    }
    pair.a.post_send(&vec![write.unsignaled(); slots]).unwrap();
    assert_eq!(taken(&mut pair.at_a).len(), slots);
    assert_eq!(pair.a.post_send(&[write]).unwrap_err().posted, 0);
}

#[test]
fn q11_what_a_handle_refers_to_outlives_its_own_handle_and_is_gone_after() {
    let Pair { device, pd, memory, a, b, at_a, at_b } = Pair::new(16, attr::rts());
    let pd = pd.destroy().unwrap_err();
    let at_a = at_a.destroy().unwrap_err();
    drop((pd, at_a, at_b));
    device.with(|world, _| assert_eq!((world.pds.len(), world.cqs.len()), (1, 2)));
    drop((a, b, memory));
    device.with(|world, _| assert_eq!((world.pds.len(), world.cqs.len()), (0, 0)));
}

#[test]
fn n05_a_sleeper_wakes_for_what_time_brings_and_for_what_another_thread_does() {
    let mut pair = Pair::new(16, attr::rts().rnr_retry(1));
    let mut channel = pair.device.create_channel();
    let mut cq = pair.device.create_cq(4, Some(&channel)).unwrap();
    let mut qp = pair.device.create_qp(&pair.pd, &small(&cq)).unwrap();
    qp.modify(&attr::init(Access::empty())).unwrap();

    // An answer raises nothing here, but its time comes while this sleeps.
    pair.send(1);
    let answer = loop {
        let soon = Instant::now() + Duration::from_millis(1);
        assert_eq!(channel.block(Some(soon)), Ok(Woken::DeadlinePassed));
        let answer = taken(&mut pair.at_a);
        if !answer.is_empty() {
            break answer;
        }
    };
    assert_eq!(answer, [(1, WcStatus::RNR_RETRY_EXC_ERR)]);

    let _ = cq.arm(Notify::Next).unwrap();
    let other = thread::spawn(move || {
        qp.post_recv(&[RecvWr::new(7, &[])]).unwrap();
        qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    });
    assert_eq!(channel.block(None), Ok(Woken::Event));
    other.join().unwrap();
    assert_eq!(channel.take_event(), Ok(Some(cq.key())));
    assert_eq!(taken(&mut cq), [(7, WcStatus::WR_FLUSH_ERR)]);
}
