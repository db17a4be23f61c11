//! The stream: one end sends or writes as fast as it can, the other one receives and checks.
//!
//! Flow control is by credits, as on any wire. The sender begins with one credit for each receive that is
//! posted; whenever the receiver has posted half of its receives again it says so by a message without
//! bytes, which gives as many credits back. So no message ever waits for a receive, and no completion queue
//! holds more than what is outstanding.

mod grants;
pub mod receiver;
pub mod sender;
pub mod target;
