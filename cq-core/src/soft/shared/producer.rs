//! The device's side, of which there are several.

use core::fmt;

use super::Parts;
use crate::ring::shared::{End, Reserved, SharedProducer};
use crate::soft::producer::is_urgent;
use crate::soft::{Alerts, Overrun, Tags};
use crate::sync::{self, Site};
use crate::transport::{CqKey, NoSignal, Signal, sentences};
use crate::wc::Wc;

/// One of several producers; a clone is another one, for another thread.
#[derive(Clone, Debug)]
pub struct Producer<'a, S = NoSignal> {
    pub(super) ring: SharedProducer<'a>,
    pub(super) alerts: &'a Alerts,
    pub(super) tags: Tags<'a>,
    pub(super) key: CqKey,
    pub(super) signal: Option<S>,
}

impl<'a, S: Signal> Producer<'a, S> {
    /// Adds a completion, and raises the event that the consumer armed for, if this is it.
    ///
    /// # Errors
    /// The queue is full, or has been before: the completion is dropped (O3). Or it was resized: the
    /// completion can be pushed again.
    #[inline]
    pub fn push(&mut self, wc: &Wc) -> Result<(), PushError> {
        self.push_with(wc, 0, false)
    }

    /// [`push`](Self::push) with a tag for [`poll_with`](super::Consumer::poll_with), if the queue has
    /// tags, and whether the message was sent SOLICITED, which counts for receives only (N3).
    ///
    /// # Errors
    /// The queue is full, or has been before: the completion is dropped (O3). Or it was resized: the
    /// completion can be pushed again.
    #[inline]
    pub fn push_with(&mut self, wc: &Wc, tag: u32, solicited: bool) -> Result<(), PushError> {
        let reserved = self.ring.reserve(1);
        if let Some(end) = reserved.end {
            return Err(self.refused(end, 1));
        }
        let tags = self.tags;
        self.ring.publish(reserved, core::slice::from_ref(wc), |slot| tags.store(slot, tag));
        self.notify(reserved, || is_urgent(wc, solicited));
        Ok(())
    }

    /// Adds completions that follow each other in the queue, with tag 0, none of them solicited. Slots are
    /// reserved once for all, and one event is raised at most.
    ///
    /// # Errors
    /// The queue has no room for all of them: as many are stored as fit, the rest is dropped, and the queue
    /// has overrun (O3). Or it was full before, or was resized: none is stored.
    pub fn push_batch(&mut self, wcs: &[Wc]) -> Result<(), BatchError> {
        if wcs.is_empty() {
            return Ok(());
        }
        let reserved = self.ring.reserve(wcs.len());
        let (tags, stored) = (self.tags, reserved.count);
        self.ring.publish(reserved, wcs, |slot| tags.store(slot, 0));
        if let Some(end) = reserved.end {
            let lost = u32::try_from(wcs.len() - stored).unwrap_or(u32::MAX);
            return Err(BatchError { stored, why: self.refused(end, lost) });
        }
        self.notify(reserved, || wcs.iter().any(|wc| is_urgent(wc, false)));
        Ok(())
    }

    /// Goes on in the ring that the queue was resized to. Completions that are to stay in order must not
    /// be pushed by another producer meanwhile.
    pub fn follow(&mut self, parts: Parts<'a>) {
        self.ring = parts.shared.producer();
        self.tags = parts.tags;
    }

    #[cold]
    #[inline(never)]
    fn refused(&self, end: End, lost: u32) -> PushError {
        match end {
            End::Resized => PushError::Resized,
            End::Overrun => {
                let dropped = self.alerts.health.drop_several(lost);
                if sync::intact(Site::OverrunWakes) {
                    self.fire(|| true);
                }
                PushError::Overrun(Overrun { dropped })
            }
        }
    }

    #[inline(always)]
    fn notify(&self, reserved: Reserved, urgent: impl Fn() -> bool) {
        self.fire(|| urgent() || self.ring.hides_more(reserved));
    }

    #[inline(always)]
    fn fire(&self, urgent: impl Fn() -> bool) {
        if let Some(signal) = &self.signal {
            sync::push_fence();
            self.alerts.arm.fire_shared(urgent, || signal.raise(self.key));
        }
    }
}

/// Why a completion was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError {
    /// It was dropped, because the queue is full or has been.
    Overrun(Overrun),
    /// The queue was resized: [`follow`](Producer::follow), then push again.
    Resized,
}

sentences!(PushError {
    Self::Overrun(overrun) => ("{overrun}");
    Self::Resized => ("the completion queue was resized: follow it to its new ring and push again");
});

/// Why a batch was not stored whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// How many of it were stored; the next one is the first that was not.
    pub stored: usize,
    /// Why. An overrun counts all that were dropped so far; it is the first if that is the rest of this
    /// batch.
    pub why: PushError,
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "only {} completions of the batch were stored: {}", self.stored, self.why)
    }
}

impl core::error::Error for BatchError {}
