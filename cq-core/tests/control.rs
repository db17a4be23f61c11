//! What the two sides of a queue share besides the slots, piece by piece: arm word, health, control, and the
//! parts that sides are made of (N1, N3, N4, O1, O3).
#![cfg(not(loom))]

use std::cell::Cell;

use cq_core::health::{Health, State};
use cq_core::notify::ArmWord;
use cq_core::ring::{CapacityError, Position, Slot, Tail};
use cq_core::soft::{Alerts, Consumer, Control, Overrun, Parts, Producer, SoftCq, Tag};
use cq_core::transport::{Arm, Armed, CqKey, NoSignal, Notify, Poll, PollError, Signal};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 3, generation: 9 };

fn recv(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV)
}

fn send(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1).with_opcode(WcOpcode::SEND)
}

/// A channel that counts its events.
#[derive(Default)]
struct Channel(Cell<u32>);

impl Signal for Channel {
    fn raise(&self, cq: CqKey) {
        assert_eq!(cq, KEY);
        self.0.set(self.0.get() + 1);
    }
}

fn slots(count: usize) -> Vec<Slot> {
    (0..count).map(|_| Slot::new()).collect()
}

fn tags(count: usize) -> Vec<Tag> {
    (0..count).map(|_| Tag::new()).collect()
}

fn producer<'a>(parts: Parts<'a>) -> Producer<'a> {
    parts.producer::<NoSignal>(Tail::default(), KEY, None)
}

fn push(producer: &mut Producer<'_>, count: u64) {
    (0..count).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
}

fn poll(consumer: &mut Consumer<'_>, most: usize) -> Result<usize, PollError> {
    consumer.poll(&mut vec![Wc::default(); most])
}

/// What the word fires for, in order: nothing urgent, then something urgent, then that again.
fn fires(word: &ArmWord) -> [bool; 3] {
    [false, true, true].map(|urgent| {
        let fired = Cell::new(false);
        word.fire(urgent, || fired.set(true));
        fired.get()
    })
}

#[test]
fn n01_n03_n04_the_arm_word_goes_by_the_strongest_arm_and_fires_once() {
    let (next, solicited) = (Notify::Next, Notify::Solicited);
    assert!(solicited < next, "the stronger arm is the greater one");
    let cases: [(&[Notify], _); 6] = [
        (&[], [false, false, false]),
        (&[next], [true, false, false]),
        (&[solicited], [false, true, false]),
        (&[solicited, solicited], [false, true, false]),
        (&[solicited, next], [true, false, false]),
        (&[next, solicited], [true, false, false]),
    ];
    for (arms, fired) in cases {
        let word = ArmWord::new();
        arms.iter().for_each(|on| word.arm(*on));
        assert_eq!(fires(&word), fired, "{arms:?}");
    }
}

#[test]
fn n12_an_event_that_is_held_back_leaves_the_arm_in_force() {
    for on in [Notify::Next, Notify::Solicited] {
        let word = ArmWord::new();
        word.arm(on);
        for _ in 0..2 {
            let asked = Cell::new(None);
            let holds = |armed| {
                asked.set(Some(armed));
                true
            };
            word.fire_unless(true, holds, || panic!("it was held back"));
            assert_eq!(asked.get(), Some(on), "holding back depends on what was armed for");
        }
        assert_eq!(fires(&word), [on == Notify::Next, on == Notify::Solicited, false]);
    }
}

#[test]
fn n12_nothing_is_held_back_that_the_consumer_did_not_ask_for() {
    let not_asked = |_| panic!("there is no event to hold back");
    let word = ArmWord::new();
    word.fire_unless(true, not_asked, || panic!("not armed"));
    word.arm(Notify::Solicited);
    word.fire_unless(false, not_asked, || panic!("not urgent"));
}

