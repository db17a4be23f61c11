//! The rules of software queues: their capacity, their overrun, their end.

use core::array;

use cq_core::queue::{BatchError, DroppedError, End, PushError};
use cq_core::transport::{Arm, Armed, Capacity, Notify, PollCq, PollError};

use super::software::Sides;
use super::{
    Check, Consume, Fixture, Kind, Numbered, Produce, RuleError, Software, all, buffer, checks,
    events, events_of, holds, poll,
};

/// The checks of a software queue: those of a [transport](all), [O1](cq_core::contract#o1), [O3](cq_core::contract#o3),
/// [O5](cq_core::contract#o5), [O7](cq_core::contract#o7), [S1](cq_core::contract#s1)–[S4](cq_core::contract#s4) and
/// [S8](cq_core::contract#s8). They stand in an order in which a fault is found by the rule that it breaks.
pub fn software<S: Software>() -> impl Iterator<Item = Check> {
    const { assert!(S::CAPACITY >= 2 && S::CAPACITY <= 16, "the checks need a queue of 2 to 16") };
    let capacity = checks![o01_the_capacity_is_kept::<S>, o07_polled_slots_are_free::<S>];
    let end = checks![
        s01_full_is_no_overrun::<S>,
        o03_the_overrun_comes_last::<S>,
        o05_an_overrun_wakes::<S>,
        s02_closed_by_the_producer::<S>,
        s03_nobody_polls::<S>,
        s04_failed_by_the_consumer::<S>,
        s08_as_pushed::<S>,
    ];
    capacity.chain(all::<Sides<S>>()).chain(end)
}

/// More entries than any queue here stores.
const MANY: usize = 64;

type Pushed<S> = <<S as Software>::Entry as Numbered>::Pushed;

/// What is pushed for the completion with this number, which is not urgent.
fn numbered<S: Software>(number: u64) -> Pushed<S> {
    S::Entry::pushed(Kind::Receive, number)
}

/// A batch of those from this number on.
fn batch<S: Software, const N: usize>(from: u64) -> [Pushed<S>; N] {
    array::from_fn(|nth| numbered::<S>(from + nth as u64))
}

/// Pushes until the queue is full. Returns the number of entries, from 0 on.
fn fill<S: Software>(sides: &mut Sides<S>) -> Result<u64, RuleError> {
    for number in 0..MANY as u64 {
        match sides.producer.push(&numbered::<S>(number)) {
            Ok(()) => {}
            Err(PushError::Full) => {
                let how = "a queue was full with fewer entries than its capacity";
                holds(number >= S::CAPACITY as u64, "O1", how)?;
                return Ok(number);
            }
            Err(_) => {
                return Err(RuleError { rule: "S1", how: "a full queue said that it has ended" });
            }
        }
    }
    Err(RuleError { rule: "S1", how: "a queue is never full" })
}

/// Polls what is stored, and nothing more: the entries from one number on, up to another.
fn drain<S: Software>(
    queue: &mut S::Consumer,
    numbers: core::ops::Range<u64>,
    rule: &'static str,
    how: &'static str,
) -> Result<(), RuleError> {
    let mut out = buffer::<S::Entry, MANY>();
    let (mut count, wanted) = (0, (numbers.end - numbers.start) as usize);
    while count < wanted {
        match queue.poll_into(&mut out[..wanted - count]) {
            Ok(0) | Err(_) => return Err(RuleError { rule, how }),
            Ok(more) => {
                let from = numbers.start + count as u64;
                let is_next = out[..more]
                    .iter()
                    .zip(from..)
                    .all(|(entry, number)| *entry == S::Entry::polled(Kind::Receive, number));
                holds(is_next, rule, how)?;
                count += more;
            }
        }
    }
    Ok(())
}

