//! An event channel: its descriptor is a pipe, and what is in the pipe are the events. There is no lock between processes:
//! one that is stopped or dies at any step delays at most its own event.
//!
//! # Tokens
//! A [token](Token) names a source and its life, and stands for one event. Every process [raises](Events::raise) events: it
//! *counts* the event at its source, and then *writes* its token. The owner of the channel [takes](Events::take) an event by
//! reading its token; without a token there is nothing to take. Tokens are read in the order in which they were written. Later
//! ones may come first while others are parked, or while tokens are read and written again. So
//! - the descriptor is readable exactly while an event can be taken: a read takes both away at once;
//! - every event is a write, which wakes those who wait for the descriptor, also if they wait for edges and take nothing;
//! - no event waits for the token of another one.
//!
//! | an unread event is | left by | to |
//! |---|---|---|
//! | counted | the process that raises it | written, or parked; written by those who recover if that process died |
//! | written | who writes its token | taken by the owner; read away when its source is detached |
//! | parked | a process that found the pipe full, or could not open it | written by the owner, or by the process itself |
//!
//! # A full pipe
//! A pipe has a bound, unread events have none below [`MOST`] for each source. A process that finds the pipe full *parks* the
//! event: it counts it as parked at its source, records that at the [`Board`], and then looks whether the pipe is empty. If it
//! is, it tries again; if not, the owner comes to what is in it, and after each read it looks for parked events. System calls on
//! a pipe are ordered by its lock, so one of both sees the other. An event beyond [`MOST`] is merged with those that are there,
//! unless there is space for its token. The attempt to write to a full pipe wakes those who poll it; a process that can't open it
//! wakes nobody by merging.
//!
//! # Recovery
//! A process may die after it has counted an event and before it has written the token. Nobody else knows how far it came, but
//! the owner can tell: of the unread events of a source that are not parked, [those that have no token](Events::missing) are about
//! to be written, or never will be. What is missing for longer than any process takes that is not stopped, it
//! [parks](Events::restore).
//!
//! # Lives of a source
//! A source's counts and the number of its life are one word. [Attaching](Events::attach) and [detaching](Events::detach)
//! begin a new life without events, so that an event is counted in the life that it was meant for, or not at all. Tokens of
//! another life are void. Who detaches a source reads its tokens away; it waits for those that are about to be written, but
//! not for a process that is stopped. That one writes a void token when it resumes, as one does whose event was restored
//! meanwhile: the descriptor is readable then until the owner looks, and finds nothing.
//!
//! What the owner was not told by itself is not believed (X4): it takes events of the sources that it has attached, in the
//! lives that it gave them. If another process corrupts the life of a source, the owner gives that back when it reads a void token
//! of it. If one corrupts the number of the channel, no event of the source comes until it is attached again.

mod count;
mod sift;

use std::collections::BTreeMap;

use self::count::Count;
pub use self::count::{EventNode, MOST};
use super::number::ChannelIndex;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU32};

/// What processes tell the owner of a channel. Any content is harmless; zeros are a channel without events.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Board {
    /// Whether there may be parked events.
    parked: AtomicU32,
}

/// An event of a source in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    source: u32,
    life: u32,
}

impl Token {
    /// No event.
    const NONE: Self = Self { source: u32::MAX, life: u32::MAX };

    /// What is written.
    pub const fn to_bytes(self) -> [u8; 8] {
        ((self.life as u64) << 32 | self.source as u64).to_le_bytes()
    }

    /// What was read. Any bytes are a token, and nearly all of them a void one.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        let word = u64::from_le_bytes(bytes);
        Self { source: word as u32, life: (word >> 32) as u32 }
    }
}

/// The descriptor of a channel. Each call is one step, in an order that all processes see.
pub trait Pipe {
    /// Writes a token as a whole, or does not.
    ///
    /// # Errors
    /// Why not.
    fn write(&self, token: Token) -> Result<(), Unwritten>;
    /// Reads the oldest token; `None` if there is none. For the owner.
    fn read(&self) -> Option<Token>;
    /// How many tokens are there.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Waits a little for what another process is about to write; false, at once, if it has waited long enough for one that
    /// is not stopped. Attempts count from 1.
    fn wait(&self, attempt: u32) -> bool;
}

/// Why a token was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The pipe is full. Those who poll it were woken.
    Full,
    /// This process can't open it.
    Unopened,
}

/// The event is parked, and the owner has to be called to [write](Events::refill) it: this process can't open the
/// descriptor.
#[derive(Debug)]
pub struct Unopened;

/// What the owner of a channel keeps to itself: the sources that it has attached, with their lives.
#[derive(Debug, Default)]
pub struct Owned(BTreeMap<u32, u32>);

impl Owned {
    fn has(&self, token: Token) -> bool {
        self.0.get(&token.source) == Some(&token.life)
    }

    fn tokens(&self) -> impl Iterator<Item = Token> {
        self.0.iter().map(|(&source, &life)| Token { source, life })
    }
}

