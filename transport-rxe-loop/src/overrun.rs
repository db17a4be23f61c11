//! What the overrun of a completion queue does to its queue pairs: they go to ERR (O4), at once, since that
//! is a change of one word. Flushing them is another matter: a completion is dropped by somebody who has
//! the turn of a queue pair, and nobody holds two. So it is written down in the device's memory who is to be
//! run, and done by whoever has given a turn back, at the latest by the one who wrote it.

use crate::async_event::{self, QpEvent};
use crate::execute::Kicks;
use crate::fabric::Fabric;
use crate::identity;
use crate::layout::{MAX_QP, QpSlot};
use crate::sync;

/// The completion queue at `cq` has dropped its `dropped`th completion, which was of queue pair `qp`: all of
/// its queue pairs go to ERR. In RESET they have nothing to lose, and stay; so a later one may find some that
/// have left it since.
#[cold]
#[inline(never)]
pub fn spread(fabric: &'static Fabric, cq: u32, qp: u32, dropped: u32) {
    if dropped == 1 {
        async_event::report_overrun(fabric, cq);
    }
    // Before all others, and also where another thread is at the others: it does nothing more.
    fail(fabric, fabric.qp(qp), cq);
    if sync::swap_if(&fabric.cq(cq).newcomers, 1, 0).is_ok() {
        fabric.tables().qps.all().iter().for_each(|slot| fail(fabric, slot, cq));
    }
}

/// A queue pair has left RESET: an overrun concerns it from now on.
pub fn joined(fabric: &'static Fabric, slot: &QpSlot) {
    for cq in [&slot.send_cq, &slot.recv_cq] {
        sync::release(&fabric.cq(sync::load_u32(cq)).newcomers, 1);
    }
}

/// Puts a queue pair into ERR, if it is one of the completion queue's.
fn fail(fabric: &'static Fabric, slot: &'static QpSlot, cq: u32) {
    // Before its queues, so that they are its own, or it is not there any more.
    let number = identity::read(slot).number;
    let is_its = [&slot.send_cq, &slot.recv_cq].iter().any(|word| sync::load_u32(word) == cq);
    if is_its && identity::fail(slot, number) {
        async_event::report_qp(fabric, number, QpEvent::Fatal);
        note(fabric, number);
        note(fabric, sync::load_u32(&slot.dest));
    }
}

fn note(fabric: &'static Fabric, number: u32) {
    let noted = &fabric.tables().noted;
    let index = number as usize % MAX_QP;
    sync::raise_from(&noted.qps[index / 64], |seen| Some(seen | 1 << (index % 64)));
    sync::release(&noted.any, 1);
}

/// Takes over who is to be run; false if there is nobody.
#[inline]
pub fn take_noted(fabric: &'static Fabric, kicks: &mut Kicks) -> bool {
    let any = &fabric.tables().noted.any;
    sync::load_u32(any) != 0 && sync::swap_if(any, 1, 0).is_ok() && {
        take_all(fabric, kicks);
        true
    }
}

#[cold]
fn take_all(fabric: &'static Fabric, kicks: &mut Kicks) {
    for (word, index) in fabric.tables().noted.qps.iter().zip(0..) {
        let mut taken = 0;
        sync::raise_from(word, |seen| {
            taken = seen;
            (seen != 0).then_some(0)
        });
        kicks.add_all(index, taken);
    }
}
