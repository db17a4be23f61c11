//! The application's side: polling, arming, and resizing.
#![allow(unsafe_code)]

use core::fmt;

use super::super::channel::{NoChannel, OnChannel};
use super::super::owner::Owner;
use super::super::ring::{Position, Ref};
use super::super::{self as queue};
use super::reservation::{Refusal, SharedRing, distance};
use super::{NewRing, Shared, Spare};
use crate::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError, sentences};
use crate::wc::Wc;

/// The application's side of a queue with several producers: [`PollCq`], and [`Arm`] where it has a channel.
#[derive(Debug)]
pub struct Consumer<'a, C = NoChannel> {
    /// In the ring that is polled now.
    inner: queue::Consumer<'a, C>,
    ring: SharedRing<'a>,
    /// The ring to go on with, once this one is drained, and where this one ends.
    next: Option<(SharedRing<'a>, Position)>,
    shared: Ref<'a, Shared>,
}

impl<'a, C> Consumer<'a, C> {
    /// # Safety
    /// It is the one consumer of the ring, which is new.
    pub(super) unsafe fn new(
        ring: SharedRing<'a>,
        shared: Ref<'a, Shared>,
        channel: C,
        owner: Owner,
    ) -> Self {
        let SharedRing { ring: slots, gate, promised, .. } = ring;
        let meeting = (gate.part(|gate| &gate.head), shared.part(|shared| &shared.alerts));
        let start = gate.head.acquire();
        // SAFETY: the caller's word.
        let inner =
            unsafe { queue::Consumer::new(slots, meeting, channel, start, promised, owner) };
        Self { inner, ring, next: None, shared }
    }

    /// How many completions it was promised to hold (O1).
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        match &self.next {
            Some((ring, _)) => ring.promised,
            None => self.inner.capacity(),
        }
    }

    /// Moves the queue to other storage. The producers are refused until they [`follow`](super::Producer::follow) to the
    /// ring that this returns. What is not polled yet stays to be polled first, and an arm stays in force.
    ///
    /// # Errors
    /// The queue has overrun, has more completions than the storage can hold (Q12), or has not been polled to the end of
    /// what it had at the last resize. Nothing is changed, and the storage comes back.
    pub fn resize(&mut self, to: Spare<'a>) -> Result<NewRing<'a>, ResizeError<'a>> {
        if self.next.is_some() {
            return Err(ResizeError { why: WhyNot::UnderWay, spare: to });
        }
        let promised = to.ring.promised;
        let after = match self.ring.end(self.inner.position(), promised.into()) {
            Ok(after) => after,
            Err(refusal) => {
                let why = match refusal {
                    Refusal::Ended => WhyNot::Overrun,
                    Refusal::Unpolled(unpolled) => WhyNot::BelowUnpolled { promised, unpolled },
                };
                return Err(ResizeError { why, spare: to });
            }
        };
        let new = NewRing { ring: to.ring.clone(), of: self.shared };
        self.next = Some((to.ring, after));
        self.go_on();
        Ok(new)
    }

    /// Turns to the new ring if there is one and the old one is drained, and says whether it did.
    fn go_on(&mut self) -> bool {
        let here = self.inner.position();
        let Some((ring, _)) = self.next.take_if(|(_, after)| distance(here, *after) == 0) else {
            return false;
        };
        let SharedRing { ring: slots, gate, promised, .. } = ring;
        let start = gate.head.acquire();
        // SAFETY: the storage came as one that nobody has used, and by value; it is kept as long as the queue is in it.
        unsafe { self.inner.go_on_in((slots, gate.part(|gate| &gate.head)), start, promised) };
        self.ring = ring;
        true
    }

    /// A poll while the queue is resized, or once it has ended.
    #[cold]
    fn poll_across(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let state = self.inner.state();
        let mut count = 0;
        if !self.inner.health().is_reported() {
            count = self.inner.take(out);
            while self.go_on() {
                // Fewer than asked means empty, so the new ring is looked at in the same poll (P2).
                count += self.inner.take(&mut out[count..]);
            }
        }
        match state.error() {
            Some(error) if count == 0 && !out.is_empty() && self.is_drained() => {
                Err(self.inner.report(error))
            }
            _ => Ok(count),
        }
    }

    /// Whether nothing is to come any more, once the end was seen.
    fn is_drained(&self) -> bool {
        self.ring.reserved_behind(self.inner.position()) == 0
    }
}

impl<C> PollCq for Consumer<'_, C> {
    // Out of line, an empty poll takes three times as long.
    #[inline(always)]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        if self.next.is_none() {
            if !self.inner.is_empty() {
                return Ok(self.inner.take(out));
            }
            if self.inner.health().is_running() {
                return Ok(0);
            }
        }
        self.poll_across(out)
    }
}

impl Arm for Consumer<'_, OnChannel> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        // In the ring whose next entry will wake: no poll and no resize ends before it has gone on there.
        self.inner.arm(on)
    }

    fn key(&self) -> CqKey {
        self.inner.key()
    }
}

/// Why a queue was not resized, and the storage that it was to have.
#[derive(Debug)]
pub struct ResizeError<'a> {
    /// Why.
    pub why: WhyNot,
    /// The storage.
    pub spare: Spare<'a>,
}

impl fmt::Display for ResizeError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl core::error::Error for ResizeError<'_> {}

/// Why a queue can't be resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyNot {
    /// It has overrun, for ever.
    Overrun,
    /// It has more unpolled completions than it is to hold (Q12).
    BelowUnpolled {
        /// How many it is to hold.
        promised: u32,
        /// How many it has.
        unpolled: u64,
    },
    /// It still has completions from before the last resize.
    UnderWay,
}

sentences!(WhyNot {
    Self::Overrun => ("the completion queue has overrun and can't be resized: destroy it");
    Self::BelowUnpolled { promised, unpolled } => ("{unpolled} completions are not polled yet, more than the {promised} that the queue is to hold: poll them or ask for more");
    Self::UnderWay => ("the last resize is not over: poll what the queue had before it");
});
