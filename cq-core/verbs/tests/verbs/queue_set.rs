//! Several queues in turn, over scripted transports: which is polled, armed and slept for (P2, P7, N2, N5, N6, N8, N9).

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use cq_core::channel::thread::channel;
use cq_core::observe::{Observed, Observer};
use cq_verbs::queue_set::{ChannelId, QueueId, QueueSet, SetError};

use super::*;

/// Queues and channels of one letter each, and what was asked of them: `A?` polled, `A!` armed, `x` an event taken, `A.` told of it.
#[derive(Default)]
pub(super) struct World {
    pub(super) log: String,
    /// What they answer, first to last; then polls find nothing, arms succeed, and there is no event.
    pub(super) polls: HashMap<char, VecDeque<Result<usize, PollError>>>,
    pub(super) arms: HashMap<char, VecDeque<Result<Armed, ArmError>>>,
    pub(super) events: HashMap<char, VecDeque<Result<CqKey, EventError>>>,
}

/// A queue or a channel of this name.
#[derive(Debug)]
pub(super) struct Named<'w>(pub(super) char, pub(super) &'w RefCell<World>);

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.log)
    }
}

impl World {
    /// What was asked since the last call.
    pub(super) fn said(world: &RefCell<Self>) -> String {
        std::mem::take(&mut world.borrow_mut().log)
    }

    fn poll(world: &RefCell<Self>, name: char, found: impl IntoIterator<Item = usize>) {
        let mut world = world.borrow_mut();
        world.polls.entry(name).or_default().extend(found.into_iter().map(Ok));
    }

    fn event(world: &RefCell<Self>, channel: char, of: char) {
        world.borrow_mut().events.entry(channel).or_default().push_back(Ok(key(of)));
    }
}

pub(super) fn key(name: char) -> CqKey {
    CqKey { index: u32::from(name), generation: 1 }
}

impl PollCq for Named<'_> {
    type Entry = Wc;

    /// Its completions have its name as `wr_id`.
    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let world = &mut *self.1.borrow_mut();
        world.log.extend([self.0, '?']);
        let found = world.polls.get_mut(&self.0).and_then(VecDeque::pop_front).unwrap_or(Ok(0))?;
        out.iter_mut().take(found).for_each(|wc| *wc = send(u64::from(self.0)));
        Ok(found)
    }
}

impl Arm for Named<'_> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        assert_eq!(on, Notify::Next);
        let world = &mut *self.1.borrow_mut();
        world.log.extend([self.0, '!']);
        world.arms.get_mut(&self.0).and_then(VecDeque::pop_front).unwrap_or(Ok(Armed::Armed))
    }

    fn key(&self) -> CqKey {
        key(self.0.to_ascii_uppercase())
    }

    fn took_events(&mut self, count: u32) {
        let world = &mut *self.1.borrow_mut();
        assert_eq!(count, 1);
        world.log.extend([self.0, '.']);
    }
}

impl Events for Named<'_> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let world = &mut *self.1.borrow_mut();
        world.log.push(self.0);
        world.events.get_mut(&self.0).and_then(VecDeque::pop_front).transpose()
    }
}

type Set<'w> = QueueSet<Named<'w>, Named<'w>>;

/// A set with these queues, and one channel `x`.
fn set<'w, const N: usize>(
    world: &'w RefCell<World>,
    names: [char; N],
) -> (Set<'w>, [QueueId; N], ChannelId) {
    let mut set = QueueSet::default();
    let ids = names.map(|name| set.add_queue(CompletionQueue::new(Named(name, world))));
    let channel = set.add_channel(Named('x', world));
    (set, ids, channel)
}

/// Polls with a buffer of two, or polls and arms: the queue's name and how many came from it.
fn poll(set: &mut Set<'_>, arms: bool) -> Option<(char, usize)> {
    let mut buffer = [Wc::default(); 2];
    let found = if arms { set.poll_or_arm(&mut buffer) } else { set.poll(&mut buffer) };
    found.unwrap().map(|(id, batch)| {
        let name = set.queue(id).unwrap().get_ref().0;
        assert!(batch.iter().all(|wc| wc.wr_id() == u64::from(name)), "of the queue it names");
        (name, batch.len())
    })
}

