//! Many threads at once: nothing is lost, doubled or out of order, whoever carries a request out.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::common::{
    CAPS, End, S, connect, fabric, join, open, pair, pair_with, settle, take, wait_for,
};
use cq_core::transport::{PollCq, Post, Refused};
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{RecvWr, RemoteAddr, SendWr};
use transport_rxe_loop::{Cq, QpAttr, QpCaps, QpInit, QpState, QueuePair};

const MESSAGES: u64 = 20_000;

#[test]
fn c10_a_stream_between_two_threads_arrives_whole_and_in_order() {
    let (mut a, mut b) = pair();
    let receiver = thread::spawn(move || {
        let mut next = 0;
        let mut posted = 0;
        while next < MESSAGES {
            while posted < MESSAGES && posted - next < 8 {
                b.recv(posted, posted as usize % 8 * 64, 64);
                posted += 1;
            }
            for wc in take(&mut b.cq) {
                assert_eq!((wc.wr_id(), wc.status()), (next, S::SUCCESS));
                let bytes = b.bytes(next as usize % 8 * 64, 8);
                assert_eq!(bytes, next.to_ne_bytes());
                next += 1;
            }
        }
        b
    });
    let (mut posted, mut done) = (0u64, 0);
    while done < MESSAGES {
        if posted < MESSAGES {
            let bytes = posted.to_ne_bytes();
            let wr = SendWr::send_inline(posted, &bytes);
            let signaled = posted % 4 == 3;
            match a.qp.post_send(&[if signaled { wr } else { wr.unsignaled() }]) {
                Ok(()) => posted += 1,
                Err(error) => assert_eq!(error.why, Refused::QueueFull),
            }
        }
        for wc in take(&mut a.cq) {
            assert_eq!((wc.wr_id(), wc.status()), (done + 3, S::SUCCESS));
            done += 4;
        }
    }
    receiver.join().unwrap();
}

#[test]
fn both_directions_at_once_wait_for_each_others_receives() {
    let (a, b) = pair();
    let side = |mut end: End| {
        thread::spawn(move || {
            let (mut sent, mut received, mut posted, mut open) = (0, 0, 0, 0);
            while received < MESSAGES || sent < MESSAGES || open > 0 {
                if posted < MESSAGES && posted - received < 3 {
                    end.recv(posted, 0, 8);
                    posted += 1;
                }
                if sent < MESSAGES && open < 8 {
                    end.send(sent, 64, 8);
                    (sent, open) = (sent + 1, open + 1);
                }
                for wc in take(&mut end.cq) {
                    let done = wc.result().unwrap();
                    if done.is_recv() {
                        assert_eq!(wc.wr_id(), received);
                        received += 1;
                    } else {
                        open -= 1;
                    }
                }
            }
            end
        })
    };
    let (a, b) = (side(a), side(b));
    let _ends = (a.join().unwrap(), b.join().unwrap());
}

/// A queue pair that is connected to itself, and alone in its queues until they get others.
fn to_itself(end: &End, cq: &Cq, receives: &Cq) -> QueuePair {
    let init = QpInit { caps: CAPS, recv_cq: receives, ..QpInit::new(cq) };
    let mut qp = end.pd.create_qp(&init).unwrap();
    qp.connect_to(qp.number()).unwrap();
    qp
}

/// Posts so many WRITEs, as slots come back.
fn write_all(mut qp: QueuePair, target: RemoteAddr, count: u64) {
    let mut posted = 0;
    wait_for(|| {
        let wr = SendWr::write_inline(posted, &[0; 8], target);
        posted += u64::from(qp.post_send(&[wr]).is_ok());
        posted == count
    });
    // Its completions are polled before it goes.
    wait_for(|| qp.sends_done() == qp.sends_posted());
}

