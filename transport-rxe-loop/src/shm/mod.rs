//! Memory that processes of a user share: the file, attaching to it, tables whose entries have owners, locks whose
//! holders may die, and who is alive. Another device could lie in it as well: nothing here knows what the tables hold.
//!
//! [`Shm`] is what a process has of a fabric: its [attachment](attachment::Attachment), the memory that can be
//! [allocated](arena), and the word on which its [service thread](thread) sleeps. It finds out which processes are
//! [dead](Shm::is_dead), and is told who noticed one ([`Shm::watch`]); what is done about a death is `lifecycle`'s, by
//! what each table says of [itself](owners::Owners).

pub mod arena;
pub mod attach;
pub mod attachment;
pub mod claim;
pub mod descriptor;
pub mod error;
pub mod file;
pub mod fork;
pub mod guard_page;
pub mod hash;
pub mod header;
pub mod limits;
pub mod liveness;
pub mod lock;
pub mod mapping;
pub mod name;
pub mod owners;
pub mod plan;
pub mod prune;
pub mod registry;
pub mod shape;
pub mod signals;
pub mod table;
pub mod thread;
pub mod unshared;

use std::fmt;
use std::io;
use std::ptr::NonNull;

use self::arena::Arena;
use self::attachment::Attachment;
use self::liveness::Liveness;
use self::lock::Guard;
use self::mapping::{Mapping, Shared};
use self::name::FabricPath;
use self::plan::Plan;
use self::shape::Shape;
use self::table::shared;
use self::thread::ServiceThread;
use crate::error::Stuck;
use crate::protocol::lock::{Lock, Owner};
use crate::sync::{self, AtomicU8, AtomicU32, AtomicU64};

/// What a process has of a fabric.
pub struct Shm {
    attachment: &'static Attachment,
    me: Owner,
    own: Own,
    arena: Arena,
    thread: ServiceThread,
}

/// What shared memory itself has in the fabric, before the tables of the device.
#[derive(Debug)]
pub struct Own {
    common: &'static Common,
    processes: &'static [ProcessEntry],
    granules: &'static [AtomicU8],
}

/// What there is of once.
#[repr(C, align(128))]
struct Common {
    /// Held by who frees what a dead process had.
    frees: Lock,
    /// Held by who allocates memory.
    arena: Lock,
    /// Where the arena was left.
    arena_next: AtomicU32,
}

/// A process that is attached.
#[repr(C, align(64))]
struct ProcessEntry {
    /// Counts how often its service thread was asked for, which sleeps on it.
    calls: AtomicU32,
    /// Where its [guard page](guard_page) is.
    guard: AtomicU64,
}

shared!(Common, ProcessEntry);

impl fmt::Debug for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Common").finish_non_exhaustive()
    }
}

impl fmt::Debug for ProcessEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessEntry").finish_non_exhaustive()
    }
}

impl Own {
    /// Places it; `None` if the memory is too small.
    pub fn place(shape: &Shape, plan: &mut Plan) -> Option<Self> {
        plan.note(arena::GRANULE);
        let common = plan.table(1);
        let processes = plan.table(shape.processes as usize);
        let granules = plan.table(shape.bytes as usize / arena::GRANULE);
        Some(Self { common: common?.first()?, processes: processes?, granules: granules? })
    }
}

impl Shm {
    /// What a process has where it is attached, and the tables that `place` finds there; `None` if the memory is too small for
    /// them.
    pub fn new<T>(
        attachment: &'static Attachment,
        place: impl FnOnce(&Shape, &mut Plan) -> Option<T>,
    ) -> Option<(Self, T)> {
        let mut plan = Plan::of(attachment.memory());
        let own = Own::place(attachment.shape(), &mut plan)?;
        let tables = place(attachment.shape(), &mut plan)?;
        let arena = Arena::new(&own.common.arena_next, own.granules, plan.end());
        let me = Owner::from_word(attachment.owner())?;
        sync::store(&own.processes.get(usize::from(me.place()))?.guard, attachment.guard());
        Some((Self { attachment, me, own, arena, thread: ServiceThread::new() }, tables))
    }

