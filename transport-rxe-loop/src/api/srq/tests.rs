use super::*;
use crate::engine::srq;
use crate::inside::prelude::*;

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(43);

const ONE: &[RecvWr<'_>] = &[RecvWr::new(1, &[])];

#[test]
fn q09_a_new_queue_has_nothing_of_the_last_in_its_entry() {
    let limits = Limits { shared_receive_queues: 1, ..Limits::default() };
    let (context, device) = OpenOptions::new().limits(limits).alone();
    let (pd, init) = (context.alloc_pd().unwrap(), SrqInit { max_wr: 4, max_sge: 1 });
    let mut last = pd.create_srq(&init).unwrap();
    last.post_recv(ONE).unwrap();
    last.arm_limit(1).unwrap();
    last.destroy().unwrap();
    assert_eq!(sync::load(&device.engine.srq(SrqNumber::new(0)).number), 0, "nobody finds it");
    let srq = pd.create_srq(&init).unwrap();
    assert_eq!((srq.waiting(), srq.limit().unwrap()), (0, 0));
}

#[test]
fn q09_each_queue_has_memory_of_its_own() {
    const MAX_WR: u32 = 512;
    let (context, device) = OpenOptions::new().alone();
    let pd = context.alloc_pd().unwrap();
    let srqs = [(); 2].map(|()| pd.create_srq(&SrqInit { max_wr: MAX_WR, max_sge: 1 }).unwrap());
    let [first, second] = srqs.each_ref().map(|srq| {
        let slot = device.engine.srq(SrqNumber::new(srq.number()));
        let slots_at = sync::load(&slot.slots_at);
        sync::load(&slot.ring.offset)..slots_at + srq::bytes(MAX_WR) as u32
    });
    assert!(first.end <= second.start || second.end <= first.start, "{first:?} {second:?}");
}

#[test]
fn x03_a_slot_of_a_dead_process_is_free_though_who_completes_another_is_suspended() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, cqs) =
        (context.alloc_pd().unwrap(), [(); 2].map(|()| context.create_cq(4, None).unwrap()));
    let mut srq = pd.create_srq(&SrqInit { max_wr: 2, max_sge: 1 }).unwrap();
    let qps = cqs
        .each_ref()
        .map(|cq| pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(cq) }).unwrap());
    srq.post_recv(&[RecvWr::new(1, &[]); 2]).unwrap();
    let taken = qps.each_ref().map(|qp| {
        let _guard = device.memory.lock(srq.shared.slot.pool.lock(), || {}).unwrap();
        srq.shared.queue.take(device.shm.attachment(), qp.qpn()).unwrap()
    });
    let [completes, suspended] = cqs.each_ref().map(|cq| cq.queue().index);
    let wc = complete::failed(1, qps[0].qpn(), WcStatus::LOC_PROT_ERR);
    push::die_pushing(
        device.completions,
        completes,
        AttachmentKey::new(ANOTHER.get(), 1),
        &wc,
        taken[0].tag(),
    );
    let _suspended = complete::lock(device.engine, suspended).unwrap();
    assert_eq!(srq.post_recv(ONE), Ok(()), "it has completed");
    // Or destroying waits for it.
    srq.shared.queue.free(&taken[1]);
}

#[test]
fn x03_who_sets_a_limit_inherits_the_lock_of_a_dead_process() {
    let (context, _fabric) = OpenOptions::new().alone();
    let mut srq =
        context.alloc_pd().unwrap().create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
    let lock = srq.shared.slot.pool.lock();
    assert!(lock.try_enter(AttachmentKey::new(ANOTHER.get(), 1)));
    assert_eq!((srq.arm_limit(1), srq.limit().unwrap()), (Ok(()), 1));
    assert_eq!(lock.holder(), None);
}

#[test]
fn x07_in_a_forked_child_nothing_is_posted_and_no_limit_is_set() {
    let (context, _fabric) = OpenOptions::new().alone();
    let mut srq =
        context.alloc_pd().unwrap().create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
    // There, zeros lie in its place.
    sync::release(&srq.shared.slot.number, 0);
    assert_eq!(srq.post_recv(ONE).unwrap_err().why, Refused::WrongState);
    assert_eq!(srq.arm_limit(1), Err(ArmLimitError::Forked));
    assert_eq!(srq.limit().map_err(|error| error.errno), Err(Errno::ENODEV));
    assert_eq!(srq.waiting(), 0);
}
