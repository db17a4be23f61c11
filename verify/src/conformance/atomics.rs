//! COMP_SWAP and FETCH_ADD (Q6).

use std::thread;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/atomics.rs"));

fn word<D: Device>(end: &End<D>, offset: usize) -> u64 {
    u64::from_ne_bytes(end.bytes(offset, 8).try_into().unwrap())
}

fn q06_compare_and_swap_swaps_on_a_match_only<D: Device>() {
    let (mut a, b) = pair::<D>();
    b.mr.write(64, &7u64.to_ne_bytes());
    let (result, at) = ([a.sge(16, 8)], b.remote(64));
    for (id, compare, swap, before, after) in
        [(1, 6, 99, 7, 7), (2, 7, u64::MAX, 7, u64::MAX), (3, u64::MAX, 5, u64::MAX, 5)]
    {
        a.post(SendWr::compare_swap(id, &result, at, compare, swap));
        a.expect_sent(&[(id, S::SUCCESS)]);
        assert_eq!(word(&a, 16), before, "what it held comes back");
        assert_eq!(word(&b, 64), after, "after comparing with {compare}");
    }
    assert_eq!((word(&b, 56), word(&b, 72)), (0, 0), "eight bytes and no more");
    assert_eq!((word(&a, 8), word(&a, 24)), (0, 0), "eight bytes and no more");
}

fn q06_fetch_and_add_adds_and_wraps<D: Device>() {
    let (mut a, b) = pair::<D>();
    let (result, at) = ([a.sge(16, 8)], b.remote(64));
    let mut held = 0u64;
    for (id, add) in [(1, 5), (2, u64::MAX), (3, 1 << 63), (4, 1 << 63), (5, 0)] {
        a.post(SendWr::fetch_add(id, &result, at, add));
        a.expect_sent(&[(id, S::SUCCESS)]);
        assert_eq!(word(&a, 16), held, "what it held comes back");
        held = held.wrapping_add(add);
        assert_eq!(word(&b, 64), held);
    }
    assert_eq!((word(&b, 56), word(&b, 72)), (0, 0), "eight bytes and no more");
}

fn q06_what_an_atomic_returns_may_be_in_several_sges<D: Device>() {
    const HELD: [u8; 8] = *b"abcdefgh";
    let plan = Plan { caps: CAPS.max_send_sge(8), ..Plan::default() };
    let (mut a, b) = pair_with::<D>(&plan, &Plan::default());
    let (at, held) = (b.remote(64), u64::from_ne_bytes(HELD));
    let cuts: [&[u32]; 8] =
        [&[8], &[1, 7], &[7, 1], &[3, 3, 2], &[0, 8], &[8, 0], &[3, 0, 0, 5], &[1; 8]];
    for cut in cuts {
        let places = || (1..).step_by(100).zip(cut);
        let sges: Vec<_> = places().map(|(place, length)| a.sge(place, *length)).collect();
        for (wr, after) in [
            (SendWr::fetch_add(1, &sges, at, 1), held.wrapping_add(1)),
            (SendWr::compare_swap(1, &sges, at, held, 77), 77),
        ] {
            a.mr.write(0, &[0; REGION]);
            b.mr.write(64, &HELD);
            a.post(wr);
            a.expect_sent(&[(1, S::SUCCESS)]);
            let bytes = places().map(|(place, length)| a.bytes(place as usize, *length as usize));
            assert_eq!(bytes.collect::<Vec<_>>().concat(), HELD, "in SGEs of {cut:?}");
            assert_eq!(word(&b, 64), after, "of SGEs of {cut:?}");
        }
    }
}

fn q06_atomics_of_many_queue_pairs_are_atomic<D: Device>() {
    const EACH: u64 = 500;
    let device = D::open();
    let pd = device.alloc_pd();
    let shared = device.register(&pd, 64, Access::EVERY).unwrap();
    let at = shared.remote(8);
    // The targets share a protection domain; each requester has a thread.
    let cq = device.create_cq(16, None).unwrap();
    let (mut ends, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let mut end = End::<D>::far(&Plan::default());
        let mut target = device.create_qp(&pd, &small(&cq)).unwrap();
        connect(&mut target, end.qp.number());
        end.connect(&target);
        targets.push(target);
        ends.push(end);
    }
    thread::scope(|scope| {
        for (nth, mut end) in ends.into_iter().enumerate() {
            scope.spawn(move || {
                let (mut added, mut held) = (0, 0);
                while added < EACH {
                    // The first one swaps, and tries again where another came first.
                    let result = [end.sge(0, 8)];
                    end.post(match nth {
                        0 => SendWr::compare_swap(added, &result, at, held, held + 1),
                        _ => SendWr::fetch_add(added, &result, at, 1),
                    });
                    end.expect_sent(&[(added, S::SUCCESS)]);
                    let found = word(&end, 0);
                    added += u64::from(nth > 0 || found == held);
                    held = found + u64::from(found == held);
                }
                end.qp
            });
        }
    });
    let mut sum = [0; 8];
    shared.read(8, &mut sum);
    assert_eq!(u64::from_ne_bytes(sum), 3 * EACH, "no addition was lost");
}

fn q06_a_fenced_request_sees_what_an_atomic_returned<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (result, at) = ([a.sge(0, 8)], b.remote(0));
    for round in 1..=50u64 {
        a.mr.write(0, &[0; 8]);
        b.mr.write(0, &round.to_ne_bytes());
        b.recv(1, 4096, 8);
        let fetches = match round % 2 {
            0 => SendWr::fetch_add(2, &result, at, 1 << 32),
            _ => SendWr::compare_swap(2, &result, at, round, 1 << 32),
        };
        a.post_all(&[
            fetches.unsignaled(),
            SendWr::write(3, &result, b.remote(64)).fenced().unsignaled(),
            SendWr::send(4, &result).fenced(),
        ]);
        b.expect_received(&[(1, S::SUCCESS)]);
        let seen = (word(&b, 64), word(&b, 4096));
        assert_eq!(seen, (round, round), "the WRITE and the SEND wait for the atomic");
        a.expect_sent(&[(4, S::SUCCESS)]);
    }
}
