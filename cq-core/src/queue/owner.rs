//! What ends with a side of a queue.

#[cfg(feature = "alloc")]
use alloc::sync::Arc;
#[cfg(feature = "alloc")]
use core::any::Any;

/// Whether the queue hears that a side is gone; and the storage that the side keeps alive, if it owns it.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// Sides that are made anew again and again do not end the queue as they go.
    is_last: bool,
    #[cfg(feature = "alloc")]
    _storage: Option<Arc<dyn Any + Send + Sync>>,
}

impl Owner {
    /// Of a side that another one may follow.
    pub(super) const fn followed() -> Self {
        Self::of_nothing(false)
    }

    /// Of a side of storage that is borrowed for as long as the sides are there.
    pub(super) const fn borrowed() -> Self {
        Self::of_nothing(true)
    }

    const fn of_nothing(is_last: bool) -> Self {
        Self {
            is_last,
            #[cfg(feature = "alloc")]
            _storage: None,
        }
    }

    /// Of a side that keeps this storage alive.
    #[cfg(feature = "alloc")]
    pub(super) fn of(storage: Arc<dyn Any + Send + Sync>) -> Self {
        Self { is_last: true, _storage: Some(storage) }
    }

    /// Whether nobody follows the side.
    pub(super) const fn is_last(&self) -> bool {
        self.is_last
    }
}
