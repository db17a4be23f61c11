//! The device's memory and what belongs to this process: one for all who open the same fabric in it, mapped
//! at the first open and kept to the end, so that everything in it can be borrowed for ever.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cq_core::queue::raw::{Layout, RawQueue};

use crate::api::open::Ways;
use crate::completion::fifo::Bells;
use crate::engine::port::Address;
use crate::engine::queue_pair::Remains;
use crate::error::OpenError;
use crate::layout::{self, ChannelSlot, CqSlot, Entry, MrSlot, OwnQp, QpSlot, SrqSlot, Tables};
use crate::lifecycle::deaths;
use crate::lifecycle::service::Service;
use crate::memory::copier;
use crate::memory::domains::{self, Domains};
use crate::memory::reach::Reach;
use crate::memory::remote::Process;
use crate::policy::faults::Engine;
use crate::protocol::lock::{Lock, Owner};
use crate::protocol::requests::Reminder;
use crate::shm::attach::Attachment;
use crate::shm::error::AttachError;
use crate::shm::limits::{Limits, OtherLimits};
use crate::shm::liveness::Liveness;
use crate::shm::lock::{Guard, Stuck};
use crate::shm::mapping::{Mapping, Shared};
use crate::shm::name::{FabricName, FabricPath};
use crate::shm::registry::REGISTRY;
#[cfg(test)]
use crate::shm::{claim, header};
use crate::sync::{self, AtomicU32};

/// The device.
pub struct Fabric {
    here: &'static Attachment,
    address: Address,
    tables: Tables,
    pub me: Owner,
    domains: Domains,
    /// Whether queue pairs of this process may be noted by itself: see `notes`.
    noted: Reminder,
    /// The descriptors of channels. Locked only to raise an event, and to make and end a channel.
    bells: Bells,
    reach: Reach,
    /// What is not to be written by others of this process' queue pairs, by their indices.
    own: &'static [OwnQp],
    /// Queue pairs that were destroyed while their peers were suspended in the midst of a message.
    remains: Mutex<Vec<Remains>>,
    service: Service,
    /// What is to go wrong in this process.
    faults: Option<Engine>,
    imitates_rxe: bool,
}

