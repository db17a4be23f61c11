//! Which slot of an end each message of a ping-pong lies in.

/// Messages and requests of either end. Receives are posted well ahead, so that nobody waits for one.
pub const DEPTH: u32 = 16;

/// The slot that the client sends from. Replies come to the others.
pub const OUT: u32 = 0;
/// The slots of replies.
pub const REPLIES: u64 = DEPTH as u64 - 1;

/// The slot that the reply to a message goes to.
pub const fn reply_slot(number: u64) -> u32 {
    // Less than the depth.
    1 + (number % REPLIES) as u32
}

/// The slot that a message goes to.
pub const fn message_slot(number: u64) -> u32 {
    // Less than the depth.
    (number % DEPTH as u64) as u32
}
