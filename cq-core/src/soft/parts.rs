//! A queue in borrowed storage, from which its sides are made.

use core::fmt;

use super::{Consumer, Control, Producer, Tag, Tags};
use crate::health::State;
use crate::ring::{CapacityError, Position, Ring, Slot, Tail};
use crate::transport::{CqKey, Signal};
use crate::wc::Wc;

/// A queue whose storage is borrowed: a static, shared memory, a DMA area.
///
/// Copies are the same queue: it must have one producer at a time and one consumer. Two of either lose and
/// forge completions, but do no other harm.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    pub(super) control: &'a Control,
    pub(super) slots: &'a [Slot],
    pub(super) tags: &'a [Tag],
    pub(super) promised: u32,
}

impl<'a> Parts<'a> {
    /// A queue in this storage that is to hold `promised` completions. A device that wants no tags gives
    /// none: writing them costs it another cache line.
    ///
    /// # Errors
    /// The storage is no power of two, too small, too large, or there are tags, but not one a slot.
    #[inline]
    pub fn new(
        control: &'a Control,
        slots: &'a [Slot],
        tags: &'a [Tag],
        promised: u32,
    ) -> Result<Self, CapacityError> {
        check_storage(slots, tags, promised)?;
        Ok(Self { control, slots, tags, promised })
    }

    /// The producer, from `tail` on; without a signal it spends nothing on events.
    #[must_use]
    pub fn producer<S: Signal>(self, tail: Tail, key: CqKey, signal: Option<S>) -> Producer<'a, S> {
        Producer {
            ring: self.ring().producer(tail),
            alerts: &self.control.alerts,
            tags: Tags(self.tags),
            key,
            signal,
        }
    }

    /// The consumer, from `position` on; `events` says whether the producer has a signal.
    #[must_use]
    pub fn consumer(self, position: Position, key: CqKey, events: bool) -> Consumer<'a> {
        let lag = lag(self.slots.len(), self.promised);
        Consumer {
            ring: self.ring().consumer(position, lag),
            alerts: &self.control.alerts,
            tags: Tags(self.tags),
            key,
            events,
            promised: self.promised,
        }
    }

    /// Where the producer goes on if the last one stopped at any instant, even inside a push: a process that
    /// was killed. `tail` is a place where one stood before it stored as much as a whole ring. Hands each
    /// completion that was published since, with its tag, to `each`, oldest first; whatever the memory
    /// holds, those are no more than the storage.
    ///
    /// What it was to wake may sleep on: its event may have been disarmed and not been raised. So raise it,
    /// armed or not; whoever wakes to nothing sleeps again (N5).
    ///
    /// ```
    /// use cq_core::ring::{Slot, Tail};
    /// use cq_core::soft::{Control, Parts};
    /// use cq_core::transport::{CqKey, NoSignal, Poll};
    /// use cq_core::wc::{Wc, WcStatus};
    ///
    /// let (control, slots) = (Control::new(), [const { Slot::new() }; 4]);
    /// let parts = Parts::new(&control, &slots, &[], 4)?;
    /// let key = CqKey { index: 0, generation: 1 };
    /// let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5);
    ///
    /// // Gone before anybody has kept its tail.
    /// parts.producer(Tail::default(), key, None::<NoSignal>).push(&wc(1))?;
    ///
    /// let mut found = 0;
    /// let tail = parts.recover(Tail::default(), |_, _| found += 1);
    /// assert_eq!((found, tail.position()), (1, 1));
    /// parts.producer(tail, key, None::<NoSignal>).push(&wc(2))?;
    /// assert_eq!(parts.consumer(0, key, false).poll(&mut [Wc::default(); 4])?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn recover(self, tail: Tail, mut each: impl FnMut(&Wc, u32)) -> Tail {
        let tags = Tags(self.tags);
        let tail = self.ring().recover(tail, |wc, slot| each(wc, tags.load(slot)));
        tail.with_closed(self.control.state() != State::Running)
    }

    /// What the sides share besides the slots.
    #[must_use]
    pub const fn control(&self) -> &'a Control {
        self.control
    }

    fn ring(&self) -> Ring<'a> {
        Ring::of(self.slots, &self.control.head)
    }
}

impl fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = f.debug_struct("Parts");
        parts.field("promised", &self.promised).field("ring", &self.ring()).finish_non_exhaustive()
    }
}

/// Whether a queue may have this storage and this promise.
pub(super) fn check_storage(
    slots: &[Slot],
    tags: &[Tag],
    promised: u32,
) -> Result<(), CapacityError> {
    CapacityError::check_storage(slots.len())?;
    if promised == 0 {
        return Err(CapacityError::Zero);
    }
    if promised as usize > slots.len() {
        return Err(CapacityError::MoreThanStorage { promised, storage: slots.len() });
    }
    if !tags.is_empty() && tags.len() != slots.len() {
        return Err(CapacityError::TagsDiffer { tags: tags.len(), slots: slots.len() });
    }
    Ok(())
}

/// How late slots are given back: as late as the promise allows, but not later than a quarter of the ring.
pub(super) const fn lag(storage: usize, promised: u32) -> u32 {
    let (slack, quarter) = (storage as u32 - promised, storage as u32 / 4);
    if slack < quarter { slack } else { quarter }
}
