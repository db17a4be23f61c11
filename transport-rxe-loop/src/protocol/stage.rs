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
//! Who gives up a request that is being carried out, and with it a buffer that others may take, says that the asked is
//! [`Behind`]: until that one has carried it out, whoever takes the buffer does not write to it.
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
                Some(State::Asked) => {
                    if let Some(mine) = self.change(seen, Some(State::Filling)) {
                        return Recalled::Back(mine);
                    }
                }
                Some(State::Serving) => return Recalled::Begun,
                Some(State::Done) => return Recalled::Answered(seen),
                Some(State::Filling) => return Recalled::Back(seen),
                Some(State::Orphaned) | None => return Recalled::Lost,
            }
        }
    }

    /// Leaves it as its asker, in whatever state of that round it is: nobody will read the answer. True if it may
    /// be carried out all the same: then the asked is [`Behind`].
    pub fn give_up(&self, round: Seen) -> bool {
        let mut is_carried_out = false;
        sync::raise_from(&self.0, |word| {
            let seen = Seen(word);
            let is_same = seen.is_same_round(round);
            is_carried_out =
                is_same && matches!(seen.state(), Some(State::Serving | State::Orphaned));
            let next = match seen.state() {
                _ if !is_same => return None,
                Some(State::Filling | State::Asked | State::Done) => None,
                Some(State::Serving) => Some(State::Orphaned),
                _ => return None,
            };
            Some(seen.to(next).0)
        });
        is_carried_out
    }

    /// What a dead process had asked for is not begun any more.
    pub fn cancel(&self, asked: Seen) {
        self.change(asked, None);
    }

    /// Leaves it in the place of a process that died. Says who may carry out all the same what that one had asked for:
    /// it is [`Behind`].
    pub fn sweep(&self, dead: u16) -> Option<u16> {
        let seen = self.seen();
        let is_carried_out = seen.asker() == dead && self.give_up(seen);
        self.free_orphan(dead);
        is_carried_out.then(|| seen.asked())
    }

    /// Frees it if it is orphaned, and the attachment that was asked, which does not serve, is this one.
    pub fn free_orphan(&self, asked: u16) {
        let seen = self.seen();
        if seen.state() == Some(State::Orphaned) && seen.asked() == asked {
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

/// Whether an attachment may still carry out what was given up. A buffer that such a request writes to must not be
/// written to by anybody else before: so it is *noted* after the request is given up, and before its buffer is.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Behind(AtomicU32);

impl Behind {
    /// Something was given up that is being carried out. The attachment is to be called after this.
    pub fn note(&self) {
        sync::release(&self.0, 1);
    }

    /// Whether it may. To be asked by who has a buffer that was given up, before that is written to.
    #[inline]
    pub fn is_noted(&self) -> bool {
        sync::acquire(&self.0) != 0
    }

    /// It does not: the attachment carries out nothing at the moment, and is who says so.
    pub fn over(&self) {
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
        words.flat_map(|(word, base)| each(sync::acquire(word), base))
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
mod tests {
    use super::*;

    const ASKER: u16 = 3;
    const ASKED: u16 = 4;

    fn asked(word: &Word) -> Seen {
        word.ask(word.claim(ASKER, ASKED).unwrap()).unwrap()
    }

    #[test]
    fn a_stage_is_one_askers_at_a_time() {
        let word = Word::default();
        let free = word.seen();
        let seen = word.claim(ASKER, ASKED).unwrap();
        assert_eq!((seen.asker(), seen.asked()), (ASKER, ASKED));
        assert!(word.claim(5, ASKED).is_none());
        assert!(word.claim_from(free, 5, ASKED).is_none(), "it saw it free, and was too late");
        word.ask(seen).unwrap();
        assert!(word.serve(ASKER).is_none(), "another one is asked");
        let serving = word.serve(ASKED).unwrap();
        assert!(word.serve(ASKED).is_none(), "once");
        assert!(word.claim(5, ASKED).is_none());
        assert!(word.answer(serving));
        word.give_up(seen);
        assert!(word.claim(5, ASKED).is_some());
    }

    #[test]
    fn x05_a_request_comes_back_only_if_nobody_has_begun_it() {
        let word = Word::default();
        let first = asked(&word);
        let Recalled::Back(mine) = word.recall(first) else { panic!("nobody has begun it") };
        assert!(word.serve(ASKED).is_none(), "nobody will");
        assert_eq!(word.recall(mine), Recalled::Back(mine));
        word.ask(mine).unwrap();
        let serving = word.serve(ASKED).unwrap();
        assert_eq!(word.recall(first), Recalled::Begun);
        assert!(word.answer(serving));
        let Recalled::Answered(done) = word.recall(first) else { panic!("it was answered") };
        word.give_up(done);
        assert_eq!(word.recall(first), Recalled::Lost);
        let second = asked(&word);
        assert_eq!(word.recall(first), Recalled::Lost, "another round");
        word.serve(ASKED).unwrap();
        word.give_up(second);
        assert_eq!(word.recall(second), Recalled::Lost, "it was given up");
    }

    #[test]
    fn a_stage_that_is_being_served_is_freed_by_who_serves() {
        let word = Word::default();
        let request = asked(&word);
        let serving = word.serve(ASKED).unwrap();
        word.give_up(request);
        assert!(word.claim(5, ASKED).is_none());
        assert!(!word.answer(serving), "nobody wants it");
        assert!(word.claim(5, ASKED).is_some());
    }

    #[test]
    fn what_a_dead_process_has_to_do_with_is_swept() {
        let word = Word::default();
        let serve = |_| word.serve(ASKED).map(|serving| word.answer(serving));
        for is_answered in [false, true] {
            let request = asked(&word);
            is_answered.then(|| serve(request));
            word.sweep(ASKED);
            assert!(word.claim(5, 6).is_none(), "its asker lives, and gives up itself");
            word.sweep(ASKER);
            assert_eq!(word.seen().state(), None);
        }
        word.claim(ASKER, ASKED).unwrap();
        word.sweep(ASKER);
        assert_eq!(word.seen().state(), None, "it had not asked");
        let request = asked(&word);
        word.serve(ASKED).unwrap();
        word.sweep(ASKER);
        assert_eq!(word.seen().state(), Some(State::Orphaned));
        word.sweep(5);
        assert_eq!(word.seen().state(), Some(State::Orphaned), "it is another one that died");
        word.sweep(ASKED);
        assert_eq!(word.seen().state(), None);
        let next = word.claim(ASKER, ASKED).unwrap();
        word.give_up(request);
        assert_eq!(word.seen(), next, "another round");
    }

    #[test]
    fn x03_what_is_cancelled_is_not_begun() {
        let word = Word::default();
        let request = asked(&word);
        word.cancel(request);
        assert!(word.serve(ASKED).is_none());
        let request = asked(&word);
        word.serve(ASKED).unwrap();
        word.cancel(request);
        assert_eq!(word.seen().state(), Some(State::Serving), "it was begun");
    }

    #[test]
    fn x04_any_word_is_a_state_or_a_free_stage() {
        for number in [0, 6, 255] {
            let word = Word(AtomicU64::new(u64::MAX << 8 | number));
            assert!(word.claim(1, 2).is_some());
        }
    }

    #[test]
    fn askers_are_told_once_whoever_they_are() {
        let askers = Askers::default();
        assert!(!askers.any());
        let some = [0, 63, 64, 253];
        some.into_iter().for_each(|asker| askers.add(asker));
        askers.add(63);
        assert!(askers.any());
        assert!(askers.look().eq(some));
        assert!(askers.take().eq(some));
        assert!(!askers.any());
        assert_eq!(askers.take().count() + askers.look().count(), 0);
        askers.add(u16::MAX);
        assert_eq!(askers.take().count(), 1, "any number is harmless");
    }
}