#[test]
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
fn n01_n03_one_producer_among_several_fires_as_a_single_one_does() {
    let (next, solicited) = (Notify::Next, Notify::Solicited);
    for (arm, urgent, fired) in [
        (None, true, [false, false]),
        (Some(next), false, [true, false]),
        (Some(solicited), false, [false, false]),
        (Some(solicited), true, [true, false]),
    ] {
        let word = ArmWord::new();
        arm.into_iter().for_each(|on| word.arm(on));
        let got = [(); 2].map(|()| {
            let fired = Cell::new(false);
            let asked = || {
                assert_eq!(arm, Some(solicited), "asked only where it matters");
                urgent
            };
            word.fire_shared(asked, || fired.set(true));
            fired.get()
        });
        assert_eq!(got, fired, "{arm:?}, urgent {urgent}");
    }
}

#[test]
fn n04_the_arm_word_holds_the_numbers_that_its_documentation_lists() {
    let word = ArmWord::new();
    let shows = |number: u32| assert_eq!(format!("{word:?}"), format!("ArmWord({number})"));
    shows(0);
    word.arm(Notify::Solicited);
    shows(1);
    word.arm(Notify::Next);
    shows(2);
    word.fire(false, || ());
    shows(0);
}

/// An arm word whose memory holds this number.
fn foreign(word: u32) -> ArmWord {
    // SAFETY: the type is transparent over an atomic integer, and any number in it is a state.
    unsafe { core::mem::transmute(word) }
}

#[test]
fn n04_any_other_number_in_the_arm_word_is_an_arm_for_any_completion() {
    for number in [2, 3, 7, u32::MAX] {
        for arms in [&[][..], &[Notify::Solicited], &[Notify::Next]] {
            let word = foreign(number);
            arms.iter().for_each(|on| word.arm(*on));
            assert_eq!(fires(&word), [true, false, false], "{number}, {arms:?}");
        }
    }
}

#[test]
fn o03_the_count_of_dropped_completions_saturates() {
    let health = Health::new();
    assert_eq!(health.state(), State::Running);
    // SAFETY: the type is transparent over an atomic integer, and any number in it is a state.
    let health: Health = unsafe { core::mem::transmute(u32::MAX - 1) };
    assert_eq!(health.state(), State::Overrun { dropped: u32::MAX - 1 });
    assert_eq!([(); 3].map(|()| health.drop_one()), [u32::MAX; 3]);
    assert_eq!(health.state(), State::Overrun { dropped: u32::MAX });
}

#[test]
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
fn o03_several_dropped_at_once_are_counted_and_saturate() {
    let health = Health::new();
    assert_eq!(health.drop_several(3), 3);
    assert_eq!(health.drop_several(4), 7);
    assert_eq!(health.state(), State::Overrun { dropped: 7 });
    assert_eq!(health.drop_several(u32::MAX - 7), u32::MAX);
    assert_eq!(health.drop_several(5), u32::MAX);
    assert_eq!(health.state(), State::Overrun { dropped: u32::MAX });
}

#[test]
fn o03_a_queue_that_was_given_up_hands_out_what_it_stores_and_then_fails() {
    let (control, slots) = (Control::new(), slots(4));
    let parts = Parts::new(&control, &slots, &[], 4).unwrap();
    let mut consumer = parts.consumer(0, KEY, true);
    push(&mut producer(parts), 2);
    assert_eq!(parts.control().state(), State::Running);
    parts.control().fail();
    assert_eq!(control.state(), State::Overrun { dropped: 1 });
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(poll(&mut consumer, 1), Ok(1));
    assert_eq!(poll(&mut consumer, 4), Ok(1));
    for _ in 0..2 {
        let failed = Err(PollError::Overrun { dropped: Some(1) });
        assert_eq!(poll(&mut consumer, 4), failed);
        assert_eq!(poll(&mut consumer, 0), Ok(0), "P6");
    }
}

