//! Registering, destroying and resizing (Q10–Q12).

use std::time::Instant;

use cq_core::transport::PollError;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

fn q10_remote_writing_needs_local_writing<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    for bits in 0..16 {
        let access = Access::from_bits_retain(bits);
        let by_peers = access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
        let refused = by_peers && !access.contains(Access::LOCAL_WRITE);
        let said = device.register(&pd, 64, access).map(drop);
        assert_eq!(said, if refused { Err(Errno::EINVAL) } else { Ok(()) }, "{access:?}");
    }
}

fn q10_optional_flags_are_taken<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    for bit in 20..30 {
        let access = Access::EVERY | Access::from_bits_retain(1 << bit);
        assert!(device.register(&pd, 64, access).is_ok(), "bit {bit}");
    }
}

fn q10_nothing_cannot_be_registered<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    assert!(device.register(&pd, 0, Access::EVERY).is_err());
}

fn q10_new_memory_holds_zeros<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    for _ in 0..3 {
        let region = device.register(&pd, 4096, Access::EVERY).unwrap();
        let mut bytes = [1; 4096];
        region.read(0, &mut bytes);
        assert_eq!(bytes, [0; 4096]);
        region.write(0, &[7; 4096]);
    }
}

fn q10_a_key_is_dead_when_its_region_is_gone<D: Device>() {
    let (mut a, b) = pair::<D>();
    let region = b.device.register(&b.pd, 64, Access::EVERY).unwrap();
    let (at, word) = (region.remote(0), [a.sge(0, 8)]);
    a.post(SendWr::write(1, &word, at));
    a.expect_sent(&[(1, S::SUCCESS)]);
    drop(region);
    a.post(SendWr::write(2, &word, at));
    a.expect_sent(&[(2, S::REM_ACCESS_ERR)]);
}

fn q10_a_later_region_does_not_revive_a_key<D: Device>() {
    let (mut a, b) = pair::<D>();
    let old = b.device.register(&b.pd, 64, Access::EVERY).unwrap().rkey();
    for _ in 0..20 {
        let new = b.device.register(&b.pd, 64, Access::EVERY).unwrap();
        assert_ne!(new.rkey(), old);
    }
    let new = b.device.register(&b.pd, 64, Access::EVERY).unwrap();
    a.post(SendWr::write_inline(1, b"x", RemoteAddr { rkey: old, ..new.remote(0) }));
    a.expect_sent(&[(1, S::REM_ACCESS_ERR)]);
}

fn q11_what_is_in_use_stays_and_works<D: Device>() {
    let device = D::open();
    let (pd, cq) = (device.alloc_pd(), device.create_cq(8, None).unwrap());
    let region = device.register(&pd, 64, Access::EVERY).unwrap();
    let pd = pd.destroy().expect_err("a region belongs to it");
    let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
    let mut cq = cq.destroy().expect_err("a queue pair uses it");
    let mut peer = End::<D>::far(&Plan::default());
    connect(&mut qp, peer.qp.number());
    peer.connect(&qp);
    qp.post_send(&[SendWr::write(1, &[region.sge(0, 8)], peer.remote(0))]).unwrap();
    expect(&device, &mut cq, qp.number(), &[(1, S::SUCCESS)]);
    drop(region);
    let pd = pd.destroy().expect_err("a queue pair belongs to it");
    drop(qp);
    assert!(cq.destroy().is_ok() && pd.destroy().is_ok(), "nothing uses them any more");
}

fn q11_a_destroyed_queue_pair_drops_what_is_outstanding<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for id in 0..4 {
        a.send(id); // nobody receives: they wait
        a.recv(10 + id, 0, 8);
    }
    let End { qp, mut sent, mut received, device, .. } = a;
    drop(qp);
    assert_eq!(settle(&device, &mut sent, 0), []);
    assert_eq!(settle(&device, &mut received, 0), []);
    b.recv(1, 0, 8);
    b.expect_silence();
}

fn q11_what_completed_outlives_its_queue_pair<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.post(SendWr::write_inline(1, b"x", b.remote(0)));
    rest(&a.device);
    let End { qp, mut sent, device, .. } = a;
    let number = qp.number();
    drop(qp);
    expect(&device, &mut sent, number, &[(1, S::SUCCESS)]);
}

/// A pair whose first end has a channel, a send completion queue of eight, and a large send queue.
fn resizable<D: Device>() -> (End<D>, End<D>) {
    let caps = CAPS.max_send_wr(64);
    pair_with(&Plan { caps, cqe: 8, ..Plan::with_channel() }, &Plan::default())
}

