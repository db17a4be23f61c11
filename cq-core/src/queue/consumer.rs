//! The consumer: what it is, how it fails the queue, and arming.
#![allow(unsafe_code)]

mod poll;

use super::Alerts;
use super::channel::{FailWakeup, NoChannel, OnChannel, QueueChannel};
use super::end::{ByConsumer, End, Ends};
use super::owner::Owner;
use super::reference::Ref;
use super::ring::{Head, Place, Position, Ring};
use super::slot::{Memory, Own};
use crate::entry::Entry;
use crate::sync;
use crate::transport::{Arm, ArmError, Armed, Capacity, CqKey, Notify};
use crate::wc::Wc;

/// The consumer. Implements [`PollCq`](crate::transport::PollCq), and [`Arm`] if the queue has a channel. Arming a queue
/// without one does not compile:
///
/// ```compile_fail,E0277
/// fn armed(queue: impl cq_core::transport::Arm) {}
/// let mut storage = cq_core::queue::SoftCq::<4>::new();
/// let (_producer, consumer) = storage.split();
/// armed(consumer);
/// ```
#[derive(Debug)]
pub struct Consumer<'a, E: Entry = Wc, C = NoChannel, M: Memory<E> = Own> {
    pub(super) ring: Ring<'a, E, M::Access>,
    pub(super) head: Ref<'a, Head>,
    alerts: Ref<'a, Alerts>,
    channel: C,
    position: Position,
    /// The place at `position`, cached for empty polls. Once the end was reported, one that is never published.
    pub(super) next: Place<'a, E, M::Access>,
    released: Position,
    lag: Position,
    promised: u32,
    /// Whether a poll has found nothing since loads were last [held back](Self::hold_back).
    has_missed: bool,
    /// Whether the last poll of many has found several entries.
    has_found_several: bool,
    owner: Owner,
}

impl<'a, E: Entry, C, M: Memory<E>> Consumer<'a, E, C, M> {
    /// The consumer from `position` on, of a ring with `promised` as its guaranteed capacity.
    ///
    /// # Safety
    /// It is the ring's only consumer until another one resumes at its [`position`](Self::position).
    pub(super) unsafe fn new(
        ring: Ring<'a, E, M::Access>,
        (head, alerts): (Ref<'a, Head>, Ref<'a, Alerts>),
        channel: C,
        position: Position,
        promised: u32,
        owner: Owner,
    ) -> Self {
        head.release(position);
        let next = ring.place(position);
        let next = if alerts.ends.is_reported() { next.never() } else { next };
        let (lag, released) = (lag(ring.storage(), promised), position);
        Self {
            ring,
            head,
            alerts,
            channel,
            position,
            next,
            released,
            lag,
            promised,
            has_missed: false,
            has_found_several: false,
            owner,
        }
    }

    /// The same, of a ring that is full with so many unpolled entries already.
    #[inline(always)]
    pub(super) fn limited(mut self, limit: u32) -> Self {
        self.lag = lag(limit as usize, self.promised);
        self
    }

    /// Continues in another ring.
    ///
    /// # Safety
    /// It is the only consumer of that ring, whose entries start at `position`.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    pub(super) unsafe fn switch_to(
        &mut self,
        (ring, head): (Ring<'a, E, M::Access>, Ref<'a, Head>),
        position: Position,
        promised: u32,
    ) {
        (self.ring, self.head, self.position, self.released) = (ring, head, position, position);
        self.next = ring.place(position);
        (self.lag, self.promised) = (lag(ring.storage(), promised), promised);
    }

    /// The number of entries polled, wrapping.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The guaranteed capacity, in entries ([O1](crate::contract#o1)).
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.promised as usize
    }

    crate::polled_without_import!(E);

    /// Whether there is nothing to poll.
    ///
    /// # Staleness
    /// Only a poll makes `false` become `true`.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.next.is_published()
    }

    /// The number of entries that can be polled. Loads a slot for each of them.
    ///
    /// # Staleness
    /// There may be more by now, never fewer.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let positions =
            (0..self.ring.storage()).map(|nth| self.position.wrapping_add(nth as Position));
        positions.take_while(|&position| self.ring.place(position).is_published()).count()
    }

    /// How the queue has ended, if it has. Polls still return what is stored.
    ///
    /// # Staleness
    /// It may end at any time.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.ends().end()
    }

    /// What keeps the queue's storage alive.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    pub(super) fn owner(&self) -> Owner {
        self.owner.clone()
    }

    pub(super) fn ends(&self) -> &Ends {
        &self.alerts.ends
    }
}

impl<E: Entry, C: QueueChannel, M: Memory<E>> Consumer<'_, E, C, M> {
    /// Marks the queue failed, for example because the process that pushed has died. Polls return the stored
    /// entries, then [`PollError::Failed`](crate::transport::PollError::Failed) ([S4](crate::contract#s4)). A queue that has ended
    /// before stays as it ended ([O3](crate::contract#o3)).
    ///
    /// Raises an event the first time, for a thread that waits for the queue: armed or not, because a producer that died may have
    /// disarmed the queue and not have raised the event. A consumer without a signal raises none. Then the caller has to,
    /// if another thread may wait: it is the consumer of a [raw](super::raw) queue with [`OnChannel::named`], or the
    /// target has no compare-and-swap.
    pub fn fail(&mut self) {
        self.mark_failed().wake();
    }

    /// [`fail`](Self::fail) for a caller who holds a lock: marks the queue failed, and returns the wake-up that is due, to be
    /// raised when the lock is released. A task that is woken may be polled at once.
    ///
    /// ```
    /// use cq_core::entry::Entry;
    /// use cq_core::queue::{QueueChannel, Consumer};
    /// use cq_core::shared_cq::SharedCq;
    ///
    /// fn fail<E: Entry, C: QueueChannel>(shared: &SharedCq<Consumer<'_, E, C>>) {
    ///     let wakeup = shared.lock().get_mut().mark_failed(); // the lock is released here
    ///     wakeup.wake();
    /// }
    /// ```
    pub fn mark_failed(&mut self) -> FailWakeup<C> {
        if self.end().is_none() {
            self.ends().record(ByConsumer::Fail);
        }
        FailWakeup(self.channel.take_signal())
    }
}

impl<E: Entry, C, M: Memory<E>> Capacity for Consumer<'_, E, C, M> {
    fn capacity(&self) -> usize {
        self.capacity()
    }
}

impl<E: Entry, S, M: Memory<E>> Arm for Consumer<'_, E, OnChannel<S>, M> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.alerts.arm.arm(on);
        sync::arm_fence();
        let quiet = self.is_empty() && self.ends().is_running();
        Ok(if quiet { Armed::Armed } else { Armed::MayHaveMissed })
    }

    fn key(&self) -> CqKey {
        self.channel.key
    }
}

impl<E: Entry, C, M: Memory<E>> Drop for Consumer<'_, E, C, M> {
    fn drop(&mut self) {
        if self.owner.is_last() {
            self.ends().record(ByConsumer::Leave);
        }
    }
}

/// The number of polled slots that may stay unreleased: as many as the guaranteed capacity allows, at most a quarter of
/// those that are used. None on a small target, where that spares no cache line.
pub(super) const fn lag(used: usize, promised: u32) -> Position {
    if sync::IS_SMALL {
        return 0;
    }
    let slack = (used as Position).saturating_sub(promised as Position);
    let quarter = used as Position / 4;
    if slack < quarter { slack } else { quarter }
}
