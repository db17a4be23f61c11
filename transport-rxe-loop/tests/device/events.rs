//! Arming, channels and their descriptors: N1–N11.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::events::{expect_event, expect_no_event};
use crate::common::{CAPS, End, S, connect, open, settle, take};
use cq_core::cq::CompletionQueue;
use cq_core::transport::{Arm, ArmError, Armed, Block, Events, Notify, Post, Woken};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Cq, QpAttr, QpInit, QpState, QueuePair};

/// A pair whose second end has a channel.
fn pair() -> (End, End, CompletionChannel) {
    let channel = open().create_channel().unwrap();
    let (mut a, mut b) = (End::new(), on(&channel));
    connect(&mut a, &mut b);
    (a, b, channel)
}

fn on(channel: &CompletionChannel) -> End {
    let mut end = End::new();
    let cq = open().create_cq(64, Some(channel)).unwrap();
    end.qp = end.pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
    end.cq = cq;
    end
}

fn message(a: &mut End, b: &mut End, solicited: bool) {
    b.recv(1, 0, 64);
    let wr = SendWr::send_inline(2, b"x");
    a.qp.post_send(&[if solicited { wr.solicited() } else { wr }]).unwrap();
}

#[test]
fn n01_one_event_for_the_next_completion_after_arming() {
    let (mut a, mut b, mut channel) = pair();
    message(&mut a, &mut b, false);
    expect_no_event(&mut channel); // not armed
    take(&mut b.cq);
    assert_eq!(b.cq.arm(Notify::Next), Ok(Armed::Armed));
    expect_no_event(&mut channel);
    message(&mut a, &mut b, false);
    message(&mut a, &mut b, false);
    expect_event(&mut channel, &b);
    expect_no_event(&mut channel); // disarmed by the first
    assert_eq!(take(&mut b.cq).len(), 2);
}

