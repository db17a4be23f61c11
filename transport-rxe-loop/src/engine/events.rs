//! What the device reports of queue pairs and shared receive queues.

use super::{Engine, identity};
use crate::completion::async_event::QpEvent;
use crate::completion::channel::{self, Source};
use crate::sync;

/// Reports something of the queue pair with this number, if it is still there.
#[cold]
pub fn report_qp(engine: &'static Engine, number: u32, event: QpEvent) {
    if engine.policy.imitation.is_silent(event) {
        return;
    }
    let is_there = || identity::read(engine.qp(number)).number == number;
    channel::raise(engine.completions, Source::Qp(number, event as u32), is_there);
}

/// Reports that the limit of the shared receive queue with this number was reached, if that is still there.
#[cold]
pub fn report_limit(engine: &'static Engine, srq: u32) {
    let is_there = || sync::load(&engine.srq(srq).number) == srq;
    channel::raise(engine.completions, Source::Srq(srq), is_there);
}
