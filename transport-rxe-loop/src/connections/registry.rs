//! The ports of a fabric, in its shared memory: one entry for each that is bound, found by a hash of its number. They are taken
//! under one lock, and given back without it. An entry has its owner's attachment, so it is free once that is dead: the next
//! who wants the port clears it, or who recovers from the death.
//!
//! Nothing here has to be repaired when a process dies: an entry is nobody's until its last word is written, and the path of a
//! socket is removed before that word is cleared.

use std::ops::Range;
use std::path::PathBuf;
use std::ptr;

use rustix::fs::unlink;
use rustix::io::Errno;

use super::port::{Place, Sharing, random};
use crate::protocol::lock::{AttachmentId, AttachmentKey, Lock};
use crate::protocol::steps::{self, Step};
use crate::shm::Shm;
use crate::shm::lock::Guard;
use crate::shm::plan::Plan;
use crate::shm::recovery::DeathRecovery;
use crate::shm::table::shared;
use crate::sync::{self, AtomicU32, AtomicU64};

/// A port that is bound, or none.
#[derive(Debug)]
#[repr(C)]
pub struct Entry {
    place: [AtomicU64; 4],
    /// The attachment of its process, written last; 0 if it is free.
    owner: AtomicU32,
    /// The number of its listener's socket, from before there is one; 0 if it has none.
    pub(super) socket: AtomicU32,
    /// How many requests may wait; 0 if it does not listen.
    pub(super) backlog: AtomicU32,
    /// How many requests were sent to it, or are about to be.
    pub(super) sent: AtomicU32,
    /// How many of those its listener has received.
    pub(super) received: AtomicU32,
    /// How many of these wait until its program takes their events.
    pub(super) queued: AtomicU32,
    /// How many entries a search looks at that begins here.
    reach: AtomicU32,
}

shared!(Entry);

impl Entry {
    fn owner(&self) -> Option<AttachmentKey> {
        AttachmentKey::from_word(sync::acquire(&self.owner))
    }

    pub(super) fn place(&self) -> Place {
        Place::of(self.place.each_ref().map(sync::load))
    }

    fn set(&self, place: &Place) {
        self.place.iter().zip(place.numbers()).for_each(|(word, is)| sync::store(word, is));
    }
}

/// The tables of a fabric's ports.
#[derive(Debug)]
pub struct Tables<'m> {
    /// Held to take a port.
    lock: &'m Lock,
    behind: &'m [AtomicU32],
    entries: &'m [Entry],
}

impl<'m> Tables<'m> {
    /// Places the tables; `None` if the memory is too small.
    pub fn place(plan: &mut Plan<'m>, queue_pairs: u32, processes: u32) -> Option<Self> {
        let lock = plan.one();
        let behind = plan.table(processes as usize);
        // Eight for each queue pair.
        let entries = plan.table(8 * queue_pairs as usize);
        Some(Self { lock: lock?, behind: behind?, entries: entries? })
    }
}

/// The ports of a fabric, for one of its processes.
#[derive(Debug)]
pub struct Ports {
    pub(crate) shm: &'static Shm,
    pub(crate) tables: Tables<'static>,
}

/// The ports that are given out where any will do, as Linux has them.
const EPHEMERAL: Range<u16> = 32768..61000;

