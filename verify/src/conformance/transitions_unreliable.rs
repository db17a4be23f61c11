//! Transitions of UC and UD queue pairs (Q1).

use super::changes::Tries;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/transitions_unreliable.rs"));

fn q01_every_transition_of_an_unreliable_connection_takes_what_it_needs<D: Device>() {
    Tries::<D>::of(QpType::UC).what_it_needs();
}

fn q01_every_transition_of_datagrams_takes_what_it_needs<D: Device>() {
    Tries::<D>::of(QpType::UD).what_it_needs();
}

fn q01_no_other_transition_of_an_unreliable_connection_is_taken<D: Device>() {
    Tries::<D>::of(QpType::UC).no_other();
}

fn q01_no_other_transition_of_datagrams_is_taken<D: Device>() {
    Tries::<D>::of(QpType::UD).no_other();
}

fn q01_every_attribute_left_out_is_missed_of_an_unreliable_connection<D: Device>() {
    Tries::<D>::of(QpType::UC).one_left_out();
}

fn q01_every_attribute_left_out_is_missed_of_datagrams<D: Device>() {
    Tries::<D>::of(QpType::UD).one_left_out();
}

fn q01_every_attribute_too_many_is_refused_of_an_unreliable_connection<D: Device>() {
    Tries::<D>::of(QpType::UC).one_too_many();
}

fn q01_every_attribute_too_many_is_refused_of_datagrams<D: Device>() {
    Tries::<D>::of(QpType::UD).one_too_many();
}

fn q01_every_optional_attribute_is_taken_of_an_unreliable_connection<D: Device>() {
    Tries::<D>::of(QpType::UC).what_it_may_bring();
}

fn q01_every_optional_attribute_is_taken_of_datagrams<D: Device>() {
    Tries::<D>::of(QpType::UD).what_it_may_bring();
}

/// A pair whose first end's requests 3 and 4 are not started because it is in SQD.
fn held_back<D: Device>() -> (End<D>, End<D>) {
    let (mut a, mut b) = pair_with::<D>(&Plan::of(QpType::UC), &Plan::of(QpType::UC));
    a.drain();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.send(3);
    a.post(SendWr::send_inline(4, b"then").unsignaled());
    (a, b)
}

fn q01_an_unreliable_send_queue_is_held_back_in_sqd<D: Device>() {
    let (mut a, mut b) = held_back::<D>();
    a.expect_silence();
    b.expect_nothing();
}

fn q01_an_unreliable_send_queue_resumes_what_sqd_held_back<D: Device>() {
    let (mut a, mut b) = held_back::<D>();
    a.to(QpState::RTS);
    a.expect_sent(&[(3, S::SUCCESS)]);
    b.expect_received(&all(1..3, S::SUCCESS));
}
