//! The device's side: pushing, and raising what the consumer armed for.

use core::fmt;

use super::{Alerts, Tags};
use crate::ring::{self, Full, Tail};
use crate::sync::{self, Site};
use crate::transport::{CqKey, NoSignal, Signal};
use crate::wc::Wc;

/// The device's side.
///
/// There is one, and pushing takes it by `&mut`; a second one does not compile:
/// ```compile_fail
/// let mut queue = cq_core::soft::SoftCq::<4>::new();
/// let (mut producer, _consumer) = queue.split();
/// let mut second = producer.clone();
/// ```
#[derive(Debug)]
pub struct Producer<'a, S = NoSignal> {
    pub(super) ring: ring::Producer<'a>,
    pub(super) alerts: &'a Alerts,
    pub(super) tags: Tags<'a>,
    pub(super) key: CqKey,
    pub(super) signal: Option<S>,
}

impl<S: Signal> Producer<'_, S> {
    /// Adds a completion, and raises the event that the consumer armed for, if this is it.
    ///
    /// # Errors
    /// The queue is full, or has been before: the completion is dropped (O3).
    #[inline]
    pub fn push(&mut self, wc: &Wc) -> Result<(), Overrun> {
        self.push_with(wc, 0, false)
    }

    /// [`push`](Self::push) with a tag for [`poll_with`](super::Consumer::poll_with), if the queue has
    /// tags, and whether the message was sent SOLICITED, which counts for receives only (N3).
    ///
    /// # Errors
    /// The queue is full, or has been before: the completion is dropped (O3).
    #[inline]
    pub fn push_with(&mut self, wc: &Wc, tag: u32, solicited: bool) -> Result<(), Overrun> {
        if self.store(wc, tag).is_err() {
            return Err(self.overrun());
        }
        self.notify(|| is_urgent(wc, solicited));
        Ok(())
    }

    /// [`push_with`](Self::push_with) of several, for one look at what the consumer armed for, and so one
    /// event at most.
    ///
    /// # Errors
    /// The queue has no room for all of them, or was full before: what does not fit is dropped (O3). The
    /// count is that of the first one dropped here.
    #[inline]
    pub fn push_batch<'w>(
        &mut self,
        entries: impl IntoIterator<Item = &'w Entry, IntoIter: Clone>,
    ) -> Result<(), Overrun> {
        let mut entries = entries.into_iter();
        let (mut urgent, mut pushed) = (false, Ok(()));
        let (all, tags) = (entries.clone().map(|entry| (&entry.wc, entry.tag)), self.tags);
        let stored = self.ring.push_run(all, |slot, tag| tags.store(slot, tag));
        for entry in entries.by_ref().take(stored) {
            urgent |= entry.is_urgent();
        }
        for _ in entries {
            let overrun = self.overrun();
            pushed = pushed.and(Err(overrun));
        }
        if stored > 0 {
            self.notify(|| urgent);
        }
        pushed
    }

    /// [`push_batch`](Self::push_batch) of as many as there is room for, and says how many that is. The rest is
    /// the caller's to drop: the queue does not overrun, and what comes later is stored once there is room.
    #[inline]
    pub fn push_fitting<'w>(
        &mut self,
        entries: impl IntoIterator<Item = &'w Entry, IntoIter: Clone>,
    ) -> usize {
        let (entries, tags) = (entries.into_iter(), self.tags);
        let all = entries.clone().map(|entry| (&entry.wc, entry.tag));
        let stored = self.ring.push_run(all, |slot, tag| tags.store(slot, tag));
        if stored > 0 {
            self.notify(|| entries.take(stored).any(Entry::is_urgent));
        }
        stored
    }

    /// How many completions there is memory for.
    #[must_use]
    pub const fn storage(&self) -> usize {
        self.ring.storage()
    }

    /// Where another producer of this queue can go on.
    #[must_use]
    pub const fn tail(&self) -> Tail {
        self.ring.tail()
    }

    #[inline(always)]
    fn store(&mut self, wc: &Wc, tag: u32) -> Result<(), Full> {
        let tags = self.tags;
        self.ring.push_after(wc, |slot| tags.store(slot, tag))
    }

    #[cold]
    #[inline(never)]
    fn overrun(&mut self) -> Overrun {
        self.ring.close();
        let dropped = self.alerts.health.drop_one();
        if sync::intact(Site::OverrunWakes) {
            self.notify(|| true);
        }
        Overrun { dropped }
    }

    #[inline(always)]
    fn notify(&self, urgent: impl FnOnce() -> bool) {
        if let Some(signal) = &self.signal {
            sync::push_fence();
            self.alerts.arm.fire(urgent(), || signal.raise(self.key));
        }
    }
}

/// What [`Producer::push_with`] takes, to push several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The completion.
    pub wc: Wc,
    /// What [`poll_with`](super::Consumer::poll_with) hands back with it, if the queue has tags.
    pub tag: u32,
    /// Whether the message was sent SOLICITED, which counts for receives only (N3).
    pub solicited: bool,
}

impl Entry {
    /// Whether it is what a consumer that armed for solicited completions waits for (N3).
    #[inline]
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        is_urgent(&self.wc, self.solicited)
    }
}

/// What a consumer that armed for solicited completions wakes up for: a solicited receive, and any
/// failure, but never a successful send (N3).
pub(super) fn is_urgent(wc: &Wc, solicited: bool) -> bool {
    match wc.result() {
        Ok(done) => solicited && done.is_recv(),
        Err(_) => true,
    }
}

/// The completion was dropped, because the queue is full or has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// How many have been dropped so far; 1 is the moment to report the queue's failure.
    pub dropped: u32,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the completion queue overran and dropped {} completions", self.dropped)
    }
}

impl core::error::Error for Overrun {}
