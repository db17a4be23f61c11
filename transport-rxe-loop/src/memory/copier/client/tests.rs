//! What becomes of requests to another process that answers late or never, and whom a process serves that waits.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::*;
use crate::inside::prelude::*;
use crate::memory::copier::tests::{Counter, is_asked, is_free, me, own, state};
use crate::memory::copier::{carry_out, has_abandoned, serve, tidy};
use crate::memory::copy_guard::Word;
use crate::memory::paths::AccessPath;
use crate::memory::stage::LARGE_BYTES;
use crate::memory::{atomics, copy};
use crate::shm::{claim, header, liveness};

/// Asks the process at a place for an atomic on memory that it does not know.
fn ask(device: &'static Device, attachment: AttachmentId) -> Result<u64, NotDone> {
    let far = Far { attachment, whose: KeyUser::local(0), needs: Access::empty() };
    atomic(device.memory, far, Span::far(8, 8, Key::new(0)), AtomicOp::FetchAdd { add: 1 })
}

/// The first stage of this process, by which it has asked that at [`ANOTHER`] for an atomic, which has begun it.
fn is_begun_by_another(device: &'static Device) -> (Stage, Seen) {
    let stage = own(device, 0);
    let word = &stage.head.word;
    let seen = word.ask(word.claim(me(device), ANOTHER).unwrap()).unwrap();
    word.serve(ANOTHER).unwrap();
    sync::enter(&device.memory.copier.in_use[0]);
    (stage, seen)
}

fn is_at_rest(device: &'static Device) -> bool {
    device.memory.copier.in_use.iter().all(|threads| sync::acquire(threads) == 0)
}

#[test]
fn x07_who_gives_up_what_is_being_carried_out_says_so() {
    let device = Fixture::new().device;
    let abandoned = || has_abandoned(device.memory, ANOTHER);
    let calls = || sync::load(device.shm.calls_of(ANOTHER));
    for (is_begun, is_answered) in [(false, false), (true, true), (true, false)] {
        let mut claimed = ClaimedStage::new(device.memory, ANOTHER, 0).unwrap();
        let word = &claimed.stage.head.word;
        claimed.seen = word.ask(claimed.seen).unwrap();
        let serving = is_begun.then(|| word.serve(ANOTHER).unwrap());
        assert!(serving.is_none_or(|serving| !is_answered || word.answer(serving)));
        assert!(!abandoned());
        let before = calls();
        drop(claimed);
        assert_eq!(abandoned(), is_begun && !is_answered);
        assert_eq!(calls() > before, abandoned(), "it is to see that it is not any more");
    }
}

#[test]
fn x07_who_waits_for_an_answer_or_to_ask_serves_others_meanwhile() {
    let device = Fixture::new().device;
    let stage = is_asked(device);
    // The process that is asked is this one: it answers only if it serves.
    assert_eq!(ask(device, me(device)), Err(Trouble::Fault.into()), "there is no such memory");
    assert_eq!(state(stage), Some(State::Done), "it is served");

    let device = Fixture::new().device;
    let asked = is_asked(device);
    let stages = &device.memory.stages;
    let all = stages.of(me(device)).chain(stages.large());
    let taken = all.filter_map(|stage| stage.head.word.claim(me(device), ANOTHER)).count();
    assert_eq!(taken, OWN + LARGE);
    assert_eq!(ask(device, ANOTHER), Err(Trouble::NoAnswer.into()), "it has no stage left");
    assert_eq!(state(asked), Some(State::Done), "it is served");
}

#[test]
fn x07_who_has_asked_leaves_no_trace_whatever_the_answer() {
    let device = Fixture::new().device;
    let _of_a_thread = own(device, 0).head.word.claim(me(device), ANOTHER).unwrap();
    for (place, trouble) in [(me(device), Trouble::Fault), (ANOTHER, Trouble::NoAnswer)] {
        assert_eq!(ask(device, place), Err(trouble.into()));
        assert_eq!([0, 1, 2, 3].map(|nth| is_free(own(device, nth))), [false, true, true, true]);
        assert!(is_at_rest(device));
    }
}

