//! Region entries: memory regions and memory windows as the table of the fabric has them, each with a seal.
//!
//! A process keeps the entries of its own regions twice: in private memory, by which it judges, and in the shared
//! table, for other processes. Those use an entry only if its seal matches, so an entry that another process
//! corrupted is refused.

use crate::memory::key::Key;
use crate::protocol::lock::AttachmentId;
use crate::protocol::number::{QpNumber, RegionIndex};
use cq_verbs::setup::Access;

use crate::protocol::life::Life;
use crate::shm::table::{Entry, entries};
use crate::sync::{self, AtomicU32, AtomicU64};

/// The table entry of a memory region or a memory window.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct MrSlot {
    life: Life,
    /// The key; 0 while there is none.
    pub key: AtomicU32,
    pub access: AtomicU32,
    pub pd: AtomicU32,
    /// Whether it is in memory of the fabric: see [`Kind`].
    pub kind: AtomicU32,
    /// For a window, the queue pair that it is bound to; 0 for a region.
    pub qp: AtomicU32,
    /// Its start address in the owner's process.
    pub base: AtomicU64,
    pub len: AtomicU64,
    /// A checksum of all other fields and of the entry's owner.
    pub seal: AtomicU64,
    /// For a window, the seal and the key of the region that it is bound to.
    pub region_seal: AtomicU64,
    pub region: AtomicU32,
}

entries!(MrSlot: RegionIndex);

/// Where the bytes of a region are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// In private memory of the owner.
    Heap = 0,
    /// In a file that every process of the fabric can map.
    Fabric = 1,
}

impl Kind {
    /// Reads it from an entry. Any value is valid.
    #[inline]
    pub fn read(slot: &MrSlot) -> Self {
        if sync::load(&slot.kind) == Self::Fabric as u32 { Self::Fabric } else { Self::Heap }
    }
}

/// The user of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUser {
    pub domain: u32,
    /// The queue pair whose peer uses the key, as an rkey; 0 for the local side, with an lkey.
    pub target: QpNumber,
}

impl KeyUser {
    /// The process that owns the memory, for its own requests.
    pub const fn local(domain: u32) -> Self {
        Self { domain, target: QpNumber::NONE }
    }

    /// The peer of a queue pair with this number and domain.
    pub const fn peer_of(target: QpNumber, domain: u32) -> Self {
        Self { domain, target }
    }
}

/// The binding of a memory window: the queue pair that can use it, and its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The number of the queue pair, which is not 0.
    pub qp: QpNumber,
    /// The key of the region.
    pub region: Key,
    /// The seal of the region, which differs from that of a later region with the same key.
    pub seal: u64,
}

impl Bound {
    /// Whether an entry is that of the region.
    #[inline]
    pub fn is_in(&self, slot: &MrSlot) -> bool {
        sync::acquire(&slot.key) == self.region.get() && sync::load(&slot.seal) == self.seal
    }

    /// The binding fields of a region.
    const NONE: Self = Self { qp: QpNumber::NONE, region: Key::NONE, seal: 0 };

    #[inline]
    fn read(slot: &MrSlot) -> Option<Self> {
        let qp = QpNumber::new(sync::load(&slot.qp));
        (qp != QpNumber::NONE).then(|| Self {
            qp,
            region: Key::new(sync::load(&slot.region)),
            seal: sync::load(&slot.region_seal),
        })
    }
}

/// A region, or a bound window, as read from its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    pub key: Key,
    pub access: Access,
    pub domain: u32,
    pub kind: Kind,
    /// Its start address in the owner's process.
    pub base: u64,
    pub len: u64,
    /// For a window, its binding.
    pub bound: Option<Bound>,
}

impl RegionEntry {
    /// Writes it to an entry, the key last. The entry belongs to the caller, with this attachment index and
    /// generation.
    pub fn write(&self, slot: &MrSlot, holder: (AttachmentId, u32)) {
        sync::store(&slot.base, self.base);
        sync::store(&slot.len, self.len);
        sync::store(&slot.access, self.access.bits());
        sync::store(&slot.pd, self.domain);
        sync::store(&slot.kind, self.kind as u32);
        let Bound { qp, region, seal } = self.bound.unwrap_or(Bound::NONE);
        sync::store(&slot.qp, qp.get());
        sync::store(&slot.region, region.get());
        sync::store(&slot.region_seal, seal);
        sync::store(&slot.seal, self.seal(holder));
        sync::release(&slot.key, self.key.get());
    }

