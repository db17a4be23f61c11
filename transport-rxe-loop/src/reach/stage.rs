//! A stage: a place in the fabric through which bytes go where the system does not move them, and the
//! request that goes with them.
//!
//! # The word of a stage
//! State, who asks, who is asked, and a number that is another each time, in one word, so that whoever
//! changes it has seen all of it.
//!
//! | state | whose the rest of the stage is | left by |
//! |---|---|---|
//! | Free, and any other number | nobody's | who wants one, to Filling |
//! | Filling | the asker's | the asker, to Asked or Free |
//! | Asked | nobody's | the asked, to Serving; the asker, who gives up, to Free |
//! | Serving | the asked's | the asked, to Done; the asker, who gives up, to Orphaned |
//! | Done | the asker's | the asker, to Asked or Free |
//! | Orphaned | the asked's | the asked, to Free |
//!
//! What a dead asker would have left, whoever sweeps up after it leaves in its place, as one who gives up;
//! from Filling and Done to Free. What a dead one was asked, its askers leave; and Orphaned is swept to Free.
//! So nobody ever writes to a stage that is another's by now.

#![allow(unsafe_code)]

use std::fmt;

use cq_core::setup::Access;
use cq_core::wr::Sge;

use crate::facts::Whose;
use crate::memory::MAX_SGE;
use crate::region::Shared;
use crate::sync::{self, AtomicU32, AtomicU64};

/// Stages of a fabric.
pub const STAGES: usize = 8;
/// Bytes that go through a stage at once.
pub const ROOM: usize = 64 << 10;

/// See the [module](self).
#[repr(C, align(128))]
pub struct Stage {
    word: AtomicU64,
    /// Counts the answers; who waits for one sleeps on it.
    pub answers: AtomicU32,
    outcome: AtomicU32,
    code: AtomicU32,
    domain: AtomicU32,
    target: AtomicU32,
    needs: AtomicU32,
    len: AtomicU32,
    operands: [AtomicU64; 2],
    pieces: [[AtomicU64; 2]; MAX_SGE],
    pub data: [AtomicU64; ROOM / 8],
}

// SAFETY: `repr(C)`, atomics alone, alignment 128.
unsafe impl Shared for Stage {}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("word", &self.word).finish_non_exhaustive()
    }
}

/// What a stage's word says that is not Free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Filling,
    Asked,
    Serving,
    Done,
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

    /// The place of who asks.
    pub const fn asker(self) -> u16 {
        (self.0 >> ASKER) as u16
    }

    /// The place of who is asked.
    pub const fn asked(self) -> u16 {
        (self.0 >> ASKED) as u16
    }

    /// Whether the two say who asks whom alike, and for the same time.
    pub const fn is_same_round(self, other: Self) -> bool {
        self.0 >> ASKER == other.0 >> ASKER
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

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// That the pieces be filled from the stage.
    Write = 1,
    /// The same, and the last eight bytes last.
    WriteLate = 2,
    /// That the stage be filled from the pieces.
    Read = 3,
    /// COMP_SWAP on the one piece.
    CompareSwap = 4,
    /// FETCH_ADD.
    FetchAdd = 5,
    /// An atomic write.
    Store = 6,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub code: Code,
    pub whose: Whose,
    pub needs: Access,
    pub operands: [u64; 2],
}

/// How it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Outcome {
    /// It was done.
    Done = 1,
    /// A key, a range or a right is wrong.
    Refused = 2,
    /// It could not be done now.
    Later = 3,
}

impl Stage {
    /// What its word says.
    pub fn seen(&self) -> Seen {
        Seen(sync::acquire(&self.word))
    }

    /// Changes its state, unless its word has changed; what it says then.
    pub fn change(&self, seen: Seen, state: Option<State>) -> Option<Seen> {
        let next = seen.to(state);
        sync::swap_if(&self.word, seen.0, next.0).ok().map(|()| next)
    }

