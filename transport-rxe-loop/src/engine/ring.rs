//! Send and receive queues: rings of requests in the device's memory, and the layout of a request.
//!
//! | word | send request | receive request |
//! |---|---|---|
//! | 0 | wr_id | wr_id |
//! | 1 | operation, flags, number of SGEs or inline bytes | number of SGEs |
//! | 2, 3 | operands of the [operation](wire) | first SGE … |
//! | 4 … | SGEs of two words each, or inline bytes | |
//!
//! A request has a multiple of four words. An operation that needs more than two words has two operands in words 4 and 5,
//! before its SGEs. They make a request of one SGE, or of three, no larger.
//!
//! A request is written by the thread that posts, before its position is published. A send request is read by the owner
//! of the send queue; a receive, by the peer that is connected to the queue pair.

mod request;
mod wire;

use std::fmt;

use cq_verbs::post::{PostError, WrError};
use cq_verbs::wr::{Data, RecvWr, SendFlags, SendOp, SendWr, Sge};

use self::request::read_sge;
pub use self::request::{OneRequest, OneSge, Payload, RecvRequest, SendRequest, SgeList};
use self::wire::OPERANDS;
pub use self::wire::WireOp;
use super::entry::RingWords;
use super::ud_address::UdAddress;
use crate::protocol::number::Position;
use crate::protocol::send_slots::SendSlots;
use crate::shm::arena::InArena;
use crate::shm::{Shm, mapping};
use crate::sync::{self, AtomicU64};

/// Inline bytes of a request at most.
pub const MAX_INLINE: u32 = 256;
/// Bytes of a message at most.
pub const MAX_MSG_SIZE: u64 = 1 << 31;
/// Requests of a queue at most.
pub const MAX_QP_WR: u32 = 1 << 14;

const SEND_HEADER: usize = QUAD;
const RECV_HEADER: usize = 2;
/// Words of an SGE.
const SGE_WORDS: usize = 2;
/// A request has a multiple of so many words: the header of a send, or a receive of one SGE, is found by one check.
const QUAD: usize = 4;
type Quad = [AtomicU64; QUAD];

const FLAGS_SHIFT: u32 = 8;
const FLAGS_MASK: u64 = 0xff;
const INLINE: u64 = 1 << 16;
/// Whether there are operands.
const HAS_OPERANDS: u64 = 1 << 17;
const COUNT_SHIFT: u32 = 32;

/// The size of a ring.
#[derive(Clone, Copy, Debug)]
pub struct RingLayout {
    log2: u32,
    stride: usize,
}

impl RingLayout {
    /// For send requests, each in cache lines of its own.
    pub fn of_sends(requests: u32, sges: u32, inline: u32) -> Self {
        let list = sges as usize * SGE_WORDS;
        let body = OPERANDS + list.max(inline.div_ceil(8) as usize);
        Self { log2: log2(requests), stride: (SEND_HEADER + body).next_multiple_of(8) }
    }

    /// For receive requests.
    pub fn of_recvs(requests: u32, sges: u32) -> Self {
        let words = RECV_HEADER + sges as usize * SGE_WORDS;
        Self { log2: log2(requests), stride: words.next_multiple_of(QUAD) }
    }

    /// Bytes of memory that its requests take.
    pub const fn bytes(&self) -> usize {
        (self.stride << self.log2) * size_of::<u64>()
    }

    /// Bytes of memory that a send queue takes: [`SendSlots`] lie behind its requests.
    pub const fn bytes_of_sends(&self) -> usize {
        // Receives follow, in cache lines of their own.
        (self.bytes() + (size_of::<u64>() << self.log2)).next_multiple_of(64)
    }

