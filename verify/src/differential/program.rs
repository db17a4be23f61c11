//! The parts of a program. They contain names instead of keys, addresses and numbers, so that a program means the same
//! on every device.

use cq_core::transport::Notify;
use cq_verbs::wr::{Placement, Selectivity, SendFlags};

use crate::device::{Access, QpState, QpType};

/// The size of the region with all access flags, in bytes.
pub const MAIN: usize = 512;
/// The size of the other regions, in bytes.
pub const SMALL: usize = 64;

/// A program: the objects of the two ends, and the steps.
#[derive(Clone, Debug)]
pub struct Program {
    /// The objects.
    pub shape: Shape,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// Two ends, each with its regions, its window, its completion queues, and one side of each connection. Queue
/// pair `n` belongs to end `n % 2`, and its peer is `n ^ 1`.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The type of the queue pairs.
    pub qp_type: QpType,
    /// The number of connections.
    pub pairs: usize,
    /// Whether receives have a completion queue of their own.
    pub separate_cqs: bool,
    /// Whether all sends are signaled (`sq_sig_all`).
    pub signal_all: bool,
    /// Whether timeouts are short, so that they pass before the next step. Otherwise they are infinite.
    pub impatient: bool,
    /// The settings of each end.
    pub ends: [EndShape; 2],
}

/// The settings of one end.
#[derive(Clone, Debug)]
pub struct EndShape {
    /// The access flags of its queue pairs.
    pub rights: Access,
    /// Whether a send waits for a receive.
    pub waits_for_receives: bool,
    /// Whether its queue pairs share a receive queue. Then nothing waits for a receive, because it is undefined which
    /// waiting queue pair gets the next one.
    pub shares_receives: bool,
    /// The limit of its own outstanding READs and atomics.
    pub max_rd_atomic: u8,
    /// The limit of the peer's outstanding READs and atomics.
    pub max_dest_rd_atomic: u8,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// Posts a list of sends to a queue pair; datagrams go to the destination of the first one.
    Send(usize, Vec<Request>),
    /// Posts a list of receives to a queue pair or its shared receive queue.
    Recv(usize, Vec<Vec<NamedSge>>),
    /// Changes the state of a queue pair.
    Change(usize, Change),
    /// Polls a completion queue for so many completions; until it is empty if several work queues complete there.
    Poll(usize, usize),
    /// Arms a completion queue.
    Arm(usize, Notify),
    /// Resizes a completion queue, and back.
    Resize(usize, u32),
    /// Arms the limit of an end's shared receive queue.
    Limit(usize, u32),
    /// Moderates the events of a completion queue.
    Moderate(usize, u16, u16),
    /// Fills a part of an end's main region.
    Fill(usize, usize, u8),
    /// Deregisters a region of an end, and reconnects its queue pairs.
    Deregister(usize, Region),
}

/// A transition of a queue pair.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// To this state, with the required attributes.
    To(QpState),
    /// To this state, without attributes.
    Bare(QpState),
    /// To RESET and back to RTS.
    Reconnect,
}

/// A send request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// The SGEs or inline bytes.
    pub data: Data,
    /// The destination of a datagram.
    pub target: Target,
    /// Whether it is signaled, solicited, fenced.
    pub flags: SendFlags,
}

/// The destination of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The queue pair.
    pub qp: usize,
    /// Whether the Q_Key is right.
    pub knows_key: bool,
    /// Whether it has a global route.
    pub global: bool,
}

/// An operation. A `key` names a key of an end's window: so many increments after the one that it has when the request is
/// posted.
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
    Bind { key: u8, on: NamedSge, access: Access },
    LocalInvalidate { key: u8 },
}

impl Op {
    /// Whether it binds or invalidates a window.
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
    Sges(Vec<NamedSge>),
    Inline(Vec<u8>),
}

/// A region or key that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// The region of [`MAIN`] bytes with all access flags.
    Main,
    /// A region of [`SMALL`] bytes with LOCAL_WRITE only.
    Local,
    /// A region of [`SMALL`] bytes without access flags.
    Fixed,
    /// The main region of the other end, in another protection domain.
    Foreign,
    /// A key of no region.
    Unknown,
    /// The window of the end that is accessed, by a key as in requests.
    Window(u8),
}

/// An SGE, inside its region or not.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct NamedSge {
    pub region: Region,
    pub offset: u64,
    pub length: u32,
}

impl NamedSge {
    /// Whether all of it is inside its region, if there is such a region.
    pub fn is_inside(&self) -> bool {
        let size = if self.region == Region::Main { MAIN } else { SMALL };
        let end = self.offset.checked_add(self.length.into());
        end.is_some_and(|end| end <= size as u64)
    }
}

/// A remote address, inside its region or not.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Place {
    pub region: Region,
    pub offset: u64,
}
