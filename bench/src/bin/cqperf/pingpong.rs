//! The ping-pong: the client sends a message, the server sends one back, and the client takes the time of the
//! round trip. Messages are written and checked outside that time.

pub mod send;
pub mod write;

use crate::job::DEPTH;

/// The slot that the client sends from. Replies come to the others.
const OUT: u32 = 0;
/// The slots of replies.
const REPLIES: u64 = DEPTH as u64 - 1;

/// The slot that the reply to a message goes to.
const fn reply_slot(number: u64) -> u32 {
    // Less than the depth.
    1 + (number % REPLIES) as u32
}

/// The slot that a message goes to.
const fn message_slot(number: u64) -> u32 {
    // Less than the depth.
    (number % DEPTH as u64) as u32
}
