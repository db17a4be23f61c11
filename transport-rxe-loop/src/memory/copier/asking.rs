//! Asking another process for memory of its own: who waits for whom and how long, and what becomes of a request that is
//! not answered.

use std::mem::{self, ManuallyDrop};
use std::ops::Range;
use std::time::{Duration, Instant};

use cq_core::wr::Sge;
use rustix::thread::{futex, sched_yield};
use rustix::time::Timespec;

use super::{Copier, give_up, serve_if_nobody_does};
use crate::memory::Memory;
use crate::memory::atomic_op::AtomicOp;
use crate::memory::sge::{self, Far, Span, Spans, Target};
use crate::memory::stage::{Code, LARGE, OWN, Outcome, Request, SMALL_BYTES, Stage};
use crate::memory::transfer::{Order, Transfer, Trouble};
use crate::protocol::lock::Owner;
use crate::protocol::stage::{Recalled, Seen, State};
use crate::shm::lock::Backoff;
use crate::sync::{self, AtomicU32};

/// For how long a process that lives is waited for, each time that it is asked.
const PATIENCE: Duration = Duration::from_millis(250);
/// For how long a large stage is waited for.
const HELP: Duration = Duration::from_millis(5);
/// What a look at the stages takes at most: where it took longer, this process was suspended, and others may have been, too.
const STEP: Duration = Duration::from_millis(10);
/// How long a sleep is at most: after it this process serves others.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// How often it is looked whether the other process lives, in naps.
const LOOK: u32 = 10;

/// Has some bytes of a transfer, all of which are of the other process on one side, moved by it.
pub fn carry(transfer: &Transfer<'_>, range: Range<usize>, len: usize) -> Result<(), Trouble> {
    let Transfer { memory, far, from, to, order } = *transfer;
    let is_read = from.far().is_some();
    let code = match order {
        _ if is_read => Code::Read,
        Order::LastWordLast if sge::is_late(len) => Code::WriteLate,
        _ => Code::Write,
    };
    let request = Request { code, whose: far.whose, needs: far.needs, operands: [0; 2] };
    let mut at = range.start;
    while at < range.end {
        let mut asking = Asking::new(memory, far.place, range.end - at)?;
        let part = at..range.end.min(at + asking.stage.bytes());
        let data = asking.stage.data;
        if !is_read {
            let stage = Target::of_words(data, part.len());
            sge::copy_at(from, part.start, &stage, 0, part.len());
        }
        let there = if is_read { from } else { to.pieces() };
        asking.ask(&request, there.range(part.clone()))?.ok_or(Trouble::NoAnswer)?;
        if is_read {
            sge::copy_at(&Spans::of_words(data, part.len()), 0, to, part.start, part.len());
        }
        at = part.end;
        drop(asking);
        if at < range.end && sync::load(&memory.copier().waiting) > 0 {
            sched_yield();
        }
    }
    Ok(())
}

