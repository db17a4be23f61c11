//! Creating a queue pair with what it reserves.

use super::{Ledgers, TrackedQp};
use crate::budget::{OverdrawnError, Reservation};
use crate::ledger::{Array, Storage};
use crate::post::Post;
use crate::setup::{CreateError, QpCaps};

/// Why a queue pair could not be created with its reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum CreateTrackedError {
    /// A completion queue has too few entries.
    #[error("a completion queue has too few entries for the queue pair")]
    Overdrawn(#[from] OverdrawnError),
    /// The device refused.
    #[error("the queue pair can't be created")]
    Create(#[from] CreateError),
}

impl<Q: Post, S, R, L: Ledgers> TrackedQp<Q, S, R, L> {
    /// Creates a queue pair by `create`, without an allocator or for a device without the traits of
    /// [`device`](crate::device). The budgets are those of its completion queues of sends and of receives. It reserves as
    /// many entries as `max_send_wr` and `max_recv_wr`, or fewer where [`Fixed`](super::Fixed) ledgers hold fewer; `create`
    /// gets these capacities.
    ///
    /// # Errors
    /// A completion queue has fewer entries free, or `create` failed. Nothing was reserved.
    pub fn create_by(
        [of_sends, of_receives]: [&L::Budget; 2],
        caps: QpCaps,
        create: impl FnOnce(QpCaps) -> Result<Q, CreateError>,
    ) -> Result<Self, CreateTrackedError> {
        let max_send_wr = caps.max_send_wr.min(L::Sends::MOST);
        let max_recv_wr = caps.max_recv_wr.min(L::Receives::MOST);
        let queues = [(of_sends, max_send_wr), (of_receives, max_recv_wr)].into_iter();
        let create = || create(caps.max_send_wr(max_send_wr).max_recv_wr(max_recv_wr));
        let (qp, credits) = Reservation::for_created::<Array<2>, _, _>(queues, create)??;
        Ok(Self::with(qp, credits.0))
    }
}
