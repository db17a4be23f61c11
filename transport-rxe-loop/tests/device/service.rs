//! The service thread: when it is there, what it takes off others, and what comes where it can't be had.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::common::process::{Actor, say};
use crate::common::*;
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};

#[test]
fn tests_that_need_a_process_to_themselves_pass() {
    let start = |test| Actor::start(&format!("service::{test}"), &[]);
    // A test of another name would pass without having run.
    let passed = |actor: Actor| {
        assert_eq!(actor.hear(), "done");
        actor.ended().success()
    };
    for test in [
        "q07_as_many_wait_as_there_can_be_queue_pairs",
        "the_service_thread_is_started_by_the_first_wait_that_ends",
        "a_request_that_can_t_be_timed_for_want_of_a_thread_fails",
    ] {
        assert!(passed(start(test)), "{test}");
    }
    let stops = start("x07_a_suspension_longer_than_every_timeout_ends_in_a_failure");
    wait_for(|| stops.is_stopped());
    thread::sleep(Duration::from_millis(200));
    stops.signal(Signal::CONT);
    assert!(passed(stops));
}

fn service_threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .filter(|name| name.starts_with("rxe-loop"))
        .count()
}

#[test]
#[ignore = "in a process of its own"]
fn q07_as_many_wait_as_there_can_be_queue_pairs() {
    let context = open();
    let peer = End::new();
    let mut cq = context.cq(2048).create().unwrap();
    let senders: Vec<_> = (1..context.attributes().max_qp)
        .map(|index| {
            let mut qp = peer.pd.qp(&cq).caps(CAPS).create().unwrap();
            let times = QpAttr::rts()
                .timeout(AckTimeout::from_number(8 + (index % 8) as u8).unwrap())
                .retry_cnt(3);
            connect_by(&mut qp, &rtr(&peer.qp), &times);
            qp.post_send(&[SendWr::send_inline(index.into(), b"")]).unwrap();
            qp
        })
        .collect();
    let ended = settle(&mut cq, senders.len());
    assert!(ended.iter().all(|wc| wc.status() == S::RETRY_EXC_ERR));
    let ids: BTreeSet<_> = ended.iter().map(Wc::wr_id).collect();
    assert!(ids.into_iter().eq(1..=senders.len() as u64));
    assert_eq!(service_threads(), 1);
    say("done");
}

#[test]
#[ignore = "in a process of its own"]
fn the_service_thread_is_started_by_the_first_wait_that_ends() {
    exchange(|work| work());
    let (mut a, mut b) = unanswered(&QpAttr::rts().rnr_retry(0));
    b.qp.connect_to(a.qp.number()).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
    let (mut c, mut d) = pair();
    c.send(2, 0, 8);
    d.recv(2, 0, 8);
    c.expect(&[(2, S::SUCCESS)]);
    assert_eq!(service_threads(), 0);
    for _ in 0..2 {
        let_short_times_pass();
        assert_eq!(service_threads(), 1);
    }
    say("done");
}

#[test]
#[ignore = "in a process of its own"]
fn a_request_that_can_t_be_timed_for_want_of_a_thread_fails() {
    let (mut a, _b) = unanswered(&QpAttr::rts());
    let (mut c, _d) = unanswered(&impatient());
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let before = getrlimit(Resource::As);
    let full = Rlimit { current: Some(pages * 4096 + (1 << 18)), ..before };
    setrlimit(Resource::As, full).unwrap();
    a.send(1, 0, 8);
    let got = settle(&mut a.cq, 1)[0].status();
    setrlimit(Resource::As, before).unwrap();
    assert_eq!((got, a.state()), (S::GENERAL_ERR, QpState::ERR));
    c.send(2, 0, 8);
    c.expect(&[(2, S::RETRY_EXC_ERR)]);
    say("done");
}

#[test]
#[ignore = "in a process of its own"]
fn x07_a_suspension_longer_than_every_timeout_ends_in_a_failure() {
    let (mut a, mut b) = unanswered(&QpAttr::rts().rnr_retry(6));
    b.qp.connect_to(a.qp.number()).unwrap();
    let (mut c, _d) =
        unanswered(&QpAttr::rts().timeout(AckTimeout::from_number(12).unwrap()).retry_cnt(3));
    a.send(1, 0, 8);
    c.send(2, 0, 8);
    kill_process(getpid(), Signal::STOP).unwrap();
    a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
    c.expect(&[(2, S::RETRY_EXC_ERR)]);
    say("done");
}

/// The first end posts faster than its requests can be carried out, until it is told to stop; the other
/// posts the receive that sets them going, and must not be kept.
#[test]
fn who_posts_a_receive_is_not_kept_by_a_busy_peer() {
    const BYTES: usize = 1 << 20;
    const SIGNAL_EVERY: u64 = 64;
    let (a, mut b) = pair_with(CAPS.max_send_wr(2048));
    let (source, target) = (a.pd.allocate(BYTES, ALL).unwrap(), b.pd.allocate(BYTES, ALL).unwrap());
    let (mut cq, mut qp) = (a.cq, a.qp);
    let (full, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (sge, remote) = ([source.sge(..BYTES).unwrap()], target.remote(0).unwrap());
            qp.post_send(&[SendWr::send_inline(0, b"go")]).unwrap();
            let (mut posted, mut done) = (1, 0);
            wait_for(|| {
                while posted % SIGNAL_EVERY != 1 || !stop.load(Relaxed) {
                    let write = SendWr::write(posted, &sge, remote);
                    let signaled = posted % SIGNAL_EVERY == 0;
                    if qp.post_send(&[if signaled { write } else { write.unsignaled() }]).is_err() {
                        break;
                    }
                    posted += 1;
                }
                full.store(true, Relaxed);
                for wc in take(&mut cq) {
                    assert_eq!((wc.wr_id(), wc.status()), (done, S::SUCCESS));
                    done += SIGNAL_EVERY;
                }
                stop.load(Relaxed) && done == posted + SIGNAL_EVERY - 1
            });
        });
        wait_for(|| full.load(Relaxed));
        b.recv(1, 0, 8);
        b.expect(&[(1, S::SUCCESS)]);
        let_short_times_pass();
        stop.store(true, Relaxed);
    });
}

/// The thread that carries requests out leaves the last of them to the service thread, and nobody posts
/// again.
#[test]
fn c08_what_was_handed_over_is_carried_out_to_the_end() {
    const BYTES: usize = 1 << 20;
    const LATER: usize = 600;
    let (mut a, mut b) = pair_with(CAPS.max_send_wr(1024));
    let (source, target) = (a.pd.allocate(BYTES, ALL).unwrap(), b.pd.allocate(BYTES, ALL).unwrap());
    let (sge, remote) = ([source.sge(..BYTES).unwrap()], target.remote(0).unwrap());
    let busy = SendWr::write(0, &sge, remote).unsignaled();
    let mut later = vec![SendWr::write(0, &[], remote).unsignaled(); LATER];
    later.push(SendWr::write(2, &[], remote));
    for _ in 0..30 {
        a.qp.post_send(&[SendWr::send_inline(1, b"go"), busy, busy, busy, busy]).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                b.recv(1, 0, 8);
                b.expect(&[(1, S::SUCCESS)]);
            });
            assert_eq!(settle(&mut a.cq, 1)[0].wr_id(), 1);
            a.qp.post_send(&later).unwrap();
            a.expect(&[(2, S::SUCCESS)]);
        });
    }
}
