//! Creating a queue pair with what it reserves.

use core::ops::Deref;

use super::TrackedQp;
use crate::budget::{Budget, Overdrawn, Reservation};
use crate::sentences::{from, sentences};
use crate::setup::{CreateError, QpCaps};

/// Why a queue pair could not be created with its reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CreateTrackedError {
    /// A completion queue has too few entries.
    Overdrawn(Overdrawn),
    /// The device refused.
    Create(CreateError),
}

from! {
    Overdrawn => CreateTrackedError::Overdrawn;
    CreateError => CreateTrackedError::Create;
}

sentences!(CreateTrackedError {
    Self::Overdrawn(_) => ("a completion queue has no entries for the requests of one more queue pair");
    Self::Create(_) => ("the queue pair can't be created");
}
    Self::Overdrawn(error) => error;
    Self::Create(error) => error;
);

impl<Q, S, R, const SENDS: usize, const RECEIVES: usize, B>
    TrackedQp<Q, S, R, SENDS, RECEIVES, Reservation<B>>
where
    B: Deref<Target = Budget> + Clone,
{
    /// Reserves `SENDS` entries of the completion queue of sends and `RECEIVES` of that of receives, whose budgets these
    /// are, and creates a queue pair by `create`, with these capacities and the [usual](QpCaps::USUAL) others.
    ///
    /// # Errors
    /// A completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub fn create(
        [of_sends, of_receives]: [&B; 2],
        create: impl FnOnce(QpCaps) -> Result<Q, CreateError>,
    ) -> Result<Self, CreateTrackedError> {
        let entries = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (max_send_wr, max_recv_wr) = (entries(SENDS), entries(RECEIVES));
        let sends = Reservation::new(of_sends, max_send_wr)?;
        let receives = Reservation::new(of_receives, max_recv_wr)?;
        let qp = create(QpCaps { max_send_wr, max_recv_wr, ..QpCaps::USUAL })?;
        Ok(Self::with(qp, sends, receives))
    }
}
