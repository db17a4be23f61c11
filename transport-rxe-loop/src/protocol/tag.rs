//! The tag of a completion: which queue of its queue pair it belongs to and up to which position it covers
//! that queue, or which slot of a [pool](super::pool) it belongs to, and in which generation.
//!
//! | bits | send queue | receive queue | pool |
//! |---|---|---|---|
//! | 31 | 1 | 0 | 0 |
//! | 30 | position | 0 | 1 |
//! | 0–29 | position | position | slot, generation |

use super::number::Position;

const SEND: u32 = 1 << 31;
const POOL: u32 = 1 << 30;
const GENERATION_BITS: u32 = 16;
/// Bits of a slot's number.
pub const SLOT_BITS: u32 = 14;

/// The tag of a completion that covers a send queue up to `end`, exclusive.
#[inline]
pub const fn of_send(end: Position) -> u32 {
    end.get() as u32 | SEND
}

/// The tag of a completion that covers a receive queue up to `end`, exclusive.
#[inline]
pub const fn of_recv(end: Position) -> u32 {
    end.get() as u32 & !(SEND | POOL)
}

/// The tag of a completion of the receive in a slot of a pool, in this generation of the slot.
#[inline]
pub const fn of_pool(slot: u32, generation: u16) -> u32 {
    POOL | (slot & ((1 << SLOT_BITS) - 1)) << GENERATION_BITS | generation as u32
}

/// The slot of a pool and its generation. Only for a tag that [is](is_pool) of a pool.
#[inline]
pub const fn to_pool(tag: u32) -> (u32, u16) {
    (tag >> GENERATION_BITS & ((1 << SLOT_BITS) - 1), tag as u16)
}

/// Whether the tag is of a pool.
#[inline]
pub const fn is_pool(tag: u32) -> bool {
    tag & (SEND | POOL) == POOL
}

/// Whether the tag is of a send queue.
#[inline]
pub const fn is_send(tag: u32) -> bool {
    tag & SEND != 0
}

/// The position of the request whose completion has this tag, as far as a slot of the send queue is concerned: 31 bits of
/// it.
#[inline]
pub const fn last_send(tag: u32) -> Position {
    Position::new((tag & !SEND) as u64).minus(1)
}

/// The position up to which the tag covers a send queue that is done up to `done`, exclusive.
pub const fn send_end(tag: u32, done: Position) -> Position {
    done.minus(((done.get() as u32).wrapping_sub(tag) & !SEND) as u64)
}

/// Whether the tag is of a receive that is one of the `count` from a position on.
pub fn is_recv_from(first: Position, tag: u32, count: u32) -> bool {
    let nth = tag.wrapping_sub(1).wrapping_sub(first.get() as u32) & !(SEND | POOL);
    !is_send(tag) && !is_pool(tag) && nth < count
}

/// The position up to which the tag covers a receive queue, if that is past `settled`. At most `capacity` positions can be
/// covered at once; a tag that claims more is ignored.
#[inline]
pub fn past(settled: Position, tag: u32, capacity: u32) -> Option<Position> {
    let count = tag.wrapping_sub(settled.get() as u32) & !(SEND | POOL);
    (1..=capacity).contains(&count).then(|| settled.plus(count.into()))
}

#[cfg(all(test, not(loom)))]
mod tests;
