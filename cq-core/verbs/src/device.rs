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
//! of an unused import. Not part of the traits, though both transports have them, are `deregister` and `destroy` of what
//! nothing else uses, since dropping does the same.
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::wc::Wc;
//! use cq_verbs::device::{Device, DevicePd, DeviceQp, Region};
//! use cq_verbs::post::Post;
//! use cq_verbs::setup::Access;
//! use cq_verbs::wr::{RecvWr, SendWr};
//!
//! /// Sends a greeting from one queue pair to another, and returns its length.
//! fn greet<D: Device>(device: &D) -> Result<u32, Box<dyn std::error::Error>> {
//!     let (port, pd) = (device.port(1)?, device.alloc_pd()?);
//!     let (cq, peer_cq) = (device.cq(16).create()?, device.cq(16).create()?);
//!     let mut qp = pd.qp(&cq).create()?;
//!     let mut peer = pd.qp(&peer_cq).create()?;
//!     qp.connect(&port, &peer.endpoint(&port))?;
//!     peer.connect(&port, &qp.endpoint(&port))?;
//!
//!     let region = pd.allocate(64, Access::LOCAL_WRITE)?;
//!     peer.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?;
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
//! use cq_verbs::device::{Device, DevicePd};
//! use cq_verbs::setup::CreateError;
//!
//! fn one_more<D: Device>(pd: &D::Pd, cq: &CompletionQueue<D::Cq>) -> Result<D::Qp, CreateError> {
//!     pd.qp(cq.get_ref()).create()
//! }
//! ```
//!
//! An [`Observed`] queue of a device has the queue's handle, too, so that this is the same with and without an observer. A
//! [`Budgeted`](crate::budget::Budgeted) queue has not, since its queue pairs reserve entries:
//!
//! ```compile_fail,E0277
//! use std::sync::Arc;
//!
//! use cq_core::observe::Observed;
//! use cq_verbs::budget::{Budget, Budgeted};
//! use cq_verbs::counters::{Counters, Recorder};
//! use cq_verbs::device::{Device, DevicePd};
//!
//! type Queue<D> = Observed<Budgeted<<D as Device>::Cq, Arc<Budget>>, Recorder<Arc<Counters>>>;
//!
//! fn create<D: Device>(pd: &D::Pd, cq: &Queue<D>) {
//!     let _ = pd.qp(cq).create();
//! }
//! ```
//!
//! # Naming the transport
//! A program names its transport where it opens the device: `greet(&transport_rxe_loop::Context::open("loop0")?)`, or
//! `greet(&transport_verbs::Context::open("mlx5_0")?)`.

mod builder;
mod qp;
mod region;
mod slots;
mod traits;

use core::fmt;

use cq_core::observe::{Observed, Observer};
use cq_core::transport::{Block, Capacity, Deadline};
use cq_core::wc::Wc;

pub use self::builder::{CqBuilder, QpBuilder};
pub use self::qp::DeviceQp;
pub use self::region::{Memory, Region};
pub use self::slots::Slots;
use crate::async_event::BlockAsync;
use crate::polling::ArmWc;
use crate::post::PostError;
use crate::setup::{
    Access, AddressError, AddressVector, ArmLimitError, CreateError, DeviceAttr, DeviceError, Gid,
    InUseError, MemoryOptions, ModerateError, Port, RegisterError, ResizeError, SrqInit,
};
use crate::wr::RecvWr;

/// What every object of a device is: it can be printed, sent to another thread, shared, and kept.
pub trait Object: fmt::Debug + Send + Sync + 'static {}

impl<T: fmt::Debug + Send + Sync + 'static> Object for T {}

/// An open device.
///
/// ```
/// use cq_verbs::device::Device;
///
/// fn longest_queue<D: Device>(device: &D) -> Result<D::Cq, Box<dyn std::error::Error>> {
///     Ok(device.cq(device.attributes().max_cqe).create()?)
/// }
/// ```
#[doc(alias("ibv_context", "ibv_open_device", "ibv_close_device"))]
pub trait Device: BlockAsync<Instant: Deadline> + Clone + Object {
    /// A protection domain.
    type Pd: DevicePd<Device = Self>;
    /// Memory of the device, registered.
    type Memory: Memory;
    /// Memory of the program, registered.
    type Region: Region;
    /// A completion channel.
    type Channel: Block<Instant = Self::Instant> + Destroy + Object;
    /// A completion queue.
    type Cq: DeviceCq<Handle = Self::CqHandle> + AsRef<Self::CqHandle>;
    /// A handle of a completion queue, to create queue pairs for it while another thread polls it.
    type CqHandle: AsRef<Self::CqHandle> + Clone + Object;
    /// A shared receive queue.
    type Srq: DeviceSrq;
    /// An address handle.
    type Ah: Object;
    /// A queue pair.
    type Qp: DeviceQp<Ah = Self::Ah>;

