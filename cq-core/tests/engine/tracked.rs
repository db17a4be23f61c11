//! Queue pairs and shared receive queues with their ledgers and reservations.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::{Arc, Mutex};

use cq_core::budget::{Budget, Budgeted, Entries, Overdrawn, Reservation};
use cq_core::device::{Destroy, QueuePair, SharedReceiveQueue};
use cq_core::ledger::*;
use cq_core::setup::*;
use cq_core::testing::fault::{FaultInjector, Faults};
use cq_core::tracked::*;

use super::ledger::Pair;
use super::*;

/// A queue pair that shares its state with its completion queue.
#[derive(Clone, Default)]
pub(super) struct Qp {
    pair: Arc<Mutex<Pair>>,
    /// What it was modified to.
    states: Arc<Mutex<Vec<QpState>>>,
    /// Its number, less 1.
    pub(super) nth: u32,
    refuses: Arc<Mutex<Option<ModifyError>>>,
}

impl std::fmt::Debug for Qp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Qp")
    }
}

const REFUSED: ModifyError = ModifyError::Illegal { from: QpState::RESET, to: QpState::ERR };

impl Qp {
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Pair) -> T) -> T {
        change(&mut self.pair.lock().unwrap())
    }

    /// Its completion queue, with a budget of this size.
    fn cq(&self, capacity: u32) -> (Queue, Arc<Budget>) {
        let queue = Budgeted::with_capacity(Cq(self.pair.clone()), capacity);
        let budget = queue.budget().clone();
        (CompletionQueue::new(queue), budget)
    }
}

impl Post for Qp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.with(|pair| pair.post_send(list))
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.with(|pair| pair.post_recv(list))
    }

    fn quiesce(&mut self) -> bool {
        !self.with(|pair| pair.is_used)
    }
}

impl QueuePair for Qp {
    type Ah = u32;
    type Directed<'a> = Qp;

    fn number(&self) -> u32 {
        1 + self.nth
    }

    fn qp_type(&self) -> QpType {
        QpType::Rc
    }

    fn caps(&self) -> QpCaps {
        QpCaps::USUAL
    }

    fn state(&self) -> Result<QpState, DeviceError> {
        Ok(*self.states.lock().unwrap().last().unwrap_or(&QpState::RESET))
    }

    fn attributes(&self) -> Result<QpAttr, DeviceError> {
        Ok(QpAttr::new())
    }

    fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        if let Some(error) = *self.refuses.lock().unwrap() {
            return Err(error);
        }
        let state = attr.state.expect("every change here is one of the state");
        self.states.lock().unwrap().push(state);
        self.with(|pair| match state {
            QpState::ERR => pair.fail(),
            QpState::RESET => {
                pair.sends.clear();
                pair.receives.clear();
                pair.has_failed = false;
            }
            _ => {}
        });
        Ok(())
    }

    fn endpoint(&self, _port: &Port) -> Endpoint {
        Endpoint::new(QueuePair::number(self))
    }

    fn connect(&mut self, _port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        self.with(|pair| {
            pair.peer = peer.qp_num;
            let illegal = ModifyError::Illegal { from: QpState::RESET, to: QpState::RTR };
            if pair.connects { Ok(()) } else { Err(illegal) }
        })
    }

    fn activate(&mut self, _port: &Port, qkey: u32) -> Result<(), ModifyError> {
        assert_eq!(qkey, 7);
        Err(ModifyError::Illegal { from: QpState::RESET, to: QpState::RTS })
    }

    fn to<'a>(&'a mut self, destination: &Destination<'a, u32>) -> Qp {
        assert_eq!(destination.qp_num, 5);
        self.clone()
    }
}

impl Destroy for Qp {
    fn destroy(self) -> Result<(), InUse<Self>> {
        if self.with(|pair| pair.is_used) {
            return Err(InUse::new(self, "queue", "its users"));
        }
        Ok(())
    }
}

