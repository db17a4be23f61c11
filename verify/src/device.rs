//! What a case of the suite asks of a device, so that it is written once and run on every transport: the calls of
//! [`cq_verbs::device`], with the errors as the numbers that C gets.
//!
//! ```
//! use verify::device::{Access, Device, Mr, Qp, attr, small};
//!
//! /// A queue pair that is connected to itself, and its completion queue.
//! fn loop_back<D: Device>(device: &D) -> (D::Qp, D::Cq) {
//!     let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
//!     let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
//!     let number = qp.number();
//!     for attr in [attr::init(Access::REMOTE_WRITE), attr::rtr(number), attr::rts()] {
//!         qp.modify(&attr).unwrap();
//!     }
//!     (qp, cq)
//! }
//! ```
//!
//! Numbers of states, flags and attributes are those of `<infiniband/verbs.h>`. Handles may move to other threads, and
//! keep the objects that they depend on alive.

pub mod attr;
mod identifier;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use cq_core::transport::Block;
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvents;
use cq_verbs::polling::ArmWc;
use cq_verbs::post::{Post, PostError};
pub use cq_verbs::setup::{
    Access, AckTimeout, Destination, Errno, Mtu, QpAttr, QpCaps, QpState, QpType, RnrTimer, SrqInit,
};
use cq_verbs::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use serde::{Deserialize, Serialize};

pub use self::identifier::{CmCall, Identifier};

/// Whether a list was posted.
pub type Posted = Result<(), PostError>;

/// An object, or why it could not be made.
pub type Made<T> = Result<T, Errno>;

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
    /// An address handle. Dropping destroys it.
    type Ah: Send;
    /// A memory window of type 2.
    type Mw: Mw;
    /// A queue pair.
    type Qp: Qp<Self::Ah>;
    /// An identifier for connecting by addresses: [`Infallible`](std::convert::Infallible) if the device has no
    /// connection manager.
    type Id: Identifier<Self>;

    /// Opens the device once more. Queue pairs of different contexts connect to each other.
    fn open() -> Self;

    /// Opens it for the other end of a connection. If a transport has two processes, it is the one where
    /// [`open`](Self::open) does not; objects of the two never depend on each other.
    fn open_far() -> Self {
        Self::open()
    }

    /// The device's limits.
    fn limits(&self) -> Limits;

    /// Allocates a protection domain.
    fn alloc_pd(&self) -> Self::Pd;

    /// Allocates and registers `len` bytes, zeroed.
    ///
    /// # Errors
    /// The length is 0, or the rights are invalid ([Q10](cq_core::contract#q10)).
    fn register(&self, pd: &Self::Pd, len: usize, access: Access) -> Result<Self::Mr, Errno>;

    /// Creates a completion channel.
    fn create_channel(&self) -> Self::Channel;

    /// Creates a completion queue that holds `capacity` completions. With a channel it can be armed.
    ///
    /// # Errors
    /// The capacity is out of range.
    fn create_cq(&self, capacity: u32, channel: Option<&Self::Channel>) -> Made<Self::Cq> {
        self.create_cq_with(CqInit { capacity, channel, ignores_overrun: false })
    }

    /// Creates a completion queue.
    ///
    /// # Errors
    /// The capacity is out of range, or the device has no such queues.
    fn create_cq_with(&self, init: CqInit<'_, Self::Channel>) -> Made<Self::Cq>;

    /// Creates a shared receive queue.
    ///
    /// # Errors
    /// A capacity is out of range.
    fn create_srq(&self, pd: &Self::Pd, init: &SrqInit) -> Result<Self::Srq, Errno>;

    /// Creates a queue pair, in RESET.
    ///
    /// # Errors
    /// A capacity is out of range.
    fn create_qp(&self, pd: &Self::Pd, init: &QpInit<'_, Self::Cq, Self::Srq>) -> Made<Self::Qp>;

    /// Creates a handle of the address of a port of this same device.
    ///
    /// # Errors
    /// There is no such port.
    fn create_ah(&self, pd: &Self::Pd, to: Address) -> Result<Self::Ah, Errno>;

    /// Creates a handle of the source of a datagram. `wc` is the receive completion and `grh` the first 40 bytes of the
    /// receive buffer.
    ///
    /// # Errors
    /// The completion is not a successful one of a receive.
    fn ah_from_wc(&self, pd: &Self::Pd, wc: &Wc, grh: &[u8; 40]) -> Result<Self::Ah, Errno>;

    /// Allocates a memory window, not bound.
    ///
    /// # Errors
    /// The device has none.
    fn alloc_mw(&self, pd: &Self::Pd) -> Result<Self::Mw, Errno>;

    /// Creates an identifier. Those of different contexts connect to each other.
    ///
    /// # Errors
    /// The device has no connection manager.
    fn create_id(&self) -> Made<Self::Id> {
        Err(Errno::EOPNOTSUPP)
    }

    /// The address of this machine at which identifiers reach each other.
    fn address(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    /// Whether arming a queue raises its event at once if it holds completions ([N2](cq_core::contract#n2)).
    fn raises_when_armed(&self) -> bool {
        false
    }

    /// Lets the device work for a moment: one that works in real time gets the processor, a sequential one advances its
    /// clock to the next deadline.
    fn pause(&self);
}

/// What a completion queue is created with.
#[derive(Debug)]
pub struct CqInit<'a, Channel> {
    /// How many completions it holds, at least.
    pub capacity: u32,
    /// The channel of its events.
    pub channel: Option<&'a Channel>,
    /// Whether it drops completions when it is full, instead of failing ([O2](cq_core::contract#o2)).
    pub ignores_overrun: bool,
}

/// An object that can't be destroyed while others use it.
pub trait Destroy: Sized {
    /// Destroys the object.
    ///
    /// # Errors
    /// Another object uses it; the handle is returned ([Q11](cq_core::contract#q11)).
    fn destroy(self) -> Result<(), Self>;
}

/// A completion queue.
pub trait Cq: ArmWc + Destroy + Send {
    /// The capacity ([O1](cq_core::contract#o1)).
    fn capacity(&self) -> u32;

    /// Changes the capacity to at least this, and returns the new one ([Q12](cq_core::contract#q12)).
    ///
    /// # Errors
    /// The queue holds more completions, or the capacity is out of range. Nothing was changed.
    fn resize(&mut self, capacity: u32) -> Result<u32, Errno>;

    /// Delays each event until `count` completions have come, or `period` microseconds have passed since the first.
    ///
    /// # Errors
    /// The device does not support moderation.
    fn moderate(&mut self, count: u16, period: u16) -> Result<(), Errno>;
}

/// A shared receive queue.
pub trait Srq: Destroy + Send {
    /// The queue's number, which its asynchronous events carry.
    fn number(&self) -> u32;

    /// The capacities: at least those that were requested.
    fn caps(&self) -> SrqInit;

    /// Posts receives, in order.
    ///
    /// # Errors
    /// A receive is refused; those before it are posted ([Q4](cq_core::contract#q4)).
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    /// Requests one SRQ_LIMIT_REACHED for when fewer than `limit` receives are left; 0 requests none
    /// ([Q9](cq_core::contract#q9)).
    ///
    /// # Errors
    /// The limit exceeds the queue's capacity.
    fn arm_limit(&mut self, limit: u32) -> Result<(), Errno>;

    /// The armed limit: 0 once it was reached, or if none was requested.
    fn limit(&self) -> u32;
}

/// A memory window. Dropping deallocates it.
pub trait Mw: Send {
    /// The remote key: as it was when the window was allocated or bound last.
    fn rkey(&self) -> u32;
}

/// A queue pair. Dropping destroys it.
pub trait Qp<Ah>: Post + Send {
    /// Posts datagrams to a destination.
    ///
    /// # Errors
    /// As for [`Post::post_send`].
    fn post_to(&mut self, to: &Destination<'_, Ah>, list: &[SendWr<'_>]) -> Result<(), PostError>;

    /// The queue pair's number.
    fn number(&self) -> u32;

    /// The capacities: at least those that were requested.
    fn caps(&self) -> QpCaps;

    /// The state.
    fn state(&self) -> QpState;

    /// Changes state and attributes ([Q1](cq_core::contract#q1)).
    ///
    /// # Errors
    /// There is no such transition, or attributes are missing, not allowed or out of range. Nothing was changed.
    fn modify(&mut self, attr: &QpAttr) -> Result<(), Errno>;
}

