//! What a queue counts, on scripted transports, on software queues, and while another thread reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use cq_core::channel::waker;
use cq_core::counters::{Completions, Counters, Counts, Recorder};
use cq_core::observe::Observed;
use cq_core::shared_cq::SharedCq;
use cq_core::testing::fault::{FaultInjector, Faults};

use super::send as wc;
use super::*;

/// A transport that counts.
type Counted<T> = Observed<T, Recorder<Arc<Counters>>>;

fn counted<T>(transport: T) -> (Counted<T>, Arc<Counters>) {
    let (recorder, counters) = Counters::shared();
    (Observed::new(transport, recorder), counters)
}

fn counted_cq<T: PollCq>(transport: T) -> (CompletionQueue<Counted<T>>, Arc<Counters>) {
    let (queue, counters) = counted(transport);
    (CompletionQueue::new(queue), counters)
}

fn script() -> Script<32> {
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
fn events(counters: &Counters) -> (u64, u64, u64) {
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
        assert_eq!(completions.of(status), u64::from(status.0) + 1, "{status:?}");
    }
    let unknown = 25 + 26 + 31;
    assert_eq!(completions.unknown(), unknown);
    assert_eq!(completions.of(WcStatus(24)), unknown, "any of them");
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
        let got = (completions.of(WcStatus::SUCCESS), completions.of(WcStatus::FATAL_ERR));
        assert_eq!((got, completions.total()), (due, due.0 + due.1), "{batch:?}");
    };
    // Twice each: the second time the high-water mark does not rise.
    for length in (1..=34).flat_map(|length| [length; 2]) {
        expect(&vec![wc(1); length], 0);
        for failure in 0..length {
            let mut batch = vec![wc(1); length];
            batch[failure] = with(WcStatus::FATAL_ERR.0);
            expect(&batch, 1);
        }
    }
}

#[test]
fn arms_are_counted_if_they_succeed() {
    let script = script().on_arm(Err(ArmError::NoChannel)).on_arm(Ok(Armed::MayHaveMissed));
    let (mut queue, counters) = counted(&script);
    assert_eq!(queue.arm(Notify::Next), Err(ArmError::NoChannel));
    assert_eq!(events(&counters), (0, 0, 0));
    assert_eq!(queue.arm(Notify::Next), Ok(Armed::MayHaveMissed));
    assert_eq!(queue.arm(Notify::Solicited), Ok(Armed::Armed));
    assert_eq!(events(&counters), (2, 0, 0));
}

/// What becomes of events whose queue is looked at by these calls: how many are spurious.
#[track_caller]
fn spurious(script: Script<32>, calls: impl FnOnce(&mut Counted<&Script<32>>), expected: u64) {
    let (mut queue, counters) = counted(&script);
    calls(&mut queue);
    script.done().unwrap();
    assert_eq!(counters.snapshot().spurious_events, expected);
}

#[test]
fn n05_an_event_is_spurious_if_the_queue_is_then_found_empty_and_no_completion_explains_it() {
    let mut buffer = [wc(0); 2];
    let (empty, one) = (|| script().on_poll(Ok(&[])), || script().on_poll(Ok(&[wc(1)])));
    spurious(empty(), |queue| assert_eq!(queue.poll(&mut [wc(0)]), Ok(0)), 0);
    let poll_after = |events: u32| {
        move |queue: &mut Counted<&Script<32>>| {
            queue.took_events(events);
            queue.poll(&mut [wc(0)]).unwrap();
        }
    };
    spurious(empty(), poll_after(1), 1);
    spurious(empty(), poll_after(3), 3);
    spurious(one(), poll_after(3), 0);
    // Each is judged once.
    spurious(
        empty().on_poll(Ok(&[])),
        |queue| {
            queue.took_events(1);
            queue.poll(&mut buffer).unwrap();
            queue.poll(&mut buffer).unwrap();
        },
        1,
    );
    // The completion was polled before the event was taken.
    let twice = || one().on_poll(Ok(&[]));
    spurious(
        twice(),
        |queue| {
            queue.poll(&mut buffer).unwrap();
            queue.took_events(1);
            queue.poll(&mut buffer).unwrap();
        },
        0,
    );
    // It explains no event of a later arm.
    for armed in [Armed::Armed, Armed::MayHaveMissed] {
        spurious(
            one().on_arm(Ok(armed)).on_poll(Ok(&[])),
            |queue| {
                queue.poll(&mut buffer).unwrap();
                let _ = queue.arm(Notify::Next);
                queue.took_events(1);
                queue.poll(&mut buffer).unwrap();
            },
            1,
        );
    }
    // An arm that says that the queue is empty is as good as a poll.
    for (armed, is_spurious) in [(Armed::Armed, 1), (Armed::MayHaveMissed, 0)] {
        let script = script().on_arm(Ok(armed)).on_poll(Ok(&[wc(1)]));
        spurious(
            script,
            |queue| {
                queue.took_events(1);
                let _ = queue.arm(Notify::Next);
                queue.poll(&mut buffer).unwrap();
            },
            is_spurious,
        );
    }
    // A poll into an empty buffer says nothing.
    spurious(
        one(),
        |queue| {
            queue.took_events(1);
            queue.poll(&mut []).unwrap();
            queue.poll(&mut buffer).unwrap();
        },
        0,
    );
    // No number of events wraps.
    spurious(
        empty(),
        |queue| {
            queue.took_events(u32::MAX);
            queue.took_events(2);
            queue.poll(&mut buffer).unwrap();
        },
        u32::MAX.into(),
    );
}

