//! The device's memory and what belongs to this process: one for all who open the device in it, mapped
//! at the first open and kept to the end, so that everything in it can be borrowed for ever.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use crate::error::OpenError;
use crate::layout::{ChannelSlot, CqSlot, Entry, MrSlot, ProcessSlot, QpSlot, Tables};
use crate::limits::Limits;
use crate::lock::{Guard, Stuck};
use crate::protocol::lock::{Lock, Owner};
use crate::region::{Mapping, Shared};
use crate::service::Service;
use crate::sync::{self, AtomicU32};

/// The device.
pub struct Fabric {
    memory: &'static Mapping,
    tables: Tables,
    limits: Limits,
    me: Owner,
    domains: AtomicU32,
    /// Whether queue pairs of this process may be noted by itself: see `notes`.
    noted: AtomicU32,
    /// The descriptors of channels. Locked only to raise an event, and to make and end a channel.
    bells: Vec<Mutex<Option<Arc<OwnedFd>>>>,
    service: Service,
}

static FABRIC: Mutex<Option<&'static Fabric>> = Mutex::new(None);

impl Fabric {
    /// The one of this process.
    pub fn open() -> Result<&'static Self, OpenError> {
        let mut opened = FABRIC.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fabric) = *opened {
            return Ok(fabric);
        }
        let limits = Limits::DEFAULT.rounded();
        let failed =
            |errno: Errno| OpenError::NoMemory { bytes: limits.bytes, errno: errno.raw_os_error() };
        let memory: &Mapping = Box::leak(Box::new(Mapping::new(limits.bytes).map_err(failed)?));
        let tables = Tables::new(memory, &limits).ok_or(failed(Errno::NOMEM))?;
        let me = Owner::new(0, 1);
        let bells = (0..limits.channels).map(|_| Mutex::new(None)).collect();
        let (domains, noted) = (AtomicU32::new(0), AtomicU32::new(0));
        let service = Service::new();
        let fabric = Self { memory, tables, limits, me, domains, noted, bells, service };
        Ok(opened.insert(Box::leak(Box::new(fabric))))
    }

    /// Its memory.
    pub const fn memory(&self) -> &'static Mapping {
        self.memory
    }

    /// How much of everything there is.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// This process.
    #[inline]
    pub const fn me(&self) -> Owner {
        self.me
    }

    /// Its place.
    #[inline]
    pub const fn place(&self) -> u16 {
        self.me.place()
    }

    /// Whether a process has gone, without having been told of it.
    pub fn is_dead(&self, owner: Owner) -> bool {
        owner != self.me
    }

    /// Whether the process at a place lives.
    pub fn is_alive(&self, place: u16) -> bool {
        place == self.place()
    }

    /// Waits for a lock, as [`Guard::take`] does.
    ///
    /// # Errors
    /// Somebody who lives does not give it back.
    #[inline]
    pub fn lock<'a>(&self, lock: &'a Lock, repair: impl FnOnce()) -> Result<Guard<'a>, Stuck> {
        Guard::take(lock, self.me, |holder| self.is_dead(holder), repair)
    }

    /// The `len` things at an offset that somebody wrote down; `None` if they are not aligned, or not all in
    /// the arena, so that no such offset leads into the tables.
    #[inline]
    pub fn in_arena<T: Shared>(&self, offset: usize, len: usize) -> Option<&'static [T]> {
        if offset < self.tables.arena.offset() {
            return None;
        }
        self.memory.slice(offset, len)
    }

    /// What wakes those who wait for a time.
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// Wakes the service thread of a process.
    pub fn call(&self, place: u16) {
        if let Some(process) = self.tables.processes.get(usize::from(place)) {
            Service::wake(process);
        }
    }

    /// Its tables.
    #[inline]
    pub const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The queue pair at an index, or with a number. Any number is harmless.
    #[inline]
    pub fn qp(&self, number: u32) -> &'static QpSlot {
        self.tables.qps.at(number)
    }

    /// Whether the queue pair at an index, or with a number, is this process' to run.
    #[inline]
    pub fn is_mine(&self, number: u32) -> bool {
        self.qp(number).life().place() == Some(self.place())
    }

    /// The number of the peer of the queue pair at an index, or with a number.
    #[inline]
    pub fn dest(&self, number: u32) -> &'static AtomicU32 {
        &self.tables.destinations[self.tables.qps.index(number) as usize]
    }

    /// The memory region at an index. Any is harmless.
    #[inline]
    pub fn mr(&self, index: u32) -> &'static MrSlot {
        self.tables.mrs.at(index)
    }

    /// The completion queue at an index. Any is harmless.
    #[inline]
    pub fn cq(&self, index: u32) -> &'static CqSlot {
        self.tables.cqs.at(index)
    }

    /// The channel at an index. Any is harmless.
    #[inline]
    pub fn channel(&self, index: u32) -> &'static ChannelSlot {
        self.tables.channels.at(index)
    }

    /// The descriptor of the channel at an index.
    pub fn bell(&self, index: u32) -> &Mutex<Option<Arc<OwnedFd>>> {
        &self.bells[self.tables.channels.index(index) as usize]
    }

    /// The number of a new protection domain, which no other process gives.
    pub fn next_domain(&self) -> u32 {
        const BITS: u32 = 24;
        let number = sync::next_number(&self.domains);
        (u32::from(self.place()) + 1) << BITS | number & ((1 << BITS) - 1)
    }

    /// Whether queue pairs of this process are noted by itself.
    #[inline]
    pub const fn noted(&self) -> &AtomicU32 {
        &self.noted
    }
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric").finish_non_exhaustive()
    }
}
