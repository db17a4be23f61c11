//! Contexts: the open device, its attributes, and the objects made from it.

use std::sync::Arc;

use cq_core::wc::Wc;
use cq_verbs::device::CqBuilder;
use cq_verbs::setup::{
    AddressError, AddressVector, AtomicCap, DeviceAttr, DeviceError, Errno, Gid, Port,
};

use crate::api::ah;
use crate::api::attr::MAX_RD_ATOMIC;
use crate::api::channel::CompletionChannel;
use crate::api::cq::Cq;
use crate::api::domain::Domain;
use crate::api::limits::{Limits, OtherLimitsError};
use crate::api::pd::ProtectionDomain;
use crate::api::srq::MAX_SRQ_WR;
use crate::completion::channel::EventChannel;
use crate::completion::queue::MAX_CQE;
use crate::engine::port;
use crate::engine::port::gids::GidEntry;
use crate::engine::requester::grh;
use crate::engine::ring::{MAX_INLINE, MAX_QP_WR};
use crate::error::CreateError;
use crate::lifecycle::{Device, deaths};
use crate::memory::domains;
use crate::memory::sge::MAX_SGE;
use crate::policy::faults::{Injected, Injector};

pub(crate) const NAME: &str = "loop0";

/// An open device. All contexts of a [fabric](crate::OpenOptions#fabrics) share it: queue pairs of different contexts
/// and processes connect by their endpoints.
///
/// ```
/// use transport_rxe_loop::{Context, devices};
///
/// assert_eq!(devices()?, ["loop0"]);
/// let context = Context::open("loop0")?;
/// let cq = context.cq(100).create()?;
/// assert_eq!(cq.capacity(), 100);
/// assert!(Context::open("mlx5_0").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A process is attached to a fabric from the first time it opens it until the process ends. The [manual](crate::manual)
/// has what several processes meet: deaths, suspension, forks.
///
/// # Asynchronous events
/// A context receives the [asynchronous events](cq_verbs::async_event::BlockAsync) of the objects that were made through it.
/// Clones share them: each event is delivered to one of the clones.
///
/// ```
/// use transport_rxe_loop::verbs::async_event::{AsyncEvent, AsyncEventType, Element};
/// use transport_rxe_loop::verbs::async_event::{AsyncEvents, BlockAsync};
/// use transport_rxe_loop::{Context, QpAttr, QpState};
///
/// let mut context = Context::open("loop0")?;
/// let (port, pd, cq) = (context.port(1)?, context.alloc_pd()?, context.cq(16).create()?);
/// let mut qp = pd.qp(&cq).create()?;
/// qp.connect(&port, &qp.endpoint(&port))?;
/// assert_eq!(context.take_async_event(), Ok(None));
///
/// qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true))?;
/// let (event_type, element) = (AsyncEventType::SQ_DRAINED, Element::Qp(qp.number()));
/// assert_eq!(context.wait_async(None)?, Some(AsyncEvent { event_type, element }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | event | object | cause |
/// |---|---|---|
/// | CQ_ERR | completion queue | it overran; reported once ([O2](cq_core::contract#o2)) |
/// | QP_FATAL | queue pair | an overrun of one of its completion queues put it into ERR ([O4](cq_core::contract#o4)) |
/// | QP_REQ_ERR | queue pair | a request of its peer that it does not allow put it into ERR ([Q7](cq_core::contract#q7)) |
/// | QP_ACCESS_ERR | queue pair | a request of its peer for memory that the peer may not use put it into ERR ([Q7](cq_core::contract#q7)) |
/// | SQ_DRAINED | queue pair | in SQD, all sends that had begun are done; reported on request |
/// | QP_LAST_WQE_REACHED | queue pair with an SRQ | in ERR, it has taken its last receive; reported once ([Q9](cq_core::contract#q9)) |
/// | SRQ_LIMIT_REACHED | shared receive queue | fewer receives are left than its limit; reported once ([Q9](cq_core::contract#q9)) |
///
/// Events are delivered in order, as long as no more than some thousands are unread, and no object is destroyed and no
/// process dies while they are. The descriptor is readable exactly while there is one, and each event is an edge ([N14](cq_core::contract#n14)).
///
/// Taking an event acknowledges it. An event carries the key or number of its object and no reference, so
/// destroying an object never waits for its events: its unread events are discarded, so that an event names an object that
/// exists when it is taken ([and after that](cq_verbs::async_event)).
#[derive(Clone, Debug)]
pub struct Context {
    /// The device.
    pub(crate) device: &'static Device,
    /// The channel of its asynchronous events. All objects made through it keep the channel.
    pub(crate) events: Arc<EventChannel>,
    other_limits: Option<OtherLimitsError>,
}

