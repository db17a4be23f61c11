//! What there is: the tables of the device, as plain data. What happens to them is in the other files,
//! one rule at a time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cq_core::async_event::AsyncEvent;
use cq_core::setup::{QpType, SrqInit};
use cq_core::transport::{CqKey, Notify};
use cq_core::wc::Wc;
use cq_core::wr::{SendOp, Sge};

use super::failures::Fault;
use crate::device::{Access, Limits, QpAttr, QpCaps, QpState};

/// What this device allows at most.
pub const LIMITS: Limits = Limits {
    max_cqe: 1 << 16,
    max_qp_wr: 1 << 14,
    max_sge: 16,
    max_inline: 256,
    max_rd_atomic: 16,
    max_srq_wr: 1 << 14,
    max_srq_sge: 16,
};

/// Names an object. No number is given twice, whatever it names: keys of memory and numbers of queue
/// pairs are among them.
pub type Id = u32;

/// The whole device.
#[derive(Debug, Default)]
pub struct World {
    /// How long it has been there; see [`time`](super::time).
    pub now: Duration,
    pub openings: BTreeMap<Id, Opening>,
    pub pds: BTreeMap<Id, Pd>,
    pub regions: BTreeMap<Id, Region>,
    pub channels: BTreeMap<Id, Channel>,
    pub cqs: BTreeMap<Id, Cq>,
    pub qps: BTreeMap<Id, Qp>,
    pub srqs: BTreeMap<Id, Srq>,
    pub windows: BTreeMap<Id, Window>,
    pub handles: BTreeMap<Id, Handle>,
    /// How many names were given.
    names: Id,
    /// How much memory was given addresses.
    memory: u64,
}

/// The device as one caller opened it: what it reported that nobody read yet.
#[derive(Debug, Default)]
pub struct Opening {
    pub reports: VecDeque<AsyncEvent>,
}

/// A protection domain.
#[derive(Debug)]
pub struct Pd {
    pub opening: Id,
    /// Whether its handle is alive; without one it stays while something uses it.
    pub held: bool,
}

/// A memory region; its name is its local key.
#[derive(Debug)]
pub struct Region {
    pub pd: Id,
    pub rkey: u32,
    pub addr: u64,
    pub bytes: Vec<u8>,
    pub access: Access,
}

/// A completion channel.
#[derive(Debug)]
pub struct Channel {
    pub opening: Id,
    /// Events that nobody took yet (N9: any number of them).
    pub events: VecDeque<CqKey>,
    pub held: bool,
}

/// A completion queue.
#[derive(Debug)]
pub struct Cq {
    pub opening: Id,
    pub channel: Option<Id>,
    /// O1: how many entries it holds.
    pub capacity: u32,
    pub entries: VecDeque<Entry>,
    pub armed: Option<Notify>,
    pub moderation: Moderation,
    /// O3: how many completions were dropped; the queue has overrun if there are any.
    pub dropped: u32,
    /// O8: dropping them is no failure.
    pub ignores_overrun: bool,
    /// O4: whether queue pairs have yet to go to ERR for a completion that was dropped.
    pub breaks: bool,
    pub held: bool,
}

/// N12: how events are held back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    /// How many completions an event stands for; 0 and 1 hold none back.
    pub count: u16,
    /// How long it is held back at most.
    pub period: Duration,
    /// How many completions came since the arm, of those that it was armed for.
    pub counted: u16,
    /// When the event is raised that is held back, if nothing hastens it.
    pub due: Option<Duration>,
}

/// A completion in its queue.
#[derive(Debug)]
pub struct Entry {
    pub wc: Wc,
    /// Q5: the send queue that gets slots back when this is polled, and up to which one.
    pub retires: Option<(Id, u64)>,
}

/// A queue pair.
#[derive(Debug)]
pub struct Qp {
    pub opening: Id,
    pub kind: QpType,
    pub pd: Id,
    /// Q9: where its receives are taken from, if it has none of its own.
    pub srq: Option<Id>,
    pub send_cq: Id,
    pub recv_cq: Id,
    pub caps: QpCaps,
    pub sq_sig_all: bool,
    pub state: QpState,
    /// Every attribute that was given since RESET.
    pub attr: QpAttr,
    /// Sends that are not carried out, oldest first.
    pub sends: VecDeque<Request>,
    /// Receives that no message took, oldest first.
    pub receives: VecDeque<Receive>,
    /// Q5: how many sends were ever posted, and how many of their slots came back.
    pub sends_posted: u64,
    pub sends_retired: u64,
    /// What the oldest send waits for, if it was begun and can't go on.
    pub wait: Option<Wait>,
    /// Whether to report when the queue pair, in SQD, has drained.
    pub report_drained: bool,
}

/// A wait under way.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// What it ends as.
    pub fault: Fault,
    /// When it ends; never where there is no timer.
    pub timer: Option<Timer>,
}

