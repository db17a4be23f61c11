//! Events that are held back: N12, N13. Time is never waited for: an event that came early is told from one
//! whose period was over by a clock, and where the machine was too slow for that, it is tried again.

use std::time::{Duration, Instant};

use crate::common::events::{expect_event, expect_no_event, is_readable};
use crate::common::{CAPS, End, connect, open, take, wait_for};
use cq_core::transport::{Arm, ArmError, Armed, Block, Events, Notify, Post, Woken};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, QpAttr, QpInit, QpState};

/// The longest period, in microseconds, and as a time.
const LONG: u16 = u16::MAX;
const LONG_TIME: Duration = Duration::from_micros(LONG as u64);

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

fn message(a: &mut End, b: &mut End, solicited: bool) {
    b.recv(1, 0, 64);
    let wr = SendWr::send_inline(2, b"x");
    a.qp.post_send(&[if solicited { wr.solicited() } else { wr }]).unwrap();
    take(&mut a.cq);
}

/// Sleeps until an event comes.
#[track_caller]
fn sleep_for_event(channel: &mut CompletionChannel, end: &End) {
    assert_eq!(channel.block(Some(Instant::now() + LIMIT)), Ok(Woken::Event), "slept for ever");
    expect_event(channel, end);
}

/// Arms, and has completions come until there is an event, of which there is one; says at the how many-th, but
/// `None` where the period may have been over before.
fn until_event(
    (a, b, channel): &mut (End, End, CompletionChannel),
    on: Notify,
    mut next: impl FnMut(&mut End, &mut End, usize),
) -> Option<usize> {
    take(&mut b.cq);
    assert_eq!(b.cq.arm(on), Ok(Armed::Armed));
    let start = Instant::now();
    let mut came = 0;
    while !is_readable(channel) {
        assert!(came < 50, "completions came and came");
        came += 1;
        next(a, b, came);
    }
    expect_event(channel, b);
    expect_no_event(channel);
    (start.elapsed() < LONG_TIME).then_some(came)
}

/// Says at which completion the event comes of a queue that nothing holds back for its period.
#[track_caller]
fn counted(
    ends: &mut (End, End, CompletionChannel),
    on: Notify,
    mut next: impl FnMut(&mut End, &mut End, usize),
) -> usize {
    let mut counted = None;
    wait_for(|| {
        counted = until_event(ends, on, &mut next);
        counted.is_some()
    });
    counted.unwrap()
}

#[test]
fn n12_an_event_stands_for_as_many_completions_as_asked() {
    for count in [0, 1, 2, 4, 9] {
        let mut ends = pair(count, LONG);
        for _ in 0..3 {
            let came = counted(&mut ends, Notify::Next, |a, b, _| message(a, b, false));
            assert_eq!(came, usize::from(count.max(1)));
        }
    }
}

#[test]
fn n12_it_waits_no_longer_than_the_period() {
    for period in [1, 1_000, LONG] {
        let (mut a, mut b, mut channel) = pair(u16::MAX, period);
        for _ in 0..3 {
            let start = Instant::now();
            let _ = b.cq.arm(Notify::Next);
            message(&mut a, &mut b, false);
            sleep_for_event(&mut channel, &b);
            assert!(start.elapsed() >= Duration::from_micros(period.into()), "nothing held it");
            expect_no_event(&mut channel);
            assert_eq!(take(&mut b.cq).len(), 1);
        }
    }
}

