use super::*;
use crate::inside::prelude::*;
use crate::memory::region::MrSlot;

const DOMAIN: u32 = 0x3d00_0001;
const LEN: u64 = 8192;

/// The number of a queue pair as if of another process.
const QP: QpNumber = QpNumber::new(0x7654);
/// Where its window starts in the region, and how long that is.
const AT: u64 = 1024;
const WINDOW: u64 = 512;

/// A window as if another process had bound it.
struct ForeignWindow {
    region: Foreigner,
    entry: RegionEntry,
    slot: &'static MrSlot,
}

impl ForeignWindow {
    fn new() -> Self {
        let region = Foreigner::new();
        let memory = region.device.memory;
        let (index, generation) = memory.mrs.claim(ANOTHER).unwrap();
        let seal = sync::load(&region.slot.seal);
        let bound = Some(Bound { qp: QP, region: region.entry.key, seal });
        let (key, access) = (Key::of(index, 8), Access::REMOTE_WRITE | Access::REMOTE_READ);
        let (base, len) = (region.entry.base + AT, WINDOW);
        let entry = RegionEntry { key, access, base, len, bound, ..region.entry };
        entry.write(memory.mrs.at(index), (ANOTHER, generation));
        Self { region, entry, slot: memory.mrs.at(index) }
    }

    /// Whether the peer of a queue pair reaches a range of it.
    fn is_reached_by(&self, whose: KeyUser, offset: i64, length: u32, needs: Access) -> bool {
        let in_flight = InFlight::default();
        let copy = copy_guard(self.region.device, &in_flight, 0);
        let addr = self.entry.base.wrapping_add_signed(offset);
        let sge = Sge { addr, length, lkey: self.entry.key.get() };
        copy.target(&mut Target::new(), whose, sge, needs, u64::MAX).is_some()
    }

    fn is_reached(&self, offset: i64, length: u32) -> bool {
        let whose = KeyUser::peer_of(QP, DOMAIN);
        self.is_reached_by(whose, offset, length, Access::REMOTE_WRITE)
    }
}

/// A region as if another process had registered it.
struct Foreigner {
    device: &'static Device,
    index: RegionIndex,
    slot: &'static MrSlot,
    entry: RegionEntry,
    memory: Mapping,
}

impl Foreigner {
    fn new() -> Self {
        let device = Fixture::new().device;
        let (index, generation) = device.memory.mrs.claim(ANOTHER).unwrap();
        let path = device.shm.path().memory(index.get(), generation);
        let memory = files::make(&path, LEN as usize, &MemoryOptions::new()).unwrap();
        let entry = RegionEntry {
            key: Key::of(index, 6),
            access: Access::LOCAL_WRITE,
            domain: DOMAIN,
            kind: Kind::Fabric,
            base: 0x7000_0000,
            len: LEN,
            bound: None,
        };
        let slot = device.memory.mrs.at(index);
        entry.write(slot, (ANOTHER, generation));
        Self { device, index, slot, entry, memory }
    }

    /// Whether a range of it can be read here.
    fn is_reached(&self, offset: u64, length: u32) -> bool {
        let in_flight = InFlight::default();
        let copy = copy_guard(self.device, &in_flight, 0);
        let addr = self.entry.base.wrapping_add(offset);
        let sge = Sge { addr, length, lkey: self.entry.key.get() };
        let mut spans = Spans::new();
        let found = copy.source(&mut spans, KeyUser::local(DOMAIN), sge, Access::empty());
        found.is_some() && spans.far().is_none()
    }

    fn path(&self) -> std::path::PathBuf {
        let (_, generation) = self.slot.life().holder().unwrap();
        self.device.shm.path().memory(self.index.get(), generation)
    }

    /// Its owner deregisters it.
    fn erase(&self) {
        RegionEntry::erase(self.slot);
        files::remove(&self.path());
    }

    /// How often its file is mapped.
    fn mappings(&self) -> usize {
        let name = format!("/{} ", self.path().file_name().unwrap().display());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| format!("{line} ").contains(&name)).count()
    }
}

