//! Memory of programs: which key stands for which bytes, with which rights, and moving them, in this process or another.
//!
//! [`Memory`] is what a process has for that. It owns the table of [regions](region), of which each process keeps its own
//! entries once more in memory that nobody else writes; what is known of the regions of [others](foreign); how each other
//! process is [reached](paths); and the [stages](stage) by which they ask each other to [copy](copier). A key becomes memory
//! only while a [`CopyGuard`](copy_guard) is there, which says that bytes are being moved: so who takes memory back can wait
//! until they are not.

pub mod atomic_op;
pub mod atomics;
pub mod binding;
pub mod copier;
pub mod copy;
pub mod copy_guard;
pub mod domains;
pub mod files;
pub mod foreign;
pub mod owned_entry;
pub mod paths;
pub mod region;
pub mod remote;
pub mod sge;
pub mod stage;
pub mod transfer;

use std::fmt;

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
use crate::protocol::lock::{Lock, Owner};
use crate::protocol::steps::{self, Step};
use crate::shm::Shm;
use crate::shm::lock::Guard;
use crate::shm::mapping::Mapping;
use crate::shm::owners::Owners;
use crate::shm::plan::Plan;
use crate::shm::table::{Entry, Table};

/// What a process has for reaching memory.
pub struct Memory {
    pub shm: &'static Shm,
    mrs: Table<MrSlot>,
    copiers: &'static [CopierEntry],
    /// Held by who does an atomic on memory that others can't map: see [`atomics`].
    stripes: &'static [Lock],
    stages: Stages,
    /// What this process says to itself of its regions.
    own: &'static [MrSlot],
    foreign: Foreign,
    paths: AccessPaths,
    copier: Copier,
    windows: Bindings,
    domains: Domains,
}

/// Its tables.
#[derive(Debug)]
pub struct Tables {
    mrs: Table<MrSlot>,
    copiers: &'static [CopierEntry],
    stripes: &'static [Lock],
    stages: Stages,
}

impl Tables {
    /// Places those of so many regions and processes; `None` if the memory is too small.
    pub fn place(plan: &mut Plan, regions: u32, processes: u32) -> Option<Self> {
        let mrs = Table::place(plan, regions);
        let copiers = plan.table(processes as usize);
        let stripes = plan.table(STRIPES);
        let stages = Stages::place(plan, processes as usize);
        Some(Self { mrs: mrs?, copiers: copiers?, stripes: stripes?, stages: stages? })
    }
}

impl Memory {
    /// What a process has that begins to use these tables. With `by_service` other processes always copy by themselves.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(shm: &'static Shm, tables: Tables, by_service: bool) -> Result<Self, Errno> {
        let Tables { mrs, copiers, stripes, stages } = tables;
        let regions = mrs.len() as usize;
        // Pages of it that nobody touches cost nothing.
        let own = Box::leak(Box::new(Mapping::new(regions * size_of::<MrSlot>())?));
        let own = own.slice(0, regions).ok_or(Errno::NOMEM)?;
        remote::allow();
        if let Some(mine) = copiers.get(usize::from(shm.place())) {
            mine.abandoned.clear();
        }
        let (foreign, copier) = (Foreign::new(), Copier::new());
        let paths = AccessPaths::new(shm.shape().processes, by_service);
        let (windows, domains) = (Bindings::default(), Domains::new(domains::MAX));
        Ok(Self {
            shm,
            mrs,
            copiers,
            stripes,
            stages,
            own,
            foreign,
            paths,
            copier,
            windows,
            domains,
        })
    }

    /// The memory region at an index. Any is harmless.
    #[inline]
    pub fn mr(&self, index: u32) -> &'static MrSlot {
        self.mrs.at(index)
    }

    /// What this process says to itself of its region at an index. Any is harmless.
    #[inline]
    pub fn own(&self, index: u32) -> &'static MrSlot {
        &self.own[index as usize & (self.own.len() - 1)]
    }

    /// All regions.
    #[cfg(test)]
    pub const fn mrs(&self) -> &Table<MrSlot> {
        &self.mrs
    }

    /// What each process says of its copying.
    #[cfg(test)]
    pub const fn copiers(&self) -> &'static [CopierEntry] {
        self.copiers
    }

    /// The locks of those who do an atomic.
    #[cfg(test)]
    pub const fn stripes(&self) -> &'static [Lock] {
        self.stripes
    }

    /// By which processes ask each other to copy.
    #[cfg(test)]
    pub const fn stages(&self) -> &Stages {
        &self.stages
    }

    /// How other processes are reached.
    #[cfg(test)]
    pub const fn paths(&self) -> &AccessPaths {
        &self.paths
    }

    /// The numbers of protection domains.
    #[cfg(test)]
    pub const fn domains(&self) -> &Domains {
        &self.domains
    }

    /// What it knows of other processes' regions.
    #[inline]
    pub const fn foreign(&self) -> &Foreign {
        &self.foreign
    }

    /// What its memory windows are bound to.
    pub const fn windows(&self) -> &Bindings {
        &self.windows
    }

    /// What copies where the system refuses.
    pub const fn copier(&self) -> &Copier {
        &self.copier
    }

    /// The number of a new protection domain, which no other process gives, and nobody else while it is in use.
    /// Never 0, which zeros would name. `None` if all are in use, or in a forked child.
    pub fn next_domain(&self) -> Option<u32> {
        // What the parent's threads were in the midst of stays so in a child.
        let number = self.shm.is_ours().then(|| self.domains.take())??;
        Some((u32::from(self.shm.place()) + 1) << domains::BITS | number)
    }

    /// Nothing bears the number of a protection domain any more.
    pub fn end_domain(&self, number: u32) {
        if self.shm.is_ours() {
            self.domains.give_back(number % domains::MAX);
        }
    }

    /// Waits for a lock, as [`Guard::take`] does, and serves others who ask this process meanwhile: they have nothing to
    /// do with who holds it.
    ///
    /// # Errors
    /// Somebody who lives does not give it back.
    #[inline]
    pub fn lock<'a>(
        &'static self,
        lock: &'a Lock,
        repair: impl FnOnce(),
    ) -> Result<Guard<'a>, Stuck> {
        self.shm.lock(lock, || copier::serve_if_nobody_does(self), repair)
    }

    /// A process seems to have died.
    fn suspect(&self) {
        // Where there can be no thread, the next who attaches looks.
        let _ = self.shm.watch();
    }

    /// Forgets what is over. To be called from time to time, while no send queue is owned and nothing copied; true if
    /// something is left for the next time.
    pub fn tidy(&'static self) -> bool {
        copier::tidy(self);
        self.foreign.tidy(self)
    }
}

/// Regions and windows, their files, what was asked of copiers, and locks of words.
impl Owners for &'static Memory {
    fn inherit(&self, dead: Owner) {
        let held = self.stripes.iter().filter(|lock| lock.holder() == Some(dead));
        held.for_each(|lock| drop(self.shm.try_lock(lock)));
    }

    fn free(&self, place: u16) {
        for (index, slot) in self.mrs.all_of(place) {
            RegionEntry::erase(slot);
            if let Some((_, generation)) = slot.life().holder() {
                files::remove(&self.shm.path().memory(index, generation));
            }
            steps::done(Step::Swept);
            slot.life().end(place);
        }
        copier::sweep(self, place);
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}
