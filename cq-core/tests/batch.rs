//! Several completions pushed at once by the one producer of a queue: which of them raise the event (N1, N3),
//! what is stored and what is counted (O3), which tags come back.
#![cfg(not(loom))]

use std::cell::Cell;

use cq_core::health::State;
use cq_core::ring::{Slot, Tail};
use cq_core::soft::{Consumer, Control, Entry, Overrun, Parts, Producer, Tag};
use cq_core::transport::{Arm, Armed, CqKey, Notify, Poll, PollError, Signal};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 3, generation: 9 };
const STORAGE: usize = 4;

/// A channel that counts its events.
#[derive(Default)]
struct Channel(Cell<u32>);

impl Channel {
    fn take(&self) -> u32 {
        self.0.take()
    }
}

impl Signal for Channel {
    fn raise(&self, cq: CqKey) {
        assert_eq!(cq, KEY);
        self.0.set(self.0.get() + 1);
    }
}

/// The two sides of a queue with events, and the queue's state.
struct Sides<'a> {
    producer: Producer<'a, &'a Channel>,
    consumer: Consumer<'a>,
    control: &'a Control,
    channel: &'a Channel,
}

impl Sides<'_> {
    fn arm(&mut self, on: Notify) {
        let _ = self.consumer.arm(on).unwrap();
    }

    /// Polls everything: numbers and tags.
    fn drain(&mut self) -> Vec<(u64, u32)> {
        let mut got = Vec::new();
        let mut out = [Wc::default(); 2 * STORAGE];
        self.consumer.poll_with(&mut out, |wc, tag| got.push((wc.wr_id(), tag))).unwrap();
        got
    }
}

