//! Where ledgers are kept.

use core::marker::PhantomData;
use core::ops::Deref;

use crate::budget::Budget;
use crate::ledger::storage::sealed;
use crate::ledger::{Array, Storage};

/// Where a [`TrackedQp`](super::TrackedQp) or a [`TrackedSrq`](super::TrackedSrq) keeps its ledgers, and what shares the
/// budgets that it reserves entries of: the `Heap` and an `Arc`, or [`Fixed`]. It can't be implemented elsewhere.
pub trait Ledgers: sealed::Sealed {
    /// Where the ledger of sends is.
    type Sends: Storage;
    /// Where the ledger of receives is.
    type Receives: Storage;
    /// Where the reservations of a shared receive queue are.
    type Queues: Storage;
    /// What holds a budget.
    type Budget: Deref<Target = Budget> + Clone;
}

/// Ledgers for up to `SENDS` and `RECEIVES` requests in the queue pair itself, without an allocator. Its completion queues
/// have budgets in [places of their own](crate::budget::Budgeted::new_in), which `B` refers to, or none.
///
/// A shared receive queue has no sends, and reserves entries of `QUEUES` completion queues.
///
/// ```
/// use cq_verbs::budget::{Budget, Budgeted};
/// use cq_verbs::post::Post;
/// use cq_verbs::setup::{CreateError, QpCaps};
/// use cq_verbs::tracked::{CreateTrackedError, Fixed, TrackedQp};
///
/// /// 8 sends, whose tokens are numbers of commands, and 4 receives, whose tokens are indices of buffers.
/// type Qp<'b, Q> = TrackedQp<Q, u16, u8, Fixed<8, 4, &'b Budget>>;
///
/// /// Creates a queue pair of a firmware's own device, with entries of its completion queue.
/// fn open<'b, Q: Post, T>(
///     cq: &Budgeted<T, &'b Budget>,
///     create: impl FnOnce(QpCaps) -> Result<Q, CreateError>,
/// ) -> Result<Qp<'b, Q>, CreateTrackedError> {
///     TrackedQp::create_by([cq.budget(); 2], QpCaps::USUAL, create)
/// }
/// ```
#[derive(Debug)]
pub struct Fixed<
    const SENDS: usize,
    const RECEIVES: usize,
    B = &'static Budget,
    const QUEUES: usize = 1,
>(PhantomData<B>);

impl<const S: usize, const R: usize, B, const N: usize> sealed::Sealed for Fixed<S, R, B, N> {}

impl<const S: usize, const R: usize, B: Deref<Target = Budget> + Clone, const N: usize> Ledgers
    for Fixed<S, R, B, N>
{
    type Sends = Array<S>;
    type Receives = Array<R>;
    type Queues = Array<N>;
    type Budget = B;
}
