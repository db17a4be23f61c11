//! Who waits for a copy that is under way, and whom a process serves while it waits for another one.

use std::iter;
use std::thread;

use cq_core::setup::QpType;
use cq_core::transport::{Poll, Post};
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::RecvWr;

use super::*;
use crate::actor::{Waiting, until};
use crate::attr::QpAttr;
use crate::cq::Cq;
use crate::device::Context;
use crate::execute;
use crate::facts::Whose;
use crate::identity;
use crate::layout::Entry;
use crate::open::OpenOptions;
use crate::pd::ProtectionDomain;
use crate::qp::{QpInit, QueuePair};
use crate::reach;
use crate::state::QpState;
use crate::sync::AtomicU64;

/// A place where nobody lives.
const PLACE: u16 = 37;

/// In a fabric where nobody else is, and no service thread.
fn alone() -> (Context, ProtectionDomain, &'static Fabric) {
    let (context, fabric) = OpenOptions::new().alone();
    let pd = context.alloc_pd();
    (context, pd, fabric)
}

/// Deregisters memory while somebody copies who may do that through its key.
fn outlasts_the_copy<'a>(
    fabric: &'static Fabric,
    pd: &ProtectionDomain,
    copies: impl Fn() -> Window<'a>,
) {
    const ROUNDS: u32 = 5;
    for round in 0..ROUNDS {
        let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
        let (key, window) = (&fabric.mr(region.lkey() >> 8).key, copies());
        thread::scope(|scope| {
            let deregisters = scope.spawn(move || region.deregister());
            until("the key is dead", || sync::acquire(key) == 0);
            (0..200).for_each(|_| thread::yield_now());
            assert!(!deregisters.is_finished(), "round {round}: bytes may still move");
            drop(window);
            until("no bytes move any more", || deregisters.is_finished());
        });
    }
}

#[test]
fn q10_deregistering_waits_for_what_is_copied_for_another_process() {
    let (_context, pd, fabric) = alone();
    let copying = &fabric.reach().copier().copying;
    outlasts_the_copy(fabric, &pd, || Window::open_to_own(fabric, copying));
}

#[test]
fn q10_deregistering_waits_for_what_this_process_copies_itself() {
    let (context, pd, fabric) = alone();
    let cq = context.create_cq(4, None).unwrap();
    let qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    outlasts_the_copy(fabric, &pd, || Window::open(fabric, qp.number()));
}

