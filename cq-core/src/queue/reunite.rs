//! A queue in a static, or on a stack, that is had again from its two sides.
#![allow(unsafe_code)]

use super::channel::QueueChannel;
use super::{Consumer, Producer, SoftCq};
use crate::entry::Entry;
use crate::sentences;

/// The two that were given are not the two sides of one queue or channel of this type, or there are more sides of it.
///
/// ```
/// use cq_core::queue::{ReuniteError, SoftCq};
///
/// let (mut one, mut another) = (SoftCq::<4>::new(), SoftCq::<4>::new());
/// let ((producer, _), (_, consumer)) = (one.split(), another.split());
/// let ReuniteError(producer, _consumer) = SoftCq::<4>::reunite(producer, consumer).unwrap_err();
/// assert_eq!(producer.available(), 4); // both sides are returned, and can still be used
/// ```
pub struct ReuniteError<P, C>(
    /// The producer's side.
    pub P,
    /// The consumer's side.
    pub C,
);

sentences!(@[P, C] ReuniteError<P, C> {
    Self(..) => ("these are not the two sides of one queue of this capacity and entry, or of one channel, or others share it still");
});

type NotReunited<'a, E, P, C> = ReuniteError<Producer<'a, E, P>, Consumer<'a, E, C>>;

impl<const N: usize, E: Entry> SoftCq<N, E> {
    /// The queue of these sides, which can be split again, and the producer's signal. So a queue in a static, whose sides
    /// borrow it for `'static`, is used again after it has overrun or ended.
    ///
    /// ```
    /// use cq_core::queue::SoftCq;
    /// use cq_core::transport::{PollCq, PollError};
    /// use cq_core::wc::{Wc, WcStatus};
    /// use static_cell::ConstStaticCell;
    ///
    /// static QUEUE: ConstStaticCell<SoftCq<2>> = ConstStaticCell::new(SoftCq::new());
    ///
    /// let ((mut producer, mut consumer), mut out) = (QUEUE.take().split(), [Wc::default(); 4]);
    /// let wc = Wc::new(7, WcStatus::SUCCESS, 5);
    /// assert!(producer.push_batch_or_overrun(&[wc; 3]).is_err()); // one too many
    /// assert_eq!(consumer.poll(&mut out).unwrap().len(), 2);
    /// assert_eq!(consumer.poll(&mut out).unwrap_err(), PollError::Overrun { dropped: Some(1) });
    ///
    /// let (queue, _) = SoftCq::<2>::reunite(producer, consumer)?;
    /// let (mut producer, mut consumer) = queue.split();
    /// producer.push(&wc)?;
    /// assert_eq!(consumer.poll(&mut out).unwrap().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// They are not the two sides of one `SoftCq<N, E>`: of two queues, of another capacity, or of a `HeapCq`. Both are
    /// returned, and nothing is changed.
    #[expect(clippy::result_large_err, reason = "both sides are returned")]
    pub fn reunite<'a, P: QueueChannel, C>(
        producer: Producer<'a, E, P>,
        consumer: Consumer<'a, E, C>,
    ) -> Result<(&'a mut Self, P), NotReunited<'a, E, P, C>> {
        let is_inline = producer.owner.is_borrower() && producer.storage() == N;
        if !is_inline || !producer.control.parts().0.is(&consumer.head) {
            return Err(ReuniteError(producer, consumer));
        }
        drop(consumer);
        let (control, signal) = producer.into_parts();
        // SAFETY: sides that borrow memory of the queue's own are made by `SoftCq::sides` only. Their queue is of this type,
        // since the number of slots is `N`. It made `control` from a `&'a mut` to the whole queue, by a cast to its first
        // field (`repr(C)`). These were its two sides, neither is used any more, and they gave no reference away.
        Ok((unsafe { control.into_mut() }, signal))
    }
}
