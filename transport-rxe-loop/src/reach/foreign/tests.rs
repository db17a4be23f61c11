use cq_core::setup::Access;
use cq_core::wr::Sge;

use super::*;
use crate::layout::Entry;
use crate::protocol::window::Copying;
use crate::reach;
use crate::sync::AtomicU64;
use crate::window::Window;

/// A place that no process has.
const PLACE: u16 = 60;
const DOMAIN: u32 = 0x3d00_0001;
const LEN: u64 = 8192;

/// A region as if another process had registered it.
struct Foreigner {
    fabric: &'static Fabric,
    index: u32,
    facts: Facts,
    memory: Mapping,
}

impl Foreigner {
    fn new() -> Self {
        let fabric = Fabric::of_tests();
        let (index, generation) = fabric.tables().mrs.claim(PLACE).unwrap();
        let memory = files::make(&fabric.path().memory(index, generation), LEN as usize).unwrap();
        let (key, access, kind) = (index << 8 | 7, Access::LOCAL_WRITE, Kind::Fabric);
        let facts = Facts { key, access, domain: DOMAIN, kind, base: 0x7000_0000, len: LEN };
        facts.write(fabric.mr(index), (PLACE, generation));
        Self { fabric, index, facts, memory }
    }

    /// Whether a range of it can be read here.
    fn is_reached(&self, offset: u64, length: u32) -> bool {
        let copying = Copying::default();
        let window = Window::open_by(self.fabric, &copying);
        let addr = self.facts.base.wrapping_add(offset);
        let sge = Sge { addr, length, lkey: self.facts.key };
        let found = window.source(DOMAIN, [sge], Access::empty());
        found.is_some_and(|pieces| pieces.far().is_none())
    }

    /// How often its file is mapped.
    fn mappings(&self) -> usize {
        let generation = self.fabric.mr(self.index).life().holder().unwrap().1;
        let path = self.fabric.path().memory(self.index, generation);
        let name = format!("{} ", path.display());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| format!("{line} ").contains(&name)).count()
    }
}

impl Drop for Foreigner {
    fn drop(&mut self) {
        reach::bury(self.fabric, self.index);
        self.fabric.mr(self.index).life().end(PLACE);
    }
}

#[test]
fn x05_a_region_of_another_process_is_mapped_and_no_more_than_it() {
    let foreigner = Foreigner::new();
    for (offset, length, inside) in [
        (0, LEN as u32, true),
        (LEN - 1, 1, true),
        (LEN, 1, false),
        (0, LEN as u32 + 1, false),
        (u64::MAX, 1, false),
        (u64::MAX - foreigner.facts.base, 2, false),
    ] {
        assert_eq!(foreigner.is_reached(offset, length), inside, "{length} at {offset}");
    }
    let visit = foreigner.fabric.reach().foreign().visit(1);
    let record = visit.find(foreigner.fabric, foreigner.facts.key).unwrap();
    let mapped = record.memory.as_ref().unwrap();
    let word = |memory: &Mapping| sync::load(&memory.slice::<AtomicU64>(64, 1).unwrap()[0]);
    sync::store(&foreigner.memory.slice::<AtomicU64>(64, 1).unwrap()[0], 77);
    assert_eq!((word(mapped), mapped.len() as u64), (77, LEN));
}

#[test]
fn x04_an_entry_that_was_scribbled_is_refused() {
    let foreigner = Foreigner::new();
    let slot = foreigner.fabric.mr(foreigner.index);
    for word in [&slot.key, &slot.access, &slot.pd, &slot.kind] {
        let good = sync::load_u32(word);
        for bad in [good ^ 1, good ^ 1 << 31, good.wrapping_add(256), u32::MAX] {
            sync::store_u32(word, bad);
            assert!(!foreigner.is_reached(0, 8));
        }
        sync::store_u32(word, good);
    }
    for word in [&slot.base, &slot.len, &slot.seal] {
        let good = sync::load(word);
        for bad in [0, good ^ 1, good.wrapping_sub(4096), u64::MAX] {
            sync::store(word, bad);
            assert!(!foreigner.is_reached(0, 8));
        }
        sync::store(word, good);
    }
    assert!(foreigner.is_reached(0, 8));
    // From here on it is known, and nothing but key and seal is looked at.
    sync::store(&slot.len, u64::MAX);
    assert!(!foreigner.is_reached(LEN, 8));
    assert!(foreigner.is_reached(0, 8));
    sync::store(&slot.seal, 1);
    assert!(!foreigner.is_reached(0, 8));
}

#[test]
fn what_is_mapped_of_a_region_that_is_gone_is_unmapped_once_nobody_looks() {
    let foreigner = Foreigner::new();
    assert!(foreigner.is_reached(0, 8));
    assert_eq!(foreigner.mappings(), 2, "its own, and ours");
    let foreign = foreigner.fabric.reach().foreign();
    let visit = foreign.visit(7);
    let record = visit.find(foreigner.fabric, foreigner.facts.key).unwrap();
    reach::bury(foreigner.fabric, foreigner.index);
    foreign.tidy(foreigner.fabric);
    foreign.tidy(foreigner.fabric);
    assert_eq!(foreigner.mappings(), 2, "somebody may be copying");
    assert_eq!(record.facts, foreigner.facts);
    assert!(visit.find(foreigner.fabric, foreigner.facts.key).is_none());
    drop(visit);
    // Other tests look for a moment, too.
    for _ in 0..10_000 {
        foreign.tidy(foreigner.fabric);
        if foreigner.mappings() == 1 {
            return;
        }
        std::thread::yield_now();
    }
    panic!("still mapped");
}

#[test]
fn a_link_or_a_short_file_in_the_place_of_a_region_is_not_mapped() {
    let fabric = Fabric::of_tests();
    let path = fabric.path().memory(0, 0xff_fff0);
    let memory = files::make(&path, 4096).unwrap();
    assert!(files::map(&path, 4096).is_ok());
    assert!(files::map(&path, 4097).is_err());
    let link = fabric.path().memory(0, 0xff_fff1);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(files::map(&link, 4096).is_err());
    // Its maker replaces what has its name.
    drop(files::make(&link, 64).unwrap());
    assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
    files::end(&link, &Mapping::new(64).unwrap());
    files::end(&path, &memory);
    assert!(!path.exists() && !link.exists());
}
