//! The window: open while bytes are moved for a queue pair's requests, and the only place where a key
//! becomes memory. One of the rooms where `unsafe` lives.
//!
//! # Why no copy touches memory that was given back
//! Who moves bytes opens a [`CopyGuard`]: it makes its queue pair's counter odd, fences, and only then
//! looks at keys. Who deregisters kills the key, fences, and then waits for every counter that is odd to
//! move on. Whichever comes second sees the other, so when a deregistration returns its key is dead and
//! nothing moves through it any more.
//!
//! What a [memory window](crate::api::mw) opens on is looked up with the region behind it, which has to live, too: so
//! nobody goes through one to memory that was given back, however late its own key dies.

#![allow(unsafe_code)]

use std::cell::OnceCell;

use cq_core::setup::Access;
use cq_core::wr::{RemoteAddr, Sge};

use crate::memory::Memory;
use crate::memory::foreign::{Record, Visit};
use crate::memory::region::{Kind, RegionEntry, Whose};
use crate::memory::sge::{Far, Span, Spans, Target};
use crate::protocol::window::Copying;
use crate::sync::{self, AtomicU64};

/// What a peer writes by.
const WRITING: Access = Access::REMOTE_WRITE.union(Access::REMOTE_ATOMIC);

/// Whose keys a window takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// Those of every process.
    All,
    /// Those of this process, which it judges by what it knows itself.
    Own,
}

/// Where memory is that may be used.
#[derive(Clone, Copy, Debug)]
enum At {
    /// Mapped here, and in a file that others can map, or not.
    Here(usize, Kind),
    /// In memory of this process' alone, or in a file of its that could not be mapped here.
    Far(u16, Kind),
}

/// Eight bytes for an atomic.
#[derive(Debug)]
pub enum Word<'w> {
    /// Mapped by every process that uses it: its instructions are enough.
    Mapped(&'w AtomicU64),
    /// Of this process' alone.
    Own(&'w AtomicU64),
    /// Of another process. If `is_mapped` by others, only that one can do the atomic.
    Far { far: Far, piece: Span, is_mapped: bool },
}

/// Stands open while bytes are moved for one queue pair: by whoever holds its turn.
#[derive(Debug)]
pub struct CopyGuard<'a> {
    memory: &'static Memory,
    copying: &'a Copying,
    /// Of a queue pair: the counter that this process goes by.
    own: Option<&'a Copying>,
    keys: Keys,
    /// Where it is marked that this looks at other processes' regions, once it does.
    visit: OnceCell<Visit>,
}

impl<'a> CopyGuard<'a> {
    /// Opens that of a queue pair, whose send queue is owned, by its counters: the one in shared memory, and the one that
    /// this process goes by.
    #[inline]
    pub fn open(memory: &'static Memory, copying: &'a Copying, own: &'a Copying) -> Self {
        own.open_first();
        copying.open();
        Self { memory, copying, own: Some(own), keys: Keys::All, visit: OnceCell::new() }
    }

    /// Opens one through which this process' own regions alone are seen.
    pub fn open_to_own(memory: &'static Memory, copying: &'a Copying) -> Self {
        copying.open();
        Self { memory, copying, own: None, keys: Keys::Own, visit: OnceCell::new() }
    }

    /// One of a queue pair that there is not.
    #[cfg(test)]
    pub fn open_by(memory: &'static Memory, copying: &'a Copying) -> Self {
        let mut window = Self::open_to_own(memory, copying);
        window.keys = Keys::All;
        window
    }