#[test]
fn n12_no_period_is_not_for_ever() {
    let (mut a, mut b, mut channel) = pair(1_000, 0);
    let _ = b.cq.arm(Notify::Next);
    message(&mut a, &mut b, false);
    sleep_for_event(&mut channel, &b);
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
fn n12_a_failure_raises_at_once() {
    let mut ends = pair(u16::MAX, LONG);
    let came = counted(&mut ends, Notify::Next, |a, b, nth| {
        if nth == 1 {
            return message(a, b, false);
        }
        b.qp.modify(&QpAttr::to(QpState::Err)).unwrap();
        b.qp.post_recv(&[RecvWr::new(3, &[])]).unwrap();
        // As it was, for the next time.
        b.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
        a.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
        connect(a, b);
    });
    assert_eq!(came, 2);
}

#[test]
fn n12_only_what_was_armed_for_counts() {
    let mut ends = pair(2, LONG);
    let solicited = |nth: usize| nth.is_multiple_of(3);
    let came = counted(&mut ends, Notify::Solicited, |a, b, nth| message(a, b, solicited(nth)));
    assert_eq!(came, 6, "the third and the sixth are solicited");
}

#[test]
fn n12_polling_the_queue_empty_takes_nothing_back() {
    let (mut a, mut b, mut channel) = pair(u16::MAX, 1_000);
    let _ = b.cq.arm(Notify::Next);
    message(&mut a, &mut b, false);
    assert_eq!(take(&mut b.cq).len(), 1);
    sleep_for_event(&mut channel, &b);
    assert_eq!(take(&mut b.cq), []);
}

#[test]
fn n12_arming_again_meanwhile_asks_for_no_more() {
    let mut ends = pair(3, LONG);
    let came = counted(&mut ends, Notify::Next, |a, b, _| {
        message(a, b, false);
        take(&mut b.cq);
        let _ = b.cq.arm(Notify::Solicited);
    });
    assert_eq!(came, 3);
}

#[test]
fn n12_a_stronger_arm_goes_on_counting() {
    let mut ends = pair(3, LONG);
    let came = counted(&mut ends, Notify::Solicited, |a, b, nth| {
        message(a, b, nth == 2);
        if nth == 2 {
            let _ = b.cq.arm(Notify::Next);
        }
    });
    assert_eq!(came, 4, "the second, the third and the fourth");
}

#[test]
fn n13_a_change_raises_what_is_held_back() {
    for (count, period) in [(1, 0), (0, 0), (u16::MAX, LONG)] {
        let (mut a, mut b, mut channel) = pair(u16::MAX, LONG);
        let _ = b.cq.arm(Notify::Next);
        message(&mut a, &mut b, false);
        b.cq.moderate(count, period).unwrap();
        expect_event(&mut channel, &b);
        b.cq.moderate(1, 0).unwrap();
        expect_no_event(&mut channel);
        let _ = b.cq.arm(Notify::Next);
        message(&mut a, &mut b, false);
        expect_event(&mut channel, &b);
    }
}

#[test]
fn n13_a_change_of_a_queue_that_holds_nothing_back_raises_nothing() {
    let (_a, mut b, mut channel) = pair(9, LONG);
    let _ = b.cq.arm(Notify::Next);
    b.cq.moderate(3, 7).unwrap();
    b.cq.moderate(1, 0).unwrap();
    expect_no_event(&mut channel);
}

#[test]
fn n13_resizing_changes_nothing() {
    let mut ends = pair(4, LONG);
    let came = counted(&mut ends, Notify::Next, |a, b, nth| {
        message(a, b, false);
        let capacity = b.cq.capacity() + nth as u32;
        assert_eq!(b.cq.resize(capacity), Ok(capacity));
    });
    assert_eq!(came, 4);
}

#[test]
fn n07_an_event_that_is_held_back_goes_with_its_queue() {
    let (mut a, mut b, mut channel) = pair(u16::MAX, 1_000);
    let mut later = on(&channel, u16::MAX, 5_000);
    let itself = later.qp.number();
    later.qp.connect(itself).unwrap();
    let _ = b.cq.arm(Notify::Next);
    message(&mut a, &mut b, false);
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
    message(&mut a, &mut b, false);
    message(&mut c, &mut d, false);
    let mut named = Vec::new();
    wait_for(|| {
        named.extend(channel.take_event().unwrap());
        named.len() == 2
    });
    named.sort_by_key(|key| *key != d.cq.key());
    assert_eq!(named, [d.cq.key(), b.cq.key()]);
}
