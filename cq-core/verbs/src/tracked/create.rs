//! Creating a queue pair with what it reserves.

use core::ops::Deref;

use super::TrackedQp;
use crate::budget::{Budget, BudgetedHandle, Overdrawn, Reservation};
use crate::device::{Device, ProtectionDomain};
use crate::post::Post;
use crate::setup::{CreateError, QpCaps, QpInit};

/// Why a queue pair could not be created with its reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateTrackedError {
    /// A completion queue has too few entries.
    #[error("a completion queue has too few entries for the queue pair")]
    Overdrawn(#[from] Overdrawn),
    /// The device refused.
    #[error("the queue pair can't be created")]
    Create(#[from] CreateError),
}

pub type CqHandle<P> = <<P as ProtectionDomain>::Device as Device>::CqHandle;
type Srq<P> = <<P as ProtectionDomain>::Device as Device>::Srq;

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, B>
    TrackedQp<Q, S, R, SENDS, RECEIVES, Reservation<B>>
where
    B: Deref<Target = Budget> + Clone,
{
    /// How many entries it reserves: those of its completion queue, if it has one for both.
    pub const ENTRIES: u32 = entries(SENDS) + entries(RECEIVES);

    /// Creates a reliable connection, which reserves `SENDS` and `RECEIVES` entries of the completion queue, and has
    /// these capacities and the [usual](QpCaps::USUAL) others.
    ///
    /// # Errors
    /// The completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub fn create<P>(
        pd: &P,
        cq: &BudgetedHandle<CqHandle<P>, B>,
    ) -> Result<Self, CreateTrackedError>
    where
        P: ProtectionDomain<Device: Device<Qp = Q>>,
    {
        Self::create_with(pd, [cq; 2], |_| ())
    }

    /// As [`create`](Self::create), with a completion queue for sends and one for receives, and with what `change`
    /// sets: the type, the shared receive queue, the capacities. `max_send_wr` and `max_recv_wr` are at most `SENDS` and
    /// `RECEIVES`; with less, less is reserved. With a shared receive queue, nothing is reserved for receives.
    ///
    /// ```
    /// use cq_core::cq::CompletionQueue;
    /// use cq_verbs::budget::{Budgeted, Entries};
    /// use cq_verbs::device::Device;
    /// use cq_verbs::tracked::TrackedQp;
    /// use std::error::Error;
    ///
    /// type Qp<D> = TrackedQp<<D as Device>::Qp, (), usize, 512, 512, Entries>;
    ///
    /// /// Messages of up to 256 bytes are sent inline, and `depth` of them may be outstanding.
    /// fn create<D: Device>(device: &D, depth: u32) -> Result<Qp<D>, Box<dyn Error>> {
    ///     let pd = device.alloc_pd()?;
    ///     let [sends, receives] = [device.create_cq(depth, None)?, device.create_cq(depth, None)?];
    ///     let [sends, receives] = [Budgeted::new(sends), Budgeted::new(receives)];
    ///     Ok(Qp::<D>::create_with(&pd, [&sends.handle(), &receives.handle()], |init| {
    ///         init.caps.max_inline = 256;
    ///         (init.caps.max_send_wr, init.caps.max_recv_wr) = (depth, depth);
    ///     })?)
    /// }
    /// ```
    ///
    /// # Errors
    /// A completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub fn create_with<'a, P>(
        pd: &P,
        [of_sends, of_receives]: [&'a BudgetedHandle<CqHandle<P>, B>; 2],
        change: impl FnOnce(&mut QpInit<'a, CqHandle<P>, Srq<P>>),
    ) -> Result<Self, CreateTrackedError>
    where
        P: ProtectionDomain<Device: Device<Qp = Q>>,
    {
        let (send_cq, recv_cq) = (of_sends.unbudgeted(), of_receives.unbudgeted());
        let (max_send_wr, max_recv_wr) = (entries(SENDS), entries(RECEIVES));
        let caps = QpCaps { max_send_wr, max_recv_wr, ..QpCaps::USUAL };
        let mut init = QpInit { recv_cq, caps, ..QpInit::new(send_cq) };
        change(&mut init);
        let mut caps = init.caps;
        if init.srq.is_some() {
            caps.max_recv_wr = 0;
        }
        let budgets = [of_sends.budget(), of_receives.budget()];
        Self::create_by(budgets, caps, |caps| {
            pd.create_qp(&QpInit { caps, send_cq, recv_cq, ..init })
        })
    }

    /// As [`create_with`](Self::create_with), for a device without the traits of [`device`](crate::device). The
    /// capacities that `create` gets are at most `SENDS` and `RECEIVES`, and these budgets are those of its completion
    /// queues of sends and of receives.
    ///
    /// # Errors
    /// As those of `create_with`.
    pub fn create_by(
        [of_sends, of_receives]: [&B; 2],
        caps: QpCaps,
        create: impl FnOnce(QpCaps) -> Result<Q, CreateError>,
    ) -> Result<Self, CreateTrackedError> {
        let max_send_wr = caps.max_send_wr.min(entries(SENDS));
        let max_recv_wr = caps.max_recv_wr.min(entries(RECEIVES));
        let queues = [(of_sends, max_send_wr), (of_receives, max_recv_wr)];
        let create = || create(QpCaps { max_send_wr, max_recv_wr, ..caps });
        let (qp, [sends, receives]) = Reservation::for_created(queues, create)??;
        Ok(Self::with(qp, sends, receives))
    }
}

/// The entries for so many requests. More than there can be are those of no queue.
pub(super) const fn entries(requests: usize) -> u32 {
    if requests > u32::MAX as usize { u32::MAX } else { requests as u32 }
}
