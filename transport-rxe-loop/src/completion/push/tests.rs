use std::cell::RefCell;

use cq_verbs::setup::ResizeError;

use super::*;
use crate::engine::complete::{lock, push_received, tell, wait_for_push};
use crate::inside::prelude::*;
use crate::protocol::fanin::Location;
use crate::protocol::moderation::{EventAction, Setting};

/// A queue that is armed, and a queue pair of its with one receive, in a fabric without a service thread.
struct Scene {
    device: &'static Device,
    index: CqIndex,
    slot: &'static CqSlot,
    qp: QueuePair,
    cq: Cq,
    channel: CompletionChannel,
    context: Context,
}

impl Scene {
    fn new() -> Self {
        let (context, device) = OpenOptions::new().alone();
        let channel = context.create_channel().unwrap();
        // So that no number is another's.
        let _others = [(); 3].map(|()| context.cq(1).create().unwrap());
        let mut cq = context.cq(4).channel(&channel).create().unwrap();
        let mut qp = context.alloc_pd().unwrap().qp(&cq).create().unwrap();
        qp.connect_to(qp.number()).unwrap();
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
        let index = cq.handle.queue.index;
        Self { device, index, slot: device.completions.cq(index), qp, cq, channel, context }
    }

    /// Pushes the completion of the receive so many times.
    fn push(&self, count: usize) {
        let mut cq = CqRing::new(self.device.completions, self.index);
        let slot = self.device.engine.qp(self.qp.qpn());
        let entries = vec![self.entry(); count];
        push_received(self.device.engine, (self.qp.qpn(), slot), &mut cq, &entries)
            .raise(self.device.completions);
    }

    /// The completion of the receive.
    fn entry(&self) -> Tagged {
        let wc = Wc::new(1, WcStatus::SUCCESS, self.qp.number());
        Tagged { wc, tag: tag::of_recv(Position::new(1)), solicited: false }
    }

    /// The queue is given up, and what that leaves to be done is.
    fn give_up(&self, entries: &[Tagged]) {
        let Device { completions, engine, .. } = *self.device;
        give_up(completions, self.index, entries, engine);
        complete::fail_overran(engine);
    }

    fn ring(&self) -> RawQueue<'static> {
        ring_at(self.device, self.slot.fanin.location())
    }

    /// How many receives have completed.
    fn completed(&self) -> u64 {
        self.device.engine.qp(self.qp.qpn()).recv.completed().get()
    }

    fn state(&self) -> QpState {
        self.qp.state().unwrap()
    }

    fn told(&mut self) -> AsyncEventType {
        told(&mut self.context).unwrap()
    }
}

fn ring_at(device: &'static Device, location: Location) -> RawQueue<'static> {
    queue::ring(device.completions, location).unwrap()
}

/// Where completions were placed, and a consumer that polls as those with a tag are settled.
struct Watched {
    placed: RefCell<Vec<(u32, u64)>>,
    polls_at: u32,
    cq: RefCell<Cq>,
}

impl RequestHooks for &Watched {
    fn place(self, tag: u32, in_cq: u64) {
        self.placed.borrow_mut().push((tag, in_cq));
    }

    fn settle(self, _: &Wc, tag: u32) {
        if tag == self.polls_at {
            self.cq.borrow_mut().poll_into(&mut [Wc::default(); 4]).unwrap();
        }
    }
}

#[test]
fn q05_what_is_stored_behind_a_dropped_completion_is_where_it_was_placed() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.cq(1).ignore_overrun().create().unwrap();
    let index = cq.handle.queue.index;
    let watched = Watched { placed: RefCell::default(), polls_at: 2, cq: RefCell::new(cq) };
    let entries = [1, 2, 3].map(|tag| Tagged { tag, ..Tagged::default() });
    let mut ring = CqRing::new(device.completions, index);
    // The second finds the queue full, and is dropped; the first is polled before the third.
    assert_eq!(push_any(device.completions, &mut ring, &entries, &watched).lost, None);
    assert_eq!(watched.cq.borrow().dropped(), 1);
    assert_eq!(watched.cq.borrow_mut().poll_into(&mut [Wc::default(); 4]), Ok(1));
    let (tag, in_cq) = *watched.placed.borrow().last().unwrap();
    assert_eq!((tag, in_cq + 1), (3, watched.cq.borrow().handle.queue.polled.seen()));
}

#[test]
fn n06_a_waiting_thread_is_woken_by_who_inherits_the_lock() {
    let mut scene = Scene::new();
    let Tagged { wc, tag, .. } = scene.entry();
    die_pushing(scene.device.completions, scene.index, DEAD, &wc, tag);
    assert_eq!(scene.channel.take_event(), Ok(None));
    assert!(wait_for_push(scene.device.engine, scene.index));
    assert_eq!(scene.channel.take_event(), Ok(Some(scene.cq.key())));
}

