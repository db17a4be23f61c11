//! The window: open while bytes are moved for a queue pair's requests, and the only place where a key
//! becomes memory. One of the rooms where `unsafe` lives.
//!
//! # Why no copy touches memory that was given back
//! Who moves bytes opens a [`Window`]: it makes its queue pair's counter odd, fences, and only then
//! looks at keys. Who deregisters kills the key, fences, and then waits for every counter that is odd to
//! move on. Whichever comes second sees the other, so when a deregistration returns its key is dead and
//! nothing moves through it any more.

#![allow(unsafe_code)]

use std::cell::OnceCell;

use cq_core::setup::Access;
use cq_core::wr::{RemoteAddr, Sge};

use crate::fabric::Fabric;
use crate::facts::{Facts, Kind};
use crate::identity;
use crate::layout::Entry;
use crate::lock::{Backoff, Patience, Stuck};
use crate::memory::{Far, Piece, Pieces, Target};
use crate::notes;
use crate::protocol::window::{Copying, Shut};
use crate::reach::foreign::Visit;
use crate::sync::{self, AtomicU64};

/// Waits until what is under way for a queue pair, if something is, is over; or its process, which is who
/// does it. Called after a state was changed or a key has died.
///
/// # Errors
/// Its process lives and does not get on with it: it is suspended.
pub fn outwait(fabric: &'static Fabric, shut: &Shut, number: u32) -> Result<(), Stuck> {
    let mut patience = Patience::default();
    outwait_own(fabric, shut, number);
    if fabric.is_mine(number) || outwait_other(fabric, shut, number, &mut patience) {
        return Ok(());
    }
    Err(Stuck)
}

/// Waits until nothing is copied any more that was when this was called: for any queue pair, and for other
/// processes by this one. Called after a key has died.
///
/// # Errors
/// A process lives and does not get on with it: it is suspended.
pub fn outwait_all(fabric: &'static Fabric) -> Result<(), Stuck> {
    let (shut, mut patience) = (Shut::after_change(), Patience::default());
    (0..fabric.tables().qps.len()).for_each(|index| outwait_own(fabric, &shut, index));
    fabric.reach().copier().outwait(&shut);
    let mut others = 0..fabric.tables().qps.len();
    let is_over = |index| outwait_other(fabric, &shut, index, &mut patience);
    if others.all(is_over) { Ok(()) } else { Err(Stuck) }
}

/// Waits for this process' own threads, by what it alone writes. Nobody suspends some of them for ever.
fn outwait_own(fabric: &'static Fabric, shut: &Shut, number: u32) {
    let mut backoff = Backoff::default();
    // The threads of a forked child are not those that copy.
    shut.wait(&fabric.own(number).copying, || {
        backoff.snooze();
        fabric.is_ours()
    });
}

/// Waits for another process; false if that lives and does not get on.
fn outwait_other(
    fabric: &'static Fabric,
    shut: &Shut,
    number: u32,
    patience: &mut Patience,
) -> bool {
    let slot = fabric.qp(number);
    let is_others = || slot.life().place().is_some_and(|place| place != fabric.place());
    let is_alive = || slot.life().place().is_some_and(|place| fabric.is_alive(place));
    if !is_others() {
        return true;
    }
    let is_closed = shut.wait(&slot.send.copying, || {
        if !patience.is_over_for_now() {
            return true;
        }
        // Who is not in the midst of anything says so: a stranger may have written that it is.
        notes::leave(fabric, number);
        is_others() && is_alive() && !patience.is_over()
    });
    is_closed || !is_others() || !is_alive()
}

/// Whether the queue pair with this number may be in the middle of a request for its peer, whose state was
/// changed: it looks at that when it is through.
pub fn may_be_open(fabric: &'static Fabric, number: u32, peer: u32) -> bool {
    let slot = fabric.qp(number);
    let is_open = Shut::after_change().is_open(&slot.send.copying);
    is_open && identity::read(slot).number == number && sync::load_u32(fabric.dest(number)) == peer
}

/// Whether the peer of the queue pair at an index may be in the middle of a request for it: of one whose
/// number was taken away.
pub fn is_open_for(fabric: &'static Fabric, index: u32) -> bool {
    let number = sync::load_u32(fabric.dest(index));
    let slot = fabric.qp(number);
    let is_its_peer = || fabric.tables().qps.index(sync::load_u32(fabric.dest(number))) == index;
    let is_alive = || slot.life().place().is_some_and(|place| fabric.is_alive(place));
    Shut::after_change().is_open(&slot.send.copying) && is_its_peer() && is_alive()
}

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
    Far { far: Far, piece: Piece, is_mapped: bool },
}

/// Stands open while bytes are moved for one queue pair: by whoever holds its turn.
#[derive(Debug)]
pub struct Window<'a> {
    fabric: &'static Fabric,
    copying: &'a Copying,
    /// Of a queue pair: the counter that this process goes by.
    own: Option<&'a Copying>,
    keys: Keys,
    /// Where it is marked that this looks at other processes' regions, once it does.
    visit: OnceCell<Visit>,
}

impl<'a> Window<'a> {
    /// Opens that of the queue pair with this number, whose turn is held.
    #[inline]
    pub fn open(fabric: &'static Fabric, number: u32) -> Self {
        let (copying, own) = (&fabric.qp(number).send.copying, &fabric.own(number).copying);
        own.open_first();
        copying.open();
        Self { fabric, copying, own: Some(own), keys: Keys::All, visit: OnceCell::new() }
    }