/// When a wait ends.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// When the request is tried again.
    pub next: Duration,
    /// How long after that again.
    pub period: Duration,
    /// After how many periods it has failed.
    pub rounds: u32,
}

/// A send.
#[derive(Clone, Debug)]
pub struct Request {
    pub wr_id: u64,
    /// Its place in the send queue, counted from the first ever posted.
    pub position: u64,
    pub op: SendOp,
    /// Where it goes, if it is a datagram.
    pub target: Option<Target>,
    pub signaled: bool,
    pub solicited: bool,
    pub data: Bytes,
}

/// The bytes of a send.
#[derive(Clone, Debug)]
pub enum Bytes {
    Pieces(Vec<Sge>),
    /// Q6: copied while posting.
    Inline(Vec<u8>),
}

/// Where a datagram goes, as it was when it was posted.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub qp_num: u32,
    pub qkey: u32,
    pub global: bool,
}

/// A receive.
#[derive(Clone, Debug)]
pub struct Receive {
    pub wr_id: u64,
    pub pieces: Vec<Sge>,
}

/// A shared receive queue (Q9).
#[derive(Debug)]
pub struct Srq {
    pub opening: Id,
    pub pd: Id,
    pub caps: SrqInit,
    /// Receives that no message took, oldest first.
    pub receives: VecDeque<Receive>,
    /// An event is raised once fewer are left; 0 raises none.
    pub limit: u32,
    pub held: bool,
}

/// A memory window.
#[derive(Debug)]
pub struct Window {
    pub pd: Id,
    /// The key that it has, or had last.
    pub rkey: u32,
    pub bound: Option<Bound>,
}

/// What a window opens on.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub qp: Id,
    pub region: Id,
    pub addr: u64,
    pub len: u64,
    pub access: Access,
}

/// A handle of an address: there is one port that it can be of.
#[derive(Debug)]
pub struct Handle {
    pub pd: Id,
    /// Whether datagrams carry their global route.
    pub global: bool,
}

/// Space between regions that belongs to none, so that who misses one hits nothing.
const GAP: u64 = 1 << 20;
/// Regions start at pages, as memory from a system does.
const PAGE: u64 = 4096;

impl World {
    /// A name that nothing ever had. Numbers 0 and 1 are those of special queue pairs.
    pub fn fresh(&mut self) -> Id {
        self.names += 1;
        self.names + 0xff
    }

    /// Addresses for `len` bytes that no other region ever had.
    pub fn place(&mut self, len: usize) -> u64 {
        self.memory += GAP;
        let addr = (1 << 40) + self.memory;
        self.memory += (len as u64).next_multiple_of(PAGE);
        addr
    }

    /// Q11: whether anything was made of this domain and still is.
    pub fn uses_pd(&self, pd: Id) -> bool {
        self.regions.values().any(|region| region.pd == pd)
            || self.qps.values().any(|qp| qp.pd == pd)
            || self.srqs.values().any(|srq| srq.pd == pd)
            || self.windows.values().any(|window| window.pd == pd)
            || self.handles.values().any(|handle| handle.pd == pd)
    }

    /// Q11: whether a queue pair takes from this shared receive queue.
    pub fn uses_srq(&self, srq: Id) -> bool {
        self.qps.values().any(|qp| qp.srq == Some(srq))
    }

    /// Q11, N8: whether a completion queue refers to this channel.
    pub fn uses_channel(&self, channel: Id) -> bool {
        self.cqs.values().any(|cq| cq.channel == Some(channel))
    }

    /// Q11, O6: whether a queue pair refers to this completion queue, overrun or not.
    pub fn uses_cq(&self, cq: Id) -> bool {
        self.qps.values().any(|qp| qp.send_cq == cq || qp.recv_cq == cq)
    }

    /// Removes what has neither a handle nor a user: what uses something else before that.
    pub fn sweep(&mut self) {
        let srqs: Vec<Id> = self.srqs.keys().copied().collect();
        for srq in srqs {
            if !self.srqs[&srq].held && !self.uses_srq(srq) {
                self.forget_srq(srq);
            }
        }
        let dead: Vec<Id> = self.cqs.keys().copied().collect();
        for cq in dead {
            if !self.cqs[&cq].held && !self.uses_cq(cq) {
                self.forget_cq(cq);
            }
        }
        let channels: Vec<Id> = self.channels.keys().copied().collect();
        for channel in channels {
            if !self.channels[&channel].held && !self.uses_channel(channel) {
                self.channels.remove(&channel);
            }
        }
        let pds: Vec<Id> = self.pds.keys().copied().collect();
        for pd in pds {
            if !self.pds[&pd].held && !self.uses_pd(pd) {
                self.pds.remove(&pd);
            }
        }
    }
}
