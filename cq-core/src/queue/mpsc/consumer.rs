//! The consumer: polling, arming, and resizing.
#![allow(unsafe_code)]

use super::super::channel::{FailWakeup, NoChannel, OnChannel, QueueChannel};
use super::super::owner::Owner;
use super::super::reference::Ref;
use super::super::ring::Position;
use super::reservation::{ResizeErrorKind, SharedRing, distance};
use super::{NewRing, Shared, Spare};
use crate::entry::Entry;
use crate::queue::{self, End};
use crate::transport::{Arm, ArmError, Armed, Capacity, CqKey, Notify, PollCq, PollError};
use crate::wc::Wc;
use crate::{of_target, sentences};

/// The consumer of a queue with several producers. Implements [`PollCq`], and [`Arm`] if the queue has a channel.
#[derive(Debug)]
pub struct SharedConsumer<'a, E: Entry = Wc, C = NoChannel> {
    /// The consumer of the current ring.
    inner: queue::Consumer<'a, E, C>,
    ring: SharedRing<'a, E>,
    /// The ring to switch to once the current one is drained, and the final position of the current one.
    next: Option<(SharedRing<'a, E>, Position)>,
    shared: Ref<'a, Shared>,
}

impl<'a, E: Entry, C> SharedConsumer<'a, E, C> {
    /// # Safety
    /// It is the only consumer of the ring, which is new.
    pub(super) unsafe fn new(
        ring: SharedRing<'a, E>,
        shared: Ref<'a, Shared>,
        channel: C,
        owner: Owner,
    ) -> Self {
        let SharedRing { ring: slots, gate, promised, .. } = ring;
        let parts = (gate.part(|gate| &gate.head), shared.part(|shared| &shared.alerts));
        let start = gate.head.acquire();
        // SAFETY: it is the only consumer of the ring, whose first entry is at its head (guaranteed by the caller).
        let inner = unsafe { queue::Consumer::new(slots, parts, channel, start, promised, owner) };
        Self { inner, ring, next: None, shared }
    }

    /// The guaranteed capacity, in entries ([O1](crate::contract#o1)).
    #[must_use]
    pub const fn capacity(&self) -> usize {
        match &self.next {
            Some((ring, _)) => ring.promised as usize,
            None => self.inner.capacity(),
        }
    }

    crate::polled_without_import!(E);

    /// Whether there is nothing to poll.
    ///
    /// # Staleness
    /// Only a poll makes `false` become `true`.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// The number of entries that can be polled: all before the first that is not published yet. While the queue is being
    /// resized, those of the old storage. Loads a slot for each of them.
    ///
    /// # Staleness
    /// There may be more by now, never fewer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// How the queue has ended, if it has. Polls still return what is stored.
    ///
    /// # Staleness
    /// It may end at any time.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.inner.end()
    }

    /// Moves the queue to other storage. Producers are refused until they [`follow`](super::SharedProducer::follow) to the
    /// returned ring. Unpolled entries are kept and polled first, and an arm stays in force.
    ///
    /// # Errors
    /// The queue has overrun, has more unpolled entries than the storage can hold ([Q12](crate::contract#q12)), or
    /// still has unpolled ones from before the last resize. Nothing is changed, and the storage is returned.
    pub fn resize(&mut self, to: Spare<'a, E>) -> Result<NewRing<'a, E>, ResizeRingError<'a, E>> {
        if self.next.is_some() {
            return Err(ResizeRingError { why: ResizeErrorKind::UnderWay, spare: to });
        }
        let after = match self.ring.end(self.inner.position(), to.ring.promised) {
            Ok(after) => after,
            Err(why) => return Err(ResizeRingError { why, spare: to }),
        };
        let new = NewRing { ring: to.ring.clone(), of: self.shared, _queue: self.inner.owner() };
        self.next = Some((to.ring, after));
        self.switch_ring();
        Ok(new)
    }

    /// Switches to the new ring if there is one and the old one is drained. Returns whether it did.
    fn switch_ring(&mut self) -> bool {
        let here = self.inner.position();
        let Some((ring, _)) = self.next.take_if(|(_, after)| distance(here, *after) == 0) else {
            return false;
        };
        let SharedRing { ring: slots, gate, promised, .. } = ring;
        let start = gate.head.acquire();
        // SAFETY: the ring was passed by value as a `Spare`, which no other queue uses, so this is its only consumer.
        // `self.ring` keeps it alive.
        unsafe { self.inner.switch_to((slots, gate.part(|gate| &gate.head)), start, promised) };
        self.ring = ring;
        true
    }

    /// Polls while the queue is being resized, or once it has ended.
    #[cold]
    fn poll_across(&mut self, out: &mut [E]) -> Result<usize, PollError> {
        let end = self.inner.end();
        let mut count = 0;
        if !self.inner.ends().is_reported() {
            count = self.inner.take(out);
            while self.switch_ring() {
                // Fewer than asked for means empty, so the new ring is polled in the same call (P2).
                count += self.inner.take(&mut out[count..]);
            }
        }
        match end {
            Some(end) if count == 0 && !out.is_empty() && self.is_drained() => {
                Err(self.inner.report(end))
            }
            _ => Ok(count),
        }
    }

    /// Whether every reserved entry was polled. Valid once the end was seen.
    fn is_drained(&self) -> bool {
        self.ring.reserved_after(self.inner.position()) == 0
    }
}

