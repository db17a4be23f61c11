use super::*;
use crate::engine::srq;
use crate::inside::prelude::*;

const ONE: &[RecvWr<'_>] = &[RecvWr::new(1, &[])];

#[test]
fn q09_a_new_queue_has_nothing_of_the_last_in_its_entry() {
    let limits = Limits::default().shared_receive_queues(1);
    let fixture = Fixture::of(OpenOptions::new().limits(limits));
    let mut last = fixture.srq(4);
    last.post_recv(ONE).unwrap();
    last.arm_limit(1).unwrap();
    last.destroy().unwrap();
    let slot = fixture.device.engine.srq(SrqNumber::new(0));
    assert_eq!(sync::load(&slot.number), 0, "nobody finds it");
    let srq = fixture.srq(4);
    assert_eq!((srq.waiting(), srq.limit().unwrap()), (0, 0));
}

#[test]
fn q09_each_queue_has_memory_of_its_own() {
    const MAX_WR: u32 = 512;
    let fixture = Fixture::new();
    let srqs = [(); 2].map(|()| fixture.srq(MAX_WR));
    let [first, second] = srqs.each_ref().map(|srq| {
        let slot = srq.shared.slot;
        sync::load(&slot.ring.offset)..sync::load(&slot.slots_at) + srq::bytes(MAX_WR) as u32
    });
    assert!(first.end <= second.start || second.end <= first.start, "{first:?} {second:?}");
}

#[test]
fn x03_a_slot_of_a_dead_process_is_free_though_who_completes_another_is_suspended() {
    let fixture = Fixture::new();
    let (device, other, mut srq) = (fixture.device, fixture.another_cq(), fixture.srq(2));
    let qps = [&fixture.cq, &other].map(|cq| fixture.create(&fixture.pd.qp(cq).srq(&srq)));
    srq.post_recv(&[RecvWr::new(1, &[]); 2]).unwrap();
    let taken = qps.each_ref().map(|qp| {
        let _guard = device.memory.lock(srq.shared.slot.pool.lock(), || {}).unwrap();
        srq.shared.queue.take(device.shm.attachment(), qp.qpn()).unwrap()
    });
    let wc = Wc::poisoned(Failed::new(1, WcStatus::LOC_PROT_ERR, qps[0].number(), 0).unwrap());
    fixture.dies_pushing(&wc, taken[0].tag());
    let _suspended = complete::lock(device.engine, other.handle.queue.index).unwrap();
    assert_eq!(srq.post_recv(ONE), Ok(()), "it has completed");
    // Or destroying waits for it.
    srq.shared.queue.free(&taken[1]);
}