/// As a shared receive queue.
impl SharedReceiveQueue for Qp {
    fn number(&self) -> u32 {
        1
    }

    fn caps(&self) -> SrqInit {
        SrqInit { max_wr: 8, max_sge: 1 }
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        Post::post_recv(self, list)
    }

    fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
        Err(ArmLimitError::TooMany { asked: limit, max: 8 })
    }

    fn limit(&self) -> Result<u32, DeviceError> {
        Ok(3)
    }
}

/// Its completion queue.
struct Cq(Arc<Mutex<Pair>>);

impl PollCq for Cq {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.0.lock().unwrap().poll(out)
    }
}

fn ping() -> SendWr<'static> {
    SendWr::send_inline(0, b"ping").unsignaled()
}

fn port() -> Port {
    Port::new(1)
}

type Queue = CompletionQueue<Budgeted<Cq, Arc<Budget>>>;
type Tracked<C> = TrackedQp<Qp, u32, char, 4, 2, C>;

/// With so many entries for sends and for receives.
fn tracked(sends: u32, receives: u32) -> (Tracked<Entries>, Qp, Queue) {
    let qp = Qp::default();
    let (cq, budget) = qp.cq(sends + receives);
    let [sends, receives] =
        [sends, receives].map(|entries| Reservation::new(&budget, entries).unwrap());
    (TrackedQp::with(qp.clone(), sends, receives), qp, cq)
}

/// Polls all, and retires it.
fn retire<C: Credit>(qp: &mut Tracked<C>, cq: &mut CompletionQueue<impl PollCq>) -> Vec<String> {
    let (mut buffer, mut seen) = ([Wc::default(); 3], Vec::new());
    loop {
        let batch = cq.poll(&mut buffer).unwrap();
        if batch.is_empty() {
            return seen;
        }
        for wc in batch {
            seen.extend(qp.retire(wc).map(|done| name(&done)));
        }
    }
}

fn name(done: &Done<'_, u32, char>) -> String {
    match done {
        Done::Sent(Sent { token, result }) => format!("{token} {}", result.is_ok()),
        Done::Received(Received { token, result }) => format!("{token} {}", result.is_ok()),
    }
}

#[test]
fn a_tracked_queue_pair_never_posts_past_its_reservations() {
    let (mut qp, device, mut cq) = tracked(3, 1);
    assert_eq!((qp.free_sends(), qp.free_receives(), qp.is_idle()), (3, 1, true));
    for token in 0..3 {
        qp.post_send(ping(), token).unwrap();
    }
    assert_eq!(qp.post_send(ping(), 3).unwrap_err().why, Refused::QueueFull);
    assert_eq!(qp.post_sends(&mut [ping()], |_| 3).unwrap_err().why, Refused::QueueFull);
    qp.post_recv(&[], 'a').unwrap();
    assert_eq!(qp.post_recv(&[], 'b').unwrap_err().why, Refused::QueueFull);
    let refused = qp.post_recvs(&mut [RecvWr::new(0, &[])], |_| 'b').unwrap_err();
    assert_eq!(refused.why, Refused::QueueFull);
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding(), qp.is_idle()), (3, 1, false));
    device.with(|pair| {
        pair.deliver(0);
        (0..3).for_each(|_| pair.execute(WcStatus::SUCCESS));
    });
    assert_eq!(retire(&mut qp, &mut cq), ["a true", "0 true", "1 true", "2 true"]);
    assert!(qp.is_idle());
    qp.post_sends(&mut [ping(), ping()], |nth| nth as u32).unwrap();
    qp.post_recvs(&mut [RecvWr::new(0, &[])], |_| 'c').unwrap();
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (2, 1));
    assert!(!qp.is_idle());
}

