//! Channels and their descriptors, beyond what the conformance suite asks: N2, N7, N9, N10.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;

use crate::common::events::{expect_event, expect_no_event};
use crate::common::{End, S, connect, open};
use cq_core::transport::{Arm, Armed, Events, Notify, Post};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Cq, QpInit, QueuePair};

/// A pair whose second end has a channel.
fn pair() -> (End, End, CompletionChannel) {
    let channel = open().create_channel().unwrap();
    let (mut a, mut b) = (End::new(), End::with_channel(&channel));
    connect(&mut a, &mut b);
    (a, b, channel)
}

#[test]
fn n10_the_descriptor_is_readable_while_an_event_is_unread() {
    let (mut a, mut b, mut channel) = pair();
    expect_no_event(&mut channel);
    for message in 0..2 {
        let armed = b.cq.arm(Notify::Next);
        assert_eq!(armed, Ok(Armed::Armed), "nothing waits, and this device knows");
        b.recv(message, 0, 64);
        a.send(message, 0, 8);
        b.expect(&[(message, S::SUCCESS)]);
    }
    expect_event(&mut channel, &b);
    expect_event(&mut channel, &b);
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
    qp.connect_to(qp.number()).unwrap();
    for _ in 0..events {
        let _ = cq.arm(Notify::Next);
        let target = end.region.remote(0).unwrap();
        qp.post_send(&[SendWr::write_inline(1, b"", target)]).unwrap();
    }
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
