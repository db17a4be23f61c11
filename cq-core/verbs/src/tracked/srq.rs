//! A shared receive queue and its ledger.

use core::ops::Deref;

use cq_core::wc::Wc;

use super::create::{CqHandle, CreateTrackedError, entries};
use super::credit::{Credit, Unlimited};
use crate::budget::{Budget, BudgetedHandle, Reservation};
use crate::device::{Device, ProtectionDomain, SharedReceiveQueue};
use crate::ledger::{Generation, NotPosted, Received, Receives};
use crate::post::PostError;
use crate::setup::{ArmLimitError, CreateError, DeviceError, SrqInit};
use crate::wr::{RecvWr, Sge};

/// A shared receive queue whose receives carry tokens, at most `N` of them. They complete on the `QUEUES` completion
/// queues on which it has reservations.
///
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::wc::Wc;
/// use cq_verbs::budget::{Budgeted, Entries};
/// use cq_verbs::device::{Device, QueuePair, Slots};
/// use cq_verbs::setup::Access;
/// use cq_verbs::tracked::{TrackedQp, TrackedSrq};
/// use std::collections::HashMap;
/// use std::error::Error;
///
/// /// 64 receives, whose tokens are their slots, and a queue pair that takes from them.
/// type Srq<D> = TrackedSrq<<D as Device>::Srq, usize, Entries, 64, 1>;
/// type Qp<D> = TrackedQp<<D as Device>::Qp, (), (), 16, 0, Entries>;
///
/// /// Counts the messages that come to four queue pairs, until the last of these has failed.
/// fn count<D: Device>(
///     device: &D,
///     connect: impl Fn(&mut Qp<D>) -> Result<(), Box<dyn Error>>,
/// ) -> Result<u64, Box<dyn Error>> {
///     let (pd, cq) = (device.alloc_pd()?, device.create_cq(64 + 4 * 16, None)?);
///     let mut cq = CompletionQueue::new(Budgeted::new(cq));
///     let handle = &cq.get_ref().handle();
///     let mut srq = Srq::<D>::create(&pd, [handle])?;
///     let mut qps = HashMap::new();
///     for _ in 0..4 {
///         let mut qp = Qp::<D>::create_with(&pd, [handle; 2], |init| init.srq = Some(srq.get_ref()))?;
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
pub struct TrackedSrq<Q, R, C, const N: usize, const QUEUES: usize>
where
    Q: SharedReceiveQueue,
    C: Credit,
{
    /// `None` only while it is dropped.
    srq: Option<Q>,
    receives: Receives<R, N>,
    credits: [C; QUEUES],
}

impl<Q, R, C, const N: usize, const QUEUES: usize> TrackedSrq<Q, R, C, N, QUEUES>
where
    Q: SharedReceiveQueue,
    C: Credit,
{
    fn with(srq: Q, credits: [C; QUEUES]) -> Self {
        let mut receives = Receives::new(Generation::unique());
        // Nothing is discarded, so the limit stays.
        receives.set_limit(credits.iter().map(Credit::entries).min().unwrap_or(N));
        Self { srq: Some(srq), receives, credits }
    }

    /// Returns the shared receive queue, to create queue pairs for it. What is posted by another way is not accounted
    /// for.
    pub const fn get_ref(&self) -> &Q {
        match &self.srq {
            Some(srq) => srq,
            None => unreachable!(),
        }
    }

    fn parts(&mut self) -> (&mut Q, &mut Receives<R, N>) {
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
    pub const fn free(&self) -> usize {
        self.receives.free()
    }

    /// Retires the receive that has completed. `None` if the completion is not of this queue.
    pub fn retire<'w>(&mut self, wc: &'w Wc) -> Option<Received<'w, R>> {
        self.receives.retire(wc)
    }

    /// Posts a receive with a token: as [`Receives::post`].
    ///
    /// # Errors
    /// The receive was refused. [`Refused::QueueFull`](crate::post::Refused::QueueFull): as many as may be are
    /// outstanding; poll, and retire.
    pub fn post_recv(&mut self, sges: &[Sge], token: R) -> Result<(), NotPosted<R>> {
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

    /// Requests one SRQ_LIMIT_REACHED: as [`SharedReceiveQueue::arm_limit`].
    ///
    /// # Errors
    /// The limit exceeds the queue's capacity.
    pub fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
        self.parts().0.arm_limit(limit)
    }

    /// The armed limit: as [`SharedReceiveQueue::limit`].
    ///
    /// # Errors
    /// The device could not be queried.
    pub fn limit(&self) -> Result<u32, DeviceError> {
        self.get_ref().limit()
    }
}

impl<Q: SharedReceiveQueue, R, const N: usize> TrackedSrq<Q, R, Unlimited, N, 0> {
    /// Keeps the ledger of a shared receive queue without receives. The completion queues can overrun.
    #[must_use]
    pub fn new(srq: Q) -> Self {
        Self::with(srq, [])
    }
}

impl<Q, R, const N: usize, const QUEUES: usize, B> TrackedSrq<Q, R, Reservation<B>, N, QUEUES>
where
    Q: SharedReceiveQueue,
    B: Deref<Target = Budget> + Clone,
{
    /// Creates a shared receive queue of `N` receives with one SGE each, and reserves `N` entries of each completion
    /// queue that they can complete on.
    ///
    /// # Errors
    /// A completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub fn create<P>(
        pd: &P,
        cqs: [&BudgetedHandle<CqHandle<P>, B>; QUEUES],
    ) -> Result<Self, CreateTrackedError>
    where
        P: ProtectionDomain<Device: Device<Srq = Q>>,
    {
        Self::create_by(cqs.map(BudgetedHandle::budget), entries(N), |max_wr| {
            pd.create_srq(&SrqInit { max_wr, max_sge: 1 })
        })
    }

    /// As [`create`](Self::create), with these budgets of completion queues, and fewer receives. `create` gets their
    /// number, which is at most `N`.
    ///
    /// # Errors
    /// As those of `create`.
    pub fn create_by(
        budgets: [&B; QUEUES],
        receives: u32,
        create: impl FnOnce(u32) -> Result<Q, CreateError>,
    ) -> Result<Self, CreateTrackedError> {
        let max_wr = receives.min(entries(N));
        let queues = budgets.map(|budget| (budget, max_wr));
        let (srq, credits) = Reservation::for_created(queues, || create(max_wr))??;
        Ok(Self::with(srq, credits))
    }
}

impl<Q, R, C, const N: usize, const QUEUES: usize> Drop for TrackedSrq<Q, R, C, N, QUEUES>
where
    Q: SharedReceiveQueue,
    C: Credit,
{
    fn drop(&mut self) {
        if self.srq.take().is_some_and(|srq| srq.destroy().is_err()) {
            self.credits.iter_mut().for_each(Credit::keep);
            self.receives.tokens().for_each(core::mem::forget);
        }
    }
}
