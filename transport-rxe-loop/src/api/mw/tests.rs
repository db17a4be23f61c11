use super::*;
use crate::engine::requester::local::{invalidate, invalidate_and_wait};
use crate::inside::prelude::*;
use crate::memory::region::{Bound, Kind, MrSlot, RegionEntry};

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(34);

/// A queue pair that is its own peer, and has a window for itself.
struct Alone {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
    window: MemoryWindow,
    pd: ProtectionDomain,
    device: &'static Device,
}

impl Alone {
    fn new() -> Self {
        Self::of((Context::open("loop0").unwrap(), Device::of_tests()))
    }

    /// In a fabric where no other test waits for what is copied.
    fn in_own_fabric() -> Self {
        Self::of(OpenOptions::new().alone())
    }

    fn of((context, device): (Context, &'static Device)) -> Self {
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(16, None).unwrap());
        let qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::MW_BIND).unwrap();
        let window = pd.alloc_mw().unwrap();
        let mut alone = Self { qp, cq, region, window, pd, device };
        alone.open();
        alone
    }

    fn open(&mut self) {
        let number = self.qp.number();
        self.qp.connect_to(number).unwrap();
        assert_eq!(self.bind(), WcStatus::SUCCESS);
    }

    fn bind(&mut self) -> WcStatus {
        let bind = WindowBind {
            window: self.window.rkey(),
            rkey: inc_rkey(self.window.rkey()),
            lkey: self.region.lkey(),
            addr: self.region.addr(),
            length: 64,
            access: Access::REMOTE_WRITE,
        };
        self.outcome(SendWr::bind_window(1, bind))
    }

    fn outcome(&mut self, wr: SendWr<'_>) -> WcStatus {
        self.qp.post_send(&[wr]).unwrap();
        let mut wcs = [Wc::default(); 1];
        assert_eq!(self.cq.poll(&mut wcs), Ok(1));
        wcs[0].status()
    }

    /// Whether its key lets one write. If not, the queue pair is made anew.
    fn is_open(&mut self) -> bool {
        let at = RemoteAddr { addr: self.region.addr(), rkey: self.window.rkey() };
        let is_open = self.outcome(SendWr::write_inline(2, b"x", at)) == WcStatus::SUCCESS;
        if !is_open {
            self.qp = self.pd.create_qp(&QpInit::new(&self.cq)).unwrap();
        }
        is_open
    }

    /// The entry of its window that all see.
    fn slot(&self) -> &'static MrSlot {
        self.device.memory.mr(self.window.entry.index)
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
        assert!(!alone.qp.has_windows() && !alone.region.has_windows());
        // It is not bound then, and can be.
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
    let (windows, key) = (alone.device.memory.windows(), alone.window.rkey());
    let closing =
        windows.begin_invalidate(alone.device.memory, alone.qp.qpn(), Key::new(key)).unwrap();
    assert_eq!(alone.bind(), WcStatus::MW_BIND_ERR);
    assert_eq!(alone.window.rkey(), key);
    assert!(closing.finish(alone.device.memory));
    alone.qp = alone.pd.create_qp(&QpInit::new(&alone.cq)).unwrap();
    alone.open();
    assert!(alone.is_open());
}

#[test]
fn q07_a_key_that_a_window_had_before_takes_nothing_away() {
    let alone = Alone::new();
    let (windows, old) = (alone.device.memory.windows(), alone.window.entry.key());
    assert_ne!(old.get(), alone.window.rkey());
    assert!(windows.begin_invalidate(alone.device.memory, alone.qp.qpn(), old).is_none());
    assert!(alone.qp.has_windows());
}

#[test]
fn q07_a_key_is_not_invalidated_whose_window_is_deallocated_meanwhile() {
    let Alone { qp, window, region: _region, device, .. } = Alone::new();
    let (windows, key) = (device.memory.windows(), window.rkey());
    let closing = windows.begin_invalidate(device.memory, qp.qpn(), Key::new(key)).unwrap();
    drop(window);
    assert!(!closing.finish(device.memory));
}