#[test]
fn each_way_of_posting_is_limited() {
    let full = Err(PostError { posted: 1, why: Refused::QueueFull });
    let (mut sender, ..) = tracked(1, 0);
    assert_eq!(sender.post_sends(&mut [ping(), ping()], |_| 0), full);
    assert!(tracked(1, 0).0.post_recv(&[], 'a').is_err());
    let (mut receiver, ..) = tracked(0, 1);
    assert_eq!(receiver.post_recvs(&mut [RecvWr::new(0, &[]); 2], |_| 'a'), full);
    assert!(tracked(0, 1).0.post_send(ping(), 0).is_err());
    let srq = |entries| {
        let (_cq, budget) = Qp::default().cq(1);
        let entries = Reservation::new(&budget, entries).unwrap();
        TrackedSrq::<_, char, _, 6, 1>::with(Qp::default(), [entries])
    };
    assert_eq!(srq(1).post_recvs(&mut [RecvWr::new(0, &[]); 2], |_| 'a'), full);
    assert!(srq(0).post_recv(&[], 'a').is_err());
}

#[test]
fn a_queue_pair_is_created_with_what_it_reserves() {
    type Created = TrackedQp<Qp, u32, char, 4, 2, Entries>;
    let ((_send_cq, sends), (_recv_cq, receives)) = (Qp::default().cq(5), Qp::default().cq(3));
    let create = |caps: QpCaps| {
        assert_eq!(caps, QpCaps { max_send_wr: 4, max_recv_wr: 2, ..QpCaps::USUAL });
        Ok(Qp::default())
    };
    let refused =
        Created::create_by([&sends, &receives], QpCaps::USUAL, |_| Err(CreateError::Stuck))
            .unwrap_err();
    assert_eq!(refused, CreateTrackedError::Create(CreateError::Stuck));
    let qp = Created::create_by([&sends, &receives], QpCaps::USUAL, create).unwrap();
    assert_eq!((qp.max_sends(), qp.max_receives()), (4, 2));
    assert_eq!((sends.free(), receives.free()), (1, 1));
    let overdrawn =
        |asked| CreateTrackedError::Overdrawn(Overdrawn { asked, free: 1, pending: false });
    assert_eq!(
        Created::create_by([&sends, &receives], QpCaps::USUAL, create).unwrap_err(),
        overdrawn(4)
    );
    let (_cq, enough) = Qp::default().cq(9);
    assert_eq!(
        Created::create_by([&enough, &receives], QpCaps::USUAL, create).unwrap_err(),
        overdrawn(2)
    );
}

#[test]
fn what_a_completion_covers_is_retired_one_by_one_and_posts_come_between() {
    let mut qp = TrackedQp::<_, u32, char, 2, 1>::new(Qp::default());
    qp.post_sends(&mut [ping(), ping()], |nth| nth as u32).unwrap();
    qp.post_recv(&[], 'a').unwrap();
    let device = qp.get_ref().clone();
    let [first, second] = device.with(|pair| [pair.sends[0].0, pair.sends[1].0]);
    let receive = device.with(|pair| pair.receives[0]);

    // The slot that is free again is used at once, and its request is not covered.
    let wc = Wc::new(second, WcStatus::REM_ACCESS_ERR, 1);
    for (token, is_ok) in [(0, true), (1, false)] {
        let done = qp.retire_next(&wc).unwrap();
        assert_eq!(name(&done), format!("{token} {is_ok}"));
        qp.post_send(ping(), 10 + token).unwrap();
    }
    assert!(qp.retire_next(&wc).is_none());
    assert_eq!(qp.sends_outstanding(), 2);
    let wc = recv(receive);
    assert_eq!(name(&qp.retire_next(&wc).unwrap()), "a true");
    qp.post_recv(&[], 'b').unwrap();
    assert!(qp.retire_next(&wc).is_none());
    assert_eq!(qp.receives_outstanding(), 1);
    // One of another queue pair covers nothing.
    let wc = send(first ^ 1 << 40);
    assert!(qp.retire_next(&wc).is_none());
}