#[test]
fn n12_a_producer_without_a_signal_notifies_through_the_control() {
    let (control, slots) = (Control::new(), slots(4));
    let parts = Parts::new(&control, &slots, &[], 4).unwrap();
    let mut consumer = parts.consumer(0, KEY, true);
    let raised = Cell::new(0);
    let notify = |urgent, holds: bool| {
        control.notify_unless(urgent, |_| holds, || raised.set(raised.get() + 1));
        raised.take()
    };
    assert_eq!(notify(true, false), 0, "not armed");
    assert_eq!(consumer.arm(Notify::Solicited), Ok(Armed::Armed));
    push(&mut producer(parts), 1);
    assert_eq!(notify(false, false), 0, "not what the consumer waits for");
    assert_eq!(notify(true, true), 0, "held back");
    assert_eq!(notify(true, false), 1);
    assert_eq!(notify(true, false), 0, "disarmed");
}

#[test]
fn q12_a_queue_that_adopts_another_takes_over_its_arm_and_its_health_and_nothing_else() {
    let (old, new, slots) = (Control::new(), Control::new(), slots(4));
    let parts = |control| Parts::new(control, &slots, &[], 4).unwrap();
    let mut consumer = parts(&old).consumer(0, KEY, true);
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
    new.adopt(&old);
    assert_eq!(new.state(), State::Running);
    let (channel, raised) = (Channel::default(), Cell::new(false));
    parts(&new).producer(Tail::default(), KEY, Some(&channel)).push(&send(0)).unwrap();
    assert_eq!(channel.0.get(), 1, "armed, as the old one was");
    old.notify_unless(false, |_| false, || raised.set(true));
    assert!(raised.get(), "the old one's arm is not taken away");

    old.fail();
    new.adopt(&old);
    assert_eq!(new.state(), State::Overrun { dropped: 1 });
}

#[test]
fn o01_slots_come_back_as_late_as_the_promise_allows_but_no_later_than_a_quarter_of_the_ring() {
    for (storage, promised, lag) in [(16, 16, 0), (16, 14, 2), (16, 12, 4), (16, 8, 4), (16, 1, 4)]
    {
        let (control, slots) = (Control::new(), slots(storage));
        let parts = Parts::new(&control, &slots, &[], promised).unwrap();
        let (mut producer, mut consumer) = (producer(parts), parts.consumer(0, KEY, false));
        push(&mut producer, storage as u64);
        let fits = |producer: &mut Producer<'_>| {
            producer.push_fitting(&[cq_core::soft::Entry::default()]) == 1
        };
        for polled in 1..=lag {
            assert_eq!(poll(&mut consumer, 1), Ok(1));
            assert!(!fits(&mut producer), "{promised} of {storage}: back after {polled}");
        }
        assert_eq!(poll(&mut consumer, 1), Ok(1));
        let back = (0..).take_while(|_| fits(&mut producer)).count();
        assert_eq!(back, lag + 1, "{promised} of {storage}: all at once");
    }
}

#[test]
fn o01_a_promise_is_at_most_what_can_be_stored() {
    let (control, slots, tags) = (Control::new(), slots(4), tags(8));
    let parts = |tags, promised| Parts::new(&control, &slots, tags, promised).map(|_| ());
    assert_eq!(parts(&tags[..4], 4), Ok(()));
    let refused = CapacityError::MoreThanStorage { promised: 5, storage: 4 };
    assert_eq!(parts(&tags[..4], 5), Err(refused));
    for count in [3, 5] {
        let refused = CapacityError::TagsDiffer { tags: count, slots: 4 };
        assert_eq!(parts(&tags[..count], 4), Err(refused));
    }
}

