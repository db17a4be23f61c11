//! The copy guard: exists while bytes are moved for a queue pair's requests, and is the only place where a key is
//! resolved to memory. One of the modules with `unsafe`.
//!
//! # Why no copy touches memory that was given back
//! A thread that moves bytes opens a [`CopyGuard`]: it makes its queue pair's in-flight markers odd, fences, and only
//! then reads keys. Deregistration invalidates the key, fences, and then waits for every odd marker to change.
//! Whichever comes second sees the other, so when deregistration returns, its key is invalid and no copy uses it any
//! more.
//!
//! The key of a [memory window](crate::memory::binding) is resolved together with the region that it is bound to,
//! which must be registered: so no copy through a window touches memory that was given back, even if the window's own
//! key is invalidated later.

#![allow(unsafe_code)]

use std::mem::ManuallyDrop;

use crate::memory::key::Key;
use crate::protocol::lock::AttachmentId;
use cq_verbs::setup::Access;
use cq_verbs::wr::{RemoteAddr, Sge};

use crate::memory::Memory;
use crate::memory::bytes::{Here, HereMut};
use crate::memory::foreign::Record;
use crate::memory::region::{KeyUser, Kind, RegionEntry};
use crate::memory::sge::{Far, Span, Spans, Target};
use crate::protocol::in_flight::InFlight;
use crate::protocol::ownership::Ownership;
use crate::sync::{self, AtomicU64};

/// Remote rights to write.
const WRITING: Access = Access::REMOTE_WRITE.union(Access::REMOTE_ATOMIC);

/// Where resolved memory is.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Mapped here: this process' own memory, or a file that every process can map.
    Here(usize, Kind),
    /// Not mapped here: another process' private memory, or a file of its that could not be mapped.
    Far(AttachmentId, Kind),
}

/// An aligned 8-byte word for an atomic.
#[derive(Debug)]
pub enum Word<'w> {
    /// In a file that every process which accesses it maps: atomic instructions are enough.
    Mapped(&'w AtomicU64),
    /// In private memory of this process.
    Own(&'w AtomicU64),
    /// In another process. If others map it (`is_mapped`), only its owner can carry out the atomic.
    Far { far: Far, span: Span, is_mapped: bool },
}

/// Open while bytes are moved: for one queue pair, by the owner of its send queue, or for another process.
#[derive(Debug)]
pub struct CopyGuard<'a> {
    memory: &'static Memory,
    in_flight: &'a InFlight,
    /// The send queue, with the marker by which this process judges. Without one, the guard resolves this process' own keys only.
    own: Option<&'static Ownership>,
}

impl<'a> CopyGuard<'a> {
    /// Opens the guard of the owner of a send queue, with two in-flight markers: the owner's in shared memory, and the private
    /// one.
    #[inline]
    pub fn open(memory: &'static Memory, in_flight: &'a InFlight, own: &'static Ownership) -> Self {
        in_flight.open_first();
        own.open();
        Self { memory, in_flight, own: Some(own) }
    }

    /// Enters the send queue and opens its guard, for the thread that posts, whose marker in shared memory this is. `None` if
    /// another thread owns the queue: like after a copy, the peer's state is read next.
    #[inline(always)]
    pub fn enter(
        memory: &'static Memory,
        in_flight: &'a InFlight,
        own: &'static Ownership,
    ) -> Option<Self> {
        in_flight.open_first();
        if !own.try_enter_to_copy() {
            in_flight.close();
            return None;
        }
        if !in_flight.is_open() {
            // Corrected by the last owner, before this thread entered.
            in_flight.open();
        }
        Some(Self { memory, in_flight, own: Some(own) })
    }

    /// Closes the guard and leaves the send queue; false if there is more to do, and it is still owned. The peer's state is
    /// read next.
    #[inline(always)]
    pub fn leave(self) -> bool {
        let Some(own) = self.own else { return true };
        ManuallyDrop::new(self).in_flight.close_first();
        own.leave()
    }

    /// Opens a guard that resolves only this process' own keys.
    pub fn open_to_own(memory: &'static Memory, in_flight: &'a InFlight) -> Self {
        in_flight.open();
        Self { memory, in_flight, own: None }
    }