/// Another process asks this one for something. The stage that it does this by.
fn is_asked(fabric: &'static Fabric) -> &'static Stage {
    let stage = &fabric.tables().stages[0];
    let (whose, needs) = (Whose::local(0), Access::empty());
    let filling = stage.claim(PLACE, fabric.place()).unwrap();
    stage.write(&Request { code: Code::Read, whose, needs, operands: [0; 2] }, iter::empty());
    stage.change(filling, Some(State::Asked)).unwrap();
    stage
}

/// Asks the process at a place for an atomic.
fn ask(fabric: &'static Fabric, place: u16) -> Result<u64, Trouble> {
    let far = Far { place, whose: Whose::local(0), needs: Access::empty() };
    atomic(fabric, far, Piece::far(8, 8, 0), Step::FetchAdd { add: 1 })
}

#[test]
fn x07_who_waits_to_have_memory_back_serves_others_meanwhile() {
    let (_context, pd, fabric) = alone();
    let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
    let (index, _) = fabric.tables().qps.claim(PLACE).unwrap();
    fabric.qp(index).send.copying.open();
    let stage = is_asked(fabric);
    region.deregister();
    assert_eq!(stage.seen().state(), Some(State::Done), "it is served");
    fabric.qp(index).life().end(PLACE);
}

#[test]
fn x07_who_waits_for_an_answer_serves_others_meanwhile() {
    let (_context, _pd, fabric) = alone();
    let stage = is_asked(fabric);
    // The process that is asked is this one: it answers only if it serves.
    assert!(matches!(ask(fabric, fabric.place()), Err(Trouble::Fault)), "there is no such memory");
    assert_eq!(stage.seen().state(), Some(State::Done), "it is served");
}

#[test]
fn x07_who_waits_to_ask_serves_others_meanwhile() {
    let (_context, _pd, fabric) = alone();
    let stage = is_asked(fabric);
    let others = || fabric.tables().stages.iter().filter_map(|stage| stage.claim(PLACE, PLACE));
    assert_eq!(others().count(), STAGES - 1);
    assert!(matches!(ask(fabric, PLACE), Err(Trouble::NoAnswer)), "others have all stages");
    assert_eq!(stage.seen().state(), Some(State::Done), "it is served");
}

/// Whether a stage can be had.
fn is_free(stage: &Stage) -> bool {
    stage.seen().state().is_none()
}

#[test]
fn x07_who_has_asked_leaves_no_trace_whatever_the_answer() {
    let (_context, _pd, fabric) = alone();
    let (first, rest) = fabric.tables().stages.split_first().unwrap();
    let _of_others = first.claim(PLACE, PLACE).unwrap();
    for (place, trouble) in [(fabric.place(), Trouble::Fault), (PLACE, Trouble::NoAnswer)] {
        assert_eq!(ask(fabric, place), Err(trouble));
        assert!(!is_free(first) && rest.iter().all(is_free));
        assert!(fabric.reach().copier().in_use.iter().all(|threads| sync::acquire(threads) == 0));
    }
}

#[test]
fn x07_who_is_alive_and_does_not_answer_is_given_up() {
    let (_context, _pd, fabric) = alone();
    let _serving = fabric.reach().copier().serving.lock().unwrap();
    assert_eq!(ask(fabric, fabric.place()), Err(Trouble::NoAnswer));
}

#[test]
fn x03_who_is_asked_and_dead_is_swept_up_after() {
    let (_context, _pd, fabric) = alone();
    let dead = fabric.die_at(PLACE);
    assert_eq!(ask(fabric, PLACE), Err(Trouble::NoAnswer));
    until("it is swept up after", || fabric.others().all(|other| other != dead));
}

#[test]
fn x07_the_answer_to_somebody_else_is_none() {
    let (_context, _pd, fabric) = alone();
    let stage = &fabric.tables().stages[0];
    thread::scope(|scope| {
        let asks = scope.spawn(|| ask(fabric, PLACE));
        until("it asks", || stage.seen().state() == Some(State::Asked));
        stage.sweep(fabric.place());
        let mut seen = stage.claim(PLACE, PLACE).unwrap();
        stage.answer(Outcome::Done, 7);
        for state in [State::Asked, State::Serving, State::Done] {
            seen = stage.change(seen, Some(state)).unwrap();
        }
        assert_eq!(asks.join().unwrap(), Err(Trouble::NoAnswer));
    });
}

#[test]
fn x03_what_a_dead_process_asked_for_is_forgotten() {
    let (_context, _pd, fabric) = alone();
    let stage = is_asked(fabric);
    sweep(fabric, PLACE);
    assert!(is_free(stage));
}

#[test]
fn x04_stages_that_nobody_of_this_process_has_to_do_with_are_freed() {
    let (_context, _pd, fabric) = alone();
    let [of_none, of_a_thread, orphan] = [0, 1, 2].map(|nth| &fabric.tables().stages[nth]);
    for stage in [of_none, of_a_thread] {
        stage.claim(fabric.place(), PLACE).unwrap();
    }
    sync::enter(&fabric.reach().copier().in_use[1]);
    let mut seen = orphan.claim(PLACE, fabric.place()).unwrap();
    for state in [State::Asked, State::Serving] {
        seen = orphan.change(seen, Some(state)).unwrap();
    }
    orphan.give_up(seen);
    assert!(!is_free(orphan), "somebody may still serve it");
    let serving = fabric.reach().copier().serving.lock().unwrap();
    thread::scope(|scope| {
        let tidies = Waiting::new(scope, || reach::tidy(fabric));
        assert!(tidies.has_to_wait() && !is_free(orphan), "this one does");
        drop(serving);
        assert!(!tidies.join().unwrap(), "nothing is left for later");
    });
    assert!(is_free(of_none) && is_free(orphan) && !is_free(of_a_thread));
}

#[test]
fn x07_one_thread_serves_at_a_time() {
    let (_context, _pd, fabric) = alone();
    let stage = is_asked(fabric);
    let serving = fabric.reach().copier().serving.lock().unwrap();
    thread::scope(|scope| {
        let serves = Waiting::new(scope, || serve(fabric));
        assert!(serves.has_to_wait());
        assert_eq!(stage.seen().state(), Some(State::Asked));
        drop(serving);
        serves.join().unwrap();
    });
    assert_eq!(stage.seen().state(), Some(State::Done));
}

/// Nobody answers, which takes a quarter of a second.
#[test]
fn q08_a_little_is_asked_for_with_its_last_word_late() {
    let (_context, _pd, fabric) = alone();
    let data = [const { AtomicU64::new(0) }; 1024];
    let far = Far { place: PLACE, whose: Whose::local(0), needs: Access::empty() };
    for (len, wanted) in [(64, Code::WriteLate), (8192, Code::Write)] {
        let (from, to) =
            (Pieces::of_words(&data, len), Target::of_far(far, Piece::far(8, len as u32, 1)));
        thread::scope(|scope| {
            let order = Order::LastWordLast;
            let transfer = Transfer { fabric, far, from: &from, to: &to, order };
            let asks = scope.spawn(move || carry(&transfer, 0..len, len));
            let stage = &fabric.tables().stages[0];
            until("it asks", || stage.seen().state() == Some(State::Asked) || asks.is_finished());
            let code = stage.read().map(|(request, _)| request.code);
            assert_eq!(asks.join().unwrap(), Err(Trouble::NoAnswer));
            assert_eq!(code, Some(wanted), "{len} bytes");
        });
    }
}

/// A queue pair of a kind that takes messages, and has a receive.
fn receiver(pd: &ProtectionDomain, cq: &Cq, qp_type: QpType) -> QueuePair {
    let mut qp = pd.create_qp(&QpInit { qp_type, ..QpInit::new(cq) }).unwrap();
    match qp_type {
        QpType::Ud => qp.activate(1).unwrap(),
        QpType::Rc | QpType::Uc => qp.connect(qp.number()).unwrap(),
    }
    qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    qp
}

const KINDS: [QpType; 3] = [QpType::Rc, QpType::Uc, QpType::Ud];

#[test]
fn x07_reset_waits_for_what_is_copied_for_who_has_given_up() {
    let (context, pd, fabric) = alone();
    let cq = context.create_cq(4, None).unwrap();
    for kind in KINDS {
        let mut qp = receiver(&pd, &cq, kind);
        let slot = fabric.qp(qp.number());
        let serving = fabric.reach().copier().serving.lock().unwrap();
        thread::scope(|scope| {
            let resets = scope.spawn(move || qp.modify(&QpAttr::to(QpState::Reset)).map(|()| qp));
            until("it takes no more", || identity::read(slot).state == QpState::Reset);
            (0..200).for_each(|_| thread::yield_now());
            assert!(!resets.is_finished(), "{kind:?}: bytes may still move");
            drop(serving);
            until("no bytes move any more", || resets.is_finished());
            resets.join().unwrap().unwrap();
        });
    }
}

#[test]
fn x07_a_receive_is_not_flushed_while_its_memory_is_written_for_who_has_given_up() {
    let (context, pd, fabric) = alone();
    let mut cq = context.create_cq(4, None).unwrap();
    for kind in KINDS {
        let qp = receiver(&pd, &cq, kind);
        let (number, mut room) = (qp.number(), [Wc::default()]);
        let serving = fabric.reach().copier().serving.lock().unwrap();
        assert!(identity::fail(fabric.qp(number), number));
        thread::scope(|scope| {
            let flushes = scope.spawn(move || execute::run(fabric, number));
            let begins = || flushes.is_finished() || !fabric.own(number).turn.is_free();
            until("it begins", begins);
            (0..200).for_each(|_| thread::yield_now());
            assert_eq!(cq.poll(&mut room), Ok(0), "{kind:?}: bytes may still move");
            drop(serving);
            until("it is flushed", || cq.poll(&mut room).unwrap() == 1);
        });
        assert_eq!(room[0].status(), WcStatus::WR_FLUSH_ERR);
    }
}
