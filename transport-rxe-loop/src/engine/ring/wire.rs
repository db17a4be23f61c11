//! The encoding of an operation in the queue: a code, and words whose meaning depends on it.
//!
//! | operation | word 2 | word 3, low half | word 3, high half | operands |
//! |---|---|---|---|---|
//! | SEND | | immediate data, or the key to invalidate | | |
//! | SEND of a datagram | queue key, and the number of the receiver | immediate data | rest of the [UD address](UdAddress) | its [last word](UdAddress::to_words), if it has one |
//! | WRITE | remote address | remote key | immediate data | |
//! | READ, atomic write | remote address | remote key | | |
//! | COMP_SWAP | remote address | remote key | | compare, swap |
//! | FETCH_ADD | remote address | remote key | | add |
//! | FLUSH | remote address | remote key | length | placement and selectivity |
//! | BIND_MW | address | local key | rights | length, window and new key |
//! | LOCAL_INV | | the key to invalidate | | |
//!
//! Another process may have corrupted the words: any words decode to an operation.

use cq_verbs::setup::Access;
use cq_verbs::wr::{Placement, RemoteAddr, Selectivity, SendOp, WindowBind};

use crate::engine::ud_address::UdAddress;

/// Words that an operation may have before its SGEs.
pub const OPERANDS: usize = 2;

const SEND: u8 = 0;
const SEND_IMM: u8 = 1;
const WRITE: u8 = 2;
const READ: u8 = 3;
const COMPARE_SWAP: u8 = 4;
const FETCH_ADD: u8 = 5;
const WRITE_IMM: u8 = 6;
const SEND_INVALIDATE: u8 = 7;
const ATOMIC_WRITE: u8 = 8;
const FLUSH: u8 = 9;
const BIND_WINDOW: u8 = 10;
const LOCAL_INVALIDATE: u8 = 11;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct WireOp {
    pub code: u8,
    pub addr: u64,
    pub low: u32,
    pub high: u32,
    pub operands: Option<[u64; OPERANDS]>,
}

impl WireOp {
    const fn new(code: u8, value: u32) -> Self {
        Self { code, addr: 0, low: value, high: 0, operands: None }
    }

    const fn at(code: u8, remote: RemoteAddr) -> Self {
        Self { code, addr: remote.addr, low: remote.rkey, high: 0, operands: None }
    }

    const fn with(mut self, operands: [u64; OPERANDS]) -> Self {
        self.operands = Some(operands);
        self
    }

    const fn with_high(mut self, high: u32) -> Self {
        self.high = high;
        self
    }

    /// A SEND to this UD address.
    pub fn along(mut self, way: &UdAddress) -> Self {
        let (to, how, more) = way.to_words();
        (self.addr, self.high) = (to, how);
        self.operands = more.map(|word| [word, 0]);
        self
    }

    /// `None` for an operation that the device does not support.
    #[inline]
    pub fn of(op: &SendOp) -> Option<Self> {
        Some(match *op {
            SendOp::Send { imm: None } => Self::new(SEND, 0),
            SendOp::Send { imm: Some(imm) } => Self::new(SEND_IMM, u32::from_ne_bytes(imm)),
            SendOp::SendInvalidate { rkey } => Self::new(SEND_INVALIDATE, rkey),
            SendOp::Write { remote, imm: None } => Self::at(WRITE, remote),
            SendOp::Write { remote, imm: Some(imm) } => {
                Self::at(WRITE_IMM, remote).with_high(u32::from_ne_bytes(imm))
            }
            SendOp::Read { remote } => Self::at(READ, remote),
            SendOp::CompareSwap { remote, compare, swap } => {
                Self::at(COMPARE_SWAP, remote).with([compare, swap])
            }
            SendOp::FetchAdd { remote, add } => Self::at(FETCH_ADD, remote).with([add, 0]),
            SendOp::AtomicWrite { remote } => Self::at(ATOMIC_WRITE, remote),
            SendOp::Flush { remote, length, placement, selectivity } => {
                let how = pair(placement.bits(), selectivity as u32);
                Self::at(FLUSH, remote).with_high(length).with([how, 0])
            }
            SendOp::BindWindow(bind) => {
                let on = RemoteAddr { addr: bind.addr, rkey: bind.lkey };
                let operands = [bind.length, pair(bind.window, bind.rkey)];
                Self::at(BIND_WINDOW, on).with_high(bind.access.bits()).with(operands)
            }
            SendOp::LocalInvalidate { rkey } => Self::new(LOCAL_INVALIDATE, rkey),
            _ => return None,
        })
    }
}

const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl From<WireOp> for SendOp {
    #[inline]
    fn from(op: WireOp) -> Self {
        let WireOp { addr, low, high, .. } = op;
        let remote = RemoteAddr { addr, rkey: low };
        let [first, second] = op.operands.unwrap_or_default();
        match op.code {
            SEND_IMM => Self::Send { imm: Some(low.to_ne_bytes()) },
            SEND_INVALIDATE => Self::SendInvalidate { rkey: low },
            WRITE => Self::Write { remote, imm: None },
            WRITE_IMM => Self::Write { remote, imm: Some(high.to_ne_bytes()) },
            READ => Self::Read { remote },
            COMPARE_SWAP => Self::CompareSwap { remote, compare: first, swap: second },
            FETCH_ADD => Self::FetchAdd { remote, add: first },
            ATOMIC_WRITE => Self::AtomicWrite { remote },
            FLUSH => {
                let (placement, selectivity) = halves(first);
                let placement = Placement::from_bits_retain(placement);
                let whole = selectivity == Selectivity::Region as u32;
                let selectivity = if whole { Selectivity::Region } else { Selectivity::Range };
                Self::Flush { remote, length: high, placement, selectivity }
            }
            BIND_WINDOW => {
                let (window, rkey) = halves(second);
                let access = Access::from_bits_retain(high);
                let bind = WindowBind { window, rkey, lkey: low, addr, length: first, access };
                Self::BindWindow(bind)
            }
            LOCAL_INVALIDATE => Self::LocalInvalidate { rkey: low },
            _ => Self::Send { imm: None },
        }
    }
}

#[cfg(test)]
mod tests;