#[test]
fn busy_queues_are_served_in_turn() {
    let world = RefCell::default();
    let (mut set, ..) = set(&world, ['A', 'B', 'C']);
    for name in ['A', 'B', 'C'] {
        World::poll(&world, name, [2; 4]);
    }
    let served: Vec<_> = (0..7).map(|_| poll(&mut set, false).unwrap().0).collect();
    assert_eq!(served, ['A', 'B', 'C', 'A', 'B', 'C', 'A']);
    assert_eq!(World::said(&world), "A?B?C?A?B?C?A?", "one poll for a batch");
}

#[test]
fn a_queue_with_much_delays_no_other() {
    let world = RefCell::default();
    let (mut set, ..) = set(&world, ['A', 'B', 'C']);
    World::poll(&world, 'B', [2; 3]);
    assert_eq!(poll(&mut set, false), Some(('B', 2)));
    World::poll(&world, 'A', [1]);
    World::poll(&world, 'C', [1]);
    assert_eq!(
        [(); 5].map(|()| poll(&mut set, false)),
        [Some(('C', 1)), Some(('A', 1)), Some(('B', 2)), Some(('B', 2)), None]
    );
}

#[test]
fn removing_queues_leaves_the_turn_with_the_next_one() {
    let world = RefCell::default();
    let busy = || {
        let (mut set, ids, _) = set(&world, ['A', 'B', 'C', 'D']);
        for name in ['A', 'B', 'C', 'D'] {
            World::poll(&world, name, [1; 4]);
        }
        assert_eq!([(); 2].map(|()| poll(&mut set, false).unwrap().0), ['A', 'B']);
        (set, ids)
    };
    for (removed, then) in [(0, "CDBC"), (1, "CDAC"), (2, "DABD"), (3, "CABC")] {
        let (mut set, ids) = busy();
        let removed = ids[removed];
        assert!(set.remove_queue(removed).is_some());
        assert!(set.remove_queue(removed).is_none(), "once");
        assert!(set.queue(removed).is_none() && set.queue_mut(removed).is_none());
        let served: String = (0..4).map(|_| poll(&mut set, false).unwrap().0).collect();
        assert_eq!(served, then);
        let added = set.add_queue(CompletionQueue::new(Named('E', &world)));
        assert!(!ids.contains(&added), "a name is given once");
        assert_eq!(set.queue(added).unwrap().get_ref().0, 'E');
        world.borrow_mut().polls.clear();
    }
    // The last one, when the turn is at the first again.
    let (mut set, ids, _) = set(&world, ['A', 'B']);
    World::poll(&world, 'A', [1; 2]);
    World::poll(&world, 'B', [1; 2]);
    assert_eq!([(); 2].map(|()| poll(&mut set, false).unwrap().0), ['A', 'B']);
    assert_eq!(set.remove_queue(ids[1]).unwrap().into_inner().0, 'B');
    assert_eq!([(); 2].map(|()| poll(&mut set, false).map(|it| it.0)), [Some('A'), None]);
    set.remove_queue(ids[0]);
    assert_eq!([poll(&mut set, false), poll(&mut set, true)], [None; 2], "nothing is left");
}

#[test]
fn n06_events_are_taken_before_queues_are_armed_and_armed_queues_are_not_armed_again() {
    let world = RefCell::default();
    let (mut set, ..) = set(&world, ['A', 'B']);
    set.add_channel(Named('y', &world));
    World::event(&world, 'x', 'A');
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "A?B?xA.xyA!B!");
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "A?B?xy", "both are armed");
    World::event(&world, 'y', 'B');
    World::event(&world, 'x', 'C');
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "A?B?xxyB.yB!", "an event of no queue changes nothing (N7)");
    World::poll(&world, 'A', [1]);
    World::event(&world, 'x', 'A');
    assert_eq!(poll(&mut set, true), Some(('A', 1)));
    assert_eq!(World::said(&world), "A?", "polling takes no event");
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "B?A?xA.xyA!");
}

#[test]
fn n02_what_came_before_a_queue_was_armed_is_returned_and_the_rest_is_armed_later() {
    let world = RefCell::default();
    let (mut set, ..) = set(&world, ['A', 'B', 'C']);
    World::poll(&world, 'A', [0, 0]);
    World::poll(&world, 'B', [0, 2]);
    for name in ['A', 'B', 'C'] {
        world.borrow_mut().arms.insert(name, [Ok(Armed::MayHaveMissed)].into());
    }
    assert_eq!(poll(&mut set, true), Some(('B', 2)));
    assert_eq!(World::said(&world), "A?B?C?xA!A?B!B?");
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "C?A?B?xC!C?", "it is armed, too");
}

