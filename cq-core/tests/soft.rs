//! The software completion queue: overrun and notification, one thread (O1, O3, O5, N1–N4, N11, P6).
#![cfg(not(loom))]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cq_core::health::State;
use cq_core::ring::{CapacityError, Position, Slot, Tail};
use cq_core::soft::{Consumer, Control, Parts, Producer, SoftCq, Tag};
use cq_core::transport::{Arm, ArmError, Armed, CqKey, NoSignal, Notify, Poll, PollError, Signal};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 3, generation: 9 };

/// Keeps the keys that were raised.
#[derive(Default)]
struct Raised(RefCell<Vec<CqKey>>);

impl Raised {
    fn take(&self) -> usize {
        let keys = self.0.take();
        assert!(keys.iter().all(|key| *key == KEY));
        keys.len()
    }
}

impl Signal for Raised {
    fn raise(&self, cq: CqKey) {
        self.0.borrow_mut().push(cq);
    }
}

fn recv(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV)
}

fn send(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::SEND)
}

fn failed(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::REM_ACCESS_ERR, 1)
}

/// A queue of four with events, for `test`.
fn with_events(test: impl FnOnce(Producer<'_, &Raised>, Consumer<'_>, &Raised)) {
    let (mut storage, raised) = (SoftCq::<4>::new(), Raised::default());
    let (producer, consumer) = storage.split_with(KEY, &raised);
    test(producer, consumer, &raised);
}

fn drain(consumer: &mut Consumer<'_>) -> Result<Vec<u64>, PollError> {
    let mut out = [Wc::default(); 16];
    let count = consumer.poll(&mut out)?;
    Ok(out[..count].iter().map(Wc::wr_id).collect())
}

#[test]
fn o01_capacity_unpolled_is_no_overrun_and_o03_one_more_is() {
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split();
    assert_eq!(consumer.capacity(), 4);
    (0..4).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
    assert_eq!(producer.push(&send(4)).unwrap_err().dropped, 1);
    assert_eq!(producer.push(&send(5)).unwrap_err().dropped, 2);
    assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
    assert_eq!(
        producer.push(&send(6)).unwrap_err().dropped,
        3,
        "for ever, though there is room now"
    );
    for _ in 0..3 {
        assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(3) }));
    }
}

#[test]
fn o01_slack_never_hastens_the_overrun() {
    for promised in 1..=16_u32 {
        let slots: Vec<_> = (0..16).map(|_| Slot::new()).collect();
        let tags: Vec<_> = (0..16).map(|_| Tag::new()).collect();
        let control = Control::new();
        let parts = Parts::new(&control, &slots, &tags, promised).unwrap();
        let mut producer = parts.producer::<NoSignal>(Tail::default(), KEY, None);
        let mut consumer = parts.consumer(0, KEY, false);
        assert_eq!(consumer.capacity(), promised);
        // Wherever the consumer has stopped, what was promised fits.
        for polled in 0..50 {
            (0..promised).for_each(|wr_id| producer.push(&send(wr_id.into())).unwrap());
            let mut out = vec![Wc::default(); promised as usize];
            assert_eq!(consumer.poll(&mut out), Ok(promised as usize), "round {polled}");
        }
        let stored = (0..99).take_while(|wr_id| producer.push(&send(*wr_id)).is_ok()).count();
        assert!((promised as usize..=16).contains(&stored), "{promised} promised, {stored} stored");
    }
}

#[test]
fn o03_entries_before_the_overrun_come_in_any_batch_size() {
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split();
    let _ = (0..9).map(|wr_id| producer.push(&send(wr_id))).filter(Result::is_err).count();
    let mut one = [Wc::default()];
    for wr_id in 0..4 {
        assert_eq!(consumer.poll(&mut one), Ok(1));
        assert_eq!(one[0].wr_id(), wr_id);
    }
    assert_eq!(consumer.poll(&mut one), Err(PollError::Overrun { dropped: Some(5) }));
    assert_eq!(consumer.poll(&mut []), Ok(0), "P6");
    assert_eq!(consumer.poll_with(&mut [], |_, _| ()), Ok(0), "P6");
}

