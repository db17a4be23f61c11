//! The overrun of a completion queue sends its queue pairs to ERR (O4), at once, since that is a change of one word. They
//! are flushed later: a thread that drops a completion owns a send queue, and none owns two. It leaves a remote request for
//! each, which is taken once a send queue was given back, at the latest its own.

use cq_verbs::setup::QpState;

use super::entry::QpSlot;
use super::{Engine, events, identity, remote_requests};
use crate::completion::async_event::{self, QpEvent};
use crate::protocol::number::{CqIndex, QpNumber};
use crate::{sync, trace};

/// The completion queue at `cq` has dropped a completion of queue pair `qp`: all of its queue pairs go to ERR, except
/// those in RESET. A later drop may find some that have left RESET since.
#[cold]
#[inline(never)]
pub fn fail_queue_pairs(engine: &'static Engine, cq: CqIndex, qp: QpNumber) {
    async_event::report_overrun_once(
        engine.completions,
        cq,
        sync::load(&engine.completions.cq(cq).generation),
    );
    // First, even if another thread is failing the others: then this one does nothing more.
    fail(engine, engine.qp(qp), cq);
    let slot = engine.completions.cq(cq);
    let newcomers = sync::acquire(&slot.newcomers);
    if sync::load(&slot.failed) != newcomers {
        fail_all(engine, cq, || true);
        // Not before: a thread that dies meanwhile must not keep others from failing the rest.
        sync::release(&slot.failed, newcomers);
    }
}

/// The completion queue at `cq` of this generation has overrun, and the producer that dropped the completion may have died
/// before it failed the queue pairs. The queue may be destroyed at any instant: the next one of the entry is left alone.
#[cold]
pub fn fail_queue_pairs_again(engine: &'static Engine, cq: CqIndex, generation: u32) {
    async_event::report_overrun_once(engine.completions, cq, generation);
    let is_there = || sync::load(&engine.completions.cq(cq).generation) == generation;
    fail_all(engine, cq, is_there);
}

/// A queue pair has left RESET: an overrun concerns it from now on.
pub fn joined(engine: &'static Engine, slot: &QpSlot) {
    for cq in [slot.send_cq(), slot.recv_cq()] {
        sync::count(&engine.completions.cq(cq).newcomers);
    }
}

/// Sends a queue pair to ERR, if it uses the completion queue.
pub fn fail(engine: &'static Engine, slot: &'static QpSlot, cq: CqIndex) {
    let number = identity::read(&slot.identity).number();
    if has(slot, cq) && fail_numbered(engine, slot, number) {
        request_run(engine, number);
    }
}

/// Sends all queue pairs of the completion queue to ERR while `is_meant` says that it still is the one that has overrun.
/// Those in ERR are run all the same: the thread that sent them there may have died before it asked for that.
fn fail_all(engine: &'static Engine, cq: CqIndex, is_meant: impl Fn() -> bool) {
    for (_, slot) in engine.qps.all() {
        let number = identity::read(&slot.identity).number();
        if has(slot, cq) && is_meant() {
            fail_numbered(engine, slot, number);
            if identity::has_failed(slot, number) {
                request_run(engine, number);
            }
        }
    }
}

/// Whether the queue pair uses the completion queue. Read after its number: so it is true of the queue pair with that
/// number, or that one is destroyed.
fn has(slot: &QpSlot, cq: CqIndex) -> bool {
    [slot.send_cq(), slot.recv_cq()].contains(&cq)
}

fn fail_numbered(engine: &'static Engine, slot: &QpSlot, number: QpNumber) -> bool {
    let fails = identity::fail(&slot.identity, number);
    if fails {
        trace::event!(
            WARN, qp_num = number.get(), state = ?QpState::ERR,
            reason = "its completion queue has overrun", "queue pair failed"
        );
        events::report_qp(engine, number, QpEvent::Fatal);
    }
    fails
}

fn request_run(engine: &'static Engine, number: QpNumber) {
    remote_requests::submit(engine, engine.index(number));
    remote_requests::submit(engine, engine.index(engine.peer_of(number)));
}

#[cfg(test)]
mod tests;
