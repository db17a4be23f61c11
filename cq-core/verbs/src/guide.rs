//! Guides: one subject each, from the first line to what can go wrong. The modules are the reference, and the
//! [contract](cq_core::contract) has the rules.
//!
//! | guide | for a program that |
//! |---|---|
//! | [`first_program`] | is to send its first message, and to know what has become of it |
//! | [`from_c`] | is written in C for libibverbs and librdmacm, or by somebody who knows them |
//! | [`poll_mode`] | never sleeps: polls, and passes buffers from thread to thread |
//! | [`events`] | sleeps: on a channel, in an event loop, in tasks |
//! | [`sizing`] | has many connections: capacities, signaling, memory |
//! | [`server`] | serves many clients, some of which die |
//! | `tasks` | serves many clients in tasks of tokio |
//! | [`recovery`] | goes on after an overrun, a failure, or the death of its peer |

pub mod events;
pub mod first_program;
pub mod from_c;
pub mod poll_mode;
pub mod recovery;
pub mod server;
pub mod sizing;
#[cfg(feature = "tokio")]
pub mod tasks;
