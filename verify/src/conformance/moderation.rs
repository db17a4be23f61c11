//! Moderation: one event for several completions (N12).

use std::time::{Duration, Instant};

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/moderation.rs"));

/// The longest possible period, in microseconds.
const LONG: u16 = u16::MAX;

/// A pair with channels; the first end's send completion queue is moderated.
fn moderated<D: Device>(count: u16, period: u16) -> (End<D>, End<D>) {
    let (mut a, b) = with_channels::<D>();
    offered(a.sent.moderate(count, period));
    (a, b)
}

/// Completes a send and polls its completion, without giving a sequential device time to advance its clock.
#[track_caller]
fn one<D: Device>(a: &mut End<D>, b: &End<D>) {
    a.post(SendWr::write_inline(1, b"x", b.remote(0)));
    wait_for("it completes", || !take(&mut a.sent).is_empty());
}

/// The event that has arrived, if any.
fn now<D: Device>(end: &mut End<D>) -> Option<CqKey> {
    end.channel.as_mut().unwrap().take_event().expect("the channel works")
}

/// Repeats an observation until it was made within the [longest](LONG) period, because a thread can be descheduled for
/// longer than that.
#[track_caller]
fn in_time(mut look: impl FnMut() -> bool, what: &str) {
    for _ in 0..100 {
        let start = Instant::now();
        let so = look();
        if start.elapsed() < Duration::from_micros(LONG.into()) {
            assert!(so, "{what}");
            return;
        }
    }
    panic!("this machine is too slow to tell whether {what}");
}

fn n12_an_event_waits_for_as_many_completions_as_it_stands_for<D: Device>() {
    for count in [2, 3, 8] {
        let held = || {
            let (mut a, b) = moderated::<D>(count, LONG);
            let key = a.sent.key();
            arm(&mut a.sent, Notify::Next);
            let early = (1..count).any(|_| {
                one(&mut a, &b);
                now(&mut a).is_some()
            });
            one(&mut a, &b);
            !early && now(&mut a) == Some(key)
        };
        in_time(held, "the event comes with the last of its completions, not before");
    }
}

fn n12_an_event_waits_no_longer_than_its_period<D: Device>() {
    let (mut a, b) = moderated::<D>(1000, 100);
    let key = a.sent.key();
    for _ in 0..3 {
        arm(&mut a.sent, Notify::Next);
        one(&mut a, &b);
        a.expect_event(key);
    }
}

fn n12_without_a_period_nothing_is_held_back_for_ever<D: Device>() {
    let (mut a, b) = moderated::<D>(u16::MAX, 0);
    let key = a.sent.key();
    arm(&mut a.sent, Notify::Next);
    one(&mut a, &b);
    a.expect_event(key);
}

fn n12_a_count_of_one_or_none_holds_nothing_back<D: Device>() {
    for count in [0, 1] {
        let at_once = || {
            let (mut a, b) = moderated::<D>(count, LONG);
            let key = a.sent.key();
            arm(&mut a.sent, Notify::Next);
            one(&mut a, &b);
            now(&mut a) == Some(key)
        };
        in_time(at_once, "the first completion raises it");
    }
}

fn n12_a_failure_is_not_held_back<D: Device>() {
    for on in [Notify::Next, Notify::Solicited] {
        let at_once = || {
            let (mut a, b) = moderated::<D>(100, LONG);
            let key = a.sent.key();
            arm(&mut a.sent, on);
            one(&mut a, &b);
            a.post(SendWr::write_inline(1, b"x", RemoteAddr { rkey: 0, ..b.remote(0) }));
            wait_for("it fails", || !take(&mut a.sent).is_empty());
            now(&mut a) == Some(key)
        };
        in_time(at_once, "a failure raises it");
    }
}

fn n12_unsolicited_ones_do_not_count_for_who_waits_for_solicited<D: Device>() {
    let held = || {
        let (mut a, mut b) = with_channels::<D>();
        offered(b.received.moderate(2, LONG));
        let key = b.received.key();
        arm(&mut b.received, Notify::Solicited);
        let mut receive = |solicited: bool| {
            b.recv(1, 0, 8);
            let wr = SendWr::send_inline(1, b"x").unsignaled();
            a.post(if solicited { wr.solicited() } else { wr });
            wait_for("it arrives", || !take(&mut b.received).is_empty());
            now(&mut b)
        };
        let early = [false, true, false, false].map(&mut receive);
        early == [None; 4] && receive(true) == Some(key)
    };
    in_time(held, "the second solicited one raises it");
}

