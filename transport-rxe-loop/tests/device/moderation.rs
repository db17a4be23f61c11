//! Events that are held back, beyond what the conformance suite asks: N7, N11, N12. An event that came early is told
//! from one whose period was over by a clock.

use std::time::{Duration, Instant};

use crate::common::events::{expect_event, expect_no_event};
use crate::common::{CAPS, End, connect, open, take, wait_for};
use cq_core::transport::{Arm, ArmError, Block, Events, Notify, Post, Woken};
use cq_core::wr::SendWr;
use transport_rxe_loop::{CompletionChannel, QpInit};

/// The longest period, in microseconds.
const LONG: u16 = u16::MAX;

/// Long enough for whatever is to come.
const LIMIT: Duration = Duration::from_secs(30);

/// A pair whose second end has a channel, and a completion queue that is moderated.
fn pair(count: u16, period: u16) -> (End, End, CompletionChannel) {
    let channel = open().create_channel().unwrap();
    let (mut a, mut b) = (End::new(), on(&channel, count, period));
    connect(&mut a, &mut b);
    (a, b, channel)
}

fn on(channel: &CompletionChannel, count: u16, period: u16) -> End {
    let mut end = End::new();
    let mut cq = open().create_cq(64, Some(channel)).unwrap();
    cq.moderate(count, period).unwrap();
    end.qp = end.pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
    end.cq = cq;
    end
}

fn message(a: &mut End, b: &mut End) {
    b.recv(1, 0, 64);
    a.qp.post_send(&[SendWr::send_inline(2, b"x")]).unwrap();
    take(&mut a.cq);
}

/// Sleeps until an event comes.
#[track_caller]
fn sleep_for_event(channel: &mut CompletionChannel, end: &End) {
    assert_eq!(channel.block(Some(Instant::now() + LIMIT)), Ok(Woken::Event), "slept for ever");
    expect_event(channel, end);
}

#[test]
fn n12_it_waits_no_longer_than_the_period() {
    for period in [1, 1_000, LONG] {
        let (mut a, mut b, mut channel) = pair(u16::MAX, period);
        for _ in 0..3 {
            let start = Instant::now();
            let _ = b.cq.arm(Notify::Next);
            message(&mut a, &mut b);
            sleep_for_event(&mut channel, &b);
            assert!(start.elapsed() >= Duration::from_micros(period.into()), "nothing held it");
            expect_no_event(&mut channel);
            assert_eq!(take(&mut b.cq).len(), 1);
        }
    }
}

#[test]
fn n12_what_is_posted_together_counts_together() {
    let (mut a, mut b, mut channel) = pair(4, LONG);
    (0..6).for_each(|wr_id| b.recv(wr_id, 0, 8));
    let _ = b.cq.arm(Notify::Next);
    let list: Vec<_> = (0..6).map(|wr_id| SendWr::send_inline(wr_id, b"x")).collect();
    a.qp.post_send(&list).unwrap();
    expect_event(&mut channel, &b);
    expect_no_event(&mut channel);
    assert_eq!(take(&mut b.cq).len(), 6);
}

#[test]
fn n12_a_change_to_no_moderation_raises_what_is_held_back() {
    for count in [0, 1] {
        let (mut a, mut b, mut channel) = pair(u16::MAX, LONG);
        let _ = b.cq.arm(Notify::Next);
        message(&mut a, &mut b);
        b.cq.moderate(count, 0).unwrap();
        expect_event(&mut channel, &b);
        b.cq.moderate(1, 0).unwrap();
        expect_no_event(&mut channel);
        let _ = b.cq.arm(Notify::Next);
        message(&mut a, &mut b);
        expect_event(&mut channel, &b);
    }
}

#[test]
fn n12_a_change_of_a_queue_that_holds_nothing_back_raises_nothing() {
    let (_a, mut b, mut channel) = pair(9, LONG);
    let _ = b.cq.arm(Notify::Next);
    b.cq.moderate(3, 7).unwrap();
    b.cq.moderate(1, 0).unwrap();
    expect_no_event(&mut channel);
}

#[test]
fn n07_an_event_that_is_held_back_goes_with_its_queue() {
    let (mut a, mut b, mut channel) = pair(u16::MAX, 1_000);
    let mut later = on(&channel, u16::MAX, 5_000);
    let itself = later.qp.number();
    later.qp.connect_to(itself).unwrap();
    let _ = b.cq.arm(Notify::Next);
    message(&mut a, &mut b);
    let End { qp, cq, .. } = b;
    qp.destroy();
    cq.destroy().unwrap();
    // This one is due after the other one would have been. It takes the same place, if there is no other.
    let _ = later.cq.arm(Notify::Next);
    later.qp.post_send(&[SendWr::write_inline(1, b"", later.region.remote(0).unwrap())]).unwrap();
    // The first event was due before it went, if the machine was slow.
    wait_for(|| channel.take_event().unwrap() == Some(later.cq.key()));
    expect_no_event(&mut channel);
}

#[test]
fn n11_a_queue_without_a_channel_takes_any_moderation() {
    let mut cq = open().create_cq(4, None).unwrap();
    let limits = open().attributes();
    assert_eq!(cq.moderate(limits.max_cq_count, limits.max_cq_period), Ok(()));
    assert_eq!(cq.arm(Notify::Next), Err(ArmError::NoChannel));
}

#[test]
fn n12_queues_are_moderated_apart() {
    let (mut a, mut b, mut channel) = pair(u16::MAX, LONG);
    let (mut c, mut d) = (End::new(), on(&channel, 1, 0));
    connect(&mut c, &mut d);
    let _ = (b.cq.arm(Notify::Next), d.cq.arm(Notify::Next));
    message(&mut a, &mut b);
    message(&mut c, &mut d);
    let mut named = Vec::new();
    wait_for(|| {
        named.extend(channel.take_event().unwrap());
        named.len() == 2
    });
    named.sort_by_key(|key| *key != d.cq.key());
    assert_eq!(named, [d.cq.key(), b.cq.key()]);
}