impl Ports {
    /// Keeps others from taking ports.
    ///
    /// # Errors
    /// EAGAIN: a live process does so, and does not end.
    fn lock(&self) -> Result<Guard<'static>, Errno> {
        self.shm.lock(self.tables.lock, || (), || ()).map_err(|_| Errno::AGAIN)
    }

    /// All entries, from where a search for a place begins.
    fn entries_from(&self, place: &Place) -> impl Iterator<Item = &'static Entry> + use<> {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let (entries, [key, ..]) = (self.tables.entries, place.numbers());
        let first = (key.wrapping_mul(GOLDEN) >> 32) as usize % entries.len().max(1);
        entries[first..].iter().chain(&entries[..first])
    }

    /// Those that are bound to a place's port, and alive.
    pub(super) fn at(&self, place: &Place) -> impl Iterator<Item = &'static Entry> {
        let ([key, ..], mut entries) = (place.numbers(), self.entries_from(place).peekable());
        let reach = entries.peek().map_or(0, |first| sync::load(&first.reach));
        let is_at = move |it: &&Entry| it.owner().is_some() && sync::load(&it.place[0]) == key;
        entries.take(reach as usize).filter(is_at).filter(|entry| self.is_alive(entry))
    }

    /// Whether an entry has an owner that is alive. That of a dead one is freed, by others, too.
    fn is_alive(&self, entry: &Entry) -> bool {
        let Some(owner) = entry.owner() else { return false };
        let is_dead = owner != self.shm.me && self.shm.is_dead(owner);
        is_dead.then(|| self.free(entry, owner)).is_none()
    }

    /// Whether others at its port leave a place to the owner of this entry, or to who has none.
    fn check(&self, place: &Place, own: Option<&Entry>) -> Result<(), Errno> {
        let others = self.at(place).filter(|other| own.is_none_or(|own| !ptr::eq(own, *other)));
        others.map(Entry::place).try_for_each(|other| place.check_beside(&other))
    }

    /// Takes a port, or any where it is 0.
    ///
    /// # Errors
    /// EADDRINUSE: it is taken. EADDRNOTAVAIL: the same, and one of the two is at all addresses; none is free. ENOMEM: the fabric
    /// has no space for another. EAGAIN: a live process keeps others from taking any.
    pub fn bind(&'static self, mut place: Place) -> Result<Bound, Errno> {
        let guard = self.lock()?;
        match place.addr.port() {
            0 => place.addr.set_port(self.unused(place).ok_or(Errno::ADDRNOTAVAIL)?),
            _ => self.check(&place, None)?,
        }
        let entry = self.claim(&place).ok_or(Errno::NOMEM)?;
        drop(guard);
        steps::done(Step::Bound);
        Ok(Bound { ports: self, entry, place })
    }

    /// A port that nobody has at any address.
    fn unused(&self, mut place: Place) -> Option<u16> {
        let (count, first) = (EPHEMERAL.len() as u32, random());
        let nth = |nth: u32| EPHEMERAL.start + (first.wrapping_add(nth) % count) as u16;
        let is_unused = |&port: &u16| {
            place.addr.set_port(port);
            self.at(&place).next().is_none()
        };
        (0..count).map(nth).find(is_unused)
    }

    fn claim(&self, place: &Place) -> Option<&'static Entry> {
        let entries = || self.entries_from(place);
        let free = || entries().enumerate().find(|(_, entry)| entry.owner().is_none());
        let (steps, entry) = free().or_else(|| {
            let dead = self.shm.others().filter(|&other| self.shm.is_dead(other));
            dead.for_each(|dead| _ = self.revoke(dead));
            free()
        })?;
        let reach = &entries().next()?.reach;
        sync::store(reach, sync::load(reach).max(steps as u32 + 1));
        entry.set(place);
        for word in [&entry.socket, &entry.backlog, &entry.sent, &entry.received, &entry.queued] {
            sync::store(word, 0);
        }
        sync::release(&entry.owner, self.shm.me.to_word());
        Some(entry)
    }

    /// Frees an entry, and removes the path of its socket. Others may do so at the same time, and somebody may have it by then:
    /// the owner is read after the number, so that is this owner's.
    fn free(&self, entry: &Entry, owner: AttachmentKey) {
        let path = self.socket(entry);
        if entry.owner() == Some(owner) {
            path.into_iter().for_each(|path| _ = unlink(path));
            let _another_has = sync::cas(&entry.owner, owner.to_word(), 0);
        }
    }

    /// The path of an entry's socket, if it has one.
    pub(super) fn socket(&self, entry: &Entry) -> Option<PathBuf> {
        let number = sync::acquire(&entry.socket);
        (number != 0).then(|| self.shm.path().listener(number))
    }

    /// Has the process of a listener take the requests that are there.
    pub(super) fn call(&self, entry: &Entry) {
        let Some(owner) = entry.owner().map(AttachmentKey::attachment) else { return };
        if self.behind(owner).is_some_and(|behind| sync::cas(behind, 0, 1).is_ok()) {
            self.shm.call(owner);
        }
    }

    /// 1 if a request found no space at a listener of an attachment.
    fn behind(&self, attachment: AttachmentId) -> Option<&AtomicU32> {
        self.tables.behind.get(attachment.index())
    }

    /// Whether this process was called since it was last asked.
    pub fn is_behind(&self) -> bool {
        let behind = self.behind(self.shm.attachment());
        behind.is_some_and(|behind| sync::load(behind) != 0 && sync::cas(behind, 1, 0).is_ok())
    }
}

impl DeathRecovery for Ports {
    fn revoke(&self, dead: AttachmentKey) -> bool {
        let of_it = self.tables.entries.iter().filter(|entry| entry.owner() == Some(dead));
        of_it.for_each(|entry| self.free(entry, dead));
        true
    }

    fn free(&self, _attachment: AttachmentId) {}
}

/// A port that is taken.
#[derive(Debug)]
pub struct Bound {
    pub(super) ports: &'static Ports,
    pub(super) entry: &'static Entry,
    /// Where it is bound.
    pub place: Place,
}

impl Bound {
    /// Shares it with others, or not.
    pub fn share(&mut self, sharing: Sharing) {
        self.place.sharing = sharing;
        self.entry.set(&self.place);
    }

    /// Lets requests come, so many at most that wait.
    pub fn listen(&self, backlog: u32) {
        sync::release(&self.entry.backlog, backlog);
    }

    /// Makes it the one at its port: who listens reuses no address, as on Linux.
    ///
    /// # Errors
    /// EADDRINUSE, EADDRNOTAVAIL: others share it. EAGAIN: as for [`Ports::bind`].
    pub fn expose(&mut self) -> Result<(), Errno> {
        let sharing = Sharing { reuse: false, ..self.place.sharing };
        let _guard = self.ports.lock()?;
        self.ports.check(&Place { sharing, ..self.place }, Some(self.entry))?;
        self.share(sharing);
        Ok(())
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.ports.free(self.entry, self.ports.shm.me);
    }
}

#[cfg(test)]
mod tests;
