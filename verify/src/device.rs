//! Setting up a device in words of no transport: with this and the seams of cq-core, a case is written
//! once and run on each.
//!
//! ```
//! use verify::device::{Access, Attr, Device, Mr, Qp, QpInit};
//!
//! /// A queue pair that is connected to itself, and its completion queue.
//! fn loop_back<D: Device>(device: &D) -> (D::Qp, D::Cq) {
//!     let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
//!     let mut qp = device.create_qp(&pd, &QpInit::new(&cq)).unwrap();
//!     let number = qp.number();
//!     for attr in [Attr::init(Access::REMOTE_WRITE), Attr::rtr(number), Attr::rts()] {
//!         qp.modify(&attr).unwrap();
//!     }
//!     (qp, cq)
//! }
//! ```
//!
//! Numbers of states, flags and attributes are those of `<infiniband/verbs.h>`. Handles are values of their
//! own, which may move to other threads; what one refers to stays alive as long as it does.

pub use cq_core::setup::{Access, QpCaps};
use cq_core::transport::{Arm, AsyncEvents, Block, Poll, Post};
use cq_core::wr::{RemoteAddr, Sge};
use serde::{Deserialize, Serialize};

/// An open device, which reports asynchronous events about what was made through it.
pub trait Device: AsyncEvents + Send + Sized {
    /// A protection domain.
    type Pd: Destroy + Send;
    /// A memory region, with its memory.
    type Mr: Mr;
    /// A completion channel.
    type Channel: Block + Destroy + Send;
    /// A completion queue.
    type Cq: Cq;
    /// A queue pair; all are reliable connections.
    type Qp: Qp;

    /// Opens the device once more: what is made through one opening connects to what is made through
    /// another.
    fn open() -> Self;

    /// Opens it for the other end of a connection. Where a transport has two places, such as two processes,
    /// it is the one where [`open`](Self::open) does not; objects of the two are never made of each other.
    fn open_far() -> Self {
        Self::open()
    }

    /// What may be asked for at most.
    fn limits(&self) -> Limits;

    /// A protection domain.
    fn alloc_pd(&self) -> Self::Pd;

    /// `len` bytes of zeroed memory, registered.
    ///
    /// # Errors
    /// No bytes, or rights that don't go together (Q10).
    fn register(&self, pd: &Self::Pd, len: usize, access: Access) -> Result<Self::Mr, Refusal>;

    /// A completion channel.
    fn create_channel(&self) -> Self::Channel;

    /// A completion queue that holds `capacity` completions; with a channel it can be armed.
    ///
    /// # Errors
    /// The capacity is out of range.
    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&Self::Channel>,
    ) -> Result<Self::Cq, Refusal>;

    /// A queue pair in RESET.
    ///
    /// # Errors
    /// A capacity is out of range.
    fn create_qp(&self, pd: &Self::Pd, init: &QpInit<'_, Self::Cq>) -> Result<Self::Qp, Refusal>;

    /// Lets the device go on by itself for a moment: one that works in real time gets the processor, a
    /// sequential one lets its clock run to the next deadline.
    fn pause(&self);
}

/// What can be refused to go while others use it.
pub trait Destroy: Sized {
    /// Destroys it.
    ///
    /// # Errors
    /// Something uses it: the handle comes back (Q11).
    fn destroy(self) -> Result<(), Self>;
}

/// A completion queue.
pub trait Cq: Poll + Arm + Destroy + Send {
    /// How many completions it holds (O1).
    fn capacity(&self) -> u32;

    /// Makes it hold `capacity` completions; says how many it holds then (Q12).
    ///
    /// # Errors
    /// Fewer than wait in it, or out of range: nothing changed.
    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal>;
}

/// A queue pair. Dropping destroys it.
pub trait Qp: Post + Send {
    /// Its number.
    fn number(&self) -> u32;

    /// What it takes: at least what was asked for.
    fn caps(&self) -> QpCaps;

    /// Its state now.
    fn state(&self) -> State;

    /// Changes state and attributes (Q1).
    ///
    /// # Errors
    /// No such change, attributes missing, too many or out of range: nothing changed.
    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal>;
}

/// A memory region. Dropping deregisters it.
pub trait Mr: Send {
    /// The address of its first byte.
    fn addr(&self) -> u64;

    /// The key that requests of this side use.
    fn lkey(&self) -> u32;

    /// The key that the peer uses.
    fn rkey(&self) -> u32;

    /// Copies bytes out; they are inside.
    fn read(&self, offset: usize, to: &mut [u8]);

    /// Copies bytes in; they are inside.
    fn write(&self, offset: usize, from: &[u8]);

