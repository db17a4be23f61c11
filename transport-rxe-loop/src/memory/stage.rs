//! A stage: a staging buffer in the fabric, with a request, for copies that the system does not carry out. The
//! [word](crate::protocol::stage) of a stage has the state of its request, and says which process may write to it.
//!
//! Each attachment has [a few small stages](OWN) of its own, for small copies and atomics: a process that is
//! suspended during a request, on either side, blocks no stage of a third one. The [large ones](LARGE) are shared by
//! all processes, and are claimed for one part of a message at a time.

use crate::protocol::lock::AttachmentId;
use crate::protocol::number::QpNumber;
use std::fmt;

use cq_verbs::setup::Access;
use cq_verbs::wr::Sge;

use crate::memory::region::KeyUser;
use crate::memory::sge::MAX_SGE;
use crate::protocol::stage::Word;
use crate::shm::plan::Plan;
use crate::shm::table::shared;
use crate::sync::{self, AtomicU32, AtomicU64};

/// The small stages of each attachment.
pub const OWN: usize = 4;
/// The bytes of a small stage.
pub const SMALL_BYTES: usize = 4 << 10;
/// The large stages of a fabric.
pub const LARGE: usize = 8;
/// The bytes of a large stage.
pub const LARGE_BYTES: usize = 64 << 10;

const SMALL_WORDS: usize = SMALL_BYTES / size_of::<AtomicU64>();
const LARGE_WORDS: usize = LARGE_BYTES / size_of::<AtomicU64>();

/// A stage without its data.
#[repr(C, align(128))]
pub struct Head {
    pub word: Word,
    /// Counts the answers; a futex that the client waits on.
    pub answers: AtomicU32,
    outcome: AtomicU32,
    code: AtomicU32,
    domain: AtomicU32,
    target: AtomicU32,
    needs: AtomicU32,
    len: AtomicU32,
    operands: [AtomicU64; 2],
    sges: [[AtomicU64; 2]; MAX_SGE],
}

shared!(Head);

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head").field("word", &self.word).finish_non_exhaustive()
    }
}

/// The stages of a fabric.
#[derive(Debug)]
pub struct Stages<'m> {
    /// The small ones by attachment, then the large ones.
    pub heads: &'m [Head],
    data: &'m [AtomicU64],
    processes: usize,
}

/// One stage.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    pub head: &'static Head,
    /// The staging buffer.
    pub data: &'static [AtomicU64],
    /// Its index.
    pub index: usize,
}

impl<'m> Stages<'m> {
    /// Places the stages of so many attachments; `None` if the memory is too small.
    pub fn place(plan: &mut Plan<'m>, processes: usize) -> Option<Self> {
        [OWN, SMALL_BYTES, LARGE, LARGE_BYTES].into_iter().for_each(|number| plan.note(number));
        let small = processes * OWN;
        let heads = plan.table(small + LARGE);
        let data = plan.table(small * SMALL_WORDS + LARGE * LARGE_WORDS);
        Some(Self { heads: heads?, data: data?, processes })
    }
}

impl Stages<'static> {
    /// The stage at an index, modulo their number.
    pub fn at(&self, index: usize) -> Stage {
        let index = index % self.heads.len();
        let small = self.processes * OWN;
        let (at, words) = match index.checked_sub(small) {
            None => (index * SMALL_WORDS, SMALL_WORDS),
            Some(nth) => (small * SMALL_WORDS + nth * LARGE_WORDS, LARGE_WORDS),
        };
        Stage { head: &self.heads[index], data: &self.data[at..at + words], index }
    }

    /// The small stages of an attachment; none if the index is out of range.
    pub fn of(&self, attachment: AttachmentId) -> impl DoubleEndedIterator<Item = Stage> {
        let at = attachment.index();
        let count = if at < self.processes { OWN } else { 0 };
        (at * OWN..at * OWN + count).map(|index| self.at(index))
    }

    /// The large stages.
    pub fn large(&self) -> impl Iterator<Item = Stage> {
        (self.processes * OWN..self.heads.len()).map(|index| self.at(index))
    }

    /// All stages.
    pub fn all(&self) -> impl Iterator<Item = Stage> {
        (0..self.heads.len()).map(|index| self.at(index))
    }
}

impl Stage {
    /// The bytes of its data.
    pub const fn bytes(&self) -> usize {
        size_of_val(self.data)
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Code {
    /// Copy from the stage to the SGEs.
    Write = 1,
    /// As `Write`, with the last eight bytes last.
    WriteLate = 2,
    /// Copy from the SGEs to the stage.
    Read = 3,
    /// COMP_SWAP on the word of the first SGE.
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
    pub whose: KeyUser,
    pub needs: Access,
    pub operands: [u64; 2],
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Outcome {
    /// It was carried out.
    Done = 1,
    /// A key, a range or a right is wrong.
    Refused = 2,
    /// It could not be carried out now.
    Later = 3,
}

impl Head {
    /// Writes the request. The stage must be the caller's.
    pub fn write(&self, request: &Request, sges: impl Iterator<Item = Sge>) {
        let mut len = 0;
        for (words, sge) in self.sges.iter().zip(sges) {
            sync::store(&words[0], sge.addr);
            sync::store(&words[1], u64::from(sge.length) << 32 | u64::from(sge.lkey));
            len += 1;
        }
        for (word, operand) in self.operands.iter().zip(request.operands) {
            sync::store(word, operand);
        }
        sync::store(&self.len, len);
        sync::store(&self.domain, request.whose.domain);
        sync::store(&self.target, request.whose.target.get());
        sync::store(&self.needs, request.needs.bits());
        sync::store(&self.code, request.code as u32);
    }

    /// Reads the request and its SGEs; `None` if the code is invalid.
    pub fn read(&self) -> Option<(Request, impl Iterator<Item = Sge> + Clone)> {
        let code = match sync::load(&self.code) {
            1 => Code::Write,
            2 => Code::WriteLate,
            3 => Code::Read,
            4 => Code::CompareSwap,
            5 => Code::FetchAdd,
            6 => Code::Store,
            _ => return None,
        };
        let operands = [sync::load(&self.operands[0]), sync::load(&self.operands[1])];
        let needs = Access::from_bits_retain(sync::load(&self.needs));
        let (domain, target) = (sync::load(&self.domain), QpNumber::new(sync::load(&self.target)));
        let request = Request { code, whose: KeyUser { domain, target }, needs, operands };
        let mut list = [Sge::default(); MAX_SGE];
        for (sge, words) in list.iter_mut().zip(&self.sges) {
            let word = sync::load(&words[1]);
            let (length, lkey) = ((word >> 32) as u32, word as u32);
            *sge = Sge { addr: sync::load(&words[0]), length, lkey };
        }
        let len = sync::load(&self.len) as usize;
        Some((request, list.into_iter().take(len)))
    }

    /// Writes the outcome, and the previous value for an atomic. The stage must be the caller's.
    pub fn answer(&self, outcome: Outcome, held: u64) {
        sync::store(&self.operands[0], held);
        sync::store(&self.outcome, outcome as u32);
    }

    /// Reads the outcome. The stage must be the caller's.
    pub fn answered(&self) -> (Outcome, u64) {
        let outcome = match sync::load(&self.outcome) {
            1 => Outcome::Done,
            2 => Outcome::Refused,
            _ => Outcome::Later,
        };
        (outcome, sync::load(&self.operands[0]))
    }
}

#[cfg(test)]
mod tests;
