//! Queue pairs and shared receive queues with ledgers on the heap.

use alloc::{sync::Arc, vec::Vec};

use super::{CreateTrackedError, Ledgers, TrackedQp, TrackedSrq};
use crate::budget::{Budget, BudgetedHandle, Reservation};
use crate::device::{Device, DevicePd, DeviceQp, DeviceSrq, QpBuilder};
use crate::ledger::{Heap, Items};
use crate::post::Post;
use crate::setup::SrqInit;

pub type CqHandle<P> = <<P as DevicePd>::Device as Device>::CqHandle;

impl Ledgers for Heap {
    type Sends = Self;
    type Receives = Self;
    type Queues = Self;
    type Budget = Arc<Budget>;
}

impl<Q: Post, S, R> TrackedQp<Q, S, R> {
    /// Keeps the ledgers of a queue pair on which nothing is outstanding, for as many requests as it has
    /// [capacity](DeviceQp::caps) for: a device may have rounded up what it was asked for. Its completion queues can
    /// overrun.
    ///
    /// Sends are signaled at the latest every half of that. A program that waits for fewer, because it has fewer buffers, says
    /// so by [`with_capacity`](Self::with_capacity).
    #[must_use]
    pub fn new(qp: Q) -> Self
    where
        Q: DeviceQp,
    {
        let caps = qp.caps();
        Self::with_capacity(qp, caps.max_send_wr, caps.max_recv_wr)
    }

    /// Keeps the ledgers of a queue pair on which nothing is outstanding, for at most so many sends and receives. It has at
    /// least these capacities. Sends are signaled at the latest every half of `sends`. Its completion queues can overrun.
    #[must_use]
    pub fn with_capacity(qp: Q, sends: u32, receives: u32) -> Self {
        Self::without_budget(qp, sends, receives)
    }

    /// Creates a reliable connection, with the [usual](crate::setup::QpCaps::USUAL) capacities but for up to `sends` and `receives`
    /// requests, which reserves as many entries of the completion queue.
    ///
    /// # Errors
    /// The completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub fn create<P: DevicePd<Device: Device<Qp = Q>>>(
        pd: &P,
        cq: &BudgetedHandle<CqHandle<P>, Arc<Budget>>,
        sends: u32,
        receives: u32,
    ) -> Result<Self, CreateTrackedError> {
        Self::create_with(pd, [cq; 2], |init| {
            init.caps(init.caps.max_send_wr(sends).max_recv_wr(receives))
        })
    }

    /// As [`create`](Self::create), with a completion queue for sends and one for receives, and with what `change`
    /// sets: the type, the shared receive queue, the capacities. It reserves as many entries as `max_send_wr` and
    /// `max_recv_wr` ask for, and has no more requests outstanding, also where the device rounds them up. With a shared
    /// receive queue, nothing is reserved for receives.
    ///
    /// ```
    /// use cq_core::cq::CompletionQueue;
    /// use cq_verbs::budget::Budgeted;
    /// use cq_verbs::device::Device;
    /// use cq_verbs::tracked::TrackedQp;
    /// use std::error::Error;
    ///
    /// /// Messages of up to 256 bytes are sent inline, and `depth` of them may be outstanding.
    /// fn create<D: Device>(device: &D, depth: u32) -> Result<TrackedQp<D::Qp, usize>, Box<dyn Error>> {
    ///     let pd = device.alloc_pd()?;
    ///     let [sends, receives] = [device.cq(depth).create()?, device.cq(depth).create()?];
    ///     let [sends, receives] = [Budgeted::new(sends), Budgeted::new(receives)];
    ///     Ok(TrackedQp::create_with(&pd, [&sends.handle(), &receives.handle()], |init| {
    ///         init.caps(init.caps.max_inline(256).max_send_wr(depth).max_recv_wr(depth))
    ///     })?)
    /// }
    /// ```
    ///
    /// The completion queues are those of the handles, whatever `change` sets.
    ///
    /// # Errors
    /// A completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub fn create_with<'a, P: DevicePd<Device: Device<Qp = Q>>>(
        pd: &'a P,
        [of_sends, of_receives]: [&'a BudgetedHandle<CqHandle<P>, Arc<Budget>>; 2],
        change: impl FnOnce(QpBuilder<'a, P>) -> QpBuilder<'a, P>,
    ) -> Result<Self, CreateTrackedError> {
        let (send_cq, recv_cq) = (of_sends.unbudgeted(), of_receives.unbudgeted());
        let init = change(pd.qp(send_cq)).send_cq(send_cq).recv_cq(recv_cq);
        let caps = if init.srq.is_some() { init.caps.max_recv_wr(0) } else { init.caps };
        let budgets = [of_sends.budget(), of_receives.budget()];
        Self::create_by(budgets, caps, |caps| init.caps(caps).create())
    }
}

impl<Q: DeviceSrq, R> TrackedSrq<Q, R> {
    /// Keeps the ledger of a shared receive queue without receives, for as many as it has
    /// [capacity](DeviceSrq::caps) for: a device may have rounded up what it was asked for. The completion queues can
    /// overrun.
    #[must_use]
    pub fn new(srq: Q) -> Self {
        let receives = srq.caps().max_wr;
        Self::with(srq, receives, Items::make(0, |_| Reservation::of_none(0)))
    }

    /// Creates a shared receive queue of so many receives with one SGE each, and reserves as many entries of each completion
    /// queue that they can complete on.
    ///
    /// # Errors
    /// A completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub fn create<P: DevicePd<Device: Device<Srq = Q>>>(
        pd: &P,
        cqs: &[&BudgetedHandle<CqHandle<P>, Arc<Budget>>],
        receives: u32,
    ) -> Result<Self, CreateTrackedError> {
        let budgets: Vec<_> = cqs.iter().map(|cq| cq.budget()).collect();
        Self::create_by(&budgets, receives, |max_wr| pd.create_srq(&SrqInit::new(max_wr)))
    }
}
