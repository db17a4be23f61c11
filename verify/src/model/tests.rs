//! What neither the conformance suite, which judges the model as every transport, nor random programs on the model and on
//! the loopback can see: the virtual clock, the end of unused objects, and some of what is
//! [decided here](super#decided-here).

use std::iter;
use std::thread;
use std::time::{Duration, Instant};

use cq_core::transport::{Arm, Block, Events, Notify, PollCq, PollError, Woken};
use cq_core::wc::{Wc, WcStatus as S};
use cq_verbs::async_event::AsyncEvents;
use cq_verbs::async_event::{AsyncEventType, Element};
use cq_verbs::post::{Post, WrError};
use cq_verbs::wr::{Placement, RecvWr, Selectivity, SendWr, Sge, WindowBind};

use super::{Model, ModelCq, ModelMr, ModelPd, ModelQp};
use crate::device::{
    Access, AckTimeout, Address, Cq, Destination, Destroy, Device, Errno, Mr, Mw, Qp, QpAttr,
    QpInit, QpState, QpType, attr, small,
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
    /// Both are in RTS; `capacity` is that of `b`'s completion queue.
    fn new(qp_type: QpType, capacity: u32, rts: QpAttr) -> Self {
        let device = Model::open();
        let pd = device.alloc_pd();
        let memory = device.register(&pd, 256, Access::EVERY | Access::MW_BIND).unwrap();
        let [at_a, at_b] = [16, capacity].map(|capacity| device.create_cq(capacity, None).unwrap());
        let [mut a, mut b] = [&at_a, &at_b]
            .map(|cq| device.create_qp(&pd, &QpInit { qp_type, ..small(cq) }).unwrap());
        let (to_a, to_b) = (a.number(), b.number());
        for (qp, peer) in [(&mut a, to_b), (&mut b, to_a)] {
            connect(qp, peer, qp_type, rts);
        }
        Self { device, pd, memory, a, b, at_a, at_b }
    }

    fn send(&mut self, wr_id: u64) {
        self.a.post_send(&[SendWr::send_inline(wr_id, b"x")]).unwrap();
    }

    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read(offset, &mut bytes);
        bytes
    }

    fn now(&self) -> Duration {
        self.device.with(|world, _| world.now)
    }
}

/// A reliable pair.
fn pair(rts: QpAttr) -> Pair {
    Pair::new(QpType::RC, 16, rts)
}

/// From RESET to RTS.
fn connect(qp: &mut ModelQp, peer: u32, qp_type: QpType, rts: QpAttr) {
    let init = attr::init_as(qp_type, Access::EVERY, QKEY);
    for attr in [init, attr::rtr_as(qp_type, peer), rts.for_type(qp_type)] {
        qp.modify(&attr).unwrap();
    }
}

/// That of every queue pair for datagrams.
const QKEY: u32 = 0x11;

/// Everything in the queue: request and status.
fn taken(cq: &mut ModelCq) -> Vec<(u64, S)> {
    let mut buffer = [Wc::default(); 32];
    let count = cq.poll_into(&mut buffer).unwrap();
    buffer[..count].iter().map(|wc| (wc.wr_id(), wc.status())).collect()
}

#[test]
fn q07_the_clock_stands_at_the_end_of_the_last_wait() {
    // `attr::rtr` asks for 0.64 ms, `rnr_retry` times; an answer is waited for once more than `retry_cnt`.
    let no_receive = (attr::rts().rnr_retry(2), QpState::RTS, S::RNR_RETRY_EXC_ERR);
    let no_answer = (
        attr::rts().timeout(AckTimeout::from_number(10).unwrap()).retry_cnt(2),
        QpState::ERR,
        S::RETRY_EXC_ERR,
    );
    for ((rts, peer, status), waits, each) in [
        (no_receive, 2, Duration::from_micros(640)),
        (no_answer, 3, Duration::from_nanos(4096 << 10)),
    ] {
        let mut pair = pair(rts);
        pair.b.modify(&QpAttr::new().state(peer)).unwrap();
        pair.send(1);
        for _ in 0..waits {
            assert_eq!(taken(&mut pair.at_a), []);
            pair.device.pause();
        }
        assert_eq!(taken(&mut pair.at_a), [(1, status)]);
        assert_eq!(pair.now(), waits * each);
        assert_eq!((pair.a.state(), pair.b.state()), (QpState::ERR, peer));
    }
}

#[test]
fn n12_the_clock_stands_at_the_end_of_the_period_and_then_completions_count_anew() {
    for (period, waits) in [(70, Duration::from_micros(70)), (0, Duration::from_millis(10))] {
        let pair = pair(attr::rts());
        let mut channel = pair.device.create_channel();
        let mut cq = pair.device.create_cq(16, Some(&channel)).unwrap();
        let mut qp = pair.device.create_qp(&pair.pd, &small(&cq)).unwrap();
        let itself = qp.number();
        connect(&mut qp, itself, QpType::RC, attr::rts());
        cq.moderate(3, period).unwrap();
        let _ = cq.arm(Notify::Next).unwrap();
        let write = SendWr::write_inline(1, b"x", pair.memory.remote(0));
        qp.post_send(&[write]).unwrap();
        assert_eq!(channel.take_event(), Ok(None));
        pair.device.pause();
        assert_eq!((channel.take_event(), pair.now()), (Ok(Some(cq.key())), waits));
        let _ = cq.arm(Notify::Next).unwrap();
        qp.post_send(&[write; 2]).unwrap();
        assert_eq!(channel.take_event(), Ok(None));
    }
}