/// A memory region. Dropping deregisters it.
pub trait Mr: Send {
    /// The address of its first byte.
    fn addr(&self) -> u64;

    /// The local key.
    fn lkey(&self) -> u32;

    /// The remote key, for the peer.
    fn rkey(&self) -> u32;

    /// Copies bytes out of the region. The range is inside.
    fn read(&self, offset: usize, to: &mut [u8]);

    /// Copies bytes into the region. The range is inside.
    fn write(&self, offset: usize, from: &[u8]);

    /// An SGE of a range, inside or not.
    fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { addr: self.addr().wrapping_add(offset), length, lkey: self.lkey() }
    }

    /// The remote address of an offset, inside or not.
    fn remote(&self, offset: u64) -> RemoteAddr {
        RemoteAddr { addr: self.addr().wrapping_add(offset), rkey: self.rkey() }
    }
}

/// A port of this same device, which has port 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The port of this side.
    pub port: u8,
    /// Whether datagrams carry their global route.
    pub global: bool,
}

/// The limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Requests of a send or receive queue.
    pub max_qp_wr: u32,
    /// SGEs of a work request.
    pub max_sge: u32,
    /// Inline bytes of a request.
    pub max_inline: u32,
    /// Outstanding READs and atomics of a queue pair.
    pub max_rd_atomic: u8,
    /// Receives of a shared receive queue.
    pub max_srq_wr: u32,
    /// SGEs of a receive of a shared receive queue.
    pub max_srq_sge: u32,
}

/// 15 requests in each queue, with four SGEs or up to 64 inline bytes each.
pub const SMALL_CAPS: QpCaps =
    QpCaps::USUAL.max_send_wr(15).max_recv_wr(15).max_send_sge(4).max_recv_sge(4).max_inline(64);

/// A reliable connection with one completion queue and [small](SMALL_CAPS) capacities.
pub const fn small<Cq, Srq>(cq: &Cq) -> QpInit<'_, Cq, Srq> {
    let (qp_type, caps) = (QpType::RC, SMALL_CAPS);
    QpInit { qp_type, send_cq: cq, recv_cq: cq, srq: None, caps, sq_sig_all: false }
}

/// The attributes of a new queue pair.
#[derive(Debug)]
pub struct QpInit<'a, Cq, Srq> {
    /// The type.
    pub qp_type: QpType,
    /// The completion queue of sends.
    pub send_cq: &'a Cq,
    /// The completion queue of receives. It may be the same.
    pub recv_cq: &'a Cq,
    /// The shared receive queue, if it has no receive queue of its own.
    pub srq: Option<&'a Srq>,
    /// The capacities.
    pub caps: QpCaps,
    /// Whether every send is signaled, whatever its flags say.
    pub sq_sig_all: bool,
}

// Derives would also require `Cq: Copy` and `Srq: Copy`.
impl<Cq, Srq> Copy for QpInit<'_, Cq, Srq> {}
impl<Cq, Srq> Clone for QpInit<'_, Cq, Srq> {
    fn clone(&self) -> Self {
        *self
    }
}
