//! Whether a queue has ended, and how. Recorded here and nowhere else: [`End`] documents the words and their encodings. And
//! what a push says that could not store everything.

use crate::sentences;
use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::PollError;

const CLOSED: u32 = u32::MAX;
/// The most that one call drops: less than where the count saturates, so that only the first call's count is the total.
const MOST_LOST: u32 = CLOSED - 2;

/// The bits of the consumer's word.
const FAILED: u32 = ByConsumer::Fail as u32;
const REPORTED: u32 = ByConsumer::Report as u32;
const ABANDONED: u32 = ByConsumer::Leave as u32;
const ADOPTED: u32 = 1 << 3;

/// How a queue has ended, for good. Its sides return it as `Option<End>`, which is `None` while the queue runs.
///
/// A queue ends once: it stays as it ended first, except that one whose consumer is gone is abandoned, however it ended
/// before. If the consumer fails a queue while a producer overruns it, the queue has failed, and an
/// overrun may have been reported to that producer.
///
/// # Encoding
/// Two words, so that neither side needs a read-modify-write. The queue runs exactly while both are 0.
///
/// | producers' word | meaning | changed by |
/// |---|---|---|
/// | 0 | the queue runs, as far as producers are concerned | a producer: to n as it drops n entries, to `u32::MAX` as the last one is dropped |
/// | n, less than `u32::MAX` | n entries were dropped | a producer that drops k more: to n + k, at most `u32::MAX - 1` |
/// | `u32::MAX` | the producers are gone | nobody |
///
/// | bit of the consumer's word | meaning | set by |
/// |---|---|---|
/// | FAILED | the consumer has failed the queue | [`Consumer::fail`](super::Consumer::fail), if it finds that the queue has not ended |
/// | REPORTED | a poll has reported the end: later polls return no entry | that poll |
/// | ABANDONED | the consumer is gone | dropping it |
/// | ADOPTED | the queue replaces one whose producers' word was not 0 | creating it |
///
/// Neither word becomes 0 again while the queue has sides, so every side, also one that is created later, finds that the queue
/// has ended ([O3](crate::contract#o3), [S5](crate::contract#s5)). Splitting a queue anew starts a new one; a raw queue that
/// replaces another starts with the other's words.
///
/// A producer that has cached free slots loads only the consumer's word. A single producer loads both when it caches its
/// limit, and clears the limit when it drops an entry. Several producers close the reservation word before they drop one,
/// unless the consumer's word is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum End {
    /// The consumer was dropped: what is stored, or would be, is never polled ([S3](crate::contract#s3)).
    Abandoned,
    /// A device [pushed](super::Producer::push_or_overrun) an entry when the queue was full ([O3](crate::contract#o3)).
    Overrun {
        /// How many entries were dropped. There may be more by now. Saturates at `u32::MAX - 1`.
        dropped: u32,
    },
    /// The consumer [failed](super::Consumer::fail) the queue ([S4](crate::contract#s4)).
    Failed,
    /// The producers were dropped ([S2](crate::contract#s2)).
    Closed,
}

sentences!(End {
    Self::Abandoned => ("the completion queue's consumer is gone: nothing more will be polled");
    Self::Overrun { dropped } => ("the completion queue has overrun and takes no more entries: make it large enough for all that may be outstanding ({dropped} were dropped in all)");
    Self::Failed => ("the completion queue's consumer has failed it: it takes no more entries");
    Self::Closed => ("the completion queue's producers are gone: it takes no more entries");
});

impl End {
    /// What the words say: the one place that decodes them. Any values are valid, since others may write to those of a raw
    /// queue.
    #[inline]
    fn decode(producers: u32, consumer: u32) -> Option<Self> {
        match (producers, consumer) {
            (0, 0) => None,
            (_, bits) if bits & ABANDONED != 0 => Some(Self::Abandoned),
            (word, bits) if word == 0 || bits & FAILED != 0 => Some(Self::Failed),
            (CLOSED, _) => Some(Self::Closed),
            (dropped, _) => Some(Self::Overrun { dropped }),
        }
    }

    /// The error of a poll once everything stored was polled.
    pub(super) const fn poll_error(self) -> PollError {
        match self {
            Self::Overrun { dropped } => PollError::Overrun { dropped: Some(dropped) },
            // A consumer that is gone polls nothing: in a raw queue, others have written this.
            Self::Failed | Self::Abandoned => PollError::Failed,
            Self::Closed => PollError::Closed,
        }
    }
}

/// The two words.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Ends {
    producers: AtomicU32,
    consumer: AtomicU32,
}

impl Ends {
    const_unless_loom! {
        /// Those of a queue that runs.
        pub(super) const fn new() -> Self {
            Self { producers: AtomicU32::new(0), consumer: AtomicU32::new(0) }
        }
    }

    /// How the queue has ended, loaded with Acquire: everything that the side which ended it did before is visible, every
    /// entry that was stored among it.
    #[inline]
    pub(super) fn end(&self) -> Option<End> {
        // The consumer's word first: if it has reported an overrun, the number of dropped entries is visible then.
        let consumer = sync::see_refusal(&self.consumer);
        End::decode(sync::read_latch(&self.producers), consumer)
    }

    /// Whether the queue runs, by Relaxed loads. If not, [`end`](Self::end) says more.
    #[inline(always)]
    pub(super) fn is_running(&self) -> bool {
        sync::load_u32(&self.producers) | sync::load_u32(&self.consumer) == 0
    }

    /// Whether the consumer accepts no more entries, by a Relaxed load. A producer that has dropped none checks
    /// nothing else, until it is set.
    #[inline(always)]
    pub(super) fn refuses(&self) -> bool {
        sync::load_u32(&self.consumer) != 0
    }

