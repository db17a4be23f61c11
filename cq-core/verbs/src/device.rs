//! Traits for programs that run on every transport: opening aside, a device, what is created from it, and how two queue
//! pairs connect.
//!
//! Each method has the name, arguments and result that the types of both transports have themselves, so that code
//! which names a transport becomes generic by a change of its types:
//!
//! | generic over `D: Device` | in both transports |
//! |---|---|
//! | `D` | `Context`; `use … Context as Device` where `anyhow::Context` is in the way |
//! | `D::Pd` | `ProtectionDomain`; tasks share one by an `Arc` |
//! | `D::Memory`, `D::Region` | `OwnedRegion`, `MemoryRegion` |
//! | `D::Channel` | `CompletionChannel` |
//! | `D::Cq`, `D::CqHandle` | `Cq`, `CqHandle` |
//! | `D::Qp`, `D::Srq`, `D::Ah` | `QueuePair`, `SharedReceiveQueue`, `AddressHandle` |
//!
//! A program that names its transport calls those methods, and imports no trait of this module: the compiler would warn
//! of an unused import. Not part of the traits, though both transports have them, are the GIDs of a port, the keys of a
//! region, which an SGE and a remote address have, and `deregister` and `destroy` of what nothing else uses, since dropping
//! does the same.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::device::{Device, ProtectionDomain, QueuePair, Region};
//! use cq_verbs::post::Post;
//! use cq_verbs::setup::{Access, QpInit};
//! use cq_verbs::wr::{RecvWr, SendWr};
//!
//! /// Sends a greeting from one queue pair to another, and returns its length.
//! fn greet<D: Device>(device: &D) -> Result<u32, Box<dyn std::error::Error>> {
//!     let (port, pd) = (device.port(1)?, device.alloc_pd()?);
//!     let (cq, peer_cq) = (device.create_cq(16, None)?, device.create_cq(16, None)?);
//!     let mut qp = pd.create_qp(&QpInit::new(&cq))?;
//!     let mut peer = pd.create_qp(&QpInit::new(&peer_cq))?;
//!     qp.connect(&port, &peer.endpoint(&port))?;
//!     peer.connect(&port, &qp.endpoint(&port))?;
//!
//!     let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//!     peer.post_recv(&[RecvWr::new(1, &[region.sge(0, 64)?])])?;
//!     qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//!     let (mut peer_cq, mut wcs) = (CompletionQueue::new(peer_cq), [Wc::default()]);
//!     while peer_cq.poll(&mut wcs)?.is_empty() {}
//!     Ok(wcs[0].result()?.byte_len())
//! }
//! ```
//!
//! # Queue pairs for a queue that is polled
//! A [`CompletionQueue`](cq_core::cq::CompletionQueue) lends its queue to create queue pairs; a clone of its handle
//! ([`Device::CqHandle`]) does that while another thread polls:
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_verbs::device::{Device, ProtectionDomain};
//! use cq_verbs::setup::{CreateError, QpInit};
//!
//! fn one_more<D: Device>(pd: &D::Pd, cq: &CompletionQueue<D::Cq>) -> Result<D::Qp, CreateError> {
//!     pd.create_qp(&QpInit::new(cq.get_ref()))
//! }
//! ```
//!
//! An [`Observed`] queue of a device dereferences to the queue's handle, so that this is the same with and without an observer.
//! It does not dereference to the queue itself, which could be polled past the observer, nor to the handle of a
//! [`Budgeted`](crate::budget::Budgeted) queue, whose queue pairs reserve entries:
//!
//! ```compile_fail,E0308
//! use std::sync::Arc;
//!
//! use cq_core::observe::Observed;
//! use cq_verbs::budget::{Budget, Budgeted};
//! use cq_verbs::counters::{Counters, Recorder};
//! use cq_verbs::device::{Device, ProtectionDomain};
//! use cq_verbs::setup::QpInit;
//!
//! type Queue<D> = Observed<Budgeted<<D as Device>::Cq, Arc<Budget>>, Recorder<Arc<Counters>>>;
//!
//! fn create<D: Device>(pd: &D::Pd, cq: &Queue<D>) {
//!     let _ = pd.create_qp(&QpInit::new(cq));
//! }
//! ```
//!
//! # Naming the transport
//! A program names its transport where it opens the device: `greet(&transport_rxe_loop::Context::open("loop0")?)`, or
//! `greet(&transport_verbs::Context::open("mlx5_0")?)`.