/// A wait that sleeps, is woken for nothing, and then for a completion.
fn woken_twice() -> Script<32> {
    let script = script().on_arm(Ok(Armed::Armed)).on_event(Ok(KEY)).on_poll(Ok(&[]));
    script.on_block(Ok(Duration::ZERO)).on_event(Ok(KEY)).on_poll(Ok(&[wc(1)]))
}

#[test]
fn n05_a_wait_counts_the_events_that_it_takes() {
    let script = woken_twice();
    let (mut cq, counters) = counted_cq(&script);
    assert_eq!(cq.wait(&mut [wc(0)], &mut &script, None), Ok(&[wc(1)][..]));
    assert_eq!(events(&counters), (2, 2, 1));
    assert_eq!(polls(&counters.snapshot()), (3, 2, 0));

    let script = woken_twice();
    let (cq, counters) = counted_cq(&script);
    let cq = SharedCq::new(cq);
    assert_eq!(cq.wait(&mut [wc(0)], &mut &script, None), Ok(&[wc(1)][..]));
    assert_eq!(events(&counters), (2, 2, 1));
}

#[test]
fn n09_events_of_completions_that_were_polled_are_not_spurious() {
    let script = script().on_arm(Ok(Armed::Armed)).on_poll(Ok(&[wc(1)])).on_poll(Ok(&[]));
    let script = script.on_event(Ok(KEY)).on_event(Ok(KEY)).on_arm(Ok(Armed::MayHaveMissed));
    let script = script.on_poll(Ok(&[])).on_block(Ok(Duration::ZERO)).on_poll(Ok(&[]));
    let (mut cq, counters) = counted_cq(&script);
    let mut buffer = [wc(0); 2];
    assert_eq!(cq.poll_or_arm(&mut buffer, Notify::Next), Ok(&[][..]));
    assert_eq!(cq.wait(&mut buffer, &mut &script, None), Ok(&[wc(1)][..]));
    assert_eq!(events(&counters), (1, 0, 0), "found without a look at the channel");
    let end = Some(Duration::from_secs(1));
    assert_eq!(cq.wait(&mut buffer, &mut &script, end), Ok(&[][..]));
    script.done().unwrap();
    assert_eq!(counters.snapshot().events, 2);
    assert_eq!(counters.snapshot().spurious_events, 0);
}

#[test]
fn n06_a_task_counts_the_events_that_woke_it() {
    const WORK: u64 = 1000;
    let (raiser, mut channel) = waker::channel();
    let (mut device, consumer) = HeapCq::new(16).unwrap().split_with(KEY, raiser);
    let (mut cq, counters) = counted_cq(consumer);
    let device = thread::spawn(move || {
        (0..WORK).for_each(|wr_id| device.push_or_wait(&wc(wr_id), thread::yield_now).unwrap());
    });
    let mut buffer = [wc(0); 4];
    let error = pollster::block_on(async {
        loop {
            if let Err(error) = cq.next_batch(&mut buffer, &mut channel).await {
                return error;
            }
        }
    });
    device.join().unwrap();
    assert_eq!(error, WaitError::Poll(PollError::Closed));
    let counts = counters.snapshot();
    assert_eq!(counts.completions.of(WcStatus::SUCCESS), WORK);
    assert!(counts.events <= counts.arms, "one for an arm at most: {counts}");
    assert!(counts.spurious_events <= counts.events, "{counts}");
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
fn how_much_a_queue_holds_is_known_up_to_its_storage() {
    let (mut producer, mut consumer) = HeapCq::new(4).unwrap().split();
    let holds = |consumer: &Consumer<'_>, count: usize| {
        assert_eq!(consumer.len(), count);
        for fewer in 0..9 {
            assert_eq!(consumer.holds_more_than(fewer), fewer < count, "{fewer} of {count}");
        }
    };
    for count in 0..4 {
        holds(&consumer, count);
        producer.push(&wc(1)).unwrap();
    }
    holds(&consumer, 4);
    consumer.poll(&mut [wc(0); 3]).unwrap();
    holds(&consumer, 1);
    // Across the end of the ring.
    producer.push_batch(&[wc(1); 3]).unwrap();
    holds(&consumer, 4);
    assert!(!(&mut &script()).holds_more_than(0), "not known");
    assert!((&mut consumer).holds_more_than(3) && !(&mut consumer).holds_more_than(4));
    let (queue, _) = counted(consumer);
    assert!(queue.holds_more_than(3) && !queue.holds_more_than(4));
}

