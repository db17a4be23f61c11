//! Several producers and one sleeper: what is published behind an unpublished slot wakes (N6), so does the
//! overrun, also by the last entry before it (O5); one arm gives one event (N1), and a late producer does not
//! erase a later arm.

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::Tagged;
use cq_core::queue::mpsc::{HeapCq, OverrunError, SharedProducer};
use cq_core::sync::Site;
use cq_core::transport::{Arm, Armed, Events, Notify, PollError, Signal};
use cq_core::wc::Wc;
use verify_loom::channel::{Channel, EventCount, LOST, take_some};
use verify_loom::harness::model;
use verify_loom::shared::{Taken, of};
use verify_loom::threads::spawn;

const TOO_MANY: &str = "woken by what was not asked for";

/// What a producer pushes.
#[derive(Clone, Copy)]
enum What {
    Receive,
    SolicitedReceive,
    /// One more than a queue of one holds.
    Overrun,
}
use What::{Overrun, Receive, SolicitedReceive};

impl What {
    fn push<S: Signal>(self, which: u64, producer: &mut SharedProducer<'_, Wc, S>) {
        let pushed = match self {
            Receive | SolicitedReceive => {
                let solicited = matches!(self, SolicitedReceive);
                producer.push_or_overrun(&Tagged { wc: of(which, 1), tag: 0, solicited })
            }
            Overrun => producer.push_batch_or_overrun(&[1, 2].map(|nth| of(which, nth))),
        };
        assert!(!matches!(pushed, Err(OverrunError::Resized)));
    }
}

/// The consumer arms, for more each time, while all push. What was pushed is what each arm is for.
fn race(arms: &[Notify], pushes: &'static [What]) {
    let (queue, events) = (HeapCq::new(pushes.len()).unwrap(), EventCount::default());
    let (last, mut consumer) = queue.split_with(events.clone());
    let push = |(which, what): (u64, &'static What)| {
        spawn(&last, move |mut producer| {
            what.push(which, &mut producer);
            producer
        })
    };
    let producers: Vec<_> = (0..).zip(pushes).map(push).collect();
    let asleep = arms.iter().filter(|&&on| consumer.arm(on).unwrap() == Armed::Armed).count();
    let _producers: Vec<_> = producers.into_iter().map(|it| it.join().unwrap()).collect();
    assert!(events.raised() as usize <= arms.len(), "{TOO_MANY}");
    assert!(asleep == 0 || events.raised() > 0, "{LOST}");
}

#[test]
fn n06_who_is_armed_is_woken() {
    use Notify::{Next, Solicited};
    let plans: [(&str, &[Notify], &[What]); 4] = [
        ("two producers, armed for any", &[Next], &[Receive, Receive]),
        ("two producers, solicited, then any", &[Solicited, Next], &[SolicitedReceive, Receive]),
        // The solicited one is behind an unpublished slot, or two.
        ("two producers, one solicited", &[Solicited], &[Receive, SolicitedReceive]),
        ("three producers, one solicited", &[Solicited], &[Receive, Receive, SolicitedReceive]),
    ];
    for (name, arms, pushes) in plans {
        let model = model(name, move || race(arms, pushes));
        if pushes.len() == 2 {
            model.must_fail_without([Site::PushFence, Site::ArmFence], LOST);
        }
    }
}

/// The consumer takes the event of its arm for any, and arms for solicited, while the second producer may be
/// about to raise that very event. A solicited completion then wakes.
fn arm_again() {
    let (queue, mut channel) = (HeapCq::new(4).unwrap(), Channel::new(2));
    let (mut last, mut consumer) = queue.split_with(channel.clone());
    let _may_have_missed = consumer.arm(Notify::Next).unwrap();
    let producers = [0, 1].map(|which| {
        spawn(&last, move |mut producer| {
            Receive.push(which, &mut producer);
            producer
        })
    });
    let mut events = usize::from(channel.take_event().unwrap().is_some());
    let again = events == 1;
    if again {
        let _may_have_missed = consumer.arm(Notify::Solicited).unwrap();
    }
    let _producers = producers.map(|producer| producer.join().unwrap());
    last.push(&Tagged { wc: of(0, 2), tag: 0, solicited: true }).unwrap();
    while channel.take_event().unwrap().is_some() {
        events += 1;
    }
    assert_eq!(events, 1 + usize::from(again), "{LOST}");
}

#[test]
fn n06_a_late_producer_erases_no_later_arm() {
    model("two producers, armed again", arm_again);
}

/// Sleeps for `on` until both, or the solicited one, were taken, or the queue has overrun.
fn sleep_and_take(on: Notify, pushes: [What; 2]) {
    let capacity = if matches!(pushes[1], Overrun) { 1 } else { 2 };
    let (queue, mut channel) = (HeapCq::new(capacity).unwrap(), Channel::new(2));
    let (first, consumer) = queue.split_with(channel.clone());
    let mut cq = CompletionQueue::new(consumer);
    let producers = [0, 1].map(|which| {
        spawn((&first, &channel), move |(mut producer, channel)| {
            pushes[which].push(which as u64, &mut producer);
            channel.hang_up();
            producer
        })
    });
    let (mut taken, mut buffer) = (Taken::default(), [Wc::default(); 2]);
    loop {
        match take_some(&mut cq, &mut channel, on, &mut buffer) {
            Ok(count) => {
                taken.add(&buffer[..count]);
                let is_last = on == Notify::Solicited && buffer[..count].contains(&of(1, 1));
                if !matches!(pushes[1], Overrun) && (is_last || taken.count() == 2) {
                    break;
                }
            }
            Err(WaitError::Poll(PollError::Overrun { .. })) => break,
            Err(other) => panic!("{other:?}"),
        }
    }
    let _producers = producers.map(|producer| producer.join().unwrap());
}

#[test]
fn n06_wait_ends_with_everything_or_the_overrun() {
    use Notify::{Next, Solicited};
    model("wait for two producers", || sleep_and_take(Next, [Receive, Receive]))
        .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
    for (name, on, second) in [
        ("wait for the solicited one of two", Solicited, SolicitedReceive),
        ("overrun wakes who waits for any, two producers", Next, Overrun),
        ("overrun wakes who waits for solicited, two producers", Solicited, Overrun),
    ] {
        model(name, move || sleep_and_take(on, [Receive, second]));
    }
}
