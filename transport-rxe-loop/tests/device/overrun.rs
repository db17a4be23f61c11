//! A completion queue that is too small, beyond what the conformance suite asks: O2–O7.

use crate::common::{CAPS, End, S, cq_err, fatal, open, reports, take, wait_for};
use cq_core::async_event::AsyncEvent;
use cq_core::setup::Port;
use cq_core::transport::{Arm, Armed, Notify, PollCq, PollError, Post, Refused};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    Access, CompletionChannel, Context, Cq, ProtectionDomain, QpAttr, QpCaps, QpInit, QpState,
    QueuePair,
};

/// A sender, and a receiver whose completion queue holds `capacity`.
fn receiver(capacity: u32, channel: Option<&CompletionChannel>) -> (End, QueuePair, Cq) {
    let mut a = End::new();
    let cq = open().create_cq(capacity, channel).unwrap();
    let mut qp = a.pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
    qp.connect_to(a.qp.number()).unwrap();
    a.qp.connect_to(qp.number()).unwrap();
    (a, qp, cq)
}

/// Delivers messages until the receiver fails, and says how many it took.
fn overrun(a: &mut End, qp: &mut QueuePair) -> u64 {
    for wr_id in 0..1_000 {
        qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
        a.qp.post_send(&[SendWr::send(wr_id, &[])]).unwrap();
        a.expect(&[(wr_id, S::SUCCESS)]);
        if qp.state().unwrap() == QpState::ERR {
            return wr_id + 1;
        }
    }
    panic!("the receiver never failed")
}

#[test]
fn o03_every_dropped_completion_is_counted() {
    let (mut a, mut qp, mut cq) = receiver(5, None);
    let delivered = overrun(&mut a, &mut qp);
    for wr_id in 0..3 {
        qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap(); // flushed, and dropped too
    }
    let mut room = [Wc::default(); 64];
    assert_eq!(cq.poll(&mut room).unwrap() as u64, delivered - 1);
    for _ in 0..3 {
        assert_eq!(cq.poll(&mut room), Err(PollError::Overrun { dropped: Some(4) }));
    }
    qp.post_recv(&[RecvWr::new(9, &[])]).unwrap();
    assert_eq!(cq.poll(&mut room), Err(PollError::Overrun { dropped: Some(5) }));
}

/// A queue pair of these queues, in RESET.
fn on(pd: &ProtectionDomain, send_cq: &Cq, recv_cq: &Cq) -> QueuePair {
    pd.create_qp(&QpInit { recv_cq, caps: CAPS, ..QpInit::new(send_cq) }).unwrap()
}

#[test]
fn o02_o04_an_overrun_is_reported_once_and_its_queue_pairs_fail() {
    let mut context = open();
    let (mut a, pd) = (End::new(), context.alloc_pd().unwrap());
    let (cq, mut other) =
        (context.create_cq(2, None).unwrap(), context.create_cq(8, None).unwrap());
    let [mut receives, mut sends, mut both, mut early, fresh] =
        [(&other, &cq), (&cq, &other), (&cq, &cq), (&cq, &cq), (&cq, &cq)]
            .map(|(send_cq, recv_cq)| on(&pd, send_cq, recv_cq));
    let mut bystander = on(&pd, &other, &other);
    a.qp.connect_to(receives.number()).unwrap();
    for qp in [&mut receives, &mut sends, &mut both, &mut bystander] {
        qp.connect_to(a.qp.number()).unwrap();
    }
    early.modify(&QpAttr::init(&Port::new(1), Access::REMOTE_WRITE)).unwrap();
    sends.post_recv(&[RecvWr::new(50, &[])]).unwrap();
    receives.post_send(&[SendWr::send(60, &[])]).unwrap(); // no receive: it waits

    overrun(&mut a, &mut receives);
    for failed in [&receives, &sends, &both, &early] {
        assert_eq!(failed.state().unwrap(), QpState::ERR);
    }
    assert_eq!(
        (fresh.state().unwrap(), bystander.state().unwrap()),
        (QpState::RESET, QpState::RTS)
    );
    let mut flushed: Vec<_> =
        take(&mut other).iter().map(|wc| (wc.wr_id(), wc.status(), wc.qp_num())).collect();
    flushed.sort_by_key(|&(wr_id, ..)| wr_id);
    let flush = |wr_id, qp: &QueuePair| (wr_id, S::WR_FLUSH_ERR, qp.number());
    assert_eq!(flushed, [flush(50, &sends), flush(60, &receives)], "on their other queue");
    expect_all_failed(&mut context, &[receives, sends, both, early], &cq);
    assert_eq!(reports(&mut context), []);
}

