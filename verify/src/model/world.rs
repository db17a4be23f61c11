//! The tables of the device, as plain data. The other files change them, one rule at a time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cq_core::transport::{CqKey, Notify};
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::setup::{QpType, SrqInit};
use cq_verbs::wr::{SendOp, Sge};

use super::failures::Fault;
use crate::device::{Access, Limits, QpAttr, QpCaps, QpState};

/// The limits of this device.
pub const LIMITS: Limits = Limits {
    max_cqe: 1 << 16,
    max_qp_wr: 1 << 14,
    max_sge: 16,
    max_inline: 256,
    max_rd_atomic: 16,
    max_srq_wr: 1 << 14,
    max_srq_sge: 16,
};

/// The number of an object. No number is used twice, for any kind of object: memory keys and queue-pair numbers are among
/// them.
pub type Id = u32;

/// The whole device.
#[derive(Debug, Default)]
pub struct World {
    /// Its clock; see [`time`](super::time).
    pub now: Duration,
    pub openings: BTreeMap<Id, Opening>,
    pub regions: BTreeMap<Id, Region>,
    pub channels: BTreeMap<Id, Channel>,
    pub cqs: BTreeMap<Id, Cq>,
    pub qps: BTreeMap<Id, Qp>,
    pub srqs: BTreeMap<Id, Srq>,
    pub windows: BTreeMap<Id, Window>,
    pub handles: BTreeMap<Id, AddressHandle>,
    /// How many numbers were used.
    names: Id,
    /// How many addresses were used.
    memory: u64,
    /// How often somebody has paused.
    pub pauses: u64,
}

/// The unread asynchronous events of a context.
pub type Opening = VecDeque<AsyncEvent>;

/// A protection domain, of which there is nothing to know.
pub enum Pd {}

/// A memory region; its number is its local key.
#[derive(Debug)]
pub struct Region {
    pub pd: Id,
    pub rkey: u32,
    pub addr: u64,
    pub bytes: Vec<u8>,
    pub access: Access,
}

/// The unread events of a completion channel (N9: any number of them).
pub type Channel = VecDeque<CqKey>;

/// A completion queue.
#[derive(Debug, Default)]
pub struct Cq {
    pub opening: Id,
    pub channel: Option<Id>,
    /// O1: its capacity.
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
}

/// N12: the moderation of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moderation {
    /// How many completions an event stands for; 0 and 1 delay none.
    pub count: u16,
    /// The maximum delay.
    pub period: Duration,
    /// How many completions came since the arm, of those that it was armed for.
    pub counted: u16,
    /// The deadline of the delayed event.
    pub due: Option<Duration>,
}

/// A completion in its queue.
#[derive(Debug)]
pub struct Entry {
    pub wc: Wc,
    /// Q5: the send queue whose slots are freed when this is polled, and up to which one.
    pub retires: Option<(Id, u64)>,
}

/// A queue pair.
#[derive(Debug)]
pub struct Qp {
    pub opening: Id,
    pub kind: QpType,
    pub pd: Id,
    /// Q9: its shared receive queue, if it has one.
    pub srq: Option<Id>,
    pub send_cq: Id,
    pub recv_cq: Id,
    pub caps: QpCaps,
    pub sq_sig_all: bool,
    pub state: QpState,
    /// Every attribute that was given since RESET.
    pub attr: QpAttr,
    /// Sends that are not executed, oldest first.
    pub sends: VecDeque<Request>,
    /// Receives that are not consumed, oldest first.
    pub receives: VecDeque<Receive>,
    /// Q5: how many sends were ever posted, and how many of their slots were freed.
    pub sends_posted: u64,
    pub sends_retired: u64,
    /// What the oldest send waits for, if it has started.
    pub wait: Option<Wait>,
    /// Whether to report when the queue pair, in SQD, has drained.
    pub report_drained: bool,
}

/// A wait of a request.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Its status at the end.
    pub fault: Fault,
    /// When it ends; never where there is no timer.
    pub timer: Option<Timer>,
}

/// When a wait ends.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// When the request is retried.
    pub next: Duration,
    /// The time between retries.
    pub period: Duration,
    /// After how many retries it fails.
    pub rounds: u32,
}

/// A send.
#[derive(Clone, Debug)]
pub struct Request {
    pub wr_id: u64,
    /// Its place in the send queue, counted from the first ever posted.
    pub position: u64,
    pub op: SendOp,
    /// Its destination, if it is a datagram.
    pub target: Option<Target>,
    pub signaled: bool,
    pub solicited: bool,
    pub data: Bytes,
}

/// The bytes of a send.
#[derive(Clone, Debug)]
pub enum Bytes {
    Sges(Vec<Sge>),
    /// Q6: copied while posting.
    Inline(Vec<u8>),
}

/// The destination of a datagram when it was posted.
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
    pub sges: Vec<Sge>,
}

/// A shared receive queue (Q9).
#[derive(Debug)]
pub struct Srq {
    pub opening: Id,
    pub pd: Id,
    pub caps: SrqInit,
    /// Receives that are not consumed, oldest first.
    pub receives: VecDeque<Receive>,
    /// An event is raised once fewer are left; 0 raises none.
    pub limit: u32,
}

/// A memory window.
#[derive(Debug)]
pub struct Window {
    pub pd: Id,
    /// Its current or last key.
    pub rkey: u32,
    pub bound: Option<Bound>,
}

/// The binding of a window.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub qp: Id,
    pub region: Id,
    pub addr: u64,
    pub len: u64,
    pub access: Access,
}

/// An address handle: there is only one port.
#[derive(Debug)]
pub struct AddressHandle {
    pub pd: Id,
    /// Whether datagrams carry a GRH.
    pub global: bool,
}

/// Unused space between regions, so that an access past the end of one fails.
const GAP: u64 = 1 << 20;
/// Regions are page-aligned.
const PAGE: u64 = 4096;

impl World {
    /// A new number. 0 and 1 are those of special queue pairs.
    pub fn fresh(&mut self) -> Id {
        self.names += 1;
        self.names + 0xff
    }

    /// Puts an object into its table, under a new number.
    pub fn put<T>(&mut self, table: fn(&mut Self) -> &mut BTreeMap<Id, T>, object: T) -> Id {
        let id = self.fresh();
        table(self).insert(id, object);
        id
    }

    /// Addresses for `len` bytes that no other region ever had.
    pub fn place(&mut self, len: usize) -> u64 {
        self.memory += GAP;
        let addr = (1 << 40) + self.memory;
        self.memory += (len as u64).next_multiple_of(PAGE);
        addr
    }
}
