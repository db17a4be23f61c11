//! A queue pair with what it has reserved.

use core::ops::Deref;

use super::{Budget, OverdrawnError, Reservation};
use crate::ledger::{Array, Items};
use crate::post::Post;

/// A queue pair, and the entries that it has reserved of `QUEUES` completion queues, for a program that counts by itself
/// what is outstanding. A [`TrackedQp`](crate::tracked::TrackedQp) also counts. For an own queue pair it is enough to
/// implement [`Post`].
///
/// ```
/// use cq_verbs::budget::{Budgeted, Reserved};
/// use cq_verbs::device::{Device, DevicePd, DeviceQp};
/// use cq_verbs::setup::{QpAttr, QpCaps, QpState};
/// use std::error::Error;
///
/// fn reserved<D: Device>(device: &D, pd: &D::Pd) -> Result<(), Box<dyn Error>> {
///     let cq = Budgeted::new(device.cq(48).create()?);
///     let caps = QpCaps::USUAL.max_send_wr(32).max_recv_wr(16);
///     let mut qp = Reserved::create([(cq.budget(), 32), (cq.budget(), 16)], || {
///         pd.qp(cq.unbudgeted()).caps(caps).create()
///     })??;
///     assert_eq!(qp.usable(), [32, 16]);
///     // It posts no more than that. Whatever it had posted is given up here, and completes no more:
///     let (sends, receives) = (7, 16);
///     qp.reset([sends, receives], |qp| qp.modify(&QpAttr::new().state(QpState::RESET)))?;
///     assert_eq!(qp.usable(), [25, 0], "until a poll has found the queue empty");
///     Ok(())
/// }
/// ```
///
/// Dropping destroys the queue pair, and then gives the entries back: they can be reserved again once a poll has found the
/// completion queue empty. If the device [can't end](Post::quiesce) its requests, it keeps them permanently. They are not given
/// back while the queue pair is in use:
/// ```compile_fail,E0505
/// use cq_verbs::budget::{Budget, Reserved};
/// use cq_verbs::post::Post;
///
/// fn misuse(mut reserved: Reserved<impl Post, &Budget, 1>) {
///     let qp = reserved.get_mut();
///     drop(reserved);
///     let _ = qp.post_recv(&[]);
/// }
/// ```
#[derive(Debug)]
pub struct Reserved<Q: Post, B: Deref<Target = Budget>, const QUEUES: usize> {
    // Destroyed first, so that nothing completes any more when the entries are given back.
    qp: Q,
    entries: [Reservation<B>; QUEUES],
}

impl<Q: Post, B: Deref<Target = Budget>, const QUEUES: usize> Reserved<Q, B, QUEUES> {
    /// Reserves entries of completion queues, and creates a queue pair that completes on these. A queue that is given twice,
    /// as for sends and for receives, gives the entries of both; 0 entries are none, for a queue without requests.
    ///
    /// # Errors
    /// A completion queue has fewer entries free; the inner error is that of `create`. Nothing was reserved.
    pub fn create<E>(
        queues: [(&B, u32); QUEUES],
        create: impl FnOnce() -> Result<Q, E>,
    ) -> Result<Result<Self, E>, OverdrawnError>
    where
        B: Clone,
    {
        let created = Reservation::for_created::<Array<QUEUES>, _, _>(queues.into_iter(), create)?;
        Ok(created.map(|(qp, Items(entries))| Self { qp, entries }))
    }

    /// The queue pair.
    pub const fn get_ref(&self) -> &Q {
        &self.qp
    }

    /// The queue pair, to post requests: at most as many as are [usable](Self::usable). It has to stay here: one that is taken
    /// out, as by `mem::replace`, completes on after its entries were given back.
    pub const fn get_mut(&mut self) -> &mut Q {
        &mut self.qp
    }

    /// How many requests may be outstanding now on each of the queues: all entries, except those that requests from before
    /// a RESET may still use.
    pub fn usable(&self) -> [u32; QUEUES] {
        self.entries.each_ref().map(Reservation::usable)
    }

    /// Goes to RESET by `reset`, with so many requests outstanding on each of the queues. Their entries can be used again
    /// once a poll has found the completion queue empty.
    ///
    /// # Errors
    /// That of `reset`. Nothing was discarded.
    pub fn reset<E>(
        &mut self,
        outstanding: [u32; QUEUES],
        reset: impl FnOnce(&mut Q) -> Result<(), E>,
    ) -> Result<(), E> {
        reset(&mut self.qp)?;
        self.entries
            .iter_mut()
            .zip(outstanding)
            .for_each(|(entries, count)| entries.discard(count));
        Ok(())
    }
}

impl<Q: Post, B: Deref<Target = Budget>, const QUEUES: usize> Drop for Reserved<Q, B, QUEUES> {
    fn drop(&mut self) {
        if !self.qp.quiesce() {
            self.entries.iter_mut().for_each(Reservation::keep);
        }
    }
}