    /// The ring of this shape at `offset`; `None` if it does not fit into the arena.
    #[inline]
    pub fn ring(&self, shm: &'static Shm, offset: u32) -> Option<Ring> {
        let (requests, stride) = (1usize.checked_shl(self.log2)?, self.stride / QUAD);
        let quads = shm.in_arena(offset as usize, requests.checked_mul(stride)?)?;
        let ring = Ring { quads, mask: requests as u64 - 1, stride };
        (stride > 0 && self.stride.is_multiple_of(QUAD)).then_some(ring)
    }

    /// The slots of the send queue of this shape at `offset`; `None` if they do not fit into the arena.
    pub fn send_slots(&self, shm: &'static Shm, offset: u32) -> Option<SendSlots<'static>> {
        let slots = 1usize.checked_shl(self.log2)?;
        let requests = slots.checked_mul(self.stride)?.checked_mul(size_of::<u64>())?;
        let at = requests.checked_add(offset as usize)?;
        Some(SendSlots(shm.in_arena(at, slots)?))
    }

    /// The shape that the table describes.
    #[inline]
    fn described(words: &RingWords) -> Self {
        Self { log2: sync::load(&words.log2), stride: sync::load(&words.stride) as usize }
    }

    /// Records in the table that a ring of this shape lies at `offset`.
    pub fn record(&self, words: &RingWords, offset: u32) {
        sync::store(&words.offset, offset);
        sync::store(&words.log2, self.log2);
        sync::store(&words.stride, self.stride as u32);
    }
}

fn log2(requests: u32) -> u32 {
    requests.max(1).next_power_of_two().trailing_zeros()
}

/// A ring of requests.
#[derive(Clone, Copy)]
pub struct Ring {
    quads: &'static [Quad],
    mask: u64,
    /// Quads of a request.
    stride: usize,
}

impl Ring {
    /// The ring that the table describes; `None` if the description is invalid.
    #[inline]
    pub fn of(shm: &'static Shm, words: &RingWords) -> Option<Self> {
        RingLayout::described(words).ring(shm, sync::load(&words.offset))
    }

    /// The slots of the send queue that the table describes; `None` if the description is invalid.
    pub fn send_slots(shm: &'static Shm, words: &RingWords) -> Option<SendSlots<'static>> {
        RingLayout::described(words).send_slots(shm, sync::load(&words.offset))
    }

    /// Whether there are requests from position `next` up to `end`. False for more than the ring holds: another
    /// process corrupted the positions.
    #[inline]
    pub const fn has_any(&self, next: Position, end: Position) -> bool {
        next.get() != end.get() && end.since(next) <= self.mask + 1
    }

    /// Where the request at a position begins.
    #[inline(always)]
    const fn begin(&self, position: Position) -> usize {
        (position.get() & self.mask) as usize * self.stride
    }

    /// The words of the request at a position.
    #[inline]
    fn at(&self, position: Position) -> &'static [AtomicU64] {
        let first = self.begin(position);
        self.quads[first..first + self.stride].as_flattened()
    }

    /// Prefetches the request at a position, which another core wrote.
    #[inline]
    pub fn prefetch(&self, position: Position) {
        self.quads.get(self.begin(position)).into_iter().for_each(mapping::prefetch_read);
    }

