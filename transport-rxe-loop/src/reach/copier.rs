//! Copying through the fabric, where the system does not let one process move bytes of another: the owner of
//! the memory does it itself, by whichever of its threads comes first, most often its
//! [service thread](crate::service). It judges by what it knows itself of its regions.
//!
//! Who waits for another process so serves others meanwhile: two that wait for each other go on.
//!
//! # Who waits for whom
//! A request goes through a [stage](crate::reach::stage) of its asker's own, so nobody waits for what a third process
//! does. Parts of large messages go through one of the stages that all share; where these are taken for
//! [longer than a little](HELP), in smaller parts through the asker's own. A stage is had for one part, and given back
//! before the next. Who waits for a stage waits for as long as others of its process [get on](Copier::rounds).
//!
//! # What is begun is not begun again
//! Bytes that are copied twice are the same bytes, and the owner copies in the order in which it is asked: so who is
//! not answered in [time](PATIENCE) gives up, and its request is tried again later. An atomic is not: it is
//! [recalled](crate::protocol::stage::Word::recall), and if it is being carried out by then, [kept](Begun). The stage
//! stays the request's, and its next try waits for that answer.

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use cq_core::setup::Access;
use cq_core::wr::{RemoteAddr, Sge};
use rustix::thread::{futex, sched_yield};
use rustix::time::Timespec;