    /// Opens one through which this process' own regions alone are seen.
    pub fn open_to_own(fabric: &'static Fabric, copying: &'a Copying) -> Self {
        copying.open();
        Self { fabric, copying, own: None, keys: Keys::Own, visit: OnceCell::new() }
    }

    /// One of a queue pair that there is not.
    #[cfg(test)]
    pub fn open_by(fabric: &'static Fabric, copying: &'a Copying) -> Self {
        let mut window = Self::open_to_own(fabric, copying);
        window.keys = Keys::All;
        window
    }

    /// These pieces, to be read; `None` if a domain may not use them: a key, a range or a right is wrong.
    /// Pieces of no bytes are not looked at (Q6).
    #[inline]
    pub fn source(
        &self,
        domain: u32,
        sges: impl IntoIterator<Item = Sge>,
        needs: Access,
    ) -> Option<Pieces<'_>> {
        self.grant(domain, sges, needs, u64::MAX)
    }

    /// The first `limit` bytes of these pieces, to be written; `None` if a domain may not use them: a key,
    /// a range or a right is wrong. Pieces past the limit or of no bytes are not looked at (Q6).
    #[inline]
    pub fn target(
        &self,
        domain: u32,
        sges: impl IntoIterator<Item = Sge>,
        needs: Access,
        limit: u64,
    ) -> Option<Target<'_>> {
        let pieces = self.grant(domain, sges, needs | Access::LOCAL_WRITE, limit)?;
        // SAFETY: the regions have LOCAL_WRITE, for which `register` asks that they be writable.
        Some(unsafe { Target::new(pieces) })
    }

    /// The eight bytes at an address, for an atomic; `None` if they are not aligned, or a domain may not
    /// use them so.
    pub fn word(&self, domain: u32, at: RemoteAddr) -> Option<Word<'_>> {
        const LEN: u32 = size_of::<AtomicU64>() as u32;
        let needs = Access::REMOTE_ATOMIC | Access::LOCAL_WRITE;
        if !at.addr.is_multiple_of(LEN.into()) {
            return None;
        }
        match self.find(domain, at.rkey, at.addr, LEN.into(), needs)? {
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
                let far = Far { place, domain, needs };
                let piece = Piece::far(at.addr as usize, LEN, at.rkey);
                Some(Word::Far { far, piece, is_mapped: kind == Kind::Fabric })
            }
        }
    }

    #[inline]
    fn grant(
        &self,
        domain: u32,
        sges: impl IntoIterator<Item = Sge>,
        needs: Access,
        limit: u64,
    ) -> Option<Pieces<'_>> {
        let mut pieces = Pieces::new();
        let mut left = limit;
        for sge in sges {
            let len = left.min(sge.length.into());
            if len == 0 {
                continue;
            }
            if self.is_own(domain, sge.lkey, sge.addr, len, needs)? {
                // SAFETY: the range is inside a region whose key is alive, so its owner keeps it mapped
                // and shared as `register` asks; deregistering waits until this window is closed.
                unsafe { pieces.push(sge.addr as usize, len as u32) };
            } else {
                self.grant_foreign(&mut pieces, domain, sge, len as u32, needs)?;
            }
            left -= len;
        }
        Some(pieces)
    }

    #[cold]
    fn grant_foreign(
        &self,
        pieces: &mut Pieces<'_>,
        domain: u32,
        Sge { addr, lkey, .. }: Sge,
        len: u32,
        needs: Access,
    ) -> Option<()> {
        match self.find_foreign(domain, lkey, addr, len.into(), needs)? {
            // SAFETY: the range is inside what is mapped here of a region whose key is alive; it stays mapped
            // until this window is closed, which holds the visit that found it.
            At::Here(addr, _) => unsafe { pieces.push(addr, len) },
            At::Far(place, _) => {
                let far = Far { place, domain, needs };
                return pieces.push_far(far, addr as usize, len, lkey).then_some(());
            }
        }
        Some(())
    }

    /// Whether so many bytes at an address are this process' own, as its own table says; `None` if
    /// they are, and may not be used so.
    #[inline]
    fn is_own(&self, domain: u32, key: u32, addr: u64, len: u64, needs: Access) -> Option<bool> {
        let Some(facts) = Facts::read(self.fabric.reach().own(key >> 8), key) else {
            return Some(false);
        };
        facts.offset(domain, addr, len, needs).map(|_| true)
    }

    /// Where so many bytes at an address are.
    #[inline]
    fn find(&self, domain: u32, key: u32, addr: u64, len: u64, needs: Access) -> Option<At> {
        if self.is_own(domain, key, addr, len, needs)? {
            let kind = Kind::read(self.fabric.reach().own(key >> 8));
            return Some(At::Here(addr as usize, kind));
        }
        self.find_foreign(domain, key, addr, len, needs)
    }

    #[inline(never)]
    fn find_foreign(
        &self,
        domain: u32,
        key: u32,
        addr: u64,
        len: u64,
        needs: Access,
    ) -> Option<At> {
        if key == 0 || self.keys == Keys::Own {
            return None;
        }
        let foreign = self.fabric.reach().foreign();
        let visit =
            self.visit.get_or_init(|| foreign.visit(std::ptr::from_ref(self.copying) as usize));
        let record = visit.find(self.fabric, key)?;
        let offset = record.facts.offset(domain, addr, len, needs)?;
        Some(match &record.memory {
            Some(memory) => At::Here(memory.addr() + offset as usize, record.facts.kind),
            None => At::Far(record.place, record.facts.kind),
        })
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.own {
            own.close_last();
        }
        self.copying.close();
    }
}