fn n12_there_is_one_event_for_each_arm<D: Device>() {
    let (mut a, b) = moderated::<D>(2, 100);
    let key = a.sent.key();
    for _ in 0..5 {
        arm(&mut a.sent, Notify::Next);
        (0..3).for_each(|_| one(&mut a, &b));
        a.expect_event(key);
        (0..3).for_each(|_| one(&mut a, &b));
        a.expect_no_event();
    }
}

fn n12_arming_again_meanwhile_asks_for_no_more<D: Device>() {
    for again in [Notify::Next, Notify::Solicited] {
        let held = || {
            let (mut a, b) = moderated::<D>(3, LONG);
            let key = a.sent.key();
            arm(&mut a.sent, Notify::Next);
            let early = (1..3).any(|_| {
                one(&mut a, &b); // it polls, too
                arm(&mut a.sent, again);
                now(&mut a).is_some()
            });
            one(&mut a, &b);
            !early && now(&mut a) == Some(key)
        };
        in_time(held, "the third completion raises it, however often it was armed");
    }
}

fn n12_arming_again_raises_what_is_held_back_if_it_raises_at_once<D: Device>() {
    let held = || {
        let (mut a, b) = moderated::<D>(100, LONG);
        let key = a.sent.key();
        arm(&mut a.sent, Notify::Next);
        for _ in 0..2 {
            a.post(SendWr::write_inline(1, b"x", b.remote(0)));
        }
        // The other one is there by now, or comes without an event.
        wait_for("one completes", || a.sent.poll_into(&mut [Wc::default()]) == Ok(1));
        let early = now(&mut a).is_some();
        arm(&mut a.sent, Notify::Next);
        let raised = now(&mut a) == Some(key);
        !early && raised == a.device.raises_when_armed() && now(&mut a).is_none()
    };
    in_time(held, "arming raises the event or leaves it delayed");
}

fn n12_a_stronger_arm_goes_on_counting<D: Device>() {
    let held = || {
        let (mut a, mut b) = with_channels::<D>();
        offered(b.received.moderate(3, LONG));
        let key = b.received.key();
        arm(&mut b.received, Notify::Solicited);
        let mut receive = |b: &mut End<D>, solicited: bool| {
            b.recv(1, 0, 8);
            let wr = SendWr::send_inline(1, b"x").unsignaled();
            a.post(if solicited { wr.solicited() } else { wr });
            wait_for("it arrives", || !take(&mut b.received).is_empty());
            now(b)
        };
        let before = [receive(&mut b, false), receive(&mut b, true)];
        arm(&mut b.received, Notify::Next);
        before == [None; 2]
            && receive(&mut b, false).is_none()
            && receive(&mut b, false) == Some(key)
    };
    in_time(held, "the solicited one and the two behind the stronger arm raise it");
}

fn n12_a_queue_that_is_not_armed_raises_nothing<D: Device>() {
    let (mut a, b) = moderated::<D>(2, 1);
    (0..5).for_each(|_| one(&mut a, &b));
    rest(&a.device);
    a.expect_no_event();
}

fn n12_polling_takes_nothing_back<D: Device>() {
    let (mut a, b) = moderated::<D>(4, 1000);
    let key = a.sent.key();
    arm(&mut a.sent, Notify::Next);
    one(&mut a, &b); // it polls, too
    a.expect_nothing();
    a.expect_event(key);
}

fn n12_a_change_raises_what_is_held_back<D: Device>() {
    for count in [0, 1, 50] {
        let raised = || {
            let (mut a, b) = moderated::<D>(100, LONG);
            let key = a.sent.key();
            arm(&mut a.sent, Notify::Next);
            offered(a.sent.moderate(99, LONG));
            let nothing_was = now(&mut a).is_none();
            one(&mut a, &b);
            let held = now(&mut a).is_none();
            offered(a.sent.moderate(count, LONG));
            nothing_was && held && now(&mut a) == Some(key)
        };
        in_time(raised, "a change raises it");
    }
}

fn n12_moderation_survives_resizing<D: Device>() {
    let held = || {
        let (mut a, b) = moderated::<D>(3, LONG);
        let key = a.sent.key();
        arm(&mut a.sent, Notify::Next);
        one(&mut a, &b);
        a.sent.resize(32).unwrap();
        one(&mut a, &b);
        let early = now(&mut a).is_some();
        one(&mut a, &b);
        !early && now(&mut a) == Some(key)
    };
    in_time(held, "the third completion raises it");
}