impl Context {
    pub(super) fn new(
        device: &'static Device,
        events: Arc<EventChannel>,
        asked: Option<Limits>,
    ) -> Self {
        let other_limits = asked.and_then(|asked| asked.others_than(device.shm.shape()));
        Self { device, events, other_limits }
    }

    /// The device's name.
    #[must_use]
    pub const fn name(&self) -> &str {
        NAME
    }

    /// The device's attributes. Those of the port are [`port`](Self::port)'s.
    ///
    /// Regions and windows share a table: together there are at most `max_mr`, and no window uses its first entry.
    ///
    /// # Atomics
    /// COMP_SWAP, FETCH_ADD and atomic writes are atomic among the queue pairs of the device, in all processes. No
    /// specification promises more. Here, atomic instructions on memory [of the
    /// device](crate::ProtectionDomain::allocate) are included. On other memory they are included only with respect to
    /// operations that the owning process carries out itself: other processes read the eight bytes and write them back,
    /// under a lock that the processes share. Memory that is registered in two ways, or shared by other means than the
    /// device, counts as different memory.
    #[must_use]
    #[doc(alias = "ibv_query_device")]
    pub fn attributes(&self) -> DeviceAttr {
        let limits = self.limits();
        let mut attr = DeviceAttr::default();
        attr.max_qp = limits.queue_pairs;
        attr.max_cq = limits.completion_queues;
        attr.max_mr = limits.memory_regions;
        attr.max_mw = limits.memory_regions - 1;
        attr.max_pd = domains::MAX;
        attr.max_ah = u32::MAX;
        attr.max_srq = limits.shared_receive_queues;
        attr.max_mr_size = usize::MAX as u64;
        attr.max_cqe = MAX_CQE;
        (attr.max_cq_count, attr.max_cq_period) = (u16::MAX, u16::MAX);
        attr.max_qp_wr = MAX_QP_WR;
        attr.max_sge = MAX_SGE as u32;
        attr.max_inline = Some(MAX_INLINE);
        (attr.max_srq_wr, attr.max_srq_sge) = (MAX_SRQ_WR, MAX_SGE as u32);
        (attr.max_qp_rd_atom, attr.max_qp_init_rd_atom) = (MAX_RD_ATOMIC, MAX_RD_ATOMIC);
        attr.atomic_cap = AtomicCap::HCA;
        attr.mem_window_type_2b = true;
        attr.num_comp_vectors = 1;
        attr.phys_port_cnt = 1;
        attr
    }

