//! Completions (C4–C11).

use std::collections::BTreeMap;
use std::thread;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/completions.rs"));

/// A remote address with a key of no region.
fn nowhere<D: Device>(b: &End<D>) -> RemoteAddr {
    RemoteAddr { rkey: 0, ..b.remote(0) }
}

fn c04_a_failure_names_its_request_and_its_queue_pair<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(u64::MAX, 0, 4);
    a.post(SendWr::write_inline(u64::MAX - 1, b"x", nowhere(&b)));
    // `expect` compares the queue pair's number, too.
    let failed = a.expect_sent(&[(u64::MAX - 1, S::REM_ACCESS_ERR)])[0];
    assert!(failed.result().is_err());
    let flushed = b.expect_received(&[(u64::MAX, S::WR_FLUSH_ERR)])[0];
    assert!(flushed.result().is_err());
}

fn c05_immediate_arrives_as_it_was_sent<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.post(SendWr::send_inline(3, b"x").with_imm([1, 2, 3, 0xfe]));
    a.post(SendWr::send_inline(4, b"").with_imm([0xff, 0, 9, 8]));
    let got = b.expect_received(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(got[0].result().unwrap().imm(), Some([1, 2, 3, 0xfe]));
    assert_eq!(got[1].result().unwrap().imm(), Some([0xff, 0, 9, 8]), "without a byte");
    assert!(got.iter().all(|wc| wc.result().unwrap().invalidated_rkey().is_none()));
}

fn c05_without_immediate_there_is_none<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for id in 0..2 {
        b.recv(id, 0, 8);
    }
    // The second must not inherit fields of the first.
    a.post(SendWr::send_inline(2, b"x").with_imm([7; 4]));
    a.post(SendWr::send_inline(3, b"x"));
    let got = b.expect_received(&all(0..2, S::SUCCESS));
    assert_eq!(got[1].result().unwrap().imm(), None);
}

fn c06_each_operation_is_told_by_its_opcode<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    let (to, word) = (b.remote(64), [a.sge(0, 8)]);
    let list = [
        (SendWr::send(0, &word), WcOpcode::SEND),
        (SendWr::write(1, &word, to), WcOpcode::RDMA_WRITE),
        (SendWr::send(2, &word).with_imm([0; 4]), WcOpcode::SEND),
        (SendWr::read(3, &word, to), WcOpcode::RDMA_READ),
        (SendWr::compare_swap(4, &word, to, 0, 1), WcOpcode::COMP_SWAP),
        (SendWr::fetch_add(5, &word, to, 1), WcOpcode::FETCH_ADD),
    ];
    for (wr, _) in list {
        a.post(wr);
    }
    let sent = a.expect_sent(&all(0..6, S::SUCCESS));
    for (wc, (_, opcode)) in sent.iter().zip(list) {
        let done = wc.result().unwrap();
        assert_eq!(done.opcode(), opcode);
        assert!(!done.is_recv(), "{opcode} is no receive");
    }
    let received = b.expect_received(&all(1..3, S::SUCCESS));
    for wc in &received {
        assert_eq!(wc.result().unwrap().opcode(), WcOpcode::RECV);
        assert!(wc.result().unwrap().is_recv());
    }
}

fn c07_byte_len_is_what_was_received<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for length in [0, 1, 7, 8, 64, 1000, 4096] {
        b.recv(1, 0, 4096);
        b.recv(2, 0, length);
        a.post(SendWr::send(3, &[a.sge(0, length)]).with_imm([9; 4]));
        a.post(SendWr::send(4, &[a.sge(0, length)]));
        for wc in b.expect_received(&all(1..3, S::SUCCESS)) {
            let counted = wc.result().unwrap().byte_len();
            assert_eq!(counted, length, "of request {}, without its immediate", wc.wr_id());
        }
        a.expect_sent(&all(3..5, S::SUCCESS));
    }
}

fn c07_byte_len_of_read_and_atomics<D: Device>() {
    let (mut a, b) = pair::<D>();
    let (from, word) = (b.remote(0), [a.sge(0, 8)]);
    a.post(SendWr::read(0, &[a.sge(0, 100), a.sge(200, 28)], from));
    a.post(SendWr::read(1, &[], from));
    a.post(SendWr::compare_swap(2, &word, from, 0, 1));
    a.post(SendWr::fetch_add(3, &word, from, 1));
    let done = a.expect_sent(&all(0..4, S::SUCCESS));
    let counted: Vec<_> = done.iter().map(|wc| wc.result().unwrap().byte_len()).collect();
    assert_eq!(counted, [128, 0, 8, 8]);
}

