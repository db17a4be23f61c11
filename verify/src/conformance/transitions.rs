//! Changing a queue pair's state and attributes: Q1.

use super::changes::Tries;
use super::stand::*;

super::chapter! {
    q01_every_transition_takes_what_it_needs,
    q01_no_other_transition_is_taken,
    q01_every_attribute_left_out_is_missed,
    q01_every_attribute_too_many_is_refused,
    q01_every_optional_attribute_is_taken,
    q01_a_port_that_is_not_there_is_refused,
    q01_a_packet_size_that_is_not_one_is_refused,
    q01_a_packet_number_of_more_than_24_bits_is_refused,
    q01_more_retries_than_seven_are_refused,
    q01_a_timeout_above_31_is_refused,
    q01_a_wrong_current_state_is_refused,
    q01_a_refused_change_changes_no_attribute,
    q01_rights_can_be_changed_in_rts,
    q01_sqd_holds_sends_back_and_nothing_else,
    q01_rts_resumes_what_sqd_held_back,
    q01_sqd_tells_when_it_is_drained,
    q01_sqd_ends_what_was_begun_and_tells_then,
    q01_sqd_tells_nothing_unless_asked,
}

fn q01_every_transition_takes_what_it_needs<D: Device>() {
    Tries::<D>::of(QpType::Rc).what_it_needs();
}

fn q01_no_other_transition_is_taken<D: Device>() {
    Tries::<D>::of(QpType::Rc).no_other();
}

fn q01_every_attribute_left_out_is_missed<D: Device>() {
    Tries::<D>::of(QpType::Rc).one_left_out();
}

fn q01_every_attribute_too_many_is_refused<D: Device>() {
    Tries::<D>::of(QpType::Rc).one_too_many();
}

fn q01_every_optional_attribute_is_taken<D: Device>() {
    Tries::<D>::of(QpType::Rc).what_it_may_bring();
}

/// Brings a queue pair up step by step; before the step that `bad` is about, its change is refused and
/// changes nothing.
#[track_caller]
fn refused<D: Device>(state: State, bad: fn(Attr) -> Attr) {
    let (mut end, peer) = two::<D>();
    for good in [Attr::init(Access::EVERY), Attr::rtr(peer.qp.number()), Attr::rts()] {
        let before = end.qp.state();
        if good.state == Some(state) {
            let attr = bad(good);
            assert_eq!(end.qp.modify(&attr), Err(Refusal::Invalid), "{attr:?}");
            assert_eq!(end.qp.state(), before);
        }
        end.qp.modify(&good).unwrap();
    }
}

fn q01_a_port_that_is_not_there_is_refused<D: Device>() {
    refused::<D>(State::Init, |init| Attr { port: Some(0), ..init });
    refused::<D>(State::Init, |init| Attr { port: Some(99), ..init });
}

fn q01_a_packet_size_that_is_not_one_is_refused<D: Device>() {
    refused::<D>(State::Rtr, |rtr| Attr { path_mtu: Some(1000), ..rtr });
}

fn q01_a_packet_number_of_more_than_24_bits_is_refused<D: Device>() {
    refused::<D>(State::Rtr, |rtr| Attr { rq_psn: Some(1 << 24), ..rtr });
    refused::<D>(State::Rts, |rts| Attr { sq_psn: Some(1 << 24), ..rts });
}

fn q01_more_retries_than_seven_are_refused<D: Device>() {
    refused::<D>(State::Rts, |rts| Attr { retry_cnt: Some(8), ..rts });
    refused::<D>(State::Rts, |rts| Attr { rnr_retry: Some(8), ..rts });
}

fn q01_a_timeout_above_31_is_refused<D: Device>() {
    refused::<D>(State::Rts, |rts| Attr { timeout: Some(32), ..rts });
}

fn q01_a_wrong_current_state_is_refused<D: Device>() {
    let (mut a, _b) = pair::<D>();
    let claim = |cur_state| Attr { cur_state: Some(cur_state), ..Attr::to(State::Rts) };
    assert_eq!(a.qp.modify(&claim(State::Sqd)), Err(Refusal::Invalid));
    assert_eq!(a.qp.modify(&claim(State::Rts)), Ok(()));
}

fn q01_a_refused_change_changes_no_attribute<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let rtr = Attr { access: Some(Access::empty()), ..Attr::rtr(b.qp.number() + 1) };
    assert_eq!(b.qp.modify(&rtr), Err(Refusal::Invalid), "no way leads from RTS to RTR");
    let sqd = Attr { access: Some(Access::empty()), ..Attr::to(State::Sqd) };
    assert_eq!(b.qp.modify(&sqd), Err(Refusal::Invalid), "SQD takes no rights along");
    a.post(SendWr::write_inline(1, b"still", b.remote(0)));
    a.expect_sent(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 5), b"still");
}

fn q01_rights_can_be_changed_in_rts<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.qp.modify(&Attr { access: Some(Access::empty()), ..Attr::to(State::Rts) }).unwrap();
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
    a.to(State::Rts);
    a.expect_sent(&[(3, S::SUCCESS)]);
    b.expect_received(&all(1..3, S::SUCCESS));
}

fn q01_sqd_tells_when_it_is_drained<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.post(SendWr::write_inline(1, b"x", b.remote(0)));
    a.qp.modify(&Attr { sqd_async_notify: Some(true), ..Attr::to(State::Sqd) }).unwrap();
    let drained = (AsyncEventType::SQ_DRAINED, a.element());
    a.expect_async(&[drained]);
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q01_sqd_ends_what_was_begun_and_tells_then<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.send(1); // it has begun: it waits for a receive
    a.expect_silence();
    a.qp.modify(&Attr { sqd_async_notify: Some(true), ..Attr::to(State::Sqd) }).unwrap();
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
    a.to(State::Sqd);
    a.expect_silence();
    a.expect_async(&[]);
}
