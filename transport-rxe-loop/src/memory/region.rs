//! What a table says of a memory region or a memory window, and the seal on it.
//!
//! What a process says of its own it keeps twice: in a table of its own, by which it judges, and in
//! the shared one, for others. Those take nothing from there that its seal does not fit, so that what
//! somebody scribbled is refused, and not followed.

use cq_core::setup::Access;

use crate::protocol::life::Life;
use crate::shm::table::{Entry, entries};
use crate::sync::{self, AtomicU32, AtomicU64};

/// A memory region, or a memory window.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct MrSlot {
    life: Life,
    /// Its key; 0 while there is none.
    pub key: AtomicU32,
    pub access: AtomicU32,
    pub pd: AtomicU32,
    /// Whether it is memory of the fabric's: see [`Kind`].
    pub kind: AtomicU32,
    /// Of a window: the queue pair that it is bound to. 0 is a region.
    pub qp: AtomicU32,
    /// Where it starts in the owner's process.
    pub base: AtomicU64,
    pub len: AtomicU64,
    /// That all of this was written by one who knew how.
    pub seal: AtomicU64,
    /// Of a window: the seal of the region that it lies in, and that one's key.
    pub region_seal: AtomicU64,
    pub region: AtomicU32,
}

entries!(MrSlot);

/// Where a region's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// In memory of its owner's alone.
    Heap = 0,
    /// In a file that every process of the fabric can map.
    Fabric = 1,
}

impl Kind {
    /// What an entry says. Any number is one.
    #[inline]
    pub fn read(slot: &MrSlot) -> Self {
        if sync::load(&slot.kind) == Self::Fabric as u32 { Self::Fabric } else { Self::Heap }
    }
}

/// Who uses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whose {
    pub domain: u32,
    /// The queue pair whose peer does it, with an rkey; 0 is its own side, with an lkey.
    pub target: u32,
}

impl Whose {
    /// The side that has the memory, for requests of its own.
    pub const fn local(domain: u32) -> Self {
        Self { domain, target: 0 }
    }

    /// The peer of the queue pair with this number, which belongs to this domain.
    pub const fn peer_of(target: u32, domain: u32) -> Self {
        Self { domain, target }
    }
}

/// What a memory window is besides: through which queue pair alone it is used, and in which region it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The number of the queue pair, which is not 0.
    pub qp: u32,
    /// The key of the region.
    pub region: u32,
    /// The seal of the region, which another one of the same key does not have.
    pub seal: u64,
}

impl Bound {
    /// Whether the region that it speaks of is the one that an entry does.
    #[inline]
    pub fn is_in(&self, slot: &MrSlot) -> bool {
        sync::acquire(&slot.key) == self.region && sync::load(&slot.seal) == self.seal
    }

    /// What an entry says of a region.
    const NONE: Self = Self { qp: 0, region: 0, seal: 0 };

    #[inline]
    fn read(slot: &MrSlot) -> Option<Self> {
        let qp = sync::load(&slot.qp);
        (qp != 0).then(|| Self {
            qp,
            region: sync::load(&slot.region),
            seal: sync::load(&slot.region_seal),
        })
    }
}

/// What there is to know of a region, or of a window that is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    pub key: u32,
    pub access: Access,
    pub domain: u32,
    pub kind: Kind,
    /// Where it starts in the owner's process.
    pub base: u64,
    pub len: u64,
    /// Of a window.
    pub bound: Option<Bound>,
}

impl RegionEntry {
    /// Writes them down, the key last. The entry is the caller's, who is at this place and has it in this of
    /// its lives.
    pub fn write(&self, slot: &MrSlot, holder: (u16, u32)) {
        sync::store(&slot.base, self.base);
        sync::store(&slot.len, self.len);
        sync::store(&slot.access, self.access.bits());
        sync::store(&slot.pd, self.domain);
        sync::store(&slot.kind, self.kind as u32);
        let Bound { qp, region, seal } = self.bound.unwrap_or(Bound::NONE);
        sync::store(&slot.qp, qp);
        sync::store(&slot.region, region);
        sync::store(&slot.region_seal, seal);
        sync::store(&slot.seal, self.seal(holder));
        sync::release(&slot.key, self.key);
    }

    /// What an entry says; `None` if it has another key.
    #[inline]
    pub fn read(slot: &MrSlot, key: u32) -> Option<Self> {
        // A free entry has key 0.
        let alive = key != 0 && sync::acquire(&slot.key) == key;
        alive.then(|| Self {
            key,
            access: Access::from_bits_retain(sync::load(&slot.access)),
            domain: sync::load(&slot.pd),
            kind: Kind::read(slot),
            base: sync::load(&slot.base),
            len: sync::load(&slot.len),
            bound: Bound::read(slot),
        })
    }

    /// What an entry of another process says, at which place that is, in which of its lives the entry, and
    /// under which seal; `None` if it has another key, if its seal does not fit, or if no memory can lie there.
    pub fn read_sealed(slot: &MrSlot, key: u32) -> Option<(Self, (u16, u32), u64)> {
        let facts = Self::read(slot, key)?;
        facts.base.checked_add(facts.len)?;
        let holder = slot.life().holder()?;
        let seal = sync::load(&slot.seal);
        (seal == facts.seal(holder)).then_some((facts, holder, seal))
    }

    /// Makes an entry speak of nothing any more.
    pub fn erase(slot: &MrSlot) {
        sync::store(&slot.key, 0);
        sync::store(&slot.seal, 0);
    }

    /// Where `len` bytes at an address begin in the region; `None` if the key is not for this domain or this
    /// use, if they are not all inside, or if it is a window's.
    #[inline]
    pub fn offset(&self, whose: Whose, addr: u64, len: u64, needs: Access) -> Option<u64> {
        if self.domain != whose.domain || !self.access.contains(needs) || self.bound.is_some() {
            return None;
        }
        self.within(addr, len)
    }

    /// In which region `len` bytes at an address are that a window opens on; `None` if its key is not for
    /// this queue pair or this use, if they are not all inside, or if it is no window. What writing asks of
    /// a region, [binding](crate::api::mw) has.
    pub fn bound(&self, whose: Whose, addr: u64, len: u64, needs: Access) -> Option<Bound> {
        let bound = self.bound.filter(|bound| bound.qp == whose.target)?;
        let needs = needs.difference(Access::LOCAL_WRITE);
        let may = self.domain == whose.domain && self.access.contains(needs);
        self.within(addr, len).filter(|_| may).map(|_| bound)
    }

    /// Where `len` bytes at an address begin; `None` if they are not all inside.
    #[inline]
    pub fn within(&self, addr: u64, len: u64) -> Option<u64> {
        let offset = addr.checked_sub(self.base)?;
        (offset.checked_add(len)? <= self.len).then_some(offset)
    }

    /// Never 0, which a free entry has. Whose entry it is, and which of its lives, is sealed with the rest.
    fn seal(&self, (place, generation): (u16, u32)) -> u64 {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let Bound { qp, region, seal } = self.bound.unwrap_or(Bound::NONE);
        let words = [
            pair(self.key, self.access.bits()),
            pair(self.domain, self.kind as u32),
            self.base,
            self.len,
            pair(place.into(), generation),
            pair(qp, region),
            seal,
        ];
        words.into_iter().fold(MIX, |mixed, word| {
            let mixed = (mixed ^ word).wrapping_mul(MIX);
            mixed ^ mixed >> 29
        }) | 1
    }
}

#[cfg(test)]
mod tests;