/// After everything stored was polled, every poll fails with this error, for ever.
fn ends<Q: PollCq<Entry: Numbered>>(
    queue: &mut Q,
    error: PollError,
    rule: &'static str,
) -> Result<(), RuleError> {
    for _ in 0..3 {
        let how = "a poll of a queue that has ended did not say so, or not for ever";
        holds(queue.poll_into(&mut buffer::<_, 2>()) == Err(error), rule, how)?;
        let how = "a poll into an empty slice of a queue that has ended failed";
        holds(queue.poll_into(&mut []) == Ok(0), "P6", how)?;
    }
    let is_told = queue.poll_into(&mut buffer::<_, 1>()) == Err(error);
    holds(is_told, rule, "a queue forgot that it has ended")
}

/// Every push fails, and says how the queue has ended.
fn refuses<S: Software>(
    producer: &mut S::Producer,
    end: End,
    rule: &'static str,
) -> Result<(), RuleError> {
    let (one, batch) = (numbered::<S>(40), batch::<S, 2>(40));
    let how = "a push into a queue that has ended was not dropped, or was said to have overrun it";
    holds(producer.push_or_overrun(&one) == Err(DroppedError { lost: 1, end }), rule, how)?;
    let dropped = producer.push_batch_or_overrun(&batch);
    holds(dropped == Err(DroppedError { lost: 2, end }), rule, how)?;
    let (how, why) = ("a queue was not said to have ended as it has", PushError::Ended(end));
    holds(producer.end() == Some(end), rule, how)?;
    holds(producer.push(&one) == Err(why), rule, how)?;
    holds(producer.push_batch(&batch) == Err(BatchError { stored: 0, why }), rule, how)?;
    holds(producer.push_batch(&[]).is_ok(), rule, "an empty batch failed")
}

/// Arms an empty queue.
fn sleeps<S: Software>(sides: &mut Sides<S>, on: Notify) -> Result<(), RuleError> {
    let is_armed = sides.consumer.arm(on) == Ok(Armed::Armed);
    holds(is_armed, "N2", "an empty queue can't be armed, or is not said to be empty")
}

/// A queue has the capacity that was asked for, and says so. That many unpolled entries do not overrun it.
fn o01_the_capacity_is_kept<S: Software>() -> Result<(), RuleError> {
    let mut sides = Sides::<S>::new();
    let is_told = sides.consumer.capacity() >= S::CAPACITY;
    holds(is_told, "O1", "a queue says that its capacity is less than was asked for")?;
    let mut next = 0;
    for _ in 0..6 {
        let start = next;
        for _ in 0..sides.consumer.capacity() {
            let stored = sides.producer.push_or_overrun(&numbered::<S>(next));
            holds(stored.is_ok(), "O1", "a queue overran within its capacity")?;
            next += 1;
        }
        let how = "an entry within the capacity was lost";
        drain::<S>(&mut sides.consumer, start..next, "O1", how)?;
    }
    Ok(())
}

/// Stored entries are polled first, in order. Then every poll fails, with the number of dropped ones.
fn o03_the_overrun_comes_last<S: Software>() -> Result<(), RuleError> {
    let mut sides = Sides::<S>::new();
    let stored = fill(&mut sides)?;
    let mut total = 0;
    let mut drops = |lost, pushed| {
        total += lost;
        let how = "an entry that does not fit was not counted as dropped";
        holds(pushed == Err(DroppedError { lost, end: End::Overrun { dropped: total } }), "O3", how)
    };
    drops(1, sides.producer.push_or_overrun(&numbered::<S>(stored)))?;
    drops(3, sides.producer.push_batch_or_overrun(&batch::<S, 3>(stored)))?;
    let how = "an entry that was stored before the overrun was lost";
    drain::<S>(&mut sides.consumer, 0..1, "O3", how)?;
    drops(1, sides.producer.push_or_overrun(&numbered::<S>(stored)))?;
    let end = End::Overrun { dropped: total };
    let pushed = sides.producer.push(&numbered::<S>(stored));
    let how_stored = "a queue that has overrun stored an entry, or was not said to have overrun";
    holds(pushed == Err(PushError::Ended(end)), "O3", how_stored)?;
    // It stays what it is, also if it is failed.
    sides.consumer.fail();
    drain::<S>(&mut sides.consumer, 1..stored, "O3", how)?;
    ends(&mut sides.consumer, PollError::Overrun { dropped: Some(total) }, "O3")
}

