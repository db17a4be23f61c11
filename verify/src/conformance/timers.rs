//! RNR retries and timeouts (Q7).

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/timers.rs"));

/// A short timeout: twice 1 ms.
const SHORT: QpAttr = BARE.timeout(AckTimeout::from_number(8).unwrap()).retry_cnt(1);
/// An infinite timeout.
const ENDLESS: QpAttr = BARE.timeout(AckTimeout::UNLIMITED).retry_cnt(0);
const BARE: QpAttr = attr::rts();

/// A pair whose first end is brought to RTS with these attributes.
fn pair_by<D: Device>(rts: QpAttr) -> (End<D>, End<D>) {
    pair_with(&Plan { rts, ..Plan::default() }, &brief())
}

/// The plan of an end with an RNR timer of 0.08 ms.
fn brief() -> Plan {
    Plan { rtr: attr::rtr(0).min_rnr_timer(RnrTimer::from_number(5).unwrap()), ..Plan::default() }
}

/// Posts three requests to a peer, of which the first fails with `status`; the peer is in `state` afterwards.
#[track_caller]
fn gives_up<D: Device>(a: &mut End<D>, b: &End<D>, status: S, state: QpState) {
    let list = [1, 2, 3].map(|id| SendWr::send_inline(id, b"x"));
    a.recv(4, 0, 8);
    a.qp.post_send(&[list[0].unsignaled(), list[1].unsignaled(), list[2]]).unwrap();
    a.expect_sent(&[(1, status), (2, S::WR_FLUSH_ERR), (3, S::WR_FLUSH_ERR)]);
    a.expect_received(&[(4, S::WR_FLUSH_ERR)]);
    a.expect_state(QpState::ERR);
    assert_eq!(b.qp.state(), state, "the peer's state");
    a.expect_async(&[]);
}

fn q07_no_receive_and_no_retry_fails<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(BARE.rnr_retry(0));
    gives_up(&mut a, &b, S::RNR_RETRY_EXC_ERR, QpState::RTS);
    b.recv(5, 0, 8);
    b.expect_silence(); // what failed does not arrive later
}

fn q07_no_receive_and_retries_that_run_out_fail<D: Device>() {
    for rnr_retry in [1, 3, 6] {
        let (mut a, mut b) = pair_by::<D>(BARE.rnr_retry(rnr_retry));
        gives_up(&mut a, &b, S::RNR_RETRY_EXC_ERR, QpState::RTS);
        b.recv(5, 0, 8);
        b.expect_silence();
    }
}

fn q07_no_receive_and_retries_for_ever_wait<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(BARE);
    for id in 0..4 {
        a.send(id);
    }
    a.expect_silence();
    for id in 10..14 {
        b.recv(id, 0, 8);
        b.expect_received(&[(id, S::SUCCESS)]);
    }
    a.expect_sent(&all(0..4, S::SUCCESS));
}

fn q07_a_late_receive_is_found<D: Device>() {
    // Six waits of 10 ms.
    let slow = Plan {
        rtr: attr::rtr(0).min_rnr_timer(RnrTimer::from_number(20).unwrap()),
        ..Plan::default()
    };
    let patient = Plan { rts: BARE.rnr_retry(6), ..Plan::default() };
    let (mut a, mut b) = pair_with::<D>(&patient, &slow);
    a.send(1);
    a.send(2);
    a.expect_sent(&[]);
    b.recv(3, 0, 8);
    a.expect_sent(&[(1, S::SUCCESS)]);
    b.recv(4, 0, 8);
    a.expect_sent(&[(2, S::SUCCESS)]);
    b.expect_received(&all(3..5, S::SUCCESS));
    assert_eq!(b.bytes(0, 5), b"hello");
}

fn q07_what_fails_behind_one_that_waits_fails_in_its_turn<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(BARE);
    let nothing = [Sge { lkey: 0, ..a.sge(0, 8) }];
    a.send(1); // nobody receives
    a.post(SendWr::write(2, &nothing, b.remote(0)));
    a.send(3);
    a.expect_silence();
    b.recv(4, 0, 8);
    b.expect_received(&[(4, S::SUCCESS)]);
    let sent = a.sent(3);
    let [first, second, third] = sent[..] else { panic!("each completes: {sent:?}") };
    assert_eq!((first, third), ((1, S::SUCCESS), (3, S::WR_FLUSH_ERR)));
    assert!(second.0 == 2 && second.1 != S::SUCCESS, "{second:?}");
    a.expect_state(QpState::ERR);
}

