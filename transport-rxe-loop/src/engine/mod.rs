//! The engine: it takes requests from their queues to their completions. It has the send queues and their owners, the
//! operations of requester and responder, retry, flush and errors.
//!
//! [`Engine`] is the state that a process has for this: the tables of [queue pairs and shared receive queues](entry),
//! private state of its own queue pairs, the bits of [remote requests](remote_requests), its [alarms], its only
//! [port], queue pairs whose [destroying](queue_pair::Deferred) is deferred, and the [policy](crate::policy) that it
//! asks. It uses [memory](crate::memory) and [completion queues](crate::completion).

pub mod alarms;
pub mod complete;
pub mod connection;
pub mod entry;
pub mod events;
pub mod flush;
pub mod identity;
pub mod in_flight;
pub mod overrun;
pub mod pending_atomic;
pub mod port;
pub mod queue_pair;
pub mod recovery;
pub mod remote_requests;
pub mod requester;
pub mod rescheduled;
pub mod responder;
pub mod retry;
pub mod ring;
pub mod send_queue;
pub mod shared_receives;
pub mod srq;
pub mod ud_address;
pub mod view;

use std::sync::Mutex;

use cq_verbs::setup::DeviceError;

use self::alarms::Alarms;
use self::entry::{OwnQp, QpSlot, SrqSlot};
use self::port::Port;
use self::port::link_layer::LinkLayer;
use self::queue_pair::Deferred;
use crate::completion::Completions;
use crate::memory::copy_guard::CopyGuard;
use crate::memory::{Memory, private};
use crate::policy::Policy;
use crate::protocol::number::{QpIndex, QpNumber, SrqIndex, SrqNumber};
use crate::protocol::ownership::Ownership;
use crate::protocol::requests::Reminder;
use crate::shm::Shm;
use crate::shm::plan::Plan;
use crate::shm::system::SystemError;
use crate::shm::table::{Entry, Table, opaque};
use crate::sync::{self, AtomicU32, AtomicU64};

/// The state of a process that carries requests out.
pub struct Engine {
    pub shm: &'static Shm,
    pub memory: &'static Memory,
    pub completions: &'static Completions,
    pub policy: Policy,
    pub port: Port,
    pub alarms: Alarms,
    /// All queue pairs.
    pub qps: Table<'static, QpSlot>,
    /// All shared receive queues.
    pub srqs: Table<'static, SrqSlot>,
    /// The number of each queue pair's peer. One array, so that all of them are scanned quickly.
    destinations: &'static [AtomicU32],
    /// A bit for each queue pair that its process is to run: see [`remote_requests`].
    requested: &'static [AtomicU64],
    /// Whether this process has left remote requests for itself.
    reminder: Reminder,
    /// Private state of this process' queue pairs, by index. No other process writes it.
    own: &'static [OwnQp],
    /// Queue pairs that were destroyed while their peers were suspended in the middle of a message: deferred destroys.
    deferred: Mutex<Vec<Deferred>>,
}

/// The engine's tables in shared memory.
#[derive(Debug)]
pub struct Tables<'m> {
    qps: Table<'m, QpSlot>,
    srqs: Table<'m, SrqSlot>,
    destinations: &'m [AtomicU32],
    requested: &'m [AtomicU64],
    link_layer: &'m AtomicU32,
}

impl<'m> Tables<'m> {
    /// How many queue pairs there are.
    pub const fn queue_pairs(&self) -> u32 {
        self.qps.len()
    }

    /// Lays out the tables of so many queue pairs and shared receive queues; `None` if the memory is too small.
    pub fn place(plan: &mut Plan<'m>, qps: u32, srqs: u32) -> Option<Self> {
        let requested = plan.table((qps as usize).div_ceil(64));
        let destinations = plan.table(qps as usize);
        let (qps, srqs) = (Table::place(plan, qps), Table::place(plan, srqs));
        let link_layer = plan.one();
        Some(Self {
            qps: qps?,
            srqs: srqs?,
            destinations: destinations?,
            requested: requested?,
            link_layer: link_layer?,
        })
    }
}

