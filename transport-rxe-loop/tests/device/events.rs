//! Channels and their descriptors, beyond what the conformance suite asks: N2, N7, N9, N10.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread;

use crate::common::events::{expect_event, expect_no_event};
use crate::common::{End, NOWHERE, S, connect, open};
use cq_core::transport::{Arm, Armed, Events, Notify, Post};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, QpInit};

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
    let pd = context.alloc_pd().unwrap();
    let cqs: Vec<_> = (0..QUEUES)
        .map(|_| {
            let mut cq = context.create_cq(8, Some(&channel)).unwrap();
            let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
            qp.connect_to(qp.number()).unwrap();
            for _ in 0..4 {
                let _ = cq.arm(Notify::Next);
                qp.post_send(&[SendWr::write_inline(1, &[], NOWHERE)]).unwrap();
            }
            cq
        })
        .collect();
    let dead = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        scope.spawn(|| {
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
                None => break,
            }
        }
    });
    expect_no_event(&mut channel);
    channel.destroy().unwrap();
}