/// Writes what a word or a longer one can't be, each in turn, and puts back what was there.
fn scribble(words: &[&AtomicU32], longer: &[&AtomicU64], is_reached: impl Fn() -> bool) {
    for word in words {
        let good = sync::load(*word);
        for bad in [0, good ^ 1, good ^ 1 << 31, good.wrapping_add(256), u32::MAX] {
            sync::store(*word, bad);
            assert!(bad == good || !is_reached());
        }
        sync::store(*word, good);
    }
    for word in longer {
        let good = sync::load(*word);
        for bad in [0, good ^ 1, good.wrapping_sub(4096), u64::MAX] {
            sync::store(*word, bad);
            assert!(!is_reached());
        }
        sync::store(*word, good);
    }
    assert!(is_reached());
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
        (u64::MAX - foreigner.entry.base, 2, false),
    ] {
        assert_eq!(foreigner.is_reached(offset, length), inside, "{length} at {offset}");
    }
    let in_flight = InFlight::default();
    let copy = copy_guard(foreigner.device, &in_flight, 0);
    let record = copy.foreign(foreigner.entry.key).unwrap();
    let mapped = record.memory.as_ref().unwrap();
    let word = |memory: &Mapping| sync::load(&memory.slice::<AtomicU64>(64, 1).unwrap()[0]);
    sync::store(&foreigner.memory.slice::<AtomicU64>(64, 1).unwrap()[0], 77);
    assert_eq!((word(mapped), mapped.len() as u64), (77, LEN));
}

#[test]
fn x04_an_entry_that_was_scribbled_is_refused() {
    let foreigner = Foreigner::new();
    let slot = foreigner.slot;
    let is_reached = || foreigner.is_reached(0, 8);
    let words = [&slot.key, &slot.access, &slot.pd, &slot.kind];
    scribble(&words, &[&slot.base, &slot.len, &slot.seal], is_reached);
    // From here on it is known, and nothing but key and seal is looked at.
    sync::store(&slot.len, u64::MAX);
    assert!(!foreigner.is_reached(LEN, 8));
    assert!(is_reached());
    sync::store(&slot.key, 0);
    assert!(!is_reached(), "deregistered");
    sync::store(&slot.key, foreigner.entry.key.get());
    assert!(is_reached());
    sync::store(&slot.seal, 1);
    assert!(!is_reached());
}

#[test]
fn q06_a_window_of_another_process_is_for_one_peer_and_its_bytes() {
    let window = ForeignWindow::new();
    for (offset, length, inside) in [
        (0, WINDOW as u32, true),
        (WINDOW as i64 - 1, 1, true),
        (-1, 1, false),
        (WINDOW as i64, 1, false),
        (1, WINDOW as u32, false),
    ] {
        assert_eq!(window.is_reached(offset, length), inside, "{length} at {offset}");
    }
    let (write, atomic) = (Access::REMOTE_WRITE, Access::REMOTE_ATOMIC);
    for (whose, needs, may) in [
        (KeyUser::peer_of(QP, DOMAIN), write, true),
        (KeyUser::peer_of(QP, DOMAIN), atomic, false),
        (KeyUser::peer_of(QpNumber::new(QP.get() + 1), DOMAIN), write, false),
        (KeyUser::peer_of(QP, DOMAIN + 1), write, false),
        (KeyUser::local(DOMAIN), Access::LOCAL_WRITE, false),
        (KeyUser::local(DOMAIN), Access::empty(), false),
    ] {
        assert_eq!(window.is_reached_by(whose, 0, 8, needs), may, "{whose:?} {needs:?}");
    }
    // It is gone with its region, and back with it: in the same of its lives only.
    let Foreigner { device, index, slot, entry, .. } = window.region;
    let (holder, generation) = slot.life().holder().unwrap();
    RegionEntry::erase(slot);
    assert!(!window.is_reached(0, 8));
    entry.write(slot, (holder, generation));
    assert!(window.is_reached(0, 8));
    slot.life().end(ANOTHER);
    device.memory.mrs.go_on_at(index);
    let (other, next) = device.memory.mrs.claim(ANOTHER).unwrap();
    assert_eq!(other, index);
    let _memory = files::make(
        &device.shm.path().memory(other.get(), next),
        LEN as usize,
        &MemoryOptions::new(),
    )
    .unwrap();
    entry.write(slot, (holder, next));
    assert!(!window.is_reached(0, 8), "another region of the same key");
}