mod slots;
mod traits;

use core::fmt;
use core::ops::Deref;

use cq_core::observe::{Observed, Observer};
use cq_core::transport::{Block, Capacity};
use cq_core::wc::Wc;

pub use self::slots::Slots;
use crate::async_event::BlockAsync;
use crate::polling::ArmWc;
use crate::post::{Post, PostError};
use crate::setup::{
    Access, AddressError, AddressVector, ArmLimitError, CreateError, Destination, DeviceAttr,
    DeviceError, Endpoint, InUse, MemoryOptions, ModerateError, ModifyError, Port, QpAttr, QpCaps,
    QpInit, QpState, QpType, RangeError, RegisterError, ResizeError, SrqInit,
};
use crate::wr::{RecvWr, RemoteAddr, Sge};

/// What every object of a device is: it can be printed, sent to another thread, shared, and kept.
pub trait Object: fmt::Debug + Send + Sync + 'static {}

impl<T: fmt::Debug + Send + Sync + 'static> Object for T {}

/// An open device.
pub trait Device: BlockAsync + Clone + Object {
    /// A protection domain.
    type Pd: ProtectionDomain<Device = Self>;
    /// Memory of the device, registered.
    type Memory: Memory;
    /// Memory of the program, registered.
    type Region: Region;
    /// A completion channel.
    type Channel: Block<Instant = Self::Instant> + Destroy + Object;
    /// A completion queue, which dereferences to its handle.
    type Cq: Cq<Handle = Self::CqHandle> + Deref<Target = Self::CqHandle>;
    /// A handle of a completion queue, to create queue pairs for it while another thread polls it.
    type CqHandle: Clone + Object;
    /// A shared receive queue.
    type Srq: SharedReceiveQueue;
    /// An address handle.
    type Ah: Object;
    /// A queue pair.
    type Qp: QueuePair<Ah = Self::Ah>;

    /// The device's name.
    fn name(&self) -> &str;

    /// The device's attributes.
    fn attributes(&self) -> DeviceAttr;

    /// Queries a port. Ports are numbered from 1.
    ///
    /// # Errors
    /// There is no such port, or it has no address yet.
    fn port(&self, number: u8) -> Result<Port, DeviceError>;

    /// Allocates a protection domain.
    ///
    /// # Errors
    /// There are too many.
    fn alloc_pd(&self) -> Result<Self::Pd, CreateError>;

    /// Creates a completion channel.
    ///
    /// # Errors
    /// No descriptor is available, or there are too many channels.
    fn create_channel(&self) -> Result<Self::Channel, CreateError>;

    /// Creates a completion queue that holds at least `capacity` completions ([O1](cq_core::contract#o1)). With a channel
    /// it can be armed.
    ///
    /// # Errors
    /// The capacity is out of range, there are too many queues, or the channel was made by another opening of the
    /// device.
    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&Self::Channel>,
    ) -> Result<Self::Cq, CreateError>;
}

/// A protection domain. Dropping destroys it once its last object is destroyed.
pub trait ProtectionDomain: Destroy + Object {
    /// The device that it was allocated from.
    type Device: Device<Pd = Self>;

    /// Allocates and registers memory, zeroed. Drop it [after the queue pairs](Region) that use it.
    ///
    /// # Errors
    /// The length is 0, there is no memory, or the rights are invalid ([Q10](cq_core::contract#q10)).
    fn allocate(
        &self,
        len: usize,
        access: Access,
    ) -> Result<<Self::Device as Device>::Memory, RegisterError>;

