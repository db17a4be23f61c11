//! What a queue counts, on scripted transports, on software queues, and while another thread reads.

mod events;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use cq_core::observe::Observed;
use cq_core::shared_cq::SharedCq;
use cq_verbs::counters::{Counters, Counts, Recorder};
use cq_verbs::polling::PollWc;

use super::send as wc;
use super::*;

/// A transport that counts.
pub type Counted<T> = Observed<T, Recorder<Arc<Counters>>>;

pub fn counted<T>(transport: T) -> (Counted<T>, Arc<Counters>) {
    let (recorder, counters) = Counters::shared();
    (Observed::new(transport, recorder), counters)
}

fn counted_cq<T: PollWc>(transport: T) -> (CompletionQueue<Counted<T>>, Arc<Counters>) {
    let (queue, counters) = counted(transport);
    (CompletionQueue::new(queue), counters)
}

pub fn script() -> Script<32> {
    Script::new(KEY)
}

/// A completion with the status of this number.
fn with(status: u32) -> Wc {
    Wc::new(7, WcStatus(status), 1)
}

/// Polls and what became of them: all, empty, failed.
fn polls(counts: &Counts) -> (u64, u64, u64) {
    (counts.polls, counts.empty_polls, counts.failed_polls)
}

/// Arms, events, spurious events.
pub fn events(counters: &Counters) -> (u64, u64, u64) {
    let counts = counters.snapshot();
    (counts.arms, counts.events, counts.spurious_events)
}

#[test]
fn polls_are_counted_by_what_they_return() {
    let overrun = Err(PollError::Overrun { dropped: Some(1) });
    let script = script().on_poll(Ok(&[wc(1), wc(2), wc(3)])).on_poll(Ok(&[])).on_poll(overrun);
    let (mut cq, counters) = counted_cq(&script);
    assert_eq!(counters.snapshot(), Counts::default());
    let mut buffer = [wc(0); 2];
    assert_eq!(cq.poll(&mut []), Ok(&[][..]));
    assert_eq!(counters.snapshot(), Counts::default(), "an empty buffer asks for nothing");
    assert_eq!(cq.poll(&mut buffer).map(<[Wc]>::len), Ok(2));
    assert_eq!(cq.poll(&mut buffer).map(<[Wc]>::len), Ok(1));
    assert_eq!(polls(&counters.snapshot()), (2, 0, 0));
    assert_eq!(cq.poll(&mut buffer).map(<[Wc]>::len), Ok(0));
    assert_eq!(polls(&counters.snapshot()), (3, 1, 0));
    for failed in 1..3 {
        assert!(cq.poll(&mut buffer).is_err());
        assert_eq!(polls(&counters.snapshot()), (3 + failed, 1, failed));
        assert_eq!(counters.snapshot().overruns, 1, "the same overrun");
    }
}

#[test]
fn a_queue_that_fails_otherwise_has_not_overrun_and_what_is_not_believed_is_not_counted() {
    let script = script().on_poll(Err(PollError::Failed)).on_poll_claim(3);
    let (mut cq, counters) = counted_cq(&script);
    assert_eq!(cq.poll(&mut [wc(0)]), Err(PollError::Failed));
    let misbehaved = PollError::Misbehaved { asked: 1, returned: 3 };
    assert_eq!(cq.poll(&mut [wc(0)]), Err(misbehaved));
    let counts = Counts::default();
    let got = counters.snapshot();
    assert_eq!((polls(&got), got.overruns), ((2, 0, 2), 0));
    assert_eq!((got.completions, got.high_water), (counts.completions, 0));
}

#[test]
fn each_status_is_counted_by_itself_and_unknown_ones_together() {
    let (mut producer, consumer) = HeapCq::new(64).unwrap().split();
    let (mut cq, counters) = counted_cq(consumer);
    let mut buffer = [wc(0); 64];
    for status in (0..26).chain([u32::MAX]) {
        for _ in 0..=status.min(30) {
            producer.push(&with(status)).unwrap();
        }
        cq.poll(&mut buffer).unwrap();
    }
    let completions = counters.snapshot().completions;
    for &status in WcStatus::KNOWN {
        assert_eq!(completions.count(status), u64::from(status.0) + 1, "{status:?}");
    }
    let unknown = 25 + 26 + 31;
    assert_eq!(completions.unknown(), unknown);
    assert_eq!(completions.count(WcStatus(24)), unknown, "any of them");
    assert_eq!(completions.total(), (1..=24).sum::<u64>() + unknown);
    let mut all = completions.iter();
    assert_eq!(all.next(), Some((Some(WcStatus::SUCCESS), 1)));
    assert_eq!(all.nth(4), Some((Some(WcStatus::WR_FLUSH_ERR), 6)));
    assert_eq!(all.last(), Some((None, unknown)));
}