#[test]
fn a_completion_that_is_retired_late_covers_nothing_that_came_after_it() {
    // Two threads poll, and the second batch is retired first: it covers what is in the first.
    let mut qp = TrackedQp::<_, u32, char, 4, 1>::new(Qp::default());
    let device = qp.get_ref().clone();
    qp.post_sends(&mut [ping(); 4], |nth| nth as u32).unwrap();
    let ids: Vec<_> = device.with(|pair| pair.sends.drain(..).map(|(wr_id, _)| wr_id).collect());
    let [early, late] = [send(ids[1]), send(ids[3])];
    assert_eq!(qp.retire(&late).count(), 4);
    qp.post_sends(&mut [ping(); 4], |nth| 10 + nth as u32).unwrap();
    assert_eq!(qp.retire(&early).count(), 0);
    assert!(qp.retire_next(&early).is_none());
    assert_eq!(qp.sends_outstanding(), 4);
    // One that is half retired when others are posted and retired in between.
    let ids: Vec<_> = device.with(|pair| pair.sends.drain(..).map(|(wr_id, _)| wr_id).collect());
    let [early, late] = [send(ids[1]), send(ids[3])];
    assert_eq!(name(&qp.retire_next(&early).unwrap()), "10 true");
    assert_eq!(qp.retire(&late).count(), 3);
    qp.post_sends(&mut [ping(); 4], |nth| 20 + nth as u32).unwrap();
    assert!(qp.retire_next(&early).is_none());
    // Receives, whose slots are used again at once.
    qp.post_recv(&[], 'a').unwrap();
    let wc = recv(device.with(|pair| pair.receives[0]));
    assert_eq!(qp.retire(&wc).count(), 1);
    qp.post_recv(&[], 'b').unwrap();
    assert_eq!(qp.retire(&wc).count(), 0);
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (4, 1));
}

#[test]
fn a_closure_that_panics_loses_its_tokens_and_no_request() {
    let mut qp = TrackedQp::<_, u32, char, 4, 4>::new(Qp::default());
    let device = qp.get_ref().clone();
    let token = |nth: usize| if nth == 0 { 7 } else { panic!("no token") };
    let posted = catch_unwind(AssertUnwindSafe(|| qp.post_sends(&mut [ping(); 3], token)));
    assert!(posted.is_err());
    let token = |nth: usize| if nth == 0 { 'a' } else { panic!("no token") };
    let list = &mut [RecvWr::new(0, &[]); 3];
    assert!(catch_unwind(AssertUnwindSafe(|| qp.post_recvs(list, token))).is_err());
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (3, 3));
    qp.post_send(ping(), 9).unwrap();
    device.with(|pair| pair.fail());
    let wcs: Vec<_> = device.with(|pair| pair.completions.drain(..).collect());
    let done = wcs.iter().flat_map(|wc| qp.retire(wc).map(|done| name(&done)).collect::<Vec<_>>());
    assert_eq!(done.collect::<Vec<_>>(), ["7 false", "9 false", "a false"]);
    assert!(qp.is_idle());
    // A reset is complete before its closures run.
    qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    qp.post_send(ping(), 1).unwrap();
    qp.post_recv(&[], 'c').unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| qp.reset(|_| panic!("a token"), |_| ()))).is_err());
    assert!(qp.is_idle());
    (0..4).for_each(|token| qp.post_send(ping(), token).unwrap());
}

