//! Whether a queue still works. Recorded here and nowhere else. [`Control`](super::Control) documents the states.

use core::fmt;

use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::PollError;

const CLOSED: u32 = u32::MAX;
/// The most that one call drops: less than where the count saturates, so that only the first call's count is the total.
const MOST_LOST: u32 = CLOSED - 2;

const FAILED: u32 = 1;
const REPORTED: u32 = 1 << 1;
const ABANDONED: u32 = 1 << 2;
const ADOPTED: u32 = 1 << 3;

/// The two words. Any values are a state.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Health {
    producers: AtomicU32,
    consumer: AtomicU32,
}

/// Whether a queue still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum State {
    /// It works.
    Running,
    /// A completion was pushed when the queue was full.
    Overrun {
        /// How many completions were dropped so far; saturates.
        dropped: u32,
    },
    /// The consumer [failed it](super::Consumer::fail).
    Failed,
    /// The producers are gone. Polls still return what they stored.
    Closed,
}

impl State {
    /// The error of a poll once everything stored was polled; `None` while the queue runs.
    pub(super) const fn error(self) -> Option<PollError> {
        match self {
            Self::Running => None,
            Self::Overrun { dropped } => Some(PollError::Overrun { dropped: Some(dropped) }),
            Self::Failed => Some(PollError::Failed),
            Self::Closed => Some(PollError::Closed),
        }
    }
}

impl Health {
    const_unless_loom! {
        /// The health of a new queue.
        pub(super) const fn new() -> Self {
            Self { producers: AtomicU32::new(0), consumer: AtomicU32::new(0) }
        }
    }

    /// The state, loaded with Acquire: if it is an end, everything that the side which ended the queue did before is
    /// visible, every completion that was stored among it.
    #[inline]
    pub(super) fn state(&self) -> State {
        let producers = sync::read_latch(&self.producers);
        if sync::see_refusal(&self.consumer) & FAILED != 0 {
            return State::Failed;
        }
        match producers {
            0 => State::Running,
            CLOSED => State::Closed,
            dropped => State::Overrun { dropped },
        }
    }

    /// Whether the queue runs, by Relaxed loads. If not, [`state`](Self::state) says more.
    #[inline(always)]
    pub(super) fn is_running(&self) -> bool {
        sync::load_u32(&self.producers) | sync::load_u32(&self.consumer) == 0
    }

    /// Whether the consumer accepts no more completions, by a Relaxed load. A producer that has dropped none checks
    /// nothing else, until it is set.
    #[inline(always)]
    pub(super) fn refuses(&self) -> bool {
        sync::load_u32(&self.consumer) != 0
    }

    /// Whether producers must not store any more. If the consumer accepts none, everything that it did before is
    /// visible.
    pub(super) fn has_ended(&self) -> bool {
        sync::see_refusal(&self.consumer) != 0 || sync::load_u32(&self.producers) != 0
    }

    /// Makes visible what the consumer did before it accepted no more completions. Not inlined: that would cost pushes an
    /// instruction.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[cold]
    #[inline(never)]
    pub(super) fn see_refusal(&self) {
        sync::see_refusal(&self.consumer);
    }

    /// Whether the consumer is gone. If so, everything that it did before is visible.
    pub(super) fn is_abandoned(&self) -> bool {
        sync::see_refusal(&self.consumer) & ABANDONED != 0
    }

    /// Counts `lost` completions, not 0, that the only producer drops.
    #[cold]
    pub(super) fn drop_more(&self, lost: u32) -> Dropped {
        let lost = lost.min(MOST_LOST);
        let total = add(sync::load_u32(&self.producers), lost);
        sync::latch(&self.producers, total);
        Dropped { lost, total }
    }

    /// [`drop_more`](Self::drop_more) with several producers.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[cold]
    pub(super) fn drop_more_shared(&self, lost: u32) -> Dropped {
        let lost = lost.min(MOST_LOST);
        Dropped { lost, total: sync::latch_more(&self.producers, |before| add(before, lost)) }
    }

    /// Records that the last producer is gone. Returns `false` if the queue had already ended.
    #[cold]
    pub(super) fn close(&self) -> bool {
        let ends = !self.has_ended();
        if ends {
            sync::latch(&self.producers, CLOSED);
        }
        ends
    }

    /// Records that the consumer fails the queue.
    #[cold]
    pub(super) fn fail(&self) {
        self.note(FAILED);
    }

    /// Records that a poll reports the end.
    #[cold]
    pub(super) fn report(&self) {
        self.note(REPORTED);
    }

    /// Records that the consumer is gone.
    #[cold]
    pub(super) fn abandon(&self) {
        self.note(ABANDONED);
    }

    /// Whether a poll has reported the end.
    pub(super) fn is_reported(&self) -> bool {
        sync::load_u32(&self.consumer) & REPORTED != 0
    }

    fn note(&self, what: u32) {
        sync::refuse(&self.consumer, sync::load_u32(&self.consumer) | what);
    }

    /// Takes over the state of the queue that this one's queue replaces. ADOPTED tells a producer that already has
    /// cached free slots, because it moved the stored completions over, and so loads only the consumer's word.
    pub(super) fn adopt(&self, old: &Self) {
        let producers = sync::load_u32(&old.producers);
        let ended = if producers == 0 { 0 } else { ADOPTED };
        sync::store_u32(&self.consumer, sync::load_u32(&old.consumer) | ended);
        sync::store_u32(&self.producers, producers);
    }

    pub(super) fn reset(&mut self) {
        sync::store_u32(&self.producers, 0);
        sync::store_u32(&self.consumer, 0);
    }
}

/// Adds to the count of dropped completions, which saturates below [`CLOSED`]. A closed queue stays closed.
fn add(before: u32, lost: u32) -> u32 {
    match before {
        CLOSED => CLOSED,
        before => before.saturating_add(lost).min(CLOSED - 1),
    }
}

/// Completions were dropped because the queue is full or has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Dropped {
    /// How many this call dropped: the last ones of the batch. Saturates at `u32::MAX - 2`.
    pub lost: u32,
    /// How many were dropped so far, including these. Saturates at `u32::MAX - 1`.
    pub total: u32,
}

impl Dropped {
    /// Whether these are the first ones: the moment to report the queue's failure ([O2](crate::contract#o2),
    /// [O4](crate::contract#o4)).
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.lost == self.total
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lost, total } = self;
        write!(
            f,
            "the completion queue is full, has overrun, or its consumer is gone: dropped {lost} now, {total} in all"
        )
    }
}

impl core::error::Error for Dropped {}
