//! Transitions of a queue pair's state, and their attributes (Q1).

use super::changes::Tries;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/transitions.rs"));

fn q01_every_transition_takes_what_it_needs<D: Device>() {
    Tries::<D>::of(QpType::RC).what_it_needs();
}

fn q01_no_other_transition_is_taken<D: Device>() {
    Tries::<D>::of(QpType::RC).no_other();
}

fn q01_every_attribute_left_out_is_missed<D: Device>() {
    Tries::<D>::of(QpType::RC).one_left_out();
}

fn q01_every_attribute_too_many_is_refused<D: Device>() {
    Tries::<D>::of(QpType::RC).one_too_many();
}

fn q01_every_optional_attribute_is_taken<D: Device>() {
    Tries::<D>::of(QpType::RC).what_it_may_bring();
}

/// Brings a queue pair up step by step; before the step of `bad`, that transition is refused and changes nothing.
#[track_caller]
fn refused<D: Device>(state: QpState, bad: fn(QpAttr) -> QpAttr) {
    let (mut end, peer) = two::<D>();
    for good in [attr::init(Access::EVERY), attr::rtr(peer.qp.number()), attr::rts()] {
        let before = end.qp.state();
        if good.state == Some(state) {
            let attr = bad(good);
            assert_eq!(end.qp.modify(&attr), Err(Errno::EINVAL), "{attr:?}");
            assert_eq!(end.qp.state(), before);
        }
        end.qp.modify(&good).unwrap();
    }
}

fn q01_a_port_that_is_not_there_is_refused<D: Device>() {
    refused::<D>(QpState::INIT, |init| init.port(0));
    refused::<D>(QpState::INIT, |init| init.port(99));
}

fn q01_a_packet_number_of_more_than_24_bits_is_refused<D: Device>() {
    refused::<D>(QpState::RTR, |rtr| rtr.rq_psn(1 << 24));
    refused::<D>(QpState::RTS, |rts| rts.sq_psn(1 << 24));
}

fn q01_more_retries_than_seven_are_refused<D: Device>() {
    refused::<D>(QpState::RTS, |rts| rts.retry_cnt(8));
    refused::<D>(QpState::RTS, |rts| rts.rnr_retry(8));
}

fn q01_a_wrong_current_state_is_refused<D: Device>() {
    let (mut a, _b) = pair::<D>();
    let claim = |cur_state| QpAttr::new().state(QpState::RTS).cur_state(cur_state);
    assert_eq!(a.qp.modify(&claim(QpState::SQD)), Err(Errno::EINVAL));
    assert_eq!(a.qp.modify(&claim(QpState::RTS)), Ok(()));
}

fn q01_a_refused_change_changes_no_attribute<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let rtr = attr::rtr(b.qp.number() + 1).access(Access::empty());
    assert_eq!(b.qp.modify(&rtr), Err(Errno::EINVAL), "no way leads from RTS to RTR");
    let sqd = QpAttr::new().state(QpState::SQD).access(Access::empty());
    assert_eq!(b.qp.modify(&sqd), Err(Errno::EINVAL), "SQD takes no rights along");
    a.post(SendWr::write_inline(1, b"still", b.remote(0)));
    a.expect_sent(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 5), b"still");
}

fn q01_rights_can_be_changed_in_rts<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.qp.modify(&QpAttr::new().state(QpState::RTS).access(Access::empty())).unwrap();
    a.post(SendWr::write_inline(1, b"x", b.remote(0)));
    a.expect_sent(&[(1, S::REM_INV_REQ_ERR)]);
    assert_eq!(b.bytes(0, 1), [0], "nothing was written");
}

fn q01_sqd_holds_sends_back_and_nothing_else<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.drain();
    b.recv(1, 0, 8);
    a.send(2);
    a.post(SendWr::send_inline(3, b"then").unsignaled());
    a.recv(4, 0, 8);
    a.expect_silence();
    b.send(5); // the receive side goes on
    a.expect_received(&[(4, S::SUCCESS)]);
    b.expect_sent(&[(5, S::SUCCESS)]);
    b.expect_received(&[]);
}

fn q01_rts_resumes_what_sqd_held_back<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.drain();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.send(3);
    a.post(SendWr::send_inline(4, b"then").unsignaled());
    a.to(QpState::RTS);
    a.expect_sent(&[(3, S::SUCCESS)]);
    b.expect_received(&all(1..3, S::SUCCESS));
}

fn q01_sqd_tells_when_it_is_drained<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.post(SendWr::write_inline(1, b"x", b.remote(0)));
    a.qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
    let drained = (AsyncEventType::SQ_DRAINED, a.element());
    a.expect_async(&[drained]);
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q01_sqd_ends_what_was_begun_and_tells_then<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.send(1); // it has begun: it waits for a receive
    a.expect_silence();
    a.qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
    a.send(2);
    a.expect_silence();
    a.expect_async(&[]);
    b.recv(3, 0, 8);
    b.recv(4, 0, 8);
    a.expect_sent(&[(1, S::SUCCESS)]);
    let drained = (AsyncEventType::SQ_DRAINED, a.element());
    a.expect_async(&[drained]);
    a.expect_silence(); // the other one is held back
    b.expect_received(&[(3, S::SUCCESS)]);
    a.expect_async(&[]);
}

fn q01_sqd_tells_nothing_unless_asked<D: Device>() {
    let (mut a, _b) = pair::<D>();
    a.to(QpState::SQD);
    a.expect_silence();
    a.expect_async(&[]);
}
