//! What a program is made of: names instead of keys, addresses and numbers, so that it means the same on
//! every device.

use cq_core::transport::Notify;
use cq_core::wr::{Placement, Selectivity, SendFlags};

use crate::device::{Access, QpState, QpType};

/// Bytes of the region that everything may be done with.
pub const MAIN: usize = 512;
/// Bytes of the other regions.
pub const SMALL: usize = 64;

/// What the two ends are made of, and what is done with them.
#[derive(Clone, Debug)]
pub struct Program {
    /// What the two ends are made of.
    pub shape: Shape,
    /// What is done, in this order.
    pub steps: Vec<Step>,
}

/// Two ends, each with its regions, its window, its completion queues, and one side of each connection. Queue
/// pair `n` belongs to end `n % 2`, and its peer is `n ^ 1`.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Of which type the queue pairs are.
    pub qp_type: QpType,
    /// How many connections there are.
    pub pairs: usize,
    /// Whether receives complete on a queue of their own.
    pub separate_cqs: bool,
    /// Whether every send is signaled.
    pub signal_all: bool,
    /// Whether waiting has an end: a short one, that comes before the next step. Otherwise it has none.
    pub impatient: bool,
    /// What the ends differ in.
    pub ends: [EndShape; 2],
}

/// What one end is made of.
#[derive(Clone, Debug)]
pub struct EndShape {
    /// What its queue pairs let their peers do.
    pub rights: Access,
    /// Whether a send that finds no receive waits for one.
    pub waits_for_receives: bool,
    /// Whether its queue pairs take their receives from one queue. Then nothing waits for a receive, and
    /// everything else for a short time only: which of two gets the next receive is nobody's promise.
    pub shares_receives: bool,
    /// READs and atomics of its own that may be under way.
    pub max_rd_atomic: u8,
    /// READs and atomics of the peer that may be under way.
    pub max_dest_rd_atomic: u8,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// Posts a list of sends to a queue pair; datagrams go where the first one says.
    Send(usize, Vec<Request>),
    /// Posts a list of receives to a queue pair, or to the queue that it takes them from.
    Recv(usize, Vec<Vec<Piece>>),
    /// Changes the state of a queue pair.
    Change(usize, Change),
    /// Polls a completion queue with room for so many; to the end if several queues complete there.
    Poll(usize, usize),
    /// Arms a completion queue.
    Arm(usize, Notify),
    /// Makes a completion queue hold so many, and as many as before again.
    Resize(usize, u32),
    /// Asks an end's shared receive queue to tell when fewer receives are left.
    Limit(usize, u32),
    /// Has one event of a completion queue stand for several completions.
    Moderate(usize, u16, u16),
    /// Fills a part of an end's main region.
    Fill(usize, usize, u8),
    /// Deregisters a region of an end, whose queue pairs are reconnected.
    Deregister(usize, Region),
}

/// What is done to a queue pair's state.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// To this state, with the attributes that it takes.
    To(QpState),
    /// To this state, with nothing else.
    Bare(QpState),
    /// Over RESET back to RTS.
    Reconnect,
}

/// A send request.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// With which bytes.
    pub data: Data,
    /// Where it goes, if it is a datagram.
    pub target: Target,
    /// Whether it completes on success, wakes who armed for solicited completions, waits for earlier READs and atomics.
    pub flags: SendFlags,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// To this queue pair.
    pub qp: usize,
    /// Whether it has the queue key.
    pub knows_key: bool,
    /// Whether it carries its global route.
    pub global: bool,
}

/// What a request does. A `key` is one of the keys of an end's window: so many behind the one that it has when
/// the request is posted.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Send { imm: Option<[u8; 4]> },
    SendInvalidate { key: u8 },
    Write { to: Place, imm: Option<[u8; 4]> },
    Read { from: Place },
    CompareSwap { at: Place, compare: u64, swap: u64 },
    FetchAdd { at: Place, add: u64 },
    AtomicWrite { to: Place },
    Flush { at: Place, length: u32, placement: Placement, selectivity: Selectivity },
    Bind { key: u8, on: Piece, access: Access },
    LocalInvalidate { key: u8 },
}

impl Op {
    /// Whether it binds a window or takes its key away.
    pub const fn changes_windows(&self) -> bool {
        matches!(
            self,
            Self::Bind { .. } | Self::LocalInvalidate { .. } | Self::SendInvalidate { .. }
        )
    }
}

/// The bytes of a request.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Data {
    Pieces(Vec<Piece>),
    Inline(Vec<u8>),
}

/// A region, as an end names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// [`MAIN`] bytes with every right.
    Main,
    /// [`SMALL`] bytes with LOCAL_WRITE only.
    Local,
    /// [`SMALL`] bytes without any right.
    Fixed,
    /// The main region of the other end, which is none of this domain's.
    Foreign,
    /// A key that never was.
    Unknown,
    /// What the window of the end opens on that is asked, by a key as those of requests.
    Window(u8),
}

/// A piece of local memory, inside its region or not.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Piece {
    pub region: Region,
    pub offset: u64,
    pub length: u32,
}

impl Piece {
    /// Whether all of it is inside its region, if there is such a region.
    pub fn is_inside(&self) -> bool {
        let size = if self.region == Region::Main { MAIN } else { SMALL };
        let end = self.offset.checked_add(self.length.into());
        end.is_some_and(|end| end <= size as u64)
    }
}

/// A place in a region of the peer, inside or not.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Place {
    pub region: Region,
    pub offset: u64,
}
