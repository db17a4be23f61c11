//! A shared receive queue and its ledger.

use cq_core::wc::Wc;

use super::{CreateTrackedError, Ledgers};
use crate::budget::Reservation;
use crate::device::DeviceSrq;
use crate::ledger::{Generation, Items, NotPostedError, Received, Receives, Storage};
use crate::post::PostError;
use crate::setup::{ArmLimitError, CreateError, DeviceError};
use crate::wr::{RecvWr, Sge};

/// A shared receive queue whose receives carry tokens, of type `R`. They complete on the completion queues on which it has
/// reservations. Where it keeps its ledger, `L`, is as of a [`TrackedQp`](super::TrackedQp).
///
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::wc::Wc;
/// use cq_verbs::budget::Budgeted;
/// use cq_verbs::device::{Device, DeviceQp, Slots};
/// use cq_verbs::setup::Access;
/// use cq_verbs::tracked::{TrackedQp, TrackedSrq};
/// use std::collections::HashMap;
/// use std::error::Error;
///
/// /// Counts the messages that come to four queue pairs, until the last of these has failed.
/// fn count<D: Device>(
///     device: &D,
///     connect: impl Fn(&mut TrackedQp<D::Qp, ()>) -> Result<(), Box<dyn Error>>,
/// ) -> Result<u64, Box<dyn Error>> {
///     let (pd, cq) = (device.alloc_pd()?, device.cq(64 + 4 * 16).create()?);
///     let mut cq = CompletionQueue::new(Budgeted::new(cq));
///     let handle = &cq.get_ref().handle();
///     // 64 receives, whose tokens are their slots, and queue pairs that take from them.
///     let mut srq = TrackedSrq::create(&pd, &[handle], 64)?;
///     let mut qps = HashMap::new();
///     for _ in 0..4 {
///         let mut qp = TrackedQp::create_with(&pd, [handle; 2], |init| {
///             init.srq(srq.get_ref()).caps(init.caps.max_send_wr(16))
///         })?;
///         connect(&mut qp)?;
///         qps.insert(qp.get_ref().number(), qp);
///     }
///     let slots = Slots::allocate(&pd, 64, 256, Access::LOCAL_WRITE)?;
///     srq.fill(64, |slot| slots.sge(slot), |slot| slot)?;
///
///     let (mut messages, mut failed, mut buffer) = (0, Vec::new(), [Wc::default(); 32]);
///     while !qps.is_empty() {
///         let batch = cq.poll(&mut buffer)?;
///         if batch.is_empty() {
///             // Their last receives have been retired.
///             failed.drain(..).for_each(|number| drop(qps.remove(&number)));
///         }
///         for wc in batch {
///             // A receive of any queue pair is the shared queue's.
///             let Some(received) = srq.retire(wc) else { continue };
///             match received.result {
///                 Ok(_) => messages += 1,
///                 Err(why) => failed.push(why.qp_num()),
///             }
///             srq.post_recv(&[slots.sge(received.token)], received.token)?;
///         }
///     }
///     Ok(messages)
/// }
/// ```
///
/// All its receives can complete on any one of the queues, so it reserves as many entries on each. A queue pair that takes its receives from here must have one of these completion queues.
///
/// A receive that a queue pair has consumed completes on that queue pair's completion queue. If the queue pair goes to
/// RESET or is destroyed before, the receive may never complete, and its token stays in the ledger: let the queue pair go
/// to ERR first, wait for QP_LAST_WQE_REACHED, with a deadline since not every device raises it, and poll the queue empty
/// ([Q9](cq_core::contract#q9)). The guide to poll-mode loops has how, and what to
/// do if it does not come.
#[derive(Debug)]
pub struct TrackedSrq<
    Q,
    R,
    #[cfg(feature = "alloc")] L = crate::ledger::Heap,
    #[cfg(not(feature = "alloc"))] L,
> where
    Q: DeviceSrq,
    L: Ledgers,
{
    /// `None` only while it is dropped.
    srq: Option<Q>,
    receives: Receives<R, L::Receives>,
    credits: Items<Reservation<L::Budget>, L::Queues>,
}

impl<Q: DeviceSrq, R, L: Ledgers> TrackedSrq<Q, R, L> {
    /// Nothing is discarded, so the limit stays.
    pub(super) fn with(
        srq: Q,
        receives: u32,
        credits: Items<Reservation<L::Budget>, L::Queues>,
    ) -> Self {
        let receives = Receives::sized(Generation::unique(), receives as usize);
        Self { srq: Some(srq), receives, credits }
    }

