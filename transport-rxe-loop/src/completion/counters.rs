//! What the process of a completion queue counts of its polls, if it was asked to, for [observers](crate::observe) of
//! the fabric. Nothing else reads it.

use crate::shm::table::shared;
use crate::sync::{self, AtomicU64};

/// The counters of the completion queue at the same index. The thread that polls writes all but the events, and the one
/// that takes events from the channel those.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PollCounters {
    polls: AtomicU64,
    empty_polls: AtomicU64,
    /// The consumer's position.
    polled: AtomicU64,
    high_water: AtomicU64,
    arms: AtomicU64,
    events: AtomicU64,
}

shared!(PollCounters);

/// The counts of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PollCounts {
    /// Polls.
    pub polls: u64,
    /// Polls that returned no completion.
    pub empty_polls: u64,
    /// Completions that were polled, wrapping.
    pub polled: u64,
    /// The most completions that a poll has found.
    pub high_water: u64,
    /// How often it was armed.
    pub arms: u64,
    /// Its events that were taken from the channel.
    pub events: u64,
}

fn add_one(word: &AtomicU64) {
    // No other thread writes it.
    sync::store(word, sync::load(word).wrapping_add(1));
}

impl PollCounters {
    /// Begins to count, for a new queue.
    pub fn begin(&self) {
        let Self { polls, empty_polls, polled, high_water, arms, events } = self;
        for word in [polls, empty_polls, polled, high_water, arms, events] {
            sync::store(word, 0);
        }
    }

    /// Counts a poll that found so many completions, returned some or none, and left the consumer at a position.
    pub fn poll(&self, found: u64, is_empty: bool, position: u64) {
        add_one(&self.polls);
        if is_empty {
            add_one(&self.empty_polls);
        }
        if found > sync::load(&self.high_water) {
            sync::store(&self.high_water, found);
        }
        sync::store(&self.polled, position);
    }

    /// Counts an arm.
    pub fn arm(&self) {
        add_one(&self.arms);
    }

    /// Counts an event that was taken.
    pub fn event(&self) {
        add_one(&self.events);
    }

    /// What was counted so far.
    pub fn read(&self) -> PollCounts {
        PollCounts {
            polls: sync::load(&self.polls),
            empty_polls: sync::load(&self.empty_polls),
            polled: sync::load(&self.polled),
            high_water: sync::load(&self.high_water),
            arms: sync::load(&self.arms),
            events: sync::load(&self.events),
        }
    }
}
