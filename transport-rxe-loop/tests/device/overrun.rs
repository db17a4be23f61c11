//! A completion queue that is too small, or ignores overruns, beyond what the conformance suite asks: O2–O8.

use std::collections::HashMap;
use std::thread;

use crate::common::*;

/// A sender, and a receiver with this completion queue.
fn receiver(cq: &Cq) -> (End, QueuePair) {
    let mut a = End::new();
    let mut qp = a.pd.qp(cq).caps(CAPS).create().unwrap();
    connect(&mut a.qp, &mut qp);
    (a, qp)
}

/// A queue that ignores overruns.
fn ignoring(capacity: u32) -> Cq {
    open().cq(capacity).ignore_overrun().create().unwrap()
}

fn deliver(a: &mut End, qp: &mut QueuePair, wr_id: u64) {
    qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    a.post(SendWr::send(wr_id, &[]));
    a.expect(&[(wr_id, S::SUCCESS)]);
}

#[test]
fn o03_every_dropped_completion_is_counted() {
    let channel = open().create_channel().unwrap();
    let mut cq = open().cq(5).channel(&channel).create().unwrap();
    let (mut a, mut qp) = receiver(&cq);
    let mut delivered = 0;
    while qp.state().unwrap() == QpState::RTS {
        assert_eq!(cq.dropped(), 0);
        deliver(&mut a, &mut qp, delivered);
        delivered += 1;
    }
    for wr_id in 0..3 {
        qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap(); // flushed, and dropped too
    }
    let mut buffer = [Wc::default(); 64];
    assert_eq!(cq.poll_into(&mut buffer).unwrap() as u64, delivered - 1);
    for dropped in [4, 4, 5] {
        if dropped == 5 {
            qp.post_recv(&[RecvWr::new(9, &[])]).unwrap();
        }
        assert_eq!(cq.poll_into(&mut buffer), Err(PollError::Overrun { dropped: Some(dropped) }));
        assert_eq!(cq.dropped(), dropped);
    }
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
}

#[test]
fn o08_what_finds_no_room_is_counted_and_nothing_else() {
    for capacity in [1, 2, 5, 8] {
        let mut cq = ignoring(capacity);
        let (mut a, mut qp) = receiver(&cq);
        (0..u64::from(capacity)).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
        assert_eq!(cq.dropped(), 0);
        (u64::from(capacity)..100).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
        let stored = take(&mut cq).len();
        assert!(stored >= capacity as usize);
        assert_eq!(cq.dropped() as usize, 100 - stored);
    }
    // Of what comes together as much is stored as there is room for.
    let mut cq = ignoring(2);
    let (mut a, mut qp) = receiver(&cq);
    let recvs: Vec<_> = (0..8).map(|wr_id| RecvWr::new(wr_id, &[])).collect();
    let sends: Vec<_> = (0..8).map(|wr_id| SendWr::send(wr_id, &[])).collect();
    qp.post_recv(&recvs).unwrap();
    a.qp.post_send(&sends).unwrap();
    let stored = take(&mut cq).len() as u32;
    assert!((2..8).contains(&stored));
    assert_eq!(cq.dropped(), 8 - stored);
    // Dropped flushes give their places back.
    qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    for wr_id in 0..100 {
        qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
        qp.post_send(&[SendWr::send(wr_id, &[])]).unwrap();
    }
    assert!(cq.dropped() >= 190);
}

#[test]
fn o08_q12_resizing_makes_room() {
    let mut cq = ignoring(1);
    let (mut a, mut qp) = receiver(&cq);
    (0..20).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
    let dropped = cq.dropped();
    assert_eq!(cq.resize(40), Ok(40));
    (20..40).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
    assert_eq!((cq.dropped(), take(&mut cq).len() as u32), (dropped, 40 - dropped));
}

#[test]
fn o08_several_threads_push_while_one_polls() {
    const EACH: u64 = 20_000;
    let mut cq = ignoring(3);
    let mut pushers: Vec<_> = (0..3).map(|_| receiver(&cq)).collect();
    let polled = thread::scope(|scope| {
        let threads: Vec<_> = pushers
            .iter_mut()
            .map(|(a, qp)| scope.spawn(|| (0..EACH).for_each(|wr_id| deliver(a, qp, wr_id))))
            .collect();
        let (mut polled, mut seen) = (0, HashMap::new());
        loop {
            let is_over = threads.iter().all(thread::ScopedJoinHandle::is_finished);
            let all = take(&mut cq);
            for wc in &all {
                assert_eq!(wc.status(), S::SUCCESS);
                let next = seen.entry(wc.qp_num()).or_insert(0);
                assert!(wc.wr_id() >= *next, "out of order");
                *next = wc.wr_id() + 1;
            }
            polled += all.len() as u64;
            if is_over && all.is_empty() {
                break polled;
            }
        }
    });
    assert_eq!(polled + u64::from(cq.dropped()), 3 * EACH);
    assert!(pushers.iter().all(|(_, qp)| qp.state().unwrap() == QpState::RTS));
}

