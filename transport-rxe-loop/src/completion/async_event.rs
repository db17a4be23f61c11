//! What the device reports of completion queues and queue pairs on its own account.

use super::Completions;
use super::channel::{self, EventChannel, QP_EVENTS, Source};
use super::queue::unreported;
use crate::sync;

/// What can be reported of a queue pair.
#[derive(Clone, Copy, Debug)]
pub enum QpEvent {
    Fatal,
    RequestError,
    AccessError,
    Drained,
    LastReceive,
}

/// From now on what happens to the queue pair at `index` is reported there.
pub fn attach_qp(channel: &EventChannel, index: u32) {
    for kind in 0..QP_EVENTS as u32 {
        channel.attach(Source::Qp(index, kind));
    }
}

/// The queue pair at `index` goes, and what nobody has read of it.
pub fn detach_qp(channel: &EventChannel, index: u32) {
    for kind in 0..QP_EVENTS as u32 {
        channel.detach(Source::Qp(index, kind));
    }
}

/// Reports that the completion queue at `index` has overrun, if it still has this generation.
#[cold]
pub fn report_overrun(completions: &'static Completions, index: u32, generation: u32) {
    let is_there = || sync::load(&completions.cq(index).generation) == generation;
    channel::raise(completions, Source::Overrun(index), is_there);
}

/// The same, once for each queue: but who dies between the two steps has reported nothing.
#[cold]
pub fn report_overrun_once(completions: &'static Completions, index: u32, generation: u32) {
    let not = unreported(generation);
    if sync::swap_if(&completions.cq(index).reported, not, not | 1).is_ok() {
        report_overrun(completions, index, generation);
    }
}