#[test]
fn c08_nothing_is_lost_where_a_queue_pair_is_no_longer_alone_in_its_completion_queue() {
    const EACH: u64 = 400;
    let end = End::new();
    let (receives, target) = (open().create_cq(1, None).unwrap(), end.region.remote(0).unwrap());
    for round in 0..24 {
        let mut cq = open().create_cq(64, None).unwrap();
        let first = to_itself(&end, &cq, &receives);
        let mut next = vec![(first.number(), 0)];
        thread::scope(|scope| {
            scope.spawn(move || write_all(first, target, EACH));
            let mut room = [Wc::default(); 8];
            wait_for(|| {
                let count = cq.poll(&mut room).unwrap();
                for wc in &room[..count] {
                    let of = next.iter_mut().find(|(number, _)| *number == wc.qp_num()).unwrap();
                    assert_eq!((wc.wr_id(), wc.status()), (of.1, S::SUCCESS));
                    of.1 += 1;
                }
                if next.len() == 1 && next[0].1 > 20 + 4 * round {
                    match round % 3 {
                        0 => _ = cq.resize(100).unwrap(),
                        1 => cq.moderate(2, 100).unwrap(),
                        _ => {}
                    }
                    let second = to_itself(&end, &cq, &receives);
                    next.push((second.number(), 0));
                    scope.spawn(move || write_all(second, target, EACH));
                }
                next.len() == 2 && next.iter().all(|&(_, count)| count == EACH)
            });
        });
    }
}

#[test]
fn p08_threads_that_share_a_queue_get_each_completion_once() {
    const COUNT: u64 = 20_000;
    let mut a = End::new();
    let cq = open().create_cq(COUNT as u32, None).unwrap();
    let mut qp = a.pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
    qp.connect_to(a.qp.number()).unwrap();
    a.qp.connect_to(qp.number()).unwrap();
    let (cq, left) = (Mutex::new(cq), AtomicU64::new(COUNT));
    let seen: Vec<_> = (0..COUNT).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                wait_for(|| {
                    let mut room = [Wc::default(); 4];
                    let count = cq.lock().unwrap().poll(&mut room).unwrap();
                    for wc in &room[..count] {
                        seen[wc.wr_id() as usize].fetch_add(1, Relaxed);
                    }
                    left.fetch_sub(count as u64, Relaxed) == count as u64 || left.load(Relaxed) == 0
                });
            });
        }
        for wr_id in 0..COUNT {
            qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
            a.qp.post_send(&[SendWr::send(wr_id, &[])]).unwrap();
            a.expect(&[(wr_id, S::SUCCESS)]);
        }
    });
    assert!(seen.iter().all(|count| count.load(Relaxed) == 1));
}

#[test]
fn many_pairs_on_one_completion_queue_from_many_threads() {
    const PAIRS: usize = 4;
    let context = open();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(256, None).unwrap());
    let (mut receivers, mut senders) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let mut end = End::new();
        let mut qp = pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
        qp.connect_to(end.qp.number()).unwrap();
        end.qp.connect_to(qp.number()).unwrap();
        receivers.push((qp, 0u64, 0u64));
        senders.push(end);
    }
    thread::scope(|scope| {
        for mut end in senders {
            scope.spawn(move || {
                for wr_id in 0..MESSAGES / 4 {
                    end.send(wr_id, 0, 0);
                    assert_eq!(settle(&mut end.cq, 1)[0].status(), S::SUCCESS);
                }
                end
            });
        }
        wait_for(|| {
            for (qp, posted, done) in &mut receivers {
                while *posted - *done < 8 {
                    qp.post_recv(&[RecvWr::new(*posted, &[])]).unwrap();
                    *posted += 1;
                }
            }
            for wc in take(&mut cq) {
                let (_, _, done) =
                    receivers.iter_mut().find(|(qp, ..)| qp.number() == wc.qp_num()).unwrap();
                if wc.status() == S::SUCCESS {
                    assert_eq!(wc.wr_id(), *done);
                    *done += 1;
                }
            }
            receivers.iter().all(|(_, _, done)| *done == MESSAGES / 4)
        });
    });
}

