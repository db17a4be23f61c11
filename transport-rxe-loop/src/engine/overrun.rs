//! What the overrun of a completion queue does to its queue pairs: they go to ERR (O4), at once, since that
//! is a change of one word. Flushing them is another matter: a completion is dropped by somebody who has
//! the turn of a queue pair, and nobody holds two. So it is written down in the device's memory who is to be
//! run, and done by whoever has given a turn back, at the latest by the one who wrote it.

use crate::api::state::QpState;
use crate::completion::async_event::{self, QpEvent};
use crate::engine::identity::{self, Identity};
use crate::engine::remote_requests;
use crate::fabric::Fabric;
use crate::layout::QpSlot;
use crate::sync;

/// The completion queue at `cq` has dropped a completion of queue pair `qp`: all of its queue pairs go to ERR.
/// In RESET they have nothing to lose, and stay; so a later one may find some that have left it since.
#[cold]
#[inline(never)]
pub fn spread(fabric: &'static Fabric, cq: u32, qp: u32) {
    report(fabric, cq, sync::load(&fabric.cq(cq).generation));
    // Before all others, and also where another thread is at the others: it does nothing more.
    fail(fabric, fabric.qp(qp), cq);
    let slot = fabric.cq(cq);
    let newcomers = sync::acquire(&slot.newcomers);
    if sync::load(&slot.failed) != newcomers {
        fail_all(fabric, cq, || true);
        // Not before: who stops on the way keeps nobody else from failing the rest.
        sync::release(&slot.failed, newcomers);
    }
}

/// The completion queue at `cq` that has this generation has overrun, and who dropped the completion may have died
/// before it told anybody. It may go at any instant: nothing is done to the next one in its place.
#[cold]
pub fn spread_again(fabric: &'static Fabric, cq: u32, generation: u32) {
    report(fabric, cq, generation);
    let is_there = || sync::load(&fabric.cq(cq).generation) == generation;
    fail_all(fabric, cq, is_there);
}

/// What [`reported`](crate::layout::CqSlot::reported) holds of a queue whose overrun is not reported.
pub const fn unreported(generation: u32) -> u32 {
    generation << 1
}

/// Once: but who dies between the two steps has reported nothing. Its queue pairs fail all the same.
fn report(fabric: &'static Fabric, cq: u32, generation: u32) {
    let not = unreported(generation);
    if sync::swap_if(&fabric.cq(cq).reported, not, not | 1).is_ok() {
        async_event::report_overrun(fabric, cq, generation);
    }
}

/// A queue pair has left RESET: an overrun concerns it from now on.
pub fn joined(fabric: &'static Fabric, slot: &QpSlot) {
    for cq in [&slot.send_cq, &slot.recv_cq] {
        sync::count(&fabric.cq(sync::load(cq)).newcomers);
    }
}

/// Puts a queue pair into ERR, if it is one of the completion queue's.
pub fn fail(fabric: &'static Fabric, slot: &'static QpSlot, cq: u32) {
    let number = identity::read(slot).number;
    if has(slot, cq) && fail_numbered(fabric, slot, number) {
        have_run(fabric, number);
    }
}

/// Puts all queue pairs of the completion queue into ERR, for which `is_meant` says that they are of the one that has
/// overrun. Those that are there already are run all the same: who put them there may have stopped before that.
fn fail_all(fabric: &'static Fabric, cq: u32, is_meant: impl Fn() -> bool) {
    for slot in fabric.tables().qps.all() {
        let number = identity::read(slot).number;
        if has(slot, cq) && is_meant() {
            fail_numbered(fabric, slot, number);
            if identity::read(slot) == (Identity { number, state: QpState::Err }) {
                have_run(fabric, number);
            }
        }
    }
}

/// Whether it is one of the completion queue's. Looked at after its number: then it is so of this one, or that one is
/// not there any more.
fn has(slot: &QpSlot, cq: u32) -> bool {
    [&slot.send_cq, &slot.recv_cq].iter().any(|&word| sync::load(word) == cq)
}

fn fail_numbered(fabric: &'static Fabric, slot: &QpSlot, number: u32) -> bool {
    let fails = identity::fail(slot, number);
    if fails {
        async_event::report_qp(fabric, number, QpEvent::Fatal);
    }
    fails
}

fn have_run(fabric: &'static Fabric, number: u32) {
    remote_requests::leave(fabric, number);
    remote_requests::leave(fabric, sync::load(fabric.dest(number)));
}

#[cfg(test)]
mod tests;
