//! The effect of the operations on memory (Q6, Q8).

use std::sync::mpsc;
use std::thread;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/operations.rs"));

/// Fills the region with bytes that encode their offset, starting at `seed`.
fn fill<D: Device>(end: &End<D>, seed: u8) {
    end.mr.write(0, &pattern(seed, REGION));
}

fn pattern(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7) as u8 ^ (at >> 8) as u8 ^ seed).collect()
}

fn q06_a_send_gathers_and_its_receive_scatters<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    fill(&a, 0x55);
    let from = [a.sge(3, 5), a.sge(0, 0), a.sge(100, 17), a.sge(9, 2)];
    let sent = [a.bytes(3, 5), a.bytes(100, 17), a.bytes(9, 2)].concat();
    b.qp.post_recv(&[RecvWr::new(1, &[b.sge(50, 10), b.sge(0, 7), b.sge(200, 30)])]).unwrap();
    a.post(SendWr::send(2, &from));
    assert_eq!(b.expect_received(&[(1, S::SUCCESS)])[0].result().unwrap().byte_len(), 24);
    assert_eq!([b.bytes(50, 10), b.bytes(0, 7), b.bytes(200, 7)].concat(), sent);
    a.expect_sent(&[(2, S::SUCCESS)]);
}

fn q06_a_receive_past_the_message_keeps_what_it_held<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    fill(&b, 1);
    let mut wanted = pattern(1, REGION);
    wanted[16..21].copy_from_slice(b"hello");
    b.recv(1, 16, 100);
    a.send(2);
    b.expect_received(&[(1, S::SUCCESS)]);
    assert!(b.bytes(0, REGION) == wanted, "more than the message was written");
}

fn q06_a_write_gathers_and_tells_the_target_nothing<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    fill(&a, 2);
    fill(&b, 3);
    b.recv(1, 0, 8);
    let mut wanted = pattern(3, REGION);
    wanted[1001..1021].copy_from_slice(&[a.bytes(5, 13), a.bytes(64, 7)].concat());
    a.post(SendWr::write(2, &[a.sge(5, 13), a.sge(64, 7)], b.remote(1001)));
    a.expect_sent(&[(2, S::SUCCESS)]);
    assert!(b.bytes(0, REGION) == wanted, "exactly the bytes of the WRITE");
    b.expect_nothing();
}

fn q06_a_read_scatters<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    fill(&a, 5);
    fill(&b, 6);
    b.recv(1, 0, 8);
    let mut wanted = pattern(5, REGION);
    let read = pattern(6, REGION)[777..801].to_vec();
    wanted[10..30].copy_from_slice(&read[..20]);
    wanted[100..104].copy_from_slice(&read[20..]);
    a.post(SendWr::read(2, &[a.sge(10, 20), a.sge(0, 0), a.sge(100, 4)], b.remote(777)));
    a.expect_sent(&[(2, S::SUCCESS)]);
    assert!(a.bytes(0, REGION) == wanted, "exactly the bytes that were read");
    assert!(b.bytes(0, REGION) == pattern(6, REGION), "reading changes nothing");
    b.expect_nothing();
}

fn q06_a_fenced_request_sees_what_was_read<D: Device>() {
    for round in 0..50u8 {
        let (mut a, mut b) = pair::<D>();
        b.mr.write(0, &[round + 1; 4096]);
        b.recv(1, 4096, 4096);
        let big = [a.sge(0, 4096)];
        let list =
            [SendWr::read(2, &big, b.remote(0)).unsignaled(), SendWr::send(3, &big).fenced()];
        a.qp.post_send(&list).unwrap();
        b.expect_received(&[(1, S::SUCCESS)]);
        assert!(b.bytes(4096, 4096) == [round + 1; 4096], "the SEND waits for the READ");
        a.expect_sent(&[(3, S::SUCCESS)]);
    }
}

fn q06_a_fenced_request_waits_for_nothing_behind_it<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let word = [a.sge(0, 8)];
    let list = [SendWr::send(1, &word).fenced(), SendWr::read(2, &word, b.remote(0))];
    a.qp.post_send(&list).unwrap(); // nobody receives
    a.expect_silence();
    b.recv(3, 0, 8);
    a.expect_sent(&all(1..3, S::SUCCESS));
    b.expect_received(&[(3, S::SUCCESS)]);
}