fn c08_every_receive_and_signaled_send_completes_once<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (mut sent, mut received) = (BTreeMap::new(), BTreeMap::new());
    for round in 0..100 {
        for id in round * 8..round * 8 + 8 {
            b.recv(id, 0, 8);
        }
        for id in round * 8..round * 8 + 8 {
            let wr = SendWr::send_inline(id, b"x");
            a.post(if id % 4 == 1 { wr.unsignaled() } else { wr });
        }
        let signaled = (round * 8..round * 8 + 8).filter(|id| id % 4 != 1).count();
        for wc in settle(&a.device, &mut a.sent, signaled) {
            *sent.entry(wc.wr_id()).or_insert(0) += 1;
        }
        for wc in settle(&b.device, &mut b.received, 8) {
            *received.entry(wc.wr_id()).or_insert(0) += 1;
        }
    }
    assert_eq!(sent, (0..800).filter(|id| id % 4 != 1).map(|id| (id, 1)).collect());
    assert_eq!(received, (0..800).map(|id| (id, 1)).collect());
}

fn c08_unsignaled_success_is_silent<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for id in 0..2 {
        b.recv(id, 0, 8);
    }
    let word = [a.sge(0, 8)];
    a.post(SendWr::send(3, &word).unsignaled());
    a.post(SendWr::send(4, &word).unsignaled().solicited());
    a.post(SendWr::write(5, &word, b.remote(0)).unsignaled());
    a.post(SendWr::read(6, &word, b.remote(0)).unsignaled());
    a.post(SendWr::fetch_add(7, &word, b.remote(0), 1).unsignaled());
    b.expect_received(&all(0..2, S::SUCCESS));
    a.expect_silence();
}

fn c08_failed_unsignaled_send_completes<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.post(SendWr::write_inline(2, b"x", nowhere(&b)).unsignaled());
    a.post(SendWr::send_inline(3, b"behind").unsignaled());
    a.expect_sent(&[(2, S::REM_ACCESS_ERR), (3, S::WR_FLUSH_ERR)]);
}

fn c08_sq_sig_all_signals_every_send<D: Device>() {
    let plan = Plan { sq_sig_all: true, ..Plan::default() };
    let (mut a, b) = pair_with::<D>(&plan, &Plan::default());
    for id in 0..8 {
        a.post(SendWr::write_inline(id, b"x", b.remote(0)).unsignaled());
    }
    a.expect_sent(&all(0..8, S::SUCCESS));
}

fn c09_a_completion_vouches_for_the_unsignaled_before_it<D: Device>() {
    let (mut a, b) = pair::<D>();
    for round in 1..=50u8 {
        for at in 0..7 {
            let bytes = [round; 8];
            a.post(SendWr::write_inline(at, &bytes, b.remote(at * 8)).unsignaled());
        }
        a.post(SendWr::write_inline(7, &[round; 8], b.remote(56)));
        let mut buffer = [Wc::default(); 8];
        wait_until(&a.device, "the signaled one completes", || {
            a.sent.poll_into(&mut buffer) == Ok(1)
        });
        assert_eq!((buffer[0].wr_id(), buffer[0].status()), (7, S::SUCCESS));
        assert_eq!(b.bytes(0, 64), [round; 64], "all of them have arrived");
    }
}

fn c10_sends_complete_in_order<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for round in 0..20 {
        let base = round * 8;
        b.recv(1, 0, 4096);
        b.recv(2, 0, 4096);
        let (big, word, to) = ([a.sge(0, 4096)], [a.sge(0, 8)], b.remote(0));
        a.post(SendWr::write(base, &big, to));
        a.post(SendWr::read(base + 1, &big, to));
        a.post(SendWr::send(base + 2, &big));
        a.post(SendWr::write_inline(base + 3, b"x", to));
        a.post(SendWr::fetch_add(base + 4, &word, to, 1));
        a.post(SendWr::send(base + 5, &word).with_imm([0; 4]));
        a.post(SendWr::compare_swap(base + 6, &word, to, 1, 2));
        a.post(SendWr::write_inline(base + 7, b"x", to));
        a.expect_sent(&all(base..base + 8, S::SUCCESS));
        b.expect_received(&all(1..3, S::SUCCESS));
    }
}

