//! Events that are held back: whoever sleeps is woken, by count, by the service thread, or by whoever sweeps up
//! after the producer that was to call it.

use std::ops::Range;
use std::sync::Arc;

use cq_core::cq::CompletionQueue;
use cq_core::queue::{NoChannel, Tagged};
use cq_core::sync::Site as Engine;
use cq_core::transport::{Arm, Notify, Signal};
use cq_core::wc::{Wc, WcStatus};
use transport_rxe_loop::protocol::fanin::{Fanin, Location};
use transport_rxe_loop::protocol::lock::AttachmentKey;
use transport_rxe_loop::protocol::moderation::{EventAction, Moderation, PushSummary, Setting};
use transport_rxe_loop::sync::{Site, death};
use verify_loom::channel::{Channel, LOST, take_some};
use verify_loom::harness::model;
use verify_loom::mortal::{Mortal, VICTIM, at_every_step};
use verify_loom::queue::Queue;
use verify_loom::threads::{Monitor, spawn};

const HEIR: AttachmentKey = AttachmentKey::new(1, 1);
const SERVICE: AttachmentKey = AttachmentKey::new(2, 1);

/// What of the protocol is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    CallsNobody,
    LooksWithoutLock,
    RingsNobody,
}

/// How often the service thread was called, and whether it ever will be again.
#[derive(Default)]
struct Calls {
    count: u32,
    over: bool,
}

struct World {
    fanin: Fanin,
    queue: Arc<Queue>,
    moderation: Moderation,
    victim: Mortal,
    calls: Monitor<Calls>,
    channel: Channel,
    fault: Fault,
}

impl World {
    fn new(fault: Fault) -> Arc<Self> {
        let world = Self {
            fanin: Fanin::default(),
            queue: Queue::new(4),
            moderation: Moderation::default(),
            victim: Mortal::default(),
            calls: Monitor::default(),
            channel: Channel::new(1),
            fault,
        };
        world.fanin.begin(Location { offset: 0, log2: 2, promised: 4, is_exact: false });
        let set =
            world.moderation.set(world.queue.open().control(), Setting { count: 2, period: 1 });
        assert_eq!(set, EventAction::None);
        Arc::new(world)
    }

    /// True if the lock was inherited, so that the event is to be raised.
    fn enter(&self, me: AttachmentKey) -> bool {
        let inherited = self.victim.enter(&self.fanin.lock, me);
        if inherited {
            let _state = self.fanin.repair(&self.queue.open(), |_, _| ());
        }
        inherited
    }

    fn raise_if(&self, is: bool) {
        if is && death::step() {
            self.channel.raise();
        }
    }

    fn call(&self) {
        if self.fault != Fault::CallsNobody && death::step() {
            self.calls.update(|calls| calls.count += 1);
        }
    }

    /// What is to be done for one that is pushed at this time.
    fn event_action(&self, now: u64) -> EventAction {
        let push_summary = PushSummary { all: 1, ..PushSummary::default() };
        self.moderation.event_action(self.queue.open().control(), push_summary, || now)
    }

    /// Pushes one, at this time.
    fn push(&self, me: AttachmentKey, now: u64) {
        let inherited = self.enter(me);
        let mut queue = self.queue.open();
        let wc = Wc::new(now, WcStatus::SUCCESS, 1);
        let entry = Tagged { wc, ..Tagged::default() };
        self.fanin.push(&mut queue, NoChannel, &entry, |_| ()).unwrap();
        let event_action = self.event_action(now);
        self.victim.leave(&self.fanin.lock);
        self.raise_if(inherited || event_action == EventAction::Raise);
        if event_action == EventAction::Call {
            self.call();
        }
    }

    /// Looks after the victim, which is dead, and says how many it had published, or anybody else.
    fn recover(&self) -> u64 {
        let inherited = self.enter(HEIR);
        let published = self.fanin.position();
        self.victim.leave(&self.fanin.lock);
        self.raise_if(inherited || self.fault != Fault::RingsNobody);
        published
    }

    /// The service thread, asleep at first. Whenever it sleeps for a time, that goes by.
    fn serve(&self) {
        let mut seen = 0;
        while self.wait_for_call(&mut seen) {
            while self.moderation.alarm() != 0 {
                self.look();
            }
        }
        self.channel.hang_up();
    }

