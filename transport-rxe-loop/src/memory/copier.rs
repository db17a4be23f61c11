//! Copying by the owner of the memory, through stages in the fabric, where the system does not let one process access
//! another's memory. Any thread of the owner serves requests, most often its service thread.
//! It checks keys against its private region entries.
//!
//! A thread that waits for another process serves requests meanwhile, so two processes that wait for each other make
//! progress.
//!
//! # Stages
//! Small requests go through a [stage](crate::memory::stage) of the asking process, so none waits for a third
//! process. Parts of large messages go through one of the shared stages; where these are in use for [too
//! long](client), smaller parts go through the process' own. A stage is claimed for one part, and released before the
//! next. A thread waits for a stage as long as other threads of its process [make progress](Copier::rounds).
//!
//! # Retries
//! Copying the same bytes twice is harmless, and the owner carries out requests in the order in which they come. So a
//! request that is not answered in [time](client) is given up and retried later. An atomic is not: it is
//! [recalled](crate::protocol::stage::Word::recall), and if it is being carried out by then, [kept](client::PendingAtomic).
//! Its request keeps the stage, and the retry waits for that answer.
//!
//! # Abandoned requests
//! A request whose client gives up, or dies, may still be in flight at the owner. It may write to a receive that is
//! given back at the same time: of a shared receive queue, or of a UD queue pair. So the owner is first
//! [marked](crate::protocol::stage::Abandoned), and no other process writes to its receives until it has nothing in
//! flight. A connection's receive needs no mark: before RESET, which waits, only the same peer takes it.

pub mod client;

use crate::protocol::lock::AttachmentId;
use std::sync::{Mutex, MutexGuard, TryLockError};

use cq_verbs::setup::Access;
use cq_verbs::wr::RemoteAddr;
use rustix::thread::futex;

use crate::memory::Memory;
use crate::memory::atomic_op::{self, AtomicOp};
use crate::memory::copy_guard::{CopyGuard, Word};
use crate::memory::sge::{self, Spans, Target};
use crate::memory::stage::{Code, LARGE, OWN, Outcome, Request, Stage};
use crate::protocol::in_flight::{ChangeFence, InFlight};
use crate::protocol::stage::{Abandoned, Clients, Seen, State};
use crate::protocol::steps;
use crate::shm::lock::Backoff;
use crate::shm::table::shared;
use crate::sync::{self, AtomicU32};

/// The shared copying state of one process.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct CopierEntry {
    /// The processes that have asked it for something.
    pub clients: Clients,
    /// Whether a request that was given up may be in flight there.
    pub abandoned: Abandoned,
}

shared!(CopierEntry);

/// How many times in a row the large stages are searched for requests.
const ROUNDS: usize = 64;

/// The private state for copying on behalf of other processes.
#[derive(Debug, Default)]
pub struct Copier {
    /// Held while serving.
    serving: Mutex<()>,
    /// In-flight marker: odd while bytes are copied.
    pub in_flight: InFlight,
    /// For each stage that this process may use, its own and then the large ones: how many threads use it or try to.
    in_use: [AtomicU32; OWN + LARGE],
    /// How many threads wait for a stage.
    waiting: AtomicU32,
}

impl Copier {
    /// Waits for the copies that are in flight for other processes.
    pub fn wait_until_idle(&self, fence: &ChangeFence) {
        let mut backoff = Backoff::default();
        fence.wait(&self.in_flight, || {
            backoff.snooze();
            true
        });
    }