fn c10_receives_complete_in_order<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for round in 0..20 {
        for id in 0..8 {
            b.recv(round * 8 + id, id * 8, 8);
        }
        for id in 0..8u8 {
            a.post(SendWr::send_inline(id.into(), &[id; 8]));
        }
        b.expect_received(&all(round * 8..round * 8 + 8, S::SUCCESS));
        a.expect_sent(&all(0..8, S::SUCCESS));
        for id in 0..8u8 {
            assert_eq!(b.bytes(usize::from(id) * 8, 8), [id; 8], "message {id} in its receive");
        }
    }
}

fn c10_failures_keep_the_order<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let bad = nowhere(&b);
    for id in 10..12 {
        a.recv(id, 0, 8);
        b.recv(id, 0, 8);
    }
    let to = b.remote(0);
    let behind = |id| SendWr::write_inline(id, b"x", to).unsignaled();
    let list = [SendWr::write_inline(0, b"x", to), behind(1), SendWr::write_inline(2, b"x", bad)];
    a.qp.post_send(&[&list[..], &[behind(3), behind(4), behind(5)]].concat()).unwrap();
    let flushed = all(3..6, S::WR_FLUSH_ERR);
    a.expect_sent(&[&[(0, S::SUCCESS), (2, S::REM_ACCESS_ERR)], flushed.as_slice()].concat());
    a.expect_received(&all(10..12, S::WR_FLUSH_ERR));
    b.expect_received(&all(10..12, S::WR_FLUSH_ERR));
}

fn c10_queue_pairs_of_many_threads_keep_their_order_on_one_queue<D: Device>() {
    const EACH: u64 = 300;
    let device = D::open();
    let (pd, mut cq) = (device.alloc_pd(), device.create_cq(64, None).unwrap());
    let (mut senders, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let mut sender = End::<D>::far(&Plan::default());
        let mut target = device.create_qp(&pd, &small(&cq)).unwrap();
        connect(&mut target, sender.qp.number());
        sender.connect(&target);
        target.post_recv(&[0, 1, 2, 3].map(|id| RecvWr::new(id, &[]))).unwrap();
        senders.push(sender);
        targets.push((target, 0));
    }
    thread::scope(|scope| {
        for mut sender in senders {
            scope.spawn(move || {
                for id in 0..EACH {
                    sender.post(SendWr::send_inline(id, b""));
                    sender.expect_sent(&[(id, S::SUCCESS)]);
                }
                sender.qp
            });
        }
        wait_until(&device, "every message has arrived", || {
            for wc in take(&mut cq) {
                let its = |(target, _): &&mut (D::Qp, u64)| target.number() == wc.qp_num();
                let (target, next) = targets.iter_mut().find(its).expect("one of these");
                assert_eq!((wc.wr_id(), wc.status()), (*next, S::SUCCESS), "in order, each once");
                target.post_recv(&[RecvWr::new(*next + 4, &[])]).unwrap();
                *next += 1;
            }
            targets.iter().all(|(_, next)| *next == EACH)
        });
    });
}

fn c11_other_queue_pairs_of_the_queue_go_on<D: Device>() {
    let device = D::open();
    let (pd, mut cq) = (device.alloc_pd(), device.create_cq(64, None).unwrap());
    let mut ends = [(); 2].map(|()| {
        let mut peer = End::<D>::far(&Plan::default());
        let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
        connect(&mut qp, peer.qp.number());
        peer.connect(&qp);
        (qp, peer)
    });
    let [(failing, peer), (working, target)] = &mut ends;
    failing.post_send(&[SendWr::write_inline(1, b"x", nowhere(peer))]).unwrap();
    expect(&device, &mut cq, failing.number(), &[(1, S::REM_ACCESS_ERR)]);
    for id in 2..20 {
        working.post_send(&[SendWr::write_inline(id, b"x", target.remote(0))]).unwrap();
        expect(&device, &mut cq, working.number(), &[(id, S::SUCCESS)]);
    }
    assert_eq!(working.state(), QpState::RTS);
}
