//! What happens to a queue pair while its peer moves bytes into a receive that it has taken: C10, Q2.
//! The messages are long, so that there is time for it.

use std::thread;

use crate::common::{
    ALL, CAPS, End, S, connect_by, open, pair, pair_with, patient, settle, take, wait_for,
};
use cq_core::async_event::Element;
use cq_core::setup::{Endpoint, Port};
use cq_core::transport::{AsyncEvents, Post};
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{OwnedRegion, QpAttr, QpCaps, QpInit, QpState};

const LEN: usize = 16 << 20;

/// Pieces of a message, which all lie in the same bytes: it takes longer than others keep a core to themselves.
const PIECES: usize = 16;

/// A piece without a key.
const BAD: Sge = Sge { addr: 0, length: 8, lkey: 0 };

/// The sender's end, the receiver's, and where the message went.
type Scene = (End, End, OwnedRegion);

/// Sends a long message into the first of three receives, and lets `act` loose on the receiver when the
/// first byte has arrived.
fn while_a_message_arrives(act: impl FnOnce(&mut End)) -> Scene {
    let pieces = PIECES as u32;
    let (mut a, mut b) = pair_with(QpCaps { max_send_sge: pieces, max_recv_sge: pieces, ..CAPS });
    let (source, target) = (a.pd.allocate(LEN, ALL).unwrap(), b.pd.allocate(LEN, ALL).unwrap());
    source.write(0, &vec![7; LEN]).unwrap();
    b.qp.post_recv(&[RecvWr::new(0, &[target.sge(0, LEN).unwrap(); PIECES])]).unwrap();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    thread::scope(|scope| {
        let a = &mut a;
        scope.spawn(move || {
            let sges = [source.sge(0, LEN).unwrap(); PIECES];
            a.qp.post_send(&[SendWr::send(10, &sges)]).unwrap();
            source
        });
        let mut first = [0];
        wait_for(|| {
            target.read(0, &mut first).unwrap();
            first != [0]
        });
        act(&mut b);
    });
    (a, b, target)
}

fn last_byte(region: &OwnedRegion) -> u8 {
    let mut last = [0];
    region.read(LEN - 1, &mut last).unwrap();
    last[0]
}

#[test]
fn c10_a_flush_waits_behind_the_receive_that_is_in_flight() {
    let (mut a, mut b, target) =
        while_a_message_arrives(|b| b.qp.modify(&QpAttr::to(QpState::ERR)).unwrap());
    b.expect(&[(0, S::SUCCESS), (1, S::WR_FLUSH_ERR), (2, S::WR_FLUSH_ERR)]);
    a.expect(&[(10, S::SUCCESS)]);
    assert_eq!(last_byte(&target), 7);
}

#[test]
fn c10_a_flush_that_met_the_receive_that_is_in_flight_goes_on_after_it() {
    // The message may be through before this thread has come to fail the queue pair.
    wait_for(|| {
        let mut done = Vec::new();
        let (mut a, mut b, _target) = while_a_message_arrives(|b| {
            b.qp.post_send(&[SendWr::send(20, &[BAD])]).unwrap();
            done = settle(&mut b.cq, 1);
            assert_eq!(b.qp.state().unwrap(), QpState::ERR);
        });
        let met_it = done.len() == 1 && done[0].wr_id() == 20;
        done.extend(settle(&mut b.cq, 4 - done.len()));
        let of = |sends: bool| {
            let queue = done.iter().filter(move |wc| (wc.wr_id() == 20) == sends);
            queue.map(|wc| (wc.wr_id(), wc.status())).collect::<Vec<_>>()
        };
        assert_eq!(of(true), [(20, S::LOC_PROT_ERR)]);
        assert_eq!(of(false), [(0, S::SUCCESS), (1, S::WR_FLUSH_ERR), (2, S::WR_FLUSH_ERR)]);
        a.expect(&[(10, S::SUCCESS)]);
        met_it
    });
}

#[test]
fn q02_reset_waits_for_the_receive_that_is_in_flight() {
    let (mut a, mut b, _target) = while_a_message_arrives(|b| {
        b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        let done: Vec<_> = take(&mut b.cq).iter().map(|wc| (wc.wr_id(), wc.status())).collect();
        assert_eq!(done, [(0, S::SUCCESS)]);
    });
    b.expect_nothing();
    a.expect(&[(10, S::SUCCESS)]);
}

#[test]
fn destroying_waits_for_the_receive_that_is_in_flight() {
    let (mut a, mut b, target) = while_a_message_arrives(|b| {
        let End { qp, cq, .. } = std::mem::replace(b, End::new());
        qp.destroy();
        b.cq = cq;
        let done: Vec<_> = take(&mut b.cq).iter().map(|wc| (wc.wr_id(), wc.status())).collect();
        assert_eq!(done, [(0, S::SUCCESS)]);
    });
    b.expect_nothing();
    a.expect(&[(10, S::SUCCESS)]);
    assert_eq!(last_byte(&target), 7);
}

#[test]
fn q02_a_request_in_execution_completes_before_those_that_are_flushed() {
    let (mut a, b) = pair();
    let (source, target) = (a.pd.allocate(LEN, ALL).unwrap(), b.pd.allocate(LEN, ALL).unwrap());
    source.write(0, &vec![7; LEN]).unwrap();
    let sge = [source.sge(0, LEN).unwrap()];
    a.qp.post_send(&[SendWr::send(1, &sge), SendWr::send(2, &[])]).unwrap(); // they wait
    let b = thread::scope(|scope| {
        let mut b = b;
        let recv = [target.sge(0, LEN).unwrap()];
        let poster = scope.spawn(move || {
            b.qp.post_recv(&[RecvWr::new(3, &recv)]).unwrap(); // executes the sender's requests
            b
        });
        let mut first = [0];
        wait_for(|| {
            target.read(0, &mut first).unwrap();
            first != [0]
        });
        a.qp.modify(&QpAttr::to(QpState::ERR)).unwrap(); // leaves the flush to the other thread
        poster.join().unwrap()
    });
    a.expect(&[(1, S::SUCCESS), (2, S::WR_FLUSH_ERR)]);
    assert_eq!(b.qp.state().unwrap(), QpState::RTS);
}

