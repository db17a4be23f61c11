//! Copying through the fabric, where the system does not let one process move bytes of another: the owner of
//! the memory does it itself, by whichever of its threads comes first, most often its
//! [service thread](crate::lifecycle::service). It judges by what it knows itself of its regions.
//!
//! Who waits for another process so serves others meanwhile: two that wait for each other go on.
//!
//! # Who waits for whom
//! A request goes through a [stage](crate::memory::stage) of its asker's own, so nobody waits for what a third process
//! does. Parts of large messages go through one of the stages that all share; where these are taken for
//! [longer than a little](asking), in smaller parts through the asker's own. A stage is had for one part, and given back
//! before the next. Who waits for a stage waits for as long as others of its process [get on](Copier::rounds).
//!
//! # What is begun is not begun again
//! Bytes that are copied twice are the same bytes, and the owner copies in the order in which it is asked: so who is
//! not answered in [time](asking) gives up, and its request is tried again later. An atomic is not: it is
//! [recalled](crate::protocol::stage::Word::recall), and if it is being carried out by then, [kept](asking::Begun). The
//! stage stays the request's, and its next try waits for that answer.
//!
//! # Abandoned requests
//! A request whose asker gives up, or dies, may still be in flight at the owner. What it writes to may be a receive that
//! is given back with it: of a shared receive queue, or of a queue pair for datagrams. So the owner is
//! [marked](crate::protocol::stage::Abandoned) before that, and nobody else writes to receives of its until it has
//! nothing in flight. A connection's receive needs no mark: nobody but the same peer takes it before RESET, which waits.

pub mod asking;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use cq_core::setup::Access;
use cq_core::wr::RemoteAddr;
use rustix::thread::futex;

use crate::memory::Memory;
use crate::memory::atomic_op::{self, AtomicOp};
use crate::memory::copy_guard::{CopyGuard, Word};
use crate::memory::sge::{self, Spans, Target};
use crate::memory::stage::{Code, LARGE, OWN, Outcome, Request, Stage};
use crate::protocol::stage::{Abandoned, Askers, Seen, State};
use crate::protocol::steps;
use crate::protocol::window::{Copying, Shut};
use crate::shm::lock::Backoff;
use crate::shm::table::shared;
use crate::sync::{self, AtomicU32};

/// What other processes have for the one at a place.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct CopierEntry {
    /// Who has asked it for something.
    pub askers: Askers,
    /// Whether it may still carry out what they have given up.
    pub abandoned: Abandoned,
}

shared!(CopierEntry);

/// How often in a row it is looked for more to serve.
const ROUNDS: usize = 64;

/// What this process has for copying on behalf of others.
#[derive(Default)]
pub struct Copier {
    /// Held by who serves.
    serving: Mutex<()>,
    /// Odd while bytes are copied.
    copying: Copying,
    /// How many threads have each stage that this process may use, or try to: its own, then the large ones.
    in_use: [AtomicU32; OWN + LARGE],
    /// How many threads wait for a stage.
    waiting: AtomicU32,
}

impl Copier {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// To be opened by a test, as if something were copied for others.
    #[cfg(test)]
    pub const fn copying(&self) -> &Copying {
        &self.copying
    }

    /// Waits until what is being copied for others has been.
    pub fn outwait(&self, shut: &Shut) {
        let mut backoff = Backoff::default();
        shut.wait(&self.copying, || {
            backoff.snooze();
            true
        });
    }

    fn serving(&self) -> MutexGuard<'_, ()> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_serving(&self) -> Option<MutexGuard<'_, ()>> {
        match self.serving.try_lock() {
            Ok(serving) => Some(serving),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The stages that this process may use, and how many of its threads have each.
    fn mine(&self, memory: &'static Memory) -> impl Iterator<Item = (Stage, &AtomicU32)> {
        let stages = &memory.stages;
        stages.of(memory.shm.place()).chain(stages.large()).zip(&self.in_use)
    }

    /// What changes whenever a stage of this process' own does.
    fn rounds(memory: &'static Memory) -> [Option<Seen>; OWN] {
        let mut own = memory.stages.of(memory.shm.place());
        [(); OWN].map(|()| own.next().map(|stage| stage.head.word.seen()))
    }
}

impl fmt::Debug for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copier").finish_non_exhaustive()
    }
}