    /// Allocates and registers memory, zeroed, with huge pages or prefaulted if the options say so.
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate), or the system has no page to prefault. Nothing is left allocated.
    fn allocate_with(
        &self,
        len: usize,
        access: Access,
        options: &MemoryOptions,
    ) -> Result<<Self::Device as Device>::Memory, RegisterError>;

    /// Registers memory of the caller.
    ///
    /// # Errors
    /// The length is 0, the range exceeds the address space, or the rights are invalid ([Q10](cq_core::contract#q10)).
    ///
    /// # Safety
    /// - The `len` bytes at `ptr` are mapped, and writable if `access` has LOCAL_WRITE, until the region is deregistered: that
    ///   is done when dropping it returns. They stay so for ever if the region is leaked, or if the device fails to
    ///   deregister it. A device fails while something uses the region that was not created by these traits, such as a memory
    ///   window that a C library bound to it. So who frees the memory ensures that there is no such use.
    /// - The device reads and writes them at any time, so only atomic or volatile accesses are allowed, except while no
    ///   request of any queue pair uses them.
    ///
    /// Memory of [`allocate`](Self::allocate) has no such conditions: it is leaked if the device fails to deregister it.
    #[allow(unsafe_code)]
    unsafe fn register(
        &self,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<<Self::Device as Device>::Region, RegisterError>;

    /// Creates a queue pair, in RESET.
    ///
    /// # Errors
    /// A capacity is out of range, there are too many queue pairs, or a queue was made by another opening of the device.
    fn create_qp(
        &self,
        init: &QpInit<'_, <Self::Device as Device>::CqHandle, <Self::Device as Device>::Srq>,
    ) -> Result<<Self::Device as Device>::Qp, CreateError>;

    /// Creates a shared receive queue ([Q9](cq_core::contract#q9)).
    ///
    /// # Errors
    /// A capacity is out of range, or there are too many.
    fn create_srq(&self, init: &SrqInit) -> Result<<Self::Device as Device>::Srq, CreateError>;

    /// Creates an address handle.
    ///
    /// # Errors
    /// The device has no path to the address.
    fn create_ah(&self, to: &AddressVector) -> Result<<Self::Device as Device>::Ah, AddressError>;

    /// Creates a handle of the source of a datagram that this port received, for replies. `wc` is the receive completion
    /// and `grh` the first 40 bytes of the receive buffer.
    ///
    /// # Errors
    /// The completion is not a successful one of a receive ([C4](cq_core::contract#c4)), or the device has no path there.
    fn ah_from_wc(
        &self,
        port: &Port,
        wc: &Wc,
        grh: &[u8; 40],
    ) -> Result<<Self::Device as Device>::Ah, AddressError>;
}

/// An object that can't be destroyed while others use it.
pub trait Destroy: Sized {
    /// Destroys the object.
    ///
    /// # Errors
    /// Another object uses it; the handle is returned (EBUSY, [Q11](cq_core::contract#q11)).
    fn destroy(self) -> Result<(), InUse<Self>>;
}

/// A completion queue. Dropping destroys it once its last queue pair is destroyed, and its last handle dropped.
pub trait Cq: ArmWc + Capacity + Destroy + Object {
    /// The device's handle of a completion queue.
    type Handle: Clone + Object;

    /// A handle of the queue, to create queue pairs for it while another thread polls it.
    fn handle(&self) -> Self::Handle;

    /// Changes the capacity to at least this, and returns the new one ([Q12](cq_core::contract#q12)).
    ///
    /// # Errors
    /// The queue holds more completions, the capacity is out of range, or the device can't. Nothing was changed.
    fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError>;

    /// Delays each event until `count` completions have come, or `period` microseconds have passed since the first of
    /// them.
    ///
    /// # Errors
    /// The device can't, or not so much.
    fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError>;
}

/// A shared receive queue. Dropping destroys it once its last queue pair is destroyed.
pub trait SharedReceiveQueue: Destroy + Object {
    /// The queue's number, which its asynchronous events carry.
    fn number(&self) -> u32;

    /// The capacities: at least those that were requested.
    fn caps(&self) -> SrqInit;

    /// Posts receives, in order.
    ///
    /// # Errors
    /// A receive is refused; those before it are posted ([Q4](cq_core::contract#q4)).
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    /// Requests one SRQ_LIMIT_REACHED for when fewer than `limit` receives are left; 0 requests none.
    ///
    /// # Errors
    /// The limit exceeds the queue's capacity.
    fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError>;