/// Takes the key away while somebody copies who may do that through it.
fn outlasts_the_copy<'a>(copies: impl Fn(&Alone) -> CopyGuard<'a>) {
    let alone = Alone::in_own_fabric();
    let (device, number, key) = (alone.device, alone.qp.number(), alone.window.rkey());
    let in_flight = copies(&alone);
    thread::scope(|scope| {
        let invalidates = scope
            .spawn(|| invalidate_and_wait(device.engine, QpNumber::new(number), Key::new(key)));
        until("the key is dead", || sync::load(&alone.slot().key) == 0);
        (0..200).for_each(|_| thread::yield_now());
        assert!(!invalidates.is_finished(), "bytes may still move");
        drop(in_flight);
        assert!(invalidates.join().unwrap(), "no bytes move any more");
    });
}

#[test]
fn q06_invalidating_waits_for_what_the_peer_copies() {
    outlasts_the_copy(|alone| {
        alone.device.engine.copy_guard(alone.device.engine.qp(alone.qp.qpn()), alone.qp.index())
    });
}

#[test]
fn q06_invalidating_waits_for_what_is_copied_for_a_peer_of_another_process() {
    let in_flight = |alone: &Alone| alone.device.memory.copier().in_flight();
    outlasts_the_copy(|alone| CopyGuard::open_to_own(alone.device.memory, in_flight(alone)));
}

#[test]
fn q06_the_key_of_another_process_is_invalidated_once_and_not_without_its_region() {
    let (_context, device) = OpenOptions::new().alone();
    let qps = device.engine.qps();
    let (index, generation) = qps.claim(ANOTHER).unwrap();
    let qp = identity::number_of(qps, index, generation);
    let [(region, region_slot, region_holder), (key, slot, holder)] = [(); 2].map(|()| {
        let (index, generation) = device.memory.mrs().claim(ANOTHER).unwrap();
        (Key::of(index, 0), device.memory.mr(index), (ANOTHER, generation))
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
    let index = alone.region.lkey() >> 8;
    let slot = alone.device.memory.own(RegionIndex::new(index));
    let entry = RegionEntry::read(slot, Key::new(alone.region.lkey())).unwrap();
    let (place, generation) =
        alone.device.memory.mr(RegionIndex::new(index)).life().holder().unwrap();
    entry.write(slot, (place, generation));
    assert!(alone.is_open());
    entry.write(slot, (place, generation + 255));
    assert!(!alone.is_open());
}

#[test]
fn q06_a_send_takes_the_key_that_all_see_and_the_own_one() {
    let mut alone = Alone::new();
    let key = alone.window.rkey();
    alone.qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    alone.qp.post_send(&[SendWr::send_with_inv(2, &[], key)]).unwrap();
    let own = alone.device.memory.own(alone.window.entry.index);
    assert_eq!((sync::load(&own.key), sync::load(&alone.slot().key)), (0, 0));
}

#[test]
fn no_window_has_the_entry_whose_key_may_be_0() {
    let context = Context::open("loop0").unwrap();
    let pd = context.alloc_pd().unwrap();
    // More than there are places.
    for _ in 0..2 * context.attributes().max_mw {
        let window = pd.alloc_mw().unwrap();
        assert_ne!(window.entry.index, RegionIndex::new(0));
    }
}

#[test]
fn q06_a_window_to_read_from_needs_no_right_to_write() {
    let mut alone = Alone::new();
    let region = alone.pd.allocate(64, Access::MW_BIND).unwrap();
    let target = RemoteAddr { addr: region.addr(), rkey: inc_rkey(alone.window.rkey()) };
    assert_eq!(alone.outcome(SendWr::local_invalidate(1, alone.window.rkey())), WcStatus::SUCCESS);
    let bind = WindowBind {
        window: alone.window.rkey(),
        rkey: target.rkey,
        lkey: region.lkey(),
        addr: region.addr(),
        length: 64,
        access: Access::REMOTE_READ,
    };
    assert_eq!(alone.outcome(SendWr::bind_window(1, bind)), WcStatus::SUCCESS);
    let here = [alone.region.sge(0, 8).unwrap()];
    assert_eq!(alone.outcome(SendWr::read(2, &here, target)), WcStatus::SUCCESS);
}

#[test]
fn q06_a_window_gives_no_more_than_its_region() {
    let mut alone = Alone::new();
    let own = alone.device.memory.own(RegionIndex::new(alone.region.lkey() >> 8));
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
