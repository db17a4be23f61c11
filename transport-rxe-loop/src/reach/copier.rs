//! Copying through the fabric, where the system does not let one process move bytes of another: the owner of
//! the memory does it itself, by whichever of its threads comes first, most often its
//! [service thread](crate::service). It judges by what it knows itself of its regions.
//!
//! Who waits for another process so serves others meanwhile: two that wait for each other go on.

use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use cq_core::setup::Access;
use cq_core::wr::{RemoteAddr, Sge};
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::fabric::Fabric;
use crate::lock::Backoff;
use crate::memory::{self, Far, Piece, Pieces, Target};
use crate::protocol::window::{Copying, Shut};
use crate::reach::stage::{Code, Outcome, ROOM, Request, STAGES, Seen, Stage, State};
use crate::reach::stripes::{self, Step};
use crate::reach::{Order, Transfer, Trouble};
use crate::sync::{self, AtomicU32};
use crate::window::{Window, Word};

/// For how long a process that lives is waited for, each time that it is asked.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a sleep is at most: after it this process serves others.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// How often it is looked whether the other process lives, in naps.
const LOOK: u32 = 10;

/// What this process has for copying on behalf of others.
#[derive(Default)]
pub struct Copier {
    /// Held by who serves.
    serving: Mutex<()>,
    /// Odd while bytes are copied.
    copying: Copying,
    /// How many threads have each stage, or try to.
    in_use: [AtomicU32; STAGES],
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