#[test]
fn many_receives_are_posted_at_once() {
    let device = Qp::default();
    let mut qp = TrackedQp::<_, (), usize, 0, 100>::new(device.clone());
    let sge = |nth: usize| Sge { addr: 64 * nth as u64, length: 64, lkey: 7 };
    qp.fill_receives(70, sge, |nth| nth).unwrap();
    let lengths = device.with(|pair| std::mem::take(&mut pair.lists));
    assert_eq!(lengths, [32, 32, 6]);
    device.with(|pair| assert!(pair.addresses.drain(..).eq((0..70).map(|nth| 64 * nth))));
    // The queue is full after 30 more; the device refuses the fourth of the second list.
    let full = PostError { posted: 30, why: Refused::QueueFull };
    assert_eq!(qp.fill_receives(40, sge, |nth| 70 + nth), Err(full));
    device.with(Pair::fail);
    let wcs: Vec<_> = device.with(|pair| pair.completions.drain(..).collect());
    let tokens = wcs.iter().flat_map(|wc| qp.retire(wc).collect::<Vec<_>>());
    let tokens = tokens.map(|done| match done {
        Done::Received(received) => received.token,
        Done::Sent(_) => unreachable!("nothing was sent"),
    });
    assert!(tokens.eq(0..100));

    let mut srq = TrackedSrq::<_, usize, Unlimited, 40, 0>::with(Qp::default(), []);
    assert_eq!(
        srq.fill(41, sge, |nth| nth),
        Err(PostError { posted: 40, why: Refused::QueueFull })
    );
    let (_cq, budget) = Qp::default().cq(3);
    let three = Reservation::new(&budget, 3).unwrap();
    let mut srq = TrackedSrq::<_, usize, _, 40, 1>::with(Qp::default(), [three]);
    assert_eq!(srq.fill(4, sge, |nth| nth), Err(PostError { posted: 3, why: Refused::QueueFull }));
    let (mut receiver, ..) = tracked(0, 1);
    let full = PostError { posted: 1, why: Refused::QueueFull };
    assert_eq!(receiver.fill_receives(2, sge, |_| 'a'), Err(full));
}

#[test]
fn without_a_budget_the_ledgers_limit() {
    let mut qp = Tracked::new(Qp::default());
    assert_eq!((qp.free_sends(), qp.free_receives()), (4, 2));
    qp.reset(|_| (), |_| ()).unwrap();
    assert_eq!((qp.free_sends(), qp.free_receives()), (4, 2));
    qp.post_recv(&[], 'a').unwrap();
    assert!(!qp.is_idle());
    assert_eq!(QueuePair::number(qp.get_ref()), 1);
    assert_eq!(Unlimited.usable(), usize::MAX);
}

#[test]
fn a_reset_returns_tokens_at_once_and_entries_once_the_queue_was_polled_empty() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    (0..3).for_each(|token| qp.post_send(ping(), token).unwrap());
    qp.post_recv(&[], 'a').unwrap();
    device.with(|pair| (0..2).for_each(|_| pair.execute(WcStatus::SUCCESS)));
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    *device.refuses.lock().unwrap() = Some(REFUSED);
    assert_eq!(qp.reset(|token| sent.push(token), |_| ()), Err(REFUSED));
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (3, 1));
    *device.refuses.lock().unwrap() = None;
    qp.reset(|token| sent.push(token), |token| received.push(token)).unwrap();
    assert_eq!((sent, received), (vec![0, 1, 2], vec!['a']));
    assert_eq!((qp.free_sends(), qp.free_receives(), qp.is_idle()), (1, 1, true));
    qp.post_send(ping(), 9).unwrap();
    assert!(qp.post_send(ping(), 10).is_err(), "a completion from before may be in the queue");
    assert_eq!(retire(&mut qp, &mut cq), [""; 0], "it retires nothing");
    assert_eq!((qp.free_sends(), qp.free_receives()), (3, 2));
    // `modify` to RESET is a reset.
    qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    assert_eq!((qp.sends_outstanding(), qp.free_sends()), (0, 3));
    qp.modify(&QpAttr::to(QpState::INIT)).unwrap();
    qp.fail().unwrap();
    let states = device.states.lock().unwrap();
    assert_eq!(*states, [QpState::RESET, QpState::RESET, QpState::INIT, QpState::ERR]);
}