    /// The armed limit: 0 once it was reached, or if none was requested.
    ///
    /// # Errors
    /// The device could not be queried.
    fn limit(&self) -> Result<u32, DeviceError>;
}

/// A queue pair. Dropping destroys it.
pub trait QueuePair: Post + Object {
    /// The device's address handle.
    type Ah: Object;
    /// A queue pair with a destination.
    type Directed<'a>: Post + 'a;

    /// The queue pair's number.
    fn number(&self) -> u32;

    /// The type.
    fn qp_type(&self) -> QpType;

    /// The capacities: at least those that were requested.
    fn caps(&self) -> QpCaps;

    /// The state. A failure may change it at any time.
    ///
    /// # Errors
    /// The device could not be queried.
    fn state(&self) -> Result<QpState, DeviceError>;

    /// The state and the attributes that were set since RESET.
    ///
    /// # Errors
    /// The device could not be queried.
    fn attributes(&self) -> Result<QpAttr, DeviceError>;

    /// Changes state and attributes ([Q1](cq_core::contract#q1)).
    ///
    /// # Errors
    /// There is no such transition, or attributes are missing, not allowed or out of range. Nothing was changed.
    fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError>;

    /// What the peer has to know to [connect](Self::connect) to this queue pair.
    fn endpoint(&self, port: &Port) -> Endpoint;

    /// Connects to the queue pair of this endpoint: goes from RESET to RTS. It has no more READs and atomics outstanding than
    /// the peer answers ([`responder_resources`](Endpoint::responder_resources)). Both sides connect, in any order, before
    /// either sends.
    ///
    /// # Errors
    /// The queue pair is not in RESET, the endpoint is invalid, or the type is UD.
    fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError>;

    /// Activates a UD queue pair: goes from RESET to RTS. It receives datagrams that carry `qkey`.
    ///
    /// # Errors
    /// The queue pair is not in RESET, or its type is not UD.
    fn activate(&mut self, port: &Port, qkey: u32) -> Result<(), ModifyError>;

    /// The queue pair with a destination for its datagrams: what is posted by the result is sent there.
    fn to<'a>(&'a mut self, destination: &Destination<'a, Self::Ah>) -> Self::Directed<'a>;
}

/// Registered memory, addressed by offsets. Dropping deregisters it, which is safe at any time: when it returns, the keys
/// are invalid ([Q10](cq_core::contract#q10)).
///
/// Requests that are still outstanding then fail once they are carried out, as with any other invalid key, and their queue
/// pairs go to ERR ([Q7](cq_core::contract#q7)): a request with LOC_PROT, a peer's with REM_ACCESS, a message to a posted
/// receive with LOC_PROT here and REM_OP at its sender. To avoid that, drop the memory after the queue pairs that use it,
/// here and at the peer: among local variables declare it before them, among the fields of a struct after them.
#[allow(clippy::len_without_is_empty)]
pub trait Region: Object {
    /// The length in bytes, which is at least 1.
    fn len(&self) -> usize;

    /// The SGE of a range.
    ///
    /// # Errors
    /// The range is outside the memory, or longer than `u32::MAX`.
    fn sge(&self, offset: usize, len: usize) -> Result<Sge, RangeError>;

    /// The remote address of an offset, for requests of the peer.
    ///
    /// # Errors
    /// The offset is outside the memory.
    fn remote(&self, offset: usize) -> Result<RemoteAddr, RangeError>;
}

/// Registered memory of a device. Its peer may write to it while it is read.
pub trait Memory: Region {
    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// The range is outside the memory.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RangeError>;

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// The range is outside the memory.
    fn write(&self, offset: usize, from: &[u8]) -> Result<(), RangeError>;
}

impl<T: Destroy, O> Destroy for Observed<T, O> {
    fn destroy(self) -> Result<(), InUse<Self>> {
        let (transport, observer) = self.into_parts();
        transport.destroy().map_err(|error| error.map(|queue| Self::new(queue, observer)))
    }
}

impl<T: Cq, O: Observer + Object> Cq for Observed<T, O> {
    type Handle = T::Handle;

    fn handle(&self) -> T::Handle {
        self.get_ref().handle()
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
        self.transport().resize(capacity)
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        self.transport().moderate(count, period)
    }
}