    /// Takes it, if it is free.
    pub fn claim(&self, asker: u16, asked: u16) -> Option<Seen> {
        self.claim_from(self.seen(), asker, asked)
    }

    /// The same, unless its word has changed.
    fn claim_from(&self, seen: Seen, asker: u16, asked: u16) -> Option<Seen> {
        let next = seen.next_round(asker, asked).to(Some(State::Filling));
        let is_free = seen.state().is_none();
        (is_free && sync::swap_if(&self.word, seen.0, next.0).is_ok()).then_some(next)
    }

    /// Writes down what is asked. It is the caller's.
    pub fn write(&self, request: &Request, pieces: impl Iterator<Item = Sge>) {
        let mut len = 0;
        for (words, piece) in self.pieces.iter().zip(pieces) {
            sync::store(&words[0], piece.addr);
            sync::store(&words[1], u64::from(piece.length) << 32 | u64::from(piece.lkey));
            len += 1;
        }
        for (word, operand) in self.operands.iter().zip(request.operands) {
            sync::store(word, operand);
        }
        sync::store_u32(&self.len, len);
        sync::store_u32(&self.domain, request.whose.domain);
        sync::store_u32(&self.target, request.whose.target);
        sync::store_u32(&self.needs, request.needs.bits());
        sync::store_u32(&self.code, request.code as u32);
    }

    /// Reads what is asked, and of which pieces; `None` if nobody can have asked that.
    pub fn read(&self) -> Option<(Request, impl Iterator<Item = Sge> + Clone)> {
        let code = match sync::load_u32(&self.code) {
            1 => Code::Write,
            2 => Code::WriteLate,
            3 => Code::Read,
            4 => Code::CompareSwap,
            5 => Code::FetchAdd,
            6 => Code::Store,
            _ => return None,
        };
        let operands = [sync::load(&self.operands[0]), sync::load(&self.operands[1])];
        let needs = Access::from_bits_retain(sync::load_u32(&self.needs));
        let (domain, target) = (sync::load_u32(&self.domain), sync::load_u32(&self.target));
        let request = Request { code, whose: Whose { domain, target }, needs, operands };
        let mut list = [Sge::default(); MAX_SGE];
        for (sge, words) in list.iter_mut().zip(&self.pieces) {
            let word = sync::load(&words[1]);
            let (length, lkey) = ((word >> 32) as u32, word as u32);
            *sge = Sge { addr: sync::load(&words[0]), length, lkey };
        }
        let len = sync::load_u32(&self.len) as usize;
        Some((request, list.into_iter().take(len)))
    }

    /// Writes down how it was answered: what an atomic found, too. It is the caller's.
    pub fn answer(&self, outcome: Outcome, held: u64) {
        sync::store(&self.operands[0], held);
        sync::store_u32(&self.outcome, outcome as u32);
    }

    /// How it was answered. It is the caller's.
    pub fn answered(&self) -> (Outcome, u64) {
        let outcome = match sync::load_u32(&self.outcome) {
            1 => Outcome::Done,
            2 => Outcome::Refused,
            _ => Outcome::Later,
        };
        (outcome, sync::load(&self.operands[0]))
    }

    /// Leaves it as its asker, in whatever state of that round it is.
    pub fn give_up(&self, round: Seen) {
        sync::raise_from(&self.word, |word| {
            let seen = Seen(word);
            let next = match seen.state() {
                _ if !seen.is_same_round(round) => return None,
                Some(State::Filling | State::Asked | State::Done) => None,
                Some(State::Serving) => Some(State::Orphaned),
                _ => return None,
            };
            Some(seen.to(next).0)
        });
    }

    /// Leaves it in the place of a process that died.
    pub fn sweep(&self, dead: u16) {
        let seen = self.seen();
        if seen.asker() == dead {
            self.give_up(seen);
        }
        self.free_orphan(dead);
    }

