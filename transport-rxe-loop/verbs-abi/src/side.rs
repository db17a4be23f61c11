//! What of an object is reached without its lock.

use crate::acks::Acks;
use crate::gate::Gate;

/// Of a completion queue.
#[derive(Default)]
pub struct Queue {
    /// Its completion events.
    pub completions: Acks,
    /// Its asynchronous events.
    pub reports: Acks,
    /// Whose turn it is to poll through its functions.
    pub gate: Gate,
}

/// Of a queue pair.
#[derive(Default)]
pub struct Pair {
    /// Its asynchronous events.
    pub reports: Acks,
    /// Whose turn it is to post through its functions.
    pub gate: Gate,
}

/// Of a shared receive queue.
#[derive(Default)]
pub struct Shared {
    /// Its asynchronous events.
    pub reports: Acks,
}
