//! The wake-up of a consumer as a value: who delivers a completion does not wake.
//!
//! A push that disarms a queue returns the event that is due. The producer raises it once it has released the queue's lock,
//! and once the completion of the message itself is stored at its sender (N13): an answer comes behind that. If the process
//! dies in between, others raise the event: see [`fanin`](crate::protocol::fanin).

use cq_core::transport::CqKey;

use super::Completions;
use super::channel::{self, Source};
use crate::protocol::moderation::EventAction;
use crate::protocol::number::CqIndex;
use crate::protocol::steps::{self, Step};
use crate::shm::table::Entry;
use crate::sync;

/// What is due at a completion queue, or nothing.
#[must_use = "a consumer may wait for it"]
#[derive(Debug, Default)]
pub enum Wakeup {
    /// Nothing.
    #[default]
    None,
    /// An event.
    Raise(CqKey),
    /// A call of the owner's service thread, which raises a [delayed](super::moderation) event.
    Call(CqKey),
}

impl Wakeup {
    /// What is to be done about the event of the queue with this key.
    pub const fn new(cq: CqKey, event_action: EventAction) -> Self {
        match event_action {
            EventAction::None => Self::None,
            EventAction::Raise => Self::Raise(cq),
            EventAction::Call => Self::Call(cq),
        }
    }

    /// Whether anything is due.
    #[inline(always)]
    pub const fn is_due(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Does what is due. The queue may be destroyed, and its entry in use by another: that one gets no event. The caller
    /// holds no lock.
    #[inline(always)]
    pub fn raise(self, completions: &'static Completions) {
        match self {
            Self::None => {}
            Self::Raise(cq) => raise(completions, cq),
            Self::Call(cq) => call(completions, cq),
        }
    }
}

#[cold]
fn raise(completions: &'static Completions, CqKey { index, generation }: CqKey) {
    steps::done(Step::Due);
    let index = CqIndex::new(index);
    channel::raise(completions, Source::Completion(index), || {
        sync::load(&completions.cq(index).generation) == generation
    });
}

#[cold]
fn call(completions: &'static Completions, cq: CqKey) {
    steps::done(Step::Held);
    if let Some(owner) = completions.cq(CqIndex::new(cq.index)).life().attachment() {
        completions.shm.call(owner);
    }
}