#[cfg(not(cq_core_word32))]
#[test]
fn how_much_a_queue_with_several_producers_holds_is_known() {
    let (mut producer, mut consumer) = mpsc::HeapCq::new(4).unwrap().split();
    assert!(!consumer.holds_more_than(0));
    producer.push_batch(&[wc(1); 3]).unwrap();
    assert!(consumer.holds_more_than(2) && !consumer.holds_more_than(3));
    consumer.poll(&mut [wc(0)]).unwrap();
    assert!(consumer.holds_more_than(1) && !consumer.holds_more_than(2));
}

#[test]
fn wrappers_hand_on_what_is_for_the_queue_below() {
    let script = script().on_poll(Ok(&[])).on_poll(Ok(&[]));
    let (queue, inner) = counted(&script);
    let (mut queue, outer) = counted(FaultInjector::<_, 4>::new(queue, &Faults::seeded(1)));
    (&mut queue).took_events(2);
    (&mut queue).poll(&mut [wc(0)]).unwrap();
    assert_eq!(events(&inner), (0, 2, 2));
    assert_eq!(events(&outer), (0, 2, 2));
    assert_eq!((queue.key(), queue.injected().seed), (KEY, 1), "it dereferences to the queue");
    assert_eq!(queue.transport().transport().arm(Notify::Next), Ok(Armed::Armed));
    let (_, recorder) = queue.into_parts();
    assert_eq!(recorder.counters().snapshot(), outer.snapshot());
    assert_eq!(events(&inner).0, 1);
}

#[test]
fn a_later_recorder_goes_on_from_where_the_first_one_stopped() {
    let mut counters = Counters::default();
    for queue in 1..3 {
        let script = script().on_poll(Err(PollError::Overrun { dropped: None }));
        let (recorder, counters) = counters.split();
        assert!(Observed::new(&script, recorder).poll(&mut [wc(0)]).is_err());
        assert_eq!((counters.snapshot().polls, counters.snapshot().overruns), (queue, queue));
    }
}

#[test]
fn p08_another_thread_reads_while_threads_poll() {
    const TOTAL: u64 = 20_000;
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
    assert_eq!(counts.completions.of(WcStatus::WR_FLUSH_ERR), TOTAL / 10);
    assert_eq!(counts.completions.total(), TOTAL);
    assert!((1..=2).contains(&counts.failed_polls), "both find it closed, or one: {counts}");
}

#[test]
fn counts_are_printed_as_a_table() {
    let mut counts = Counts::default();
    let zeros = "\
polls                                            0
  empty                                          0
completions                                      0
arms                                             0
events                                           0
  spurious                                       0
overruns                                         0
high-water mark                                  0";
    assert_eq!(counts.to_string(), zeros);
    (counts.polls, counts.empty_polls, counts.failed_polls) = (u64::MAX, 1_000_000, 999);
    (counts.arms, counts.events, counts.spurious_events) = (1000, 100_000, 10);
    let of = |status: u32, count: usize| vec![with(status); count];
    let (mut producer, consumer) = HeapCq::new(4096).unwrap().split();
    let (mut cq, counters) = counted_cq(consumer);
    for batch in [of(6, 12), of(99, 1), of(0, 1234)] {
        producer.push_batch(&batch).unwrap();
    }
    cq.poll(&mut [wc(0); 2048]).unwrap();
    counts.completions = counters.snapshot().completions;
    assert_eq!(
        counts.to_string(),
        "\
polls                               18,446,744,073,709,551,615
  empty                                  1,000,000
  failed                                       999
completions                                  1,247
  success                                    1,234
  memory management operation error             12
  unknown                                        1
arms                                         1,000
events                                     100,000
  spurious                                      10
overruns                                         0
high-water mark                                  0"
    );
}

#[test]
fn counts_are_serialized_with_the_names_of_the_statuses_that_came() {
    let script = script().on_poll(Ok(&[wc(1), with(5), with(5), with(77)]));
    let (mut cq, counters) = counted_cq(&script);
    cq.poll(&mut [wc(0); 8]).unwrap();
    let counts = counters.snapshot();
    let text = serde_json::to_string(&counts).unwrap();
    let completions = r#""completions":{"SUCCESS":1,"WR_FLUSH_ERR":2,"unknown":1}"#;
    assert!(text.contains(completions), "{text}");
    assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), counts);
    let reader = text.as_bytes();
    assert_eq!(serde_json::from_reader::<_, Counts>(reader).unwrap(), counts);

    let refused = |text| serde_json::from_str::<Completions>(text).unwrap_err().to_string();
    assert!(refused(r#"{"NO_ERR":1}"#).starts_with("NO_ERR is not the name of a status"));
    assert!(refused("[1]").contains("numbers of completions by the names of their statuses"));
}