#[test]
fn o04_the_overrun_of_a_moderated_queue_wakes_at_once_and_fails_its_queue_pairs() {
    let mut scene = Scene::new();
    let slot = scene.slot;
    let setting = Setting { count: u16::MAX, period: u16::MAX };
    assert_eq!(slot.moderation.set(scene.ring().control(), setting), EventAction::None);
    slot.mode.set(CqFlag::Moderated, true);
    scene.push(1);
    assert_eq!(scene.channel.take_event(), Ok(None), "it is held back");
    assert!(!slot.mode.has(CqFlag::Overran));
    scene.push(64);
    assert_eq!(scene.channel.take_event(), Ok(Some(scene.cq.key())));
    assert_eq!(scene.state(), QpState::ERR);
    assert!(slot.mode.has(CqFlag::Overran), "for who sweeps up, if this process had died by now");
    let told = [(); 2].map(|()| scene.told());
    assert_eq!(told, [AsyncEventType::CQ_ERR, AsyncEventType::QP_FATAL]);
}

#[test]
fn x07_who_gives_a_queue_up_writes_nothing_to_its_ring_and_what_is_lost_has_completed_all_the_same()
{
    let mut scene = Scene::new();
    let suspended = lock(scene.device.engine, scene.index).unwrap();
    assert_eq!(scene.completed(), 0);
    scene.give_up(&[scene.entry()]);
    assert_eq!(scene.completed(), 1);
    // Its owner may have resized it meanwhile, and something else may lie there.
    assert_eq!(scene.ring().control().end(), None);
    drop(suspended);
    assert_eq!(scene.channel.take_event(), Ok(Some(scene.cq.key())));
    assert_eq!(scene.cq.resize(100), Err(ResizeError::Overrun));
    let failed = Err(PollError::Failed);
    assert_eq!([(); 2].map(|()| scene.cq.poll_into(&mut [Wc::default()])), [failed; 2]);
    assert_eq!((scene.cq.dropped(), scene.state()), (0, QpState::ERR));
}

#[test]
fn o03_what_a_producer_had_stored_comes_before_the_failure_of_a_queue_that_was_given_up() {
    let mut scene = Scene::new();
    scene.push(1);
    scene.give_up(&[]);
    assert_eq!(scene.cq.dropped(), 0, "all of them fit");
    assert_eq!(scene.cq.poll_into(&mut []), Ok(0));
    assert_eq!(scene.cq.poll_into(&mut [Wc::default()]), Ok(1));
    assert_eq!(scene.cq.poll_into(&mut [Wc::default()]), Err(PollError::Failed));
}

#[test]
fn o04_what_lies_where_no_ring_is_any_more_fails_nobody() {
    let scene = Scene::new();
    let other = scene.context.cq(4).create().unwrap();
    let other = scene.device.completions.cq(other.handle.queue.index).fanin.location();
    // As one finds it that looks at a ring which is resized away, and its memory another's by then.
    ring_at(scene.device, other).into_consumer(0, NoChannel).fail();
    let mine = scene.slot.fanin.location();
    scene.slot.fanin.begin(other);
    tell(scene.device.engine, scene.index);
    scene.slot.fanin.begin(mine);
    assert_eq!(scene.state(), QpState::RTS);
}

#[test]
fn o04_an_overrun_that_a_dead_producer_did_not_report_is_reported_by_others() {
    let reports: [fn(&Scene); 3] = [
        // As far as one gets that dies under the lock: it has overrun the ring.
        |scene| {
            assert!(scene.slot.fanin.lock.try_enter(DEAD));
            scene.ring().into_consumer(0, NoChannel).fail();
            assert!(wait_for_push(scene.device.engine, scene.index));
        },
        // As far as one gets that dies after it, or could not have it.
        |scene| {
            scene.slot.mode.set(CqFlag::GivenUp, true);
            tell(scene.device.engine, scene.index);
        },
        |scene| {
            scene.slot.mode.set(CqFlag::Overran, true);
            tell(scene.device.engine, scene.index);
        },
    ];
    for report in reports {
        let mut scene = Scene::new();
        report(&scene);
        assert_eq!((scene.state(), scene.told()), (QpState::ERR, AsyncEventType::CQ_ERR));
    }
}

#[test]
fn o04_an_overrun_that_is_found_while_pushing_elsewhere_fails_its_queue_pairs_after_that() {
    let scene = Scene::new();
    scene.slot.mode.set(CqFlag::Overran, true);
    assert!(scene.slot.fanin.lock.try_enter(DEAD), "its producer died");
    scene.push(1);
    assert_eq!(scene.state(), QpState::ERR);
}

#[test]
fn x04_where_no_ring_can_be_completions_are_lost_and_their_requests_settled() {
    let scene = Scene::new();
    let fanin = &scene.slot.fanin;
    let location = fanin.location();
    fanin.begin(Location { offset: u32::MAX, ..location });
    scene.push(1);
    assert_eq!(scene.completed(), 1);
    scene.push(2);
    fanin.begin(location);
    assert_eq!(fanin.lock.holder(), None);
}