/// Whether a long WRITE goes on after `act`, which began while it arrived, has returned. What `act` returns
/// is kept until then: deregistering waits, too.
fn a_write_goes_on_after<T>(act: impl FnOnce(End) -> T) -> bool {
    let ((mut a, b), len) = (pair(), 8 * LEN);
    let (source, target) = (a.pd.allocate(len, ALL).unwrap(), b.pd.allocate(len, ALL).unwrap());
    source.write(0, &vec![7; len]).unwrap();
    let remote = target.remote(0).unwrap();
    let byte = |at: usize| {
        let mut byte = [0];
        target.read(at, &mut byte).unwrap();
        byte[0]
    };
    thread::scope(|scope| {
        let poster = scope.spawn(|| {
            let sge = [source.sge(0, len).unwrap()];
            a.qp.post_send(&[SendWr::write(10, &sge, remote)]).unwrap();
        });
        wait_for(|| byte(0) != 0);
        let _kept = act(b);
        let arrived = byte(len - 1);
        poster.join().unwrap();
        arrived != byte(len - 1)
    })
}

#[test]
fn q02_no_write_of_the_peer_is_under_way_when_the_state_has_changed() {
    for state in [QpState::RESET, QpState::ERR] {
        let late = a_write_goes_on_after(|mut b| {
            b.qp.modify(&QpAttr::to(state)).unwrap();
            b
        });
        assert!(!late, "{state}");
    }
    let late = a_write_goes_on_after(|End { qp, cq, region, pd, .. }| {
        qp.destroy();
        (cq, region, pd)
    });
    assert!(!late, "destroyed");
}

/// Lets the peer's thread carry out many long WRITEs, and has their queue pair end after the first; whether
/// the last of them was left undone.
fn ends_before_the_last_write(end: impl FnOnce(End)) -> bool {
    const WRITES: usize = 128;
    let caps = QpCaps { max_send_wr: WRITES as u32, ..CAPS };
    let (mut a, mut b) = (End::with(caps), End::new());
    let (source, target) = (a.pd.allocate(LEN, ALL).unwrap(), b.pd.allocate(LEN, ALL).unwrap());
    source.write(0, &vec![7; LEN]).unwrap();
    connect_by(&mut a.qp, &QpAttr::rtr(&Port::new(1), &Endpoint::new(b.qp.number())), &patient());
    let (most, rest) = ([source.sge(0, LEN - 1).unwrap()], [source.sge(0, 1).unwrap()]);
    let long = SendWr::write(0, &most, target.remote(0).unwrap()).unsignaled();
    let last = SendWr::write(1, &rest, target.remote(LEN - 1).unwrap()).unsignaled();
    a.qp.post_send(&[long; WRITES - 1]).unwrap();
    a.qp.post_send(&[last]).unwrap();
    thread::scope(|scope| {
        let (number, b) = (a.qp.number(), &mut b);
        scope.spawn(move || b.qp.connect_to(number).unwrap());
        let mut first = [0];
        wait_for(|| {
            target.read(0, &mut first).unwrap();
            first != [0]
        });
        end(a);
    });
    last_byte(&target) == 0
}

#[test]
fn q02_reset_and_destroying_leave_undone_what_was_not_begun() {
    // The other thread may be through before this one has seen the first byte.
    wait_for(|| {
        ends_before_the_last_write(|mut a| a.qp.modify(&QpAttr::to(QpState::RESET)).unwrap())
    });
    wait_for(|| ends_before_the_last_write(|a| a.qp.destroy()));
}

#[test]
fn n07_an_event_that_is_taken_while_its_queue_pair_goes_bears_its_number() {
    /// More than are taken while the WRITE ends.
    const EVENTS: usize = 10_000;
    let mut context = open();
    let (mut peer, cq) = (End::new(), context.create_cq(4, None).unwrap());
    let (pd, len) = (context.alloc_pd().unwrap(), 8 * LEN);
    let source = pd.allocate(len, ALL).unwrap();
    source.write(0, &vec![7; len]).unwrap();
    let target = peer.pd.allocate(len, ALL).unwrap();
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    let number = qp.number();
    connect_by(&mut qp, &QpAttr::rtr(&Port::new(1), &Endpoint::new(peer.qp.number())), &patient());
    for _ in 0..EVENTS {
        qp.modify(&QpAttr::to(QpState::SQD).en_sqd_async_notify(true)).unwrap(); // leaves one
        qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
    }
    let all = [source.sge(0, len).unwrap()];
    qp.post_send(&[SendWr::write(0, &all, target.remote(0).unwrap())]).unwrap();
    thread::scope(|scope| {
        let peer = &mut peer;
        scope.spawn(move || peer.qp.connect_to(number).unwrap()); // carries the WRITE out
        let mut first = [0];
        wait_for(|| {
            target.read(0, &mut first).unwrap();
            first != [0]
        });
        let destroyer = scope.spawn(move || qp.destroy()); // waits for the WRITE
        wait_for(|| {
            let event = context.take_async_event().unwrap();
            assert!(event.is_none_or(|event| event.element == Element::Qp(number)), "{event:?}");
            destroyer.is_finished()
        });
    });
    assert_eq!(context.take_async_event(), Ok(None), "they go with it");
}
