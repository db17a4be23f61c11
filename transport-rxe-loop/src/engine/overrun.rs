//! What the overrun of a completion queue does to its queue pairs: they go to ERR (O4), at once, since that
//! is a change of one word. Flushing them is another matter: a completion is dropped by somebody who has
//! the turn of a queue pair, and nobody holds two. So it is written down in the device's memory who is to be
//! run, and done by whoever has given a turn back, at the latest by the one who wrote it.

use super::entry::QpSlot;
use super::identity::{self, Identity};
use super::{Engine, events, remote_requests};
use crate::completion::async_event::{self, QpEvent};
use crate::protocol::state::QpState;
use crate::sync;

/// The completion queue at `cq` has dropped a completion of queue pair `qp`: all of its queue pairs go to ERR.
/// In RESET they have nothing to lose, and stay; so a later one may find some that have left it since.
#[cold]
#[inline(never)]
pub fn spread(engine: &'static Engine, cq: u32, qp: u32) {
    async_event::report_overrun_once(
        engine.completions,
        cq,
        sync::load(&engine.completions.cq(cq).generation),
    );
    // Before all others, and also where another thread is at the others: it does nothing more.
    fail(engine, engine.qp(qp), cq);
    let slot = engine.completions.cq(cq);
    let newcomers = sync::acquire(&slot.newcomers);
    if sync::load(&slot.failed) != newcomers {
        fail_all(engine, cq, || true);
        // Not before: who stops on the way keeps nobody else from failing the rest.
        sync::release(&slot.failed, newcomers);
    }
}

/// The completion queue at `cq` that has this generation has overrun, and who dropped the completion may have died
/// before it told anybody. It may go at any instant: nothing is done to the next one in its place.
#[cold]
pub fn spread_again(engine: &'static Engine, cq: u32, generation: u32) {
    async_event::report_overrun_once(engine.completions, cq, generation);
    let is_there = || sync::load(&engine.completions.cq(cq).generation) == generation;
    fail_all(engine, cq, is_there);
}

/// A queue pair has left RESET: an overrun concerns it from now on.
pub fn joined(engine: &'static Engine, slot: &QpSlot) {
    for cq in [&slot.send_cq, &slot.recv_cq] {
        sync::count(&engine.completions.cq(sync::load(cq)).newcomers);
    }
}

/// Puts a queue pair into ERR, if it is one of the completion queue's.
pub fn fail(engine: &'static Engine, slot: &'static QpSlot, cq: u32) {
    let number = identity::read(slot).number;
    if has(slot, cq) && fail_numbered(engine, slot, number) {
        request_run(engine, number);
    }
}

/// Puts all queue pairs of the completion queue into ERR, for which `is_meant` says that they are of the one that has
/// overrun. Those that are there already are run all the same: who put them there may have stopped before that.
fn fail_all(engine: &'static Engine, cq: u32, is_meant: impl Fn() -> bool) {
    for slot in engine.qps.all() {
        let number = identity::read(slot).number;
        if has(slot, cq) && is_meant() {
            fail_numbered(engine, slot, number);
            if identity::read(slot) == (Identity { number, state: QpState::Err }) {
                request_run(engine, number);
            }
        }
    }
}

/// Whether it is one of the completion queue's. Looked at after its number: then it is so of this one, or that one is
/// not there any more.
fn has(slot: &QpSlot, cq: u32) -> bool {
    [&slot.send_cq, &slot.recv_cq].iter().any(|&word| sync::load(word) == cq)
}

fn fail_numbered(engine: &'static Engine, slot: &QpSlot, number: u32) -> bool {
    let fails = identity::fail(slot, number);
    if fails {
        events::report_qp(engine, number, QpEvent::Fatal);
    }
    fails
}

fn request_run(engine: &'static Engine, number: u32) {
    remote_requests::leave(engine, number);
    remote_requests::leave(engine, sync::load(engine.dest(number)));
}

#[cfg(test)]
mod tests;
