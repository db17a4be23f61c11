//! Many threads at once: nothing is lost, doubled or out of order, whoever carries a request out (C8, C10, Q6).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::common::*;

const MESSAGES: u64 = 20_000;

#[test]
fn c10_a_stream_between_two_threads_arrives_whole_and_in_order() {
    let (mut a, mut b) = pair();
    let receiver = thread::spawn(move || {
        let (mut next, mut posted) = (0, 0);
        wait_for(|| {
            while posted < MESSAGES && posted - next < 8 {
                b.recv(posted, posted as usize % 8 * 64, 64);
                posted += 1;
            }
            for wc in take(&mut b.cq) {
                assert_eq!((wc.wr_id(), wc.status()), (next, S::SUCCESS));
                assert_eq!(b.word(next as usize % 8 * 64), next);
                next += 1;
            }
            next == MESSAGES
        });
        b
    });
    let (mut posted, mut done) = (0u64, 0);
    wait_for(|| {
        let bytes = posted.to_ne_bytes();
        let wr = SendWr::send_inline(posted, &bytes);
        let wr = if posted % 4 == 3 { wr } else { wr.unsignaled() };
        posted += u64::from(posted < MESSAGES && a.qp.post_send(&[wr]).is_ok());
        for wc in take(&mut a.cq) {
            assert_eq!((wc.wr_id(), wc.status()), (done + 3, S::SUCCESS));
            done += 4;
        }
        done == MESSAGES
    });
    receiver.join().unwrap();
}

const EACH: u64 = 400;

/// Posts so many WRITEs, whose completions are polled before the queue pair goes.
fn write_out(mut qp: QueuePair, target: RemoteAddr) {
    post_all(&mut qp, SendWr::write_inline(0, &[0; 8], target), EACH);
    wait_for(|| qp.sends_done() == qp.sends_posted());
}

#[test]
fn c08_nothing_is_lost_where_a_queue_pair_is_no_longer_alone_in_its_completion_queue() {
    let end = End::new();
    let (receives, target) = (open().cq(1).create().unwrap(), end.region.remote(0).unwrap());
    for round in 0..24 {
        let mut cq = open().cq(64).create().unwrap();
        let init = end.pd.qp(&cq).caps(CAPS).recv_cq(&receives);
        // It is alone in its queues until they get others.
        let first = to_itself(init);
        let mut next = vec![(first.number(), 0)];
        thread::scope(|scope| {
            scope.spawn(move || write_out(first, target));
            wait_for(|| {
                for wc in take(&mut cq) {
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
                    let init = end.pd.qp(&cq).caps(CAPS).recv_cq(&receives);
                    let second = to_itself(init);
                    next.push((second.number(), 0));
                    scope.spawn(move || write_out(second, target));
                }
                next.len() == 2 && next.iter().all(|&(_, count)| count == EACH)
            });
        });
    }
}

#[test]
fn q06_of_an_atomic_write_all_is_seen_or_nothing() {
    const TIMES: u64 = 5_000;
    let end = End::new();
    let (region, to) = (&end.region, end.region.remote(8).unwrap());
    let left = &AtomicU64::new(3);
    thread::scope(|scope| {
        for (from, byte) in [(1001, 0x11), (2001, 0x22), (3001, 0x33)] {
            region.write(from, &[byte; 16]).unwrap();
            let sges =
                [region.sge(from..from + 3).unwrap(), region.sge(from + 7..from + 7 + 5).unwrap()];
            let mut cq = end.context.cq(4).create().unwrap();
            let init = end.pd.qp(&cq).caps(CAPS);
            let mut qp = to_itself(init);
            scope.spawn(move || {
                for _ in 0..TIMES {
                    qp.post_send(&[SendWr::atomic_write(1, &sges, to)]).unwrap();
                    assert_eq!(settle(&mut cq, 1)[0].status(), S::SUCCESS);
                }
                left.fetch_sub(1, Relaxed);
            });
        }
        wait_for(|| {
            for _ in 0..1000 {
                let seen = end.bytes(8, 8);
                assert_eq!(seen, [seen[0]; 8]);
            }
            left.load(Relaxed) == 0
        });
    });
}
