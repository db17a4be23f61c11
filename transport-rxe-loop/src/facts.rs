//! What a table says of a memory region, and the seal on it.
//!
//! What a process says of its own regions it keeps twice: in a table of its own, by which it judges, and in
//! the shared one, for others. Those take nothing from there that its seal does not fit, so that what
//! somebody scribbled is refused, and not followed.

use cq_core::setup::Access;

use crate::layout::{Entry, MrSlot};
use crate::sync;

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
        if sync::load_u32(&slot.kind) == Self::Fabric as u32 { Self::Fabric } else { Self::Heap }
    }
}

/// What there is to know of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub key: u32,
    pub access: Access,
    pub domain: u32,
    pub kind: Kind,
    /// Where it starts in the owner's process.
    pub base: u64,
    pub len: u64,
}

impl Facts {
    /// Writes them down, the key last. The entry is the caller's, who is at this place and has it in this of
    /// its lives.
    pub fn write(&self, slot: &MrSlot, holder: (u16, u32)) {
        sync::store(&slot.base, self.base);
        sync::store(&slot.len, self.len);
        sync::store_u32(&slot.access, self.access.bits());
        sync::store_u32(&slot.pd, self.domain);
        sync::store_u32(&slot.kind, self.kind as u32);
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
            access: Access::from_bits_retain(sync::load_u32(&slot.access)),
            domain: sync::load_u32(&slot.pd),
            kind: Kind::read(slot),
            base: sync::load(&slot.base),
            len: sync::load(&slot.len),
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
        sync::store_u32(&slot.key, 0);
        sync::store(&slot.seal, 0);
    }

    /// Where `len` bytes at an address begin in the region; `None` if the key is not for this domain or this
    /// use, or if they are not all inside.
    #[inline]
    pub fn offset(&self, domain: u32, addr: u64, len: u64, needs: Access) -> Option<u64> {
        if self.domain != domain || !self.access.contains(needs) {
            return None;
        }
        let offset = addr.checked_sub(self.base)?;
        (offset.checked_add(len)? <= self.len).then_some(offset)
    }

    /// Never 0, which a free entry has. Whose entry it is, and which of its lives, is sealed with the rest.
    fn seal(&self, (place, generation): (u16, u32)) -> u64 {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let words = [
            pair(self.key, self.access.bits()),
            pair(self.domain, self.kind as u32),
            self.base,
            self.len,
            pair(place.into(), generation),
        ];
        words.into_iter().fold(MIX, |mixed, word| {
            let mixed = (mixed ^ word).wrapping_mul(MIX);
            mixed ^ mixed >> 29
        }) | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Fabric;

    /// A place where nobody lives.
    const PLACE: u16 = 42;

    #[test]
    fn x04_a_region_that_no_memory_can_be_is_none() {
        let mrs = &Fabric::of_tests().tables().mrs;
        let (index, generation) = mrs.claim(PLACE).unwrap();
        let slot = mrs.at(index);
        let key = index << 8 | 1;
        for (base, len, is_one) in
            [(4096, 4096, true), (u64::MAX - 8, 8, true), (u64::MAX - 8, 4096, false)]
        {
            let (access, kind) = (Access::REMOTE, Kind::Heap);
            let facts = Facts { key, access, domain: 1, kind, base, len };
            facts.write(slot, (PLACE, generation));
            assert_eq!(Facts::read_sealed(slot, key).is_some(), is_one);
        }
        Facts::erase(slot);
        slot.life().end(PLACE);
    }
}
