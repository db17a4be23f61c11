//! Requests, as they are read from a ring.

use cq_verbs::wr::{SendFlags, SendOp, Sge};

use super::SGE_WORDS;
use crate::memory::sge::MAX_SGE;
use crate::sync::{self, AtomicU64};

/// A send request. Its payload stays in the ring.
#[derive(Debug)]
pub struct SendRequest {
    pub wr_id: u64,
    pub op: SendOp,
    pub flags: SendFlags,
    pub payload: Payload,
}

/// A send request of inline bytes or one SGE.
#[derive(Debug)]
pub struct OneRequest {
    pub wr_id: u64,
    pub op: SendOp,
    pub flags: SendFlags,
    pub data: OneSge,
}

/// Its bytes.
#[derive(Clone, Copy, Debug)]
pub enum OneSge {
    Sge(Sge),
    /// Inline bytes in these words, and their number.
    Inline(&'static [AtomicU64], usize),
}

/// The bytes of a request.
#[derive(Clone, Copy, Debug)]
pub enum Payload {
    Sges(SgeList),
    /// Inline bytes in these words, and their number.
    Inline(&'static [AtomicU64], usize),
}

impl Payload {
    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Sges(sges) => sges.len(),
            Self::Inline(_, len) => *len as u64,
        }
    }

    /// The SGEs; none if the bytes are inline.
    pub fn sges(&self) -> impl Iterator<Item = Sge> {
        let list = if let Self::Sges(sges) = self { *sges } else { SgeList::new(&[], 0) };
        list.iter()
    }
}

/// A receive request.
#[derive(Debug)]
pub struct RecvRequest {
    pub wr_id: u64,
    pub sges: SgeList,
}

/// The SGEs of a request, in the ring. They do not change until it has completed, unless another process corrupts them.
#[derive(Clone, Copy, Debug)]
pub struct SgeList {
    words: &'static [AtomicU64],
    count: usize,
}

impl SgeList {
    /// The first `count` of these words, or all that there are.
    #[inline]
    pub fn new(words: &'static [AtomicU64], count: usize) -> Self {
        Self { words, count: count.min(MAX_SGE) }
    }

    /// The SGEs.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Sge> + use<> {
        self.words.chunks_exact(SGE_WORDS).take(self.count).map(read_sge)
    }

    /// How many bytes they have.
    pub fn len(&self) -> u64 {
        self.iter().map(|sge| u64::from(sge.length)).sum()
    }
}

#[inline]
pub fn read_sge(words: &[AtomicU64]) -> Sge {
    let word = sync::load(&words[1]);
    Sge { addr: sync::load(&words[0]), length: (word >> 32) as u32, lkey: word as u32 }
}