    /// Whether a poll has reported the end.
    pub(super) fn is_reported(&self) -> bool {
        sync::load_u32(&self.consumer) & REPORTED != 0
    }

    /// Counts `lost` entries, not 0, that the only producer drops: it has overrun, unless the queue has ended otherwise.
    #[cold]
    pub(super) fn drop_more(&self, lost: u32) -> DroppedError {
        self.dropped(lost, |lost| {
            let total = after(sync::load_u32(&self.producers), ByProducers::Drop(lost));
            sync::latch(&self.producers, total);
            total
        })
    }

    /// [`drop_more`](Self::drop_more) with several producers.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[cold]
    pub(super) fn drop_more_shared(&self, lost: u32) -> DroppedError {
        self.dropped(lost, |lost| {
            sync::latch_more(&self.producers, |before| after(before, ByProducers::Drop(lost)))
        })
    }

    fn dropped(&self, lost: u32, count: impl FnOnce(u32) -> u32) -> DroppedError {
        let lost = lost.min(MOST_LOST);
        let end = match self.end() {
            None | Some(End::Overrun { .. }) => End::Overrun { dropped: count(lost) },
            Some(end) => end,
        };
        DroppedError { lost, end }
    }

    /// Records that the last producer is gone. Returns `false` if the queue had already ended.
    #[cold]
    pub(super) fn close(&self) -> bool {
        let ends = self.end().is_none();
        if ends {
            sync::latch(&self.producers, after(0, ByProducers::Leave));
        }
        ends
    }

    /// Records what the consumer does.
    #[cold]
    pub(super) fn record(&self, what: ByConsumer) {
        sync::refuse(&self.consumer, sync::load_u32(&self.consumer) | what as u32);
    }

    /// Takes over the words of the queue that this one's queue replaces. ADOPTED tells a producer that already has
    /// cached free slots, because it moved the stored entries over, and so loads only the consumer's word.
    pub(super) fn adopt(&self, old: &Self) {
        let producers = sync::load_u32(&old.producers);
        let ended = if producers == 0 { 0 } else { ADOPTED };
        sync::store_u32(&self.consumer, sync::load_u32(&old.consumer) | ended);
        sync::store_u32(&self.producers, producers);
    }
}

/// What changes the producers' word.
#[derive(Clone, Copy)]
enum ByProducers {
    Drop(u32),
    Leave,
}

/// What changes the consumer's word: it sets this bit.
#[derive(Clone, Copy)]
pub(super) enum ByConsumer {
    Fail = 1,
    Report = 1 << 1,
    Leave = 1 << 2,
}

/// The producers' word afterwards.
const fn after(word: u32, what: ByProducers) -> u32 {
    match what {
        ByProducers::Leave => CLOSED,
        ByProducers::Drop(more) => match word.saturating_add(more) {
            CLOSED => CLOSED - 1,
            total => total,
        },
    }
}

/// Entries were dropped, because the queue is full or has ended.
///
/// ```
/// use cq_core::queue::{DroppedError, End, SoftCq};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let mut storage = SoftCq::<2>::new();
/// let (mut producer, _consumer) = storage.split();
/// let batch = [Wc::new(7, WcStatus::SUCCESS, 5); 3];
/// let dropped = producer.push_batch_or_overrun(&batch).unwrap_err();
/// assert_eq!(dropped, DroppedError { lost: 1, end: End::Overrun { dropped: 1 } });
/// assert!(dropped.is_first()); // report it
/// assert!(!producer.push_or_overrun(&batch[0]).unwrap_err().is_first());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DroppedError {
    /// How many this call dropped: the last ones of the batch. Saturates at `u32::MAX - 2`.
    pub lost: u32,
    /// Why. If the queue has overrun, with how many were dropped so far, including these.
    pub end: End,
}

impl DroppedError {
    /// Whether these have overrun the queue: the moment to report its failure ([O2](crate::contract#o2),
    /// [O4](crate::contract#o4)). `true` at most once in the life of a queue.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        matches!(self.end, End::Overrun { dropped } if dropped == self.lost)
    }
}

sentences!(DroppedError { Self { lost, end } => ("{lost} entries were dropped: {end}"); });

/// Why an entry was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum PushError {
    /// There is no free slot until the consumer has polled. Push it again later.
    Full,
    /// The queue has ended, for good.
    Ended(End),
}

sentences!(PushError {
    Self::Full => ("the completion queue is full: push again once the consumer has polled");
    Self::Ended(end) => ("{end}");
});

crate::from_causes! {
    End => PushError::Ended;
}

/// A batch was not stored as a whole.
///
/// ```
/// use cq_core::queue::{BatchError, PushError, SoftCq};
/// use cq_core::wc::{Wc, WcStatus};
///
/// let mut storage = SoftCq::<2>::new();
/// let (mut producer, mut consumer) = storage.split();
/// let batch = [1, 2, 3].map(|wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5));
/// let BatchError { stored, why } = producer.push_batch(&batch).unwrap_err();
/// assert_eq!((stored, why), (2, PushError::Full));
/// consumer.poll(&mut [Wc::default(); 2])?;
/// producer.push_batch(&batch[stored..])?; // the others, once there are free slots
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BatchError<W = PushError> {
    /// How many entries are stored: the first ones.
    pub stored: usize,
    /// Why the others are not.
    pub why: W,
}

sentences!(@[W: core::fmt::Display] BatchError<W> {
    Self { stored, ref why } => ("{stored} entries of the batch are stored, and no others: {why}");
});