/// Has an atomic done by the process that has the memory.
///
/// # Errors
/// That process does not answer, and has done it, or will, or has not.
pub fn atomic(
    memory: &'static Memory,
    far: Far,
    piece: Span,
    step: AtomicOp,
) -> Result<u64, NotDone> {
    let (code, operands) = match step {
        AtomicOp::CompareSwap { compare, swap } => (Code::CompareSwap, [compare, swap]),
        AtomicOp::FetchAdd { add } => (Code::FetchAdd, [add, 0]),
        AtomicOp::Store { value } => (Code::Store, [value, 0]),
    };
    let request = Request { code, whose: far.whose, needs: far.needs, operands };
    let mut asking = Asking::new(memory, far.place, 0)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match asking.ask(&request, std::iter::once(piece)) {
            Ok(Some(held)) => return Ok(held),
            // Somebody has the lock of the word: not for long.
            Ok(None) if Instant::now() < end => sched_yield(),
            Ok(None) | Err(Trouble::NoAnswer) => return asking.recall(),
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Why there is no answer to an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// It was not done, and will not be.
    Trouble(Trouble),
    /// It may have been done, or may still be: it must not be begun again.
    Begun(Begun),
}

impl From<Trouble> for NotDone {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// An atomic that another process has begun, and has not answered. Its stage stays as it is until it is
/// [resumed](resume) and answered, or [abandoned](abandon).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    stage: u32,
    seen: Seen,
    /// Who has begun it, as a number: another one may have its place by the time that it is asked again.
    owner: u32,
}

impl Begun {
    /// As numbers, of which the first is not 0, to be kept.
    pub const fn to_words(self) -> [u64; 2] {
        [(self.owner as u64) << 32 | (self.stage as u64 + 1), self.seen.to_word()]
    }

    /// What was kept, if anything was.
    pub fn from_words([stage, seen]: [u64; 2]) -> Option<Self> {
        let (owner, stage) = ((stage >> 32) as u32, (stage as u32).checked_sub(1)?);
        Some(Self { stage, seen: Seen::from_word(seen), owner })
    }
}

/// Waits once more for the answer.
///
/// # Errors
/// It is still [`Begun`](NotDone::Begun). Or its process is dead, and with it the memory.
pub fn resume(memory: &'static Memory, begun: Begun) -> Result<u64, NotDone> {
    let Some(mut asking) = Asking::again(memory, begun) else {
        return Err(Trouble::NoAnswer.into());
    };
    // Recalling it says what came of it.
    let _ = asking.wait();
    asking.recall()
}

/// Nobody waits for the answer any more: whether it was done is not known.
pub fn abandon(memory: &'static Memory, begun: Begun) {
    drop(Asking::again(memory, begun));
}

/// A stage that is this thread's, to ask a process by.
struct Asking {
    memory: &'static Memory,
    stage: Stage,
    in_use: &'static AtomicU32,
    seen: Seen,
    /// The process that is asked; `None` where there is none.
    owner: Option<Owner>,
}

impl Asking {
    /// Claims one for so many bytes, or for a part of them.
    fn new(memory: &'static Memory, asked: u16, len: usize) -> Result<Self, Trouble> {
        if let Some(asking) = Self::claim(memory, asked, len, false) {
            return Ok(asking);
        }
        let waiting = &memory.copier().waiting;
        sync::enter(waiting);
        let claimed = Self::wait_for_one(memory, asked, len);
        sync::leave(waiting);
        claimed
    }

    #[cold]
    fn wait_for_one(memory: &'static Memory, asked: u16, len: usize) -> Result<Self, Trouble> {
        let (start, mut rounds) = (Instant::now(), Copier::rounds(memory));
        let (mut last, mut waited, mut backoff) = (start, Duration::ZERO, Backoff::default());
        loop {
            if let Some(asking) = Self::claim(memory, asked, len, last - start > HELP) {
                return Ok(asking);
            }
            let before = mem::replace(&mut last, Instant::now());
            let seen = mem::replace(&mut rounds, Copier::rounds(memory));
            waited = if rounds == seen { waited + STEP.min(last - before) } else { Duration::ZERO };
            if waited > PATIENCE {
                return Err(Trouble::NoAnswer);
            }
            serve_if_nobody_does(memory);
            backoff.snooze();
        }
    }

    /// Claims one that is free. Only if it `may`, a small part takes a large stage, and a large part a small one, of which
    /// it leaves half to what is small.
    fn claim(memory: &'static Memory, asked: u16, len: usize, may: bool) -> Option<Self> {
        let is_small = len <= SMALL_BYTES;
        const ALL: usize = OWN + LARGE;
        let (first, then) = if is_small { (0..OWN, OWN..ALL) } else { (OWN..ALL, OWN / 2..OWN) };
        let then = if may { then } else { 0..0 };
        let mine = || memory.copier().mine(memory).enumerate();
        let of = |range: Range<usize>| mine().filter(move |(nth, _)| range.contains(nth));
        of(first).chain(of(then)).find_map(|(_, (stage, in_use))| {
            sync::enter(in_use);
            if let Some(seen) = stage.head.word.claim(memory.shm.place(), asked) {
                let owner = memory.shm.owner_at(asked);
                return Some(Self { memory, stage, in_use, seen, owner });
            }
            sync::leave(in_use);
            None
        })
    }

    /// That of a request that was [kept](Self::keep).
    fn again(memory: &'static Memory, begun: Begun) -> Option<Self> {
        let mut mine = memory.copier().mine(memory);
        let (stage, in_use) = mine.find(|(stage, _)| stage.index() == begun.stage as usize)?;
        let owner = Owner::from_word(begun.owner);
        Some(Self { memory, stage, in_use, seen: begun.seen, owner })
    }

    /// Asks for something, and says what was [answered](Self::answer). The stage's data is the caller's before and after it.
    fn ask(
        &mut self,
        request: &Request,
        pieces: impl Iterator<Item = Span>,
    ) -> Result<Option<u64>, Trouble> {
        let sge = |piece: Span| Sge {
            addr: piece.addr as u64,
            length: piece.len() as u32,
            lkey: piece.key,
        };
        let (memory, asked) = (self.memory, self.seen.asked());
        self.stage.head.write(request, pieces.map(sge));
        self.seen = self.stage.head.word.ask(self.seen).ok_or(Trouble::NoAnswer)?;
        if let Some(process) = memory.copiers.get(usize::from(asked)) {
            process.askers.add(memory.shm.place());
        }
        memory.shm.call(asked);
        self.wait()?;
        self.answer()
    }

    fn asks_the_dead(&self) -> bool {
        self.owner.is_none_or(|owner| self.memory.shm.is_dead(owner))
    }

    /// What an atomic found, or any number; `None` if nothing was done, and is to be asked for again.
    fn answer(&self) -> Result<Option<u64>, Trouble> {
        match self.stage.head.answered() {
            (Outcome::Done, held) => Ok(Some(held)),
            (Outcome::Refused, _) => Err(Trouble::Fault),
            (Outcome::Later, _) => Ok(None),
        }
    }

    fn wait(&mut self) -> Result<(), Trouble> {
        let end = Instant::now() + PATIENCE;
        let Stage { head, .. } = self.stage;
        for nap in 1.. {
            let answers = sync::acquire(&head.answers);
            let now = head.word.seen();
            match now.state() {
                _ if !now.is_same_round(self.seen) => return Err(Trouble::NoAnswer),
                Some(State::Done) => {
                    self.seen = now;
                    return Ok(());
                }
                _ => {}
            }
            if nap % LOOK == 0 && self.asks_the_dead() {
                self.memory.suspect();
                return Err(Trouble::NoAnswer);
            }
            if Instant::now() > end {
                return Err(Trouble::NoAnswer);
            }
            serve_if_nobody_does(self.memory);
            let _ = futex::wait(&head.answers, futex::Flags::empty(), answers, Some(&NAP));
        }
        Err(Trouble::NoAnswer)
    }

    /// Wants back what was asked for, and not answered in time.
    fn recall(self) -> Result<u64, NotDone> {
        match self.stage.head.word.recall(self.seen) {
            Recalled::Answered(_) => Ok(self.answer()?.ok_or(Trouble::NoAnswer)?),
            Recalled::Begun if !self.asks_the_dead() => Err(NotDone::Begun(self.keep())),
            _ => Err(Trouble::NoAnswer.into()),
        }
    }

    /// Leaves the stage as it is.
    fn keep(self) -> Begun {
        let this = ManuallyDrop::new(self);
        let owner = this.owner.map_or(0, Owner::to_word);
        Begun { stage: this.stage.index() as u32, seen: this.seen, owner }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let is_in_flight = give_up(self.memory, self.stage, self.seen);
        // Looked at after that: who finds that one dead later frees the stage himself.
        if is_in_flight && self.asks_the_dead() {
            self.stage.head.word.free_abandoned(self.seen);
        }
        sync::leave(self.in_use);
    }
}

#[cfg(test)]
mod tests;
