//! Whether dropping a side ends the queue, and which storage the side keeps alive.

use core::panic::{RefUnwindSafe, UnwindSafe};

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
type Storage = alloc::sync::Arc<dyn core::any::Any + Send + Sync>;
#[cfg(not(all(feature = "alloc", target_has_atomic = "ptr")))]
type Storage = core::convert::Infallible;

/// Whether dropping the side ends the queue; and the storage that the side keeps alive, if it owns it.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// `false` for a side that another one may succeed, as in a raw queue.
    is_last: bool,
    storage: Option<Storage>,
}

// The storage is kept, and nothing else: a panic leaves nothing half done that is seen through it.
impl UnwindSafe for Owner {}
impl RefUnwindSafe for Owner {}

impl Owner {
    /// For a side that another one may succeed.
    pub(super) const fn followed() -> Self {
        Self { is_last: false, storage: None }
    }

    /// For a side that borrows its storage.
    pub(super) const fn borrowed() -> Self {
        Self { is_last: true, storage: None }
    }

    /// For a side that keeps `storage` alive.
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    pub(super) fn of(storage: Storage) -> Self {
        Self { is_last: true, storage: Some(storage) }
    }

    /// Whether the side borrows its storage.
    pub(super) const fn is_borrower(&self) -> bool {
        self.storage.is_none()
    }

    /// Whether no other side succeeds this one, so that dropping it ends the queue.
    pub(super) const fn is_last(&self) -> bool {
        self.is_last
    }
}
