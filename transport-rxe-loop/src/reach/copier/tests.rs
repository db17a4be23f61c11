//! Who waits for a copy that is under way, and whom a process serves while it waits for another one.

use std::thread;

use cq_core::setup::QpType;
use cq_core::transport::{Poll, Post};
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::RecvWr;

use super::*;
use crate::OwnedRegion;
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
use crate::reach::stage::{Head, LARGE_BYTES};
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
fn is_asked(fabric: &'static Fabric) -> &'static Head {
    let stage = fabric.tables().stages.of(PLACE).next().unwrap();
    let (whose, needs) = (Whose::local(0), Access::empty());
    asks(fabric, stage, Request { code: Code::Read, whose, needs, operands: [0; 2] }, &[]);
    stage.head
}

/// The process at [`PLACE`] asks this one for something, by this stage.
fn asks(fabric: &'static Fabric, stage: Stage, request: Request, pieces: &[Sge]) {
    let filling = stage.head.word.claim(PLACE, fabric.place()).unwrap();
    stage.head.write(&request, pieces.iter().copied());
    stage.head.word.ask(filling).unwrap();
    this(fabric).unwrap().askers.add(PLACE);
}

fn state(head: &Head) -> Option<State> {
    head.word.seen().state()
}

/// Asks the process at a place for an atomic.
fn ask(fabric: &'static Fabric, place: u16) -> Result<u64, NotDone> {
    let far = Far { place, whose: Whose::local(0), needs: Access::empty() };
    atomic(fabric, far, Piece::far(8, 8, 0), Step::FetchAdd { add: 1 })
}

#[test]
fn x03_only_what_the_dead_have_asked_of_this_process_is_taken_back() {
    let (_context, _pd, fabric) = alone();
    let (me, another, stages) = (fabric.place(), PLACE + 1, &fabric.tables().stages);
    let words: Vec<_> =
        stages.of(PLACE).take(3).chain(stages.large().take(1)).map(|it| &it.head.word).collect();
    let ask = |nth: usize, asker, asked| words[nth].ask(words[nth].claim(asker, asked).unwrap());
    assert!(
        [ask(0, PLACE, me), ask(1, PLACE, another), ask(3, me, me)].iter().all(Option::is_some)
    );
    assert!(words[2].claim(PLACE, me).is_some());
    this(fabric).unwrap().askers.add(PLACE);
    outwait_given_up(fabric);
    let (asked, filling) = (Some(State::Asked), Some(State::Filling));
    let states: Vec<_> = words.iter().map(|word| word.seen().state()).collect();
    assert_eq!(states, [None, asked, filling, asked]);
}

#[test]
fn x07_who_is_found_as_the_time_is_over_is_served_the_next_time() {
    let (_context, _pd, fabric) = alone();
    let stage = fabric.tables().stages.large().next().unwrap();
    let (whose, needs) = (Whose::local(0), Access::empty());
    asks(fabric, stage, Request { code: Code::Read, whose, needs, operands: [0; 2] }, &[]);
    let calls = || sync::load_u32(&this(fabric).unwrap().calls);
    let before = calls();
    serve_within(fabric, 0);
    assert_eq!((state(stage.head), calls()), (Some(State::Asked), before + 1));
    serve(fabric);
    assert_eq!((state(stage.head), calls()), (Some(State::Done), before + 1));
}

#[test]
fn x07_who_gives_up_what_is_being_carried_out_says_so() {
    let (_context, _pd, fabric) = alone();
    let behind = || is_behind(fabric, PLACE);
    for (is_begun, is_answered) in [(false, false), (true, true), (true, false)] {
        let mut asking = Asking::new(fabric, PLACE, 0).unwrap();
        let word = &asking.stage.head.word;
        asking.seen = word.ask(asking.seen).unwrap();
        let serving = is_begun.then(|| word.serve(PLACE).unwrap());
        assert!(serving.is_none_or(|serving| !is_answered || word.answer(serving)));
        assert!(!behind());
        drop(asking);
        assert_eq!(behind(), is_begun && !is_answered);
    }
}

#[test]
fn x07_a_process_that_carries_nothing_out_catches_up_by_itself() {
    let (_context, _pd, fabric) = alone();
    let is_through = carry_out_for(fabric, PLACE);
    sweep(fabric, PLACE);
    assert!(is_behind(fabric, fabric.place()));
    is_through();
    assert!(!is_behind(fabric, fabric.place()));
    // Nor does one that looks for what it is asked, as all do that sleep.
    note_behind(fabric, fabric.place());
    serve(fabric);
    assert!(!this(fabric).unwrap().behind.is_noted());
}

#[test]
fn x07_who_waits_to_have_memory_back_serves_others_meanwhile() {
    let (_context, pd, fabric) = alone();
    let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
    let (index, _) = fabric.tables().qps.claim(PLACE).unwrap();
    fabric.qp(index).send.copying.open();
    let stage = is_asked(fabric);
    region.deregister();
    assert_eq!(state(stage), Some(State::Done), "it is served");
    fabric.qp(index).life().end(PLACE);
}

#[test]
fn x07_who_waits_for_an_answer_serves_others_meanwhile() {
    let (_context, _pd, fabric) = alone();
    let stage = is_asked(fabric);
    // The process that is asked is this one: it answers only if it serves.
    assert_eq!(ask(fabric, fabric.place()), Err(Trouble::Fault.into()), "there is no such memory");
    assert_eq!(state(stage), Some(State::Done), "it is served");
}

#[test]
fn x07_who_waits_to_ask_serves_others_meanwhile() {
    let (_context, _pd, fabric) = alone();
    let asked = is_asked(fabric);
    let own = || fabric.tables().stages.of(fabric.place());
    assert_eq!(own().filter_map(|stage| stage.head.word.claim(fabric.place(), PLACE)).count(), OWN);
    assert_eq!(ask(fabric, PLACE), Err(Trouble::NoAnswer.into()), "it has no stage left");
    assert_eq!(state(asked), Some(State::Done), "it is served");
}

/// Whether a stage can be had.
fn is_free(stage: Stage) -> bool {
    state(stage.head).is_none()
}

#[test]
fn x07_who_has_asked_leaves_no_trace_whatever_the_answer() {
    let (_context, _pd, fabric) = alone();
    let own = || fabric.tables().stages.of(fabric.place());
    let _of_a_thread = own().next().unwrap().head.word.claim(fabric.place(), PLACE).unwrap();
    for (place, trouble) in [(fabric.place(), Trouble::Fault), (PLACE, Trouble::NoAnswer)] {
        assert_eq!(ask(fabric, place), Err(trouble.into()));
        assert_eq!(own().map(is_free).collect::<Vec<_>>(), [false, true, true, true]);
        assert!(fabric.reach().copier().in_use.iter().all(|threads| sync::acquire(threads) == 0));
    }
}

#[test]
fn x07_who_is_alive_and_does_not_answer_is_given_up() {
    let (_context, _pd, fabric) = alone();
    let _serving = fabric.reach().copier().serving.lock().unwrap();
    assert_eq!(ask(fabric, fabric.place()), Err(Trouble::NoAnswer.into()));
}

#[test]
fn x03_who_is_asked_and_dead_is_swept_up_after() {
    let (_context, _pd, fabric) = alone();
    let dead = fabric.die_at(PLACE);
    assert_eq!(ask(fabric, PLACE), Err(Trouble::NoAnswer.into()));
    until("it is swept up after", || fabric.others().all(|other| other != dead));
}

#[test]
fn x07_the_answer_to_somebody_else_is_none() {
    let (_context, _pd, fabric) = alone();
    let stage = fabric.tables().stages.of(fabric.place()).next().unwrap();
    let word = &stage.head.word;
    // It is asked for longer than it takes to see that: this process lives, and does not serve.
    let _serving = fabric.reach().copier().serving();
    thread::scope(|scope| {
        let mut asks = scope.spawn(|| ask(fabric, fabric.place()));
        until("it asks", || {
            let has_given_up = asks.is_finished();
            if has_given_up {
                asks = scope.spawn(|| ask(fabric, fabric.place()));
            }
            !has_given_up && state(stage.head) == Some(State::Asked)
        });
        word.sweep(fabric.place());
        word.ask(word.claim(PLACE, PLACE).unwrap()).unwrap();
        let serving = word.serve(PLACE).unwrap();
        stage.head.answer(Outcome::Done, 7);
        assert!(word.answer(serving));
        assert_eq!(asks.join().unwrap(), Err(Trouble::NoAnswer.into()));
    });
}

#[test]
fn x03_what_a_dead_process_asked_for_is_forgotten() {
    let (_context, _pd, fabric) = alone();
    let stage = is_asked(fabric);
    sweep(fabric, PLACE);
    assert_eq!(state(stage), None);
}

#[test]
fn x04_stages_that_nobody_of_this_process_has_to_do_with_are_freed() {
    let (_context, _pd, fabric) = alone();
    let stages = &fabric.tables().stages;
    let [of_none, of_a_thread] = [0, 1].map(|nth| stages.of(fabric.place()).nth(nth).unwrap());
    let orphan = stages.of(PLACE).next().unwrap();
    for stage in [of_none, of_a_thread] {
        stage.head.word.claim(fabric.place(), PLACE).unwrap();
    }
    sync::enter(&fabric.reach().copier().in_use[1]);
    let word = &orphan.head.word;
    let request = word.ask(word.claim(PLACE, fabric.place()).unwrap()).unwrap();
    word.serve(fabric.place()).unwrap();
    word.give_up(request);
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
        assert_eq!(state(stage), Some(State::Asked));
        drop(serving);
        serves.join().unwrap();
    });
    assert_eq!(state(stage), Some(State::Done));
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
            let stages = &fabric.tables().stages;
            let any = || stages.all().find(|stage| state(stage.head) == Some(State::Asked));
            until("it asks", || any().is_some() || asks.is_finished());
            let code = any().and_then(|stage| stage.head.read()).map(|(asked, _)| asked.code);
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