#[test]
fn o04_sends_behind_the_overrun_are_not_carried_out() {
    let (a, mut b) = (End::new(), End::new());
    let mut context = open();
    let cq = context.create_cq(1, None).unwrap();
    let mut qp =
        context.alloc_pd().unwrap().create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
    qp.connect_to(b.qp.number()).unwrap();
    b.qp.connect_to(qp.number()).unwrap();
    // One by one: what is posted together may be carried out before its first completion is pushed.
    for nth in 1..=4 {
        let there = b.region.remote(nth as usize).unwrap();
        qp.post_send(&[SendWr::write_inline(nth, b"x", there)]).unwrap();
    }
    assert_eq!(b.bytes(1, 4), b"xx\0\0");
    assert_eq!(qp.state().unwrap(), QpState::ERR);
    assert_eq!(reports(&mut context), [cq_err(&cq), fatal(&qp)]);
    b.send(9, 0, 1);
    b.expect(&[(9, S::RETRY_EXC_ERR)]); // its peer is gone
    drop(a);
}

#[test]
fn o04_a_sender_that_waited_for_the_failed_queue_pair_is_told() {
    let (mut a, mut qp, _cq) = receiver(1, None);
    a.send(1, 0, 1); // no receive: it waits
    a.expect_nothing();
    qp.post_send(&[SendWr::send_inline(2, b"x"), SendWr::send_inline(3, b"x")]).unwrap();
    a.recv(4, 0, 8);
    a.recv(5, 0, 8);
    a.expect(&[(4, S::SUCCESS), (5, S::SUCCESS), (1, S::RETRY_EXC_ERR)]);
}

#[test]
fn o04_a_queue_pair_that_comes_to_an_overrun_queue_fails_at_the_next_completion() {
    let mut context = open();
    let (mut a, mut qp, cq) = receiver(1, None);
    overrun(&mut a, &mut qp);
    let pd = context.alloc_pd().unwrap();
    for round in 0..4 {
        let mut late = pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
        let itself = late.number();
        late.connect_to(itself).unwrap();
        late.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        let target = a.region.remote(0).unwrap();
        late.post_send(&[SendWr::write_inline(1, b"", target).unsignaled()]).unwrap();
        assert_eq!(late.state().unwrap(), QpState::RTS);
        assert_eq!(reports(&mut context), []); // CQ_ERR was the other context's
        match round % 2 {
            0 => late.post_send(&[SendWr::send(2, &[])]).unwrap(),
            _ => qp.post_recv(&[RecvWr::new(3, &[])]).unwrap(), // flushed, and dropped
        }
        assert_eq!(late.state().unwrap(), QpState::ERR);
        assert_eq!(reports(&mut context), [fatal(&late)]);
    }
}