#[test]
fn queues_with_one_key_are_all_armed_again() {
    let world = RefCell::default();
    let (mut set, ..) = set(&world, ['A', 'B', 'a']); // `a` has the key of A
    assert_eq!(poll(&mut set, true), None);
    World::said(&world);
    World::event(&world, 'x', 'A');
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "A?B?a?xA.a.xA!a!");
}

/// Panics at the first event of its queue, if it is set.
struct Panics(bool);

impl Observer for Panics {
    fn polled(&mut self, _: &dyn PollCq<Entry = Wc>, _: usize, _: &[Wc]) {}

    fn took_events(&mut self, _: u32) {
        assert!(!std::mem::take(&mut self.0), "as planned");
    }
}

#[test]
fn n06_an_observer_that_panics_costs_no_event() {
    let world = RefCell::default();
    let mut set = QueueSet::new();
    for (name, panics) in [('A', true), ('a', false)] {
        set.add_queue(CompletionQueue::new(Observed::new(Named(name, &world), Panics(panics))));
    }
    set.add_channel(Named('x', &world));
    let mut wait =
        || catch_unwind(AssertUnwindSafe(|| set.poll_or_arm(&mut [Wc::default()]) == Ok(None)));
    assert!(wait().unwrap());
    World::said(&world);
    World::event(&world, 'x', 'A');
    assert!(wait().is_err());
    assert!(wait().unwrap());
    assert_eq!(World::said(&world), "A?a?xA.A?a?xA!a!");
}

#[test]
fn a_queue_that_was_borrowed_is_armed_again() {
    let world = RefCell::default();
    let (mut set, [a, b], channel) = set(&world, ['A', 'B']);
    assert_eq!(poll(&mut set, true), None);
    World::said(&world);
    assert!(set.queue(a).is_some() && set.channel(channel).is_some());
    assert_eq!(set.queue_mut(b).unwrap().get_ref().0, 'B');
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "A?B?xB!");
}

#[test]
fn n07_the_event_of_a_removed_queue_is_ignored() {
    let world = RefCell::default();
    let (mut set, [a, _], channel) = set(&world, ['A', 'B']);
    assert_eq!(poll(&mut set, true), None);
    set.remove_queue(a);
    World::event(&world, 'x', 'A');
    World::said(&world);
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "B?xx");
    assert_eq!(set.channel_mut(channel).unwrap().0, 'x');
    assert_eq!(set.remove_channel(channel).unwrap().0, 'x');
    assert!(set.remove_channel(channel).is_none());
    assert!(set.channel(channel).is_none() && set.channel_mut(channel).is_none());
}

#[test]
fn o03_a_queue_that_failed_is_named_and_the_others_are_served() {
    let world = RefCell::default();
    let (mut set, [_, b, _], _) = set(&world, ['A', 'B', 'C']);
    let overrun = PollError::Overrun { dropped: Some(2) };
    world.borrow_mut().polls.insert('B', [Err(overrun), Err(overrun), Err(overrun)].into());
    World::poll(&world, 'A', [1; 2]);
    World::poll(&world, 'C', [1; 2]);
    let failed = Err(SetError::Poll { queue: b, error: overrun });
    let mut buffer = [Wc::default()];
    for _ in 0..2 {
        assert_eq!(poll(&mut set, true), Some(('A', 1)));
        assert_eq!(set.poll_or_arm(&mut buffer), failed);
        assert_eq!(poll(&mut set, true), Some(('C', 1)));
    }
    assert_eq!(set.poll(&mut buffer), failed);
    World::said(&world);
    set.remove_queue(b);
    assert_eq!(poll(&mut set, true), None);
    assert_eq!(World::said(&world), "C?A?xC!A!");
}

