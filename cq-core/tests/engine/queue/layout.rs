//! How a raw queue lies in memory that somebody else gave (N4, O3, C3).

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cq_core::queue::raw::{Layout, RawQueue, Slot, Tag};

use super::*;

const FOUR: Layout = Layout { slots: 4, tags: true, promised: 4 };
/// Where the arm is, and what the producers and the consumer know of the queue's end.
const ARM: usize = match cfg!(target_pointer_width = "64") {
    // On cache lines of their own, half of the control.
    true => size_of::<Control>() / 2 / size_of::<u32>(),
    false => size_of::<Position>() / size_of::<u32>(),
};
const PRODUCERS: usize = ARM + 1;
const CONSUMER: usize = ARM + 2;

/// Memory for a queue, and what lies in it.
#[repr(C, align(128))]
struct Memory([AtomicU32; 512]);

impl Memory {
    fn new(word: u32) -> Self {
        let memory = Self([const { AtomicU32::new(0) }; 512]);
        memory.0.iter().for_each(|at| at.store(word, Relaxed));
        memory
    }

    fn open(&self, layout: Layout) -> RawQueue<'_> {
        // SAFETY: the memory is borrowed for as long as the queue, its words are atomic, and the tests here store to those
        // alone that are 32 bits wide. Each test makes one producer and one consumer at a time.
        unsafe { RawQueue::new(NonNull::from(&self.0).cast(), size_of::<Self>(), layout) }.unwrap()
    }

    /// The sides of a queue of four with events.
    fn armable<'a>(&'a self, event_count: &'a EventCount) -> Armable<'a> {
        self.open(FOUR).into_sides(0, event_count, OnChannel::new(event_count))
    }

    fn word(&self, index: usize) -> u32 {
        self.0[index].load(Relaxed)
    }
}

fn refused(base: *mut u8, len: usize, layout: Layout) -> CapacityError {
    // SAFETY: refused before anything is read.
    unsafe { RawQueue::new(NonNull::new(base).unwrap(), len, layout) }.map(drop).unwrap_err()
}

#[test]
fn a_layout_says_what_it_takes() {
    let bytes = |slots, tags, promised| Layout { slots, tags, promised }.bytes();
    for (slots, tags, promised, expected) in [
        (4, true, 1, Ok(Layout::SLOTS_AT + 4 * 52)),
        (1, true, 1, Ok(Layout::SLOTS_AT + 52)),
        (MAX_STORAGE, true, 1, Ok(Layout::SLOTS_AT + 52 * MAX_STORAGE)),
        (0, false, 1, Err(CapacityError::Zero)),
        (4, false, 0, Err(CapacityError::Zero)),
        (2 * MAX_STORAGE, false, 1, Err(CapacityError::TooLarge(2 * MAX_STORAGE))),
        (usize::MAX, true, 1, Err(CapacityError::TooLarge(usize::MAX))),
        (4, false, 5, Err(CapacityError::MoreThanStorage { promised: 5, storage: 4 })),
    ] {
        assert_eq!(bytes(slots, tags, promised), expected, "{slots} {promised}");
    }
    for slots in 1..70_usize {
        let expected = match slots.is_power_of_two() {
            true => Ok(Layout::SLOTS_AT + 48 * slots),
            false => Err(CapacityError::NotPowerOfTwo(slots)),
        };
        assert_eq!(bytes(slots, false, 1), expected);
    }
}

#[test]
fn memory_that_does_not_do_is_refused() {
    let memory = Memory::new(0);
    let (base, needed) = (memory.0.as_ptr().cast_mut().cast::<u8>(), FOUR.bytes().unwrap());
    for given in [0, 1, needed - 1] {
        assert_eq!(refused(base, given, FOUR), CapacityError::TooSmall { needed, given });
    }
    let misaligned = CapacityError::Misaligned { to: Layout::ALIGN };
    for by in [1, 2, 4, Layout::ALIGN / 2] {
        assert_eq!(refused(base.wrapping_add(by), needed, FOUR), misaligned, "by {by}");
    }
    let three = Layout { slots: 3, ..FOUR };
    assert_eq!(refused(base, 4096, three), CapacityError::NotPowerOfTwo(3));
}

#[test]
fn parts_that_do_not_do_are_refused() {
    let control = Control::new();
    let slots: Vec<_> = (0..4).map(|_| Slot::new()).collect();
    let tags: Vec<_> = (0..8).map(|_| Tag::new()).collect();
    let refused = |count: usize, tag_count: usize, promised| {
        raw_queue(&control, &slots[..count], &tags[..tag_count], promised).map(drop).err()
    };
    assert_eq!(refused(3, 3, 1), Some(CapacityError::NotPowerOfTwo(3)));
    for tags in [1, 3, 5, 8] {
        assert_eq!(refused(4, tags, 4), Some(CapacityError::TagsDiffer { tags, slots: 4 }));
    }
    assert_eq!([refused(4, 4, 4), refused(4, 0, 4), refused(4, 4, 1)], [None; 3]);
}