#[test]
fn its_reservations_return_after_it_was_destroyed() {
    let (qp, _device, mut cq) = tracked(4, 2);
    let budget = cq.get_ref().budget().clone();
    assert_eq!(budget.free(), 0);
    drop(qp);
    assert!(cq.poll(&mut [Wc::default()]).unwrap().is_empty());
    assert_eq!(budget.free(), 6);
}

#[test]
fn a_full_send_queue_is_reaped_with_what_else_completes() {
    let (mut qp, device, mut cq) = tracked(1, 1);
    qp.post_send(ping(), 0).unwrap();
    qp.post_recv(&[], 'a').unwrap();
    device.with(|pair| {
        pair.completions.push_back(send(99));
        pair.deliver(0);
        pair.execute(WcStatus::SUCCESS);
    });
    let (mut seen, mut buffer) = (Vec::new(), [Wc::default(); 8]);
    let reaped = |reaped: Reaped<'_, Done<'_, u32, char>>| {
        seen.push(match reaped {
            Reaped::Done(done) => name(&done),
            Reaped::Other(wc) => format!("other {}", wc.wr_id()),
            Reaped::Nothing => unreachable!("the queue held something"),
        });
        Continue(())
    };
    qp.post_send_or_reap(ping(), 1, &mut cq, &mut buffer, reaped).unwrap();
    assert_eq!(seen, ["other 99", "a true", "0 true"]);
    assert_eq!(qp.sends_outstanding(), 1);
}

/// Drains, and stops after so many empty polls. Returns what was seen.
fn drain<C: Credit, T: PollCq>(
    qp: &mut Tracked<C>,
    cqs: &mut [&mut CompletionQueue<T>],
    patience: usize,
) -> (Result<(), DrainError>, Vec<String>) {
    let (mut seen, mut turns) = (Vec::new(), 0);
    let answer = qp.drain(cqs, &mut [Wc::default(); 2], |reaped| -> ControlFlow<()> {
        match reaped {
            Reaped::Done(done) => seen.push(name(&done)),
            Reaped::Other(wc) => seen.push(format!("other {}", wc.wr_id())),
            Reaped::Nothing => turns += 1,
        }
        if turns <= patience { Continue(()) } else { Break(()) }
    });
    (answer, seen)
}

#[test]
fn q02_a_queue_pair_is_drained_when_all_was_flushed() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    assert_eq!(drain(&mut qp, &mut [&mut cq], 0), (Ok(()), vec![]), "nothing is outstanding");
    assert!(device.states.lock().unwrap().is_empty());
    (0..2).for_each(|token| qp.post_send(ping(), token).unwrap());
    qp.post_recv(&[], 'a').unwrap();
    device.with(|pair| {
        pair.execute(WcStatus::SUCCESS);
        pair.completions.push_back(send(99));
    });
    // Another queue comes first, which is empty.
    let (mut empty, _) = Qp::default().cq(1);
    let (answer, seen) = drain(&mut qp, &mut [&mut empty, &mut cq], 3);
    assert_eq!(
        (answer, seen),
        (Ok(()), ["other 99", "0 true", "1 false", "a false"].map(String::from).to_vec())
    );
    assert!(qp.is_idle());
}

#[test]
fn q02_an_unsignaled_send_that_was_executed_before_is_drained_too() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    qp.post_send(ping(), 0).unwrap();
    device.with(|pair| pair.execute(WcStatus::SUCCESS));
    assert_eq!(drain(&mut qp, &mut [&mut cq], 1), (Ok(()), vec!["0 true".into()]));
    // Once, and only where it is necessary.
    for is_signaled in [false, true] {
        let wr = if is_signaled { SendWr::send_inline(0, b"") } else { ping() };
        let (mut qp, device, _cq) = tracked(4, 2);
        qp.post_send(wr, 0).unwrap();
        qp.fail().unwrap();
        qp.fail().unwrap();
        let flushed = device.with(|pair| pair.completions.len());
        assert_eq!(flushed, if is_signaled { 1 } else { 2 });
    }
    let (mut qp, device, _cq) = tracked(4, 2);
    qp.post_send(ping(), 0).unwrap();
    device.with(|pair| pair.refuses_after = Some((0, 0)));
    assert_eq!(qp.fail(), Err(FailError::Marker(Refused::Device(5))));
}