#[test]
fn o05_the_overrun_wakes_a_sleeper_of_either_kind() {
    for on in [Notify::Next, Notify::Solicited] {
        let (mut storage, raised) = (SoftCq::<1>::new(), Raised::default());
        let (mut producer, mut consumer) = storage.split_with(KEY, &raised);
        producer.push(&send(0)).unwrap();
        let _ = consumer.arm(on).unwrap();
        assert!(producer.push(&send(1)).is_err());
        assert_eq!(raised.take(), 1, "{on:?}");
        assert_eq!(consumer.arm(on), Ok(Armed::MayHaveMissed));
        assert_eq!(drain(&mut consumer), Ok(vec![0]));
        assert_eq!(consumer.arm(on), Ok(Armed::MayHaveMissed), "so that the next poll tells");
        assert!(drain(&mut consumer).is_err());
    }
}

#[test]
fn n01_one_event_for_each_arm_and_none_without() {
    with_events(|mut producer, mut consumer, raised| {
        producer.push(&send(0)).unwrap();
        assert_eq!(raised.take(), 0, "not armed");
        drain(&mut consumer).unwrap();
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
        producer.push(&send(1)).unwrap();
        producer.push(&send(2)).unwrap();
        assert_eq!(raised.take(), 1, "however often it was armed");
    });
}

#[test]
fn n02_arming_over_completions_raises_nothing_and_says_so() {
    with_events(|mut producer, mut consumer, raised| {
        producer.push(&send(0)).unwrap();
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        assert_eq!(raised.take(), 0);
        producer.push(&send(1)).unwrap();
        assert_eq!(raised.take(), 1, "the arm holds all the same");
    });
}

#[test]
fn n03_solicited_means_solicited_receives_and_failures() {
    for (wc, solicited, expected) in [
        (recv(0), false, 0),
        (recv(0), true, 1),
        (send(0), false, 0),
        (send(0), true, 0),
        (failed(0), false, 1),
    ] {
        with_events(|mut producer, mut consumer, raised| {
            let _ = consumer.arm(Notify::Solicited).unwrap();
            producer.push_with(&wc, 0, solicited).unwrap();
            assert_eq!(raised.take(), expected, "{wc:?}, solicited {solicited}");
        });
    }
}

#[test]
fn n04_arming_never_weakens_and_does_upgrade() {
    for order in [[Notify::Next, Notify::Solicited], [Notify::Solicited, Notify::Next]] {
        with_events(|mut producer, mut consumer, raised| {
            for on in order {
                let _ = consumer.arm(on).unwrap();
            }
            producer.push(&send(0)).unwrap();
            assert_eq!(raised.take(), 1, "{order:?}");
        });
    }
}

#[test]
fn p02_what_was_polled_is_gone_and_p03_empty_is_no_error() {
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split();
    let nothing = |_: &Wc, _| panic!("there is nothing");
    for out in [&mut [][..], &mut [Wc::default()], &mut [Wc::default(); 3]] {
        assert_eq!(consumer.poll(out), Ok(0));
        assert_eq!(consumer.poll_with(out, nothing), Ok(0));
    }
    producer.push(&send(1)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![1]));
    assert_eq!(drain(&mut consumer), Ok(vec![]));
}

#[test]
fn n11_arming_without_a_channel_is_an_error() {
    let mut storage = SoftCq::<4>::new();
    let (_producer, mut consumer) = storage.split();
    assert_eq!(consumer.arm(Notify::Next), Err(ArmError::NoChannel));
}

#[test]
fn tags_come_back_with_their_entries_where_there_are_tags() {
    let slots: Vec<_> = (0..2).map(|_| Slot::new()).collect();
    let tags: Vec<_> = (0..2).map(|_| Tag::new()).collect();
    for tags in [&tags[..], &[]] {
        let control = Control::new();
        let parts = Parts::new(&control, &slots, tags, 2).unwrap();
        // The second queue goes on in the slots that the first one has used.
        let start = if tags.is_empty() { 100 } else { 0 };
        let mut producer = parts.producer::<NoSignal>(Tail::at(start), KEY, None);
        let mut consumer = parts.consumer(start, KEY, false);
        for number in 0..100_u32 {
            producer.push_with(&send(number.into()), number ^ 0xF0F0, false).unwrap();
            let mut got = Vec::new();
            let mut out = [Wc::default(); 2];
            assert_eq!(consumer.poll_with(&mut out, |wc, tag| got.push((wc.wr_id(), tag))), Ok(1));
            let expected = if tags.is_empty() { 0 } else { number ^ 0xF0F0 };
            assert_eq!(got, [(number.into(), expected)]);
        }
    }
}

