//! A request for memory that another process moves itself: who asks, who is asked, and how far it is, in one word,
//! so that a change is made by who has seen all of it. Beside it, which processes have asked.
//!
//! | state | whose the rest of the stage is | left by |
//! |---|---|---|
//! | Free, and any other number | nobody's | an asker, who [claims](Word::claim) it, to Filling |
//! | Filling | the asker's | the asker, who [asks](Word::ask), to Asked, or [gives up](Word::give_up), to Free |
//! | Asked | nobody's | the asked, who [serves](Word::serve), to Serving; the asker, who [recalls](Word::recall) it, to Filling, or gives up, to Free; the asked, who [cancels](Word::cancel) what a dead process had asked for, to Free |
//! | Serving | the asked's | the asked, who [answers](Word::answer), to Done; the asker, who gives up, to Orphaned |
//! | Done | the asker's | the asker, who asks for more, to Asked, or gives up, to Free |
//! | Orphaned | the asked's | the asked, who answers, to Free |
//!
//! A request that must not be carried out twice is never given up while the asker means to try it again: it is
//! recalled. From Asked it comes back, and nobody has begun it; from Serving it can't, and the asker waits for the
//! answer of this very request, however late that comes.
//!
//! A request that is given up while it is carried out stays in flight, and may write to a buffer that others can take by
//! then. So it is marked at the asked as [`Abandoned`] before the buffer is given back.
//!
//! A dead asker's stages are [swept](Word::sweep) as if it had given them up. Requests to a dead process are given
//! up by their askers, and what is Orphaned is swept to Free. So nobody writes to a stage that is another's.
//!
//! ```
//! use transport_rxe_loop::protocol::stage::{Recalled, State, Word};
//!
//! let (word, asker, asked) = (Word::default(), 3, 4);
//! let mine = word.claim(asker, asked).unwrap();
//! let request = word.ask(mine).unwrap();
//! let serving = word.serve(asked).unwrap();
//! assert_eq!(word.recall(request), Recalled::Begun); // too late
//! assert!(word.answer(serving));
//! assert!(matches!(word.recall(request), Recalled::Answered(_)));
//! word.give_up(request);
//! assert_eq!(word.seen().state(), None); // free
//! ```

use super::steps::{self, Step};
use crate::sync::{self, AtomicU32, AtomicU64};

/// What a stage's word says that is not Free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The asker writes its request, or reads nothing any more.
    Filling,
    /// The request waits for the process that is asked.
    Asked,
    /// It is being carried out.
    Serving,
    /// It was carried out, or refused, and the answer is there.
    Done,
    /// It is being carried out, and nobody wants the answer.
    Orphaned,
}

/// A stage's word, as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u64);

const ASKER: u32 = 8;
const ASKED: u32 = ASKER + u16::BITS;
const ROUND: u32 = ASKED + u16::BITS;

impl Seen {
    /// `None` is Free.
    pub const fn state(self) -> Option<State> {
        Some(match self.0 as u8 {
            1 => State::Filling,
            2 => State::Asked,
            3 => State::Serving,
            4 => State::Done,
            5 => State::Orphaned,
            _ => return None,
        })
    }

    /// The attachment that asks.
    pub const fn asker(self) -> u16 {
        (self.0 >> ASKER) as u16
    }

    /// The attachment that is asked.
    pub const fn asked(self) -> u16 {
        (self.0 >> ASKED) as u16
    }

    /// Whether the two are of the same request, or of others that were made without leaving the stage.
    pub const fn is_same_round(self, other: Self) -> bool {
        self.0 >> ASKER == other.0 >> ASKER
    }

    /// As a number, to be kept.
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// What was kept. Any number is one.
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    const fn to(self, state: Option<State>) -> Self {
        let number = match state {
            None => 0,
            Some(State::Filling) => 1,
            Some(State::Asked) => 2,
            Some(State::Serving) => 3,
            Some(State::Done) => 4,
            Some(State::Orphaned) => 5,
        };
        Self(self.0 & !0xff | number)
    }

    const fn next_round(self, asker: u16, asked: u16) -> Self {
        let round = (self.0 >> ROUND).wrapping_add(1);
        Self(round << ROUND | (asked as u64) << ASKED | (asker as u64) << ASKER)
    }
}

/// What became of a request that its asker wants back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// Nobody has begun it, and nobody will: the stage is Filling.
    Back(Seen),
    /// It is being carried out.
    Begun,
    /// The answer is there.
    Answered(Seen),
    /// The stage is another request's: this one was swept.
    Lost,
}

