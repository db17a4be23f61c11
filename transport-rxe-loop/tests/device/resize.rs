//! Resizing a completion queue, beyond what the conformance suite asks: Q12, and that arms, events, tags and the
//! overrun go with it.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::*;
use transport_rxe_loop::ResizeError;

/// A queue pair that is connected to itself, of as many sends as `depth`.
fn of_depth(context: &Context, cq: &Cq, depth: u32) -> QueuePair {
    let caps = CAPS.max_send_wr(depth).max_recv_wr(depth);
    to_itself(context.alloc_pd().unwrap().qp(cq).caps(caps))
}

fn queue(capacity: u32, channel: Option<&CompletionChannel>) -> (QueuePair, Cq) {
    let context = open();
    let cq = context.cq(capacity).channel(channel).create().unwrap();
    (of_depth(&context, &cq, 64), cq)
}

const EMPTY: SendWr<'_> = SendWr::write_inline(0, &[], NOWHERE);

/// Adds one completion, of an empty WRITE.
fn write(qp: &mut QueuePair, wr_id: u64) -> Result<(), PostError> {
    qp.post_send(&[SendWr { wr_id, ..EMPTY }])
}

#[test]
fn q12_what_is_refused_says_why() {
    let (mut qp, mut cq) = queue(16, None);
    (0..6).for_each(|wr_id| write(&mut qp, wr_id).unwrap());
    assert_eq!(cq.resize(5), Err(ResizeError::TooFew { unpolled: 6, asked: 5 }));
    let cqe = LimitKind::Cqe;
    assert_eq!(cq.resize(0), Err(ResizeError::Create(CreateError::Zero(cqe))));
    let max = open().attributes().max_cqe;
    let too_many = CreateError::TooMany { what: cqe, asked: max + 1, max };
    assert_eq!(cq.resize(max + 1), Err(ResizeError::Create(too_many)));
    (6..60).for_each(|wr_id| write(&mut qp, wr_id).unwrap());
    assert_eq!(cq.resize(100), Err(ResizeError::Overrun));
    assert_eq!(cq.capacity(), 16);
}

#[test]
fn q12_send_slots_come_back_as_they_are_polled() {
    const DEPTH: u32 = 5;
    let context = open();
    let mut cq = context.cq(8).create().unwrap();
    let mut qp = of_depth(&context, &cq, DEPTH);
    let full = PostError { posted: 0, why: WrError::QueueFull };
    (0..u64::from(DEPTH)).for_each(|wr_id| write(&mut qp, wr_id).unwrap());
    for capacity in [5, 64, 6, 4096, 5].into_iter().cycle().take(50) {
        cq.resize(capacity).unwrap();
        assert_eq!(write(&mut qp, 9), Err(full), "moving is not polling");
        assert_eq!(cq.poll_into(&mut [Wc::default(); 2]), Ok(2));
        write(&mut qp, 9).unwrap();
        write(&mut qp, 9).unwrap();
        assert_eq!(write(&mut qp, 9), Err(full));
    }
}

#[test]
fn n03_an_arm_for_solicited_stays_what_it_is() {
    let mut channel = open().create_channel().unwrap();
    let (mut qp, mut cq) = queue(8, Some(&channel));
    assert_eq!(cq.arm(Notify::Solicited), Ok(Armed::Armed));
    cq.resize(20).unwrap();
    write(&mut qp, 1).unwrap();
    assert_eq!(channel.take_event(), Ok(None), "not solicited");
    cq.resize(3).unwrap();
    qp.post_recv(&[RecvWr::new(2, &[])]).unwrap();
    qp.post_send(&[SendWr::send(2, &[]).solicited()]).unwrap();
    assert_eq!(channel.take_event(), Ok(Some(cq.key())));
    cq.resize(64).unwrap();
    assert_eq!(cq.arm(Notify::Solicited), Ok(Armed::MayHaveMissed));
    assert_eq!(take(&mut cq).len(), 3);
}