fn q06_inline_bytes_are_free_when_posting_returns<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let mut bytes = *b"before";
    a.post(SendWr::send_inline(1, &bytes)); // waits for a receive
    a.post(SendWr::write_inline(2, &bytes, b.remote(100))); // waits behind it
    bytes.copy_from_slice(b"after!");
    b.recv(3, 0, 8);
    a.expect_sent(&all(1..3, S::SUCCESS));
    assert_eq!((b.bytes(0, 6), b.bytes(100, 6)), (b"before".to_vec(), b"before".to_vec()));
    assert_eq!(&bytes, b"after!");
}

fn q06_no_bytes_need_no_keys<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let garbage = [Sge { addr: u64::MAX, length: 0, lkey: 0xdead_beef }; 2];
    let nowhere = RemoteAddr { addr: u64::MAX - 1, rkey: 0xdead_beef };
    b.qp.post_recv(&[RecvWr::new(1, &garbage), RecvWr::new(2, &[])]).unwrap();
    a.post(SendWr::send(10, &garbage));
    a.post(SendWr::send(11, &[]));
    a.post(SendWr::write(12, &garbage, nowhere));
    a.post(SendWr::write_inline(13, &[], nowhere));
    a.post(SendWr::read(14, &garbage, nowhere));
    a.post(SendWr::read(15, &[], nowhere));
    a.expect_sent(&all(10..16, S::SUCCESS));
    for wc in b.expect_received(&all(1..3, S::SUCCESS)) {
        assert_eq!(wc.result().unwrap().byte_len(), 0);
    }
}

fn q06_an_sge_that_overlaps_its_target_arrives_as_it_was<D: Device>() {
    let mut a = End::<D>::near(&Plan::default());
    let itself = a.qp.number();
    a.bring_to(QpState::RTS, itself);
    for (from, to, length) in
        [(0u64, 8u64, 64u32), (8, 0, 64), (0, 3, 1000), (3, 0, 5000), (5, 5, 9)]
    {
        fill(&a, 9);
        let before = a.bytes(from as usize, length as usize);
        a.post(SendWr::write(1, &[a.sge(from, length)], a.remote(to)));
        a.expect_sent(&[(1, S::SUCCESS)]);
        assert!(a.bytes(to as usize, length as usize) == before, "WRITE {from} to {to}");
        fill(&a, 10);
        let before = a.bytes(from as usize, length as usize);
        a.post(SendWr::read(2, &[a.sge(to, length)], a.remote(from)));
        a.expect_sent(&[(2, S::SUCCESS)]);
        assert!(a.bytes(to as usize, length as usize) == before, "READ {from} to {to}");
    }
}

fn q06_a_message_of_every_small_length_arrives<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    fill(&a, 8);
    for length in 0..=66u32 {
        for (from, to) in [(0, 0), (1, 4), (6, 3)] {
            b.mr.write(0, &[0xee; 80]);
            b.recv(1, to, length);
            a.post(SendWr::send(2, &[a.sge(from, length)]));
            b.expect_received(&[(1, S::SUCCESS)]);
            let (to, length) = (to as usize, length as usize);
            let sent = &pattern(8, REGION)[from as usize..][..length];
            assert_eq!(b.bytes(to, length), sent, "{length} bytes from {from} to {to}");
            assert_eq!(b.bytes(to + length, 5), [0xee; 5], "and none behind them");
            a.expect_sent(&[(2, S::SUCCESS)]);
        }
    }
}

fn q06_a_write_and_a_read_of_every_small_length_arrive<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    fill(&a, 8);
    for length in (1..=66u32).chain([300, 4095, 4096, 4097, 5000]) {
        for (from, to) in [(0u64, 0u64), (5, 11), (6, 3)] {
            let (start, end) = (to as usize, to as usize + length as usize);
            let untouched = vec![0xee; end + 5];
            let mut wanted = untouched.clone();
            let sent = &pattern(8, REGION)[from as usize..][..length as usize];
            wanted[start..end].copy_from_slice(sent);
            b.mr.write(0, &untouched);
            a.post(SendWr::write(1, &[a.sge(from, length)], b.remote(to)));
            a.expect_sent(&[(1, S::SUCCESS)]);
            assert!(b.bytes(0, end + 5) == wanted, "WRITE of {length} bytes, {from} to {to}");
            b.mr.write(0, &untouched);
            b.post(SendWr::read(2, &[b.sge(to, length)], a.remote(from)));
            b.expect_sent(&[(2, S::SUCCESS)]);
            assert!(b.bytes(0, end + 5) == wanted, "READ of {length} bytes, {from} to {to}");
        }
    }
    b.expect_nothing();
}