/// What the process at a place has asked is being carried out, until what this returns is called.
#[cfg(test)]
pub fn carry_out_for(memory: &'static Memory, asker: u16) -> impl FnOnce() {
    let serving = memory.copier().serving();
    let word = &memory.stages.of(asker).next().unwrap().head.word;
    word.ask(word.claim(asker, memory.shm.place()).unwrap()).unwrap();
    let seen = word.serve(memory.shm.place()).unwrap();
    move || {
        word.answer(seen);
        drop(serving);
    }
}

/// Waits until what others had asked for and given up since is over: their own windows say nothing of it. What dead
/// processes had asked for, and nobody has begun, is not carried out any more. To be called once the windows of the
/// living are closed.
pub fn outwait_given_up(memory: &'static Memory) {
    let _serving = memory.copier().serving();
    let (stages, process) = (&memory.stages, this(memory));
    let askers = process.into_iter().flat_map(|process| process.askers.look());
    let askers = askers.filter(|&asker| !memory.shm.is_alive(asker));
    for stage in askers.flat_map(|asker| stages.of(asker)).chain(stages.large()) {
        let (word, seen) = (&stage.head.word, stage.head.word.seen());
        let is_asked = seen.state() == Some(State::Asked) && seen.asked() == memory.shm.place();
        if is_asked && !memory.shm.is_alive(seen.asker()) {
            word.cancel(seen);
        }
    }
}