/// A word of this process, on which it carries atomics out for others.
struct Counter {
    region: OwnedRegion,
    far: Far,
}

impl Counter {
    fn new(fabric: &'static Fabric, pd: &ProtectionDomain) -> Self {
        let region = pd.allocate(64, Access::LOCAL_WRITE | Access::REMOTE).unwrap();
        let (whose, needs) = (Whose::local(pd.domain().number()), Access::REMOTE_ATOMIC);
        Self { region, far: Far { place: fabric.place(), whose, needs } }
    }

    /// The process at [`PLACE`] asks this one to add.
    fn is_asked(&self, fabric: &'static Fabric) -> &'static Head {
        let stage = fabric.tables().stages.of(PLACE).next().unwrap();
        let Far { whose, needs, .. } = self.far;
        let request = Request { code: Code::FetchAdd, whose, needs, operands: [1, 0] };
        asks(fabric, stage, request, &[self.region.sge(0, 8).unwrap()]);
        stage.head
    }

    /// This process asks itself to add.
    fn add(&self, fabric: &'static Fabric) -> Result<u64, NotDone> {
        let piece = Piece::far(self.region.addr() as usize, 8, self.region.lkey());
        atomic(fabric, self.far, piece, Step::FetchAdd { add: 1 })
    }

    fn value(&self) -> u64 {
        let mut value = [0; 8];
        self.region.read(0, &mut value).unwrap();
        u64::from_ne_bytes(value)
    }
}

#[test]
fn x03_what_a_dead_process_had_asked_for_is_not_done_once_the_queue_pair_takes_no_more() {
    let (context, pd, fabric) = alone();
    let (cq, counter) = (context.create_cq(4, None).unwrap(), Counter::new(fabric, &pd));
    // For datagrams there would be the service thread, which serves whenever it likes.
    for kind in [QpType::Rc, QpType::Uc] {
        let to = |state| move |mut qp: QueuePair| qp.modify(&QpAttr::to(state)).unwrap();
        let ends: [&dyn Fn(QueuePair); 3] = [&to(QpState::Reset), &to(QpState::Err), &drop];
        for end in ends {
            let qp = receiver(&pd, &cq, kind);
            let stage = counter.is_asked(fabric);
            end(qp);
            serve(fabric);
            assert_eq!((state(stage), counter.value()), (None, 0), "{kind:?}");
        }
    }
    // Who lives is waited for elsewhere.
    let stage = fabric.tables().stages.of(fabric.place()).next().unwrap();
    let word = &stage.head.word;
    word.ask(word.claim(fabric.place(), fabric.place()).unwrap()).unwrap();
    this(fabric).unwrap().askers.add(fabric.place());
    drop(receiver(&pd, &cq, QpType::Rc));
    assert_eq!(state(stage.head), Some(State::Asked));
}

/// Serves what a thread of this process asks it for, as slowly as the test wants.
fn begins(fabric: &'static Fabric) -> (Stage, Seen) {
    let mut found = None;
    until("it is asked", || {
        let mut own = fabric.tables().stages.of(fabric.place());
        found = own.find_map(|stage| Some((stage, stage.head.word.serve(fabric.place())?)));
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn x05_an_atomic_that_nobody_has_begun_comes_back() {
    let (_context, pd, fabric) = alone();
    let counter = Counter::new(fabric, &pd);
    let serving = fabric.reach().copier().serving();
    assert_eq!(counter.add(fabric), Err(Trouble::NoAnswer.into()));
    drop(serving);
    serve(fabric);
    assert_eq!((counter.value(), fabric.tables().stages.all().all(is_free)), (0, true));
    assert_eq!((counter.add(fabric), counter.value()), (Ok(0), 1));
}

/// An atomic that is being carried out, and was not answered in time.
fn is_begun(fabric: &'static Fabric, counter: &Counter) -> (Begun, Stage, Seen) {
    let _serving = fabric.reach().copier().serving();
    thread::scope(|scope| {
        let adds = scope.spawn(|| counter.add(fabric));
        let (stage, serving) = begins(fabric);
        let Err(NotDone::Begun(begun)) = adds.join().unwrap() else { panic!("it is begun") };
        (begun, stage, serving)
    })
}

#[test]
fn x05_an_atomic_that_is_begun_is_waited_for_however_late_its_answer_is() {
    let (_context, pd, fabric) = alone();
    let counter = Counter::new(fabric, &pd);
    let (begun, stage, serving) = is_begun(fabric, &counter);
    assert_eq!(Begun::from_words(begun.to_words()), Some(begun), "it is kept");
    assert_eq!(Begun::from_words([0, 7]), None);
    tidy(fabric);
    assert_eq!(resume(fabric, begun), Err(NotDone::Begun(begun)));
    tidy(fabric);
    stage.head.answer(Outcome::Done, 7);
    assert!(stage.head.word.answer(serving), "it is waited for");
    assert_eq!(resume(fabric, begun), Ok(7));
    assert!(is_free(stage));
    assert!(fabric.reach().copier().in_use.iter().all(|threads| sync::acquire(threads) == 0));
}

#[test]
fn x05_the_answer_to_an_atomic_is_found_that_came_when_nobody_waited() {
    let (_context, pd, fabric) = alone();
    let counter = Counter::new(fabric, &pd);
    for outcome in [Outcome::Refused, Outcome::Later] {
        let (begun, stage, serving) = is_begun(fabric, &counter);
        stage.head.answer(outcome, 0);
        assert!(stage.head.word.answer(serving));
        let trouble = if outcome == Outcome::Refused { Trouble::Fault } else { Trouble::NoAnswer };
        assert_eq!(resume(fabric, begun), Err(trouble.into()));
        assert!(is_free(stage));
    }
}

#[test]
fn x05_an_atomic_that_nobody_waits_for_gives_its_stage_back_once_it_is_done() {
    let (_context, pd, fabric) = alone();
    let counter = Counter::new(fabric, &pd);
    let (begun, stage, serving) = is_begun(fabric, &counter);
    abandon(fabric, begun);
    assert_eq!(state(stage.head), Some(State::Orphaned));
    assert!(!stage.head.word.answer(serving), "nobody waits");
    assert!(is_free(stage));
    assert_eq!(resume(fabric, begun), Err(Trouble::NoAnswer.into()));
}

#[test]
fn x03_an_atomic_that_a_dead_process_had_begun_ends_and_leaves_its_stage() {
    let (_context, pd, fabric) = alone();
    let counter = Counter::new(fabric, &pd);
    let stage = fabric.tables().stages.of(fabric.place()).next().unwrap();
    let word = &stage.head.word;
    let seen = word.ask(word.claim(fabric.place(), PLACE).unwrap()).unwrap();
    word.serve(PLACE).unwrap();
    sync::enter(&fabric.reach().copier().in_use[0]);
    let begun = Begun { stage: stage.index(), seen };
    assert_eq!(resume(fabric, begun), Err(Trouble::NoAnswer.into()));
    assert!(is_free(stage));
    assert_eq!(counter.value(), 0);
}

/// Has this process move bytes to its own memory by asking itself.
fn moves(fabric: &'static Fabric, pd: &ProtectionDomain, len: usize) -> Result<(), Trouble> {
    let data: Vec<_> = (1..=len as u64 / 8).map(AtomicU64::new).collect();
    let region = pd.allocate(len, Access::LOCAL_WRITE | Access::REMOTE).unwrap();
    let (whose, needs) = (Whose::local(pd.domain().number()), Access::REMOTE_WRITE);
    let far = Far { place: fabric.place(), whose, needs };
    let there = Piece::far(region.addr() as usize, len as u32, region.lkey());
    let (from, to) = (Pieces::of_words(&data, len), Target::of_far(far, there));
    let order = Order::LastWordLast;
    carry(&Transfer { fabric, far, from: &from, to: &to, order }, 0..len, len)?;
    let mut moved = vec![0; len];
    region.read(0, &mut moved).unwrap();
    let expected = (1..=len as u64 / 8).flat_map(u64::to_ne_bytes);
    assert!(moved.into_iter().eq(expected));
    Ok(())
}

#[test]
fn x07_bytes_are_moved_though_others_have_every_stage_that_they_can() {
    let (_context, pd, fabric) = alone();
    let stages = &fabric.tables().stages;
    let all = (0..fabric.limits().processes as u16).filter(|&place| place != fabric.place());
    let others = all.flat_map(|place| stages.of(place)).chain(stages.large());
    let taken = others.filter_map(|stage| stage.head.word.claim(PLACE, PLACE)).count();
    assert_eq!(taken, (fabric.limits().processes as usize - 1) * OWN + LARGE);
    for len in [8, 64, SMALL_BYTES, SMALL_BYTES + 8, 3 * LARGE_BYTES + 8] {
        assert_eq!(moves(fabric, &pd, len), Ok(()), "{len} bytes");
    }
    // What is small still has stages, where large messages take all they may.
    let own = stages.of(fabric.place()).skip(OWN / 2);
    assert_eq!(own.filter_map(|stage| stage.head.word.claim(PLACE, PLACE)).count(), OWN / 2);
    assert_eq!(moves(fabric, &pd, 64), Ok(()));
    assert_eq!(moves(fabric, &pd, SMALL_BYTES + 8), Err(Trouble::NoAnswer));
}

#[test]
fn x07_who_waits_for_a_stage_waits_while_its_process_gets_on() {
    let (_context, pd, fabric) = alone();
    let own: Vec<_> = fabric.tables().stages.of(fabric.place()).collect();
    let claim = |stage: &Stage| stage.head.word.claim(PLACE, PLACE).unwrap();
    let mut seen: Vec<_> = own.iter().map(claim).collect();
    let (end, mut asks) = (Instant::now() + 3 * PATIENCE, true);
    thread::scope(|scope| {
        let moves = scope.spawn(|| moves(fabric, &pd, 8));
        let waiting = &fabric.reach().copier().waiting;
        until("it waits", || sync::acquire(waiting) == 1);
        while Instant::now() < end {
            // In no instant is one free.
            seen[0] = match own[0].head.word.recall(seen[0]) {
                Recalled::Back(mine) if asks => own[0].head.word.ask(mine).unwrap(),
                Recalled::Back(mine) => mine,
                other => panic!("{other:?}"),
            };
            asks = !asks;
            thread::sleep(Duration::from_millis(1));
        }
        own[3].head.word.give_up(seen[3]);
        assert_eq!(moves.join().unwrap(), Ok(()));
    });
}