#[test]
fn q11_a_shared_receive_queue_that_is_in_use_keeps_what_it_has() {
    let device = Qp::default();
    let (mut cq, budget) = device.cq(8);
    for is_used in [true, false] {
        device.with(|pair| pair.is_used = is_used);
        let token = Arc::new(());
        let entries = Reservation::new(&budget, 3).unwrap();
        let mut srq = TrackedSrq::<_, _, _, 3, 1>::with(device.clone(), [entries]);
        srq.post_recv(&[], token.clone()).unwrap();
        drop(srq);
        assert!(cq.poll(&mut [Wc::default(); 2]).unwrap().is_empty());
        assert_eq!((Arc::strong_count(&token) > 1, budget.free()), (is_used, 5));
    }
}

#[test]
fn buffers_that_a_destroyed_queue_pair_may_still_use_are_not_freed() {
    for (is_used, is_idle) in [(true, false), (false, false), (true, true)] {
        let device = Qp::default();
        device.with(|pair| pair.is_used = is_used);
        let mut disturbed = FaultInjector::<_, 1>::new(device.clone(), &Faults::seeded(1));
        assert_eq!(Post::quiesce(&mut &mut disturbed), !is_used);
        let (mut cq, budget) = device.cq(8);
        let [sends, receives] = [4, 3].map(|count| Reservation::new(&budget, count).unwrap());
        let mut qp = TrackedQp::<_, _, _, 4, 3, _>::with(device.clone(), sends, receives);
        let tokens = [(); 2].map(Arc::new);
        if !is_idle {
            qp.post_send(ping(), tokens[0].clone()).unwrap();
            qp.post_recv(&[], tokens[1].clone()).unwrap();
        }
        drop(qp);
        assert!(cq.poll(&mut [Wc::default(); 2]).unwrap().is_empty());
        let (owners, free) = if is_used && !is_idle { (2, 1) } else { (1, 8) };
        assert_eq!(
            (tokens.map(|token| Arc::strong_count(&token)), budget.free()),
            ([owners; 2], free)
        );
    }
}

#[test]
fn a_batch_is_retired_in_its_order_and_the_rest_when_the_iterator_is_dropped() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    qp.post_sends(&mut [ping(), SendWr::send(0, &[]), ping(), ping()], |nth| nth as u32).unwrap();
    qp.post_recvs(&mut [RecvWr::new(0, &[]); 2], |nth| ['a', 'b'][nth]).unwrap();
    device.with(|pair| {
        (0..2).for_each(|_| pair.execute(WcStatus::SUCCESS));
        pair.deliver(0);
        pair.completions.push_back(send(u64::MAX)); // another's
        (0..2).for_each(|_| pair.execute(WcStatus::SUCCESS));
        pair.deliver(0);
    });
    let mut buffer = [Wc::default(); 8];
    let batch = cq.poll(&mut buffer).unwrap();
    let seen: Vec<_> = qp.retire_all(batch).take(4).map(|done| name(&done)).collect();
    assert_eq!(seen, ["0 true", "1 true", "a true", "2 true"]);
    assert!(qp.is_idle(), "the rest, too");
    assert_eq!(qp.retire_all(batch).count(), 0);
    assert_eq!(qp.retire_all(&[]).count(), 0);
}