    /// The device's name.
    #[doc(alias("ibv_get_device_name", "ibv_get_device_list", "ibv_free_device_list"))]
    fn name(&self) -> &str;

    /// The device's attributes.
    #[doc(alias("ibv_query_device", "ibv_query_device_ex"))]
    fn attributes(&self) -> DeviceAttr;

    /// Queries a port. Ports are numbered from 1.
    ///
    /// # Errors
    /// There is no such port, or it has no address yet.
    #[doc(alias = "ibv_query_port")]
    fn port(&self, number: u8) -> Result<Port, DeviceError>;

    /// The same port with the GID at another index of its table.
    ///
    /// # Errors
    /// There is no such port, or no GID at that index.
    fn port_with_gid(&self, number: u8, index: u8) -> Result<Port, DeviceError>;

    /// The GIDs of a port that are in use, each with its index.
    ///
    /// # Errors
    /// There is no such port, or its GIDs can't be read.
    fn gids(&self, port: u8) -> Result<impl Iterator<Item = (u8, Gid)>, DeviceError>;

    /// Allocates a protection domain.
    ///
    /// # Errors
    /// There are too many.
    #[doc(alias = "ibv_alloc_pd")]
    fn alloc_pd(&self) -> Result<Self::Pd, CreateError>;

    /// Creates a completion channel.
    ///
    /// # Errors
    /// No descriptor is available, or there are too many channels.
    #[doc(alias = "ibv_create_comp_channel")]
    fn create_channel(&self) -> Result<Self::Channel, CreateError>;

    /// Begins a completion queue that holds at least `capacity` completions ([O1](cq_core::contract#o1)).
    fn cq(&self, capacity: u32) -> CqBuilder<'_, Self> {
        CqBuilder::new(self, capacity)
    }

    /// Creates a completion queue: as [`CqBuilder::create`].
    ///
    /// # Errors
    /// As for `create`.
    fn create_cq(&self, init: &CqBuilder<'_, Self>) -> Result<Self::Cq, CreateError>;
}

/// A protection domain. Dropping destroys it once its last object is destroyed.
///
/// ```
/// use cq_verbs::device::{Device, DevicePd};
/// use cq_verbs::setup::{Access, RegisterError};
///
/// fn published_page<D: Device>(pd: &D::Pd) -> Result<D::Memory, RegisterError> {
///     pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE_READ)
/// }
/// ```
#[doc(alias("ibv_pd", "ibv_dealloc_pd"))]
pub trait DevicePd: Destroy + Object {
    /// The device that it was allocated from.
    type Device: Device<Pd = Self>;

    /// Allocates and registers memory, zeroed. Drop it [after the queue pairs](Region) that use it.
    ///
    /// # Errors
    /// The length is 0, there is no memory, or the rights are invalid ([Q10](cq_core::contract#q10)).
    #[doc(alias("ibv_alloc_buf", "ibv_reg_buf_mr", "ibv_free_buf"))]
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
    ///   is done when dropping it returns. They stay so permanently if the region is leaked, or if the device fails to
    ///   deregister it. A device fails while something uses the region that was not created by these traits, such as a memory
    ///   window that a C library bound to it. So who frees the memory ensures that there is no such use.
    /// - The device reads and writes them at any time, so only atomic or volatile accesses are allowed, except while no
    ///   request of any queue pair uses them.
    ///
    /// Memory of [`allocate`](Self::allocate) has no such conditions: it is leaked if the device fails to deregister it.
    #[doc(alias = "ibv_reg_mr")]
    #[allow(unsafe_code)]
    unsafe fn register(
        &self,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<<Self::Device as Device>::Region, RegisterError>;

    /// Begins a queue pair whose requests complete in `cq`: a completion queue, what wraps it, or its handle. It is a
    /// reliable connection with the [usual capacities](crate::setup::QpCaps::USUAL), unless the result says otherwise.
    fn qp<'a>(
        &'a self,
        cq: &'a impl AsRef<<Self::Device as Device>::CqHandle>,
    ) -> QpBuilder<'a, Self> {
        QpBuilder::new(self, cq)
    }

    /// Creates a queue pair: as [`QpBuilder::create`].
    ///
    /// # Errors
    /// As for `create`.
    fn create_qp(
        &self,
        init: &QpBuilder<'_, Self>,
    ) -> Result<<Self::Device as Device>::Qp, CreateError>;

    /// Creates a shared receive queue ([Q9](cq_core::contract#q9)).
    ///
    /// # Errors
    /// A capacity is out of range, or there are too many.
    #[doc(alias("ibv_create_srq", "rdma_create_srq", "rdma_create_srq_ex"))]
    fn create_srq(&self, init: &SrqInit) -> Result<<Self::Device as Device>::Srq, CreateError>;

    /// Creates an address handle.
    ///
    /// # Errors
    /// The device has no path to the address.
    #[doc(alias("ibv_create_ah", "ibv_ah", "ibv_destroy_ah"))]
    fn create_ah(&self, to: &AddressVector) -> Result<<Self::Device as Device>::Ah, AddressError>;

    /// Creates a handle of the source of a datagram that this port received, for replies. `wc` is the receive completion
    /// and `grh` the first 40 bytes of the receive buffer.
    ///
    /// # Errors
    /// The completion is not a successful one of a receive ([C4](cq_core::contract#c4)), or the device has no path there.
    #[doc(alias = "ibv_create_ah_from_wc")]
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
    #[doc(alias("ibv_destroy_cq", "ibv_destroy_srq", "ibv_destroy_comp_channel"))]
    fn destroy(self) -> Result<(), InUseError<Self>>;
}