/// An overrun wakes a consumer, whatever it armed for.
fn o05_an_overrun_wakes<S: Software>() -> Result<(), RuleError> {
    for on in [Notify::Next, Notify::Solicited] {
        let mut sides = Sides::<S>::new();
        let stored = fill(&mut sides)?;
        let _may_have_missed = sides.consumer.arm(on);
        holds(events(&mut sides)? == 0, "N2", "arming raised an event for what had come before")?;
        let _dropped = sides.producer.push_or_overrun(&numbered::<S>(stored));
        holds(events(&mut sides)? == 1, "O5", "an overrun did not raise one event")?;
    }
    Ok(())
}

/// No more entries outstanding than the capacity never overrun a queue: the slot of a polled entry is free when the poll
/// returns.
fn o07_polled_slots_are_free<S: Software>() -> Result<(), RuleError> {
    let mut sides = Sides::<S>::new();
    let (capacity, mut pushed, mut polled) = (S::CAPACITY as u64, 0, 0);
    for round in 0..8 * capacity {
        while pushed - polled < capacity {
            let stored = sides.producer.push_or_overrun(&numbered::<S>(pushed));
            let how = "a queue overran though an entry was polled for each that was pushed";
            holds(stored.is_ok(), "O7", how)?;
            pushed += 1;
        }
        let next = polled + 1 + round % capacity;
        drain::<S>(&mut sides.consumer, polled..next, "O7", "an outstanding entry was lost")?;
        polled = next;
    }
    Ok(())
}

/// A full queue takes nothing and does not overrun. A batch is stored as far as it fits, with one event.
fn s01_full_is_no_overrun<S: Software>() -> Result<(), RuleError> {
    let mut sides = Sides::<S>::new();
    sleeps(&mut sides, Notify::Next)?;
    let stored = sides.producer.push_batch(&batch::<S, 2>(0));
    holds(stored == Ok(()), "S1", "a batch that fits was not stored")?;
    holds(events(&mut sides)? == 1, "S1", "a batch did not raise one event")?;

    let mut sides = Sides::<S>::new();
    let stored = fill(&mut sides)?;
    let _may_have_missed = sides.consumer.arm(Notify::Next);
    for _ in 0..2 {
        let producer = &mut sides.producer;
        let how = "a full queue did not say that it is full";
        holds(producer.push(&numbered::<S>(50)) == Err(PushError::Full), "S1", how)?;
        let full = Err(BatchError { stored: 0, why: PushError::Full });
        holds(producer.push_batch(&batch::<S, 2>(50)) == full, "S1", how)?;
        let how = "an empty batch did not fit into a full queue";
        holds(producer.push_batch(&[]) == Ok(()), "S1", how)?;
    }
    holds(events(&mut sides)? == 0, "S1", "an entry that was refused raised an event")?;
    let how = "a push that was refused changed the queue";
    drain::<S>(&mut sides.consumer, 0..stored, "S1", how)?;
    holds(poll(&mut sides.consumer, &mut buffer::<_, 2>())? == 0, "S1", how)?;

    let how = "a batch was not stored as far as it fits, or not said to be";
    let Err(BatchError { stored: fitting, why: PushError::Full }) =
        sides.producer.push_batch(&batch::<S, MANY>(0))
    else {
        return Err(RuleError { rule: "S1", how });
    };
    holds((S::CAPACITY..MANY).contains(&fitting), "S1", how)?;
    holds(events(&mut sides)? == 1, "S1", "a batch did not raise one event")?;
    drain::<S>(&mut sides.consumer, 0..fitting as u64, "S1", how)?;
    holds(poll(&mut sides.consumer, &mut buffer::<_, 2>())? == 0, "S1", how)
}

