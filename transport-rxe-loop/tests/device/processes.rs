//! Two processes on one fabric: they connect by their queue pairs' numbers (X1), and each is woken by what the
//! other does (X6).

use std::time::{Duration, Instant};

use crate::common::process::{Actor, order, say};
use crate::common::{self, CAPS, FABRIC, fabric, open};
use cq_core::cq::CompletionQueue;
use cq_core::setup::{Endpoint, Port};
use cq_core::transport::Post;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Context, Cq, OpenOptions, QpAttr, QpInit, QueuePair};

const LIMIT: Duration = Duration::from_secs(30);

/// A queue pair whose completions are slept for.
struct Sleeper {
    qp: QueuePair,
    cq: CompletionQueue<Cq>,
    channel: CompletionChannel,
}

impl Sleeper {
    fn new(context: &Context) -> Self {
        let channel = context.create_channel().unwrap();
        let cq = context.create_cq(16, Some(&channel)).unwrap();
        let mut qp = context
            .alloc_pd()
            .unwrap()
            .create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) })
            .unwrap();
        qp.modify(&QpAttr::init(&Port::new(1), common::ALL)).unwrap();
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        Self { qp, cq: CompletionQueue::new(cq), channel }
    }

    fn connect_to(&mut self, peer: u32) {
        self.qp.modify(&QpAttr::rtr(&Port::new(1), &Endpoint::new(peer))).unwrap();
        self.qp.modify(&QpAttr::rts()).unwrap();
    }

    /// Sleeps until the receive has completed.
    fn sleep(&mut self) {
        let mut room = [Wc::default(); 1];
        let deadline = Instant::now() + LIMIT;
        let woken = self.cq.wait(&mut room, &mut self.channel, Some(deadline)).unwrap();
        let done = woken.first().expect("somebody wakes this one").result().unwrap();
        assert_eq!((done.wr_id(), done.is_recv()), (1, true));
    }

    fn send(&mut self) {
        self.qp.post_send(&[SendWr::send(2, &[]).unsignaled()]).unwrap();
    }
}

#[test]
#[ignore = "a process of the other test"]
fn peer() {
    let mut sleeper = Sleeper::new(&open());
    say(sleeper.qp.number());
    sleeper.connect_to(order().parse().unwrap());
    say("connected");
    sleeper.sleep();
    sleeper.send();
    // Until the other one has done with it.
    order();
}

#[test]
fn x06_each_of_two_processes_is_woken_by_the_other() {
    let mut sleeper = Sleeper::new(&open());
    let mut peer = Actor::start("processes::peer", &[(FABRIC, &fabric())]);
    sleeper.connect_to(peer.number() as u32);
    peer.order(sleeper.qp.number());
    assert_eq!(peer.hear(), "connected");
    sleeper.send();
    sleeper.sleep();
    peer.finish();
}

#[test]
fn x01_another_fabric_sees_nothing_of_it() {
    let named = |name: &str| {
        let name = format!("test-{}-{name}", std::process::id());
        OpenOptions::new().fabric(&name).open("loop0").unwrap()
    };
    let (one, other) = (named("one"), named("other"));
    let (mut a, mut b) = (Sleeper::new(&one), Sleeper::new(&other));
    // Both are the first of their fabric, and yet a number is nobody's in the other.
    assert_ne!(a.qp.number(), b.qp.number());
    a.connect_to(a.qp.number());
    b.connect_to(a.qp.number());
    a.send();
    a.sleep();
    let mut room = [Wc::default(); 1];
    assert!(b.cq.wait(&mut room, &mut b.channel, Some(Instant::now())).unwrap().is_empty());
}
