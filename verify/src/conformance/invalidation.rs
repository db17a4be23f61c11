//! Invalidating keys of memory windows: LOCAL_INV and SEND_WITH_INV (C5, Q6, Q7).

use super::line::*;
use super::stand::*;
use super::window::*;

include!(concat!(env!("OUT_DIR"), "/invalidation.rs"));

/// Expects that a key gives access to the second end's region.
#[track_caller]
fn is_open<D: Device>(a: &mut End<D>, b: &End<D>, rkey: u32) {
    a.post(SendWr::write_inline(900, b"x", RemoteAddr { rkey, ..b.remote(0) }));
    a.expect_sent(&[(900, S::SUCCESS)]);
}

fn c05_an_invalidated_key_is_told_and_excludes_immediate<D: Device>() {
    let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    b.recv(1, 0, 64);
    b.recv(2, 0, 64);
    let word = [a.sge(0, 8)];
    a.post(SendWr::send_with_inv(3, &word, rkey));
    a.post(SendWr::send(4, &word));
    let got = b.expect_received(&all(1..3, S::SUCCESS));
    let done = got[0].result().unwrap();
    assert_eq!((done.invalidated_rkey(), done.imm()), (Some(rkey), None));
    assert_eq!((done.opcode(), done.byte_len()), (WcOpcode::RECV, 8));
    assert_eq!(got[1].result().unwrap().invalidated_rkey(), None, "the next one does not tell it");
    let sent = a.expect_sent(&all(3..5, S::SUCCESS))[0];
    assert_eq!(sent.result().unwrap().opcode(), WcOpcode::SEND);
}