fn q06_a_long_message_arrives<D: Device>() {
    const LONG: usize = 1 << 20;
    let (mut a, mut b) = pair::<D>();
    let from = a.device.register(&a.pd, LONG, Access::EVERY).unwrap();
    let to = b.device.register(&b.pd, LONG + 8, Access::EVERY).unwrap();
    let sent = pattern(9, LONG);
    from.write(0, &sent);
    let mut got = vec![0; LONG];
    b.qp.post_recv(&[RecvWr::new(1, &[to.sge(0, LONG as u32)])]).unwrap();
    a.post(SendWr::send(2, &[from.sge(0, LONG as u32)]));
    b.expect_received(&[(1, S::SUCCESS)]);
    to.read(0, &mut got);
    assert!(got == sent, "a SEND of {LONG} bytes");
    a.post(SendWr::write(3, &[from.sge(0, LONG as u32)], to.remote(8)));
    a.expect_sent(&all(2..4, S::SUCCESS));
    to.read(8, &mut got);
    assert!(got == sent, "a WRITE of {LONG} bytes");
}

fn q08_a_write_is_visible_before_a_later_send_completes<D: Device>() {
    const ROUNDS: u64 = 300;
    // The observer is the near end, because remote calls are slow.
    let (b, mut a) = pair::<D>();
    let End { mut qp, mut received, mr, device: _device, .. } = b;
    let to = mr.remote(0);
    for id in 0..8 {
        qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..ROUNDS {
                let mut buffer = [Wc::default(); 1];
                wait_for("the message arrives", || received.poll_into(&mut buffer).unwrap() == 1);
                // Later rounds may have been written already; an earlier one must not be visible any more.
                let mut seen = vec![0; 2048];
                mr.read(0, &mut seen);
                let oldest =
                    seen.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
                assert!(
                    oldest.min() > Some(round),
                    "round {round} completed before it was visible"
                );
                qp.post_recv(&[RecvWr::new(round + 8, &[])]).unwrap();
            }
            (qp, mr)
        });
        for round in 0..ROUNDS {
            a.mr.write(0, &(round + 1).to_ne_bytes().repeat(256));
            a.post(SendWr::write(1, &[a.sge(0, 2048)], to).unsignaled());
            a.post(SendWr::send_inline(2, b""));
            a.expect_sent(&[(2, S::SUCCESS)]);
        }
    });
}

fn q08_the_last_eight_bytes_of_a_write_become_visible_last<D: Device>() {
    const ROUNDS: u64 = 300;
    // The observer is the near end, because remote calls are slow.
    let (b, mut a) = pair::<D>();
    let End { qp: _qp, mr, device: _device, .. } = b;
    let to = mr.remote(0);
    let (seen, next) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..ROUNDS {
                let length = [4096, 64, 1000, 2056][round as usize % 4];
                let mut last = [0; 8];
                wait_for("the last bytes arrive", || {
                    mr.read(length - 8, &mut last);
                    u64::from_ne_bytes(last) == round + 1
                });
                let mut all = vec![0; length];
                mr.read(0, &mut all);
                let whole = all.chunks(8).all(|word| word == (round + 1).to_ne_bytes());
                assert!(whole, "the last eight of {length} bytes came before others");
                mr.write(0, &[0; 4096]);
                seen.send(()).unwrap();
            }
        });
        for round in 0..ROUNDS {
            let length = [4096, 64, 1000, 2056][round as usize % 4];
            a.mr.write(0, &(round + 1).to_ne_bytes().repeat(512));
            a.post(SendWr::write(1, &[a.sge(0, length)], to));
            a.expect_sent(&[(1, S::SUCCESS)]);
            if next.recv().is_err() {
                return; // the reader has said why
            }
        }
    });
}
