//! Memory shared by the processes of one user: the fabric's file, attachments, tables whose entries have owners,
//! locks whose holders may die, and liveness. Nothing here depends on what the tables hold; another device could use
//! it.
//!
//! [`Shm`] is the state that a process has in a fabric: its [attachment](attachment::Attachment), the memory that can
//! be [allocated](arena), and the word on which its [service thread](thread) waits. It detects which processes are
//! [dead](Shm::is_dead), and accepts requests to check ([`Shm::watch`]). The device that uses it recovers from
//! a death, through what each table implements as [`DeathRecovery`](recovery::DeathRecovery).

pub mod arena;
pub mod attach;
pub mod attachment;
pub mod claim;
pub mod descriptor;
pub mod error;
pub mod file;
pub mod file_id;
pub mod fork;
pub mod guard_page;
pub mod hash;
pub mod header;
pub mod limits;
pub mod liveness;
pub mod lock;
pub mod mapping;
pub mod name;
pub mod plan;
pub mod prune;
pub mod reader;
pub mod recovery;
pub mod registry;
pub mod sanitizer;
pub mod shape;
pub mod signals;
pub mod system;
pub mod table;
pub mod thread;
pub mod unshared;
pub mod view;

use std::ptr::NonNull;

use self::arena::{Arena, InArena};
use self::attachment::Attachment;
use self::liveness::Liveness;
use self::lock::Guard;
use self::mapping::{Mapping, Shared};
use self::name::FabricPath;
use self::plan::Plan;
use self::shape::Shape;
use self::system::SystemError;
use self::table::{opaque, shared};
use self::thread::ServiceThread;
use crate::error::Stuck;
use crate::protocol::lock::{AttachmentId, AttachmentKey, Lock};
use crate::sync::{self, AtomicU8, AtomicU32, AtomicU64};
use crate::trace;

/// The state that a process has in a fabric.
pub struct Shm {
    attachment: &'static Attachment,
    /// This attachment, as written into shared memory.
    pub me: AttachmentKey,
    own: Own<'static>,
    /// The memory that can be allocated.
    pub arena: Arena,
    /// The service thread of this process.
    pub thread: ServiceThread,
}

/// The tables of shared memory itself, before those of the device.
#[derive(Debug)]
pub struct Own<'m> {
    common: &'m Common,
    processes: &'m [ProcessEntry],
    granules: &'m [AtomicU8],
}

/// The words that a fabric has once.
#[derive(Debug)]
#[repr(C, align(128))]
struct Common {
    /// Held to free what a dead process had.
    frees: Lock,
    /// Held to allocate memory.
    arena: Lock,
    /// Where the next search for free memory begins.
    arena_next: AtomicU32,
}

/// The words of an attached process.
#[derive(Debug)]
#[repr(C, align(64))]
struct ProcessEntry {
    /// The number of calls to its service thread, which waits on this word.
    calls: AtomicU32,
    /// The pid, as the process itself sees it, for people who read of its death.
    pid: AtomicU32,
    /// The address of its [guard page](guard_page).
    guard: AtomicU64,
}

shared!(Common, ProcessEntry);

impl<'m> Own<'m> {
    /// Places the tables; `None` if the memory is too small.
    pub fn place(shape: &Shape, plan: &mut Plan<'m>) -> Option<Self> {
        plan.note(arena::GRANULE);
        let common = plan.table(1);
        let processes = plan.table(shape.processes as usize);
        let granules = plan.table(shape.bytes as usize / arena::GRANULE);
        Some(Self { common: common?.first()?, processes: processes?, granules: granules? })
    }
}

impl Shm {
    /// The state of an attached process, and the tables of the device, which `place` places; `None` if the memory is
    /// too small for them.
    pub fn new<T>(
        attachment: &'static Attachment,
        place: impl FnOnce(&Shape, &mut Plan<'static>) -> Option<T>,
    ) -> Option<(Self, T)> {
        let mut plan = Plan::of(attachment.memory);
        let own = Own::place(&attachment.shape, &mut plan)?;
        let tables = place(&attachment.shape, &mut plan)?;
        let arena = Arena::new(&own.common.arena_next, own.granules, plan.end());
        let me = AttachmentKey::from_word(attachment.owner)?;
        let process = own.processes.get(me.attachment().index())?;
        sync::store(&process.guard, attachment.guard());
        sync::store(&process.pid, std::process::id());
        Some((Self { attachment, me, own, arena, thread: ServiceThread::default() }, tables))
    }

    /// The bytes of the fabric.
    pub const fn memory(&self) -> &'static Mapping {
        self.attachment.memory
    }

