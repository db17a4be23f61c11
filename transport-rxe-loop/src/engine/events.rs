//! What the device reports of queue pairs and shared receive queues.

use super::{Engine, identity};
use crate::completion::async_event::QpEvent;
use crate::completion::channel::{self, Source};
use crate::protocol::number::{QpNumber, SrqNumber};

/// Reports something of the queue pair with this number, if it is still there.
#[cold]
pub fn report_qp(engine: &'static Engine, number: QpNumber, event: QpEvent) {
    if engine.policy.imitation.is_silent(event) {
        return;
    }
    let is_there = || identity::read(&engine.qp(number).identity).number() == number;
    channel::raise(engine.completions, Source::Qp(engine.index(number), event as u32), is_there);
}

/// Reports that the limit of the shared receive queue with this number was reached, if that is still there.
#[cold]
pub fn report_limit(engine: &'static Engine, srq: SrqNumber) {
    let is_there = || engine.srq(srq).number() == srq;
    channel::raise(engine.completions, Source::Srq(engine.srqs.index(srq)), is_there);
}