fn c06_a_local_invalidation_is_told_by_its_opcode<D: Device>() {
    let (_a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    b.post(SendWr::local_invalidate(1, rkey));
    let done = b.expect_sent(&[(1, S::SUCCESS)])[0];
    assert_eq!(done.result().unwrap().opcode(), WcOpcode::LOCAL_INV);
    assert!(!done.result().unwrap().is_recv());
}

fn q06_a_local_invalidation_shuts_a_window<D: Device>() {
    let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    is_open(&mut a, &b, rkey);
    b.post(SendWr::local_invalidate(1, rkey));
    b.expect_sent(&[(1, S::SUCCESS)]);
    is_shut(&mut a, &mut b, rkey);
}

fn q06_a_local_invalidation_needs_no_peer<D: Device>() {
    let (a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    drop(a);
    b.post(SendWr::local_invalidate(1, rkey));
    b.expect_sent(&[(1, S::SUCCESS)]);
}

fn q06_a_window_that_was_shut_can_be_bound_again<D: Device>() {
    let (mut a, mut b, mw, WindowBind { rkey: first, .. }) = bound::<D>();
    let mut rkey = first;
    for id in 0..300 {
        b.post(SendWr::local_invalidate(id, rkey));
        b.expect_sent(&[(id, S::SUCCESS)]);
        let binds = opens_all(&b, &mw);
        assert_eq!(binds.window, rkey, "it has the key that it had last");
        bind(&mut b, binds);
        rkey = binds.rkey;
        is_open(&mut a, &b, rkey);
    }
    is_shut(&mut a, &mut b, first);
}

fn q06_a_send_with_invalidate_shuts_the_window_of_its_receiver<D: Device>() {
    let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    is_open(&mut a, &b, rkey);
    b.recv(1, 0, 64);
    a.post(SendWr::send_with_inv(2, &[], rkey));
    a.expect_sent(&[(2, S::SUCCESS)]);
    b.expect_received(&[(1, S::SUCCESS)]);
    is_shut(&mut a, &mut b, rkey);
}

fn q06_a_send_with_invalidate_brings_its_bytes_first<D: Device>() {
    let (mut a, mut b, mw, WindowBind { mut rkey, .. }) = bound::<D>();
    for round in 1..=20u8 {
        a.mr.write(0, &[round; 256]);
        b.recv(1, 1024, 256);
        a.post(SendWr::send_with_inv(2, &[a.sge(0, 256)], rkey));
        a.expect_sent(&[(2, S::SUCCESS)]);
        b.expect_received(&[(1, S::SUCCESS)]);
        assert_eq!(b.bytes(1024, 256), [round; 256]);
        let binds = opens_all(&b, &mw);
        bind(&mut b, binds);
        rkey = binds.rkey;
    }
}

fn q06_a_send_with_invalidate_wakes_who_waits_for_solicited<D: Device>() {
    let region = Access::EVERY | Access::MW_BIND;
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan { region, ..Plan::with_channel() });
    let mw = window(&b);
    let binds = opens_all(&b, &mw);
    bind(&mut b, binds);
    arm(&mut b.received, Notify::Solicited);
    b.recv(1, 0, 64);
    a.post(SendWr::send_with_inv(2, &[], binds.rkey).solicited());
    let key = b.received.key();
    b.expect_event(key);
}

fn q07_a_local_invalidation_of_what_is_no_window<D: Device>() {
    for case in 0..3 {
        let (mut a, mut b) = openable::<D>();
        drop(window(&b)); // the device has windows
        let rkey = [NO_KEY, b.mr.rkey(), b.mr.lkey()][case];
        fails(&mut b, &mut a, SendWr::local_invalidate(1, rkey), UNBOUND);
        b.to(QpState::RESET);
        let mut other = b.meet();
        is_open(&mut other, &b, b.mr.rkey()); // a region's key stays
    }
}

fn q07_a_local_invalidation_of_what_is_not_bound_here<D: Device>() {
    let (mut a, mut b) = openable::<D>();
    let mw = window(&b);
    fails(&mut b, &mut a, SendWr::local_invalidate(1, mw.rkey()), UNBOUND);

    // Bound to another queue pair of the same protection domain.
    let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    let first = b.replace_qp();
    let mut c = b.meet();
    fails(&mut b, &mut c, SendWr::local_invalidate(1, rkey), UNBOUND);
    b.qp = first;
    is_open(&mut a, &b, rkey);
}

/// A key that LOCAL_INV invalidated, or whose window or region is gone.
fn q07_a_key_that_is_gone_is_not_taken_away_again<D: Device>() {
    for case in 0..3 {
        let (mut a, mut b) = openable::<D>();
        let mw = window(&b);
        let (region, binds) = opens_another(&b, &mw);
        bind(&mut b, binds);
        let invalidate = SendWr::local_invalidate(1, binds.rkey).unsignaled();
        match case {
            0 => b.post(SendWr { wr_id: 20, ..invalidate }), // it completes only if it fails
            1 => drop(mw),
            _ => drop(region),
        }
        fails(&mut b, &mut a, invalidate, UNBOUND);
    }
}

fn q07_a_send_that_invalidates_a_window_of_another_queue_pair<D: Device>() {
    let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    let first = b.replace_qp();
    let mut c = b.meet();
    invalidates_nothing(&mut c, &mut b, rkey);
    b.qp = first;
    is_open(&mut a, &b, rkey);
}

fn q07_a_send_that_invalidates_no_window_of_its_receiver_brings_its_bytes<D: Device>() {
    for case in 0..6 {
        let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
        let [unbound, second] = [window(&b), window(&b)];
        let (region, dead) = opens_another(&b, &second);
        bind(&mut b, dead);
        drop(region);
        let gone = window(&b).rkey();
        let keys = [NO_KEY, inc_rkey(rkey), b.mr.rkey(), unbound.rkey(), dead.rkey, gone];
        a.mr.write(0, &[7; 64]);
        b.recv(1, 0, 64);
        b.recv(2, 0, 64);
        a.post(SendWr::send_with_inv(3, &[a.sge(0, 64)], keys[case]));
        a.expect_sent(&[(3, S::SUCCESS)]);
        b.expect_received(&[(1, S::REM_INV_REQ_ERR), (2, S::WR_FLUSH_ERR)]);
        b.expect_state(QpState::ERR);
        assert_eq!(a.qp.state(), QpState::RTS, "it was answered");
        assert_eq!(b.bytes(0, 64), [7; 64], "its bytes are there");
    }
}

fn q07_a_send_with_invalidate_fails_as_any_send<D: Device>() {
    let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    b.recv(10, 0, 4);
    let from = [a.sge(0, 16)];
    let too_small = Line { receive: Some(Some(S::LOC_LEN_ERR)), told: None, ..INVALID };
    fails(&mut a, &mut b, SendWr::send_with_inv(1, &from, rkey), too_small);
    let (mut a, mut b, _mw, WindowBind { rkey, .. }) = bound::<D>();
    let outside = [a.sge(REGION as u64 - 7, 8)];
    fails(&mut a, &mut b, SendWr::send_with_inv(1, &outside, rkey), LOCAL);
}
