//! Whether a queue still works: the one place that knows it.
//!
//! # States
//! Two words, each written by one side.
//!
//! | word of the producers | means | left by |
//! |---|---|---|
//! | 0 | completions come | a producer |
//! | n, below the largest number | n completions were dropped; saturates | a producer, that drops more |
//! | the largest number | the producers are gone | nobody |
//!
//! | bit of the consumer's word | means |
//! |---|---|
//! | FAILED | the consumer has given the queue up |
//! | REPORTED | a poll has reported the end: nothing is handed out any more |
//! | ABANDONED | the consumer is gone |
//! | ADOPTED | the queue replaces one whose producers' word was not 0 |
//!
//! No bit is ever taken back, so whoever looks, also a side that is made anew, finds that the queue has ended (O3).
//! A producer that believes to have room looks at the consumer's word alone: before it
//! believes so, it has looked at both, and what producers drop makes it disbelieve.

use core::fmt;

use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::PollError;

const CLOSED: u32 = u32::MAX;

const FAILED: u32 = 1;
const REPORTED: u32 = 1 << 1;
const ABANDONED: u32 = 1 << 2;
const ADOPTED: u32 = 1 << 3;

/// The words. Any numbers in them are a state.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Health {
    producers: AtomicU32,
    consumer: AtomicU32,
}

/// Whether a queue still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It does.
    Running,
    /// A completion came when the queue was full.
    Overrun {
        /// How many were dropped so far; saturates.
        dropped: u32,
    },
    /// It was [given up](super::Consumer::fail).
    Failed,
    /// Its producers are gone; what they stored is still handed out.
    Closed,
}

impl State {
    /// What a poll says once everything is handed out; `None` while the queue works.
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
        /// A queue that works.
        pub(super) const fn new() -> Self {
            Self { producers: AtomicU32::new(0), consumer: AtomicU32::new(0) }
        }
    }

    /// What the consumer sees. Once the queue has ended, every completion that was stored before can be seen too.
    #[inline]
    pub(super) fn state(&self) -> State {
        let producers = sync::read_latch(&self.producers);
        if sync::load_u32(&self.consumer) & FAILED != 0 {
            return State::Failed;
        }
        match producers {
            0 => State::Running,
            CLOSED => State::Closed,
            dropped => State::Overrun { dropped },
        }
    }

    /// Whether the queue works, as far as the consumer sees; if not, [`state`](Self::state) says more.
    #[inline(always)]
    pub(super) fn is_running(&self) -> bool {
        sync::load_u32(&self.producers) | sync::load_u32(&self.consumer) == 0
    }

    /// Whether the consumer takes nothing more; all that a producer asks which has dropped nothing itself.
    #[inline(always)]
    pub(super) fn refuses(&self) -> bool {
        sync::load_u32(&self.consumer) != 0
    }

    /// Whether a producer must store nothing more.
    pub(super) fn has_ended(&self) -> bool {
        sync::load_u32(&self.producers) != 0 || self.refuses()
    }

    /// Whether the consumer is gone.
    pub(super) fn is_abandoned(&self) -> bool {
        sync::load_u32(&self.consumer) & ABANDONED != 0
    }

    /// The one producer drops `lost` completions, not 0. Says how many that makes.
    #[cold]
    pub(super) fn drop_more(&self, lost: u32) -> Dropped {
        let total = add(sync::load_u32(&self.producers), lost);
        sync::latch(&self.producers, total);
        Dropped { lost, total }
    }

    /// [`drop_more`](Self::drop_more) of one producer among several.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[cold]
    pub(super) fn drop_more_shared(&self, lost: u32) -> Dropped {
        Dropped { lost, total: sync::latch_more(&self.producers, |before| add(before, lost)) }
    }

    /// The last producer goes. Says whether that ends the queue, or it had ended before.
    #[cold]
    pub(super) fn close(&self) -> bool {
        let ends = !self.has_ended();
        if ends {
            sync::latch(&self.producers, CLOSED);
        }
        ends
    }

    /// The consumer gives the queue up.
    #[cold]
    pub(super) fn fail(&self) {
        self.note(FAILED);
    }

    /// A poll reports the end.
    #[cold]
    pub(super) fn report(&self) {
        self.note(REPORTED);
    }

    /// The consumer goes.
    #[cold]
    pub(super) fn abandon(&self) {
        self.note(ABANDONED);
    }

    /// Whether a poll has reported the end.
    pub(super) fn is_reported(&self) -> bool {
        sync::load_u32(&self.consumer) & REPORTED != 0
    }

    fn note(&self, what: u32) {
        sync::store_u32(&self.consumer, sync::load_u32(&self.consumer) | what);
    }

    /// Takes over what became of the queue that this one's queue replaces. A producer here may believe to have room: it has
    /// moved what was stored there.
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

/// Counts what was dropped, short of [`CLOSED`]; a queue that is closed stays so.
fn add(before: u32, lost: u32) -> u32 {
    match before {
        CLOSED => CLOSED,
        before => before.saturating_add(lost).min(CLOSED - 1),
    }
}

/// Completions were dropped, because the queue is full, or has ended before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// How many this call dropped: the last ones of a batch.
    pub lost: u32,
    /// How many were dropped so far, these included; saturates.
    pub total: u32,
}

impl Dropped {
    /// Whether these are the first: the moment to report the queue's failure (O2, O4).
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
            "the completion queue is full or has ended: {lost} completions were dropped, {total} so far"
        )
    }
}

impl core::error::Error for Dropped {}
