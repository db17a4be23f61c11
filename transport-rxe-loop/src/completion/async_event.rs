//! Reporting asynchronous events of completion queues and queue pairs.

use cq_core::transport::CqKey;

use super::Completions;
use super::channel::{self, EventChannel, QP_EVENTS, Source};
use super::queue::unreported;
use crate::protocol::number::{CqIndex, QpIndex};
use crate::{sync, trace};

/// The asynchronous events of a queue pair.
#[derive(Clone, Copy, Debug)]
pub enum QpEvent {
    Fatal,
    RequestError,
    AccessError,
    Drained,
    LastReceive,
}

/// Attaches the events of the queue pair at `index` to a channel.
pub fn attach_qp(channel: &EventChannel, index: QpIndex) {
    for kind in 0..QP_EVENTS as u32 {
        channel.attach(Source::Qp(index, kind));
    }
}

/// Detaches the events of the queue pair at `index`, and discards unread ones.
pub fn detach_qp(channel: &EventChannel, index: QpIndex) {
    for kind in 0..QP_EVENTS as u32 {
        channel.detach(Source::Qp(index, kind));
    }
}

/// Reports that the completion queue at `index` has overrun, if it still has this generation.
#[cold]
pub fn report_overrun(completions: &'static Completions, index: CqIndex, generation: u32) {
    let key = CqKey { index: index.get(), generation };
    trace::event!(ERROR, cq = %key, "completion queue overrun");
    let is_there = || sync::load(&completions.cq(index).generation) == generation;
    channel::raise(completions, Source::Overrun(index), is_there);
}

/// The same, once per queue. A process that dies between the two steps reports nothing.
#[cold]
pub fn report_overrun_once(completions: &'static Completions, index: CqIndex, generation: u32) {
    let not = unreported(generation);
    if sync::cas(&completions.cq(index).reported, not, not | 1).is_ok() {
        report_overrun(completions, index, generation);
    }
}
