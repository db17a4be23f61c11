//! READs and atomics from many threads at once, and against everything that ends them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::common::{self, ALL, CAPS, End, S, open, settle, wait_for};
use cq_core::transport::{PollCq, Post, Refused};
use cq_core::wc::Wc;
use cq_core::wr::{RemoteAddr, SendWr};
use transport_rxe_loop::{Cq, ProtectionDomain, QpInit, QueuePair};

/// Connects `end` to a new queue pair, whose requests complete in `cq`, of the domain.
fn target_of(end: &mut End, pd: &ProtectionDomain, cq: &Cq) -> QueuePair {
    let mut target = pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(cq) }).unwrap();
    target.connect_to(end.qp.number()).unwrap();
    end.qp.connect_to(target.number()).unwrap();
    target
}

/// Counts by FETCH_ADD, eight at a time; what the counter held each time.
fn count_by_fetch_add(end: &mut End, remote: RemoteAddr, times: u64) -> Vec<u64> {
    let pieces: Vec<_> = (0..8).map(|slot| [end.region.sge(slot * 8, 8).unwrap()]).collect();
    let all: Vec<_> = pieces.iter().map(|sge| SendWr::fetch_add(1, sge, remote, 1)).collect();
    let mut held = Vec::new();
    for _ in 0..times / 8 {
        end.qp.post_send(&all).unwrap();
        let done = settle(&mut end.cq, 8);
        assert!(done.iter().all(|wc| wc.status() == S::SUCCESS));
        held.extend((0..8).map(|slot| end.word(slot * 8)));
    }
    held
}

/// The same by COMP_SWAP, which has to try again where another came first.
fn count_by_compare_swap(end: &mut End, remote: RemoteAddr, times: u64) -> Vec<u64> {
    let (sge, mut guess) = ([end.region.sge(0, 8).unwrap()], 0);
    let mut held = Vec::new();
    while (held.len() as u64) < times {
        end.post(SendWr::compare_swap(1, &sge, remote, guess, guess + 1));
        assert_eq!(settle(&mut end.cq, 1)[0].status(), S::SUCCESS);
        let found = end.word(0);
        if found == guess {
            held.push(found);
        }
        guess = if found == guess { guess + 1 } else { found };
    }
    held
}

#[test]
fn q06_atomics_of_many_queue_pairs_count_exactly() {
    const THREADS: u64 = 6;
    const TIMES: u64 = 20_000;
    let (pd, cq) = (open().alloc_pd().unwrap(), open().create_cq(64, None).unwrap());
    let region = pd.allocate(64, ALL).unwrap();
    let remote = region.remote(8).unwrap();
    let mut ends: Vec<_> = (0..THREADS).map(|_| End::new()).collect();
    let _targets: Vec<_> = ends.iter_mut().map(|end| target_of(end, &pd, &cq)).collect();
    let mut held: Vec<u64> = thread::scope(|scope| {
        let counting: Vec<_> = (ends.iter_mut().zip(0..))
            .map(|(end, index)| {
                let by = if index % 3 == 0 { count_by_compare_swap } else { count_by_fetch_add };
                scope.spawn(move || by(end, remote, TIMES))
            })
            .collect();
        counting.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    held.sort_unstable();
    assert!(held.into_iter().eq(0..THREADS * TIMES), "each step was seen by one, and by one only");
    let mut words = [0; 24];
    region.read(0, &mut words).unwrap();
    assert_eq!(words[8..16], (THREADS * TIMES).to_ne_bytes());
    assert_eq!((&words[..8], &words[16..]), (&[0; 8][..], &[0; 8][..]));
}

#[test]
fn q06_of_an_atomic_write_all_is_seen_or_nothing() {
    const TIMES: u64 = 5_000;
    let (pd, cq) = (open().alloc_pd().unwrap(), open().create_cq(64, None).unwrap());
    let region = pd.allocate(64, ALL).unwrap();
    let remote = region.remote(8).unwrap();
    let mut ends: Vec<_> = (0..3).map(|_| End::new()).collect();
    let _targets: Vec<_> = ends.iter_mut().map(|end| target_of(end, &pd, &cq)).collect();
    let left = AtomicU64::new(ends.len() as u64);
    let (region, left) = (&region, &left);
    thread::scope(|scope| {
        for (end, byte) in ends.iter_mut().zip([0x11, 0x22, 0x33]) {
            scope.spawn(move || {
                end.region.write(1, &[byte; 64]).unwrap();
                let sges = [end.region.sge(1, 3).unwrap(), end.region.sge(7, 5).unwrap()];
                for _ in 0..TIMES {
                    end.post(SendWr::atomic_write(1, &sges, remote));
                    assert_eq!(settle(&mut end.cq, 1)[0].status(), S::SUCCESS);
                }
                left.fetch_sub(1, Relaxed);
            });
        }
        let mut seen = [0; 8];
        wait_for(|| {
            for _ in 0..1000 {
                region.read(8, &mut seen).unwrap();
                assert_eq!(seen, [seen[0]; 8]);
            }
            left.load(Relaxed) == 0
        });
    });
}

/// Polls a queue that others poll too, and notes what it got; how many that were.
fn poll(cq: &Mutex<Cq>, seen: &[AtomicU64]) -> u64 {
    let mut room = [Wc::default(); 3];
    let count = cq.lock().unwrap().poll(&mut room).unwrap();
    for wc in &room[..count] {
        assert_eq!(wc.status(), S::SUCCESS);
        seen[wc.wr_id() as usize].fetch_add(1, Relaxed);
    }
    count as u64
}

/// Posts on a queue pair that others post on too; false if it is full.
fn post(qp: &Mutex<QueuePair>, wr: SendWr<'_>) -> bool {
    let posted = qp.lock().unwrap().post_send(&[wr]);
    posted.map_err(|error| assert_eq!(error.why, Refused::QueueFull)).is_ok()
}

#[test]
fn p08_threads_post_on_one_queue_pair_and_poll_one_queue() {
    const THREADS: u64 = 3;
    const TIMES: u64 = 3_000;
    let (a, b) = common::pair();
    let remote = b.region.remote(0).unwrap();
    let sge = [a.region.sge(0, 8).unwrap()];
    let seen: Vec<_> = (0..THREADS * TIMES).map(|_| AtomicU64::new(0)).collect();
    let (qp, cq, left) = (Mutex::new(a.qp), Mutex::new(a.cq), AtomicU64::new(THREADS * TIMES));
    let poll = || left.fetch_sub(poll(&cq, &seen), Relaxed);
    let post = |wr_id: u64| {
        let add = wr_id.is_multiple_of(2);
        let wr = if add {
            SendWr::fetch_add(wr_id, &sge, remote, 1)
        } else {
            SendWr::read(wr_id, &sge, remote)
        };
        post(&qp, wr)
    };
    let (post, poll, left) = (&post, &poll, &left);
    thread::scope(|scope| {
        for first in 0..THREADS {
            scope.spawn(move || {
                for wr_id in (first..THREADS * TIMES).step_by(THREADS as usize) {
                    wait_for(|| post(wr_id) || (poll(), false).1);
                }
                wait_for(|| (poll(), left.load(Relaxed) == 0).1);
            });
        }
    });
    assert!(seen.iter().all(|count| count.load(Relaxed) == 1));
    assert_eq!(b.word(0), THREADS * TIMES / 2);
}
