//! The application's side: polling, arming, and resizing.

use super::Parts;
use crate::health::State;
use crate::ring::shared::{Refusal, SharedRing, distance};
use crate::ring::{self, Position};
use crate::soft::consumer::Look;
use crate::soft::parts::lag;
use crate::soft::{self, Tags};
use crate::sync::{self, Site};
use crate::transport::{Arm, ArmError, Armed, CqKey, Notify, Poll, PollError, sentences};
use crate::wc::Wc;

/// The application's side of a queue with several producers: [`Poll`] and [`Arm`].
#[derive(Debug)]
pub struct Consumer<'a> {
    /// Of the ring that is polled now.
    pub(super) inner: soft::Consumer<'a>,
    pub(super) shared: SharedRing<'a>,
    /// The ring to go on with, once this one is drained.
    pub(super) next: Option<Next<'a>>,
}

#[derive(Debug)]
pub(super) struct Next<'a> {
    ring: ring::Consumer<'a>,
    shared: SharedRing<'a>,
    tags: Tags<'a>,
    /// Where the ring that is polled now ends.
    after: Position,
}

impl<'a> Consumer<'a> {
    /// [`poll`](Poll::poll), calling `each` with every completion and its tag (0 in a queue without
    /// tags). The slots have been given back by then, so `each` may let the device push as many more (O7).
    ///
    /// # Errors
    /// [`PollError::Overrun`], once everything that was stored has been handed out (O3).
    #[inline]
    pub fn poll_with(
        &mut self,
        out: &mut [Wc],
        mut each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        self.poll_by(out, |inner, out| inner.take_tagged(out, &|_| true, &mut each))
    }

    /// How many completions it was promised to hold (O1).
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.inner.capacity()
    }

    /// Moves the queue to other storage. The producers are refused until they
    /// [`follow`](super::Producer::follow) to the same parts. What is not polled yet stays to be polled
    /// first, and an arm stays in force.
    ///
    /// # Errors
    /// The queue has overrun, has more completions than the parts can hold (Q12), or has not been polled to
    /// the end of what it had at the last resize. Nothing is changed.
    pub fn resize(&mut self, parts: Parts<'a>) -> Result<(), ResizeError> {
        self.go_on();
        if self.next.is_some() {
            return Err(ResizeError::UnderWay);
        }
        let Parts { shared, tags, promised } = parts;
        let here = self.inner.ring.position();
        let after = self.shared.end(here, promised.into()).map_err(|refusal| match refusal {
            Refusal::Ended => ResizeError::Overrun,
            Refusal::Unpolled(unpolled) => ResizeError::BelowUnpolled { promised, unpolled },
        })?;
        let ring = shared.consumer(lag(shared.ring.storage(), promised));
        self.next = Some(Next { ring, shared, tags, after });
        self.inner.promised = promised;
        self.go_on();
        Ok(())
    }

    /// Turns to the new ring if there is one and the old one is drained, and says whether it did. After a
    /// poll there is nothing to do, unless it ended in a panic of the caller's.
    fn go_on(&mut self) -> bool {
        let here = self.inner.ring.position();
        let drained = |next: &mut Next<'_>| {
            distance(here, next.after) == 0 || !sync::intact(Site::DrainBeforeNew)
        };
        let Some(next) = self.next.take_if(drained) else { return false };
        self.inner.ring = next.ring;
        self.inner.tags = next.tags;
        self.shared = next.shared;
        true
    }

    #[inline(always)]
    fn poll_by(
        &mut self,
        out: &mut [Wc],
        mut take: impl FnMut(&mut soft::Consumer<'a>, &mut [Wc]) -> usize,
    ) -> Result<usize, PollError> {
        if self.next.is_some() {
            return self.poll_across(out, take);
        }
        match self.inner.look() {
            Look::Empty => Ok(0),
            Look::Ready => Ok(take(&mut self.inner, out)),
            Look::Overrun { .. } => self.poll_across(out, take),
        }
    }

    /// [`poll_by`](Self::poll_by) while the queue is resized, or once it has overrun.
    #[cold]
    fn poll_across(
        &mut self,
        out: &mut [Wc],
        mut take: impl FnMut(&mut soft::Consumer<'a>, &mut [Wc]) -> usize,
    ) -> Result<usize, PollError> {
        let mut count = take(&mut self.inner, out);
        while self.go_on() {
            // Fewer than asked means empty, so the new ring is looked at in the same poll (P2).
            count += take(&mut self.inner, &mut out[count..]);
        }
        match self.inner.alerts.health.state() {
            State::Overrun { dropped } if count == 0 && !out.is_empty() && self.is_at_end() => {
                Err(PollError::Overrun { dropped: Some(dropped) })
            }
            _ => Ok(count),
        }
    }

    /// Whether nothing is to come any more, once the overrun was seen.
    fn is_at_end(&self) -> bool {
        !sync::intact(Site::DrainToTail) || self.shared.is_drained(self.inner.ring.position())
    }
}

impl Poll for Consumer<'_> {
    // Out of line, an empty poll takes three times as long.
    #[inline(always)]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.poll_by(out, |inner, out| inner.ring.take(out))
    }
}

impl Arm for Consumer<'_> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        // The look after the arm is at the ring whose next entry will wake.
        self.go_on();
        self.inner.arm(on)
    }

    fn key(&self) -> CqKey {
        self.inner.key()
    }
}

/// Why a queue can't be resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResizeError {
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

sentences!(ResizeError {
    Self::Overrun => ("the completion queue has overrun and can't be resized: destroy it");
    Self::BelowUnpolled { promised, unpolled } => ("{unpolled} completions are not polled yet, more than the {promised} that the queue is to hold: poll them or ask for more");
    Self::UnderWay => ("the last resize is not over: poll what the queue had before it");
});