/// A queue without a producer is closed: stored entries are polled first. Who waits is woken.
fn s02_closed_by_the_producer<S: Software>() -> Result<(), RuleError> {
    for stored in 0..2 {
        let mut sides = Sides::<S>::new();
        sleeps(&mut sides, Notify::Solicited)?;
        (0..stored).for_each(|number| sides.complete(Kind::Receive, number));
        let Sides { producer, mut consumer, mut channel } = sides;
        drop(producer);
        let woken = events_of(&mut channel, consumer.key())?;
        holds(woken == 1, "S2", "the end of a queue did not wake who waits")?;
        let how = "an entry that was stored before the end was lost";
        drain::<S>(&mut consumer, 0..stored, "S2", how)?;
        ends(&mut consumer, PollError::Closed, "S2")?;
    }
    Ok(())
}

/// Without a consumer every push fails.
fn s03_nobody_polls<S: Software>() -> Result<(), RuleError> {
    let mut sides = Sides::<S>::new();
    sides.complete(Kind::Receive, 0);
    let Sides { mut producer, consumer, channel: _channel } = sides;
    holds(producer.end().is_none(), "S3", "a consumer that is there is said to be gone")?;
    drop(consumer);
    refuses::<S>(&mut producer, End::Abandoned, "S3")
}

/// Once the consumer has failed a queue, nothing is stored; stored entries are polled first. Who waits is woken, armed or
/// not.
fn s04_failed_by_the_consumer<S: Software>() -> Result<(), RuleError> {
    for is_armed in [false, true] {
        let mut sides = Sides::<S>::new();
        if is_armed {
            sleeps(&mut sides, Notify::Solicited)?;
        }
        (0..2).for_each(|number| sides.complete(Kind::Receive, number));
        sides.consumer.fail();
        holds(events(&mut sides)? > 0, "S4", "the failure of a queue woke nobody")?;
        refuses::<S>(&mut sides.producer, End::Failed, "S4")?;
        let how = "an entry that was stored before the failure was lost";
        drain::<S>(&mut sides.consumer, 0..2, "S4", how)?;
        ends(&mut sides.consumer, PollError::Failed, "S4")?;
    }
    Ok(())
}

/// An entry is polled as it was pushed, alone or in a batch, and is urgent as its type says.
fn s08_as_pushed<S: Software>() -> Result<(), RuleError> {
    const KINDS: [Kind; 4] = [Kind::Receive, Kind::Send, Kind::Failure, Kind::FailedReceive];
    let mut sides = Sides::<S>::new();
    for number in (0..u64::BITS).map(|bit| 1 << bit).chain([0, u64::MAX]) {
        for kind in KINDS {
            sleeps(&mut sides, Notify::Solicited)?;
            let pushed = [S::Entry::pushed(kind, number), S::Entry::pushed(kind, !number)];
            let is_stored = sides.producer.push(&pushed[0]).is_ok()
                && sides.producer.push_batch(&pushed[1..]).is_ok();
            holds(is_stored, "O1", "a queue overran within its capacity")?;
            let is_woken = events(&mut sides)? > 0;
            holds(is_woken == kind.is_urgent(), "S8", "an entry is not urgent as its type says")?;
            let mut out = buffer::<_, 2>();
            let count = poll(&mut sides.consumer, &mut out)?;
            let is_whole = out == [number, !number].map(|number| S::Entry::polled(kind, number));
            holds(count == 2 && is_whole, "S8", "an entry was not polled as it was pushed")?;
            // Disarms it.
            sides.complete(Kind::Failure, 0);
            events(&mut sides)?;
            poll(&mut sides.consumer, &mut out)?;
        }
    }
    Ok(())
}