#[test]
fn splitting_again_starts_afresh() {
    let (mut storage, raised) = (SoftCq::<2>::new(), Raised::default());
    let (mut producer, mut consumer) = storage.split_with(KEY, &raised);
    let _ = (0..5).map(|wr_id| producer.push(&send(wr_id))).filter(Result::is_err).count();
    drain(&mut consumer).unwrap();
    let _ = consumer.arm(Notify::Next).unwrap();
    let (mut producer, mut consumer) = storage.split_with(KEY, &raised);
    assert_eq!(drain(&mut consumer), Ok(vec![]));
    producer.push(&send(6)).unwrap();
    assert_eq!(raised.take(), 0, "not armed");
    assert_eq!(drain(&mut consumer), Ok(vec![6]));
    producer.push(&send(7)).unwrap();
    assert_eq!(drain(&mut consumer), Ok(vec![7]));
}

#[test]
fn p01_what_is_pushed_while_handing_out_leaves_no_gap() {
    let slots: Vec<_> = (0..256).map(|_| Slot::new()).collect();
    for before in [1, 31, 32, 33, 64, 65] {
        let control = Control::new();
        let parts = Parts::new(&control, &slots, &[], 256).unwrap();
        let start = 256 * before as Position;
        let mut producer = parts.producer::<NoSignal>(Tail::at(start), KEY, None);
        let mut consumer = parts.consumer(start, KEY, false);
        (0..before).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
        let (mut out, mut pushed, mut polled) = (vec![Wc::default(); 100], before, 0);
        while polled < 200 {
            let count = consumer.poll_with(&mut out, |_, _| {
                producer.push(&send(pushed)).unwrap();
                pushed += 1;
            });
            for wc in &out[..count.unwrap()] {
                assert_eq!(wc.wr_id(), polled, "{before} before");
                polled += 1;
            }
        }
    }
}

#[test]
fn debug_output_does_not_grow_with_the_queue() {
    let mut storage = SoftCq::<1024>::new();
    let sides = storage.split();
    assert!(format!("{sides:?}").len() < 2000);
}

#[test]
fn a_panic_while_handing_out_delivers_nothing_twice() {
    let mut storage = SoftCq::<4>::new();
    let (mut producer, mut consumer) = storage.split();
    (0..3).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
    let mut out = [Wc::default(); 2];
    let poll = AssertUnwindSafe(|| consumer.poll_with(&mut out, |_, _| panic!("as it should")));
    assert!(catch_unwind(poll).is_err());
    assert_eq!(drain(&mut consumer), Ok(vec![2]));
}

#[test]
fn impossible_storage_is_refused() {
    let slots: Vec<_> = (0..4).map(|_| Slot::new()).collect();
    let tags: Vec<_> = (0..4).map(|_| Tag::new()).collect();
    let control = Control::new();
    let refused = |slots, tags, promised| {
        Parts::new(&control, slots, tags, promised).map(|_| ()).unwrap_err()
    };
    assert_eq!(refused(&slots[..0], &tags[..0], 1), CapacityError::Zero);
    assert_eq!(refused(&slots[..3], &tags[..3], 1), CapacityError::NotPowerOfTwo(3));
    assert_eq!(refused(&slots, &tags, 0), CapacityError::Zero);
    assert_eq!(
        refused(&slots, &tags, u32::MAX),
        CapacityError::MoreThanStorage { promised: u32::MAX, storage: 4 }
    );
    assert_eq!(refused(&slots, &tags[1..], 4), CapacityError::TagsDiffer { tags: 3, slots: 4 });
    assert_eq!(control.state(), State::Running);
}

#[test]
fn a_replacement_takes_over_the_arm_and_the_overrun() {
    let slots: Vec<_> = (0..2).map(|_| Slot::new()).collect();
    let (old, new, raised) = (Control::new(), Control::new(), Raised::default());
    let parts = |control| Parts::new(control, &slots, &[], 2).unwrap();
    let _ = parts(&old).consumer(0, KEY, true).arm(Notify::Solicited).unwrap();
    new.adopt(&old);
    let mut producer = parts(&new).producer(Tail::default(), KEY, Some(&raised));
    producer.push(&send(0)).unwrap();
    assert_eq!(raised.take(), 0, "the arm was for solicited completions");
    producer.push(&failed(1)).unwrap();
    assert_eq!(raised.take(), 1);
    assert!(producer.push(&send(2)).is_err());
    let newer = Control::new();
    newer.adopt(&new);
    assert_eq!(newer.state(), State::Overrun { dropped: 1 });
}