    /// The bytes of an SGE, to be read, if they are mapped here and its key grants that; `None` for anything else, which
    /// [`source`](Self::source) tells apart.
    #[inline(always)]
    pub fn here(&self, whose: KeyUser, sge: Sge, needs: Access) -> Option<Here<'_>> {
        let (key, all) = (Key::new(sge.lkey), (sge.addr, sge.length.into()));
        let is_own = RegionEntry::grants(self.memory.own(key.index()), key, whose, all, needs);
        let addr = if is_own { sge.addr as usize } else { self.here_foreign(whose, sge, needs)? };
        // SAFETY: the range is inside a region whose key is valid, so its owner keeps it mapped and shared as `register`
        // requires, or inside the mapping of one, which stays mapped until this guard is closed; deregistering waits
        // for that.
        (sge.length > 0).then(|| unsafe { Here::new(addr, sge.length) })
    }

    /// The same, to be written.
    #[inline(always)]
    pub fn here_mut(&self, whose: KeyUser, sge: Sge, needs: Access) -> Option<HereMut<'_>> {
        let here = self.here(whose, sge, needs | Access::LOCAL_WRITE)?;
        // SAFETY: it has LOCAL_WRITE, for which `register` requires that the memory be writable.
        Some(unsafe { HereMut::new(here) })
    }

    /// Where the bytes of an SGE are mapped here, if they are another process', and its key grants their use.
    #[inline(never)]
    fn here_foreign(&self, whose: KeyUser, sge: Sge, needs: Access) -> Option<usize> {
        let (key, len) = (Key::new(sge.lkey), sge.length.into());
        if RegionEntry::read(self.memory.own(key.index()), key).is_some() {
            return None;
        }
        match self.find_foreign(whose, key, sge.addr, len, needs)? {
            At::Here(addr, _) => Some(addr),
            At::Far(..) => None,
        }
    }

    /// Resolves an SGE to a span to be read, and adds it; `None` if a key, a range or a right is wrong. An SGE of length
    /// 0 is not checked (Q6). The list is large, so it is filled in place.
    #[inline]
    pub fn source<'w>(
        &'w self,
        into: &mut Spans<'w>,
        whose: KeyUser,
        sge: Sge,
        needs: Access,
    ) -> Option<()> {
        self.grant(into, whose, sge, needs, sge.length.into())
    }

    /// [`source`](Self::source) for several.
    pub fn source_all<'w>(
        &'w self,
        into: &mut Spans<'w>,
        whose: KeyUser,
        mut sges: impl Iterator<Item = Sge>,
        needs: Access,
    ) -> Option<()> {
        sges.try_for_each(|sge| self.source(into, whose, sge, needs))
    }

    /// Resolves the first `limit` bytes of an SGE to a span to be written, and adds it; `None` if a key, a range or a
    /// right is wrong. The SGE is checked as a whole, even if it is used in part, but not if its length or the limit is
    /// 0 (Q6).
    #[inline]
    pub fn target<'w>(
        &'w self,
        into: &mut Target<'w>,
        whose: KeyUser,
        sge: Sge,
        needs: Access,
        limit: u64,
    ) -> Option<()> {
        // SAFETY: the span added below has LOCAL_WRITE, for which `register` requires that the memory be writable.
        let spans = unsafe { into.spans_mut() };
        self.grant(spans, whose, sge, needs | Access::LOCAL_WRITE, limit.min(sge.length.into()))
    }

    /// [`target`](Self::target) for several, with one limit.
    pub fn target_all<'w>(
        &'w self,
        into: &mut Target<'w>,
        whose: KeyUser,
        sges: impl Iterator<Item = Sge>,
        needs: Access,
        limit: u64,
    ) -> Option<()> {
        let mut left = limit;
        for sge in sges {
            self.target(into, whose, sge, needs, left)?;
            left = left.saturating_sub(sge.length.into());
        }
        Some(())
    }

    /// Resolves an aligned 8-byte word for an atomic; `None` if it is not aligned, or a key, a range or a right is
    /// wrong.
    pub fn word(&self, whose: KeyUser, at: RemoteAddr, needs: Access) -> Option<Word<'_>> {
        const LEN: u32 = size_of::<AtomicU64>() as u32;
        let needs = needs | Access::LOCAL_WRITE;
        if !at.addr.is_multiple_of(LEN.into()) {
            return None;
        }
        match self.find(whose, Key::new(at.rkey), at.addr, LEN.into(), needs)? {
            // A mapping here starts at a page, but the owner's process may claim another base.
            At::Here(addr, kind) if addr.is_multiple_of(LEN as usize) => {
                // SAFETY: aligned, and inside a region whose key is valid and which has LOCAL_WRITE. Its owner keeps
                // it mapped, writable and shared as `register` requires, or this process maps its file. Deregistering
                // and unmapping wait until this guard, which is borrowed, is closed.
                let word = unsafe { AtomicU64::from_ptr(addr as *mut u64) };
                Some(if kind == Kind::Fabric { Word::Mapped(word) } else { Word::Own(word) })
            }
            At::Here(..) => None,
            At::Far(attachment, kind) => {
                let far = Far { attachment, whose, needs };
                let span = Span::far(at.addr as usize, LEN, Key::new(at.rkey));
                Some(Word::Far { far, span, is_mapped: kind == Kind::Fabric })
            }
        }
    }

    /// Whether a key is valid for this use, wherever its memory is.
    pub fn knows(&self, whose: KeyUser, key: Key, needs: Access) -> bool {
        let own = RegionEntry::read(self.memory.own(key.index()), key);
        let entry = own.or_else(|| Some(self.foreign(key)?.entry));
        entry.is_some_and(|entry| self.find(whose, key, entry.base, 0, needs).is_some())
    }

    /// Adds the first `len` bytes of an SGE, which has as many, once all of it is checked.
    #[inline]
    fn grant<'w>(
        &'w self,
        spans: &mut Spans<'w>,
        whose: KeyUser,
        sge: Sge,
        needs: Access,
        len: u64,
    ) -> Option<()> {
        if len == 0 {
            return Some(());
        }
        let (key, all) = (Key::new(sge.lkey), (sge.addr, sge.length.into()));
        let own = self.memory.own(key.index());
        if RegionEntry::grants(own, key, whose, all, needs)
            || self.is_own(whose, key, sge.addr, sge.length.into(), needs)?
        {
            // SAFETY: the range is inside a region whose key is valid, so its owner keeps it mapped and shared as
            // `register` requires; deregistering waits until this guard is closed.
            unsafe { spans.push(sge.addr as usize, len as u32) };
            return Some(());
        }
        self.grant_foreign(spans, whose, sge, len as u32, needs)
    }

    #[cold]
    fn grant_foreign(
        &self,
        spans: &mut Spans<'_>,
        whose: KeyUser,
        Sge { addr, length, lkey }: Sge,
        len: u32,
        needs: Access,
    ) -> Option<()> {
        match self.find_foreign(whose, Key::new(lkey), addr, length.into(), needs)? {
            // SAFETY: the range is inside the mapping of a region whose key is valid; it stays mapped until this guard, whose
            // marker is set, is closed.
            At::Here(addr, _) => unsafe { spans.push(addr, len) },
            At::Far(attachment, _) => {
                let far = Far { attachment, whose, needs };
                return spans.push_far(far, addr as usize, len, Key::new(lkey)).then_some(());
            }
        }
        Some(())
    }

    /// Whether the bytes are this process' own, by its private entries, a memory window or not; `None` if they are, but access is denied.
    #[cold]
    fn is_own(&self, whose: KeyUser, key: Key, addr: u64, len: u64, needs: Access) -> Option<bool> {
        let Some(entry) = RegionEntry::read(self.memory.own(key.index()), key) else {
            return Some(false);
        };
        if entry.offset(whose, addr, len, needs).is_none() {
            self.is_in_own_window(key, whose, addr, len, needs)?;
        }
        Some(true)
    }

    /// `None` if the bytes may not be used so through a memory window of this process.
    #[cold]
    fn is_in_own_window(
        &self,
        key: Key,
        whose: KeyUser,
        addr: u64,
        len: u64,
        needs: Access,
    ) -> Option<()> {
        let entry = RegionEntry::read(self.memory.own(key.index()), key)?;
        let bound = entry.bound(whose, addr, len, needs)?;
        // Another process invalidates the key in the shared entry only.
        let is_alive = sync::acquire(&self.memory.mrs.at(entry.key.index()).key) == entry.key.get();
        // The entry may be torn while the window is being bound again: the range is checked against a valid region.
        let slot = self.memory.own(bound.region.index());
        let region =
            RegionEntry::read(slot, bound.region).filter(|region| region.bound.is_none())?;
        let is_in_region = region.within(addr, len).is_some();
        // The check of binding, repeated.
        let writes = needs.intersects(Access::LOCAL_WRITE | WRITING);
        let may_write = !writes || region.access.contains(Access::LOCAL_WRITE);
        (is_alive && is_in_region && may_write && bound.is_in(slot)).then_some(())
    }

    /// Finds where the bytes are.
    #[inline]
    fn find(&self, whose: KeyUser, key: Key, addr: u64, len: u64, needs: Access) -> Option<At> {
        if self.is_own(whose, key, addr, len, needs)? {
            let kind = Kind::read(self.memory.own(key.index()));
            return Some(At::Here(addr as usize, kind));
        }
        self.find_foreign(whose, key, addr, len, needs)
    }

    #[inline(never)]
    fn find_foreign(
        &self,
        whose: KeyUser,
        key: Key,
        addr: u64,
        len: u64,
        needs: Access,
    ) -> Option<At> {
        let record = self.foreign(key)?;
        let (region, offset) = if record.entry.bound.is_none() {
            (record, record.entry.offset(whose, addr, len, needs)?)
        } else {
            let bound = record.entry.bound(whose, addr, len, needs)?;
            let region = self.foreign(bound.region)?;
            (region, region.is_behind(record, &bound).then(|| region.entry.within(addr, len))??)
        };
        Some(match &region.memory {
            Some(memory) => At::Here(memory.addr() + offset as usize, region.entry.kind),
            None => At::Far(region.attachment, region.entry.kind),
        })
    }

    /// The record of another process' region.
    pub(super) fn foreign(&self, key: Key) -> Option<&Record> {
        if key == Key::NONE || self.own.is_none() {
            return None;
        }
        // SAFETY: the guard is borrowed for as long, and has the private marker, which `open` or `enter` set, and fenced.
        unsafe { self.memory.foreign.find(self.memory, key) }
    }
}

impl Drop for CopyGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.own {
            Some(own) => {
                self.in_flight.close_first();
                own.close();
            }
            None => self.in_flight.close(),
        }
    }
}
