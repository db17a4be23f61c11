//! Identifiers, `struct rdma_cm_id`: what stands for a connection, as a socket does.

use std::collections::BTreeMap;
use std::mem::offset_of;

use rustix_futex_sync::Mutex;
use transport_rxe_loop::cm::CmId;

use crate::channel::{self, CHANNELS, Channel};
use crate::context::Opening;
use crate::cq::{self, Queue};
use crate::errno::Errno;
use crate::pd::Domain;
use crate::raw::addr_info::AddrInfo;
use crate::raw::child::{Alone, Renewed};
use crate::raw::cm::Kept;
use crate::raw::{Kind, Slot, Table};
use crate::sys::*;

/// An identifier. What programs see of it is in its slot.
#[derive(Default)]
pub struct Id {
    /// The device's.
    pub cm: Option<CmId>,
    /// It has a channel of its own, and its calls wait for their events.
    pub is_synchronous: bool,
    /// What comes before the private data that the program gives `rdma_connect`.
    pub connect_data: Vec<u8>,
    /// What the requests of a listener get a queue pair of, in the domain of the listener.
    pub template: Option<Kept<ibv_qp_init_attr>>,
    /// What `rdma_route::path_rec` points to.
    pub path: Option<Box<Kept<ibv_sa_path_rec>>>,
    /// What `rdma_resolve_addrinfo(3)` has found, until the program asks for it.
    pub resolved: Option<Vec<AddrInfo>>,
    /// The completion queues that were made for its queue pair, since the program gave none: for sends, for receives.
    pub queues: [Option<OwnQueue>; 2],
}

impl Id {
    /// The device's identifier.
    ///
    /// # Errors
    /// ENOENT: it is being destroyed.
    pub fn cm(&self) -> Result<&CmId, Errno> {
        self.cm.as_ref().ok_or(Errno::NOENT)
    }
}

impl Kind for Id {
    type Public = rdma_cm_id;
    type Face = rdma_cm_id;
    const HANDLE: Option<usize> = None;
    // It begins with its context, which it gets when it is bound to a device.
    const STAYS: bool = false;
}

/// Those of this process.
pub static IDS: Table<Id> = Table::new();

/// By the numbers that events name them by.
pub static BY_KEY: Renewed<Mutex<BTreeMap<u64, &'static Slot<Id>>>> =
    Renewed::new(Mutex::new(BTreeMap::new()));

/// The identifier that an event names, with an event more to be acknowledged; `None` if it is being destroyed.
pub fn named(key: u64) -> Option<&'static Slot<Id>> {
    let by_key = BY_KEY.get().lock();
    let slot = *by_key.get(&key)?;
    slot.side().reports.take();
    Some(slot)
}

/// What a connection request brings, by its key, too: its slot may be another's later.
#[derive(Clone, Copy)]
pub struct Request(&'static Slot<Id>, u64);

impl Request {
    /// That of a slot; `None` if it is being destroyed.
    pub fn of(slot: &'static Slot<Id>) -> Option<Self> {
        let key = slot.with(|id| id.cm.as_ref().map(CmId::key)).ok().flatten();
        key.map(|key| Self(slot, key))
    }

    /// Lets its events come, unless it has gone.
    pub fn begin(self) {
        let Self(slot, key) = self;
        let _ = slot.with(|id| {
            let cm = id.cm.as_ref().filter(|cm| cm.key() == key);
            // What the system refuses here, accepting asks for again.
            cm.map(CmId::begin)
        });
    }
}

/// Whether it is for datagrams.
pub fn is_datagram(id: &Slot<Id>) -> bool {
    id.load::<ibv_qp_type>(offset_of!(rdma_cm_id, qp_type)) == IBV_QPT_UD
}

/// Its channel.
pub fn channel_of(id: &Slot<Id>) -> *mut rdma_event_channel {
    id.load(offset_of!(rdma_cm_id, channel))
}

/// Its queue pair, or null.
pub fn qp_of(id: &Slot<Id>) -> *mut ibv_qp {
    id.load(offset_of!(rdma_cm_id, qp))
}

/// A completion queue and its channel. Both are destroyed with this, unless something else uses them.
pub struct OwnQueue {
    pub cq: &'static Slot<Queue>,
    pub channel: &'static Slot<Channel>,
}

impl OwnQueue {
    /// One with this capacity, whose events name this identifier as their context.
    ///
    /// # Errors
    /// As for `ibv_create_comp_channel` and `ibv_create_cq`.
    pub fn new(id: &Slot<Id>, context: *const ibv_context, cqe: u32) -> Result<Self, Errno> {
        let channel = channel::create_comp_channel(context)?;
        let cq_context = id.face().cast();
        let init = ibv_cq_init_attr_ex { cqe, cq_context, channel, ..ibv_cq_init_attr_ex::ZEROED };
        let made = CHANNELS
            .find(channel)
            .and_then(|channel| Ok(Self { cq: cq::create(context, &init, false)?, channel }));
        made.inspect_err(|_| _ = channel::destroy_comp_channel(channel))
    }
}

impl Drop for OwnQueue {
    fn drop(&mut self) {
        // Either may be used by what the program made, or have been destroyed by it.
        let _ = cq::destroy_cq(self.cq.face());
        let _ = channel::destroy_comp_channel(self.channel.face());
    }
}

/// The one context of a process that its identifiers are bound to, and the protection domain that they use by default.
#[derive(Clone, Copy)]
pub struct Device {
    pub context: &'static Slot<Opening>,
    pub pd: &'static Slot<Domain>,
}

/// That of this process, once it is opened.
pub static DEVICE: Renewed<Mutex<Option<Device>>> = Renewed::new(Mutex::new(None));

/// Forgets the device of the parent.
pub fn renew(alone: &Alone) {
    DEVICE.renew(alone, Mutex::new(None));
    BY_KEY.renew(alone, Mutex::new(BTreeMap::new()));
}

/// The ports that programs see, in network order; 0, if the identifier has no such address, or is none.
pub fn src_port(id: *const rdma_cm_id) -> u16 {
    port(id, offset_of!(rdma_cm_id, route.addr.anon_1))
}

/// As [`src_port`], of the peer's address.
pub fn dst_port(id: *const rdma_cm_id) -> u16 {
    port(id, offset_of!(rdma_cm_id, route.addr.anon_2))
}

/// Where a port is, in an address of either family.
const PORT: usize = offset_of!(sockaddr_in, sin_port);

const _: () = assert!(PORT == offset_of!(sockaddr_in6, sin6_port));

/// The port of an address of an identifier, by where the address is.
fn port(id: *const rdma_cm_id, at: usize) -> u16 {
    let Ok(slot) = IDS.find(id) else { return 0 };
    match c_int::from(slot.load::<sa_family_t>(at)) {
        libc::AF_INET | libc::AF_INET6 => slot.load(at + PORT),
        _ => 0,
    }
}