#[test]
fn draining_ends_as_the_caller_wishes_or_with_the_queue() {
    let (mut qp, device, _cq) = tracked(4, 2);
    qp.post_send(SendWr::send_inline(0, b""), 0).unwrap();
    let (mut empty, _) = Qp::default().cq(1);
    assert_eq!(drain(&mut qp, &mut [&mut empty], 2), (Err(DrainError::Stopped), vec![]));
    let (mut turns, no_queues) = (0, &mut [] as &mut [&mut CompletionQueue<Cq>]);
    let answer = qp.drain(no_queues, &mut [Wc::default()], |_| {
        turns += 1;
        if turns < 3 { Continue(()) } else { Break(()) }
    });
    assert_eq!((answer, turns), (Err(DrainError::Stopped), 3));
    let script = Script::<4>::new(KEY).on_poll(Err(PollError::Failed));
    let mut failed = CompletionQueue::new(&script);
    let (answer, _) = drain(&mut qp, &mut [&mut failed], 2);
    assert_eq!(answer, Err(DrainError::Poll(PollError::Failed)));
    *device.refuses.lock().unwrap() = Some(REFUSED);
    assert_eq!(
        drain(&mut qp, &mut [&mut empty], 2).0,
        Err(DrainError::Fail(FailError::Modify(REFUSED)))
    );
    assert_eq!(qp.sends_outstanding(), 1);
}

#[test]
fn connecting_and_datagrams_are_the_queue_pairs() {
    let (mut qp, device, _cq) = tracked(2, 0);
    let port = port();
    let peer = Endpoint { qp_num: 1, psn: 0, lid: 0, gid: Gid::default(), mtu: 4096 };
    assert!(matches!(qp.connect(&port, &peer), Err(ModifyError::Illegal { to: QpState::RTR, .. })));
    assert!(matches!(qp.activate(&port, 7), Err(ModifyError::Illegal { to: QpState::RTS, .. })));
    let to = Destination { ah: &3, qp_num: 5, qkey: 7 };
    qp.post_send_to(&to, ping(), 0).unwrap();
    qp.post_send_to(&to, ping(), 1).unwrap();
    assert_eq!(qp.post_send_to(&to, ping(), 2).unwrap_err().why, Refused::QueueFull);
    assert_eq!(device.with(|pair| pair.sends.len()), 2);
}

#[test]
fn q09_a_shared_receive_queue_uses_no_more_than_the_smallest_reservation() {
    let device = Qp::default();
    let ((mut cq, large), (_other, small)) = (device.cq(8), device.cq(3));
    let [eight, three] = [(&large, 8), (&small, 3)]
        .map(|(budget, entries)| Reservation::new(budget, entries).unwrap());
    let mut srq = TrackedSrq::<_, char, _, 6, 2>::with(device.clone(), [eight, three]);
    assert_eq!((srq.free(), srq.outstanding()), (3, 0));
    srq.post_recvs(&mut [RecvWr::new(0, &[]); 2], |nth| ['a', 'b'][nth]).unwrap();
    srq.post_recv(&[], 'c').unwrap();
    assert_eq!(srq.post_recv(&[], 'd').unwrap_err().why, Refused::QueueFull);
    assert_eq!(
        srq.post_recvs(&mut [RecvWr::new(0, &[])], |_| 'd').unwrap_err().why,
        Refused::QueueFull
    );
    device.with(|pair| pair.deliver(1));
    let mut buffer = [Wc::default(); 2];
    let batch = cq.poll(&mut buffer).unwrap();
    let received: Vec<_> = batch.iter().map(|wc| srq.retire(wc).unwrap().token).collect();
    assert_eq!((received, srq.outstanding(), srq.free()), (vec!['b'], 2, 1));
    assert!(srq.retire(&send(1)).is_none());
    assert_eq!(srq.arm_limit(9), Err(ArmLimitError::TooMany { asked: 9, max: 8 }));
    assert_eq!(srq.limit(), Ok(3));
    assert_eq!(SharedReceiveQueue::caps(srq.get_ref()).max_sge, 1);
    // Without completion queues it is limited by its ledger.
    let mut srq = TrackedSrq::<_, char, Unlimited, 6, 0>::with(device, []);
    assert_eq!(srq.free(), 6);
}