/// An event channel.
#[derive(Debug)]
pub struct Events<'a, F> {
    board: &'a Board,
    index: ChannelIndex,
    node: F,
}

/// With so many tokens left, the owner looks for parked events.
const LOW: usize = 64;

impl<'a, F: Fn(u32) -> &'a EventNode> Events<'a, F> {
    /// The channel at this index. `node` accepts any number of a source.
    pub const fn new(board: &'a Board, index: ChannelIndex, node: F) -> Self {
        Self { board, index, node }
    }

    /// Begins a new channel, to which no source is attached.
    pub fn begin(&self) {
        sync::store(&self.board.parked, 0);
    }

    /// Attaches a source, which has no channel so far. For the owner of the channel.
    pub fn attach(&self, source: u32, owned: &mut Owned) {
        let node = (self.node)(source);
        owned.0.insert(source, node.renew().renewed().life());
        node.enter(self.index);
    }

    /// Adds an event of a source, if the source is attached here and `is_meant` confirms that the event is of
    /// the object that the source has in this life.
    ///
    /// # Errors
    /// The owner has to be called.
    pub fn raise(
        &self,
        source: u32,
        is_meant: impl Fn() -> bool,
        pipe: &impl Pipe,
    ) -> Result<(), Unopened> {
        let node = (self.node)(source);
        // Before the checks below. If a new life began since, the exchange fails and nothing is counted; if not, `has`
        // reads the channel that this life has.
        let mut seen = node.count();
        loop {
            if !self.has(node) || !is_meant() {
                return Ok(());
            }
            let token = Token { source, life: seen.life() };
            // So many only if another process corrupted the count. Taking what is written mends it.
            let Some(more) = seen.one_more() else { return self.post(token, false, pipe) };
            match node.exchange(seen, more) {
                Ok(()) => break self.post(token, seen.unread() < MOST, pipe),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the event whose token is the first one, and returns its source. For the owner, by one thread at a time.
    pub fn take(&self, owned: &Owned, pipe: &impl Pipe) -> Option<u32> {
        let (mut left, mut is_mended) = (None, false);
        while let Some(token) = pipe.read() {
            if sync::load(&self.board.parked) != 0 && pipe.len() <= LOW {
                self.refill(owned, pipe);
            }
            if owned.has(token) && self.update(token, Count::one_less) {
                return Some(token.source);
            }
            if !is_mended && self.mend(token.source, owned) {
                self.restore(&self.missing(owned, pipe), owned, pipe);
                (is_mended, left) = (true, None);
            }
            // Others may write void ones as fast as they are read.
            let left = left.get_or_insert_with(|| pipe.len() + 1);
            *left -= 1;
            if *left == 0 {
                break;
            }
        }
        None
    }

    /// Writes parked events: one of each source, and again, until none is left or the pipe is full. For the owner, by one
    /// thread at a time.
    pub fn refill(&self, owned: &Owned, pipe: &impl Pipe) {
        let mut parked = 0;
        sync::fetch_update(&self.board.parked, |seen| {
            parked = seen;
            (seen != 0).then_some(0)
        });
        let mut is_over = parked == 0;
        while !is_over {
            is_over = true;
            for token in owned.tokens() {
                if !self.update(token, Count::unparked) {
                    continue;
                }
                if pipe.write(token).is_err() {
                    self.park(token);
                    return;
                }
                is_over = false;
            }
        }
    }

    /// Gives a source the life back that it has for its owner; false if it has that. No other process renews it (X4).
    fn mend(&self, source: u32, owned: &Owned) -> bool {
        let Some(&life) = owned.0.get(&source) else { return false };
        (self.node)(source).update(|count| (count.life() != life).then(|| count.of_life(life)))
    }

    /// Writes the token of an event that is counted, or parks the event if it is one of those that are kept for certain.
    fn post(&self, token: Token, is_kept: bool, pipe: &impl Pipe) -> Result<(), Unopened> {
        steps::done(Step::Counted);
        loop {
            let Err(why) = pipe.write(token) else { return Ok(()) };
            if !is_kept {
                self.update(token, Count::one_less);
                return Ok(());
            }
            self.park(token);
            if why == Unwritten::Unopened {
                return Err(Unopened);
            }
            // What is there, the owner comes to, and then to this. It may have done so before this was parked.
            if !pipe.is_empty() || !self.update(token, Count::unparked) {
                return Ok(());
            }
        }
    }

    fn park(&self, token: Token) {
        // An exchange even if it is set: what others have parked before is handed over, too.
        if self.update(token, Count::parked_more) {
            sync::fetch_update(&self.board.parked, |_| Some(1));
        }
    }

    /// Changes the count of a token's source; false if it has another life, or there is nothing to change.
    fn update(&self, token: Token, change: impl Fn(Count) -> Option<Count>) -> bool {
        (self.node)(token.source)
            .update(|count| change(count).filter(|_| count.life() == token.life))
    }

    fn has(&self, node: &EventNode) -> bool {
        node.channel() == Some(self.index)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