impl Engine {
    /// The engine of a process that attaches to these tables, and asks for a link layer.
    ///
    /// # Errors
    /// The system is out of memory, or does not tell the addresses of this machine.
    pub fn new(
        completions: &'static Completions,
        tables: Tables<'static>,
        policy: Policy,
        link_layer: Option<LinkLayer>,
    ) -> Result<Self, SystemError> {
        let Tables { qps, srqs, destinations, requested, link_layer: word } = tables;
        let (shm, memory) = (completions.shm, completions.memory);
        let port = Port::of(shm.path(), LinkLayer::of_fabric(word, link_layer))?;
        let own = private(qps.len() as usize)?;
        Ok(Self {
            shm,
            memory,
            completions,
            policy,
            qps: qps.numbered_from(port.first_number),
            srqs: srqs.numbered_from(port.first_number),
            port,
            alarms: Alarms::new(shm),
            destinations,
            requested,
            reminder: Reminder::default(),
            own,
            deferred: Mutex::default(),
        })
    }

    /// The port with the GIDs that it has by now; in a forked child, with those that it had.
    ///
    /// # Errors
    /// The system does not tell the addresses of this machine.
    pub fn current_port(&self) -> Result<&Port, DeviceError> {
        let refreshed = if self.shm.is_ours() { self.port.refresh() } else { Ok(()) };
        let attempt = "list the addresses of this machine";
        refreshed.map_err(|SystemError { errno, .. }| DeviceError::cannot(attempt, errno))?;
        Ok(&self.port)
    }

    /// What a program gets when it queries the port. Where the system does not tell the addresses, as it was before: paths to
    /// its GID are checked when they are made.
    pub fn port_attributes(&self) -> cq_verbs::setup::Port {
        self.current_port().unwrap_or(&self.port).attributes()
    }

    /// The entry in which the queue pair with this number is, or would be. Any number is safe.
    #[inline]
    pub fn qp(&self, number: QpNumber) -> &'static QpSlot {
        self.qps.at(QpIndex::new(number.get()))
    }

    /// The index of the queue pair with this number. Any number is safe.
    #[inline]
    pub fn index(&self, number: QpNumber) -> QpIndex {
        self.qps.index(number)
    }

    /// Whether this process owns the queue pair at an index, and runs it.
    #[inline]
    pub fn is_mine(&self, index: QpIndex) -> bool {
        self.owns(self.qps.at(index))
    }

    /// Whether this process owns the queue pair in an entry.
    #[inline]
    pub fn owns(&self, slot: &QpSlot) -> bool {
        slot.life().attachment() == Some(self.shm.attachment())
    }

    /// This process' private state of the queue pair at an index.
    #[inline]
    pub fn own(&self, index: QpIndex) -> &'static OwnQp {
        &self.own[self.qps.index(index).get() as usize]
    }

    /// Opens the copy guard of a queue pair of this process, before bytes are moved for it. The caller owns its send
    /// queue.
    #[inline]
    pub fn copy_guard(&self, slot: &'static QpSlot, index: QpIndex) -> CopyGuard<'static> {
        CopyGuard::open(self.memory, &slot.send.in_flight.owner, self.ownership(index))
    }

    /// Ownership of the send queue of this process' queue pair at an index, with its in-flight marker.
    #[inline]
    pub fn ownership(&self, index: QpIndex) -> &'static Ownership {
        self.memory.ownership(self.qps.index(index))
    }

    /// The word with the number of the peer of the queue pair at an index.
    #[inline]
    pub fn dest(&self, index: QpIndex) -> &'static AtomicU32 {
        &self.destinations[self.qps.index(index).get() as usize]
    }

    /// The number of the peer of the queue pair with this number.
    #[inline]
    pub fn peer_of(&self, number: QpNumber) -> QpNumber {
        QpNumber::new(sync::load(self.dest(self.index(number))))
    }

    /// The queue pairs that are connected to the one with this number, one-sided connections included.
    pub fn connected_to(&self, number: QpNumber) -> impl Iterator<Item = QpIndex> {
        let all = self.qps.indices().zip(self.destinations);
        all.filter(move |&(_, dest)| sync::load(dest) == number.get()).map(|(index, _)| index)
    }

    /// The entry in which the shared receive queue with this number is, or would be. Any number is safe.
    #[inline]
    pub fn srq(&self, number: SrqNumber) -> &'static SrqSlot {
        self.srqs.at(SrqIndex::new(number.get()))
    }
}

opaque!(Engine);
