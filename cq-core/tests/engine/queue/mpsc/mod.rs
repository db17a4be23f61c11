//! The software completion queue with several producers. `storage` has positions and high-water marks (O1), `close` the
//! rules of the end, `resize` Q12, `threads` what many threads at once come to (C10, P2, N6). What holds for one producer
//! too is tested on each kind of queue.

mod close;
mod resize;
mod resize_model;
mod storage;
mod threads;

use cq_core::queue::mpsc::PushError;

use super::*;

fn dropped<T>(lost: u32, total: u32) -> Result<T, PushError> {
    Err(PushError::Dropped(Dropped { lost, total }))
}

/// Places where something wraps, for a ring of this many slots: positions of 32 and of 62 bits, generations
/// of 15 and of 16.
fn wraps(storage: usize) -> [Position; 5] {
    let storage = storage as Position;
    [1 << 32, 1 << 62, storage << 15, storage << 16, (storage << 16) + (1 << 62)]
}