impl Fabric {
    /// The one of this name, which is made if there is none; `wanted` is for that. How this process goes about
    /// it, the first opening says.
    pub fn open(
        name: &FabricName,
        wanted: &Limits,
        ways: &Ways,
    ) -> Result<&'static Self, OpenError> {
        let here = REGISTRY.attach(&FabricPath::new(name), wanted, &layout::FORMAT)?;
        let fabric = here.device(|| Self::new(here, ways))?;
        // Nobody may watch who is not connected to another process.
        deaths::look(fabric);
        Ok(fabric)
    }

    /// The one of the unit tests.
    #[cfg(test)]
    pub fn of_tests() -> &'static Self {
        Self::open(&FabricName::from_env().unwrap(), &Limits::default(), &Ways::default()).unwrap()
    }

    /// Takes a place as a process does, and leaves it without its lock, as one that is dead. Who that was.
    #[cfg(test)]
    pub fn die_at(&self, place: u16) -> Owner {
        let word = &header::claims(self.memory(), self.limits())[usize::from(place)];
        let owner = claim::next(place.into(), word);
        assert!(claim::take(word, owner));
        Owner::from_word(owner).unwrap()
    }

    fn new(here: &'static Attachment, ways: &Ways) -> Result<Self, OpenError> {
        let limits = here.limits();
        let damaged = || OpenError::NoMemory { bytes: limits.bytes as usize };
        let address = Address::of(here.path());
        let tables =
            Tables::new(here.memory(), limits, address.first_number).ok_or_else(damaged)?;
        let bells = Bells::new(limits.channels);
        let reach = Reach::new(limits, ways.by_service).map_err(|errno| {
            AttachError::system("mapping what this process needs", here.path().file(), errno)
        })?;
        let (domains, noted) = (Domains::new(domains::MAX), Reminder::default());
        let me = Owner::from_word(here.owner()).ok_or_else(damaged)?;
        let mine = tables.processes.get(usize::from(me.place())).ok_or_else(damaged)?;
        sync::store(&mine.guard, here.guard());
        mine.abandoned.clear();
        let (own, remains) = (own(limits).ok_or_else(damaged)?, Mutex::default());
        let (service, faults) = (Service::new(), ways.faults.clone().map(Engine::new));
        Ok(Self {
            here,
            address,
            tables,
            me,
            domains,
            noted,
            bells,
            reach,
            own,
            remains,
            service,
            faults,
            imitates_rxe: ways.imitates_rxe,
        })
    }

    /// Its memory.
    pub const fn memory(&self) -> &'static Mapping {
        self.here.memory()
    }

    /// How much of everything there is.
    pub const fn limits(&self) -> &'static Limits {
        self.here.limits()
    }

    /// Whether its limits are others than these, as those would be in force.
    pub fn has_other_limits(&self, than: &Limits) -> Option<OtherLimits> {
        let asked = than.in_force(layout::FORMAT.tables).ok()?;
        let in_force = *self.limits();
        (asked != in_force).then_some(OtherLimits { asked, in_force })
    }

    /// Where its files are.
    pub const fn path(&self) -> &'static FabricPath {
        self.here.path()
    }

    /// What its port is called.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Whether this is still the process that opened it, and not a forked child, whose mapping of it is empty.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.here.is_ours()
    }

    /// The place of this process.
    #[inline]
    pub const fn place(&self) -> u16 {
        self.me.place()
    }

    /// Whether a process has gone, though it did not say so. Who never was has.
    pub fn is_dead(&self, owner: Owner) -> bool {
        self.here.alive(owner.to_word()) == Liveness::Dead
    }

    /// Who has a place, alive or not. Any is harmless.
    pub fn owner_at(&self, place: u16) -> Option<Owner> {
        self.here.owner_at(place).and_then(Owner::from_word)
    }

    /// Whether the process at a place lives.
    pub fn is_alive(&self, place: u16) -> bool {
        place == self.place() || self.liveness(place) != Liveness::Dead
    }

    /// What became of the process at a place.
    pub fn liveness(&self, place: u16) -> Liveness {
        self.here.alive_at(place)
    }

    /// Sees to it that others can reach this process, whatever the program has closed. To be called from time to time.
    pub fn tidy(&self) {
        self.here.tidy();
    }

    /// The process at a place, which has this number, as one that the system moves bytes of; `None` if it is not to be
    /// found by that number.
    pub fn meet(&self, place: u16, pid: i32) -> Option<Process> {
        let slot = self.tables.processes.get(usize::from(place))?;
        Process::meet(pid, self.here.owner_at(place)?, sync::load(&slot.guard))
    }

    /// The other processes whose places are taken, alive or not.
    pub fn others(&self) -> impl Iterator<Item = Owner> {
        let owners = self.here.owners().filter_map(Owner::from_word);
        owners.filter(|owner| owner.place() != self.place())
    }

    /// Has the other processes looked after soon: one of them seems to have died.
    pub fn suspect(&'static self) {
        // Where there can be no thread, whoever attaches next sweeps.
        let _ = self.service.watch(self);
    }

    /// What it takes to reach memory.
    #[inline]
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Frees the place of a dead process, of which nothing else is left.
    pub fn free(&self, dead: Owner) {
        self.here.free(dead.to_word());
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
        let is_dead = |holder| {
            copier::serve_if_nobody_does(self);
            self.is_dead(holder)
        };
        Guard::take(lock, self.me, is_dead, repair)
    }

    /// Takes a lock, if nobody who lives has it. What is under it needs no repair.
    pub fn try_lock<'a>(&self, lock: &'a Lock) -> Option<Guard<'a>> {
        Guard::try_take(lock, self.me, |holder| self.is_dead(holder))
    }

    /// The `len` things at an offset that somebody wrote down; `None` if they are not aligned, or not all in
    /// the arena, so that no such offset leads into the tables.
    #[inline]
    pub fn in_arena<T: Shared>(&self, offset: usize, len: usize) -> Option<&'static [T]> {
        if offset < self.tables.arena.offset() {
            return None;
        }
        self.memory().slice(offset, len)
    }

    /// The completion queue at an offset that somebody wrote down; `None` if there can't be one in the arena.
    #[inline]
    pub fn queue_in_arena(&self, offset: usize, layout: Layout) -> Option<RawQueue<'static>> {
        if offset < self.tables.arena.offset() {
            return None;
        }
        self.memory().queue(offset, layout)
    }

    /// What is to go wrong in this process, if anything is.
    pub const fn faults(&self) -> Option<&Engine> {
        self.faults.as_ref()
    }

    /// Whether this process has it [as Soft-RoCE](crate::policy::imitation) is.
    #[inline]
    pub const fn imitates_rxe(&self) -> bool {
        self.imitates_rxe
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

    /// What this process alone knows of its queue pair at an index, or with a number.
    #[inline]
    pub fn own(&self, number: u32) -> &'static OwnQp {
        &self.own[self.tables.qps.index(number) as usize]
    }

    /// What is left of queue pairs that were destroyed.
    pub fn remains(&self) -> MutexGuard<'_, Vec<Remains>> {
        self.remains.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The shared receive queue at an index, or with a number. Any is harmless.
    #[inline]
    pub fn srq(&self, number: u32) -> &'static SrqSlot {
        self.tables.srqs.at(number)
    }

    /// The channel at an index. Any is harmless.
    #[inline]
    pub fn channel(&self, index: u32) -> &'static ChannelSlot {
        self.tables.channels.at(index)
    }

    /// The descriptors of channels that this process has open.
    pub const fn bells(&self) -> &Bells {
        &self.bells
    }

    /// The number of a new protection domain, which no other process gives, and nobody else while it is in use.
    /// Never 0, which zeros would name. `None` if all are in use, or in a forked child.
    pub fn next_domain(&self) -> Option<u32> {
        // What the parent's threads were in the midst of stays so in a child.
        let number = self.is_ours().then(|| self.domains.take())??;
        Some((u32::from(self.place()) + 1) << domains::BITS | number)
    }

    /// Nothing bears the number of a protection domain any more.
    pub fn end_domain(&self, number: u32) {
        if self.is_ours() {
            self.domains.give_back(number % domains::MAX);
        }
    }

    /// Whether queue pairs of this process are noted by itself.
    #[inline]
    pub const fn noted(&self) -> &Reminder {
        &self.noted
    }
}

/// Memory of this process' alone for so many queue pairs. Pages of it that nobody touches cost nothing.
fn own(limits: &Limits) -> Option<&'static [OwnQp]> {
    let count = limits.queue_pairs as usize;
    let memory = Box::leak(Box::new(Mapping::new(count * size_of::<OwnQp>()).ok()?));
    memory.slice(0, count)
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
