//! The window: open while bytes are moved for a queue pair's requests, and the only place where a key
//! becomes memory. One of the rooms where `unsafe` lives.
//!
//! # Why no copy touches memory that was given back
//! Who moves bytes opens a [`Window`]: it makes its queue pair's counter odd, fences, and only then
//! looks at keys. Who deregisters kills the key, fences, and then waits for every counter that is odd to
//! move on. Whichever comes second sees the other, so when a deregistration returns its key is dead and
//! nothing moves through it any more.

#![allow(unsafe_code)]

use cq_core::setup::Access;
use cq_core::wr::{RemoteAddr, Sge};

use crate::fabric::Fabric;
use crate::identity;
use crate::layout::{Entry, QpSlot};
use crate::lock::Patience;
use crate::memory::{Pieces, Target};
use crate::protocol::window::{Copying, Shut};
use crate::sync::{self, AtomicU64};

/// Waits until what is under way for a queue pair, if something is, is over; or its process, which is who
/// does it. Called after a state was changed or a key has died.
pub fn outwait(fabric: &'static Fabric, shut: &Shut, slot: &QpSlot) {
    let mut patience = Patience::default();
    shut.wait(&slot.send.copying, || {
        !patience.is_over_for_now()
            || slot.life().place().is_some_and(|place| fabric.is_alive(place))
    });
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
    let slot = fabric.qp(sync::load_u32(fabric.dest(index)));
    let is_alive = || slot.life().place().is_some_and(|place| fabric.is_alive(place));
    Shut::after_change().is_open(&slot.send.copying) && is_alive()
}

/// Stands open while bytes are moved for one queue pair: by whoever holds its turn.
#[derive(Debug)]
pub struct Window<'a> {
    fabric: &'static Fabric,
    copying: &'a Copying,
}

impl<'a> Window<'a> {
    /// Opens it.
    pub fn open(fabric: &'static Fabric, copying: &'a Copying) -> Self {
        copying.open();
        Self { fabric, copying }
    }

    /// These pieces, to be read; `None` if a domain may not use them: a key, a range or a right is wrong.
    /// Pieces of no bytes are not looked at (Q6).
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
    pub fn word(&self, domain: u32, at: RemoteAddr) -> Option<&AtomicU64> {
        const LEN: u64 = size_of::<AtomicU64>() as u64;
        let needs = Access::REMOTE_ATOMIC | Access::LOCAL_WRITE;
        if !at.addr.is_multiple_of(LEN) {
            return None;
        }
        self.check(domain, at.rkey, at.addr, LEN, needs)?;
        // SAFETY: aligned; inside a region whose key is alive and which has LOCAL_WRITE, so its owner keeps
        // it mapped, writable and shared as `register` asks; deregistering waits until this window, which
        // is borrowed, is closed.
        Some(unsafe { AtomicU64::from_ptr(at.addr as usize as *mut u64) })
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
            self.check(domain, sge.lkey, sge.addr, len, needs)?;
            // SAFETY: the range is inside a region whose key is alive, so its owner keeps it mapped
            // and shared as `register` asks; deregistering waits until this window is closed.
            unsafe { pieces.push(sge.addr as usize, len as usize) };
            left -= len;
        }
        Some(pieces)
    }

    #[inline]
    fn check(&self, domain: u32, key: u32, addr: u64, len: u64, needs: Access) -> Option<()> {
        let slot = self.fabric.mr(key >> 8);
        let alive = key != 0 && sync::acquire(&slot.key) == key;
        let access = Access::from_bits_retain(sync::load_u32(&slot.access));
        let mine = sync::load_u32(&slot.pd) == domain;
        if !alive || !mine || !access.contains(needs) {
            return None;
        }
        let offset = addr.checked_sub(sync::load(&slot.base))?;
        (offset.checked_add(len)? <= sync::load(&slot.len)).then_some(())
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        self.copying.close();
    }
}
