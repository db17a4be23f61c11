use super::*;
use crate::engine::requester::local::invalidate;
use crate::inside::prelude::*;
use crate::memory::region::{Bound, Kind, MrSlot, RegionEntry};

/// A queue pair that is its own peer, and has a window for itself.
struct Alone {
    qp: QueuePair,
    region: OwnedRegion,
    window: MemoryWindow,
    fixture: Fixture,
    device: &'static Device,
}

impl Alone {
    fn new() -> Self {
        let fixture = Fixture::new();
        let (device, qp) = (fixture.device, fixture.qp());
        let region = fixture.pd.allocate(4096, Access::LOCAL_WRITE | Access::MW_BIND).unwrap();
        let window = fixture.pd.alloc_mw().unwrap();
        let mut alone = Self { qp, region, window, fixture, device };
        alone.open();
        alone
    }

    fn open(&mut self) {
        let number = self.qp.number();
        self.qp.connect_to(number).unwrap();
        assert_eq!(self.bind(), WcStatus::SUCCESS);
    }

    fn bind(&mut self) -> WcStatus {
        self.outcome(SendWr::bind_window(1, self.bind_of(&self.region, Access::REMOTE_WRITE)))
    }

    fn bind_of(&self, region: &OwnedRegion, access: Access) -> WindowBind {
        let (window, lkey, addr) = (self.window.rkey(), region.lkey(), region.addr());
        WindowBind { window, rkey: inc_rkey(window), lkey, addr, length: 64, access }
    }

    fn outcome(&mut self, wr: SendWr<'_>) -> WcStatus {
        self.qp.post_send(&[wr]).unwrap();
        let [(_, status)] = self.fixture.polled()[..] else { panic!("one completes") };
        status
    }

    /// Whether its key lets one write. If not, the queue pair is made anew.
    fn is_open(&mut self) -> bool {
        let at = RemoteAddr { addr: self.region.addr(), rkey: self.window.rkey() };
        let is_open = self.outcome(SendWr::write_inline(2, b"x", at)) == WcStatus::SUCCESS;
        if !is_open {
            self.qp = self.fixture.qp();
        }
        is_open
    }

    /// The entry of its window that all see.
    fn slot(&self) -> &'static MrSlot {
        self.device.memory.mrs.at(self.window.entry.index)
    }

    /// This process' entry of its region.
    fn own_region(&self) -> &'static MrSlot {
        self.device.memory.own(RegionIndex::new(self.region.lkey() >> 8))
    }
}

#[test]
fn x04_who_scribbles_over_a_window_can_do_no_more_than_kill_its_key() {
    let mut alone = Alone::new();
    let slot = alone.slot();
    for word in [&slot.access, &slot.pd, &slot.kind, &slot.qp, &slot.region] {
        for bad in [0, 1, 1 << 31, u32::MAX] {
            sync::store(word, bad);
            assert!(alone.is_open());
        }
    }
    for word in [&slot.base, &slot.len, &slot.seal, &slot.region_seal] {
        for bad in [0, 1, u64::MAX] {
            sync::store(word, bad);
            assert!(alone.is_open());
        }
    }
    let bad: [fn(u32) -> u32; 4] = [|_| 0, |key| key ^ 1, |key| key + 256, |_| u32::MAX];
    for bad in bad {
        sync::store(&slot.key, bad(alone.window.rkey()));
        assert!(!alone.is_open());
        // It is not bound then, and can be.
        assert!(!alone.qp.has_windows() && !alone.region.has_windows());
        alone.open();
        assert!(alone.is_open());
    }
}

#[test]
fn x04_a_key_that_its_owner_took_away_stays_dead_whatever_is_written() {
    let mut alone = Alone::new();
    let (slot, key) = (alone.slot(), alone.window.rkey());
    let entry = RegionEntry::read(slot, Key::new(key)).unwrap();
    assert_eq!(alone.outcome(SendWr::local_invalidate(1, key)), WcStatus::SUCCESS);
    entry.write(slot, slot.life().holder().unwrap());
    assert!(!alone.is_open());
    RegionEntry::erase(slot);
}

#[test]
fn q06_a_window_can_not_be_bound_while_its_dead_key_is_waited_for() {
    let mut alone = Alone::new();
    let (memory, key) = (alone.device.memory, alone.window.rkey());
    let closing = memory.windows.begin_invalidate(memory, alone.qp.qpn(), Key::new(key)).unwrap();
    assert_eq!(alone.bind(), WcStatus::MW_BIND_ERR);
    assert_eq!(alone.window.rkey(), key);
    assert!(closing.finish(memory));
    alone.qp = alone.fixture.qp();
    alone.open();
    assert!(alone.is_open());
}