#[test]
fn tags_keep_to_their_entries_in_batches_of_any_length() {
    const STORAGE: usize = 128;
    let (control, slots, tags) = (Control::new(), slots(STORAGE), tags(STORAGE));
    let parts = Parts::new(&control, &slots, &tags, STORAGE as u32).unwrap();
    let (mut producer, mut consumer) = (producer(parts), parts.consumer(0, KEY, false));
    let (mut pushed, mut polled) = (0, 0);
    for length in [1, 2, 31, 32, 33, 63, 64, 65, 100, 128] {
        for _ in 0..length {
            producer.push_with(&send(pushed), pushed as u32 ^ 0xf0f0, false).unwrap();
            pushed += 1;
        }
        let mut out = vec![Wc::default(); length];
        let count = consumer.poll_with(&mut out, |wc, tag| {
            assert_eq!((wc.wr_id(), tag), (polled, polled as u32 ^ 0xf0f0));
            polled += 1;
        });
        assert_eq!((count, polled), (Ok(length), pushed));
        assert_eq!(out.last().map(Wc::wr_id), Some(pushed - 1));
    }
}

#[test]
fn tags_are_handed_out_where_they_matter_before_and_after_the_overrun() {
    let (control, slots, tags) = (Control::new(), slots(4), tags(4));
    let parts = Parts::new(&control, &slots, &tags, 4).unwrap();
    let (mut producer, mut consumer) = (producer(parts), parts.consumer(0, KEY, false));
    for number in 0..4 {
        let wc = if number % 2 == 0 { recv(number) } else { send(number) };
        producer.push_with(&wc, number as u32 + 10, false).unwrap();
    }
    assert_eq!(producer.push(&send(4)), Err(Overrun { dropped: 1 }));
    let matter = |wc: &Wc| wc.result().is_ok_and(|done| done.is_recv());
    for (most, expected) in [(1, &[(0, 10)][..]), (4, &[(1, 0), (2, 12), (3, 0)])] {
        let mut got = Vec::new();
        let mut out = vec![Wc::default(); most];
        let count = consumer.poll_for(&mut out, matter, |wc, tag| got.push((wc.wr_id(), tag)));
        assert_eq!((count, &got[..]), (Ok(expected.len()), expected));
    }
    let error = Err(PollError::Overrun { dropped: Some(1) });
    assert_eq!(consumer.poll_for(&mut [Wc::default()], matter, |_, _| panic!("empty")), error);
}

#[test]
fn p01_another_consumer_and_producer_go_on_where_the_last_ones_stopped() {
    let (control, slots) = (Control::new(), slots(4));
    let parts = Parts::new(&control, &slots, &[], 4).unwrap();
    let (mut tail, mut position): (_, Position) = (Tail::default(), 0);
    for round in 0..20 {
        let mut producer = parts.producer::<NoSignal>(tail, KEY, None);
        push(&mut producer, 3);
        tail = producer.tail();
        for _ in 0..3 {
            let mut consumer = parts.consumer(position, KEY, false);
            assert_eq!(poll(&mut consumer, 1), Ok(1), "round {round}");
            position = consumer.position();
        }
        assert_eq!((tail.position(), position), (3 * (round + 1), 3 * (round + 1)));
    }
}

#[test]
fn n08_events_carry_the_name_that_the_queue_was_given() {
    let mut storage = SoftCq::<2>::new();
    assert_eq!(storage.capacity(), 2);
    let (_, consumer) = storage.split_with(KEY, Channel::default());
    assert_eq!(consumer.key(), KEY);
    let (_, consumer) = storage.split();
    assert_eq!(consumer.key(), CqKey { index: 0, generation: 0 });
}

/// What a new one prints, which is to be what a default one does, with no number in it but 0.
fn zeros<T: Default + std::fmt::Debug>(new: T) {
    let (new, default) = (format!("{new:?}"), format!("{:?}", T::default()));
    assert_eq!(new, default);
    assert!(!new.contains(|digit| ('1'..='9').contains(&digit)), "{new}");
}

#[test]
fn zeros_are_a_new_queue() {
    zeros(Slot::new());
    zeros(Tag::new());
    zeros(ArmWord::new());
    zeros(Health::new());
    zeros(Alerts::new());
    zeros(Control::new());
    zeros(cq_core::ring::Head::new());
    zeros(SoftCq::<2>::new());
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    zeros(cq_core::ring::Gate::new());
}
