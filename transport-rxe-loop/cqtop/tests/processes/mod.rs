//! Processes that the tests start, each with something to be seen in its fabric.

use cq_core::transport::{Arm, Notify, PollCq};
use cq_core::wc::Wc;
use cq_verbs::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    Access, AckTimeout, Context, Endpoint, OpenOptions, Port, QpAttr, QpState,
};

use super::actor::{die_with_parent, order, say};
use super::{FABRIC, SMALL};

fn open() -> Context {
    die_with_parent();
    let name = std::env::var(FABRIC).expect("started by another test");
    OpenOptions::new().fabric(&name).limits(SMALL.parse().unwrap()).open("loop0").unwrap()
}

/// Sends itself messages until it is told to end.
#[test]
#[ignore = "a process of the tests below"]
fn talks() {
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let mut cq = context.cq(16).create().unwrap();
    let mut qp = pd.qp(&cq).create().unwrap();
    let port = context.port(1).unwrap();
    qp.connect(&port, &qp.endpoint(&port)).unwrap();
    say(qp.number());
    std::thread::spawn(|| {
        order();
        std::process::exit(0);
    });
    let mut wcs = [Wc::default(); 4];
    loop {
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        qp.post_send(&[SendWr::send(2, &[])]).unwrap();
        while cq.poll_into(&mut wcs).unwrap() > 0 {}
    }
}

/// Has a request that waits for another queue pair of its own, which is not ready; an armed queue; one that has overrun.
#[test]
#[ignore = "a process of the tests below"]
fn waits() {
    let context = open();
    let (pd, port) = (context.alloc_pd().unwrap(), Port::new(1));
    let channel = context.create_channel().unwrap();
    let mut armed = context.cq(16).channel(&channel).create().unwrap();
    let _ = armed.arm(Notify::Next).unwrap();
    let small = context.cq(1).create().unwrap();
    let caps = pd.qp(&armed).caps.max_recv_wr(8);
    let [mut qp, mut failed] = [&armed, &small].map(|cq| pd.qp(cq).caps(caps).create().unwrap());
    let peer = pd.qp(&armed).create().unwrap();
    let rtr = QpAttr::rtr(&port, &Endpoint::new(peer.number()));
    for attr in
        [QpAttr::init(&port, Access::empty()), rtr, QpAttr::rts().timeout(AckTimeout::UNLIMITED)]
    {
        qp.modify(&attr).unwrap();
    }
    qp.post_send(&[SendWr::send(41, &[])]).unwrap();
    failed.modify(&QpAttr::init(&port, Access::empty())).unwrap();
    failed.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    for wr_id in 0..4 {
        failed.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    }
    say(qp.number());
    order();
}

/// Has completions that it does not poll.
#[test]
#[ignore = "a process of the tests below"]
fn neglects() {
    let context = open();
    let cq = context.cq(16).create().unwrap();
    let mut qp = context.alloc_pd().unwrap().qp(&cq).create().unwrap();
    let port = context.port(1).unwrap();
    qp.connect(&port, &qp.endpoint(&port)).unwrap();
    for _ in 0..2 {
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    }
    say("here");
    order();
}

/// Has the fabric open, and nothing else.
#[test]
#[ignore = "a process of the tests below"]
fn sits() {
    let _context = open();
    say("here");
    order();
}
