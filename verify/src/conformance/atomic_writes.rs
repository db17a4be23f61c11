//! ATOMIC_WRITE: eight bytes that become visible at once (Q6, Q7).

use std::thread;

use super::line::*;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/atomic_writes.rs"));

fn c06_an_atomic_write_is_told_by_its_opcode<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.post(SendWr::atomic_write(1, &[a.sge(0, 8)], b.remote(0)));
    let done = a.expect_sent(&[(1, S::SUCCESS)])[0];
    assert_eq!(done.result().unwrap().opcode(), WcOpcode::ATOMIC_WRITE);
    assert!(!done.result().unwrap().is_recv());
}

fn q06_an_atomic_write_writes_eight_bytes_and_no_more<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.mr.write(0, b"in one s");
    b.mr.write(0, &[1; 64]);
    a.post(SendWr::atomic_write(1, &[a.sge(0, 8)], b.remote(16)));
    a.expect_sent(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 64), [&[1; 16], b"in one s".as_slice(), &[1; 40]].concat());
}

fn q06_an_atomic_write_may_be_inline_or_in_sges<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.mr.write(0, b"pie");
    a.mr.write(100, b"ces!!");
    a.post(SendWr::atomic_write(1, &[a.sge(0, 3), a.sge(50, 0), a.sge(100, 5)], b.remote(0)));
    a.post(SendWr::atomic_write_inline(2, b"inlined!", b.remote(8)));
    a.expect_sent(&all(1..3, S::SUCCESS));
    assert_eq!(b.bytes(0, 16), b"pieces!!inlined!");
}

fn q06_an_atomic_write_takes_no_receive<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 64, 8);
    a.post(SendWr::atomic_write_inline(2, b"eight by", b.remote(0)).solicited());
    a.expect_sent(&[(2, S::SUCCESS)]);
    b.expect_nothing();
}

fn q06_atomic_writes_and_atomics_are_one_step_to_each_other<D: Device>() {
    const ROUNDS: u64 = 500;
    let device = D::open();
    let pd = device.alloc_pd();
    let shared = device.register(&pd, 64, Access::EVERY).unwrap();
    let at = shared.remote(8);
    let cq = device.create_cq(16, None).unwrap();
    let mut ends = [(); 2].map(|()| End::<D>::far(&Plan::default()));
    let _targets = ends.each_mut().map(|end| {
        let mut target = device.create_qp(&pd, &small(&cq)).unwrap();
        connect(&mut target, end.qp.number());
        end.connect(&target);
        target
    });
    let [mut writer, mut reader] = ends;
    thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..ROUNDS {
                let word = [0, u64::MAX][round as usize % 2].to_ne_bytes();
                writer.post(SendWr::atomic_write_inline(round, &word, at));
                writer.expect_sent(&[(round, S::SUCCESS)]);
            }
        });
        scope.spawn(move || {
            for round in 0..ROUNDS {
                // Adding 0 writes back the value that was read.
                reader.post(SendWr::fetch_add(round, &[reader.sge(0, 8)], at, 0));
                reader.expect_sent(&[(round, S::SUCCESS)]);
                let seen = reader.bytes(0, 8);
                assert!(seen == [0; 8] || seen == [0xff; 8], "half of a word was seen: {seen:?}");
            }
        });
    });
    let mut last = [0; 8];
    shared.read(8, &mut last);
    assert_eq!(last, [0xff; 8], "the last word that was written stays");
}

fn q06_an_atomic_write_is_no_read_or_atomic<D: Device>() {
    let none = attr::rts().max_rd_atomic(0);
    let takes_none = attr::rtr(0).max_dest_rd_atomic(0);
    let (mut a, b) = pair_with::<D>(
        &Plan { rts: none, ..Plan::default() },
        &Plan { rtr: takes_none, ..Plan::default() },
    );
    a.post(SendWr::atomic_write_inline(1, b"eight by", b.remote(0)));
    a.expect_sent(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 8), b"eight by");
}