#[test]
fn n05_a_sleeper_wakes_for_what_time_brings_and_for_what_another_thread_does() {
    let mut pair = pair(attr::rts().rnr_retry(1));
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
    assert_eq!(answer, [(1, S::RNR_RETRY_EXC_ERR)]);

    let _ = cq.arm(Notify::Next).unwrap();
    let other = thread::spawn(move || {
        qp.post_recv(&[RecvWr::new(7, &[])]).unwrap();
        qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    });
    assert_eq!(channel.block(None), Ok(Woken::Event));
    other.join().unwrap();
    assert_eq!(channel.take_event(), Ok(Some(cq.key())));
    assert_eq!(taken(&mut cq), [(7, S::WR_FLUSH_ERR)]);
}

#[test]
fn q11_what_a_handle_refers_to_outlives_its_own_handle_and_is_gone_after() {
    let Pair { device, pd, memory, a, b, at_a, at_b } = pair(attr::rts());
    let pd = pd.destroy().unwrap_err();
    let at_a = at_a.destroy().unwrap_err();
    drop((pd, at_a, at_b));
    device.with(|world, _| assert_eq!(world.cqs.len(), 2));
    drop((a, b, memory));
    device.with(|world, _| assert_eq!(world.cqs.len(), 0));
}

#[test]
fn q07_a_receive_completes_before_its_send() {
    let mut pair = Pair::new(QpType::UC, 16, attr::rts());
    pair.a.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    let itself = pair.a.number();
    connect(&mut pair.a, itself, QpType::UC, attr::rts());
    pair.a.post_recv(&[RecvWr::new(10, &[])]).unwrap();
    pair.a.post_send(&[1, 2].map(|wr_id| SendWr::send_inline(wr_id, b"x"))).unwrap();
    let done = [(10, S::LOC_LEN_ERR), (1, S::SUCCESS), (2, S::WR_FLUSH_ERR)];
    assert_eq!(taken(&mut pair.at_a), done);
}

#[test]
fn o04_an_overrun_breaks_its_queue_pairs_after_the_request_is_done_on_both_sides() {
    let mut pair = Pair::new(QpType::RC, 1, attr::rts());
    pair.b.post_recv(&[10, 11, 12].map(|wr_id| RecvWr::new(wr_id, &[]))).unwrap();
    pair.a.post_send(&[SendWr::send(1, &[]), SendWr::send(2, &[])]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!((pair.a.state(), pair.b.state()), (QpState::RTS, QpState::ERR));
    // The second receive was dropped, and so was the flush of the third.
    assert_eq!(taken(&mut pair.at_b), [(10, S::SUCCESS)]);
    let overrun = Err(PollError::Overrun { dropped: Some(2) });
    assert_eq!(pair.at_b.poll_into(&mut [Wc::default()]), overrun);

    let (queue, number) = (Element::Cq(pair.at_b.key()), Element::Qp(pair.b.number()));
    let reports = iter::from_fn(|| pair.device.take_async_event().unwrap());
    let reports: Vec<_> = reports.map(|event| (event.event_type, event.element)).collect();
    assert_eq!(reports, [(AsyncEventType::CQ_ERR, queue), (AsyncEventType::QP_FATAL, number)]);
}

#[test]
fn q07_rights_and_keys_that_this_device_does_not_have_are_refused() {
    let mut pair = pair(attr::rts());
    for unknown in [Access::ZERO_BASED.bits(), 1 << 19, 1 << 30].map(Access::from_bits_retain) {
        assert_eq!(pair.device.register(&pair.pd, 64, unknown).map(drop), Err(Errno::EINVAL));
        let rts = QpAttr::new().state(QpState::RTS);
        assert_eq!(pair.a.modify(&rts.access(unknown)), Err(Errno::EINVAL));
    }
    let nowhere = Placement::from_bits_retain(5);
    let flush = SendWr::flush(1, pair.memory.remote(0), 8, nowhere, Selectivity::Range);
    assert_eq!(pair.a.post_send(&[flush]).unwrap_err().why, WrError::BadPlacement);
    let window = pair.device.alloc_mw(&pair.pd).unwrap();
    let (rkey, addr) = (window.rkey(), pair.memory.addr());
    let of_peers = pair.memory.rkey();
    let bind =
        WindowBind { window: rkey, rkey, lkey: of_peers, addr, length: 8, access: Access::REMOTE };
    pair.a.post_send(&[SendWr::bind_window(1, bind)]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::MW_BIND_ERR)]);
}

#[test]
fn q06_a_datagram_comes_with_the_route_of_this_device_and_no_other_is_an_address() {
    let mut pair = Pair::new(QpType::UD, 16, attr::rts());
    let ah = pair.device.create_ah(&pair.pd, Address { port: 1, global: true }).unwrap();
    let to = Destination::new(&ah, pair.b.number(), QKEY);
    let sges: [Sge; 1] = [pair.memory.sge(0, 64)];
    pair.b.post_recv(&[RecvWr::new(1, &sges)]).unwrap();
    pair.a.post_to(&to, &[SendWr::send_inline(2, b"abc")]).unwrap();
    let mut buffer = [Wc::default()];
    assert_eq!(pair.at_b.poll_into(&mut buffer), Ok(1));
    let from = |grh| pair.device.ah_from_wc(&pair.pd, &buffer[0], &grh).map(drop);
    assert_eq!(from(pair.bytes(0)), Ok(()));
    assert_eq!(from([0; 40]), Err(Errno::EINVAL));
}