use crate::fabric::Fabric;
use crate::layout::ProcessSlot;
use crate::lock::Backoff;
use crate::memory::{self, Far, Piece, Pieces, Target};
use crate::protocol::stage::{Recalled, Seen, State};
use crate::protocol::steps;
use crate::protocol::window::{Copying, Shut};
use crate::reach::stage::{Code, LARGE, OWN, Outcome, Request, SMALL_BYTES, Stage};
use crate::reach::stripes::{self, Step};
use crate::reach::{Order, Transfer, Trouble};
use crate::sync::{self, AtomicU32};
use crate::window::{Window, Word};

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
    fn mine(&self, fabric: &'static Fabric) -> impl Iterator<Item = (Stage, &AtomicU32)> {
        let stages = &fabric.tables().stages;
        stages.of(fabric.place()).chain(stages.large()).zip(&self.in_use)
    }

    /// What changes whenever a stage of this process' own does.
    fn rounds(fabric: &'static Fabric) -> [Option<Seen>; OWN] {
        let mut own = fabric.tables().stages.of(fabric.place());
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
pub fn carry_out_for(fabric: &'static Fabric, asker: u16) -> impl FnOnce() {
    let serving = fabric.reach().copier().serving();
    let word = &fabric.tables().stages.of(asker).next().unwrap().head.word;
    word.ask(word.claim(asker, fabric.place()).unwrap()).unwrap();
    let seen = word.serve(fabric.place()).unwrap();
    move || {
        word.answer(seen);
        drop(serving);
    }
}

/// Waits until what others had asked for and given up since is over: their own windows say nothing of it. What dead
/// processes had asked for, and nobody has begun, is not carried out any more. To be called once the windows of the
/// living are closed.
pub fn outwait_given_up(fabric: &'static Fabric) {
    let _serving = fabric.reach().copier().serving();
    let (stages, process) = (&fabric.tables().stages, this(fabric));
    let askers = process.into_iter().flat_map(|process| process.askers.look());
    let askers = askers.filter(|&asker| !fabric.is_alive(asker));
    for stage in askers.flat_map(|asker| stages.of(asker)).chain(stages.large()) {
        let (word, seen) = (&stage.head.word, stage.head.word.seen());
        let is_asked = seen.state() == Some(State::Asked) && seen.asked() == fabric.place();
        if is_asked && !fabric.is_alive(seen.asker()) {
            word.cancel(seen);
        }
    }
}

fn this(fabric: &'static Fabric) -> Option<&'static ProcessSlot> {
    fabric.tables().processes.get(usize::from(fabric.place()))
}

/// Does what other processes have asked of this one.
pub fn serve(fabric: &'static Fabric) {
    let Some(process) = this(fabric) else { return };
    let is_behind = process.behind.is_noted();
    if is_behind || process.askers.any() {
        let _serving = fabric.reach().copier().serving();
        if is_behind {
            process.behind.over();
        }
        serve_all(fabric);
    }
}

/// The same, if no other thread does.
pub fn serve_if_nobody_does(fabric: &'static Fabric) {
    if let Some(_serving) = fabric.reach().copier().try_serving() {
        serve_all(fabric);
    }
}

fn serve_all(fabric: &'static Fabric) {
    serve_within(fabric, ROUNDS);
}

/// Looks at the large stages so many times at most. Who asks for little waits for one large part of others at most.
fn serve_within(fabric: &'static Fabric, rounds: usize) {
    let mut more = serve_askers(fabric);
    for _ in 0..rounds {
        if !more {
            return;
        }
        more = false;
        for stage in fabric.tables().stages.large() {
            if serve_one(fabric, stage) {
                more |= serve_askers(fabric);
            }
        }
    }
    if let Some(process) = this(fabric).filter(|_| more) {
        // Who was found last may have asked by one of them: they are looked at the next time.
        process.askers.add(fabric.place());
        fabric.call(fabric.place());
    }
}

/// Whether the process at a place may still write to receives for requests that were given up: whoever has taken one of
/// them since leaves it alone.
#[inline]
pub fn is_behind(fabric: &'static Fabric, place: u16) -> bool {
    let process = fabric.tables().processes.get(usize::from(place));
    process.is_some_and(|process| process.behind.is_noted() && !catches_up(fabric, place))
}

/// Whether the process at a place is this one, and carries nothing out.
#[cold]
fn catches_up(fabric: &'static Fabric, place: u16) -> bool {
    let Some(process) = this(fabric).filter(|_| place == fabric.place()) else { return false };
    let serving = fabric.reach().copier().try_serving();
    if serving.is_some() {
        process.behind.over();
    }
    serving.is_some()
}

/// Leaves a stage that is a thread's of this process, for whatever it asked.
fn give_up(fabric: &'static Fabric, stage: Stage, seen: Seen) {
    if stage.head.word.give_up(seen) {
        note_behind(fabric, seen.asked());
    }
}

/// A request was given up that the process at a place may carry out all the same.
#[cold]
fn note_behind(fabric: &'static Fabric, place: u16) {
    if let Some(process) = fabric.tables().processes.get(usize::from(place)) {
        process.behind.note();
        fabric.call(place);
    }
}

/// Serves the small stages of who has asked since this was called last; false if nobody has.
fn serve_askers(fabric: &'static Fabric) -> bool {
    let mut any = false;
    for asker in this(fabric).into_iter().flat_map(|process| process.askers.take()) {
        any = true;
        for stage in fabric.tables().stages.of(asker) {
            serve_one(fabric, stage);
        }
    }
    any
}

/// Serves a stage; false if it holds no request for this process.
fn serve_one(fabric: &'static Fabric, stage: Stage) -> bool {
    let Some(serving) = stage.head.word.serve(fabric.place()) else { return false };
    let (outcome, held) = carry_out(fabric, stage);
    steps::done(steps::Step::Served);
    stage.head.answer(outcome, held);
    stage.head.word.answer(serving);
    sync::count(&stage.head.answers);
    let _ = futex::wake(&stage.head.answers, futex::Flags::empty(), 1);
    true
}

/// Does what is asked. No memory but this process' own regions, as it knows them, is touched.
fn carry_out(fabric: &'static Fabric, stage: Stage) -> (Outcome, u64) {
    let Some((request, pieces)) = stage.head.read() else { return (Outcome::Refused, 0) };
    let window = Window::open_to_own(fabric, &fabric.reach().copier().copying);
    let Request { code, whose, needs, operands: [first, second] } = request;
    let done = match code {
        Code::Write | Code::WriteLate => {
            let mut to = Target::new();
            window.target(&mut to, whose, pieces, needs, stage.bytes() as u64).map(|()| {
                let from = Pieces::of_words(stage.data, to.pieces().len());
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
                .map(|()| memory::copy(&from, &Target::of_words(stage.data, stage.bytes())))
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
    let mut at = range.start;
    while at < range.end {
        let mut asking = Asking::new(fabric, far.place, range.end - at)?;
        let part = at..range.end.min(at + asking.stage.bytes());
        let data = asking.stage.data;
        if is_read {
            asking.ask(&request, from.range(part.clone()))?;
            memory::copy_at(&Pieces::of_words(data, part.len()), 0, to, part.start, part.len());
        } else {
            let stage = Target::of_words(data, part.len());
            memory::copy_at(from, part.start, &stage, 0, part.len());
            asking.ask(&request, to.pieces().range(part.clone()))?;
        }
        at = part.end;
        drop(asking);
        if at < range.end && sync::load_u32(&fabric.reach().copier().waiting) > 0 {
            sched_yield();
        }
    }
    Ok(())
}

/// Has an atomic done by the process that has the memory.
///
/// # Errors
/// That process does not answer, and has done it, or will, or has not.
pub fn atomic(fabric: &'static Fabric, far: Far, piece: Piece, step: Step) -> Result<u64, NotDone> {
    let (code, operands) = match step {
        Step::CompareSwap { compare, swap } => (Code::CompareSwap, [compare, swap]),
        Step::FetchAdd { add } => (Code::FetchAdd, [add, 0]),
        Step::Store { value } => (Code::Store, [value, 0]),
    };
    let request = Request { code, whose: far.whose, needs: far.needs, operands };
    let mut asking = Asking::new(fabric, far.place, 0)?;
    match asking.ask(&request, std::iter::once(piece)) {
        Err(Trouble::NoAnswer) => asking.recall(),
        outcome => Ok(outcome?),
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
    stage: usize,
    seen: Seen,
}

impl Begun {
    /// As numbers, of which the first is not 0, to be kept.
    pub const fn to_words(self) -> [u64; 2] {
        [self.stage as u64 + 1, self.seen.to_word()]
    }

    /// What was kept, if anything was.
    pub fn from_words([stage, seen]: [u64; 2]) -> Option<Self> {
        let stage = usize::try_from(stage.checked_sub(1)?).ok()?;
        Some(Self { stage, seen: Seen::from_word(seen) })
    }
}

/// Waits once more for the answer.
///
/// # Errors
/// It is still [`Begun`](NotDone::Begun). Or its process is dead, and with it the memory.
pub fn resume(fabric: &'static Fabric, begun: Begun) -> Result<u64, NotDone> {
    let Some(mut asking) = Asking::again(fabric, begun) else {
        return Err(Trouble::NoAnswer.into());
    };
    match asking.wait() {
        Ok(()) => Ok(asking.answer()?),
        Err(_) => asking.recall(),
    }
}

/// Nobody waits for the answer any more: whether it was done is not known.
pub fn abandon(fabric: &'static Fabric, begun: Begun) {
    drop(Asking::again(fabric, begun));
}

/// Leaves what a dead process has to do with.
pub fn sweep(fabric: &'static Fabric, dead: u16) {
    let stages = fabric.tables().stages.all();
    let behind = stages.filter_map(|stage| stage.head.word.sweep(dead));
    behind.for_each(|place| note_behind(fabric, place));
}

/// Gives up what dead processes have asked of the process at a place.
#[cold]
pub fn give_up_for_the_dead(fabric: &'static Fabric, asked: u16) {
    for stage in fabric.tables().stages.all() {
        let seen = stage.head.word.seen();
        let is_asked = seen.state().is_some() && seen.asked() == asked;
        if is_asked && !fabric.is_alive(seen.asker()) {
            give_up(fabric, stage, seen);
        }
    }
}

/// Leaves what no thread of this process has to do with, whatever is written there. To be called from time to
/// time.
pub fn tidy(fabric: &'static Fabric) {
    let copier = fabric.reach().copier();
    let _serving = copier.serving();
    for (stage, in_use) in copier.mine(fabric) {
        let seen = stage.head.word.seen();
        // Who claims one says so before, and until it has given it up.
        if seen.asker() == fabric.place() && sync::acquire(in_use) == 0 {
            give_up(fabric, stage, seen);
        }
    }
    // Nobody of this process serves meanwhile.
    fabric.tables().stages.all().for_each(|stage| stage.head.word.free_orphan(fabric.place()));
}

/// A stage that is this thread's, to ask a process by.
struct Asking {
    fabric: &'static Fabric,
    stage: Stage,
    in_use: &'static AtomicU32,
    seen: Seen,
    /// Whether the process that is asked was found dead.
    is_dead: bool,
}

impl Asking {
    /// Claims one for so many bytes, or for a part of them.
    fn new(fabric: &'static Fabric, asked: u16, len: usize) -> Result<Self, Trouble> {
        if let Some(asking) = Self::claim(fabric, asked, len, false) {
            return Ok(asking);
        }
        let waiting = &fabric.reach().copier().waiting;
        sync::enter(waiting);
        let claimed = Self::wait_for_one(fabric, asked, len);
        sync::leave(waiting);
        claimed
    }

    #[cold]
    fn wait_for_one(fabric: &'static Fabric, asked: u16, len: usize) -> Result<Self, Trouble> {
        let (start, mut rounds) = (Instant::now(), Copier::rounds(fabric));
        let (mut last, mut waited, mut backoff) = (start, Duration::ZERO, Backoff::default());
        loop {
            if let Some(asking) = Self::claim(fabric, asked, len, last - start > HELP) {
                return Ok(asking);
            }
            let before = mem::replace(&mut last, Instant::now());
            let seen = mem::replace(&mut rounds, Copier::rounds(fabric));
            waited = if rounds == seen { waited + STEP.min(last - before) } else { Duration::ZERO };
            if waited > PATIENCE {
                return Err(Trouble::NoAnswer);
            }
            serve_if_nobody_does(fabric);
            backoff.snooze();
        }
    }

    /// Claims one that is free. A large part takes a small stage only if it `may`, and leaves half of them to
    /// what is small.
    fn claim(fabric: &'static Fabric, asked: u16, len: usize, may: bool) -> Option<Self> {
        let is_small = len <= SMALL_BYTES;
        let (own, large) = match is_small {
            true => (0..OWN, OWN..OWN),
            false if may => (OWN / 2..OWN, OWN..OWN + LARGE),
            false => (0..0, OWN..OWN + LARGE),
        };
        let mine = || fabric.reach().copier().mine(fabric).enumerate();
        let of = |range: Range<usize>| mine().filter(move |(nth, _)| range.contains(nth));
        of(large).chain(of(own)).find_map(|(_, (stage, in_use))| {
            sync::enter(in_use);
            if let Some(seen) = stage.head.word.claim(fabric.place(), asked) {
                return Some(Self { fabric, stage, in_use, seen, is_dead: false });
            }
            sync::leave(in_use);
            None
        })
    }

    /// That of a request that was [kept](Self::keep).
    fn again(fabric: &'static Fabric, begun: Begun) -> Option<Self> {
        let mut mine = fabric.reach().copier().mine(fabric);
        let (stage, in_use) = mine.find(|(stage, _)| stage.index() == begun.stage)?;
        Some(Self { fabric, stage, in_use, seen: begun.seen, is_dead: false })
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
        let (fabric, asked) = (self.fabric, self.seen.asked());
        self.stage.head.write(request, pieces.map(sge));
        self.seen = self.stage.head.word.ask(self.seen).ok_or(Trouble::NoAnswer)?;
        if let Some(process) = fabric.tables().processes.get(usize::from(asked)) {
            process.askers.add(fabric.place());
        }
        fabric.call(asked);
        self.wait()?;
        self.answer()
    }

    /// What was answered.
    fn answer(&self) -> Result<u64, Trouble> {
        match self.stage.head.answered() {
            (Outcome::Done, held) => Ok(held),
            (Outcome::Refused, _) => Err(Trouble::Fault),
            (Outcome::Later, _) => Err(Trouble::NoAnswer),
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
            if nap % LOOK == 0 && !self.fabric.is_alive(self.seen.asked()) {
                self.is_dead = true;
                self.fabric.suspect();
                return Err(Trouble::NoAnswer);
            }
            if Instant::now() > end {
                return Err(Trouble::NoAnswer);
            }
            serve_if_nobody_does(self.fabric);
            let _ = futex::wait(&head.answers, futex::Flags::empty(), answers, Some(&NAP));
        }
        Err(Trouble::NoAnswer)
    }

    /// Wants back what was asked for, and not answered in time.
    fn recall(self) -> Result<u64, NotDone> {
        match self.stage.head.word.recall(self.seen) {
            Recalled::Answered(_) => Ok(self.answer()?),
            Recalled::Begun if !self.is_dead => Err(NotDone::Begun(self.keep())),
            _ => Err(Trouble::NoAnswer.into()),
        }
    }

    /// Leaves the stage as it is.
    fn keep(self) -> Begun {
        let this = ManuallyDrop::new(self);
        Begun { stage: this.stage.index(), seen: this.seen }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        give_up(self.fabric, self.stage, self.seen);
        if self.is_dead {
            self.stage.head.word.free_orphan(self.seen.asked());
        }
        sync::leave(self.in_use);
    }
}

#[cfg(test)]
mod tests;