/// A completion queue. Dropping destroys it once its last queue pair is destroyed, and its last handle dropped.
///
/// ```
/// use cq_verbs::device::DeviceCq;
///
/// fn double(cq: &mut impl DeviceCq) -> Result<u32, cq_verbs::setup::ResizeError> {
///     cq.resize(2 * cq.capacity() as u32)
/// }
/// ```
pub trait DeviceCq: ArmWc + Capacity + Destroy + Object {
    /// The device's handle of a completion queue.
    type Handle: Clone + Object;

    /// A handle of the queue, to create queue pairs for it while another thread polls it.
    fn handle(&self) -> Self::Handle;

    /// Changes the capacity to at least this, and returns the new one ([Q12](cq_core::contract#q12)).
    ///
    /// # Errors
    /// The queue holds more completions, the capacity is out of range, or the device can't. Nothing was changed.
    #[doc(alias = "ibv_resize_cq")]
    fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError>;

    /// Delays each event until `count` completions have come, or `period` microseconds have passed since the first of
    /// them.
    ///
    /// # Errors
    /// The device can't, or not so much.
    #[doc(alias = "ibv_modify_cq")]
    fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError>;
}

/// A shared receive queue. Dropping destroys it once its last queue pair is destroyed.
///
/// ```
/// use cq_verbs::device::DeviceSrq;
///
/// /// Requests an event for when a quarter of the receives is left.
/// fn watch(srq: &mut impl DeviceSrq) -> Result<(), cq_verbs::setup::ArmLimitError> {
///     srq.arm_limit(srq.caps().max_wr / 4)
/// }
/// ```
#[doc(alias("ibv_srq", "ibv_get_srq_num", "rdma_destroy_srq"))]
pub trait DeviceSrq: Destroy + Object {
    /// The queue's number, which its asynchronous events carry.
    fn number(&self) -> u32;

    /// The capacities: at least those that were requested.
    fn caps(&self) -> SrqInit;

    /// Posts receives, in order.
    ///
    /// # Errors
    /// A receive is refused; those before it are posted ([Q4](cq_core::contract#q4)).
    #[doc(alias = "ibv_post_srq_recv")]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError>;

    /// Requests one SRQ_LIMIT_REACHED for when fewer than `limit` receives are left; 0 requests none.
    ///
    /// # Errors
    /// The limit exceeds the queue's capacity.
    #[doc(alias = "ibv_modify_srq")]
    fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError>;

    /// The armed limit: 0 once it was reached, or if none was requested.
    ///
    /// # Errors
    /// The device could not be queried.
    #[doc(alias = "ibv_query_srq")]
    fn limit(&self) -> Result<u32, DeviceError>;
}

impl<T: Destroy, O> Destroy for Observed<T, O> {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        let (transport, observer) = self.into_parts();
        transport.destroy().map_err(|error| error.map(|queue| Self::new(queue, observer)))
    }
}

impl<T: DeviceCq, O: Observer + Object> DeviceCq for Observed<T, O> {
    type Handle = T::Handle;

    cq_core::of_target! { self.get_ref(); handle(&self) -> T::Handle; }
    cq_core::of_target! { self.get_mut();
        resize(&mut self, capacity: u32) -> Result<u32, ResizeError>;
        moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError>;
    }
}