    /// Reads an entry; `None` if it has another key.
    #[inline]
    pub fn read(slot: &MrSlot, key: Key) -> Option<Self> {
        // A free entry has key 0.
        let alive = key != Key::NONE && sync::acquire(&slot.key) == key.get();
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

    /// Whether an entry is a region's, with this key, and grants a use of `len` bytes at an address: what
    /// [`offset`](Self::offset) of the entry says. False for a memory window.
    #[inline]
    pub fn grants(
        slot: &MrSlot,
        key: Key,
        whose: KeyUser,
        (addr, len): (u64, u64),
        needs: Access,
    ) -> bool {
        // A free entry has key 0.
        let is_there = key != Key::NONE && sync::acquire(&slot.key) == key.get();
        let access = Access::from_bits_retain(sync::load(&slot.access));
        let is_his = sync::load(&slot.pd) == whose.domain && sync::load(&slot.qp) == 0;
        let (base, all) = (sync::load(&slot.base), sync::load(&slot.len));
        let left = addr.checked_sub(base).and_then(|offset| all.checked_sub(offset));
        is_there && is_his && access.contains(needs) && left.is_some_and(|left| len <= left)
    }

    /// Reads an entry of another process, with its attachment index, generation and seal; `None` if it has another
    /// key, if its seal does not match, or if its range overflows.
    pub fn read_sealed(slot: &MrSlot, key: Key) -> Option<(Self, (AttachmentId, u32), u64)> {
        let entry = Self::read(slot, key)?;
        entry.base.checked_add(entry.len)?;
        let holder = slot.life().holder()?;
        let seal = sync::load(&slot.seal);
        (seal == entry.seal(holder)).then_some((entry, holder, seal))
    }

    /// Invalidates an entry.
    pub fn erase(slot: &MrSlot) {
        sync::store(&slot.key, 0);
        sync::store(&slot.seal, 0);
    }

    /// The offset of `len` bytes at an address in the region; `None` if the domain or a right is wrong, if they are
    /// not all inside, or if it is a window.
    #[inline]
    pub fn offset(&self, whose: KeyUser, addr: u64, len: u64, needs: Access) -> Option<u64> {
        if self.domain != whose.domain || !self.access.contains(needs) || self.bound.is_some() {
            return None;
        }
        self.within(addr, len)
    }

    /// The binding of a window that contains `len` bytes at an address; `None` if the queue pair, the domain or a
    /// right is wrong, if they are not all inside, or if it is a region. [Binding](crate::memory::binding) has
    /// checked that a region whose window can be written has LOCAL_WRITE.
    pub fn bound(&self, whose: KeyUser, addr: u64, len: u64, needs: Access) -> Option<Bound> {
        let bound = self.bound.filter(|bound| bound.qp == whose.target)?;
        let needs = needs.difference(Access::LOCAL_WRITE);
        let may = self.domain == whose.domain && self.access.contains(needs);
        self.within(addr, len).filter(|_| may).map(|_| bound)
    }

    /// The offset of `len` bytes at an address; `None` if they are not all inside.
    #[inline]
    pub fn within(&self, addr: u64, len: u64) -> Option<u64> {
        let offset = addr.checked_sub(self.base)?;
        (offset.checked_add(len)? <= self.len).then_some(offset)
    }

    /// Never 0, the seal of a free entry. It covers the owner and the generation of the entry.
    fn seal(&self, (attachment, generation): (AttachmentId, u32)) -> u64 {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let Bound { qp, region, seal } = self.bound.unwrap_or(Bound::NONE);
        let words = [
            pair(self.key.get(), self.access.bits()),
            pair(self.domain, self.kind as u32),
            self.base,
            self.len,
            pair(attachment.get().into(), generation),
            pair(qp.get(), region.get()),
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