fn q07_what_takes_no_receive_does_not_wait_for_one<D: Device>() {
    let (mut a, b) = pair_by::<D>(BARE.rnr_retry(0));
    let word = [a.sge(0, 8)];
    a.post(SendWr::write(1, &word, b.remote(0)));
    a.post(SendWr::read(2, &word, b.remote(0)));
    a.post(SendWr::fetch_add(3, &word, b.remote(0), 1));
    a.expect_sent(&all(1..4, S::SUCCESS));
}

/// Posts two requests to a peer that is destroyed, before or while it is waited for.
#[track_caller]
fn peer_goes<D: Device>(rts: QpAttr, while_waiting: bool) {
    let (mut a, b) = pair_by::<D>(rts);
    let mut b = Some(b);
    if !while_waiting {
        b.take();
    }
    a.post(SendWr::send_inline(1, b"x").unsignaled()); // nobody receives
    a.send(2);
    if while_waiting {
        a.expect_sent(&[]);
        b.take();
    }
    a.expect_sent(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
    a.expect_state(QpState::ERR);
}

fn q07_a_peer_that_is_gone_does_not_answer<D: Device>() {
    peer_goes::<D>(SHORT, false);
    peer_goes::<D>(SHORT.rnr_retry(0), false);
}

fn q07_a_peer_that_goes_while_it_is_waited_for<D: Device>() {
    peer_goes::<D>(SHORT, true);
}

fn q07_a_peer_that_is_gone_is_waited_for_as_one_that_does_not_answer<D: Device>() {
    let (mut a, b) = pair_by::<D>(BARE.timeout(AckTimeout::from_number(31).unwrap())); // hours
    drop(b);
    a.send(1);
    a.expect_sent(&[]);
    a.to(QpState::ERR);
    a.expect_sent(&[(1, S::WR_FLUSH_ERR)]);
}

fn q07_a_peer_that_is_gone_ends_even_endless_waits<D: Device>() {
    peer_goes::<D>(ENDLESS, false);
    peer_goes::<D>(ENDLESS, true);
}

fn q07_a_peer_in_err_does_not_answer<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(SHORT);
    b.to(QpState::ERR);
    gives_up(&mut a, &b, S::RETRY_EXC_ERR, QpState::ERR);
    b.expect_nothing();
}

fn q07_a_peer_that_fails_while_its_receive_is_waited_for_does_not_answer<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(SHORT);
    a.send(1); // nobody receives
    a.expect_silence();
    b.to(QpState::ERR);
    a.expect_sent(&[(1, S::RETRY_EXC_ERR)]);
    a.expect_state(QpState::ERR);
    b.expect_nothing();
    assert_eq!(b.qp.state(), QpState::ERR);
}

fn q07_a_peer_that_is_not_ready_does_not_answer<D: Device>() {
    for state in [QpState::RESET, QpState::INIT] {
        let short = Plan { rts: SHORT, ..Plan::default() };
        let (mut a, mut b) = two_with::<D>(&short, &Plan::default());
        a.connect(&b.qp);
        b.bring_to(state, a.qp.number());
        if state == QpState::INIT {
            b.recv(9, 0, 8);
        }
        gives_up(&mut a, &b, S::RETRY_EXC_ERR, state);
        b.expect_received(&[]);
    }
}

fn q07_a_peer_that_is_connected_elsewhere_does_not_answer<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    // On the wire, only packet numbers distinguish peers on the same port: these are after B's.
    let stranger = SHORT.sq_psn(0xc0_0000);
    let mut c = End::<D>::near(&Plan { rts: stranger, ..Plan::default() });
    c.connect(&b.qp);
    b.recv(9, 0, 8);
    gives_up(&mut c, &b, S::RETRY_EXC_ERR, QpState::RTS);
    a.send(8);
    b.expect_received(&[(9, S::SUCCESS)]); // it was not taken by the stranger
    a.expect_sent(&[(8, S::SUCCESS)]);
}