#[test]
fn errors_name_what_failed() {
    let world = RefCell::default();
    let (mut set, [a, b], channel) = set(&world, ['A', 'B']);
    let mut buffer = [Wc::default()];
    assert_eq!(set.poll(&mut []), Err(SetError::EmptyBuffer));
    assert_eq!(set.poll_or_arm(&mut []), Err(SetError::EmptyBuffer));
    assert_eq!(World::said(&world), "", "or a queue with completions would look empty");

    let error = EventError::Device(5);
    world.borrow_mut().events.insert('x', [Err(error)].into());
    assert_eq!(set.poll_or_arm(&mut buffer), Err(SetError::Event { channel, error }));
    assert_eq!(World::said(&world), "A?B?x");

    let error = ArmError::Device(7);
    world.borrow_mut().arms.insert('A', [Err(error), Ok(Armed::MayHaveMissed)].into());
    assert_eq!(set.poll_or_arm(&mut buffer), Err(SetError::Arm { queue: a, error }));
    assert_eq!(World::said(&world), "A?B?xA!");
    // The transport claims more than was asked for (P7), after the arm.
    World::poll(&world, 'A', [0, 2]);
    let error = PollError::Misbehaved { asked: 1, returned: 2 };
    assert_eq!(set.poll_or_arm(&mut buffer), Err(SetError::Poll { queue: a, error }));
    assert_eq!(World::said(&world), "B?A?xB!A!A?", "B had its turn");
    assert_eq!(set.poll_or_arm(&mut buffer), Ok(None));
    assert_eq!(World::said(&world), "B?A?x");

    set.remove_channel(channel);
    let unserved = SetError::NoChannel { queue: a };
    assert_eq!(set.poll_or_arm(&mut buffer), Err(unserved), "it would sleep for ever");
    set.remove_queue(a);
    set.remove_queue(b);
    assert_eq!(set.poll_or_arm(&mut buffer), Ok(None));
}

#[test]
fn n08_a_queue_whose_channel_is_not_in_the_set_is_named_before_a_sleep() {
    let ((raiser, its), (its_neighbour, events)) = [(); 2].map(|()| channel(1)).into();
    let (_device, queue) = HeapCq::new(4).unwrap().split_with(raiser);
    let (_device, neighbour) = HeapCq::new(4).unwrap().split_with(its_neighbour);
    let (mut set, mut buffer) = (QueueSet::new(), [Wc::default()]);
    set.add_channel(events);
    set.add_queue(CompletionQueue::new(neighbour));
    assert_eq!(set.poll_or_arm(&mut buffer), Ok(None));
    let queue = set.add_queue(CompletionQueue::new(queue));
    assert_eq!(set.poll_or_arm(&mut buffer), Err(SetError::NoChannel { queue }));
    set.add_channel(its);
    assert_eq!(set.poll_or_arm(&mut buffer), Ok(None));
}

/// A channel that always has one more event.
struct Endless(u32);

impl Events for Endless {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.0 += 1;
        Ok(Some(OTHER))
    }
}

#[test]
fn n05_events_without_end_do_not_keep_a_thread() {
    let world = RefCell::default();
    let mut set = QueueSet::new();
    let channel = set.add_channel(Endless(0));
    let mut buffer = [Wc::default()];
    for (queues, most) in [(0, 16), (1, 18), (2, 20)] {
        set.channel_mut(channel).unwrap().0 = 0;
        assert_eq!(set.poll_or_arm(&mut buffer), Ok(None));
        assert_eq!(set.channel(channel).unwrap().0, most, "with {queues} queues");
        set.add_queue(CompletionQueue::new(Named('A', &world)));
    }
}

#[test]
fn n09_polls_that_find_completions_leave_one_unread_event_at_most() {
    const ROUNDS: u64 = 10_000;
    let (mut storage, event_count) = (SoftCq::<4>::new(), EventCount::default());
    let (mut device, queue) = storage.split_with(&event_count);
    let mut set = QueueSet::new();
    set.add_channel(&event_count);
    set.add_queue(CompletionQueue::new(queue));
    let (mut buffer, mut most, mut slept) = ([Wc::default(); 4], 0, 0);
    for nth in 0..ROUNDS {
        if nth % 3 != 0 {
            device.push(&send(nth)).unwrap();
        }
        slept += u64::from(set.poll_or_arm(&mut buffer).unwrap().is_none());
        most = most.max(event_count.unread());
    }
    assert_eq!((most, slept), (1, ROUNDS.div_ceil(3)));
}