#[test]
fn x03_requests_to_a_dead_process_are_recovered() {
    let device = Fixture::new().device;
    let dead = device.shm.die_at(ANOTHER);
    assert_eq!(ask(device, ANOTHER), Err(Trouble::NoAnswer.into()));
    until("it is swept up after", || device.shm.others().all(|other| other != dead));
}

#[test]
fn x07_the_answer_to_somebody_else_is_none() {
    let device = Fixture::new().device;
    let stage = own(device, 0);
    let word = &stage.head.word;
    let _serving = sync::lock(&device.memory.copier.serving);
    thread::scope(|scope| {
        let mut asks = scope.spawn(|| ask(device, me(device)));
        until("it asks", || {
            let has_given_up = asks.is_finished();
            if has_given_up {
                asks = scope.spawn(|| ask(device, me(device)));
            }
            !has_given_up && state(stage.head) == Some(State::Asked)
        });
        word.recover(me(device));
        word.ask(word.claim(ANOTHER, ANOTHER).unwrap()).unwrap();
        let serving = word.serve(ANOTHER).unwrap();
        stage.head.answer(Outcome::Done, 7);
        assert!(word.answer(serving));
        assert_eq!(asks.join().unwrap(), Err(Trouble::NoAnswer.into()));
    });
}

/// It asks itself, which lives and does not serve, until it is seen by which code.
#[test]
fn q08_a_little_is_asked_for_with_its_last_word_late() {
    let device = Fixture::new().device;
    let data = [const { AtomicU64::new(0) }; 1024];
    let far = Far { attachment: me(device), whose: KeyUser::local(0), needs: Access::empty() };
    // It is asked for longer than it takes to see that: this process lives, and does not serve.
    let _serving = sync::lock(&device.memory.copier.serving);
    for (len, wanted) in [(64, Code::WriteLate), (8192, Code::Write)] {
        let from = Spans::of_words(&data, len);
        let to = Target::of_far(far, Span::far(8, len as u32, Key::new(1)));
        let seen = AtomicBool::new(false);
        thread::scope(|scope| {
            let (seen, order) = (&seen, Order::LastWordLast);
            let transfer = Transfer { memory: device.memory, far, from: &from, to: &to, order };
            scope.spawn(move || {
                while !seen.load(Ordering::Relaxed) {
                    assert_eq!(carry(&transfer, 0..len, len), Err(Trouble::NoAnswer));
                }
            });
            until("it asks", || {
                let mut stages = device.memory.stages.all();
                let asked = stages.find(|stage| state(stage.head) == Some(State::Asked));
                let code = asked.and_then(|stage| stage.head.read()).map(|(asked, _)| asked.code);
                seen.store(code == Some(wanted), Ordering::Relaxed);
                assert!(code.is_none_or(|code| code == wanted), "{len} bytes: {code:?}");
                code.is_some()
            });
        });
    }
}

/// Serves what a thread of this process asks it for, as slowly as the test wants.
fn begins(device: &'static Device) -> (Stage, Seen) {
    let mut found = None;
    until("it is asked", || {
        let mut stages = device.memory.stages.of(me(device));
        found = stages.find_map(|stage| Some((stage, stage.head.word.serve(me(device))?)));
        found.is_some()
    });
    found.unwrap()
}

/// An atomic that is being carried out, and was not answered in time.
struct Begun {
    fixture: Fixture,
    counter: Counter,
    begun: PendingAtomic,
    stage: Stage,
    serving: Seen,
}

impl Begun {
    fn new() -> Self {
        let fixture = Fixture::new();
        let (device, counter) = (fixture.device, Counter::new(&fixture));
        let _serving = sync::lock(&device.memory.copier.serving);
        let (begun, stage, serving) = thread::scope(|scope| {
            let adds = scope.spawn(|| counter.add(device));
            let (stage, serving) = begins(device);
            let Err(NotDone::PendingAtomic(begun)) = adds.join().unwrap() else {
                panic!("it is begun")
            };
            (begun, stage, serving)
        });
        Self { fixture, counter, begun, stage, serving }
    }