impl<E: Entry, C> Capacity for SharedConsumer<'_, E, C> {
    fn capacity(&self) -> usize {
        Self::capacity(self)
    }
}

impl<E: Entry, C> PollCq for SharedConsumer<'_, E, C> {
    type Entry = E;

    // Not inlined, an empty poll takes three times as long.
    #[inline(always)]
    fn poll_into(&mut self, out: &mut [E]) -> Result<usize, PollError> {
        if self.next.is_none() {
            if let Some(count) = self.inner.poll_running(out) {
                return Ok(count);
            }
        }
        self.poll_across(out)
    }

    // While the queue is being resized, of the old storage.
    of_target! { self.inner; holds_more_than(&self, count: usize) -> bool; }
}

impl<E: Entry, C: QueueChannel> SharedConsumer<'_, E, C> {
    /// Marks the queue failed, and raises an event, armed or not. Polls return the stored entries, then
    /// [`PollError::Failed`] ([S4](crate::contract#s4)).
    pub fn fail(&mut self) {
        self.inner.fail();
    }

    /// Marks the queue failed, and returns the wake-up that is due: as
    /// [`mark_failed`](queue::Consumer::mark_failed) of a queue with one producer.
    pub fn mark_failed(&mut self) -> FailWakeup<C> {
        self.inner.mark_failed()
    }
}

impl<E: Entry, S> Arm for SharedConsumer<'_, E, OnChannel<S>> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        // `inner` is in the ring of the next entry: a poll or a resize that finds a ring drained switches before it
        // returns.
        self.inner.arm(on)
    }

    of_target! { self.inner; key(&self) -> CqKey; }
}

/// A queue was not resized.
///
/// ```
/// use cq_core::queue::mpsc::{ResizeErrorKind, ResizeRingError, Ring, SoftCq};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let (mut storage, mut smaller) = (SoftCq::<4>::new(), Ring::<2>::new());
/// let (mut producer, mut consumer) = storage.split();
/// producer.push_batch(&[Wc::new(7, WcStatus::SUCCESS, 5); 3])?;
/// let ResizeRingError { why, spare } = consumer.resize(smaller.spare()).unwrap_err();
/// assert_eq!(why, ResizeErrorKind::BelowUnpolled { promised: 2, unpolled: 3 });
/// consumer.poll(&mut [Wc::default(); 4])?;
/// assert!(consumer.resize(spare).is_ok()); // the same storage
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ResizeRingError<'a, E: Entry = Wc> {
    /// The reason.
    pub why: ResizeErrorKind,
    /// The storage that was to be used.
    pub spare: Spare<'a, E>,
}

sentences!(@['a, E: Entry] ResizeRingError<'a, E> { Self { why, .. } => ("{why}"); });
