//! Requests to another process to access its own memory: claiming a stage, waiting, timeouts, and requests that are
//! not answered.

use std::mem::{self, ManuallyDrop};
use std::ops::Range;
use std::time::{Duration, Instant};

use cq_verbs::wr::Sge;
use rustix::thread::{futex, sched_yield};
use rustix::time::Timespec;

use super::{Copier, give_up, serve_if_nobody_does};
use crate::memory::Memory;
use crate::memory::atomic_op::AtomicOp;
use crate::memory::bytes::is_late;
use crate::memory::sge::{self, Far, Span, Spans, Target};
use crate::memory::stage::{Code, LARGE, OWN, Outcome, Request, SMALL_BYTES, Stage};
use crate::memory::transfer::{Order, Transfer, Trouble};
use crate::protocol::lock::{AttachmentId, AttachmentKey};
use crate::protocol::stage::{Recalled, Seen, State};
use crate::shm::lock::Backoff;
use crate::sync::{self, AtomicU32};

/// How long each request waits for a live process.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a large part waits for a large stage before it uses a small one, and the other way round.
const HELP: Duration = Duration::from_millis(5);
/// The most that one iteration of a wait counts for: if it took longer, this process was suspended, and others may
/// have been.
const STEP: Duration = Duration::from_millis(10);
/// The longest sleep. After it this process serves others.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// How many sleeps pass between two checks whether the other process lives.
const LOOK: u32 = 10;

/// Has another process move a range of a transfer, one side of which lies entirely in its memory.
pub fn carry(transfer: &Transfer<'_>, range: Range<usize>, len: usize) -> Result<(), Trouble> {
    let Transfer { memory, far, from, to, order } = *transfer;
    let is_read = from.far().is_some();
    let code = match order {
        _ if is_read => Code::Read,
        Order::LastWordLast if is_late(len) => Code::WriteLate,
        _ => Code::Write,
    };
    let request = Request { code, whose: far.whose, needs: far.needs, operands: [0; 2] };
    let mut at = range.start;
    while at < range.end {
        let mut claimed = ClaimedStage::new(memory, far.attachment, range.end - at)?;
        let part = at..range.end.min(at + claimed.stage.bytes());
        let data = claimed.stage.data;
        if !is_read {
            let stage = Target::of_words(data, part.len());
            sge::copy_at(from, part.start, &stage, 0, part.len());
        }
        let there = if is_read { from } else { to.spans() };
        claimed.ask(&request, there.range(part.clone()))?.ok_or(Trouble::NoAnswer)?;
        if is_read {
            sge::copy_at(&Spans::of_words(data, part.len()), 0, to, part.start, part.len());
        }
        at = part.end;
        drop(claimed);
        if at < range.end && sync::load(&memory.copier.waiting) > 0 {
            sched_yield();
        }
    }
    Ok(())
}

/// Has an atomic carried out by the process that owns the memory.
///
/// # Errors
/// That process does not answer: whether the atomic is carried out is unknown.
pub fn atomic(
    memory: &'static Memory,
    far: Far,
    span: Span,
    step: AtomicOp,
) -> Result<u64, NotDone> {
    let (code, operands) = match step {
        AtomicOp::CompareSwap { compare, swap } => (Code::CompareSwap, [compare, swap]),
        AtomicOp::FetchAdd { add } => (Code::FetchAdd, [add, 0]),
        AtomicOp::Store { value } => (Code::Store, [value, 0]),
    };
    let request = Request { code, whose: far.whose, needs: far.needs, operands };
    let mut claimed = ClaimedStage::new(memory, far.attachment, 0)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match claimed.ask(&request, std::iter::once(span)) {
            Ok(Some(held)) => return Ok(held),
            // Another atomic holds the lock of the word, for a short time.
            Ok(None) if Instant::now() < end => sched_yield(),
            Ok(None) | Err(Trouble::NoAnswer) => return claimed.recall(),
            Err(fault) => return Err(fault.into()),
        }
    }
}

/// Why an atomic has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// It was not carried out, and will not be.
    Trouble(Trouble),
    /// It may have been carried out, or may still be: it must not be started again.
    PendingAtomic(PendingAtomic),
}

impl From<Trouble> for NotDone {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// An atomic that another process has begun and not answered. It keeps its stage until it is [resumed](resume) and
/// answered, or [abandoned](abandon).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingAtomic {
    stage: u32,
    seen: Seen,
    /// The owner that has begun it. Its attachment index alone may be another process' by the retry.
    owner: u32,
}

impl PendingAtomic {
    /// Encodes it as words, the first of which is not 0.
    pub const fn to_words(self) -> [u64; 2] {
        [(self.owner as u64) << 32 | (self.stage as u64 + 1), self.seen.to_word()]
    }

    /// Decodes the words; `None` if none were stored.
    pub fn from_words([stage, seen]: [u64; 2]) -> Option<Self> {
        let (owner, stage) = ((stage >> 32) as u32, (stage as u32).checked_sub(1)?);
        Some(Self { stage, seen: Seen::from_word(seen), owner })
    }
}

/// Waits again for the answer.
///
/// # Errors
/// It is still [`PendingAtomic`](NotDone::PendingAtomic). Or its process is dead, and its memory gone.
pub fn resume(memory: &'static Memory, begun: PendingAtomic) -> Result<u64, NotDone> {
    let Some(mut claimed) = ClaimedStage::again(memory, begun) else {
        return Err(Trouble::NoAnswer.into());
    };
    // The result of the wait does not matter: `recall` returns the outcome.
    let _ = claimed.wait();
    claimed.recall()
}