    /// False if there will be none.
    fn wait_for_call(&self, seen: &mut u32) -> bool {
        self.calls.wait(|calls| {
            let is_called = calls.count != *seen;
            *seen = calls.count;
            (is_called || calls.over).then_some(is_called)
        })
    }

    fn look(&self) {
        let look = || self.moderation.look(self.queue.open().control(), self.moderation.alarm());
        let (inherited, event_action) = if self.fault == Fault::LooksWithoutLock {
            (false, look())
        } else {
            let inherited = self.enter(SERVICE);
            let event_action = look();
            self.victim.leave(&self.fanin.lock);
            (inherited, event_action)
        };
        self.raise_if(inherited || event_action == EventAction::Raise);
    }

    /// Nobody calls any more.
    fn end(&self) {
        self.calls.update(|calls| calls.over = true);
    }

    fn arm(&self) {
        let _ = self.queue.armable().arm(Notify::Next).unwrap();
    }

    /// Sleeps until there is an event.
    fn sleep(&self) {
        self.channel.clone().sleep();
    }

    /// Sleeps until so many have come.
    fn take(&self, all: usize) {
        let mut channel = self.channel.clone();
        let mut cq = CompletionQueue::new(self.queue.armable());
        let (mut taken, mut buffer) = (0, [Wc::default(); 4]);
        while taken < all {
            taken += take_some(&mut cq, &mut channel, Notify::Next, &mut buffer).unwrap();
        }
    }
}

/// One event stands for two completions, and was raised for the two that came. The third waits for the
/// service thread, which has been called for the first, and looks at about that time.
fn three(fault: Fault) {
    let world = World::new(fault);
    world.arm();
    (1..=2).for_each(|now| world.push(HEIR, now));
    let producer = spawn(&world, |world| {
        world.push(HEIR, 3);
        world.end();
    });
    let service = spawn(&world, |world| world.serve());
    world.take(3);
    producer.join().unwrap();
    service.join().unwrap();
}

#[test]
fn n12_who_sleeps_is_woken_by_count_or_in_time() {
    model("events held back", || three(Fault::None))
        .must_fail_as("the lock for looking", LOST, || three(Fault::LooksWithoutLock))
        .must_fail_as("calling", LOST, || three(Fault::CallsNobody))
        .must_fail_without([Engine::PushFence, Engine::ArmFence], LOST);
}

/// The victim has pushed one, for which alone no event is raised by count, and was killed, while the consumer was
/// asleep. Its heir sweeps up, and pushes one if that was not published. Says whether the victim lived.
fn killed(death: u32, fault: Fault) -> bool {
    let world = World::new(fault);
    world.arm();
    let lived = world.victim.live(death, || world.push(VICTIM, 1));
    let heir = spawn(&world, |world| {
        let published = world.recover();
        (published..1).for_each(|_| world.push(HEIR, 2));
        world.end();
    });
    let service = spawn(&world, |world| world.serve());
    world.sleep();
    world.take(1);
    heir.join().unwrap();
    service.join().unwrap();
    lived
}

/// Steps of a push of which nobody knows before the entry is published: the tag and the words of the entry.
const UNSEEN: Range<u32> = 2..7;

#[test]
fn n12_what_a_dead_producer_holds_back_is_raised() {
    at_every_step("events held back", UNSEEN, |step| killed(step, Fault::None));
}

/// The step at which a push of one has set the alarm, and left the lock, but called nobody.
const HELD: u32 = 14;

#[test]
fn n12_whoever_sweeps_up_rings() {
    model("events held back, killed before the call", || killed(HELD, Fault::None)).must_fail_as(
        "ringing",
        LOST,
        || killed(HELD, Fault::RingsNobody),
    );
}

/// The service thread can't have the lock, and takes its alarm back, while the holder holds an event back and goes by
/// that alarm.
fn take_alarm_back() {
    let world = World::new(Fault::None);
    world.arm();
    assert_eq!(
        [world.event_action(1), world.event_action(1)],
        [EventAction::Call, EventAction::Raise]
    );
    world.arm();
    let holder = spawn(&world, move |world| world.event_action(2));
    let raises = world.moderation.give_up();
    let calls = holder.join().unwrap() == EventAction::Call;
    assert!(raises || calls || world.moderation.alarm() != 0, "{LOST}");
}

#[test]
fn n12_an_event_is_not_held_back_for_ever_by_a_lock_that_can_not_be_had() {
    model("the alarm is taken back", take_alarm_back)
        .must_fail_without([Site::HoldFence, Site::AlarmFence], LOST);
}
