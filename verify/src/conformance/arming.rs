//! Arming (N1–N4, N11). Events and channels are in `channels`, waiting threads in `sleepers`.

use cq_core::transport::{ArmError, Armed};

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/arming.rs"));

fn n01_an_unarmed_queue_raises_nothing<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    message(&mut a, &mut b, 1);
    b.expect_received(&[(1, S::SUCCESS)]);
    b.expect_no_event();
    a.expect_no_event();
}

fn n01_an_armed_queue_raises_once_and_is_disarmed<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let key = b.received.key();
    for round in 0..10 {
        arm(&mut b.received, Notify::Next);
        b.expect_no_event();
        message(&mut a, &mut b, round);
        b.expect_event(key);
        message(&mut a, &mut b, round);
        b.expect_received(&[(round, S::SUCCESS); 2]);
        b.expect_no_event();
        a.expect_sent(&[(round, S::SUCCESS); 2]);
    }
}

/// The completion queue that gets the completion.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Requester,
    Responder,
}
use Side::{Requester, Responder};

/// An action that produces a completion, perhaps a failed one.
type Act<D> = fn(&mut End<D>, &mut End<D>);

/// Actions that raise an event if the queue is armed for solicited completions.
fn solicited<D: Device>() -> Vec<(&'static str, Side, Act<D>)> {
    vec![
        ("a receive of a SOLICITED SEND", Responder, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::send_inline(1, b"x").solicited());
        }),
        ("a receive of a SOLICITED unsignaled SEND", Responder, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::send_inline(1, b"x").solicited().unsignaled());
        }),
        ("a receive of a SOLICITED SEND of no bytes with immediate", Responder, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::send_inline(1, b"").with_imm([1; 4]).solicited());
        }),
        ("a receive of a SOLICITED WRITE with immediate", Responder, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::write_inline(1, b"x", b.remote(64)).with_imm([1; 4]).solicited());
        }),
    ]
}

/// Actions that raise no event if the queue is armed for solicited completions.
fn unsolicited<D: Device>() -> Vec<(&'static str, Side, Act<D>)> {
    vec![
        ("a receive of a SEND", Responder, |a, b| message(a, b, 1)),
        ("a receive of a SEND with immediate", Responder, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::send_inline(1, b"x").with_imm([1; 4]));
        }),
        ("a SEND", Requester, |a, b| message(a, b, 1)),
        ("a SOLICITED SEND", Requester, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::send_inline(1, b"x").solicited());
        }),
        ("a receive of a WRITE with immediate", Responder, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::write_inline(1, b"x", b.remote(64)).with_imm([1; 4]));
        }),
        ("a SOLICITED WRITE", Requester, |a, b| {
            a.post(SendWr::write_inline(1, b"x", b.remote(0)).solicited());
        }),
        ("a SOLICITED WRITE with immediate", Requester, |a, b| {
            b.recv(1, 0, 8);
            a.post(SendWr::write_inline(1, b"x", b.remote(64)).with_imm([1; 4]).solicited());
        }),
        ("a SOLICITED READ", Requester, |a, b| {
            a.post(SendWr::read(1, &[a.sge(0, 8)], b.remote(0)).solicited());
        }),
        ("a SOLICITED atomic", Requester, |a, b| {
            a.post(SendWr::fetch_add(1, &[a.sge(0, 8)], b.remote(0), 1).solicited());
        }),
    ]
}

/// Sends a message that is too long for its receive.
fn too_long<D: Device>(a: &mut End<D>, b: &mut End<D>) {
    b.recv(1, 0, 2);
    a.post(SendWr::send_inline(1, b"too long").unsignaled());
}

fn failed_receives<D: Device>() -> Vec<(&'static str, Side, Act<D>)> {
    vec![("a receive that is too small", Responder, too_long)]
}

fn flushed_receives<D: Device>() -> Vec<(&'static str, Side, Act<D>)> {
    vec![("a receive that is flushed", Responder, |_, b| {
        b.recv(1, 0, 2);
        b.to(QpState::ERR);
    })]
}

fn failed_sends<D: Device>() -> Vec<(&'static str, Side, Act<D>)> {
    vec![
        ("a WRITE that fails", Requester, |a, b| {
            a.post(SendWr::write_inline(1, b"x", RemoteAddr { rkey: 0, ..b.remote(0) }));
        }),
        ("an unsignaled SEND that fails", Requester, too_long),
    ]
}

fn flushed_sends<D: Device>() -> Vec<(&'static str, Side, Act<D>)> {
    vec![("a send that is flushed", Requester, |a, _| {
        a.to(QpState::ERR);
        a.send(1);
    })]
}