    /// Waits until what others had asked for and given up since is over: their own windows say nothing of it.
    /// To be called once they are closed.
    pub fn outwait_given_up(&self) {
        drop(self.serving.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl fmt::Debug for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copier").finish_non_exhaustive()
    }
}

/// Does what other processes have asked of this one.
pub fn serve(fabric: &'static Fabric) {
    if fabric.tables().stages.iter().any(|stage| is_for_me(fabric, stage)) {
        let copier = fabric.reach().copier();
        let _serving = copier.serving.lock().unwrap_or_else(PoisonError::into_inner);
        serve_all(fabric);
    }
}

/// The same, if no other thread does.
pub fn serve_if_nobody_does(fabric: &'static Fabric) {
    let _serving = match fabric.reach().copier().serving.try_lock() {
        Ok(serving) => serving,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    serve_all(fabric);
}

fn is_for_me(fabric: &'static Fabric, stage: &Stage) -> bool {
    let seen = stage.seen();
    seen.state() == Some(State::Asked) && seen.asked() == fabric.place()
}

fn serve_all(fabric: &'static Fabric) {
    for stage in fabric.tables().stages {
        let seen = stage.seen();
        if !is_for_me(fabric, stage) {
            continue;
        }
        let Some(seen) = stage.change(seen, Some(State::Serving)) else { continue };
        let (outcome, held) = carry_out(fabric, stage);
        stage.answer(outcome, held);
        if stage.change(seen, Some(State::Done)).is_none() {
            // Who asked has given up.
            stage.change(stage.seen(), None);
        }
        sync::count(&stage.answers);
        let _ = futex::wake(&stage.answers, futex::Flags::empty(), 1);
    }
}

/// Does what is asked. No memory but this process' own regions, as it knows them, is touched.
fn carry_out(fabric: &'static Fabric, stage: &Stage) -> (Outcome, u64) {
    let Some((request, pieces)) = stage.read() else { return (Outcome::Refused, 0) };
    let window = Window::open_to_own(fabric, &fabric.reach().copier().copying);
    let Request { code, whose, needs, operands: [first, second] } = request;
    let done = match code {
        Code::Write | Code::WriteLate => {
            let mut to = Target::new();
            window.target(&mut to, whose, pieces, needs, ROOM as u64).map(|()| {
                let from = Pieces::of_words(&stage.data, to.pieces().len());
                if code == Code::WriteLate {
                    memory::copy_last_word_late(&from, &to);
                } else {
                    memory::copy(&from, &to);
                }
            })
        }
        Code::Read => {
            let mut from = Pieces::new();
            window
                .source(&mut from, whose, pieces, needs)
                .map(|()| memory::copy(&from, &Target::of_words(&stage.data, ROOM)))
        }
        Code::CompareSwap | Code::FetchAdd | Code::Store => {
            let (step, right) = match code {
                Code::CompareSwap => {
                    (Step::CompareSwap { compare: first, swap: second }, Access::REMOTE_ATOMIC)
                }
                Code::FetchAdd => (Step::FetchAdd { add: first }, Access::REMOTE_ATOMIC),
                _ => (Step::Store { value: first }, Access::REMOTE_WRITE),
            };
            let at = pieces.map(|sge| RemoteAddr { addr: sge.addr, rkey: sge.lkey }).next();
            let word = at.and_then(|at| window.word(whose, at, right));
            return word.map_or((Outcome::Refused, 0), |word| atomic_here(fabric, &word, step));
        }
    };
    (done.map_or(Outcome::Refused, |()| Outcome::Done), 0)
}

fn atomic_here(fabric: &'static Fabric, word: &Word<'_>, step: Step) -> (Outcome, u64) {
    match stripes::apply(fabric, word, step) {
        Ok(held) => (Outcome::Done, held),
        Err(_) => (Outcome::Later, 0),
    }
}

/// Has some bytes of a transfer, all of which are of the other process on one side, moved by it.
pub fn carry(transfer: &Transfer<'_>, range: Range<usize>, len: usize) -> Result<(), Trouble> {
    let Transfer { fabric, far, from, to, order } = *transfer;
    let is_read = from.far().is_some();
    let code = match order {
        _ if is_read => Code::Read,
        Order::LastWordLast if memory::is_late(len) => Code::WriteLate,
        _ => Code::Write,
    };
    let request = Request { code, whose: far.whose, needs: far.needs, operands: [0; 2] };
    let mut asking = Asking::new(fabric, far.place)?;
    let mut at = range.start;
    while at < range.end {
        let part = at..range.end.min(at + ROOM);
        let data = &asking.stage.data;
        if is_read {
            asking.ask(&request, from.range(part.clone()))?;
            memory::copy_at(&Pieces::of_words(data, part.len()), 0, to, part.start, part.len());
        } else {
            let stage = Target::of_words(data, part.len());
            memory::copy_at(from, part.start, &stage, 0, part.len());
            asking.ask(&request, to.pieces().range(part.clone()))?;
        }
        at = part.end;
    }
    Ok(())
}

/// Has an atomic done by the process that has the memory.
pub fn atomic(fabric: &'static Fabric, far: Far, piece: Piece, step: Step) -> Result<u64, Trouble> {
    let (code, operands) = match step {
        Step::CompareSwap { compare, swap } => (Code::CompareSwap, [compare, swap]),
        Step::FetchAdd { add } => (Code::FetchAdd, [add, 0]),
        Step::Store { value } => (Code::Store, [value, 0]),
    };
    let request = Request { code, whose: far.whose, needs: far.needs, operands };
    Asking::new(fabric, far.place)?.ask(&request, std::iter::once(piece))
}

/// Leaves what a dead process has to do with.
pub fn sweep(fabric: &'static Fabric, dead: u16) {
    fabric.tables().stages.iter().for_each(|stage| stage.sweep(dead));
}

/// Leaves what no thread of this process has to do with, whatever is written there. To be called from time to
/// time.
pub fn tidy(fabric: &'static Fabric) {
    let copier = fabric.reach().copier();
    let _serving = copier.serving.lock().unwrap_or_else(PoisonError::into_inner);
    for (stage, in_use) in fabric.tables().stages.iter().zip(&copier.in_use) {
        let seen = stage.seen();
        // Who claims one says so before, and until it has given it up.
        if seen.asker() == fabric.place() && sync::acquire(in_use) == 0 {
            stage.give_up(seen);
        }
        // Nobody of this process serves meanwhile.
        stage.free_orphan(fabric.place());
    }
}

/// A stage that is this thread's, to ask a process by.
struct Asking {
    fabric: &'static Fabric,
    stage: &'static Stage,
    in_use: &'static AtomicU32,
    seen: Seen,
    asked: u16,
}

impl Asking {
    /// Claims one.
    fn new(fabric: &'static Fabric, asked: u16) -> Result<Self, Trouble> {
        let end = Instant::now() + PATIENCE;
        let in_use = &fabric.reach().copier().in_use;
        let mut backoff = Backoff::default();
        loop {
            for (stage, in_use) in fabric.tables().stages.iter().zip(in_use) {
                sync::enter(in_use);
                if let Some(seen) = stage.claim(fabric.place(), asked) {
                    return Ok(Self { fabric, stage, in_use, seen, asked });
                }
                sync::leave(in_use);
            }
            if Instant::now() > end {
                return Err(Trouble::NoAnswer);
            }
            serve_if_nobody_does(fabric);
            backoff.snooze();
        }
    }

    /// Asks for something, and says what was found if it was an atomic. The stage's data is the caller's
    /// before and after it.
    fn ask(
        &mut self,
        request: &Request,
        pieces: impl Iterator<Item = Piece>,
    ) -> Result<u64, Trouble> {
        let sge = |piece: Piece| Sge {
            addr: piece.addr as u64,
            length: piece.len() as u32,
            lkey: piece.key,
        };
        self.stage.write(request, pieces.map(sge));
        self.seen = self.stage.change(self.seen, Some(State::Asked)).ok_or(Trouble::NoAnswer)?;
        self.fabric.call(self.asked);
        self.wait()?;
        match self.stage.answered() {
            (Outcome::Done, held) => Ok(held),
            (Outcome::Refused, _) => Err(Trouble::Fault),
            (Outcome::Later, _) => Err(Trouble::NoAnswer),
        }
    }

    fn wait(&mut self) -> Result<(), Trouble> {
        let end = Instant::now() + PATIENCE;
        for nap in 1.. {
            let answers = sync::acquire(&self.stage.answers);
            let now = self.stage.seen();
            match now.state() {
                _ if !now.is_same_round(self.seen) => return Err(Trouble::NoAnswer),
                Some(State::Done) => {
                    self.seen = now;
                    return Ok(());
                }
                _ => {}
            }
            if nap % LOOK == 0 && !self.fabric.is_alive(self.asked) {
                self.fabric.suspect();
                return Err(Trouble::NoAnswer);
            }
            if Instant::now() > end {
                return Err(Trouble::NoAnswer);
            }
            serve_if_nobody_does(self.fabric);
            let _ = futex::wait(&self.stage.answers, futex::Flags::empty(), answers, Some(&NAP));
        }
        Err(Trouble::NoAnswer)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stage.give_up(self.seen);
        sync::leave(self.in_use);
    }
}

#[cfg(test)]
mod tests;