#[test]
fn zeros_are_a_new_queue_wherever_it_begins() {
    for position in [0, 1, 7, Position::MAX] {
        let memory = Memory::new(0);
        let (mut producer, mut consumer) =
            memory.open(FOUR).into_sides(position, NoChannel, NoChannel);
        assert_eq!(drain(&mut consumer), Ok(vec![]));
        assert_eq!((producer.len(), producer.storage()), (0, 4));
        producer.push_batch_or_overrun(&[0, 1, 2, 3].map(send)).unwrap();
        assert_eq!(drain(&mut consumer), Ok(vec![0, 1, 2, 3]));
        let words = memory.0.iter().skip(FOUR.bytes().unwrap() / 4);
        assert!(words.into_iter().all(|word| word.load(Relaxed) == 0), "what is not the queue's");
    }
}

#[test]
#[cfg_attr(
    miri,
    ignore = "a ring of 832 MiB: Miri keeps a byte of its own for each, and touches all"
)]
fn the_last_slot_of_the_largest_ring_is_followed_by_the_first() {
    // Zeroed memory that is never touched costs nothing.
    let layout = Layout { slots: MAX_STORAGE, tags: true, promised: 1 << 24 };
    let mut memory = vec![0_u64; layout.bytes().unwrap() / 8 + 16];
    let offset = memory.as_ptr().align_offset(Layout::ALIGN);
    let base = NonNull::from(&mut memory[offset..]).cast();
    // SAFETY: aligned, large enough, and reached through the queue alone.
    let queue = unsafe { RawQueue::new(base, layout.bytes().unwrap(), layout) }.unwrap();
    let start = MAX_STORAGE as Position - 1;
    let (mut producer, mut consumer) = queue.into_sides(start, NoChannel, NoChannel);
    assert_eq!(producer.storage(), MAX_STORAGE);
    producer.push_batch_or_overrun(&[super::entry(0), super::entry(1)]).unwrap();
    let mut got = Vec::new();
    consumer.poll_with(&mut [Wc::default(); 4], |wc, tag| got.push((wc.wr_id(), tag))).unwrap();
    assert_eq!(got, [(0, 100), (1, 101)]);
}

#[test]
fn c03_foreign_bytes_look_published_for_one_round_and_do_no_harm() {
    let memory = Memory::new(0xA5A5_A5A5);
    let layout = Layout { slots: 8, tags: true, promised: 8 };
    // In round 0x25A5 the garbage looks published; and some number of completions was dropped.
    let mut consumer = memory.open(layout).into_consumer(0x25A5 * 8 + 3, NoChannel);
    let mut out = [Wc::default(); 64];
    let mut tags = Vec::new();
    let count = consumer.poll_with(&mut out, |_, tag| tags.push(tag));
    let reported = count.is_err();
    assert!(reported || count == Ok(5), "forged entries end with the round");
    assert!(tags.iter().all(|tag| *tag == 0xA5A5_A5A5));
    let mut producer = memory.open(layout).into_producer(Tail::at(5), NoChannel);
    for number in 0..20 {
        assert!(
            producer.push_or_overrun(&send(number)).is_err(),
            "the words say that it has ended"
        );
    }
}

#[test]
fn n04_the_arm_word_holds_the_numbers_that_its_documentation_lists() {
    let (memory, event_count) = (Memory::new(0), EventCount::default());
    let (mut producer, mut consumer) = memory.armable(&event_count);
    assert_eq!(memory.word(ARM), 0);
    for (on, word) in [(Notify::Solicited, 1), (Notify::Next, 2)] {
        let _ = consumer.arm(on).unwrap();
        assert_eq!(memory.word(ARM), word);
    }
    producer.push_or_overrun(&send(0)).unwrap();
    assert_eq!(memory.word(ARM), 0);
}

#[test]
fn n04_any_other_number_in_the_arm_word_is_an_arm_for_any_completion() {
    for number in [2, 3, 7, u32::MAX] {
        for arms in [&[][..], &[Notify::Solicited], &[Notify::Next]] {
            let (memory, event_count) = (Memory::new(0), EventCount::default());
            let (mut producer, mut consumer) = memory.armable(&event_count);
            memory.0[ARM].store(number, Relaxed);
            for on in arms {
                let _ = consumer.arm(*on).unwrap();
            }
            let fired = [send(0), failed(1), failed(2)].map(|wc| {
                producer.push_or_overrun(&wc).unwrap();
                event_count.take()
            });
            assert_eq!(fired, [1, 0, 0], "{number}, {arms:?}");
        }
    }
}