fn q07_an_atomic_write_of_other_than_eight_bytes<D: Device>() {
    for length in [0, 4, 7, 9, 16] {
        let (mut a, mut b) = pair::<D>();
        // Validated before anything else.
        let (odd, at) = ([a.sge(0, length)], RemoteAddr { rkey: NO_KEY, ..b.remote(1) });
        fails(&mut a, &mut b, SendWr::atomic_write(1, &odd, at), ODD);
        let (mut a, mut b) = pair::<D>();
        let op = SendOp::AtomicWrite { remote: b.remote(8) };
        let inline = [7; 16];
        let wr = SendWr::new(1, op, Data::Inline(&inline[..length as usize]));
        fails(&mut a, &mut b, wr, ODD);
    }
}

fn q07_an_atomic_write_that_is_not_aligned<D: Device>() {
    for (offset, rkey) in [(1, None), (4, None), (7, Some(NO_KEY))] {
        let (mut a, mut b) = pair::<D>();
        let at = b.remote(offset);
        let at = RemoteAddr { rkey: rkey.unwrap_or(at.rkey), ..at };
        let word = [a.sge(0, 8)];
        fails(&mut a, &mut b, SendWr::atomic_write(1, &word, at), INVALID);
    }
}

fn q07_an_atomic_write_to_memory_that_may_not_be_reached<D: Device>() {
    for case in 0..5 {
        let (mut a, mut b) = pair::<D>();
        let others = Access::EVERY.difference(Access::REMOTE_WRITE);
        let lacking = b.device.register(&b.pd, 64, others).unwrap();
        let dead = b.device.register(&b.pd, 64, Access::EVERY).unwrap().remote(8);
        let at = [
            RemoteAddr { rkey: NO_KEY, ..b.remote(8) },
            b.remote(REGION as u64),
            b.remote(0u64.wrapping_sub(8)),
            lacking.remote(8),
            dead,
        ][case];
        fails(&mut a, &mut b, SendWr::atomic_write_inline(1, &[7; 8], at), ACCESS);
        let mut kept = [1; 64];
        lacking.read(0, &mut kept);
        assert_eq!(kept, [0; 64], "what may not be reached is unchanged");
    }
}

fn without_the_right<D: Device>() -> (End<D>, End<D>) {
    let access = Access::EVERY.difference(Access::REMOTE_WRITE);
    pair_with(&Plan::default(), &Plan { access, ..Plan::default() })
}

fn q07_an_atomic_write_without_the_queue_pairs_right<D: Device>() {
    let (mut a, mut b) = without_the_right::<D>();
    let at = RemoteAddr { rkey: NO_KEY, ..b.remote(8) };
    fails(&mut a, &mut b, SendWr::atomic_write_inline(1, &[7; 8], at), INVALID);
}

fn q07_an_atomic_write_judges_the_local_key_first<D: Device>() {
    for rkey in [None, Some(NO_KEY)] {
        let (mut a, mut b) = pair::<D>();
        let at = b.remote(8);
        let at = RemoteAddr { rkey: rkey.unwrap_or(at.rkey), ..at };
        let nobodys = [Sge { lkey: NO_KEY, ..a.sge(0, 8) }];
        fails(&mut a, &mut b, SendWr::atomic_write(1, &nobodys, at), LOCAL);
    }
}

fn q07_the_target_is_told_of_an_atomic_write_that_it_refused<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let at = RemoteAddr { rkey: NO_KEY, ..b.remote(8) };
    a.post(SendWr::atomic_write_inline(1, &[7; 8], at));
    a.expect_sent(&[(1, S::REM_ACCESS_ERR)]);
    b.expect_async(&[(AsyncEventType::QP_ACCESS_ERR, b.element())]);
    let (mut a, mut b) = without_the_right::<D>();
    a.post(SendWr::atomic_write_inline(1, &[7; 8], b.remote(8)));
    a.expect_sent(&[(1, S::REM_INV_REQ_ERR)]);
    b.expect_async(&[(AsyncEventType::QP_REQ_ERR, b.element())]);
}