    /// The sizes of the fabric.
    pub const fn shape(&self) -> &'static Shape {
        &self.attachment.shape
    }

    /// The path of the fabric's files.
    pub const fn path(&self) -> &'static FabricPath {
        &self.attachment.path
    }

    /// Held to free what a dead process had: by one process at a time.
    pub const fn frees(&self) -> &'static Lock {
        &self.own.common.frees
    }

    /// Held to allocate memory.
    #[cfg(test)]
    pub const fn allocates(&self) -> &'static Lock {
        &self.own.common.arena
    }

    /// Whether this is the process that attached, not a forked child, in which the mapping reads as zeros.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.attachment.is_ours()
    }

    /// The id of this attachment.
    #[inline]
    pub const fn attachment(&self) -> AttachmentId {
        self.me.attachment()
    }

    /// Whether an attachment's process is dead. One that never existed counts as dead.
    pub fn is_dead(&self, owner: AttachmentKey) -> bool {
        self.attachment.alive(owner.to_word()) == Liveness::Dead
    }

    /// The current owner of an attachment id, alive or dead. Any id is harmless.
    pub fn owner_at(&self, attachment: AttachmentId) -> Option<AttachmentKey> {
        self.attachment.owner_at(attachment).and_then(AttachmentKey::from_word)
    }

    /// Whether the process of an attachment is alive.
    pub fn is_alive(&self, attachment: AttachmentId) -> bool {
        attachment == self.attachment() || self.liveness(attachment) != Liveness::Dead
    }

    /// The liveness of an attachment.
    pub fn liveness(&self, attachment: AttachmentId) -> Liveness {
        self.attachment.alive_at(attachment)
    }

    /// The address that an attachment's process gives for its guard page.
    pub fn guard_of(&self, attachment: AttachmentId) -> Option<u64> {
        self.own.processes.get(attachment.index()).map(|process| sync::load(&process.guard))
    }

    /// The pid that an attachment's process had, in its own namespace, as far as it is to be believed; 0 if there is none.
    pub fn pid(&self, attachment: AttachmentId) -> u32 {
        self.own.processes.get(attachment.index()).map_or(0, |process| sync::load(&process.pid))
    }

    /// The other attachments, alive or dead.
    pub fn others(&self) -> impl Iterator<Item = AttachmentKey> {
        let owners = self.attachment.owners().filter_map(AttachmentKey::from_word);
        owners.filter(|owner| owner.attachment() != self.attachment())
    }

    /// Frees the attachment of a dead process of which nothing else is left.
    pub fn free(&self, dead: AttachmentKey) {
        self.attachment.free(dead.to_word());
    }

    /// Restores what other processes need to reach this one, after the program closed descriptors. To be called from
    /// time to time.
    pub fn tidy(&self) {
        self.attachment.tidy();
    }

    /// Waits for a lock, as [`Guard::take`] does, and calls `meanwhile` each time before it checks the holder.
    ///
    /// # Errors
    /// A live process holds it.
    #[inline]
    pub fn lock<'a>(
        &self,
        lock: &'a Lock,
        meanwhile: impl Fn(),
        repair: impl FnOnce(),
    ) -> Result<Guard<'a>, Stuck> {
        if let Some(guard) = self.enter(lock) {
            return Ok(guard);
        }
        let is_dead = move |holder| {
            meanwhile();
            self.is_dead_holder(holder)
        };
        Guard::take(lock, self.me, is_dead, repair)
    }

    /// Takes a lock that is free.
    #[inline]
    pub fn enter<'a>(&self, lock: &'a Lock) -> Option<Guard<'a>> {
        Guard::enter(lock, self.me)
    }

    /// Takes a lock that is free or whose holder is dead. What it protects needs no repair.
    pub fn try_lock<'a>(&self, lock: &'a Lock) -> Option<Guard<'a>> {
        Guard::try_take(lock, self.me, |holder| self.is_dead_holder(holder))
    }

    /// Whether the holder of a lock is dead, from whom it is then taken over.
    fn is_dead_holder(&self, holder: AttachmentKey) -> bool {
        let is_dead = self.is_dead(holder);
        if is_dead {
            trace::event!(
                WARN,
                pid = self.pid(holder.attachment()),
                "taking over the lock of a dead process"
            );
        }
        is_dead
    }

    /// The address of an offset read from shared memory, and the number of bytes from there on; `None` if it is not
    /// in the arena.
    #[inline]
    pub fn in_arena_from(&self, offset: usize) -> Option<(NonNull<u8>, usize)> {
        if offset < self.arena.offset() {
            return None;
        }
        self.memory().from(offset)
    }

    /// Wakes the service thread of an attachment's process.
    pub fn call(&self, attachment: AttachmentId) {
        if let Some(process) = self.own.processes.get(attachment.index()) {
            thread::wake(&process.calls);
        }
    }

    /// The word on which the service thread of this process waits.
    pub fn calls(&self) -> Option<&'static AtomicU32> {
        self.own.processes.get(self.attachment().index()).map(|process| &process.calls)
    }

    /// The same word of another attachment.
    #[cfg(test)]
    pub fn calls_of(&self, attachment: AttachmentId) -> &'static AtomicU32 {
        &self.own.processes[attachment.index()].calls
    }

    /// The word with the address of an attachment's guard page.
    #[cfg(test)]
    pub fn guard_word(&self, attachment: AttachmentId) -> &'static AtomicU64 {
        &self.own.processes[attachment.index()].guard
    }

    /// Has the service thread check the other processes soon, and from then on: they matter now, or one seems to have
    /// died.
    ///
    /// # Errors
    /// There is no service thread, and the system refuses one. Then the next process that attaches checks.
    pub fn watch(&self) -> Result<(), SystemError> {
        self.thread.start()?;
        self.thread.ask_to_watch();
        self.call(self.attachment());
        Ok(())
    }

    /// Claims an attachment and leaves it without its lock, as a dead process does. Returns its owner.
    #[cfg(test)]
    pub fn die_at(&self, attachment: AttachmentId) -> AttachmentKey {
        let word = &header::claims(self.memory(), self.shape())[attachment.index()];
        let owner = claim::next(attachment.get().into(), word);
        assert!(claim::take(word, owner));
        AttachmentKey::from_word(owner).unwrap()
    }
}

impl InArena<'static> for Shm {
    /// The `len` values at an offset read from shared memory; `None` if they are not aligned or not all in the arena,
    /// so that no such offset leads into the tables.
    #[inline]
    fn in_arena<T: Shared>(&self, offset: usize, len: usize) -> Option<&'static [T]> {
        if offset < self.arena.offset() {
            return None;
        }
        self.memory().slice(offset, len)
    }
}

opaque!(Shm);