/// Arms for `on`, runs each action, and checks whether it raises one event or none.
#[track_caller]
fn matrix<D: Device>(on: Notify, acts: Vec<(&'static str, Side, Act<D>)>, raises: bool) {
    for (what, side, act) in acts {
        let (mut a, mut b) = with_channels::<D>();
        let end = if side == Requester { &mut a } else { &mut b };
        let cq = if side == Requester { &mut end.sent } else { &mut end.received };
        let key = cq.key();
        arm(cq, on);
        act(&mut a, &mut b);
        let end = if side == Requester { &mut a } else { &mut b };
        let channel = end.channel.as_mut().unwrap();
        let wanted = if raises { vec![key] } else { vec![] };
        assert_eq!(events(&end.device, channel, wanted.len()), wanted, "{what}, armed for {on:?}");
        let cq = if side == Requester { &mut end.sent } else { &mut end.received };
        assert_eq!(settle(&end.device, cq, 1).len(), 1, "{what} completes");
    }
}

fn n01_armed_for_any_every_kind_of_completion_raises<D: Device>() {
    matrix::<D>(Notify::Next, solicited(), true);
    matrix::<D>(Notify::Next, unsolicited(), true);
    for failing in [failed_receives(), flushed_receives(), failed_sends(), flushed_sends()] {
        matrix::<D>(Notify::Next, failing, true);
    }
}

fn n03_solicited_receives_raise<D: Device>() {
    matrix::<D>(Notify::Solicited, solicited(), true);
}

fn n03_unsolicited_successes_raise_nothing<D: Device>() {
    matrix::<D>(Notify::Solicited, unsolicited(), false);
}

fn n03_failed_receives_raise<D: Device>() {
    matrix::<D>(Notify::Solicited, failed_receives(), true);
}

fn n03_flushed_receives_raise<D: Device>() {
    matrix::<D>(Notify::Solicited, flushed_receives(), true);
}

fn n03_failed_sends_raise<D: Device>() {
    matrix::<D>(Notify::Solicited, failed_sends(), true);
}

fn n03_flushed_sends_raise<D: Device>() {
    matrix::<D>(Notify::Solicited, flushed_sends(), true);
}

fn n03_the_solicited_one_raises_behind_others<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let key = b.received.key();
    for _ in 0..10 {
        arm(&mut b.received, Notify::Solicited);
        for id in 0..3 {
            message(&mut a, &mut b, id);
        }
        b.expect_no_event();
        b.recv(3, 0, 8);
        a.post(SendWr::send_inline(3, b"x").solicited());
        b.expect_event(key);
        message(&mut a, &mut b, 4);
        b.expect_received(&all(0..5, S::SUCCESS));
        b.expect_no_event();
        a.expect_sent(&all(0..5, S::SUCCESS));
    }
}

fn n02_what_came_before_the_arm_raises_nothing_or_its_one_event_at_once<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let (key, at_once) = (b.received.key(), b.device.raises_when_armed());
    for on in [Notify::Next, Notify::Solicited] {
        message(&mut a, &mut b, 1);
        rest(&a.device);
        arm(&mut b.received, on);
        b.expect_raised_when_armed(key);
        b.expect_received(&[(1, S::SUCCESS)]); // without an event, that is why the waiter polls again
        b.recv(2, 0, 8);
        a.post(SendWr::send_inline(2, b"x").solicited());
        b.expect_events(&[key][..usize::from(!at_once)]);
        b.expect_received(&[(2, S::SUCCESS)]);
    }
}

fn n02_what_is_left_unpolled_is_there_for_the_next_arm<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let key = b.received.key();
    (0..4).for_each(|id| message(&mut a, &mut b, id));
    rest(&a.device);
    for id in 0..4 {
        arm(&mut b.received, Notify::Next);
        // Without an event at once, that of the first arm is still to come.
        b.expect_raised_when_armed(key);
        let mut one = [Wc::default()];
        assert_eq!((b.received.poll_into(&mut one), one[0].wr_id()), (Ok(1), id));
    }
    arm(&mut b.received, Notify::Next);
    b.expect_no_event();
    message(&mut a, &mut b, 4);
    b.expect_event(key);
}

fn n02_arming_before_the_poll_raises_no_second_event<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let key = b.received.key();
    arm(&mut b.received, Notify::Next);
    for id in 0..10 {
        message(&mut a, &mut b, id);
        b.expect_event(key);
        arm(&mut b.received, Notify::Next);
        b.expect_no_event();
        b.expect_received(&[(id, S::SUCCESS)]);
        a.expect_sent(&[(id, S::SUCCESS)]);
    }
}

fn n03_successful_sends_that_came_before_the_arm_are_not_solicited<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    message(&mut a, &mut b, 1);
    b.expect_received(&[(1, S::SUCCESS)]);
    rest(&a.device);
    arm(&mut a.sent, Notify::Solicited);
    a.expect_no_event();
    arm(&mut a.sent, Notify::Next);
    let key = a.sent.key();
    a.expect_raised_when_armed(key);
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn n02_arming_says_that_it_may_have_missed<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    message(&mut a, &mut b, 1);
    a.expect_sent(&[(1, S::SUCCESS)]);
    rest(&b.device);
    for on in [Notify::Solicited, Notify::Next] {
        assert_eq!(b.received.arm(on), Ok(Armed::MayHaveMissed), "one is there");
    }
    b.expect_received(&[(1, S::SUCCESS)]);
}

fn n04_armed_for_any_stays_so<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    arm(&mut b.received, Notify::Next);
    arm(&mut b.received, Notify::Solicited);
    message(&mut a, &mut b, 1);
    let key = b.received.key();
    b.expect_event(key);
}

fn n04_armed_for_solicited_can_be_armed_for_any<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    arm(&mut b.received, Notify::Solicited);
    arm(&mut b.received, Notify::Next);
    message(&mut a, &mut b, 1);
    let key = b.received.key();
    b.expect_event(key);
}

fn n04_a_new_arm_is_as_it_says<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let key = b.received.key();
    arm(&mut b.received, Notify::Next);
    message(&mut a, &mut b, 1);
    b.expect_event(key);
    b.expect_received(&[(1, S::SUCCESS)]);
    arm(&mut b.received, Notify::Solicited);
    message(&mut a, &mut b, 2);
    b.expect_received(&[(2, S::SUCCESS)]);
    b.expect_no_event();
}

fn n11_arming_without_a_channel_is_an_error<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for on in [Notify::Next, Notify::Solicited] {
        assert_eq!(b.received.arm(on), Err(ArmError::NoChannel));
    }
    message(&mut a, &mut b, 1);
    b.expect_received(&[(1, S::SUCCESS)]);
}