    /// Writes a send request with these SGEs or inline bytes, which fit.
    #[inline]
    pub fn write_send(
        &self,
        position: Position,
        wr: &SendWr<'_>,
        (op, data): (WireOp, Data<'_>),
        signal_all: bool,
    ) {
        let first = self.begin(position);
        let (header, body) = (&self.quads[first], &self.quads[first + 1..first + self.stride]);
        let body = body.as_flattened();
        let (has_operands, body) = match op.operands {
            Some(operands) => (HAS_OPERANDS, write_operands(body, operands)),
            None => (0, body),
        };
        let mut flags = wr.flags;
        flags.set(SendFlags::SIGNALED, signal_all || flags.contains(SendFlags::SIGNALED));
        let (inline, count) = match data {
            Data::Sges(sges) => (0, write_sges(body, sges)),
            Data::Inline(bytes) => (INLINE, write_bytes(body, bytes)),
        };
        // Unknown flags would overwrite the fields behind them.
        let flags = (u64::from(flags.bits()) & FLAGS_MASK) << FLAGS_SHIFT;
        sync::store(&header[0], wr.wr_id);
        let how = u64::from(op.code) | flags | inline | has_operands;
        sync::store(&header[1], how | (count as u64) << COUNT_SHIFT);
        sync::store(&header[2], op.addr);
        sync::store(&header[3], u64::from(op.high) << 32 | u64::from(op.low));
    }

    /// Reads the send request at a position.
    #[inline]
    pub fn read_send(&self, position: Position) -> SendRequest {
        let (header, body) = self.at(position).split_at(SEND_HEADER);
        let word = sync::load(&header[1]);
        let count = (word >> COUNT_SHIFT) as usize;
        let (operands, body) =
            if word & HAS_OPERANDS != 0 { read_operands(body) } else { (None, body) };
        let payload = if word & INLINE != 0 {
            Payload::Inline(body, count)
        } else {
            Payload::Sges(SgeList::new(body, count))
        };
        let (addr, both) = (sync::load(&header[2]), sync::load(&header[3]));
        let (low, high) = (both as u32, (both >> 32) as u32);
        let op = WireOp { code: word as u8, addr, low, high, operands };
        let flags = SendFlags::from_bits_retain((word >> FLAGS_SHIFT & FLAGS_MASK) as u32);
        SendRequest { wr_id: sync::load(&header[0]), op: op.into(), flags, payload }
    }

    /// Reads the send request at a position, if it has inline bytes or one SGE, and no operands.
    #[inline(always)]
    pub fn read_one(&self, position: Position) -> Option<OneRequest> {
        let first = self.begin(position);
        let header = self.quads.get(first)?;
        let word = sync::load(&header[1]);
        let count = (word >> COUNT_SHIFT) as usize;
        let data = match word & (INLINE | HAS_OPERANDS) {
            INLINE => OneSge::Inline(&self.at(position)[SEND_HEADER..], count),
            0 if count == 1 => OneSge::Sge(read_sge(self.quads.get(first + 1)?)),
            _ => return None,
        };
        let both = sync::load(&header[3]);
        let (addr, low, high) = (sync::load(&header[2]), both as u32, (both >> 32) as u32);
        let op = WireOp { code: word as u8, addr, low, high, operands: None }.into();
        let flags = SendFlags::from_bits_retain((word >> FLAGS_SHIFT & FLAGS_MASK) as u32);
        Some(OneRequest { wr_id: sync::load(&header[0]), op, flags, data })
    }

    /// Reads the UD address of the SEND at a position.
    pub fn read_ud_address(&self, position: Position) -> UdAddress {
        let (header, body) = self.at(position).split_at(SEND_HEADER);
        let has_more = sync::load(&header[1]) & HAS_OPERANDS != 0;
        let operands = if has_more { read_operands(body).0 } else { None };
        let (to, how) = (sync::load(&header[2]), (sync::load(&header[3]) >> 32) as u32);
        UdAddress::from_words(to, how, operands.map(|[more, _]| more))
    }

    /// Writes a receive request, whose SGEs fit.
    #[inline]
    pub fn write_recv(&self, position: Position, wr: &RecvWr<'_>) {
        let (header, body) = self.at(position).split_at(RECV_HEADER);
        sync::store(&header[0], wr.wr_id);
        sync::store(&header[1], write_sges(body, wr.sges) as u64);
    }

    /// Reads the receive request at a position, if it has one SGE.
    #[inline(always)]
    pub fn read_one_recv(&self, position: Position) -> Option<(u64, Sge)> {
        let request = self.quads.get(self.begin(position))?;
        let has_one = sync::load(&request[1]) == 1;
        has_one.then(|| (sync::load(&request[0]), read_sge(&request[RECV_HEADER..])))
    }

    /// Reads the receive request at a position.
    #[inline]
    pub fn read_recv(&self, position: Position) -> RecvRequest {
        let (header, body) = self.at(position).split_at(RECV_HEADER);
        let sges = SgeList::new(body, sync::load(&header[1]) as usize);
        RecvRequest { wr_id: sync::load(&header[0]), sges }
    }
}

/// The wr_id and the operation of the send request at a position of the ring that the table describes; `None` if the
/// description is invalid. For an observer, which needs no ring for that.
pub fn peek<'m>(
    memory: &impl InArena<'m>,
    words: &RingWords,
    position: Position,
) -> Option<(u64, SendOp)> {
    let RingLayout { log2, stride } = RingLayout::described(words);
    let mask = 1_u64.checked_shl(log2)? - 1;
    let first = (position.get() & mask).checked_mul((stride * size_of::<u64>()) as u64)?;
    let at = u64::from(sync::load(&words.offset)).checked_add(first)?;
    let header: &Quad = memory.in_arena(at.try_into().ok()?, 1)?.first()?;
    let op =
        WireOp { code: sync::load(&header[1]) as u8, addr: 0, low: 0, high: 0, operands: None };
    Some((sync::load(&header[0]), op.into()))
}

impl fmt::Debug for Ring {
    /// Without the requests: there may be thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("requests", &(self.mask + 1)).finish_non_exhaustive()
    }
}