    /// The bytes of the fabric.
    pub const fn memory(&self) -> &'static Mapping {
        self.attachment.memory()
    }

    /// How much of everything there is.
    pub const fn shape(&self) -> &'static Shape {
        self.attachment.shape()
    }

    /// Where its files are.
    pub const fn path(&self) -> &'static FabricPath {
        self.attachment.path()
    }

    /// Memory to allocate.
    pub const fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Held by who frees what a dead process had: one at a time.
    pub const fn frees(&self) -> &'static Lock {
        &self.own.common.frees
    }

    /// Held by who allocates memory.
    #[cfg(test)]
    pub const fn allocates(&self) -> &'static Lock {
        &self.own.common.arena
    }

    /// Whether this is still the process that opened it, and not a forked child, whose mapping of it is empty.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.attachment.is_ours()
    }

    /// This process, in what it writes.
    #[cfg(test)]
    #[inline]
    pub const fn me(&self) -> Owner {
        self.me
    }

    /// The place of this process.
    #[inline]
    pub const fn place(&self) -> u16 {
        self.me.place()
    }

    /// Whether a process has gone, though it did not say so. Who never was has.
    pub fn is_dead(&self, owner: Owner) -> bool {
        self.attachment.alive(owner.to_word()) == Liveness::Dead
    }

    /// Who has a place, alive or not. Any is harmless.
    pub fn owner_at(&self, place: u16) -> Option<Owner> {
        self.attachment.owner_at(place).and_then(Owner::from_word)
    }

    /// Whether the process at a place lives.
    pub fn is_alive(&self, place: u16) -> bool {
        place == self.place() || self.liveness(place) != Liveness::Dead
    }

    /// What became of the process at a place.
    pub fn liveness(&self, place: u16) -> Liveness {
        self.attachment.alive_at(place)
    }

    /// Where the guard page of the process at a place is said to be.
    pub fn guard_of(&self, place: u16) -> Option<u64> {
        self.own.processes.get(usize::from(place)).map(|process| sync::load(&process.guard))
    }

    /// The other processes whose places are taken, alive or not.
    pub fn others(&self) -> impl Iterator<Item = Owner> {
        let owners = self.attachment.owners().filter_map(Owner::from_word);
        owners.filter(|owner| owner.place() != self.place())
    }

    /// Frees the place of a dead process, of which nothing else is left.
    pub fn free(&self, dead: Owner) {
        self.attachment.free(dead.to_word());
    }

    /// Sees to it that others can reach this process, whatever the program has closed. To be called from time to time.
    pub fn tidy(&self) {
        self.attachment.tidy();
    }

    /// Waits for a lock, as [`Guard::take`] does, and does something `meanwhile` each time that it looks after the holder.
    ///
    /// # Errors
    /// Somebody who lives does not give it back.
    #[inline]
    pub fn lock<'a>(
        &self,
        lock: &'a Lock,
        meanwhile: impl Fn(),
        repair: impl FnOnce(),
    ) -> Result<Guard<'a>, Stuck> {
        if let Some(guard) = Guard::enter(lock, self.me) {
            return Ok(guard);
        }
        let is_dead = |holder| {
            meanwhile();
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
        if offset < self.arena.offset() {
            return None;
        }
        self.memory().slice(offset, len)
    }

    /// Where an offset is that somebody wrote down, and how many bytes there are from there on; `None` if it is not in the
    /// arena.
    #[inline]
    pub fn in_arena_from(&self, offset: usize) -> Option<(NonNull<u8>, usize)> {
        if offset < self.arena.offset() {
            return None;
        }
        self.memory().from(offset)
    }

    /// Wakes the service thread of the process at a place.
    pub fn call(&self, place: u16) {
        if let Some(process) = self.own.processes.get(usize::from(place)) {
            thread::wake(&process.calls);
        }
    }

    /// The word on which the service thread of this process sleeps.
    pub fn calls(&self) -> Option<&'static AtomicU32> {
        self.own.processes.get(usize::from(self.place())).map(|process| &process.calls)
    }

    /// The same of the process at a place.
    #[cfg(test)]
    pub fn calls_of(&self, place: u16) -> &'static AtomicU32 {
        &self.own.processes[usize::from(place)].calls
    }

    /// Where the process at a place says that its guard page is.
    #[cfg(test)]
    pub fn guard_word(&self, place: u16) -> &'static AtomicU64 {
        &self.own.processes[usize::from(place)].guard
    }

    /// The service thread of this process.
    pub const fn thread(&self) -> &ServiceThread {
        &self.thread
    }

    /// Has the other processes looked after soon, and from then on: one of them matters, or seems to have died.
    ///
    /// # Errors
    /// There is no service thread, and the system refuses one. Where there can be none, the next who attaches looks.
    pub fn watch(&self) -> io::Result<()> {
        self.thread.start()?;
        self.thread.ask_to_watch();
        self.call(self.place());
        Ok(())
    }

    /// Takes a place as a process does, and leaves it without its lock, as one that is dead. Who that was.
    #[cfg(test)]
    pub fn die_at(&self, place: u16) -> Owner {
        let word = &header::claims(self.memory(), self.shape())[usize::from(place)];
        let owner = claim::next(place.into(), word);
        assert!(claim::take(word, owner));
        Owner::from_word(owner).unwrap()
    }
}

impl fmt::Debug for Shm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shm").finish_non_exhaustive()
    }
}
