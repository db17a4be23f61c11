//! The tag of a completion: which queue of its queue pair it belongs to and up to which position it covers
//! that queue, or which slot of a [pool](super::pool) it belongs to, and in which generation.
//!
//! | bits | send queue | receive queue | pool |
//! |---|---|---|---|
//! | 31 | 1 | 0 | 0 |
//! | 30 | position | 0 | 1 |
//! | 0–29 | position | position | slot, generation |
//!
//! ```
//! use std::sync::atomic::AtomicU64;
//! use transport_rxe_loop::protocol::number::Position;
//! use transport_rxe_loop::protocol::tag;
//!
//! let completed = AtomicU64::new(6);
//! let tag = tag::of_recv(Position::new(8));
//! assert!(!tag::is_send(tag));
//! tag::settle(&completed, tag, 16);
//! tag::settle(&completed, tag, 16); // again: positions only grow
//! tag::settle(&completed, tag::of_recv(Position::new(80)), 16); // more than possible: corrupted by another process
//! assert_eq!(completed.into_inner(), 8);
//! ```

use super::number::Position;
use crate::sync::{self, AtomicU64};

const SEND: u32 = 1 << 31;
const POOL: u32 = 1 << 30;
const GENERATION_BITS: u32 = 16;
/// Bits of a slot's number.
pub const SLOT_BITS: u32 = 14;

/// The tag of a completion that covers a send queue up to `end`, exclusive.
#[inline]
#[must_use]
pub const fn of_send(end: Position) -> u32 {
    end.get() as u32 | SEND
}

/// The tag of a completion that covers a receive queue up to `end`, exclusive.
#[inline]
#[must_use]
pub const fn of_recv(end: Position) -> u32 {
    end.get() as u32 & !(SEND | POOL)
}

/// The tag of a completion of the receive in a slot of a pool, in this generation of the slot.
#[inline]
#[must_use]
pub const fn of_pool(slot: u32, generation: u16) -> u32 {
    POOL | (slot & ((1 << SLOT_BITS) - 1)) << GENERATION_BITS | generation as u32
}

/// The slot of a pool and its generation. Only for a tag that [is](is_pool) of a pool.
#[inline]
#[must_use]
pub const fn to_pool(tag: u32) -> (u32, u16) {
    (tag >> GENERATION_BITS & ((1 << SLOT_BITS) - 1), tag as u16)
}

/// Whether the tag is of a pool.
#[inline]
#[must_use]
pub const fn is_pool(tag: u32) -> bool {
    tag & (SEND | POOL) == POOL
}

/// Whether the tag is of a send queue.
#[inline]
#[must_use]
pub const fn is_send(tag: u32) -> bool {
    tag & SEND != 0
}

/// The position up to which the tag covers its queue, if that is past `settled`. At most `capacity` positions
/// can be covered at once; a tag that claims more is ignored.
#[inline]
#[must_use]
pub fn past(settled: Position, tag: u32, capacity: u32) -> Option<Position> {
    let bits = if is_send(tag) { !SEND } else { !(SEND | POOL) };
    let count = tag.wrapping_sub(settled.get() as u32) & bits;
    (1..=capacity).contains(&count).then(|| settled.plus(count.into()))
}

/// Advances the position in `word` to where the tag covers its queue. A position that is already there, or
/// further, stays.
#[inline]
pub fn settle(word: &AtomicU64, tag: u32, capacity: u32) {
    sync::fetch_update(word, |settled| {
        past(Position::new(settled), tag, capacity).map(Position::get)
    });
}

#[cfg(all(test, not(loom)))]
mod tests;