    /// The limits of its fabric, whose [bytes](Limits::bytes) all queues share.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::from(self.device.shm.shape())
    }

    /// The limits in force, if this context requested [other limits](crate::OpenOptions::limits). The first process
    /// that opens a fabric determines its limits.
    ///
    /// ```
    /// use transport_rxe_loop::{Limits, OpenOptions};
    ///
    /// let name = format!("first-{}", std::process::id());
    /// let asking = |queue_pairs| OpenOptions::new().fabric(&name).limits(Limits::default().queue_pairs(queue_pairs));
    /// let first = asking(64).open("loop0")?;
    /// assert_eq!(first.other_limits(), None);
    /// let other = asking(2048).open("loop0")?.other_limits().unwrap();
    /// assert_eq!((other.asked.queue_pairs, other.in_force.queue_pairs), (2048, 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn other_limits(&self) -> Option<OtherLimitsError> {
        self.other_limits
    }

    /// Whether the device is [strict](crate::OpenOptions::strict) in this process.
    #[must_use]
    pub const fn is_strict(&self) -> bool {
        self.device.engine.policy.strict.is_on()
    }

    /// The [faults](crate::OpenOptions::faults) that were injected in this process so far; of a [strict
    /// device](crate::OpenOptions::strict), at least the requests that were deferred. `None` if no faults were requested,
    /// or in a forked child.
    #[must_use]
    pub fn injected(&self) -> Option<Injected> {
        self.device
            .engine
            .policy
            .faults
            .as_ref()
            .filter(|_| self.device.shm.is_ours())
            .map(Injector::injected)
    }

    /// Creates a completion channel.
    ///
    /// # Errors
    /// There are too many channels, no descriptor is available, or this is a forked child.
    #[doc(alias = "ibv_create_comp_channel")]
    pub fn create_channel(&self) -> Result<CompletionChannel, CreateError> {
        let Self { device, .. } = *self;
        let events =
            deaths::retry_after_recovery(device, || EventChannel::new(device.completions))?;
        Ok(CompletionChannel { events: Arc::new(events) })
    }

    /// Creates a completion queue: as [`CqBuilder::create`].
    ///
    /// # Errors
    /// The capacity is 0 or exceeds the device's limit, the completion vector is not 0, there are too many queues, there is
    /// no memory, or the channel belongs to another fabric.
    pub fn create_cq(&self, init: &CqBuilder<'_, Self>) -> Result<Cq, CreateError> {
        Cq::new(self.device, &self.events, init)
    }

    /// Queries a port, with the GID at the first index that has one: the only port is number 1.
    ///
    /// # Errors
    /// There is no port of this number.
    #[doc(alias = "ibv_query_port")]
    pub fn port(&self, number: u8) -> Result<Port, DeviceError> {
        check_number(number)?;
        Ok(self.device.engine.port_attributes())
    }

    /// The port with this number, and the GIDs that it has by now.
    fn current_port(&self, number: u8) -> Result<&port::Port, DeviceError> {
        check_number(number)?;
        self.device.engine.current_port()
    }

    /// The same port with another of its [`gids`](Self::gids).
    ///
    /// # Errors
    /// As for [`gids`](Self::gids); or there is no GID at that index, or none any more.
    pub fn port_with_gid(&self, number: u8, index: u8) -> Result<Port, DeviceError> {
        let attempt = "find a GID at that index of the port's table";
        let none = DeviceError::cannot(attempt, Errno::ENOENT);
        self.current_port(number)?.with_gid(index).ok_or(none)
    }

    /// The GIDs of a port, each with its index.
    ///
    /// # Errors
    /// There is no such port. On Ethernet, the system does not report the addresses of this machine.
    #[doc(alias("ibv_query_gid", "ibv_query_gid_ex", "ibv_query_gid_table"))]
    pub fn gids(&self, port: u8) -> Result<Vec<(u8, Gid)>, DeviceError> {
        let table = (0..=u8::MAX).zip(self.gid_table(port)?.into_iter().map(|entry| entry.gid));
        Ok(table.filter(|(_, gid)| *gid != Gid::default()).collect())
    }

    /// The GID table of a port, by index, as `ibv_query_gid_table(3)` returns it. Paths may begin and end at each of the GIDs.
    ///
    /// | link layer | GIDs |
    /// |---|---|
    /// | InfiniBand | index 0 is link-local; the others have the same GUID in the site-local subnets 1 to 7 |
    /// | Ethernet | the addresses of this machine's network interfaces; IPv4 addresses are mapped. Those of loopback interfaces come last. Where there are fewer than four, `127.0.0.1`, `127.0.0.2` … follow |
    ///
    /// On Ethernet the table [changes](crate::manual#ethernet) as the addresses do: a new one comes at the end, and an index
    /// whose address has gone has the GID `::`.
    ///
    /// ```
    /// use transport_rxe_loop::Context;
    ///
    /// let context = Context::open("loop0")?;
    /// let table = context.gid_table(1)?;
    /// assert_eq!(table[3].gid, context.port_with_gid(1, 3)?.gid);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`gids`](Self::gids).
    pub fn gid_table(&self, port: u8) -> Result<Vec<GidEntry>, DeviceError> {
        Ok(self.current_port(port)?.gids())
    }

    /// The source of a datagram that this port received, as `ibv_init_ah_from_wc(3)` returns it. `wc` is the receive
    /// completion and `grh` the first 40 bytes of the receive buffer, which are read only if the completion has the GRH
    /// flag.
    ///
    /// # Errors
    /// There is no such port, the completion is not a successful one of a receive ([C4](cq_core::contract#c4)), or
    /// `grh` is not the GRH that came with it.
    #[doc(alias = "ibv_init_ah_from_wc")]
    pub fn init_ah_from_wc(
        &self,
        port: u8,
        wc: &Wc,
        grh: &[u8; grh::BYTES],
    ) -> Result<AddressVector, AddressError> {
        ah::source(port, wc, grh, self.device.engine.current_port()?)
    }

    /// Allocates a protection domain.
    ///
    /// # Errors
    /// The process has 16,777,216 already, or is a forked child.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn alloc_pd(&self) -> Result<ProtectionDomain, CreateError> {
        Ok(ProtectionDomain { domain: Arc::new(Domain::new(self.device, &self.events)?) })
    }
}

fn check_number(port: u8) -> Result<(), DeviceError> {
    let attempt = "query the port: the device has port 1 only";
    let none = DeviceError::cannot(attempt, Errno::EINVAL);
    if port == port::NUMBER { Ok(()) } else { Err(none) }
}