/// Stops waiting for the answer. Whether the atomic was carried out stays unknown.
pub fn abandon(memory: &'static Memory, begun: PendingAtomic) {
    drop(ClaimedStage::again(memory, begun));
}

/// A stage that this thread has claimed for requests to a process.
struct ClaimedStage {
    memory: &'static Memory,
    stage: Stage,
    in_use: &'static AtomicU32,
    seen: Seen,
    /// The process that is asked; `None` if there is none.
    owner: Option<AttachmentKey>,
}

impl ClaimedStage {
    /// Claims a stage for so many bytes, or for a part of them.
    fn new(memory: &'static Memory, server: AttachmentId, len: usize) -> Result<Self, Trouble> {
        if let Some(claimed) = Self::claim(memory, server, len, false) {
            return Ok(claimed);
        }
        let waiting = &memory.copier.waiting;
        sync::enter(waiting);
        let claimed = Self::wait_for_one(memory, server, len);
        sync::leave(waiting);
        claimed
    }

    #[cold]
    fn wait_for_one(
        memory: &'static Memory,
        server: AttachmentId,
        len: usize,
    ) -> Result<Self, Trouble> {
        let (start, mut rounds) = (Instant::now(), Copier::rounds(memory));
        let (mut last, mut waited, mut backoff) = (start, Duration::ZERO, Backoff::default());
        loop {
            if let Some(claimed) = Self::claim(memory, server, len, last - start > HELP) {
                return Ok(claimed);
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

    /// Claims a free stage. With `may`, a small part can take a large stage, and a large part one of half of the
    /// small ones; the other half stays for small parts.
    fn claim(memory: &'static Memory, server: AttachmentId, len: usize, may: bool) -> Option<Self> {
        let is_small = len <= SMALL_BYTES;
        const ALL: usize = OWN + LARGE;
        let (first, then) = if is_small { (0..OWN, OWN..ALL) } else { (OWN..ALL, OWN / 2..OWN) };
        let then = if may { then } else { 0..0 };
        let mine = || memory.copier.mine(memory).enumerate();
        let of = |range: Range<usize>| mine().filter(move |(nth, _)| range.contains(nth));
        of(first).chain(of(then)).find_map(|(_, (stage, in_use))| {
            sync::enter(in_use);
            if let Some(seen) = stage.head.word.claim(memory.shm.attachment(), server) {
                let owner = memory.shm.owner_at(server);
                return Some(Self { memory, stage, in_use, seen, owner });
            }
            sync::leave(in_use);
            None
        })
    }

    /// Resumes with the stage of a request that was [kept](Self::keep).
    fn again(memory: &'static Memory, begun: PendingAtomic) -> Option<Self> {
        let mut mine = memory.copier.mine(memory);
        let (stage, in_use) = mine.find(|(stage, _)| stage.index == begun.stage as usize)?;
        let owner = AttachmentKey::from_word(begun.owner);
        Some(Self { memory, stage, in_use, seen: begun.seen, owner })
    }

    /// Sends a request, and waits for its [answer](Self::answer). Before and after the call, the stage's data is the
    /// caller's.
    fn ask(
        &mut self,
        request: &Request,
        spans: impl Iterator<Item = Span>,
    ) -> Result<Option<u64>, Trouble> {
        let sge = |span: Span| Sge {
            addr: span.addr as u64,
            length: span.len() as u32,
            lkey: span.key.get(),
        };
        let (memory, server) = (self.memory, self.seen.server());
        self.stage.head.write(request, spans.map(sge));
        self.seen = self.stage.head.word.ask(self.seen).ok_or(Trouble::NoAnswer)?;
        if let Some(process) = memory.copiers.get(server.index()) {
            process.clients.add(memory.shm.attachment());
        }
        memory.shm.call(server);
        self.wait()?;
        self.answer()
    }

    fn server_is_dead(&self) -> bool {
        self.owner.is_none_or(|owner| self.memory.shm.is_dead(owner))
    }

    /// The previous value for an atomic, else any number; `None` if nothing was done, and the request is to be
    /// repeated.
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
            if nap % LOOK == 0 && self.server_is_dead() {
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

    /// Takes back a request that was not answered in time.
    fn recall(self) -> Result<u64, NotDone> {
        match self.stage.head.word.recall(self.seen) {
            Recalled::Answered(_) => Ok(self.answer()?.ok_or(Trouble::NoAnswer)?),
            Recalled::Begun if !self.server_is_dead() => Err(NotDone::PendingAtomic(self.keep())),
            _ => Err(Trouble::NoAnswer.into()),
        }
    }

    /// Keeps the stage for a later retry.
    fn keep(self) -> PendingAtomic {
        let this = ManuallyDrop::new(self);
        let owner = this.owner.map_or(0, AttachmentKey::to_word);
        PendingAtomic { stage: this.stage.index as u32, seen: this.seen, owner }
    }
}

impl Drop for ClaimedStage {
    fn drop(&mut self) {
        let is_in_flight = give_up(self.memory, self.stage, self.seen);
        // Checked after giving up: a process that finds the owner dead later frees the stage itself.
        if is_in_flight && self.server_is_dead() {
            self.stage.head.word.free_abandoned(self.seen);
        }
        sync::leave(self.in_use);
    }
}

#[cfg(test)]
mod tests;