/// Whatever happens, every request completes once, successes first, in order.
fn check_each_once(completions: &[Wc], posted: u64) {
    let statuses: Vec<WcStatus> = completions.iter().map(Wc::status).collect();
    assert_eq!(completions.len() as u64, posted, "{statuses:?}");
    assert!(completions.iter().zip(0..).all(|(wc, id)| wc.wr_id() == id), "{completions:?}");
    let good = statuses.iter().take_while(|status| **status == S::SUCCESS).count();
    assert!(statuses[good..].iter().all(|status| *status != S::SUCCESS), "{statuses:?}");
    let flushed = statuses[(good + 1).min(statuses.len())..].iter();
    assert!(flushed.clone().all(|status| *status == S::WR_FLUSH_ERR), "{statuses:?}");
}

#[test]
fn c08_an_error_in_the_middle_of_traffic_completes_everything_once() {
    let caps = QpCaps { max_send_wr: 16, max_recv_wr: 16, ..CAPS };
    for round in 0..400 {
        let (mut a, mut b) = pair_with(caps);
        let (mut sends, mut recvs) = (Vec::new(), Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                for wr_id in 0..16 {
                    a.send(wr_id, 0, 8);
                }
                if round % 2 == 0 {
                    a.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
                }
            });
            scope.spawn(|| {
                for wr_id in 0..16 {
                    b.recv(wr_id, 0, if wr_id == round % 16 { 4 } else { 8 });
                }
                if round % 2 == 1 {
                    b.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
                }
            });
        });
        for end in [&mut a, &mut b] {
            end.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
        }
        wait_for(|| {
            sends.extend(take(&mut a.cq));
            recvs.extend(take(&mut b.cq));
            sends.len() >= 16 && recvs.len() >= 16
        });
        a.expect_nothing();
        b.expect_nothing();
        check_each_once(&sends, 16);
        check_each_once(&recvs, 16);
    }
}

fn exchange(a: &mut End, b: &mut End, wr_id: u64) {
    b.recv(wr_id, 0, 8);
    a.send(wr_id, 0, 8);
    a.expect(&[(wr_id, S::SUCCESS)]);
    b.expect(&[(wr_id, S::SUCCESS)]);
}

#[test]
fn resetting_and_destroying_under_fire_harms_nobody_else() {
    let (mut a, mut b) = pair();
    let (mut a_bystander, mut b_bystander) = pair();
    let bystanders = thread::spawn(move || {
        let (a, b) = (&mut a_bystander, &mut b_bystander);
        for wr_id in 0..MESSAGES / 5 {
            exchange(a, b, wr_id);
        }
    });
    let fabric = fabric();
    for round in 0..300 {
        thread::scope(|scope| {
            let target = scope.spawn(|| {
                for wr_id in 0..8 {
                    b.recv(wr_id, 0, 8);
                }
                if round % 3 == 0 {
                    join(&fabric);
                    b = End::new(); // drops the old one
                } else {
                    b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
                }
            });
            for wr_id in 0..8 {
                a.send(wr_id, 0, 8);
            }
            target.join().unwrap();
        });
        a.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        take(&mut a.cq);
        take(&mut b.cq);
        connect(&mut a, &mut b);
        exchange(&mut a, &mut b, round);
        for end in [&mut a, &mut b] {
            end.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        }
        connect(&mut a, &mut b);
    }
    bystanders.join().unwrap();
}

#[test]
fn q08_the_last_word_of_a_write_comes_last() {
    const ROUNDS: u64 = 10_000;
    for len in [64, 4096] {
        let (mut a, b) = pair();
        thread::scope(|scope| {
            let region = &b.region;
            let remote = region.remote(0).unwrap();
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    let bytes = round.to_ne_bytes().repeat(len / 8);
                    a.region.write(0, &bytes).unwrap();
                    let sge = [a.region.sge(0, len).unwrap()];
                    a.qp.post_send(&[SendWr::write(round, &sge, remote)]).unwrap();
                    a.expect(&[(round, S::SUCCESS)]);
                }
            });
            let mut seen = 0;
            wait_for(|| {
                let (mut last, mut first) = ([0; 8], [0; 8]);
                region.read(len - 8, &mut last).unwrap();
                region.read(0, &mut first).unwrap();
                assert!(
                    u64::from_ne_bytes(first) >= u64::from_ne_bytes(last),
                    "the last came first"
                );
                seen = u64::from_ne_bytes(last);
                seen == ROUNDS
            });
        });
    }
}
