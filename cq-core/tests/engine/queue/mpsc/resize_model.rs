//! A queue of several producers that is resized, against a model of one: producers that follow at once, late or never
//! (Q12, O1, O3, N2, N6, S2).

use std::collections::VecDeque;

use cq_core::queue::mpsc::{
    HeapCq, NewRing, PushError, ResizeErrorKind, SharedConsumer, SharedProducer, Spare,
};

use super::*;

const PRODUCERS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    /// A producer pushes a batch, if `tries` as far as there is room.
    Push {
        producer: usize,
        count: usize,
        tries: bool,
    },
    Poll(usize),
    Arm(Notify),
    Resize(usize),
    /// A producer follows to one of the rings so far, often the last one.
    Follow {
        producer: usize,
        back: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ended {
    Overrun,
    Resized,
}

/// What the model knows of a ring.
struct Ring {
    promised: usize,
    slots: usize,
    /// How many were polled and not given back.
    unreleased: usize,
    end: Option<Ended>,
}

impl Ring {
    fn new(promised: usize) -> Self {
        let slots = promised.next_power_of_two();
        Self { promised, slots, unreleased: 0, end: None }
    }
}

type Waits<'a> = SharedConsumer<'a, Wc, OnChannel<&'a EventCount>>;

struct Both<'a> {
    /// Each with the ring that it pushes to.
    producers: Vec<(SharedProducer<'a, Wc, &'a EventCount>, usize)>,
    consumer: Waits<'a>,
    event_count: &'a EventCount,
    /// Where to move to before storage on the heap.
    spare: Option<Spare<'a>>,
    /// What a refused resize gave back.
    refused: Option<(Spare<'a>, usize)>,
    /// Where to follow to, for the second ring on.
    news: Vec<NewRing<'a>>,
    rings: Vec<Ring>,
    /// The ring that the consumer is in.
    at: usize,
    /// The ring and the number of each.
    unpolled: VecDeque<(usize, u64)>,
    dropped: u32,
    is_reported: bool,
    armed: Option<Notify>,
    events: u32,
    count: u64,
}

impl<'a> Both<'a> {
    fn new(
        (producer, consumer): (SharedProducer<'a, Wc, &'a EventCount>, Waits<'a>),
        spare: Option<Spare<'a>>,
        event_count: &'a EventCount,
    ) -> Self {
        let producers = (0..PRODUCERS).map(|_| (producer.clone(), 0)).collect();
        let (rings, unpolled) = (vec![Ring::new(consumer.capacity())], VecDeque::new());
        Self {
            producers,
            consumer,
            event_count,
            spare,
            refused: None,
            news: Vec::new(),
            rings,
            at: 0,
            unpolled,
            dropped: 0,
            is_reported: false,
            armed: None,
            events: 0,
            count: 0,
        }
    }

    fn last(&self) -> usize {
        self.rings.len() - 1
    }

    fn fire(&mut self, is_urgent: bool) {
        let fires = |on: &mut Notify| is_urgent || *on == Notify::Next;
        self.events += u32::from(self.armed.take_if(fires).is_some());
    }

    /// Goes on in the last ring once the one before is drained.
    fn switch(&mut self) {
        if self.unpolled.front().is_none_or(|(ring, _)| *ring == self.last()) {
            self.at = self.last();
        }
    }

    fn push(&mut self, producer: usize, count: usize, tries: bool) {
        let (producer, ring) = &mut self.producers[producer];
        let numbers: Vec<_> = (self.count..).take(count).collect();
        self.count += count as u64;
        let batch: Vec<_> = numbers.iter().map(|number| send(*number)).collect();
        let of = &mut self.rings[*ring];
        let held = self.unpolled.iter().filter(|(of, _)| of == ring).count() + of.unreleased;
        let end = if self.is_reported { Some(Ended::Overrun) } else { of.end };
        let stored = if end.is_some() { 0 } else { count.min(of.slots - held) };
        let lost = (count - stored) as u32;
        if end.is_none() && lost > 0 && !tries {
            of.end = Some(Ended::Overrun);
        }
        self.unpolled.extend(numbers[..stored].iter().map(|number| (*ring, *number)));
        if tries {
            let why = match end {
                Some(Ended::Overrun) => PushError::Ended(End::Overrun { dropped: self.dropped }),
                Some(Ended::Resized) => PushError::Resized,
                None => PushError::Full,
            };
            let expected = if lost > 0 { Err(BatchError { stored, why }) } else { Ok(()) };
            assert_eq!(producer.push_batch(&batch), expected);
        } else {
            let overruns = lost > 0 && end != Some(Ended::Resized);
            self.dropped += if overruns { lost } else { 0 };
            let expected = match end {
                _ if overruns => dropped(lost, self.dropped),
                _ if lost > 0 => Err(OverrunError::Resized),
                _ => Ok(()),
            };
            assert_eq!(producer.push_batch_or_overrun(&batch), expected);
            if overruns {
                self.fire(true);
            }
        }
        if stored > 0 {
            self.fire(false);
        }
    }

    fn poll(&mut self, capacity: usize) {
        let mut out = vec![Wc::default(); capacity];
        let polled = self.consumer.poll_into(&mut out);
        let count = capacity.min(self.unpolled.len());
        if count == 0 && capacity > 0 && self.dropped > 0 {
            self.is_reported = true;
            assert_eq!(polled, Err(PollError::Overrun { dropped: Some(self.dropped) }));
            return;
        }
        assert_eq!(polled, Ok(count));
        let taken: Vec<_> = self.unpolled.drain(..count).collect();
        assert!(out.iter().map(Wc::wr_id).take(count).eq(taken.iter().map(|(_, number)| *number)));
        for (nth, ring) in self.rings.iter_mut().enumerate() {
            ring.unreleased += taken.iter().filter(|(of, _)| *of == nth).count();
            if ring.unreleased > (ring.slots - ring.promised).min(ring.slots / 4) {
                ring.unreleased = 0;
            }
        }
        self.switch();
    }

    fn resize(&mut self, promised: usize) {
        let new = || (Spare::new(promised).unwrap(), promised);
        let first = self.spare.take().map(|spare| (spare, self.rings[0].promised));
        let (spare, promised) = self.refused.take().or(first).unwrap_or_else(new);
        let unpolled = self.unpolled.len() as u64;
        let resized = self.consumer.resize(spare);
        let expected = match self.rings[self.at].end {
            _ if self.at != self.last() => Err(ResizeErrorKind::UnderWay),
            Some(_) => Err(ResizeErrorKind::Overrun),
            None if unpolled > promised as u64 => {
                Err(ResizeErrorKind::BelowUnpolled { promised: promised as u32, unpolled })
            }
            None => Ok(()),
        };
        match resized {
            Ok(new) => {
                assert_eq!(expected, Ok(()));
                self.rings[self.at].end = Some(Ended::Resized);
                self.rings.push(Ring::new(promised));
                self.news.push(new);
                self.switch();
            }
            Err(error) => {
                assert_eq!(expected, Err(error.why));
                self.refused = Some((error.spare, promised));
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Push { producer, count, tries } => self.push(producer, count, tries),
            Step::Poll(capacity) => self.poll(capacity),
            Step::Arm(on) => {
                self.armed = self.armed.max(Some(on));
                let is_quiet = self.unpolled.is_empty() && self.dropped == 0;
                let armed = if is_quiet { Armed::Armed } else { Armed::MayHaveMissed };
                assert_eq!(self.consumer.arm(on), Ok(armed));
            }
            Step::Resize(promised) => self.resize(promised),
            Step::Follow { producer, back } => {
                if let Some(nth) = self.news.len().checked_sub(1 + back) {
                    self.producers[producer].0.follow(&self.news[nth]);
                    self.producers[producer].1 = nth + 1;
                }
            }
        }
        assert_eq!(self.consumer.capacity(), self.rings[self.last()].promised);
        assert_eq!(self.event_count.take(), std::mem::take(&mut self.events));
        for (producer, ring) in &self.producers {
            let of = &self.rings[*ring];
            let held = self.unpolled.iter().filter(|(of, _)| of == ring).count() + of.unreleased;
            if *ring == self.last() {
                assert_eq!((producer.len(), producer.available()), (held, of.slots - held));
            }
        }
    }

    /// The producers go one by one, and what they have stored is polled.
    fn end(mut self) {
        while self.producers.pop().is_some() {
            let is_over = self.producers.is_empty() && self.dropped == 0;
            assert_eq!(self.event_count.take(), u32::from(is_over && self.armed.is_some()));
        }
        let left: Vec<_> = self.unpolled.iter().map(|(_, number)| *number).collect();
        if !left.is_empty() {
            assert_eq!(drain(&mut self.consumer), Ok(left));
        }
        let end = match self.dropped {
            0 => PollError::Closed,
            dropped => PollError::Overrun { dropped: Some(dropped) },
        };
        assert_eq!(drain(&mut self.consumer), Err(end));
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let push = (0..PRODUCERS, 0_usize..6, prop::bool::weighted(0.9));
    let follow = (0..PRODUCERS, prop_oneof![5 => Just(0_usize), 1 => 0_usize..3]);
    let on = prop::sample::select(vec![Notify::Next, Notify::Solicited]);
    let step = prop_oneof![
        8 => push.prop_map(|(producer, count, tries)| Step::Push { producer, count, tries }),
        5 => (0_usize..8).prop_map(Step::Poll),
        2 => on.prop_map(Step::Arm),
        2 => (1_usize..12).prop_map(Step::Resize),
        4 => follow.prop_map(|(producer, back)| Step::Follow { producer, back }),
    ];
    prop::collection::vec(step, lengths(80))
}

fn run(mut both: Both<'_>, steps: &[Step]) {
    steps.iter().for_each(|step| both.step(step));
    both.end();
}

/// From a ring that soon wraps to another.
fn wraps_at<const N: usize>(from: usize, to: usize, before: [Position; 2], steps: &[Step]) {
    let (mut queue, event_count) =
        (mpsc::SoftCq::<N>::at(wraps(N)[from] - before[0]), EventCount::default());
    let mut ring = cq_core::queue::mpsc::Ring::<N>::at(wraps(N)[to] - before[1]);
    run(Both::new(queue.split_with(&event_count), Some(ring.spare()), &event_count), steps);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn q12_a_queue_that_is_resized_does_as_the_model_does(promised in 1_usize..9, steps in steps()) {
        let (queue, event_count) = (HeapCq::new(promised).unwrap(), EventCount::default());
        run(Both::new(queue.split_with(&event_count), None, &event_count), &steps);
    }

    #[test]
    fn positions_and_generations_wrap_unnoticed(
        [from, to] in [0_usize..5, 0_usize..5], before in [0..20 as Position, 0..20 as Position], steps in steps(),
    ) {
        wraps_at::<1>(from, to, before, &steps);
        wraps_at::<2>(from, to, before, &steps);
        wraps_at::<4>(from, to, before, &steps);
        wraps_at::<16>(from, to, before, &steps);
    }
}