#[test]
fn o05_arming_a_queue_that_has_overrun_says_so() {
    let channel = open().create_channel().unwrap();
    let (mut a, mut qp, mut cq) = receiver(2, Some(&channel));
    overrun(&mut a, &mut qp);
    while cq.poll(&mut [Wc::default(); 4]).is_ok() {}
    assert_eq!(cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
}

/// Posts sends and receives by turns until all of these have failed; says how many of each it posted.
fn post_until_all_failed(qps: &mut [QueuePair]) -> Vec<u64> {
    let mut posted = vec![0; qps.len()];
    wait_for(|| {
        for (qp, posted) in qps.iter_mut().zip(&mut posted) {
            match qp.post_send(&[SendWr::send(*posted, &[])]) {
                // It ran until it was full, while another thread was about to fail it.
                Err(error) => assert_eq!(error.why, Refused::QueueFull),
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

/// The queue and each queue pair is named once.
#[track_caller]
fn expect_all_failed(context: &mut Context, qps: &[QueuePair], cq: &Cq) {
    let names = |event: &AsyncEvent| event.to_string();
    let mut wanted: Vec<_> = qps.iter().map(fatal).chain([cq_err(cq)]).collect();
    let mut seen = reports(context);
    wanted.sort_by_key(names);
    seen.sort_by_key(names);
    assert_eq!(seen, wanted);
}

#[test]
fn o04_many_queue_pairs_of_many_threads_fail_together() {
    const QPS: usize = 16;
    const THREADS: usize = 4;
    const DEEP: QpCaps = QpCaps { max_send_wr: 256, max_recv_wr: 256, ..CAPS };
    for _ in 0..50 {
        let mut context = open();
        let pd = context.alloc_pd().unwrap();
        let mut small = context.create_cq(64, None).unwrap();
        let mut large = context.create_cq(1 << 12, None).unwrap();
        // Half of them overrun the small queue by sends, half by receives.
        let both = [(&small, &large), (&large, &small)];
        let to_itself = |(send_cq, recv_cq): (&Cq, &Cq)| {
            let init = QpInit { recv_cq, caps: DEEP, sq_sig_all: true, ..QpInit::new(send_cq) };
            let mut qp = pd.create_qp(&init).unwrap();
            let itself = qp.number();
            qp.connect_to(itself).unwrap();
            qp
        };
        let mut qps: Vec<_> = both.into_iter().cycle().map(to_itself).take(QPS).collect();
        let posted: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = qps
                .chunks_mut(QPS / THREADS)
                .map(|mine| scope.spawn(|| post_until_all_failed(mine)))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });

        expect_all_failed(&mut context, &qps, &small);
        let there = take(&mut large);
        for (qp, &posted) in qps.iter().zip(&posted) {
            let its = there.iter().filter(|wc| wc.qp_num() == qp.number());
            assert!(its.map(Wc::wr_id).eq(0..posted), "each once and in order (C8, C10)");
        }
        let mut room = vec![Wc::default(); 256];
        let stored = small.poll(&mut room).unwrap();
        let dropped = Some((posted.iter().sum::<u64>() - stored as u64) as u32);
        assert_eq!(small.poll(&mut room), Err(PollError::Overrun { dropped }));

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
        let cq = context.create_cq(8, None).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut qps = [on(&pd, &cq, &cq), on(&pd, &cq, &cq)];
                    for _ in 0..3 {
                        for qp in &mut qps {
                            let itself = qp.number();
                            qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
                            bring_up(qp, itself);
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

/// From RESET to RTS, unless an overrun fails it on the way.
fn bring_up(qp: &mut QueuePair, peer: u32) {
    match qp.connect_to(peer) {
        Ok(()) => {}
        Err(error) => assert_eq!(qp.state().unwrap(), QpState::ERR, "{error}"),
    }
}

#[test]
fn o07_a_queue_as_large_as_what_is_outstanding_never_overruns() {
    const REQUESTS: u64 = 2_000;
    for capacity in [1, 2, 3, 13] {
        let (mut sender, receiver) = (End::new(), End::new());
        let mut cq = open().create_cq(capacity, None).unwrap();
        let caps = QpCaps { max_send_wr: capacity, ..CAPS };
        let mut qp = sender.pd.create_qp(&QpInit { caps, ..QpInit::new(&cq) }).unwrap();
        sender.qp = receiver.qp;
        qp.connect_to(sender.qp.number()).unwrap();
        sender.qp.connect_to(qp.number()).unwrap();
        let target = receiver.region.remote(0).unwrap();
        let poster = std::thread::spawn(move || {
            let mut wr_id = 0;
            wait_for(|| {
                let write = SendWr::write_inline(wr_id, b"all of it", target);
                match qp.post_send(&[write]) {
                    Ok(()) => wr_id += 1,
                    Err(error) => assert_eq!(error.why, Refused::QueueFull),
                }
                wr_id == REQUESTS
            });
            qp
        });
        let mut next = 0;
        let mut room = vec![Wc::default(); capacity as usize];
        wait_for(|| {
            let count = cq.poll(&mut room).expect("no overrun");
            for wc in &room[..count] {
                assert_eq!((wc.wr_id(), wc.status()), (next, S::SUCCESS));
                next += 1;
            }
            next == REQUESTS
        });
        poster.join().unwrap();
    }
}