/// The word. Zeros are a free stage, and so is any number that is no state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// What it says; what was written to the stage before can be read.
    pub fn seen(&self) -> Seen {
        Seen(sync::acquire(&self.0))
    }

    /// Takes the stage for a request of one process to another, if it is free.
    pub fn claim(&self, asker: u16, asked: u16) -> Option<Seen> {
        self.claim_from(self.seen(), asker, asked)
    }

    /// The same, unless the word has changed.
    fn claim_from(&self, seen: Seen, asker: u16, asked: u16) -> Option<Seen> {
        let next = seen.next_round(asker, asked).to(Some(State::Filling));
        seen.state().is_none().then(|| self.swap(seen, next)).flatten()
    }

    /// The request is written, in a stage that is the caller's: Filling, or Done.
    pub fn ask(&self, mine: Seen) -> Option<Seen> {
        let asked = self.change(mine, Some(State::Asked));
        steps::done(Step::Asked);
        asked
    }

    /// Begins to carry the request out, if there is one for this attachment.
    pub fn serve(&self, asked: u16) -> Option<Seen> {
        let seen = self.seen();
        let is_for_me = seen.state() == Some(State::Asked) && seen.asked() == asked;
        let serving = is_for_me.then(|| self.change(seen, Some(State::Serving))).flatten();
        if serving.is_some() {
            steps::done(Step::Serving);
        }
        serving
    }

    /// The answer is written; false if nobody wanted it, and the stage is free.
    pub fn answer(&self, serving: Seen) -> bool {
        let is_wanted = self.change(serving, Some(State::Done)).is_some();
        if !is_wanted {
            self.free_orphan(serving.asked());
        }
        steps::done(Step::Answered);
        is_wanted
    }

    /// The asker wants its request back.
    pub fn recall(&self, round: Seen) -> Recalled {
        loop {
            let seen = self.seen();
            if !seen.is_same_round(round) {
                return Recalled::Lost;
            }
            match seen.state() {
                Some(State::Asked) => _ = self.change(seen, Some(State::Filling)),
                Some(State::Serving) => return Recalled::Begun,
                Some(State::Done) => return Recalled::Answered(seen),
                Some(State::Filling) => return Recalled::Back(seen),
                Some(State::Orphaned) | None => return Recalled::Lost,
            }
        }
    }

    /// Leaves it as its asker, in whatever state of that round it is: nobody will read the answer. True if the request
    /// is in flight all the same: then it is [`Abandoned`].
    pub fn give_up(&self, round: Seen) -> bool {
        let mut is_in_flight = false;
        sync::raise_from(&self.0, |word| {
            let seen = Seen(word);
            let state = seen.state().filter(|_| seen.is_same_round(round));
            is_in_flight = matches!(state, Some(State::Serving | State::Orphaned));
            let next = seen.to(is_in_flight.then_some(State::Orphaned)).0;
            (state.is_some() && next != word).then_some(next)
        });
        is_in_flight
    }

    /// What a dead process had asked for is not begun any more.
    pub fn cancel(&self, asked: Seen) {
        self.change(asked, None);
    }

    /// Leaves it in the place of a process that died. Says at whom what that one had asked for is in flight all the
    /// same: then it is [`Abandoned`].
    pub fn sweep(&self, dead: u16) -> Option<u16> {
        let seen = self.seen();
        let is_in_flight = seen.asker() == dead && self.give_up(seen);
        self.free_orphan(dead);
        is_in_flight.then(|| seen.asked())
    }

    /// Frees it if it is orphaned, and the attachment that was asked, which does not serve, is this one.
    pub fn free_orphan(&self, asked: u16) {
        self.free_orphan_if(|seen| seen.asked() == asked);
    }

    /// Frees it if it is orphaned in this round, whose asked attachment does not serve.
    pub fn free_abandoned(&self, round: Seen) {
        self.free_orphan_if(|seen| seen.is_same_round(round));
    }

    fn free_orphan_if(&self, is_it: impl FnOnce(Seen) -> bool) {
        let seen = self.seen();
        if seen.state() == Some(State::Orphaned) && is_it(seen) {
            self.change(seen, None);
        }
    }

    fn change(&self, seen: Seen, state: Option<State>) -> Option<Seen> {
        self.swap(seen, seen.to(state))
    }

    fn swap(&self, seen: Seen, next: Seen) -> Option<Seen> {
        sync::swap_if(&self.0, seen.0, next.0).ok().map(|()| next)
    }
}

/// Whether abandoned requests may still be in flight at an attachment. A buffer that they write to must not be written to
/// by anybody else before they are not: it is marked after the request is given up, and before the buffer is given back.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Abandoned(AtomicU32);

impl Abandoned {
    /// One is. The attachment is to be called after this.
    pub fn mark(&self) {
        // The buffer hands it over.
        sync::store(&self.0, 1);
    }

    /// Whether one may be. To be asked by who has taken such a buffer, before it is written to.
    #[inline]
    pub fn is_marked(&self) -> bool {
        sync::acquire(&self.0) != 0
    }

    /// None is. For the attachment, while none of its threads carries anything out.
    pub fn clear(&self) {
        sync::release(&self.0, 0);
    }
}

const BITS: u16 = u64::BITS as u16;

/// Which attachments have asked this one since it looked last: a bit each.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Askers([AtomicU64; 4]);

impl Askers {
    /// An attachment has asked. To be called after [`Word::ask`].
    pub fn add(&self, asker: u16) {
        let word = &self.0[usize::from(asker / BITS) % self.0.len()];
        sync::raise_from(word, |seen| Some(seen | 1 << (asker % BITS)));
    }

    /// Whether any has.
    pub fn any(&self) -> bool {
        self.0.iter().any(|word| sync::load(word) != 0)
    }

    /// Those that have: each is to be looked for, and has not asked after this until it is here again.
    pub fn take(&self) -> impl Iterator<Item = u16> {
        self.0.iter().zip((0..).step_by(BITS.into())).flat_map(|(word, base)| {
            let mut had = 0;
            sync::raise_from(word, |seen| {
                had = seen;
                (seen != 0).then_some(0)
            });
            each(had, base)
        })
    }

    /// The same, and they stay.
    pub fn look(&self) -> impl Iterator<Item = u16> {
        let words = self.0.iter().zip((0..).step_by(BITS.into()));
        words.flat_map(|(word, base)| each(sync::load(word), base))
    }
}

fn each(mut bits: u64, base: u16) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros() as u16)?;
        bits &= bits - 1;
        Some(base + bit)
    })
}

#[cfg(test)]
mod tests;
