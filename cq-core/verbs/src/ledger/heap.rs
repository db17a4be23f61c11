//! Ledgers on the heap.

use alloc::boxed::Box;

use super::storage::{MOST, Storage, sealed};
use super::{Generation, Receives, Sends};

/// On the heap, with a size that is chosen at run time. Feature `alloc`.
#[derive(Debug)]
pub enum Heap {}

impl sealed::Sealed for Heap {}

impl Storage for Heap {
    const MOST: u32 = MOST;

    type Of<T> = Box<[T]>;

    fn make<T>(count: usize, item: impl FnMut(usize) -> T) -> Box<[T]> {
        (0..count.min(MOST as usize)).map(item).collect()
    }
}

impl<T> Sends<T> {
    /// A ledger without requests, for a queue pair whose `max_send_wr` is at least `count` or the
    /// [limit](Self::set_limit). All requests of the queue must be posted through it. It holds up to 2²⁰ requests.
    #[must_use]
    pub fn with_capacity(generation: Generation, count: usize) -> Self {
        Self::sized(generation, count)
    }
}

impl<T> Receives<T> {
    /// A ledger without receives, for a queue whose `max_recv_wr` or `max_wr` is at least `count` or the
    /// [limit](Self::set_limit). All receives of the queue must be posted through it. It holds up to 2²⁰ receives.
    #[must_use]
    pub fn with_capacity(generation: Generation, count: usize) -> Self {
        Self::sized(generation, count)
    }
}
