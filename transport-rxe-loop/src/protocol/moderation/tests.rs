//! Tests of what the models do not cover: counts, times, and corrupted words.

use cq_core::queue::OnChannel;
use cq_core::queue::raw::Slot;
use cq_core::transport::{Arm, CqKey};
use cq_testing::raw_queue;

use super::*;

const NOW: u64 = 1 << 40;

/// A moderated queue to which nothing is pushed.
struct Queue {
    control: Control,
    slots: [Slot; 4],
    moderation: Moderation,
}

/// An armed, moderated queue.
fn of(count: u16, period: u16) -> Queue {
    let queue = Queue {
        control: Control::new(),
        slots: [const { Slot::new() }; 4],
        moderation: Moderation::default(),
    };
    let set = queue.moderation.set(&queue.control, Setting { count, period });
    assert_eq!(set, EventAction::None);
    queue.arm(Notify::Next);
    queue
}

impl Queue {
    fn arm(&self, on: Notify) {
        let queue = raw_queue(&self.control, &self.slots, &[], 4).unwrap();
        let key = CqKey { index: 0, generation: 1 };
        let _ = queue.into_consumer(0, OnChannel::named(key)).arm(on).unwrap();
    }

    fn came(&self, all: u32, now: u64) -> EventAction {
        let push_summary = PushSummary { all, ..PushSummary::default() };
        self.moderation.event_action(&self.control, push_summary, || now)
    }

    fn look(&self, now: u64) -> EventAction {
        self.moderation.look(&self.control, now)
    }
}

#[test]
fn n12_what_comes_together_counts_together() {
    let queue = of(4, 100);
    assert_eq!(queue.came(3, NOW), EventAction::Call);
    assert_eq!(queue.came(7, NOW), EventAction::Raise);
    assert_eq!(queue.came(5, NOW), EventAction::None, "not armed any more");
}

#[test]
fn n12_the_first_completion_sets_the_deadline() {
    let queue = of(10, 100);
    assert_eq!(queue.look(NOW - 1), EventAction::None, "nothing is held back");
    assert_eq!(queue.came(1, NOW), EventAction::Call, "it is still armed");
    queue.came(1, NOW + 99_999);
    assert_eq!(queue.look(NOW + 99_999), EventAction::None);
    assert_eq!(queue.look(NOW + 100_000), EventAction::Raise);
    assert_eq!(queue.look(NOW + 100_000), EventAction::None, "it was raised");
    assert_eq!(queue.moderation.alarm(), 0);
}

#[test]
fn n12_a_look_raises_what_was_armed_for_solicited_completions_too() {
    let queue = of(2, 100);
    queue.came(2, NOW);
    queue.arm(Notify::Solicited);
    let urgent = PushSummary { all: 1, urgent: 1, at_once: false };
    let action = queue.moderation.event_action(&queue.control, urgent, || NOW);
    assert_eq!(action, EventAction::Call);
    assert_eq!(queue.look(NOW + 100_000), EventAction::Raise);
}

#[test]
fn n12_the_next_event_after_that_waits_anew() {
    let queue = of(10, 100);
    queue.came(1, NOW);
    assert_eq!(queue.came(1, NOW + 100_000), EventAction::Raise);
    queue.arm(Notify::Next);
    let called = queue.came(1, NOW + 100_000);
    assert_eq!(called, EventAction::Call, "nobody has answered the alarm");
    assert_eq!(queue.look(NOW + 199_999), EventAction::None);
    assert_eq!(queue.look(NOW + 200_000), EventAction::Raise);
}

#[test]
fn the_thread_is_called_once_for_all_events_until_its_alarm() {
    let queue = of(2, 100);
    assert_eq!(queue.came(1, NOW), EventAction::Call);
    for later in 0..9 {
        assert_eq!(queue.came(1, NOW + later), EventAction::Raise);
        queue.arm(Notify::Next);
        assert_eq!(queue.came(1, NOW + later), EventAction::None);
    }
    assert_eq!(queue.look(NOW + 100_000), EventAction::None);
    assert_eq!(queue.moderation.alarm(), NOW + 100_008);
}

#[test]
fn the_thread_is_called_again_for_an_event_that_comes_before_its_alarm() {
    let queue = of(2, 100);
    assert_eq!(queue.came(1, NOW), EventAction::Call);
    assert_eq!(queue.came(1, NOW), EventAction::Raise);
    let sooner = Setting { count: 2, period: 10 };
    assert_eq!(queue.moderation.set(&queue.control, sooner), EventAction::None);
    queue.arm(Notify::Next);
    assert_eq!(queue.came(1, NOW), EventAction::Call);
    assert_eq!(queue.moderation.alarm(), NOW + 10_000);
}

#[test]
fn a_thread_that_cannot_look_raises_what_may_be_held_back_and_is_called_again() {
    let queue = of(3, 100);
    assert!(!queue.moderation.give_up(), "nothing is");
    assert_eq!(queue.came(1, NOW), EventAction::Call);
    assert!(queue.moderation.give_up());
    assert_eq!(queue.moderation.alarm(), 0);
    assert_eq!(queue.came(1, NOW), EventAction::Call);
}

#[test]
fn x04_whatever_the_words_say_an_event_is_not_held_for_long() {
    let words = [1, NOW - 1, NOW, NOW + LONGEST + 1, 1 << 63, u64::MAX];
    for (word, held) in words.into_iter().flat_map(|word| [(word, 0), (word, word as u32)]) {
        let queue = of(u16::MAX, 100);
        sync::store(&queue.moderation.deadline, word);
        sync::store(&queue.moderation.alarm, word);
        sync::store(&queue.moderation.held, held);
        if queue.came(1, NOW) != EventAction::Raise {
            assert!(until(queue.moderation.alarm(), NOW) <= 100_000);
            assert_eq!(queue.look(NOW + 100_000), EventAction::Raise);
        }
        queue.arm(Notify::Next);
        sync::store(&queue.moderation.deadline, word);
        assert_eq!(queue.look(NOW), EventAction::Raise);
    }
}