#[test]
fn q07_a_key_is_not_invalidated_that_a_window_had_before_or_whose_window_is_deallocated_meanwhile()
{
    let Alone { qp, window, region: _region, device: Device { memory, .. }, .. } = Alone::new();
    let (windows, old, key) = (&memory.windows, window.entry.key(), window.rkey());
    assert_ne!(old.get(), key);
    assert!(windows.begin_invalidate(memory, qp.qpn(), old).is_none());
    assert!(qp.has_windows());
    let closing = windows.begin_invalidate(memory, qp.qpn(), Key::new(key)).unwrap();
    drop(window);
    assert!(!closing.finish(memory));
}

#[test]
fn q06_the_key_of_another_process_is_invalidated_once_and_not_without_its_region() {
    let device = Fixture::new().device;
    let qps = &device.engine.qps;
    let (index, generation) = qps.claim(ANOTHER).unwrap();
    let qp = identity::number_of(qps, index, generation);
    let [(region, region_slot, region_holder), (key, slot, holder)] = [(); 2].map(|()| {
        let (index, generation) = device.memory.mrs.claim(ANOTHER).unwrap();
        (Key::of(index, 0), device.memory.mrs.at(index), (ANOTHER, generation))
    });
    let entry = RegionEntry {
        key: region,
        access: Access::LOCAL_WRITE | Access::MW_BIND,
        domain: 1,
        kind: Kind::Heap,
        base: 4096,
        len: 4096,
        bound: None,
    };
    entry.write(region_slot, region_holder);
    let bound = Some(Bound { qp, region, seal: sync::load(&region_slot.seal) });
    RegionEntry { key, access: Access::REMOTE, bound, ..entry }.write(slot, holder);
    // Another region has the key for a while.
    RegionEntry { len: 8192, ..entry }.write(region_slot, region_holder);
    assert!(!invalidate(device.engine, qp, key));
    assert_eq!(sync::load(&slot.key), key.get());
    entry.write(region_slot, region_holder);
    assert!(invalidate(device.engine, qp, key));
    assert_eq!(sync::load(&slot.key), 0);
    assert!(!invalidate(device.engine, qp, key));
}

#[test]
fn q10_another_region_of_the_same_key_is_not_behind_a_window() {
    let mut alone = Alone::new();
    let slot = alone.own_region();
    let key = Key::new(alone.region.lkey());
    let entry = RegionEntry::read(slot, key).unwrap();
    let (place, generation) =
        alone.device.memory.mrs.at(RegionIndex::new(key.get() >> 8)).life().holder().unwrap();
    for (generation, is_open) in [(generation, true), (generation + 255, false)] {
        entry.write(slot, (place, generation));
        assert_eq!(alone.is_open(), is_open);
    }
}

#[test]
fn no_window_has_the_entry_whose_key_may_be_0() {
    let fixture = Fixture::new();
    // More than there are places.
    for _ in 0..2 * fixture.context.attributes().max_mw {
        assert_ne!(fixture.pd.alloc_mw().unwrap().entry.index, RegionIndex::new(0));
    }
}

#[test]
fn q06_a_window_to_read_from_needs_no_right_to_write() {
    let mut alone = Alone::new();
    let region = alone.fixture.pd.allocate(64, Access::MW_BIND).unwrap();
    let (here, key) = ([alone.region.sge(..8).unwrap()], alone.window.rkey());
    let bind = alone.bind_of(&region, Access::REMOTE_READ);
    let target = RemoteAddr { addr: region.addr(), rkey: bind.rkey };
    for request in [
        SendWr::local_invalidate(1, key),
        SendWr::bind_window(1, bind),
        SendWr::read(2, &here, target),
    ] {
        assert_eq!(alone.outcome(request), WcStatus::SUCCESS, "{request:?}");
    }
}

#[test]
fn q06_a_window_gives_no_more_than_its_region() {
    let mut alone = Alone::new();
    let own = alone.own_region();
    let (access, base) = (sync::load(&own.access), sync::load(&own.base));
    sync::store(&own.access, Access::MW_BIND.bits());
    assert!(!alone.is_open(), "it may not be written to");
    sync::store(&own.access, access);
    alone.open();
    assert!(alone.is_open());
    sync::store(&own.base, base + 4096);
    assert!(!alone.is_open(), "it is elsewhere");
    sync::store(&own.base, base);
}