fn with_queue(test: impl FnOnce(Sides<'_>)) {
    let (control, channel) = (Control::new(), Channel::default());
    let slots = [const { Slot::new() }; STORAGE];
    let tags = [const { Tag::new() }; STORAGE];
    let parts = Parts::new(&control, &slots, &tags, STORAGE as u32).unwrap();
    test(Sides {
        producer: parts.producer(Tail::default(), KEY, Some(&channel)),
        consumer: parts.consumer(0, KEY, true),
        control: &control,
        channel: &channel,
    });
}

fn entry(number: u32) -> Entry {
    let wc = Wc::new(number.into(), WcStatus::SUCCESS, 1).with_opcode(WcOpcode::RECV);
    Entry { wc, tag: number + 100, solicited: false }
}

fn solicited(number: u32) -> Entry {
    Entry { solicited: true, ..entry(number) }
}

fn failed(number: u32) -> Entry {
    Entry { wc: Wc::new(number.into(), WcStatus::REM_OP_ERR, 1), ..entry(number) }
}

/// A successful send, which nobody waits for who armed for solicited completions, whatever its flag says.
fn send(number: u32) -> Entry {
    let wc = Wc::new(number.into(), WcStatus::SUCCESS, 1).with_opcode(WcOpcode::SEND);
    Entry { wc, ..solicited(number) }
}

/// Batches of three, and whether they raise an event for solicited completions.
fn batches() -> impl Iterator<Item = ([Entry; 3], u32)> {
    let urgent = [solicited, failed];
    let quiet = [[entry(0), entry(1), entry(2)], [send(0), send(1), send(2)]];
    let one = urgent.into_iter().flat_map(|urgent| {
        (0..3).map(move |nth| {
            let mut batch = [entry(0), send(1), entry(2)];
            batch[nth as usize] = urgent(nth);
            (batch, 1)
        })
    });
    quiet.into_iter().map(|batch| (batch, 0)).chain(one)
}

#[test]
fn n03_of_a_batch_any_entry_may_be_the_one_that_is_waited_for() {
    for (batch, events) in batches() {
        with_queue(|mut sides| {
            sides.arm(Notify::Solicited);
            sides.producer.push_batch(&batch).unwrap();
            assert_eq!(sides.channel.take(), events, "{batch:?}");
        });
    }
}

#[test]
fn n03_of_what_fits_any_entry_may_be_the_one_that_is_waited_for() {
    for (batch, events) in batches() {
        with_queue(|mut sides| {
            sides.arm(Notify::Solicited);
            assert_eq!(sides.producer.push_fitting(&batch), 3);
            assert_eq!(sides.channel.take(), events, "{batch:?}");
        });
    }
}

#[test]
fn n01_what_fits_raises_one_event_for_each_arm_and_none_without() {
    with_queue(|mut sides| {
        assert_eq!(sides.producer.push_fitting(&[solicited(0)]), 1);
        assert_eq!(sides.channel.take(), 0, "not armed");
        sides.arm(Notify::Next);
        assert_eq!(sides.producer.push_fitting(&[]), 0);
        assert_eq!(sides.channel.take(), 0, "nothing was added");
        assert_eq!(sides.producer.push_fitting(&[send(1)]), 1);
        assert_eq!(sides.channel.take(), 1, "any completion");
        assert_eq!(sides.producer.push_fitting(&[failed(2)]), 1);
        assert_eq!(sides.channel.take(), 0, "disarmed");
    });
}

#[test]
fn n03_what_raises_no_event_leaves_the_arm_in_force() {
    with_queue(|mut sides| {
        sides.arm(Notify::Solicited);
        assert_eq!(sides.producer.push_fitting(&[entry(0), send(1)]), 2);
        assert_eq!(sides.channel.take(), 0);
        assert_eq!(sides.producer.push_fitting(&[entry(2), failed(3)]), 2);
        assert_eq!(sides.channel.take(), 1);
    });
}

#[test]
fn n03_an_entry_that_does_not_fit_raises_nothing() {
    for urgent in [solicited, failed] {
        with_queue(|mut sides| {
            sides.arm(Notify::Solicited);
            let batch = [entry(0), entry(1), entry(2), entry(3), urgent(4)];
            assert_eq!(sides.producer.push_fitting(&batch), STORAGE);
            assert_eq!(sides.channel.take(), 0);
            assert_eq!(sides.drain().len(), STORAGE);
            assert_eq!(sides.producer.push_fitting(&batch[4..]), 1, "there is space again");
            assert_eq!(sides.channel.take(), 1, "still armed");
        });
    }
}

#[test]
fn n01_a_full_queue_to_which_nothing_was_added_raises_nothing() {
    with_queue(|mut sides| {
        assert_eq!(sides.producer.push_fitting(&[0, 1, 2, 3].map(entry)), STORAGE);
        sides.arm(Notify::Next);
        assert_eq!(sides.producer.push_fitting(&[failed(4)]), 0);
        assert_eq!(sides.channel.take(), 0);
        sides.drain();
        assert_eq!(sides.producer.push_fitting(&[entry(4)]), 1);
        assert_eq!(sides.channel.take(), 1);
    });
}

#[test]
fn o08_what_does_not_fit_is_no_overrun_and_what_comes_later_is_stored() {
    with_queue(|mut sides| {
        assert_eq!(sides.producer.push_fitting(&[0, 1, 2].map(entry)), 3);
        assert_eq!(sides.producer.push_fitting(&[3, 4, 5].map(entry)), 1);
        assert_eq!(sides.producer.push_fitting(&[6, 7].map(entry)), 0);
        assert_eq!(sides.control.state(), State::Running);
        assert_eq!(sides.drain(), [(0, 100), (1, 101), (2, 102), (3, 103)]);
        assert_eq!(sides.producer.push_fitting(&[8, 9].map(entry)), 2);
        assert_eq!(sides.drain(), [(8, 108), (9, 109)]);
        assert_eq!(sides.consumer.poll(&mut [Wc::default()]), Ok(0));
    });
}

#[test]
fn o03_after_an_overrun_nothing_fits() {
    with_queue(|mut sides| {
        sides.producer.push_batch(&[0, 1, 2, 3, 4].map(entry)).unwrap_err();
        sides.drain();
        assert_eq!(sides.producer.push_fitting(&[entry(5)]), 0);
        let overrun = Err(PollError::Overrun { dropped: Some(1) });
        assert_eq!(sides.consumer.poll(&mut [Wc::default()]), overrun, "nor is it counted");
    });
}

#[test]
fn o03_every_entry_that_is_dropped_counts() {
    with_queue(|mut sides| {
        let full = sides.producer.push_batch(&[0, 1, 2, 3, 4, 5, 6].map(entry));
        assert_eq!(full, Err(Overrun { dropped: 1 }));
        assert_eq!(sides.control.state(), State::Overrun { dropped: 3 });
        let again = sides.producer.push_batch(&[7, 8].map(entry));
        assert_eq!(again, Err(Overrun { dropped: 4 }), "the first one of these");
        assert_eq!(sides.producer.push(&entry(9).wc), Err(Overrun { dropped: 6 }));
        assert_eq!(sides.drain(), [(0, 100), (1, 101), (2, 102), (3, 103)]);
    });
}

#[test]
fn o05_a_drop_after_the_overrun_wakes_a_consumer_that_armed_meanwhile() {
    with_queue(|mut sides| {
        sides.producer.push_batch(&[0, 1, 2, 3, 4].map(send)).unwrap_err();
        assert_eq!(sides.channel.take(), 0, "not armed");
        assert_eq!(sides.consumer.arm(Notify::Solicited), Ok(Armed::MayHaveMissed));
        sides.producer.push_batch(&[5, 6].map(send)).unwrap_err();
        assert_eq!(sides.channel.take(), 1);
    });
}

#[test]
fn n03_a_completion_that_is_pushed_plainly_has_no_tag_and_is_not_solicited() {
    with_queue(|mut sides| {
        for round in 0..2 {
            (0..4).for_each(|number| {
                sides.producer.push_with(&entry(number).wc, number + 100, false).unwrap();
            });
            assert_eq!(sides.drain().len(), STORAGE, "round {round}");
        }
        sides.arm(Notify::Solicited);
        sides.producer.push(&entry(5).wc).unwrap();
        assert_eq!(sides.channel.take(), 0);
        assert_eq!(sides.drain(), [(5, 0)], "the tag that the slot had before is gone");
    });
}

#[test]
fn o01_a_producer_knows_its_storage_and_how_much_it_has_pushed() {
    with_queue(|mut sides| {
        assert_eq!(sides.producer.storage(), STORAGE);
        assert_eq!(sides.producer.push_fitting(&[0, 1, 2].map(entry)), 3);
        assert_eq!(sides.producer.tail().position(), 3);
        assert_eq!(sides.consumer.position(), 0);
        sides.drain();
        assert_eq!(sides.consumer.position(), 3);
    });
}

#[test]
fn n01_a_batch_of_none_raises_nothing() {
    with_queue(|mut sides| {
        sides.arm(Notify::Next);
        assert_eq!(sides.producer.push_batch(&[]), Ok(()));
        assert_eq!(sides.channel.take(), 0);
        sides.producer.push_batch(&[entry(1)]).unwrap();
        assert_eq!(sides.channel.take(), 1, "it is still armed");
    });
}