#[test]
fn n02_arming_over_a_completion_raises_nothing_and_says_so() {
    let (mut a, mut b, mut channel) = pair();
    message(&mut a, &mut b, false);
    assert_eq!(b.cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    expect_no_event(&mut channel);
    message(&mut a, &mut b, false);
    expect_event(&mut channel, &b);
}

#[test]
fn n03_solicited_only_wakes_for_solicited_receives_and_failures() {
    let (mut a, mut b, mut channel) = pair();
    assert_eq!(b.cq.arm(Notify::Solicited), Ok(Armed::Armed));
    message(&mut a, &mut b, false);
    expect_no_event(&mut channel);
    message(&mut a, &mut b, true);
    expect_event(&mut channel, &b);

    take(&mut b.cq);
    assert_eq!(b.cq.arm(Notify::Solicited), Ok(Armed::Armed));
    a.recv(3, 0, 64);
    b.qp.post_send(&[SendWr::send_inline(4, b"x").solicited()]).unwrap();
    settle(&mut b.cq, 1);
    expect_no_event(&mut channel); // never for a successful send

    b.recv(5, 0, 64);
    b.qp.modify(&QpAttr::to(QpState::Err)).unwrap();
    expect_event(&mut channel, &b);
}

#[test]
fn n03_whatever_takes_a_receive_can_be_solicited() {
    let (mut a, mut b, mut channel) = pair();
    let (from, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(0).unwrap());
    for wr in [
        SendWr::send(2, &from),
        SendWr::send(2, &from).with_imm([1; 4]),
        SendWr::write(2, &from, to).with_imm([1; 4]),
        SendWr::write(2, &[], to).with_imm([1; 4]),
    ] {
        assert_eq!(b.cq.arm(Notify::Solicited), Ok(Armed::Armed));
        for solicited in [false, true] {
            b.recv(1, 0, 64);
            a.post(if solicited { wr.solicited() } else { wr });
            a.expect(&[(2, S::SUCCESS)]);
            b.expect(&[(1, S::SUCCESS)]);
            if !solicited {
                expect_no_event(&mut channel);
            }
        }
        expect_event(&mut channel, &b);
    }
}

#[test]
fn n03_soliciting_means_nothing_where_no_receive_is_taken() {
    let channel = &mut open().create_channel().unwrap();
    let (mut a, mut b) = (on(channel), on(channel));
    connect(&mut a, &mut b);
    let (here, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(0).unwrap());
    assert_eq!(a.cq.arm(Notify::Solicited), Ok(Armed::Armed));
    assert_eq!(b.cq.arm(Notify::Solicited), Ok(Armed::Armed));
    for wr in [
        SendWr::write(2, &here, to),
        SendWr::read(2, &here, to),
        SendWr::compare_swap(2, &here, to, 0, 0),
        SendWr::fetch_add(2, &here, to, 0),
        SendWr::atomic_write(2, &here, to),
    ] {
        a.post(wr.solicited());
        a.expect(&[(2, S::SUCCESS)]);
        expect_no_event(channel);
    }
    b.expect_nothing();
}

#[test]
fn n03_a_failed_send_wakes_too() {
    let channel = &mut open().create_channel().unwrap();
    let (mut a, mut b) = (on(channel), End::new());
    connect(&mut a, &mut b);
    assert_eq!(a.cq.arm(Notify::Solicited), Ok(Armed::Armed));
    b.recv(1, 0, 1);
    a.send(2, 0, 2);
    expect_event(channel, &a);
}

#[test]
fn n04_arming_never_weakens() {
    let (mut a, mut b, mut channel) = pair();
    let _ = b.cq.arm(Notify::Next);
    let _ = b.cq.arm(Notify::Solicited);
    message(&mut a, &mut b, false);
    expect_event(&mut channel, &b);
}

#[test]
fn n05_a_wait_goes_on_after_an_event_that_finds_nothing() {
    let (mut a, mut b, mut channel) = pair();
    let _ = b.cq.arm(Notify::Next);
    message(&mut a, &mut b, false);
    take(&mut b.cq); // the event is still there
    let mut cq = CompletionQueue::new(b.cq);
    let mut room = [Wc::default(); 4];
    let deadline = Instant::now() + Duration::from_millis(5);
    assert_eq!(cq.wait(&mut room, &mut channel, Some(deadline)).unwrap(), []);
    assert_eq!(channel.take_event(), Ok(None));
}

#[test]
fn n07_a_destroyed_queue_is_never_named() {
    let mut channel = open().create_channel().unwrap();
    let mut ends: Vec<(End, End)> = (0..3).map(|_| (End::new(), on(&channel))).collect();
    for (a, b) in &mut ends {
        connect(a, b);
        let _ = b.cq.arm(Notify::Next);
        message(a, b, false);
    }
    let (_, dead) = ends.remove(1);
    let End { qp, cq, .. } = dead;
    qp.destroy();
    cq.destroy().unwrap();
    expect_event(&mut channel, &ends[0].1);
    expect_event(&mut channel, &ends[1].1);
    expect_no_event(&mut channel);
}

#[test]
fn n07_a_queue_dropped_before_its_queue_pair_is_never_named_either() {
    let (mut a, b, mut channel) = pair();
    let End { mut qp, mut cq, region, .. } = b;
    let _ = cq.arm(Notify::Next);
    qp.post_recv(&[RecvWr::new(1, &[region.sge(0, 64).unwrap()])]).unwrap();
    drop(cq);
    a.send(2, 0, 8);
    a.expect(&[(2, S::SUCCESS)]);
    expect_no_event(&mut channel);
    channel.destroy().unwrap();
    drop(qp);
}

#[test]
fn n08_queues_that_share_a_channel_are_told_apart() {
    let mut channel = open().create_channel().unwrap();
    let (mut a, mut b) = (on(&channel), on(&channel));
    connect(&mut a, &mut b);
    assert_ne!(a.cq.key(), b.cq.key());
    let _ = a.cq.arm(Notify::Next);
    let _ = b.cq.arm(Notify::Next);
    message(&mut a, &mut b, false);
    expect_event(&mut channel, &b); // the receiver is told first
    expect_event(&mut channel, &a);
    expect_no_event(&mut channel);
}

#[test]
fn n07_no_event_names_a_queue_that_was_destroyed_before_it_was_taken() {
    const QUEUES: usize = 100;
    let context = open();
    let mut channel = context.create_channel().unwrap();
    let end = End::new();
    let cqs: Vec<_> = (0..QUEUES)
        .map(|_| {
            let mut cq = context.create_cq(8, Some(&channel)).unwrap();
            let mut qp = end.pd.create_qp(&QpInit::new(&cq)).unwrap();
            arm_and_complete(&end, &mut qp, &mut cq, 4);
            cq
        })
        .collect();
    let dead = Mutex::new(HashSet::new());
    let destroying = thread::scope(|scope| {
        let destroyer = scope.spawn(|| {
            for cq in cqs {
                let key = cq.key();
                cq.destroy().unwrap();
                dead.lock().unwrap().insert(key);
            }
        });
        loop {
            let gone = dead.lock().unwrap().clone();
            match channel.take_event().unwrap() {
                Some(key) => assert!(!gone.contains(&key), "{key} is dead"),
                None => break destroyer.join(),
            }
        }
    });
    destroying.unwrap();
    expect_no_event(&mut channel);
    channel.destroy().unwrap();
}

/// Has a queue pair, which is new, raise so many events of its queue.
fn arm_and_complete(end: &End, qp: &mut QueuePair, cq: &mut Cq, events: usize) {
    let itself = qp.number();
    qp.connect(itself).unwrap();
    for _ in 0..events {
        let _ = cq.arm(Notify::Next);
        let target = end.region.remote(0).unwrap();
        qp.post_send(&[SendWr::write_inline(1, b"", target)]).unwrap();
    }
}

#[test]
fn n08_a_send_and_a_receive_queue_on_one_channel_are_armed_apart() {
    let mut channel = open().create_channel().unwrap();
    let (mut a, mut b) = (End::new(), End::new());
    let mut sends = open().create_cq(8, Some(&channel)).unwrap();
    let mut receives = open().create_cq(8, Some(&channel)).unwrap();
    let init = QpInit { recv_cq: &receives, caps: CAPS, ..QpInit::new(&sends) };
    b.qp = b.pd.create_qp(&init).unwrap();
    connect(&mut a, &mut b);

    let _ = sends.arm(Notify::Next);
    message(&mut a, &mut b, true);
    expect_no_event(&mut channel); // a receive is not the send queue's
    let _ = receives.arm(Notify::Solicited);
    a.recv(3, 0, 8);
    b.send(4, 0, 8);
    assert_eq!(channel.take_event(), Ok(Some(sends.key())));
    message(&mut a, &mut b, true);
    assert_eq!(channel.take_event(), Ok(Some(receives.key())));
    expect_no_event(&mut channel);
    assert_eq!((take(&mut sends).len(), take(&mut receives).len()), (1, 2));
}

#[test]
fn n09_unread_events_of_many_queues_come_in_turn() {
    const QUEUES: usize = 40;
    const EVENTS: usize = 25;
    let mut channel = open().create_channel().unwrap();
    let mut cqs: Vec<_> =
        (0..QUEUES).map(|_| open().create_cq(EVENTS as u32, Some(&channel)).unwrap()).collect();
    thread::scope(|scope| {
        for cqs in cqs.chunks_mut(QUEUES / 4) {
            let end = End::new();
            scope.spawn(move || {
                for cq in cqs {
                    let mut qp = end.pd.create_qp(&QpInit::new(cq)).unwrap();
                    arm_and_complete(&end, &mut qp, cq, EVENTS);
                }
            });
        }
    });
    for _ in 0..EVENTS {
        let named: HashSet<_> =
            (0..QUEUES).map(|_| channel.take_event().unwrap().unwrap()).collect();
        assert_eq!(named, cqs.iter().map(Arm::key).collect());
    }
    expect_no_event(&mut channel);
}

#[test]
fn n09_unread_events_block_nobody_and_none_is_lost() {
    let (mut a, mut b, mut channel) = pair();
    const EVENTS: usize = 20_000;
    for _ in 0..EVENTS {
        let _ = b.cq.arm(Notify::Next);
        message(&mut a, &mut b, false);
        take(&mut a.cq);
        take(&mut b.cq);
    }
    for _ in 0..EVENTS {
        expect_event(&mut channel, &b);
    }
    expect_no_event(&mut channel);
}

#[test]
fn n10_the_descriptor_wakes_a_sleeper_of_another_thread() {
    let (mut a, mut b, mut channel) = pair();
    let _ = b.cq.arm(Notify::Next);
    b.recv(1, 0, 64);
    let sleeper = thread::spawn(move || {
        assert_eq!(channel.block(None), Ok(Woken::Event));
        (channel.take_event().unwrap(), channel)
    });
    a.send(2, 0, 8);
    let (event, _channel) = sleeper.join().unwrap();
    assert_eq!(event, Some(b.cq.key()));
}

#[test]
fn n10_blocking_ends_in_time() {
    let mut channel = open().create_channel().unwrap();
    assert_eq!(channel.take_event(), Ok(None));
    let deadline = Instant::now() + Duration::from_millis(3);
    while channel.block(Some(deadline)).unwrap() != Woken::DeadlinePassed {}
    assert!(Instant::now() >= deadline);
}

#[test]
fn n11_arming_without_a_channel_is_an_error() {
    let mut cq = open().create_cq(4, None).unwrap();
    assert_eq!(cq.arm(Notify::Next), Err(ArmError::NoChannel));
}

#[test]
fn n06_no_wakeup_is_lost_between_two_threads() {
    const ROUNDS: u64 = 5_000;
    let (mut a, b, mut channel) = pair();
    let End { mut qp, cq, region, pd, .. } = b;
    let server = thread::spawn(move || {
        let sge = [region.sge(0, 64).unwrap()];
        let mut cq = CompletionQueue::new(cq);
        let mut room = [Wc::default(); 4];
        let mut served = 0;
        qp.post_recv(&[RecvWr::new(0, &sge)]).unwrap();
        while served < ROUNDS {
            let limit = Some(Instant::now() + Duration::from_secs(60));
            let batch = cq.wait(&mut room, &mut channel, limit).unwrap();
            assert!(!batch.is_empty(), "slept through a completion");
            for wc in batch.iter().filter(|wc| wc.result().unwrap().is_recv()) {
                qp.post_recv(&[RecvWr::new(wc.wr_id() + 1, &sge)]).unwrap();
                qp.post_send(&[SendWr::send_inline(wc.wr_id(), b"pong")]).unwrap();
                served += 1;
            }
        }
        (qp, pd)
    });
    for round in 0..ROUNDS {
        a.recv(round, 0, 64);
        a.send(round, 64, 8);
        let got = settle(&mut a.cq, 2);
        assert!(got.iter().all(|wc| wc.status() == S::SUCCESS && wc.wr_id() == round));
    }
    server.join().unwrap();
}
