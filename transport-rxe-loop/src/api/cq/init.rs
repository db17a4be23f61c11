//! What a completion queue is made with.

use crate::api::channel::CompletionChannel;

/// The attributes of a new completion queue: see [`Context::create_cq_with`](crate::Context::create_cq_with).
#[derive(Clone, Copy, Debug)]
pub struct CqInit<'a> {
    /// The number of completions that it holds ([O1](cq_core::contract#o1)).
    pub capacity: u32,
    /// The channel of its events. Without one it can't be armed ([N11](cq_core::contract#n11)).
    pub channel: Option<&'a CompletionChannel>,
    /// Whether completions are [dropped](crate::Cq#ignoring-overruns) while it is full, instead of failing the queue.
    pub ignore_overrun: bool,
}

impl CqInit<'_> {
    /// A queue of this capacity without a channel, which fails if it overruns.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self { capacity, channel: None, ignore_overrun: false }
    }
}