    /// Frees it if it is orphaned, and this process, which does not serve, was asked.
    pub fn free_orphan(&self, asked: u16) {
        let seen = self.seen();
        if seen.state() == Some(State::Orphaned) && seen.asked() == asked {
            self.change(seen, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Mapping;

    fn with_stage(test: impl FnOnce(&Stage)) {
        let memory = Mapping::new(size_of::<Stage>()).unwrap();
        test(memory.at(0).unwrap());
    }

    fn served(stage: &Stage, seen: Seen) -> Seen {
        let asked = stage.change(seen, Some(State::Asked)).unwrap();
        stage.change(asked, Some(State::Serving)).unwrap()
    }

    #[test]
    fn a_stage_is_one_askers_at_a_time() {
        with_stage(|stage| {
            let free = stage.seen();
            let seen = stage.claim(3, 4).unwrap();
            assert_eq!((seen.asker(), seen.asked()), (3, 4));
            assert!(stage.claim(5, 4).is_none());
            assert!(stage.claim_from(free, 5, 4).is_none(), "it saw it free, and was too late");
            let serving = served(stage, seen);
            assert!(stage.change(seen, None).is_none(), "the asker must not free it");
            let done = stage.change(serving, Some(State::Done)).unwrap();
            stage.give_up(done);
            assert!(stage.claim(5, 4).is_some());
        });
    }

    #[test]
    fn a_stage_that_is_being_served_is_freed_by_who_serves() {
        with_stage(|stage| {
            let serving = served(stage, stage.claim(3, 4).unwrap());
            stage.give_up(serving);
            assert!(stage.change(serving, Some(State::Done)).is_none());
            assert!(stage.claim(5, 4).is_none());
            stage.free_orphan(4);
            assert!(stage.claim(5, 4).is_some());
        });
    }

    #[test]
    fn what_a_dead_process_has_to_do_with_is_swept() {
        with_stage(|stage| {
            for state in [State::Filling, State::Asked, State::Done] {
                let seen = stage.claim(3, 4).unwrap();
                stage.change(seen, Some(state)).unwrap();
                stage.sweep(4);
                assert!(stage.claim(5, 6).is_none(), "its asker lives, and gives up itself");
                stage.sweep(3);
            }
            let serving = served(stage, stage.claim(3, 4).unwrap());
            stage.sweep(3);
            assert_eq!(stage.seen().state(), Some(State::Orphaned));
            stage.sweep(4);
            assert!(stage.seen().state().is_none());
            let next = stage.claim(3, 4).unwrap();
            stage.give_up(serving);
            assert_eq!(stage.seen(), next, "another round");
        });
    }

    #[test]
    fn x04_any_word_and_any_request_is_one_or_none() {
        with_stage(|stage| {
            for number in [0, 6, 255] {
                sync::store(&stage.word, u64::MAX << 8 | number);
                assert!(stage.claim(1, 2).is_some());
            }
            for code in [0, 7, u32::MAX] {
                sync::store_u32(&stage.code, code);
                assert!(stage.read().is_none());
            }
            sync::store_u32(&stage.code, 1);
            sync::store_u32(&stage.len, u32::MAX);
            assert_eq!(stage.read().unwrap().1.count(), MAX_SGE);
        });
    }

    #[test]
    fn what_is_asked_is_read_as_it_was_written() {
        with_stage(|stage| {
            let whose = Whose { domain: 5, target: 6 };
            let needs = Access::REMOTE_WRITE;
            let sges = [1, 2].map(|n| Sge { addr: 64 * n, length: n as u32, lkey: 7 });
            let asked = Request { code: Code::WriteLate, whose, needs, operands: [3, 4] };
            stage.write(&asked, sges.into_iter());
            let (read, of) = stage.read().unwrap();
            assert_eq!((read.code, read.operands), (asked.code, asked.operands));
            assert_eq!((read.whose, read.needs), (whose, needs));
            assert!(of.eq(sges));
        });
    }
}