    /// Creates a shared receive queue by `create`, which gets the number of receives: as many as are asked for, or fewer
    /// where a [`Fixed`](super::Fixed) ledger holds fewer. It reserves as many entries of each of these budgets, those of the
    /// completion queues that the receives can complete on.
    ///
    /// # Errors
    /// A completion queue has fewer entries free, or `create` failed. Nothing was reserved.
    ///
    /// # Panics
    /// The ledger is [`Fixed`](super::Fixed), for another number of completion queues.
    pub fn create_by(
        budgets: &[&L::Budget],
        receives: u32,
        create: impl FnOnce(u32) -> Result<Q, CreateError>,
    ) -> Result<Self, CreateTrackedError> {
        let max_wr = receives.min(L::Receives::MOST);
        let queues = budgets.iter().map(|budget| (*budget, max_wr));
        let (srq, credits) = Reservation::for_created(queues, || create(max_wr))??;
        Ok(Self::with(srq, max_wr, credits))
    }

    /// Returns the shared receive queue, to create queue pairs for it. What is posted by another way is not accounted
    /// for.
    pub const fn get_ref(&self) -> &Q {
        match &self.srq {
            Some(srq) => srq,
            None => unreachable!(),
        }
    }

    fn parts(&mut self) -> (&mut Q, &mut Receives<R, L::Receives>) {
        match &mut self.srq {
            Some(srq) => (srq, &mut self.receives),
            None => unreachable!(),
        }
    }

    /// How many receives are outstanding: posted, and not retired.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.receives.outstanding()
    }

    /// How many receives can be posted now.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.receives.available()
    }

    /// Retires the receive that has completed. `None` if the completion is not of this queue.
    pub fn retire<'w>(&mut self, wc: &'w Wc) -> Option<Received<'w, R>> {
        self.receives.retire(wc)
    }

    /// Posts a receive with a token: as [`Receives::post`].
    ///
    /// # Errors
    /// The receive was refused. [`WrError::QueueFull`](crate::post::WrError::QueueFull): as many as may be are
    /// outstanding; poll, and retire.
    pub fn post_recv(&mut self, sges: &[Sge], token: R) -> Result<(), NotPostedError<R>> {
        let (srq, receives) = self.parts();
        receives.post_by(sges, token, |list| srq.post_recv(list))
    }

    /// Posts a list of receives: as [`Receives::post_list`].
    ///
    /// # Errors
    /// A receive was refused ([Q4](cq_core::contract#q4)). Those before it are posted.
    pub fn post_recvs(
        &mut self,
        list: &mut [RecvWr<'_>],
        token: impl FnMut(usize) -> R,
    ) -> Result<(), PostError> {
        let (srq, receives) = self.parts();
        receives.post_list_by(list, token, |list| srq.post_recv(list))
    }

    /// Posts `count` receives of one buffer each: as [`Receives::fill`].
    ///
    /// # Errors
    /// A receive was refused. Those before it are posted.
    pub fn fill(
        &mut self,
        count: usize,
        sge: impl FnMut(usize) -> Sge,
        token: impl FnMut(usize) -> R,
    ) -> Result<(), PostError> {
        let (srq, receives) = self.parts();
        receives.fill_by(count, sge, token, |list| srq.post_recv(list))
    }

    /// Requests one SRQ_LIMIT_REACHED: as [`DeviceSrq::arm_limit`].
    ///
    /// # Errors
    /// The limit exceeds the queue's capacity.
    pub fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
        self.parts().0.arm_limit(limit)
    }

    /// The armed limit: as [`DeviceSrq::limit`].
    ///
    /// # Errors
    /// The device could not be queried.
    pub fn limit(&self) -> Result<u32, DeviceError> {
        self.get_ref().limit()
    }
}

impl<Q: DeviceSrq, R, L: Ledgers> Drop for TrackedSrq<Q, R, L> {
    fn drop(&mut self) {
        if self.srq.take().is_some_and(|srq| srq.destroy().is_err()) {
            self.credits.iter_mut().for_each(Reservation::keep);
            self.receives.tokens().for_each(core::mem::forget);
        }
    }
}