#[test]
fn o03_the_words_of_the_end_hold_the_numbers_that_their_documentation_lists() {
    let memory = Memory::new(0);
    let ends = || [memory.word(PRODUCERS), memory.word(CONSUMER)];
    let (mut producer, mut consumer) = memory.open(FOUR).into_sides(0, NoChannel, NoChannel);
    producer.push_batch_or_overrun(&[0, 1, 2, 3].map(send)).unwrap();
    assert_eq!(ends(), [0, 0]);
    producer.push_batch_or_overrun(&[4, 5].map(send)).unwrap_err();
    assert_eq!(ends(), [2, 0]);
    assert_eq!(drain(&mut consumer).unwrap().len(), 4);
    assert_eq!(ends(), [2, 0]);
    drain(&mut consumer).unwrap_err();
    assert_eq!(ends(), [2, 2], "reported");
    consumer.fail();
    drop((producer, consumer));
    assert_eq!(ends(), [2, 2], "it stays as it ended, and other sides may follow");
    let memory = Memory::new(0);
    memory.open(FOUR).into_consumer(0, NoChannel).fail();
    assert_eq!([memory.word(PRODUCERS), memory.word(CONSUMER)], [0, 1], "failed");
}

#[test]
fn o03_the_count_of_dropped_completions_saturates_below_what_means_closed() {
    let memory = Memory::new(0);
    let (mut producer, mut consumer) = memory.open(FOUR).into_sides(0, NoChannel, NoChannel);
    memory.0[PRODUCERS].store(u32::MAX - 3, Relaxed);
    assert_eq!(consumer.end(), Some(End::Overrun { dropped: u32::MAX - 3 }));
    let most = u32::MAX - 1;
    assert_eq!(
        producer.push_or_overrun(&send(0)),
        Err(DroppedError { lost: 1, end: End::Overrun { dropped: u32::MAX - 2 } })
    );
    for (lost, batch) in [(2, &[1, 2].map(send)[..]), (1, &[send(3)])] {
        assert_eq!(
            producer.push_batch_or_overrun(batch),
            Err(DroppedError { lost, end: End::Overrun { dropped: most } })
        );
    }
    assert_eq!(drain(&mut consumer), Err(PollError::Overrun { dropped: Some(most) }));

    memory.0[PRODUCERS].store(u32::MAX, Relaxed);
    assert_eq!(producer.push_or_overrun(&send(0)), Err(DroppedError { lost: 1, end: End::Closed }));
    assert_eq!(consumer.end(), Some(End::Closed), "for ever");
    assert_eq!(consumer.poll_into(&mut [Wc::default()]), Err(PollError::Closed));
}

#[test]
fn the_control_says_what_was_released_and_the_layout_how_far_that_may_be_behind() {
    for (slots, promised, lag) in [(16, 16, 0), (16, 14, 2), (16, 8, 4), (16, 1, 4), (4, 5, 0)] {
        let lag = if size_of::<Position>() < 8 { 0 } else { lag }; // none on a microcontroller
        assert_eq!(Layout { slots, tags: false, promised }.lag(), lag, "{promised} of {slots}");
    }
    for promised in [16, 14, 8] {
        let (memory, layout) = (Memory::new(0), Layout { slots: 16, tags: true, promised });
        let control = memory.open(layout).control();
        let (mut producer, mut consumer) = memory.open(layout).into_sides(7, NoChannel, NoChannel);
        assert_eq!(control.released(), 7, "where the consumer began");
        let mut furthest = 0;
        for number in 0..40 {
            producer.push_or_overrun(&send(number)).unwrap();
            assert_eq!(drain(&mut consumer), Ok(vec![number]));
            furthest = furthest.max(consumer.position() - control.released());
        }
        assert_eq!(furthest, layout.lag(), "{promised}");
    }
}

#[test]
fn n01_the_control_says_what_the_queue_is_armed_for() {
    let (memory, event_count) = (Memory::new(0), EventCount::default());
    let control = memory.open(FOUR).control();
    let (mut producer, mut consumer) = memory.armable(&event_count);
    assert_eq!(control.armed(), None);
    for on in [Notify::Solicited, Notify::Next] {
        let _ = consumer.arm(on).unwrap();
        assert_eq!(control.armed(), Some(on));
    }
    producer.push_or_overrun(&send(0)).unwrap();
    assert_eq!(control.armed(), None, "the event was raised");
    memory.0[ARM].store(7, Relaxed);
    assert_eq!(control.armed(), Some(Notify::Next), "by any other number");
}