    fn resume(&self) -> Result<u64, NotDone> {
        resume(self.fixture.device.memory, self.begun)
    }

    /// It is answered; false if nobody waits.
    fn answer(&self, outcome: Outcome, held: u64) -> bool {
        self.stage.head.answer(outcome, held);
        self.stage.head.word.answer(self.serving)
    }
}

#[test]
fn x05_an_atomic_that_nobody_has_begun_comes_back() {
    let fixture = Fixture::new();
    let (device, counter) = (fixture.device, Counter::new(&fixture));
    let serving = sync::lock(&device.memory.copier.serving);
    assert_eq!(counter.add(device), Err(Trouble::NoAnswer.into()));
    drop(serving);
    serve(device.memory);
    assert_eq!((counter.value(), device.memory.stages.all().all(is_free)), (0, true));
    assert_eq!((counter.add(device), counter.value()), (Ok(0), 1));
}

#[test]
fn x05_an_atomic_that_is_begun_is_waited_for_however_late_its_answer_is() {
    let it = Begun::new();
    let device = it.fixture.device;
    assert_eq!(PendingAtomic::from_words(it.begun.to_words()), Some(it.begun), "it is kept");
    assert_eq!(PendingAtomic::from_words([0, 7]), None);
    tidy(device.memory);
    assert_eq!(it.resume(), Err(NotDone::PendingAtomic(it.begun)));
    tidy(device.memory);
    assert!(it.answer(Outcome::Done, 7), "it is waited for");
    assert_eq!(it.resume(), Ok(7));
    assert!(is_free(it.stage) && is_at_rest(device));
}

#[test]
fn x05_the_answer_to_an_atomic_is_found_that_came_when_nobody_waited() {
    for (outcome, trouble) in
        [(Outcome::Refused, Trouble::Fault), (Outcome::Later, Trouble::NoAnswer)]
    {
        let it = Begun::new();
        assert!(it.answer(outcome, 0));
        assert_eq!(it.resume(), Err(trouble.into()));
        assert!(is_free(it.stage));
    }
}

#[test]
fn x05_an_atomic_that_nobody_waits_for_gives_its_stage_back_once_it_is_done() {
    let it = Begun::new();
    abandon(it.fixture.device.memory, it.begun);
    assert_eq!(state(it.stage.head), Some(State::Orphaned));
    assert!(!it.stage.head.word.answer(it.serving), "nobody waits");
    assert!(is_free(it.stage));
    assert_eq!(it.resume(), Err(Trouble::NoAnswer.into()));
    assert_eq!(it.counter.value(), 0);
}

/// Has this process move bytes to its own memory by asking itself.
fn moves(fixture: &Fixture, len: usize) -> Result<(), Trouble> {
    let memory = fixture.device.memory;
    let data: Vec<_> = (1..=len as u64 / 8).map(AtomicU64::new).collect();
    let region = fixture.region(len);
    let (far, there) = far_of(fixture, &region, len);
    let (from, to) = (Spans::of_words(&data, len), Target::of_far(far, there));
    let order = Order::LastWordLast;
    carry(&Transfer { memory, far, from: &from, to: &to, order }, 0..len, len)?;
    let mut moved = vec![0; len];
    region.read(0, &mut moved).unwrap();
    let expected = (1..=len as u64 / 8).flat_map(u64::to_ne_bytes);
    assert!(moved.into_iter().eq(expected));
    Ok(())
}

/// A region of this process as others see it.
fn far_of(fixture: &Fixture, region: &OwnedRegion, len: usize) -> (Far, Span) {
    let whose = KeyUser::local(fixture.pd.domain.number);
    let far = Far { attachment: me(fixture.device), whose, needs: Access::REMOTE_WRITE };
    (far, Span::far(region.addr() as usize, len as u32, Key::new(region.lkey())))
}