    fn try_serving(&self) -> Option<MutexGuard<'_, ()>> {
        match self.serving.try_lock() {
            Ok(serving) => Some(serving),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The stages that this process may use, each with the number of its threads that use it.
    fn mine(&self, memory: &'static Memory) -> impl Iterator<Item = (Stage, &AtomicU32)> {
        let stages = &memory.stages;
        stages.of(memory.shm.attachment()).chain(stages.large()).zip(&self.in_use)
    }

    /// Changes whenever a stage of this process does.
    fn rounds(memory: &'static Memory) -> [Option<Seen>; OWN] {
        let mut own = memory.stages.of(memory.shm.attachment());
        [(); OWN].map(|()| own.next().map(|stage| stage.head.word.seen()))
    }
}

/// Has a request of a process be in flight until the returned closure is called.
#[cfg(test)]
pub fn carry_out_for(memory: &'static Memory, client: AttachmentId) -> impl FnOnce() {
    let serving = sync::lock(&memory.copier.serving);
    let word = &memory.stages.of(client).next().unwrap().head.word;
    word.ask(word.claim(client, memory.shm.attachment()).unwrap()).unwrap();
    let seen = word.serve(memory.shm.attachment()).unwrap();
    move || {
        word.answer(seen);
        drop(serving);
    }
}

/// Waits for requests that other processes have given up: those processes' own in-flight markers do not cover them.
/// Cancels requests of dead processes that were not begun. To be called once the copy guards of live processes are
/// closed.
pub fn wait_for_given_up(memory: &'static Memory) {
    let _serving = sync::lock(&memory.copier.serving);
    let (stages, process) = (&memory.stages, this(memory));
    let clients = process.into_iter().flat_map(|process| process.clients.look());
    let clients = clients.filter(|&client| !memory.shm.is_alive(client));
    for stage in clients.flat_map(|client| stages.of(client)).chain(stages.large()) {
        let (word, seen) = (&stage.head.word, stage.head.word.seen());
        let is_asked =
            seen.state() == Some(State::Asked) && seen.server() == memory.shm.attachment();
        if is_asked && !memory.shm.is_alive(seen.client()) {
            word.cancel(seen);
        }
    }
}

fn this(memory: &'static Memory) -> Option<&'static CopierEntry> {
    memory.copiers.get(memory.shm.attachment().index())
}

/// Serves the requests of other processes.
pub fn serve(memory: &'static Memory) {
    if this(memory).is_some_and(|process| process.clients.any() || process.abandoned.is_marked()) {
        let _serving = sync::lock(&memory.copier.serving);
        serve_all(memory, ROUNDS);
    }
}

/// Serves the requests of other processes, unless another thread does.
pub fn serve_if_nobody_does(memory: &'static Memory) {
    if let Some(_serving) = memory.copier.try_serving() {
        serve_all(memory, ROUNDS);
    }
}

/// Searches the large stages at most so many times. A small request waits for at most one large part of others. No
/// other thread of this process serves.
fn serve_all(memory: &'static Memory, rounds: usize) {
    clear_abandoned(memory);
    let mut more = serve_clients(memory);
    for _ in 0..rounds {
        if !more {
            return;
        }
        more = false;
        for stage in memory.stages.large() {
            if serve_one(memory, stage) {
                more |= serve_clients(memory);
            }
        }
    }
    if let Some(process) = this(memory).filter(|_| more) {
        // The process that was found last may have asked through one of them: search them at the next call.
        process.clients.add(memory.shm.attachment());
        memory.shm.call(memory.shm.attachment());
    }
}

/// Whether an abandoned request may be in flight at a process, and write to its receives. To be checked after a
/// receive was taken, or right before.
#[inline]
pub fn has_abandoned(memory: &'static Memory, attachment: AttachmentId) -> bool {
    let process = memory.copiers.get(attachment.index());
    process.is_some_and(|process| process.abandoned.is_marked())
        && !(attachment == memory.shm.attachment() && is_idle(memory))
}

/// Whether this process has nothing in flight for others, and so nothing abandoned.
#[cold]
fn is_idle(memory: &'static Memory) -> bool {
    let serving = memory.copier.try_serving();
    if serving.is_some() {
        clear_abandoned(memory);
    }
    serving.is_some()
}

/// Clears the mark: nothing is in flight, as no thread serves.
fn clear_abandoned(memory: &'static Memory) {
    if let Some(process) = this(memory).filter(|process| process.abandoned.is_marked()) {
        process.abandoned.clear();
    }
}

/// Marks that an abandoned request may be in flight at a process.
#[cold]
fn mark_abandoned(memory: &'static Memory, attachment: AttachmentId) {
    if let Some(process) = memory.copiers.get(attachment.index()) {
        process.abandoned.mark();
        memory.shm.call(attachment);
    }
}

/// Releases a stage on behalf of its client, in any state. True if the request is still in flight.
fn give_up(memory: &'static Memory, stage: Stage, seen: Seen) -> bool {
    let is_in_flight = stage.head.word.give_up(seen);
    if is_in_flight {
        mark_abandoned(memory, seen.server());
    }
    is_in_flight
}

/// Serves the small stages of all processes that have asked since the last call; false if none has.
fn serve_clients(memory: &'static Memory) -> bool {
    let mut any = false;
    for client in this(memory).into_iter().flat_map(|process| process.clients.take()) {
        any = true;
        for stage in memory.stages.of(client) {
            serve_one(memory, stage);
        }
    }
    any
}

/// Serves a stage; false if it holds no request for this process.
fn serve_one(memory: &'static Memory, stage: Stage) -> bool {
    let Some(serving) = stage.head.word.serve(memory.shm.attachment()) else { return false };
    let (outcome, held) = carry_out(memory, stage);
    steps::done(steps::Step::Served);
    stage.head.answer(outcome, held);
    stage.head.word.answer(serving);
    sync::count(&stage.head.answers);
    let _ = futex::wake(&stage.head.answers, futex::Flags::empty(), 1);
    true
}

/// Carries out a request. It accesses only regions of this process, by their private entries.
fn carry_out(memory: &'static Memory, stage: Stage) -> (Outcome, u64) {
    let Some((request, sges)) = stage.head.read() else { return (Outcome::Refused, 0) };
    let guard = CopyGuard::open_to_own(memory, &memory.copier.in_flight);
    let Request { code, whose, needs, operands: [first, second] } = request;
    let done = match code {
        Code::Write | Code::WriteLate => {
            let mut to = Target::new();
            guard.target_all(&mut to, whose, sges, needs, stage.bytes() as u64).map(|()| {
                let from = Spans::of_words(stage.data, to.spans().len());
                if code == Code::WriteLate {
                    sge::copy_last_word_late(&from, &to);
                } else {
                    sge::copy(&from, &to);
                }
            })
        }
        Code::Read => {
            let mut from = Spans::new();
            guard
                .source_all(&mut from, whose, sges, needs)
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
            let at = sges.map(|sge| RemoteAddr { addr: sge.addr, rkey: sge.lkey }).next();
            let word = at.and_then(|at| guard.word(whose, at, right));
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

/// Releases the stages of a dead process.
pub fn recover(memory: &'static Memory, dead: AttachmentId) {
    let stages = memory.stages.all();
    let in_flight_at = stages.filter_map(|stage| stage.head.word.recover(dead));
    in_flight_at.for_each(|attachment| mark_abandoned(memory, attachment));
}

/// Gives up the requests of dead processes to this owner, before the receives that they had taken from it are freed.
#[cold]
pub fn give_up_for_the_dead(memory: &'static Memory, owner: AttachmentId) {
    for stage in memory.stages.all() {
        let seen = stage.head.word.seen();
        let is_asked = seen.state().is_some() && seen.server() == owner;
        if is_asked && !memory.shm.is_alive(seen.client()) {
            give_up(memory, stage, seen);
        }
    }
}

/// Releases stages that no thread of this process uses, whatever their words say. To be called periodically.
pub fn tidy(memory: &'static Memory) {
    let copier = &memory.copier;
    let _serving = sync::lock(&copier.serving);
    for (stage, in_use) in copier.mine(memory) {
        let seen = stage.head.word.seen();
        // A thread that claims a stage is counted before the claim, and until it has given the stage up.
        if seen.client() == memory.shm.attachment() && sync::acquire(in_use) == 0 {
            give_up(memory, stage, seen);
        }
    }
    // The mutex is held, so no thread of this process serves.
    memory.stages.all().for_each(|stage| stage.head.word.free_orphan(memory.shm.attachment()));
}

#[cfg(test)]
pub mod tests;
