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

mod absent;
mod attr;

use std::time::Instant;

pub use cq_core::setup::{Access, Destination, QpCaps, QpType, SrqInit};
use cq_core::transport::{Arm, AsyncEvents, Block, PollCq, Post, PostError};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use serde::{Deserialize, Serialize};

pub use self::absent::Absent;
pub use self::attr::{Attr, State};

/// An open device, which reports asynchronous events about what was made through it.
pub trait Device: AsyncEvents + Send + Sized + 'static {
    /// A protection domain.
    type Pd: Destroy + Send;
    /// A memory region, with its memory.
    type Mr: Mr;
    /// A completion channel.
    type Channel: Block<Instant = Instant> + Destroy + Send;
    /// A completion queue.
    type Cq: Cq;
    /// A shared receive queue.
    type Srq: Srq;
    /// A handle of an address. Dropping destroys it.
    type Ah: Send;
    /// A memory window of type 2.
    type Mw: Mw;
    /// A queue pair.
    type Qp: Qp<Self::Ah>;

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

    /// A completion queue that drops what it has no room for, instead of failing (O2).
    ///
    /// # Errors
    /// The capacity is out of range, or the device has no such queues.
    fn create_cq_ignoring_overrun(
        &self,
        capacity: u32,
        channel: Option<&Self::Channel>,
    ) -> Result<Self::Cq, Refusal>;

    /// A shared receive queue.
    ///
    /// # Errors
    /// A capacity is out of range.
    fn create_srq(&self, pd: &Self::Pd, init: &SrqInit) -> Result<Self::Srq, Refusal>;

    /// A queue pair in RESET.
    ///
    /// # Errors
    /// A capacity is out of range.
    fn create_qp(
        &self,
        pd: &Self::Pd,
        init: &QpInit<'_, Self::Cq, Self::Srq>,
    ) -> Result<Self::Qp, Refusal>;

    /// A handle of the address of a port of this same device.
    ///
    /// # Errors
    /// There is no such port.
    fn create_ah(&self, pd: &Self::Pd, to: Address) -> Result<Self::Ah, Refusal>;

    /// A handle of where a datagram came from: of its completion, and the first forty bytes of what its
    /// receive got.
    ///
    /// # Errors
    /// They are not those of a datagram.
    fn ah_from_wc(&self, pd: &Self::Pd, wc: &Wc, grh: &[u8; 40]) -> Result<Self::Ah, Refusal>;

    /// A memory window that is not bound.
    ///
    /// # Errors
    /// The device has none.
    fn alloc_mw(&self, pd: &Self::Pd) -> Result<Self::Mw, Refusal>;

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
pub trait Cq: PollCq + Arm + Destroy + Send {
    /// How many completions it holds (O1).
    fn capacity(&self) -> u32;

    /// Makes it hold `capacity` completions; says how many it holds then (Q12).
    ///
    /// # Errors
    /// Fewer than wait in it, or out of range: nothing changed.
    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal>;

    /// Has one event stand for `count` completions, or for as many as come within `period` microseconds.
    ///
    /// # Errors
    /// The device can't.
    fn moderate(&mut self, count: u16, period: u16) -> Result<(), Refusal>;
}

/// A shared receive queue.
pub trait Srq: Destroy + Send {
    /// Its number, by which asynchronous events name it.
    fn number(&self) -> u32;

    /// What it takes: at least what was asked for.
    fn caps(&self) -> SrqInit;

    /// Posts a list of receives, in order.
    ///
    /// # Errors
    /// Stops at the first that is refused (Q4).
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    /// Asks for one SRQ_LIMIT_REACHED once fewer than `limit` receives are left; 0 asks for none (Q9).
    ///
    /// # Errors
    /// It is more than the queue takes.
    fn arm_limit(&mut self, limit: u32) -> Result<(), Refusal>;

    /// The limit in force: 0 if there is none, or its event was raised.
    fn limit(&self) -> u32;
}

/// A memory window. Dropping deallocates it.
pub trait Mw: Send {
    /// The key that it has: of who allocated it or bound it last.
    fn rkey(&self) -> u32;
}

/// A queue pair. Dropping destroys it.
pub trait Qp<Ah>: Post + Send {
    /// Posts datagrams to a destination.
    ///
    /// # Errors
    /// As for [`Post::post_send`].
    fn post_to(&mut self, to: &Destination<'_, Ah>, list: &[SendWr<'_>]) -> Result<(), PostError>;

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
    /// EOPNOTSUPP: the device has no such thing.
    Unsupported,
}

/// A port of this same device, which has port 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The port of this side.
    pub port: u8,
    /// Whether datagrams carry their global route.
    pub global: bool,
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
    /// Requests of a shared receive queue.
    pub max_srq_wr: u32,
    /// Pieces of a request of a shared receive queue.
    pub max_srq_sge: u32,
}

/// Fifteen requests each way, of four pieces, or of 64 inline bytes.
pub const SMALL_CAPS: QpCaps =
    QpCaps { max_send_wr: 15, max_recv_wr: 15, max_send_sge: 4, max_recv_sge: 4, max_inline: 64 };

/// What a queue pair is made of.
#[derive(Clone, Copy, Debug)]
pub struct QpInit<'a, Cq, Srq> {
    /// What it can do.
    pub qp_type: QpType,
    /// Where sends complete.
    pub send_cq: &'a Cq,
    /// Where receives complete; may be the same.
    pub recv_cq: &'a Cq,
    /// Where its receives are taken from, if it has none of its own.
    pub srq: Option<&'a Srq>,
    /// How much it takes.
    pub caps: QpCaps,
    /// Whether every send is signaled, whatever its flags say.
    pub sq_sig_all: bool,
}

impl<'a, Cq, Srq> QpInit<'a, Cq, Srq> {
    /// A reliable connection, both directions on one queue, with [small](SMALL_CAPS) capacities.
    pub const fn new(cq: &'a Cq) -> Self {
        let (qp_type, caps) = (QpType::Rc, SMALL_CAPS);
        Self { qp_type, send_cq: cq, recv_cq: cq, srq: None, caps, sq_sig_all: false }
    }
}