/// Writes the operands of an operation; returns the words that are left for its SGEs.
#[inline]
fn write_operands(body: &[AtomicU64], operands: [u64; OPERANDS]) -> &[AtomicU64] {
    let (words, rest) = body.split_at(OPERANDS);
    words.iter().zip(operands).for_each(|(word, operand)| sync::store(word, operand));
    rest
}

fn read_operands(body: &[AtomicU64]) -> (Option<[u64; OPERANDS]>, &[AtomicU64]) {
    match body.split_at_checked(OPERANDS) {
        Some((words, rest)) => (Some([sync::load(&words[0]), sync::load(&words[1])]), rest),
        None => (None, body),
    }
}

#[inline]
fn write_sges(body: &[AtomicU64], sges: &[Sge]) -> usize {
    match sges {
        [sge] if body.len() >= SGE_WORDS => write_sge(body, sge),
        _ => {
            let words = body.chunks_exact(SGE_WORDS);
            words.zip(sges).for_each(|(words, sge)| write_sge(words, sge));
        }
    }
    sges.len()
}

#[inline]
fn write_sge(words: &[AtomicU64], sge: &Sge) {
    sync::store(&words[0], sge.addr);
    sync::store(&words[1], u64::from(sge.length) << 32 | u64::from(sge.lkey));
}

#[inline]
fn write_bytes(body: &[AtomicU64], bytes: &[u8]) -> usize {
    let mut left = bytes;
    for word in body {
        let Some((whole, rest)) = left.split_first_chunk() else {
            if !left.is_empty() {
                write_last_bytes(word, left);
            }
            break;
        };
        sync::store(word, u64::from_ne_bytes(*whole));
        left = rest;
    }
    bytes.len()
}

/// Writes fewer bytes than a word has.
fn write_last_bytes(word: &AtomicU64, bytes: &[u8]) {
    let mut padded = [0; size_of::<u64>()];
    padded[..bytes.len()].copy_from_slice(bytes);
    sync::store(word, u64::from_ne_bytes(padded));
}

/// Writes requests from position `first` on, up to the first that is refused (Q4); returns the position after the last.
#[inline]
pub fn put_all<W>(
    first: Position,
    list: &[W],
    mut put: impl FnMut(Position, &W) -> Result<(), WrError>,
) -> (Position, Result<(), PostError>) {
    let mut position = first;
    for (posted, wr) in list.iter().enumerate() {
        if let Err(why) = put(position, wr) {
            return (position, Err(PostError { posted, why }));
        }
        position = position.next();
    }
    (position, Ok(()))
}

#[cfg(test)]
mod tests;
