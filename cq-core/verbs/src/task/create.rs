//! Creating a queue pair for a driver.

use core::ops::Deref;

use super::{Handle, TaskQp, Token};
use crate::budget::{Budget, BudgetedHandle, Overdrawn, Reservation};
use crate::device::{Device, ProtectionDomain, QueuePair};
use crate::tracked::{CqHandle, CreateTrackedError, TrackedQp};

impl<Q, B, const SENDS: usize, const RECEIVES: usize, O>
    TaskQp<Q, B, SENDS, RECEIVES, Reservation<O>>
where
    Q: QueuePair,
    B: Send + 'static,
    O: Deref<Target = Budget> + Clone + Send + 'static,
{
    /// How many entries of the completion queue it reserves.
    pub const ENTRIES: u32 =
        TrackedQp::<Q, Token<B>, Token<B>, SENDS, RECEIVES, Reservation<O>>::ENTRIES;

    /// Creates a queue pair for a completion queue that this driver polls: as [`TrackedQp::create`], so that up to 64 bytes
    /// are sent inline ([`QpCaps::USUAL`](crate::setup::QpCaps::USUAL)). If entries were given back that are not free yet,
    /// it waits for them.
    ///
    /// For other capacities, [`TrackedQp::create_with`] creates what [`new`](Self::new) shares:
    ///
    /// ```
    /// # use cq_verbs::budget::{Budgeted, Entries};
    /// # use cq_verbs::device::Device;
    /// # use cq_verbs::task::{Channel, Driver, Slot, TaskQp};
    /// # use cq_verbs::tracked::{CreateTrackedError, TrackedQp};
    /// # type Qp<D> = TaskQp<<D as Device>::Qp, Slot<<D as Device>::Memory>, 8, 8, Entries>;
    /// # type Polling<D> = Driver<Budgeted<<D as Device>::Cq, std::sync::Arc<cq_verbs::budget::Budget>>, Channel<<D as Device>::Channel>>;
    /// # fn create<D: Device>(pd: &D::Pd, driver: &Polling<D>) -> Result<Qp<D>, CreateTrackedError> {
    /// let (queue, handle) = (driver.queue(), driver.handle());
    /// let qp = TrackedQp::create_with(pd, [&queue, &queue], |init| init.caps.max_inline = 256)?;
    /// Ok(TaskQp::new(qp, &[&handle]))
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was created.
    ///
    /// # Errors
    /// The completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub async fn create<P>(
        pd: &P,
        cq: &BudgetedHandle<CqHandle<P>, O>,
        driver: &Handle,
    ) -> Result<Self, CreateTrackedError>
    where
        P: ProtectionDomain<Device: Device<Qp = Q>>,
    {
        loop {
            match TrackedQp::create(pd, cq) {
                Err(CreateTrackedError::Overdrawn(Overdrawn { pending: true, .. }))
                    if driver.settle().await => {}
                created => return Ok(Self::new(created?, &[driver])),
            }
        }
    }
}
