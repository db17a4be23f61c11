use super::*;
use crate::inside::prelude::*;

/// An entry for a region as if of another process.
fn claimed(base: u64, len: u64) -> (&'static MrSlot, RegionEntry) {
    let mrs = &Fixture::new().device.memory.mrs;
    let (index, generation) = mrs.claim(ANOTHER).unwrap();
    let (key, access, kind) = (Key::of(index, 0), Access::REMOTE, Kind::Heap);
    let entry = RegionEntry { key, access, domain: 1, kind, base, len, bound: None };
    entry.write(mrs.at(index), (ANOTHER, generation));
    (mrs.at(index), entry)
}

#[test]
fn x04_a_region_that_no_memory_can_be_is_none() {
    for (base, len, is_one) in
        [(4096, 4096, true), (u64::MAX - 8, 8, true), (u64::MAX - 8, 4096, false)]
    {
        let (slot, entry) = claimed(base, len);
        assert_eq!(RegionEntry::read_sealed(slot, entry.key).is_some(), is_one);
    }
}

#[test]
fn x04_nothing_is_in_a_region_whose_key_is_dead_nor_is_it_back_by_its_key() {
    let (slot, RegionEntry { key, .. }) = claimed(4096, 64);
    let bound = Bound { qp: QpNumber::new(1), region: key, seal: sync::load(&slot.seal) };
    assert!(bound.is_in(slot));
    // As far as who takes it away has got, or who writes another one there.
    sync::store(&slot.key, 0);
    assert!(!bound.is_in(slot));
    sync::store(&slot.key, key.get());
    assert!(bound.is_in(slot) && RegionEntry::read_sealed(slot, key).is_some());
    RegionEntry::erase(slot);
    // As by somebody who scribbles.
    sync::store(&slot.key, key.get());
    assert!(!bound.is_in(slot) && RegionEntry::read_sealed(slot, key).is_none());
}