    /// Adds these pieces, to be read; `None` if a domain may not use them: a key, a range or a right is wrong.
    /// Spans of no bytes are not looked at (Q6). A list is large, so it is filled where it lies.
    #[inline]
    pub fn source<'w>(
        &'w self,
        into: &mut Spans<'w>,
        whose: Whose,
        sges: impl IntoIterator<Item = Sge>,
        needs: Access,
    ) -> Option<()> {
        self.grant(into, whose, sges, needs, u64::MAX)
    }

    /// Adds the first `limit` bytes of these pieces, to be written; `None` if a domain may not use them: a key,
    /// a range or a right is wrong. A piece is judged as a whole, also where only some of it is used; pieces
    /// past the limit or of no bytes are not looked at (Q6).
    #[inline]
    pub fn target<'w>(
        &'w self,
        into: &mut Target<'w>,
        whose: Whose,
        sges: impl IntoIterator<Item = Sge>,
        needs: Access,
        limit: u64,
    ) -> Option<()> {
        // SAFETY: the regions have LOCAL_WRITE, for which `register` asks that they be writable.
        let pieces = unsafe { into.pieces_mut() };
        self.grant(pieces, whose, sges, needs | Access::LOCAL_WRITE, limit)
    }

    /// The eight bytes at an address, to be changed in one step; `None` if they are not aligned, or may not
    /// be used so.
    pub fn word(&self, whose: Whose, at: RemoteAddr, needs: Access) -> Option<Word<'_>> {
        const LEN: u32 = size_of::<AtomicU64>() as u32;
        let needs = needs | Access::LOCAL_WRITE;
        if !at.addr.is_multiple_of(LEN.into()) {
            return None;
        }
        match self.find(whose, at.rkey, at.addr, LEN.into(), needs)? {
            // A mapping starts at a page, but nobody says that it did in its owner's process.
            At::Here(addr, kind) if addr.is_multiple_of(LEN as usize) => {
                // SAFETY: aligned; inside a region whose key is alive and which has LOCAL_WRITE, so its
                // owner keeps it mapped, writable and shared as `register` asks; deregistering, or unmapping
                // what is mapped here, waits until this window, which is borrowed, is closed.
                let word = unsafe { AtomicU64::from_ptr(addr as *mut u64) };
                Some(if kind == Kind::Fabric { Word::Mapped(word) } else { Word::Own(word) })
            }
            At::Here(..) => None,
            At::Far(place, kind) => {
                let far = Far { place, whose, needs };
                let piece = Span::far(at.addr as usize, LEN, at.rkey);
                Some(Word::Far { far, piece, is_mapped: kind == Kind::Fabric })
            }
        }
    }

    /// Whether a key is one that may be used so, wherever its memory is.
    pub fn knows(&self, whose: Whose, key: u32, needs: Access) -> bool {
        let own = RegionEntry::read(self.memory.own(key >> 8), key);
        let facts = own.or_else(|| Some(self.foreign(key)?.facts));
        facts.is_some_and(|facts| self.find(whose, key, facts.base, 0, needs).is_some())
    }

    #[inline]
    fn grant<'w>(
        &'w self,
        pieces: &mut Spans<'w>,
        whose: Whose,
        sges: impl IntoIterator<Item = Sge>,
        needs: Access,
        limit: u64,
    ) -> Option<()> {
        let mut left = limit;
        for sge in sges {
            let len = left.min(sge.length.into());
            if len == 0 {
                continue;
            }
            // All of the piece, whatever of it is used.
            if self.is_own(whose, sge.lkey, sge.addr, sge.length.into(), needs)? {
                // SAFETY: the range is inside a region whose key is alive, so its owner keeps it mapped
                // and shared as `register` asks; deregistering waits until this window is closed.
                unsafe { pieces.push(sge.addr as usize, len as u32) };
            } else {
                self.grant_foreign(pieces, whose, sge, len as u32, needs)?;
            }
            left -= len;
        }
        Some(())
    }

    #[cold]
    fn grant_foreign(
        &self,
        pieces: &mut Spans<'_>,
        whose: Whose,
        Sge { addr, length, lkey }: Sge,
        len: u32,
        needs: Access,
    ) -> Option<()> {
        match self.find_foreign(whose, lkey, addr, length.into(), needs)? {
            // SAFETY: the range is inside what is mapped here of a region whose key is alive; it stays mapped
            // until this window is closed, which holds the visit that found it.
            At::Here(addr, _) => unsafe { pieces.push(addr, len) },
            At::Far(place, _) => {
                let far = Far { place, whose, needs };
                return pieces.push_far(far, addr as usize, len, lkey).then_some(());
            }
        }
        Some(())
    }

    /// Whether so many bytes at an address are this process' own, as its own table says; `None` if
    /// they are, and may not be used so.
    #[inline]
    fn is_own(&self, whose: Whose, key: u32, addr: u64, len: u64, needs: Access) -> Option<bool> {
        let Some(facts) = RegionEntry::read(self.memory.own(key >> 8), key) else {
            return Some(false);
        };
        if facts.offset(whose, addr, len, needs).is_none() {
            self.is_in_own_window(key, whose, addr, len, needs)?;
        }
        Some(true)
    }

    /// Nothing if so many bytes at an address may not be used so through a memory window of this process'.
    #[cold]
    fn is_in_own_window(
        &self,
        key: u32,
        whose: Whose,
        addr: u64,
        len: u64,
        needs: Access,
    ) -> Option<()> {
        let facts = RegionEntry::read(self.memory.own(key >> 8), key)?;
        let bound = facts.bound(whose, addr, len, needs)?;
        // Another process that takes the key away can do it there alone.
        let is_alive = sync::acquire(&self.memory.mr(facts.key >> 8).key) == facts.key;
        // Whatever was read of a window that is being bound again: it is memory of this region that lives.
        let slot = self.memory.own(bound.region >> 8);
        let region =
            RegionEntry::read(slot, bound.region).filter(|region| region.bound.is_none())?;
        let is_in_region = region.within(addr, len).is_some();
        // What binding asked of the region, too.
        let writes = needs.intersects(Access::LOCAL_WRITE | WRITING);
        let may_write = !writes || region.access.contains(Access::LOCAL_WRITE);
        (is_alive && is_in_region && may_write && bound.is_in(slot)).then_some(())
    }

    /// Where so many bytes at an address are.
    #[inline]
    fn find(&self, whose: Whose, key: u32, addr: u64, len: u64, needs: Access) -> Option<At> {
        if self.is_own(whose, key, addr, len, needs)? {
            let kind = Kind::read(self.memory.own(key >> 8));
            return Some(At::Here(addr as usize, kind));
        }
        self.find_foreign(whose, key, addr, len, needs)
    }

    #[inline(never)]
    fn find_foreign(
        &self,
        whose: Whose,
        key: u32,
        addr: u64,
        len: u64,
        needs: Access,
    ) -> Option<At> {
        let record = self.foreign(key)?;
        let (region, offset) = if record.facts.bound.is_none() {
            (record, record.facts.offset(whose, addr, len, needs)?)
        } else {
            let bound = record.facts.bound(whose, addr, len, needs)?;
            let region = self.foreign(bound.region)?;
            (region, region.is_behind(record, &bound).then(|| region.facts.within(addr, len))??)
        };
        Some(match &region.memory {
            Some(memory) => At::Here(memory.addr() + offset as usize, region.facts.kind),
            None => At::Far(region.place, region.facts.kind),
        })
    }

    /// What is known of another process' region.
    fn foreign(&self, key: u32) -> Option<&Record> {
        if key == 0 || self.keys == Keys::Own {
            return None;
        }
        let foreign = self.memory.foreign();
        let visit =
            self.visit.get_or_init(|| foreign.visit(std::ptr::from_ref(self.copying) as usize));
        visit.find(self.memory, key)
    }
}

impl Drop for CopyGuard<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own {
            own.close_last();
        }
        self.copying.close();
    }
}
