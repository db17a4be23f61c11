//! What the overrun of a completion queue does to its queue pairs: they go to ERR (O4), at once, since that
//! is a change of one word. Flushing them is another matter: a completion is dropped by somebody who has
//! the turn of a queue pair, and nobody holds two. So it is written down in the device's memory who is to be
//! run, and done by whoever has given a turn back, at the latest by the one who wrote it.

use crate::async_event::{self, QpEvent};
use crate::fabric::Fabric;
use crate::identity;
use crate::layout::QpSlot;
use crate::notes;
use crate::sync;

/// The completion queue at `cq` has dropped a completion of queue pair `qp`: all of its queue pairs go to ERR.
/// In RESET they have nothing to lose, and stay; so a later one may find some that have left it since.
#[cold]
#[inline(never)]
pub fn spread(fabric: &'static Fabric, cq: u32, qp: u32) {
    report(fabric, cq, sync::load_u32(&fabric.cq(cq).generation));
    // Before all others, and also where another thread is at the others: it does nothing more.
    fail(fabric, fabric.qp(qp), cq);
    if sync::swap_if(&fabric.cq(cq).newcomers, 1, 0).is_ok() {
        fabric.tables().qps.all().iter().for_each(|slot| fail(fabric, slot, cq));
    }
}

/// The completion queue at `cq` that has this generation has overrun, and who dropped the completion may have died
/// before it told anybody. It may go at any instant: nothing is done to the next one in its place.
#[cold]
pub fn spread_again(fabric: &'static Fabric, cq: u32, generation: u32) {
    report(fabric, cq, generation);
    let is_there = || sync::load_u32(&fabric.cq(cq).generation) == generation;
    fabric.tables().qps.all().iter().for_each(|slot| fail_if(fabric, slot, cq, is_there));
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
        sync::release(&fabric.cq(sync::load_u32(cq)).newcomers, 1);
    }
}

/// Puts a queue pair into ERR, if it is one of the completion queue's.
pub fn fail(fabric: &'static Fabric, slot: &'static QpSlot, cq: u32) {
    fail_if(fabric, slot, cq, || true);
}

/// [`fail`], if `is_meant` says, of the queue that the queue pair has, that it is the one which has overrun.
fn fail_if(
    fabric: &'static Fabric,
    slot: &'static QpSlot,
    cq: u32,
    is_meant: impl FnOnce() -> bool,
) {
    // Before its queues, so that they are its own, or it is not there any more.
    let number = identity::read(slot).number;
    let is_its = [&slot.send_cq, &slot.recv_cq].iter().any(|word| sync::load_u32(word) == cq);
    if is_its && is_meant() && identity::fail(slot, number) {
        async_event::report_qp(fabric, number, QpEvent::Fatal);
        notes::leave(fabric, number);
        notes::leave(fabric, sync::load_u32(fabric.dest(number)));
    }
}

#[cfg(test)]
mod tests {
    use cq_core::setup::Access;

    use super::*;
    use crate::attr::QpAttr;
    use crate::open::OpenOptions;
    use crate::qp::QpInit;
    use crate::state::QpState;

    #[test]
    fn o04_who_dropped_a_completion_fails_though_another_thread_is_at_all_of_them() {
        let (context, fabric) = OpenOptions::new().alone();
        let cq = context.create_cq(4, None).unwrap();
        let mut qp = context.alloc_pd().create_qp(&QpInit::new(&cq)).unwrap();
        qp.connect(qp.number()).unwrap();
        let slot = fabric.qp(qp.number());
        let index = sync::load_u32(&slot.send_cq);
        sync::store_u32(&fabric.cq(index).newcomers, 0);
        spread(fabric, index, qp.number());
        assert_eq!(identity::read(slot).state, QpState::Err);
    }

    #[test]
    fn o04_a_queue_pair_that_leaves_reset_after_the_overrun_fails_with_the_next_completion() {
        let (context, fabric) = OpenOptions::new().alone();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let [mut first, mut other] = [(); 2].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
        first.connect(first.number()).unwrap();
        let index = sync::load_u32(&fabric.qp(first.number()).send_cq);
        let state = |number| identity::read(fabric.qp(number)).state;
        spread(fabric, index, first.number());
        assert_eq!(state(other.number()), QpState::Reset);
        other.modify(&QpAttr::init(Access::empty())).unwrap();
        spread(fabric, index, first.number());
        assert_eq!(state(other.number()), QpState::Err);
    }
}