fn this(memory: &'static Memory) -> Option<&'static CopierEntry> {
    memory.copiers.get(usize::from(memory.shm.place()))
}

/// Does what other processes have asked of this one.
pub fn serve(memory: &'static Memory) {
    if this(memory).is_some_and(|process| process.askers.any() || process.abandoned.is_marked()) {
        let _serving = memory.copier().serving();
        serve_all(memory, ROUNDS);
    }
}

/// The same, if no other thread does.
pub fn serve_if_nobody_does(memory: &'static Memory) {
    if let Some(_serving) = memory.copier().try_serving() {
        serve_all(memory, ROUNDS);
    }
}

/// Looks at the large stages so many times at most. Who asks for little waits for one large part of others at most.
/// No other thread of this process serves.
fn serve_all(memory: &'static Memory, rounds: usize) {
    clear_abandoned(memory);
    let mut more = serve_askers(memory);
    for _ in 0..rounds {
        if !more {
            return;
        }
        more = false;
        for stage in memory.stages.large() {
            if serve_one(memory, stage) {
                more |= serve_askers(memory);
            }
        }
    }
    if let Some(process) = this(memory).filter(|_| more) {
        // Who was found last may have asked by one of them: they are looked at the next time.
        process.askers.add(memory.shm.place());
        memory.shm.call(memory.shm.place());
    }
}

/// Whether an abandoned request may still be in flight at the process at a place, and write to its receives. To be asked
/// by who has just taken one, or is about to.
#[inline]
pub fn has_abandoned(memory: &'static Memory, place: u16) -> bool {
    let process = memory.copiers.get(usize::from(place));
    process.is_some_and(|process| process.abandoned.is_marked())
        && !(place == memory.shm.place() && is_idle(memory))
}

/// Whether this process has nothing in flight for others: then it has nothing abandoned, either.
#[cold]
fn is_idle(memory: &'static Memory) -> bool {
    let serving = memory.copier().try_serving();
    if serving.is_some() {
        clear_abandoned(memory);
    }
    serving.is_some()
}

/// This process has nothing in flight for others: no thread serves.
fn clear_abandoned(memory: &'static Memory) {
    if let Some(process) = this(memory).filter(|process| process.abandoned.is_marked()) {
        process.abandoned.clear();
    }
}

/// An abandoned request may be in flight at the process at a place.
#[cold]
fn mark_abandoned(memory: &'static Memory, place: u16) {
    if let Some(process) = memory.copiers.get(usize::from(place)) {
        process.abandoned.mark();
        memory.shm.call(place);
    }
}

/// Leaves a stage in the place of its asker, whatever that one had asked for. True if that is in flight all the same.
fn give_up(memory: &'static Memory, stage: Stage, seen: Seen) -> bool {
    let is_in_flight = stage.head.word.give_up(seen);
    if is_in_flight {
        mark_abandoned(memory, seen.asked());
    }
    is_in_flight
}

/// Serves the small stages of who has asked since this was called last; false if nobody has.
fn serve_askers(memory: &'static Memory) -> bool {
    let mut any = false;
    for asker in this(memory).into_iter().flat_map(|process| process.askers.take()) {
        any = true;
        for stage in memory.stages.of(asker) {
            serve_one(memory, stage);
        }
    }
    any
}

/// Serves a stage; false if it holds no request for this process.
fn serve_one(memory: &'static Memory, stage: Stage) -> bool {
    let Some(serving) = stage.head.word.serve(memory.shm.place()) else { return false };
    let (outcome, held) = carry_out(memory, stage);
    steps::done(steps::Step::Served);
    stage.head.answer(outcome, held);
    stage.head.word.answer(serving);
    sync::count(&stage.head.answers);
    let _ = futex::wake(&stage.head.answers, futex::Flags::empty(), 1);
    true
}

/// Does what is asked. No memory but this process' own regions, as it knows them, is touched.
fn carry_out(memory: &'static Memory, stage: Stage) -> (Outcome, u64) {
    let Some((request, pieces)) = stage.head.read() else { return (Outcome::Refused, 0) };
    let window = CopyGuard::open_to_own(memory, &memory.copier().copying);
    let Request { code, whose, needs, operands: [first, second] } = request;
    let done = match code {
        Code::Write | Code::WriteLate => {
            let mut to = Target::new();
            window.target(&mut to, whose, pieces, needs, stage.bytes() as u64).map(|()| {
                let from = Spans::of_words(stage.data, to.pieces().len());
                if code == Code::WriteLate {
                    sge::copy_last_word_late(&from, &to);
                } else {
                    sge::copy(&from, &to);
                }
            })
        }
        Code::Read => {
            let mut from = Spans::new();
            window
                .source(&mut from, whose, pieces, needs)
                .map(|()| sge::copy(&from, &Target::of_words(stage.data, stage.bytes())))
        }
        Code::CompareSwap | Code::FetchAdd | Code::Store => {
            let (step, right) = match code {
                Code::CompareSwap => {
                    (AtomicOp::CompareSwap { compare: first, swap: second }, Access::REMOTE_ATOMIC)
                }
                Code::FetchAdd => (AtomicOp::FetchAdd { add: first }, Access::REMOTE_ATOMIC),
                _ => (AtomicOp::Store { value: first }, Access::REMOTE_WRITE),
            };
            let at = pieces.map(|sge| RemoteAddr { addr: sge.addr, rkey: sge.lkey }).next();
            let word = at.and_then(|at| window.word(whose, at, right));
            return word.map_or((Outcome::Refused, 0), |word| atomic_here(memory, &word, step));
        }
    };
    (done.map_or(Outcome::Refused, |()| Outcome::Done), 0)
}

fn atomic_here(memory: &'static Memory, word: &Word<'_>, step: AtomicOp) -> (Outcome, u64) {
    match atomic_op::apply_soon(memory, word, step) {
        Some(held) => (Outcome::Done, held),
        None => (Outcome::Later, 0),
    }
}

/// Leaves what a dead process has to do with.
pub fn sweep(memory: &'static Memory, dead: u16) {
    let stages = memory.stages.all();
    let in_flight_at = stages.filter_map(|stage| stage.head.word.sweep(dead));
    in_flight_at.for_each(|place| mark_abandoned(memory, place));
}

/// Gives up what dead processes have asked of the process at a place, before what they had taken of that one's is free.
#[cold]
pub fn give_up_for_the_dead(memory: &'static Memory, owner: u16) {
    for stage in memory.stages.all() {
        let seen = stage.head.word.seen();
        let is_asked = seen.state().is_some() && seen.asked() == owner;
        if is_asked && !memory.shm.is_alive(seen.asker()) {
            give_up(memory, stage, seen);
        }
    }
}

/// Leaves what no thread of this process has to do with, whatever is written there. To be called from time to
/// time.
pub fn tidy(memory: &'static Memory) {
    let copier = memory.copier();
    let _serving = copier.serving();
    for (stage, in_use) in copier.mine(memory) {
        let seen = stage.head.word.seen();
        // Who claims one says so before, and until it has given it up.
        if seen.asker() == memory.shm.place() && sync::acquire(in_use) == 0 {
            give_up(memory, stage, seen);
        }
    }
    // Nobody of this process serves meanwhile.
    memory.stages.all().for_each(|stage| stage.head.word.free_orphan(memory.shm.place()));
}

#[cfg(test)]
pub mod tests;