    /// A piece of it, inside or not.
    fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { addr: self.addr().wrapping_add(offset), length, lkey: self.lkey() }
    }

    /// A place in it for the peer, inside or not.
    fn remote(&self, offset: u64) -> RemoteAddr {
        RemoteAddr { addr: self.addr().wrapping_add(offset), rkey: self.rkey() }
    }
}

/// Why something was refused: the errno that C would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// EINVAL.
    Invalid,
    /// ENOMEM.
    NoMemory,
}

/// What a device allows at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// Pieces of a request.
    pub max_sge: u32,
    /// Inline bytes of a request.
    pub max_inline: u32,
    /// READs and atomics under way of one queue pair.
    pub max_rd_atomic: u8,
}

/// Fifteen requests each way, of four pieces, or of 64 inline bytes.
pub const SMALL_CAPS: QpCaps =
    QpCaps { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 4, max_inline: 64 };

/// What a queue pair is made of.
#[derive(Clone, Copy, Debug)]
pub struct QpInit<'a, Cq> {
    /// Where sends complete.
    pub send_cq: &'a Cq,
    /// Where receives complete; may be the same.
    pub recv_cq: &'a Cq,
    /// How much it takes.
    pub caps: QpCaps,
    /// Whether every send is signaled, whatever its flags say.
    pub sq_sig_all: bool,
}

impl<'a, Cq> QpInit<'a, Cq> {
    /// Both directions on one queue, with [small](SMALL_CAPS) capacities.
    pub const fn new(cq: &'a Cq) -> Self {
        Self { send_cq: cq, recv_cq: cq, caps: SMALL_CAPS, sq_sig_all: false }
    }
}

/// `enum ibv_qp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum State {
    Reset = 0,
    Init = 1,
    Rtr = 2,
    Rts = 3,
    Sqd = 4,
    Sqe = 5,
    Err = 6,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];
}

/// What a queue pair is modified with: `struct ibv_qp_attr`; what is `None` is not in the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attr {
    /// The state to go to.
    pub state: Option<State>,
    /// The state that the caller takes it to be in.
    pub cur_state: Option<State>,
    /// Whether to report when the send queue is drained.
    pub sqd_async_notify: Option<bool>,
    /// What the peer may do.
    #[serde(with = "crate::far::access")]
    pub access: Option<Access>,
    /// Index of the partition key.
    pub pkey_index: Option<u16>,
    /// Port of the device; there is port 1.
    pub port: Option<u8>,
    /// The peer's address: a port of this same device.
    pub av: Option<u8>,
    /// Largest packet, in bytes.
    pub path_mtu: Option<u32>,
    /// Number of the peer.
    pub dest_qp_num: Option<u32>,
    /// First packet number to receive.
    pub rq_psn: Option<u32>,
    /// First packet number to send.
    pub sq_psn: Option<u32>,
    /// READs and atomics of the peer that may be under way.
    pub max_dest_rd_atomic: Option<u8>,
    /// READs and atomics of this side that may be under way.
    pub max_rd_atomic: Option<u8>,
    /// How long the peer waits where no receive was posted, by the table of `ibv_modify_qp(3)`.
    pub min_rnr_timer: Option<u8>,
    /// How long to wait for an answer: 4.096 µs · 2^this; 0 is for ever.
    pub timeout: Option<u8>,
    /// How often to try again.
    pub retry_cnt: Option<u8>,
    /// How often to try again where no receive was posted; 7 is for ever.
    pub rnr_retry: Option<u8>,
}

impl Attr {
    /// To go to this state, with nothing else.
    #[must_use]
    pub fn to(state: State) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    /// RESET→INIT with what it needs.
    #[must_use]
    pub fn init(access: Access) -> Self {
        Self { pkey_index: Some(0), port: Some(1), access: Some(access), ..Self::to(State::Init) }
    }

    /// INIT→RTR with what it needs; a peer that finds no receive waits 0.64 ms.
    #[must_use]
    pub fn rtr(dest_qp_num: u32) -> Self {
        Self {
            av: Some(1),
            path_mtu: Some(1024),
            dest_qp_num: Some(dest_qp_num),
            rq_psn: Some(0),
            max_dest_rd_atomic: Some(4),
            min_rnr_timer: Some(12),
            ..Self::to(State::Rtr)
        }
    }

    /// RTR→RTS with what it needs: waits for receives for ever, for an answer four times 0.27 s.
    #[must_use]
    pub fn rts() -> Self {
        Self {
            timeout: Some(16),
            retry_cnt: Some(3),
            rnr_retry: Some(7),
            sq_psn: Some(0),
            max_rd_atomic: Some(4),
            ..Self::to(State::Rts)
        }
    }
}