fn q12_growing_keeps_what_waits_in_order<D: Device>() {
    let (mut a, b) = resizable::<D>();
    complete(&mut a, &b, 0..6);
    let size = a.sent.resize(32).unwrap();
    assert!(size >= 32 && a.sent.capacity() == size, "{size}");
    complete(&mut a, &b, 6..32);
    a.expect_sent(&all(0..32, S::SUCCESS));
    assert_eq!(a.qp.state(), QpState::RTS);
}

fn q12_the_new_size_is_in_force<D: Device>() {
    let (mut a, b) = resizable::<D>();
    let size = a.sent.resize(4).unwrap();
    assert!(size >= 4 && a.sent.capacity() == size, "{size}");
    let size = u64::from(size);
    complete(&mut a, &b, 0..size);
    assert_eq!(a.take_async(), [], "{size} are no overrun");
    let most = (4 * size + 16).min(64);
    for id in size..most {
        if a.try_post(SendWr::write_inline(id, b"x", b.remote(0))).is_err() {
            break;
        }
    }
    let overrun = (AsyncEventType::CQ_ERR, Element::Cq(a.sent.key()));
    let start = Instant::now();
    while !a.is_told(overrun.0, overrun.1) {
        assert!(start.elapsed() < patience(), "{most} do not overrun a queue of {size}");
        a.device.pause();
    }
    let mut buffer = [Wc::default(); 64];
    let stored = a.sent.poll_into(&mut buffer).unwrap();
    assert!((size..most).contains(&(stored as u64)), "{stored} of {most} were stored");
    assert!(matches!(a.sent.poll_into(&mut buffer), Err(PollError::Overrun { .. })));
}

fn q12_shrinking_keeps_what_waits<D: Device>() {
    let (mut a, b) = resizable::<D>();
    complete(&mut a, &b, 0..5);
    let size = a.sent.resize(5).unwrap();
    assert!(size >= 5, "{size}");
    a.expect_sent(&all(0..5, S::SUCCESS));
    complete(&mut a, &b, 5..10);
    a.expect_sent(&all(5..10, S::SUCCESS));
}

fn q12_below_what_waits_is_refused_and_changes_nothing<D: Device>() {
    let (mut a, b) = resizable::<D>();
    let before = a.sent.capacity();
    complete(&mut a, &b, 0..5);
    for size in 1..5 {
        assert_eq!(a.sent.resize(size), Err(Errno::EINVAL), "to {size} while 5 wait");
    }
    assert_eq!(a.sent.capacity(), before);
    complete(&mut a, &b, 5..8);
    a.expect_sent(&all(0..8, S::SUCCESS));
    assert!(a.sent.resize(1).is_ok(), "nothing waits any more");
}

fn q12_out_of_range_is_refused<D: Device>() {
    let (mut a, b) = resizable::<D>();
    let most = a.device.limits().max_cqe;
    for size in [0, most + 1, u32::MAX] {
        assert!(a.sent.resize(size).is_err(), "to {size}");
    }
    complete(&mut a, &b, 0..8);
    a.expect_sent(&all(0..8, S::SUCCESS));
}

fn q12_an_arm_and_its_event_survive<D: Device>() {
    let (mut a, b) = resizable::<D>();
    let key = a.sent.key();
    arm(&mut a.sent, Notify::Next);
    a.sent.resize(32).unwrap();
    assert_eq!(a.sent.key(), key, "it is the same queue");
    a.expect_no_event();
    complete(&mut a, &b, 0..1);
    a.sent.resize(16).unwrap();
    a.expect_event(key);
    complete(&mut a, &b, 1..2);
    a.expect_no_event();
    a.expect_sent(&all(0..2, S::SUCCESS));
}

fn q12_resizing_again_and_again_loses_nothing<D: Device>() {
    let (mut a, b) = resizable::<D>();
    let mut next = 0;
    for (round, size) in [64, 9, 33, 8, 16, 64, 12, 8].into_iter().cycle().take(64).enumerate() {
        complete(&mut a, &b, next..next + 4);
        a.sent.resize(size).unwrap();
        complete(&mut a, &b, next + 4..next + 8);
        let mut got = vec![Wc::default(); round % 8 + 1];
        let count = a.sent.poll_into(&mut got).unwrap() as u64;
        assert!(got.iter().zip(next..).take(count as usize).all(|(wc, id)| wc.wr_id() == id));
        a.expect_sent(&all(next + count..next + 8, S::SUCCESS));
        next += 8;
    }
}
