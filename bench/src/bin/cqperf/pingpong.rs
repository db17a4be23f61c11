//! The ping-pong: the client sends a message, the server sends one back, and the client takes the time of the
//! round trip. Messages are written and checked outside that time.

pub mod send;
mod slots;
pub mod write;

pub use self::slots::DEPTH;
