//! Registered memory: which bytes a key names, with which rights, and moving them within this process or to another.
//!
//! [`Memory`] is the per-process state of this layer. It owns the table of [regions](region), of which each process
//! keeps its own entries a second time in private memory; the records of [other processes' regions](foreign); the
//! [access path](paths) to each other process; the [stages](stage) through which processes ask each other to
//! [copy](copier); the bindings of this process' [memory windows](binding); the numbers of its
//! [protection domains](domains); the [ownership](crate::protocol::ownership) of this process' send queues, with their
//! in-flight markers; and the locks of [atomics]. A key is resolved to memory only under a [`CopyGuard`](copy_guard), so deregistration can wait
//! until no copy uses the key.

pub mod atomic_op;
pub mod atomics;
pub mod binding;
pub mod bytes;
pub mod copier;
pub mod copy;
pub mod copy_guard;
pub mod domains;
pub mod files;
pub mod foreign;
pub mod key;
pub mod owned_entry;
pub mod paths;
pub mod region;
pub mod remote;
pub mod sge;
pub mod stage;
pub mod transfer;
pub mod view;

use rustix::io::Errno;

use self::atomic_op::STRIPES;
use self::binding::Bindings;
use self::copier::{Copier, CopierEntry};
use self::domains::Domains;
use self::foreign::Foreign;
use self::paths::AccessPaths;
use self::region::{MrSlot, RegionEntry};
use self::stage::Stages;
use crate::error::Stuck;
use crate::protocol::in_flight::{Marker, Seen};
use crate::protocol::lock::{AttachmentId, AttachmentKey, Lock};
use crate::protocol::number::{QpIndex, RegionIndex};
use crate::protocol::ownership::Ownership;
use crate::protocol::steps::{self, Step};
use crate::shm::Shm;
use crate::shm::lock::Guard;
use crate::shm::mapping::{Mapping, Shared};
use crate::shm::plan::Plan;
use crate::shm::recovery::DeathRecovery;
use crate::shm::system::SystemError;
use crate::shm::table::{Entry, Table, opaque, shared};

/// The per-process state of this layer.
pub struct Memory {
    pub shm: &'static Shm,
    /// All regions.
    pub mrs: Table<'static, MrSlot>,
    /// The shared copying state of each process.
    pub copiers: &'static [CopierEntry],
    /// Locks for atomics on memory that other processes can't map: see [`atomics`].
    pub stripes: &'static [Lock],
    /// The stages through which processes ask each other to copy.
    pub stages: Stages<'static>,
    /// The entries of this process' regions, in private memory.
    own: &'static [MrSlot],
    send_queues: &'static [OwnSendQueue],
    /// The records of other processes' regions.
    pub foreign: Foreign,
    /// The access path to each other process.
    pub paths: AccessPaths,
    /// The copying on behalf of other processes.
    pub copier: Copier,
    /// The bindings of this process' memory windows.
    pub windows: Bindings,
    /// The numbers of protection domains.
    pub domains: Domains,
}

/// Ownership of a send queue, and its in-flight marker by which this process judges, in a cache line of its own.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct OwnSendQueue(Ownership);

shared!(OwnSendQueue);

impl Marker for OwnSendQueue {
    fn seen(&self) -> Option<Seen> {
        self.0.seen()
    }
}

/// A table of this process. Pages that are never touched cost nothing.
pub fn private<T: Shared>(len: usize) -> Result<&'static [T], SystemError> {
    let failed = |errno| SystemError::of("mmap", "memory of this process", errno);
    let memory = Mapping::new(len * size_of::<T>()).map_err(failed)?;
    Box::leak(Box::new(memory)).slice(0, len).ok_or(Errno::NOMEM).map_err(failed)
}

/// Its tables in the fabric.
#[derive(Debug)]
pub struct Tables<'m> {
    mrs: Table<'m, MrSlot>,
    copiers: &'m [CopierEntry],
    stripes: &'m [Lock],
    stages: Stages<'m>,
}

impl<'m> Tables<'m> {
    /// Places the tables for so many regions and processes; `None` if the memory is too small.
    pub fn place(plan: &mut Plan<'m>, regions: u32, processes: u32) -> Option<Self> {
        let mrs = Table::place(plan, regions);
        let copiers = plan.table(processes as usize);
        let stripes = plan.table(STRIPES);
        let stages = Stages::place(plan, processes as usize);
        Some(Self { mrs: mrs?, copiers: copiers?, stripes: stripes?, stages: stages? })
    }
}