#[test]
fn x07_bytes_are_moved_though_others_have_every_stage_that_they_can() {
    let fixture = Fixture::new();
    let (device, processes) = (fixture.device, fixture.device.shm.shape().processes as usize);
    let stages = &device.memory.stages;
    let all = (0..processes as u16).map(AttachmentId::new).filter(|&other| other != me(device));
    let others = all.flat_map(|place| stages.of(place)).chain(stages.large());
    let taken = others.filter_map(|stage| stage.head.word.claim(ANOTHER, ANOTHER)).count();
    assert_eq!(taken, (processes - 1) * OWN + LARGE);
    for len in [8, 64, SMALL_BYTES, SMALL_BYTES + 8, 3 * LARGE_BYTES + 8] {
        assert_eq!(moves(&fixture, len), Ok(()), "{len} bytes");
    }
    // What is small still has stages, where large messages take all they may.
    let own = stages.of(me(device)).skip(OWN / 2);
    assert_eq!(own.filter_map(|stage| stage.head.word.claim(ANOTHER, ANOTHER)).count(), OWN / 2);
    assert_eq!(moves(&fixture, 64), Ok(()));
    assert_eq!(moves(&fixture, SMALL_BYTES + 8), Err(Trouble::NoAnswer));
}

#[test]
fn x07_what_is_large_leaves_the_small_stages_alone_at_first_and_half_of_them_for_good() {
    let device = Fixture::new().device;
    let large: Vec<_> = device.memory.stages.large().map(|stage| stage.index).collect();
    let claimed = |len, may| {
        let claim =
            || Some(ManuallyDrop::new(ClaimedStage::claim(device.memory, ANOTHER, len, may)?));
        std::iter::from_fn(claim).map(|claimed| claimed.stage.index).collect::<Vec<_>>()
    };
    assert_eq!(claimed(SMALL_BYTES + 1, false), large);
    assert_eq!(claimed(SMALL_BYTES + 1, true).len(), OWN / 2);
    assert_eq!(claimed(SMALL_BYTES, false).len(), OWN - OWN / 2);
}

#[test]
fn x07_who_waits_for_a_stage_waits_while_its_process_gets_on() {
    let fixture = Fixture::new();
    let device = fixture.device;
    let own: Vec<_> = device.memory.stages.of(me(device)).collect();
    let claim = |stage: &Stage| stage.head.word.claim(ANOTHER, ANOTHER).unwrap();
    let mut seen: Vec<_> = own.iter().map(claim).collect();
    device.memory.stages.large().for_each(|stage| _ = claim(&stage));
    let (end, mut asks) = (Instant::now() + 3 * PATIENCE, true);
    thread::scope(|scope| {
        let moves = scope.spawn(|| moves(&fixture, 8));
        let waiting = &device.memory.copier.waiting;
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
        assert_eq!(sync::acquire(waiting), 0);
    });
}

#[test]
fn x03_an_atomic_begun_by_a_dead_process_ends_though_its_attachment_is_reused() {
    for is_reused in [false, true] {
        let (device, mut owner) = (Fixture::new().device, 0);
        let (stage, seen) = is_begun_by_another(device);
        // To the end, as closing it would unlock what is locked here.
        let path = device.shm.path().file();
        let file = File::options().read(true).write(true).open(path).unwrap();
        if is_reused {
            // Nobody has its lock.
            owner = device.shm.die_at(ANOTHER).to_word();
            recover_all(device);
            let claim = &header::claims(device.shm.memory(), device.shm.shape())[ANOTHER.index()];
            let next = claim::next(ANOTHER.get().into(), claim);
            assert!(claim::take(claim, next) && liveness::hold(file.as_fd(), next).unwrap());
            assert!(device.shm.is_alive(ANOTHER), "another one");
        }
        let begun = PendingAtomic { stage: stage.index as u32, seen, owner };
        assert!(!is_reused || PendingAtomic::from_words(begun.to_words()) == Some(begun));
        assert_eq!(resume(device.memory, begun), Err(Trouble::NoAnswer.into()));
        assert!(is_free(stage));
    }
}