#[test]
fn q12_completions_that_come_meanwhile_are_kept() {
    const THREADS: usize = 3;
    const EACH: u64 = 20_000;
    const DEPTH: u32 = 16;
    let context = open();
    let mut cq = context.cq(64).create().unwrap();
    let qps: Vec<_> = (0..THREADS).map(|_| of_depth(&context, &cq, DEPTH)).collect();
    let numbers: Vec<_> = qps.iter().map(QueuePair::number).collect();
    let mut next = [0; THREADS];
    thread::scope(|scope| {
        for mut qp in qps {
            scope.spawn(move || post_all(&mut qp, EMPTY, EACH));
        }
        let mut sizes = [48, 100, 50, 1024, 49].into_iter().cycle();
        let mut buffer = [Wc::default(); 5];
        wait_for(|| {
            // Never less than can be outstanding (O7).
            let capacity = sizes.next().unwrap();
            assert_eq!(cq.resize(capacity), Ok(capacity));
            let count = cq.poll_into(&mut buffer).unwrap();
            for wc in &buffer[..count] {
                let who = numbers.iter().position(|&number| number == wc.qp_num()).unwrap();
                assert_eq!(wc.wr_id(), next[who]);
                next[who] += 1;
            }
            next == [EACH; THREADS]
        });
    });
}

#[test]
fn n06_a_sleeper_is_woken_whatever_the_size_becomes() {
    const ROUNDS: u64 = 3_000;
    let mut channel = open().create_channel().unwrap();
    let (mut qp, cq) = queue(64, Some(&channel));
    let poster = thread::spawn(move || post_all(&mut qp, EMPTY, ROUNDS));
    let mut cq = CompletionQueue::new(cq);
    let mut buffer = [Wc::default(); 4];
    let mut next = 0;
    while next < ROUNDS {
        let batch = cq.poll_or_arm(&mut buffer, Notify::Next).unwrap();
        let count = batch.len();
        batch.iter().zip(next..).for_each(|(wc, wr_id)| assert_eq!(wc.wr_id(), wr_id));
        next += count as u64;
        if count == 0 {
            // Armed: here the queue moves, while the next completion may be coming.
            cq.get_mut().resize(64 + next as u32 % 64).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            assert_eq!(channel.block(Some(deadline)), Ok(Woken::Event), "slept through it");
            assert_eq!(channel.take_event(), Ok(Some(cq.get_mut().key())));
        }
    }
    poster.join().unwrap();
}

#[test]
fn o04_an_overrun_at_the_same_moment() {
    const POSTED: u32 = 40;
    for round in 0..300 {
        let mut context = open();
        let mut cq = context.cq(16).create().unwrap();
        let mut qp = of_depth(&context, &cq, 64);
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                (0..POSTED.into()).for_each(|wr_id| write(&mut qp, wr_id).unwrap());
            });
            start.wait();
            for capacity in [17, 33, 20] {
                match cq.resize(capacity) {
                    Ok(now) => assert_eq!(now, capacity),
                    Err(ResizeError::Overrun | ResizeError::TooFew { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let mut buffer = [Wc::default(); 64];
        let stored = cq.poll_into(&mut buffer).unwrap();
        assert!(buffer[..stored].iter().map(Wc::wr_id).eq(0..stored as u64), "round {round}");
        let dropped = POSTED - stored as u32;
        let overrun = if dropped > 0 {
            assert_eq!(cq.resize(200), Err(ResizeError::Overrun));
            Err(PollError::Overrun { dropped: Some(dropped) })
        } else {
            Ok(0)
        };
        assert_eq!(cq.poll_into(&mut buffer), overrun);
        let wanted = [cq_err(&cq), fatal(&qp)];
        assert_eq!(reports(&mut context), wanted[..if dropped > 0 { 2 } else { 0 }]);
    }
}