fn q07_a_peer_of_another_type_does_not_answer<D: Device>() {
    for qp_type in [QpType::UC, QpType::UD] {
        let short = Plan { rts: SHORT, ..Plan::default() };
        let (mut a, mut b) = two_with::<D>(&short, &Plan::of(qp_type));
        a.connect(&b.qp);
        b.connect(&a.qp);
        b.recv(9, 0, 64);
        gives_up(&mut a, &b, S::RETRY_EXC_ERR, QpState::RTS);
        b.expect_silence(); // its receive is for others
    }
}

/// Posts requests with an infinite timeout to a peer that is not connected yet.
fn early<D: Device>() -> (End<D>, End<D>) {
    let (mut a, mut b) = two_with::<D>(&Plan { rts: ENDLESS, ..Plan::default() }, &brief());
    a.connect(&b.qp);
    a.post(SendWr::write_inline(1, b"early", b.remote(0)));
    a.send(2);
    a.expect_silence();
    b.bring_to(QpState::INIT, a.qp.number());
    b.recv(3, 64, 8);
    a.expect_silence();
    (a, b)
}

fn q07_without_a_timeout_a_peer_is_waited_for_for_ever<D: Device>() {
    let (mut a, b) = early::<D>();
    assert_eq!((a.qp.state(), b.bytes(0, 5)), (QpState::RTS, vec![0; 5]));
    a.to(QpState::ERR);
    a.expect_sent(&all(1..3, S::WR_FLUSH_ERR));
}

fn q07_without_a_timeout_a_late_peer_is_found<D: Device>() {
    let (mut a, mut b) = early::<D>();
    b.qp.modify(&attr::rtr(a.qp.number())).unwrap();
    a.expect_sent(&all(1..3, S::SUCCESS));
    b.expect_received(&[(3, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 5), b"early");
}

fn q07_a_late_peer_is_found<D: Device>() {
    // Eight times 1 s.
    let patient = BARE.timeout(AckTimeout::from_number(18).unwrap()).retry_cnt(7);
    let (mut a, mut b) = two_with::<D>(&Plan { rts: patient, ..Plan::default() }, &brief());
    a.connect(&b.qp);
    a.post(SendWr::write_inline(1, b"early", b.remote(0)));
    a.post(SendWr::fetch_add(2, &[a.sge(0, 8)], b.remote(8), 1));
    a.expect_sent(&[]);
    b.connect(&a.qp);
    a.expect_sent(&all(1..3, S::SUCCESS));
    assert_eq!((b.bytes(0, 5), b.bytes(8, 8)), (b"early".to_vec(), 1u64.to_ne_bytes().to_vec()));
}

fn q07_err_ends_a_wait_once<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(SHORT.rnr_retry(1));
    a.send(1);
    a.to(QpState::ERR);
    let wait_was_over = |status| [S::RNR_RETRY_EXC_ERR, S::WR_FLUSH_ERR].contains(&status);
    let done = settle(&a.device, &mut a.sent, 1);
    assert!(done.len() == 1 && wait_was_over(done[0].status()), "one completion: {done:?}");
    b.recv(2, 0, 8);
    a.expect_silence();
    b.expect_nothing();
}

fn q07_reset_ends_a_wait_in_silence<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(BARE);
    a.send(1);
    a.to(QpState::RESET);
    b.recv(2, 0, 8);
    a.expect_silence();
    b.expect_nothing();
}

fn q07_other_queue_pairs_go_on_while_one_waits<D: Device>() {
    let (mut a, mut b) = pair_by::<D>(BARE);
    let (mut c, d) = pair::<D>();
    a.send(1);
    b.send(2);
    for id in 0..20 {
        c.post(SendWr::write_inline(id, b"x", d.remote(0)));
        c.expect_sent(&[(id, S::SUCCESS)]);
    }
    a.recv(3, 0, 8); // the other direction goes on as well
    b.expect_sent(&[(2, S::SUCCESS)]);
    a.expect_received(&[(3, S::SUCCESS)]);
    a.expect_sent(&[]);
}