/// What was given up is still being carried out when its next try, and what comes after, could be moved by the system.
#[test]
fn x05_what_was_given_up_does_not_land_after_what_was_written_later() {
    let fixture = Fixture::new();
    let (device, region) = (fixture.device, fixture.region(64));
    let (far, span) = far_of(&fixture, &region, 8);
    let there = Target::of_far(far, span);
    let write = |value: u64| {
        let data = [AtomicU64::new(value)];
        copy::copy(device.memory, &Spans::of_words(&data, 8), &there, Order::LastWordLast)
    };
    let paths = &device.memory.paths;
    let AccessPath::Direct(process) = paths.of(device.memory, me(device)) else {
        panic!("it is not asked")
    };
    // The system refuses, for a moment: it has no memory, say.
    paths.learn(device.memory, me(device), process, Errno::NOMEM).unwrap();
    let serving = sync::lock(&device.memory.copier.serving);
    let (stage, begun) = thread::scope(|scope| {
        let writes = scope.spawn(|| write(1));
        let begun = begins(device);
        assert_eq!(writes.join().unwrap(), Err(Trouble::NoAnswer));
        begun
    });
    until("it is reached directly again", || {
        matches!(paths.of(device.memory, me(device)), AccessPath::Direct(_))
    });
    assert_eq!(write(1), Err(Trouble::NoAnswer), "it is still in flight");
    // As if others did not map it.
    let word = Word::Far { far, span, is_mapped: false };
    let stored = atomics::apply(device.memory, &word, AtomicOp::Store { value: 1 });
    assert_eq!(stored, Err(Trouble::NoAnswer.into()), "an atomic, too, comes behind it");
    let (outcome, held) = carry_out(device.memory, stage);
    stage.head.answer(outcome, held);
    assert!(!stage.head.word.answer(begun));
    drop(serving);
    assert_eq!(write(2), Ok(()));
    let mut value = [0; 8];
    region.read(0, &mut value).unwrap();
    assert_eq!(u64::from_ne_bytes(value), 2);
}

#[test]
fn x03_a_stage_is_free_where_what_a_dead_process_had_begun_is_abandoned() {
    let device = Fixture::new().device;
    let owner = device.shm.die_at(ANOTHER).to_word();
    let (stage, seen) = is_begun_by_another(device);
    recover_all(device);
    assert_eq!(state(stage.head), Some(State::Serving), "its client lives");
    abandon(device.memory, PendingAtomic { stage: stage.index as u32, seen, owner });
    assert!(is_free(stage));
}

#[test]
fn x07_as_many_as_have_small_stages_may_be_suspended_and_others_are_asked() {
    let device = Fixture::new().device;
    for nth in 0..OWN as u16 {
        let server = AttachmentId::new(ANOTHER.get() + nth);
        let mut claimed = ClaimedStage::new(device.memory, server, 0).unwrap();
        // They live.
        claimed.owner = device.shm.owner_at(me(device));
        let word = &claimed.stage.head.word;
        claimed.seen = word.ask(claimed.seen).unwrap();
        word.serve(server).unwrap();
    }
    let mut all = device.memory.stages.of(me(device));
    assert!(all.all(|stage| state(stage.head) == Some(State::Orphaned)));
    assert_eq!(ask(device, me(device)), Err(Trouble::Fault.into()), "it knows no such memory");
}

#[test]
fn x05_an_atomic_waits_for_a_lock_that_is_given_back_in_time() {
    let fixture = Fixture::new();
    let (device, counter) = (fixture.device, Counter::new(&fixture));
    let held = device.memory.lock(counter.lock(device), || {}).unwrap();
    thread::scope(|scope| {
        let adds = scope.spawn(|| counter.add(device));
        until("it is told to ask again", || {
            let mut stages = device.memory.stages.of(me(device));
            stages.any(|stage| sync::acquire(&stage.head.answers) > 0)
        });
        drop(held);
        assert_eq!(adds.join().unwrap(), Ok(0));
    });
    let _suspended = device.memory.lock(counter.lock(device), || {}).unwrap();
    assert_eq!(counter.add(device), Err(Trouble::NoAnswer.into()), "but not for ever");
    assert_eq!(counter.value(), 1);
}