#[test]
fn one_failure_anywhere_in_a_batch_of_any_length_is_seen() {
    let (mut producer, consumer) = HeapCq::new(64).unwrap().split();
    let (mut cq, counters) = counted_cq(consumer);
    let (mut buffer, mut due) = ([wc(0); 64], (0, 0));
    let mut expect = |batch: &[Wc], failures: u64| {
        producer.push_batch(batch).unwrap();
        assert_eq!(cq.poll(&mut buffer).unwrap(), batch);
        due = (due.0 + batch.len() as u64 - failures, due.1 + failures);
        let completions = counters.snapshot().completions;
        let got = (completions.count(WcStatus::SUCCESS), completions.count(WcStatus::FATAL_ERR));
        assert_eq!((got, completions.total()), (due, due.0 + due.1), "{batch:?}");
    };
    // Twice each: the second time the high-water mark does not rise.
    for length in (1..=if cfg!(miri) { 9 } else { 34 }).flat_map(|length| [length; 2]) {
        expect(&vec![wc(1); length], 0);
        for failure in 0..length {
            let mut batch = vec![wc(1); length];
            batch[failure] = with(WcStatus::FATAL_ERR.0);
            expect(&batch, 1);
        }
    }
}

#[test]
fn the_high_water_mark_is_the_largest_batch_where_the_transport_cannot_tell() {
    let batch = [wc(1), wc(2), wc(3), wc(4), wc(5)];
    let script = script().on_poll(Ok(&batch[..2])).on_poll(Ok(&batch)).on_poll(Ok(&batch[..1]));
    let (mut cq, counters) = counted_cq(&script);
    let mut buffer = [wc(0); 4];
    for mark in [2, 4, 4, 4] {
        cq.poll(&mut buffer).unwrap();
        assert_eq!(counters.snapshot().high_water, mark);
    }
}

/// Pushes so many, polls as many as `buffer` holds, and returns the mark.
fn mark_after(count: u64, buffer: usize) -> u64 {
    let (mut producer, consumer) = HeapCq::new(16).unwrap().split();
    let (mut cq, counters) = counted_cq(consumer);
    (0..count).for_each(|wr_id| producer.push(&wc(wr_id)).unwrap());
    cq.poll(&mut vec![wc(0); buffer]).unwrap();
    counters.snapshot().high_water
}

#[test]
fn the_high_water_mark_of_a_software_queue_is_what_it_held() {
    assert_eq!(mark_after(3, 16), 3, "a buffer that is not full");
    assert_eq!(mark_after(16, 16), 16, "a buffer as long as the queue");
    assert_eq!(mark_after(10, 4), 6, "what was left was more than the batch");
    assert_eq!(mark_after(16, 1), 15);
    assert_eq!(mark_after(5, 4), 4, "the batch was more than what was left");

    // It rises only.
    let (mut producer, consumer) = HeapCq::new(16).unwrap().split();
    let (mut cq, counters) = counted_cq(consumer);
    let mut buffer = [wc(0); 2];
    for (pushed, mark) in [(8, 6), (0, 6), (0, 6), (0, 6), (2, 6), (10, 8)] {
        (0..pushed).for_each(|wr_id| producer.push(&wc(wr_id)).unwrap());
        cq.poll(&mut buffer).unwrap();
        assert_eq!(counters.snapshot().high_water, mark);
    }
}

#[test]
fn a_later_recorder_goes_on_from_where_the_first_one_stopped() {
    let mut counters = Counters::default();
    for queue in 1..3 {
        let script = script().on_poll(Err(PollError::Overrun { dropped: None }));
        let (recorder, counters) = counters.split();
        assert!(Observed::new(&script, recorder).poll_into(&mut [wc(0)]).is_err());
        assert_eq!((counters.snapshot().polls, counters.snapshot().overruns), (queue, queue));
    }
}

#[test]
fn p08_another_thread_reads_while_threads_poll() {
    const TOTAL: u64 = 10 * many(2_000);
    let (mut producer, consumer) = HeapCq::new(64).unwrap().split();
    let (cq, counters) = counted_cq(consumer);
    let (shared, is_over) = (SharedCq::new(cq), AtomicBool::new(false));
    let poller = || {
        let mut buffer = [wc(0); 8];
        while let Ok(batch) = { shared.lock().poll(&mut buffer) } {
            if batch.is_empty() {
                thread::yield_now();
            }
        }
    };
    let reader = || {
        let mut before = counters.snapshot();
        while !is_over.load(SeqCst) {
            let now = counters.snapshot();
            assert!(now.polls >= before.polls && now.empty_polls >= before.empty_polls);
            assert!(now.completions.total() >= before.completions.total());
            assert!(now.completions.total() <= TOTAL && now.high_water <= 64, "{now}");
            before = now;
        }
    };
    thread::scope(|scope| {
        scope.spawn(reader);
        let pollers = [(); 2].map(|()| scope.spawn(poller));
        (0..TOTAL).for_each(|nth| {
            let status = if nth % 10 == 0 { WcStatus::WR_FLUSH_ERR } else { WcStatus::SUCCESS };
            producer.push_or_wait(&with(status.0), thread::yield_now).unwrap();
        });
        drop(producer);
        pollers.into_iter().for_each(|poller| poller.join().unwrap());
        is_over.store(true, SeqCst);
    });
    let counts = counters.snapshot();
    assert_eq!(counts.completions.count(WcStatus::WR_FLUSH_ERR), TOTAL / 10);
    assert_eq!(counts.completions.total(), TOTAL);
    assert!((1..=2).contains(&counts.failed_polls), "both find it closed, or one: {counts}");
}
