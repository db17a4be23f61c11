use super::*;
use crate::inside::prelude::*;

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(42);

#[test]
fn x04_a_region_that_no_memory_can_be_is_none() {
    let mrs = Device::of_tests().memory.mrs();
    let (index, generation) = mrs.claim(ANOTHER).unwrap();
    let slot = mrs.at(index);
    let key = Key::of(index, 0);
    for (base, len, is_one) in
        [(4096, 4096, true), (u64::MAX - 8, 8, true), (u64::MAX - 8, 4096, false)]
    {
        let (access, kind) = (Access::REMOTE, Kind::Heap);
        let entry = RegionEntry { key, access, domain: 1, kind, base, len, bound: None };
        entry.write(slot, (ANOTHER, generation));
        assert_eq!(RegionEntry::read_sealed(slot, key).is_some(), is_one);
    }
    RegionEntry::erase(slot);
    slot.life().end(ANOTHER);
}

#[test]
fn x04_nothing_is_in_a_region_whose_key_is_dead_nor_is_it_back_by_its_key() {
    let mrs = Device::of_tests().memory.mrs();
    let (index, generation) = mrs.claim(ANOTHER).unwrap();
    let (slot, key) = (mrs.at(index), Key::of(index, 0));
    let (access, kind) = (Access::REMOTE, Kind::Heap);
    let entry = RegionEntry { key, access, domain: 1, kind, base: 4096, len: 64, bound: None };
    entry.write(slot, (ANOTHER, generation));
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
    RegionEntry::erase(slot);
    slot.life().end(ANOTHER);
}