#[test]
fn x04_a_window_that_was_scribbled_is_refused() {
    let window = ForeignWindow::new();
    let slot = window.slot;
    let words = [&slot.key, &slot.access, &slot.pd, &slot.kind, &slot.qp, &slot.region];
    let longer = [&slot.base, &slot.len, &slot.seal, &slot.region_seal];
    scribble(&words, &longer, || window.is_reached(0, 8));
    // One that was sealed, and opens on more than its region has.
    let holder = slot.life().holder().unwrap();
    for (base, len, inside) in
        [(0, WINDOW, true), (LEN - AT - 8, 8, true), (LEN - AT - 8, 16, false), (0, LEN, true)]
    {
        let entry = RegionEntry { base: window.entry.base + base, len, ..window.entry };
        entry.write(slot, holder);
        let all_of_it = window.is_reached(base as i64, len as u32);
        assert_eq!(all_of_it, inside && AT + base + len <= LEN, "{len} at {base}");
    }
    // Or on a window, or on nothing.
    for region in [window.entry.key, Key::new(0), Key::new(1), Key::new(u32::MAX)] {
        let bound = window.entry.bound.map(|bound| Bound { region, ..bound });
        RegionEntry { bound, ..window.entry }.write(slot, holder);
        assert!(!window.is_reached(0, 8));
    }
    // Or is another domain's than its region.
    let domain = DOMAIN + 1;
    RegionEntry { domain, ..window.entry }.write(slot, holder);
    let whose = KeyUser::peer_of(QP, domain);
    assert!(!window.is_reached_by(whose, 0, 8, Access::REMOTE_WRITE));
    window.entry.write(slot, holder);
    assert!(window.is_reached(0, 8));
    // Or on what is a window by now, under the seal of that.
    let region = window.region.slot;
    let bound = Some(Bound { qp: QP, region: Key::new(0), seal: 0 });
    RegionEntry { bound, ..window.region.entry }.write(region, region.life().holder().unwrap());
    let bound = window.entry.bound.map(|bound| Bound { seal: sync::load(&region.seal), ..bound });
    RegionEntry { bound, ..window.entry }.write(slot, holder);
    assert!(!window.is_reached(0, 8));
}

#[test]
fn what_is_mapped_of_a_region_that_is_gone_is_unmapped_once_nobody_looks() {
    let foreigner = Foreigner::new();
    let (memory, foreign) = (foreigner.device.memory, &foreigner.device.memory.foreign);
    assert!(!foreign.tidy(memory), "nothing is known yet");
    assert!(foreigner.is_reached(0, 8));
    assert!(!foreign.tidy(memory));
    assert_eq!(foreigner.mappings(), 2, "its own, and ours; it is registered still");
    // As who has looked before and waited for the mutex since.
    let slot = &foreign.records.get().unwrap()[foreigner.index.get() as usize];
    let learned = foreign.learn(memory, slot, foreigner.entry.key);
    assert_eq!(learned, Some(sync::acquire(slot)));
    assert_eq!(foreigner.mappings(), 2, "what two look for at once is learned once");
    let in_flight = InFlight::default();
    let copy = copy_guard(foreigner.device, &in_flight, 7);
    let record = copy.foreign(foreigner.entry.key).unwrap();
    foreigner.erase();
    assert!(foreign.tidy(memory));
    assert!(foreign.tidy(memory));
    assert_eq!(foreigner.mappings(), 2, "somebody may be copying");
    assert_eq!(record.entry, foreigner.entry);
    assert!(copy.foreign(foreigner.entry.key).is_none());
    drop(copy);
    assert!(!foreign.tidy(memory));
    assert_eq!(foreigner.mappings(), 1);
}

#[test]
fn a_link_or_a_short_file_is_not_mapped_as_a_region() {
    let device = Fixture::new().device;
    let path = device.shm.path().memory(0, 0xff_fff0);
    let memory = files::make(&path, 4096, &MemoryOptions::new()).unwrap();
    assert!(files::map(&path, 4096).is_ok());
    assert!(files::map(&path, 4097).is_err());
    let link = device.shm.path().memory(0, 0xff_fff1);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(files::map(&link, 4096).is_err());
    // Its maker replaces what has its name.
    drop(files::make(&link, 64, &MemoryOptions::new()).unwrap());
    assert!(std::fs::symlink_metadata(&link).unwrap().is_file());
    files::end(&link, &Mapping::new(64).unwrap());
    files::end(&path, &memory);
    assert!(!path.exists() && !link.exists());
}