#[test]
fn o04_sends_behind_the_overrun_are_not_carried_out_and_the_peer_is_told() {
    let mut b = End::new();
    let mut context = open();
    let cq = context.cq(1).create().unwrap();
    let mut qp = on(&context.alloc_pd().unwrap(), &cq, &cq);
    connect(&mut b.qp, &mut qp);
    b.send(9, 0, 1); // no receive: it waits
    // One by one: what is posted together may be carried out before its first completion is pushed.
    for nth in 1..=4 {
        let there = b.region.remote(nth as usize).unwrap();
        qp.post_send(&[SendWr::write_inline(nth, b"x", there)]).unwrap();
    }
    assert_eq!(b.bytes(1, 4), b"xx\0\0");
    assert_eq!(reports(&mut context), [cq_err(&cq), fatal(&qp)]);
    b.expect(&[(9, S::RETRY_EXC_ERR)]);
}

/// A queue pair of these queues, in RESET.
fn on(pd: &ProtectionDomain, send_cq: &Cq, recv_cq: &Cq) -> QueuePair {
    pd.qp(send_cq).recv_cq(recv_cq).caps(CAPS).create().unwrap()
}

/// Posts sends and receives by turns until all of these have failed; says how many of each it posted.
fn post_until_all_failed(qps: &mut [QueuePair]) -> Vec<u64> {
    let mut posted = vec![0; qps.len()];
    wait_for(|| {
        for (qp, posted) in qps.iter_mut().zip(&mut posted) {
            match qp.post_send(&[SendWr::send(*posted, &[])]) {
                // It ran until it was full, while another thread was about to fail it.
                Err(error) => assert_eq!(error.why, WrError::QueueFull),
                Ok(()) => {
                    qp.post_recv(&[RecvWr::new(*posted, &[])]).unwrap();
                    *posted += 1;
                }
            }
        }
        qps.iter().all(|qp| qp.state().unwrap() == QpState::ERR)
    });
    posted
}

#[test]
fn o04_many_queue_pairs_of_many_threads_fail_together() {
    const QPS: usize = 16;
    const THREADS: usize = 4;
    const DEEP: QpCaps = CAPS.max_send_wr(256).max_recv_wr(256);
    for _ in 0..50 {
        let mut context = open();
        let pd = context.alloc_pd().unwrap();
        let mut small = context.cq(64).create().unwrap();
        let mut large = context.cq(1 << 12).create().unwrap();
        // Half of them overrun the small queue by sends, half by receives.
        let both = [(&small, &large), (&large, &small)];
        let to_itself = |(send_cq, recv_cq): (&Cq, &Cq)| {
            let init = pd.qp(send_cq).recv_cq(recv_cq).caps(DEEP).sq_sig_all(true);
            to_itself(init)
        };
        let mut qps: Vec<_> = both.into_iter().cycle().map(to_itself).take(QPS).collect();
        let posted: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = qps
                .chunks_mut(QPS / THREADS)
                .map(|mine| scope.spawn(|| post_until_all_failed(mine)))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });

        // The queue and each queue pair is named once.
        let named = |events: Vec<AsyncEvent>| {
            let mut names: Vec<_> = events.iter().map(AsyncEvent::to_string).collect();
            names.sort();
            names
        };
        let wanted = qps.iter().map(fatal).chain([cq_err(&small)]).collect();
        assert_eq!(named(reports(&mut context)), named(wanted));
        let there = take(&mut large);
        for (qp, &posted) in qps.iter().zip(&posted) {
            let its = there.iter().filter(|wc| wc.qp_num() == qp.number());
            assert!(its.map(Wc::wr_id).eq(0..posted), "each once and in order (C8, C10)");
        }
        let mut buffer = vec![Wc::default(); 256];
        let stored = small.poll_into(&mut buffer).unwrap();
        let dropped = Some((posted.iter().sum::<u64>() - stored as u64) as u32);
        assert_eq!(small.poll_into(&mut buffer), Err(PollError::Overrun { dropped }));

        drop(qps);
        small.destroy().unwrap();
        large.destroy().unwrap();
    }
}

#[test]
fn o06_resetting_and_destroying_while_an_overrun_spreads_harms_nobody() {
    for _ in 0..100 {
        let mut context = open();
        let pd = context.alloc_pd().unwrap();
        let cq = context.cq(8).create().unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut qps = [on(&pd, &cq, &cq), on(&pd, &cq, &cq)];
                    for _ in 0..3 {
                        for qp in &mut qps {
                            qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
                            // Unless an overrun fails it on the way.
                            if let Err(error) = qp.connect_to(qp.number()) {
                                assert_eq!(qp.state().unwrap(), QpState::ERR, "{error}");
                            }
                        }
                        post_until_all_failed(&mut qps);
                    }
                });
            }
        });
        assert_eq!(reports(&mut context), [cq_err(&cq)], "the queue pairs are gone");
        cq.destroy().unwrap();
        assert_eq!(reports(&mut context), []);
    }
}

#[test]
fn o07_a_queue_as_large_as_what_is_outstanding_never_overruns() {
    const REQUESTS: u64 = 2_000;
    for capacity in [1, 2, 3, 13] {
        let (end, mut cq) = (End::new(), open().cq(capacity).create().unwrap());
        let caps = CAPS.max_send_wr(capacity);
        let mut qp = to_itself(end.pd.qp(&cq).caps(caps));
        let poster = thread::spawn(move || {
            post_all(&mut qp, SendWr::write_inline(0, &[], NOWHERE), REQUESTS);
            qp
        });
        let mut seen = Vec::new();
        wait_for(|| {
            seen.extend(take(&mut cq));
            seen.len() as u64 == REQUESTS
        });
        assert_eq!(outcomes(&seen), all(0..REQUESTS, S::SUCCESS));
        poster.join().unwrap();
    }
}