impl Memory {
    /// The state of a process that begins to use these tables. With `by_service`, the service thread of
    /// the owner copies from and to its memory, and no process accesses another's by system calls.
    ///
    /// # Errors
    /// The system is out of memory.
    pub fn new(
        shm: &'static Shm,
        tables: Tables<'static>,
        queue_pairs: u32,
        by_service: bool,
    ) -> Result<Self, SystemError> {
        let Tables { mrs, copiers, stripes, stages } = tables;
        let regions = mrs.len() as usize;
        let own = private(regions)?;
        let send_queues = private(queue_pairs as usize)?;
        remote::allow();
        if let Some(mine) = copiers.get(shm.attachment().index()) {
            mine.abandoned.clear();
        }
        let (foreign, copier) = (Foreign::default(), Copier::default());
        let paths = AccessPaths::new(shm.shape().processes, by_service);
        let (windows, domains) = (Bindings::default(), Domains::new(domains::MAX));
        Ok(Self {
            shm,
            mrs,
            copiers,
            stripes,
            stages,
            own,
            send_queues,
            foreign,
            paths,
            copier,
            windows,
            domains,
        })
    }

    /// The private entry of this process' region at an index. Any index is valid.
    #[inline]
    pub fn own(&self, index: RegionIndex) -> &'static MrSlot {
        &self.own[index.get() as usize & (self.own.len() - 1)]
    }

    /// Ownership of the send queue of this process' queue pair at an index, with its in-flight marker. Any index is valid.
    #[inline]
    pub fn ownership(&self, index: QpIndex) -> &'static Ownership {
        &self.send_queues[index.get() as usize & (self.send_queues.len() - 1)].0
    }

    /// A number for a new protection domain, unique in the fabric while it is in use, and never 0. `None` if all are
    /// in use, or in a forked child.
    pub fn next_domain(&self) -> Option<u32> {
        // In a forked child the mutex may stay locked for ever: a thread of the parent may have held it.
        let number = self.shm.is_ours().then(|| self.domains.take())??;
        Some((u32::from(self.shm.attachment().get()) + 1) << domains::BITS | number)
    }

    /// Frees the number of a protection domain, which no object uses any more.
    pub fn end_domain(&self, number: u32) {
        if self.shm.is_ours() {
            self.domains.give_back(number % domains::MAX);
        }
    }

    /// Waits for a lock, as [`Guard::take`] does. Meanwhile it serves requests of other processes, which do not
    /// depend on the lock's holder.
    ///
    /// # Errors
    /// A live holder does not release the lock.
    #[inline]
    pub fn lock<'a>(
        &'static self,
        lock: &'a Lock,
        repair: impl FnOnce(),
    ) -> Result<Guard<'a>, Stuck> {
        self.shm.lock(lock, move || copier::serve_if_nobody_does(self), repair)
    }

    /// Has the service thread check for dead processes.
    fn suspect(&self) {
        // If no thread can be started, the next process that attaches checks.
        let _ = self.shm.watch();
    }

    /// Releases what is no longer needed. To be called periodically, while no send queue is owned and nothing is
    /// copied; true if something has to stay until the next call.
    pub fn tidy(&'static self) -> bool {
        copier::tidy(self);
        self.foreign.tidy(self)
    }
}

/// Regions and windows with their files, requests to copiers, and the locks for atomics.
impl DeathRecovery for &'static Memory {
    fn inherit(&self, dead: AttachmentKey) {
        let held = self.stripes.iter().filter(|lock| lock.holder() == Some(dead));
        held.for_each(|lock| drop(self.shm.try_lock(lock)));
    }

    fn free(&self, attachment: AttachmentId) {
        for (index, slot) in self.mrs.all_of(attachment) {
            RegionEntry::erase(slot);
            if let Some((_, generation)) = slot.life().holder() {
                files::remove(&self.shm.path().memory(index.get(), generation));
            }
            steps::done(Step::Recovered);
            slot.life().end(attachment);
        }
        copier::recover(self, attachment);
    }
}

opaque!(Memory);
