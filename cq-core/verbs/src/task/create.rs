//! Creating a queue pair for a driver.

use alloc::sync::Arc;

use super::{Handle, TaskQp};
use crate::budget::{Budget, BudgetedHandle, OverdrawnError};
use crate::device::{Device, DevicePd, DeviceQp};
use crate::tracked::{CqHandle, CreateTrackedError, TrackedQp};

impl<Q: DeviceQp, B: Send + 'static> TaskQp<Q, B> {
    /// Creates a queue pair for a completion queue that this driver polls, with up to `sends` and `receives` requests
    /// outstanding: as [`TrackedQp::create`], so that up to 64 bytes are sent inline
    /// ([`QpCaps::USUAL`](crate::setup::QpCaps::USUAL)). If entries were given back that are not free yet, it waits for them.
    ///
    /// For other capacities, [`TrackedQp::create_with`] creates what [`new`](Self::new) shares:
    ///
    /// ```
    /// # use cq_verbs::budget::{Budget, Budgeted};
    /// # use cq_verbs::device::Device;
    /// # use cq_verbs::task::{Driver, TaskChannel, TaskQp};
    /// # use cq_verbs::tracked::{CreateTrackedError, TrackedQp};
    /// # type Polling<D> = Driver<Budgeted<<D as Device>::Cq, std::sync::Arc<Budget>>, TaskChannel<<D as Device>::Channel>>;
    /// # fn create<D: Device>(pd: &D::Pd, driver: &Polling<D>) -> Result<TaskQp<D::Qp, Vec<u8>>, CreateTrackedError> {
    /// let (queue, handle) = (driver.queue(), driver.handle());
    /// let qp = TrackedQp::create_with(pd, [&queue, &queue], |init| init.caps(init.caps.max_inline(256)))?;
    /// Ok(TaskQp::new(qp, &[&handle]))
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was created.
    ///
    /// # Errors
    /// The completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub async fn create<P: DevicePd<Device: Device<Qp = Q>>>(
        pd: &P,
        cq: &BudgetedHandle<CqHandle<P>, Arc<Budget>>,
        driver: &Handle,
        sends: u32,
        receives: u32,
    ) -> Result<Self, CreateTrackedError> {
        loop {
            match TrackedQp::create(pd, cq, sends, receives) {
                Err(CreateTrackedError::Overdrawn(OverdrawnError { pending: true, .. }))
                    if driver.settle().await => {}
                created => return Ok(Self::new(created?, &[driver])),
            }
        }
    }
}
