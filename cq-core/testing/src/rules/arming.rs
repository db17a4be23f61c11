//! The rules of arming and events.

use cq_core::transport::{Arm, Armed, Notify};

use super::{Broken, Fixture, Kind, buffer, events, holds, poll};

fn arm<F: Fixture>(fixture: &mut F, on: Notify) -> Result<Armed, Broken> {
    let armed = fixture.queue().arm(on);
    armed.map_err(|_| Broken { rule: "N1", how: "the queue can't be armed" })
}

/// Polls until the queue is empty. Returns the number of completions.
fn drain<F: Fixture>(fixture: &mut F) -> Result<usize, Broken> {
    let (mut out, mut count) = (buffer::<_, 8>(), 0);
    loop {
        match poll(fixture.queue(), &mut out)? {
            0 => return Ok(count),
            more => count += more,
        }
    }
}

/// A queue that is not armed raises no event. An armed queue raises one, at the next completion.
///
/// # Errors
/// The queue raises more events, or none.
pub fn n01_one_event_for_an_arm<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    fixture.complete(Kind::Receive, 1);
    holds(events(fixture)? == 0, "N1", "a queue that was not armed raised an event")?;
    drain(fixture)?;
    for round in 1..4 {
        let _empty = arm(fixture, Notify::Next)?;
        holds(events(fixture)? == 0, "N1", "arming an empty queue raised an event")?;
        fixture.complete(Kind::Send, round);
        let how = "an armed queue did not raise one event at the next completion";
        holds(events(fixture)? == 1, "N1", how)?;
        fixture.complete(Kind::Receive, round);
        holds(events(fixture)? == 0, "N1", "an arm raised a second event")?;
        drain(fixture)?;
    }
    Ok(())
}

/// Arming a queue that holds completions raises no event. It returns [`Armed::MayHaveMissed`].
///
/// # Errors
/// The arm raises an event, or returns [`Armed::Armed`], or the completion is lost.
pub fn n02_arming_raises_nothing<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    fixture.complete(Kind::Receive, 1);
    let armed = arm(fixture, Notify::Next)?;
    holds(events(fixture)? == 0, "N2", "arming raised an event for what had come before")?;
    let is_told = armed == Armed::MayHaveMissed;
    holds(is_told, "N2", "arming a queue that held a completion said that it is safe to sleep")?;
    holds(drain(fixture)? == 1, "N2", "what came before an arm was lost")
}

/// A queue armed for solicited completions raises its event only for those and for failures. `kind` is one of the two.
///
/// # Errors
/// The queue raises an event for another completion, or none for `kind`.
pub fn n03_solicited<F: Fixture>(fixture: &mut F, kind: Kind) -> Result<(), Broken> {
    let _empty = arm(fixture, Notify::Solicited)?;
    for kind in [Kind::Receive, Kind::Send] {
        fixture.complete(kind, 1);
        let count = events(fixture)?;
        let how = "an arm for solicited completions raised an event for another one";
        holds(count == 0, "N3", how)?;
        drain(fixture)?;
    }
    fixture.complete(kind, 2);
    let how = "an arm for solicited completions raised none for one, or a failure";
    holds(events(fixture)? == 1, "N3", how)
}

/// Arming never weakens: [`Notify::Next`] is in force, whether armed before or after [`Notify::Solicited`].
///
/// # Errors
/// The next completion does not raise one event.
pub fn n04_never_weakens<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    for arms in [[Notify::Next, Notify::Solicited], [Notify::Solicited, Notify::Next]] {
        for on in arms {
            let _empty = arm(fixture, on)?;
        }
        fixture.complete(Kind::Receive, 1);
        holds(events(fixture)? == 1, "N4", "the strongest of two arms was not in force")?;
        drain(fixture)?;
    }
    Ok(())
}

/// An event may find the queue empty. The next arm works as before.
///
/// # Errors
/// A completion or an event is lost, or comes twice.
pub fn n05_an_event_may_find_nothing<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    for on in [Notify::Next, Notify::Solicited, Notify::Next] {
        let _empty = arm(fixture, on)?;
        fixture.complete(Kind::Solicited, 1);
        // Poll before the event is taken.
        holds(drain(fixture)? == 1, "N5", "a completion of an armed queue was lost")?;
        holds(events(fixture)? == 1, "N5", "the event of an arm went with its completion")?;
        holds(drain(fixture)? == 0, "N5", "a completion came twice")?;
    }
    Ok(())
}

/// After [`Armed::Armed`], or after an armed queue was polled empty, the next completion raises an event, whatever
/// happened before.
///
/// # Errors
/// Some sequence of steps loses that event.
pub fn n06_no_wake_up_is_lost<F: Fixture>(new: impl Fn() -> F) -> Result<(), Broken> {
    const STEPS: u32 = 6;
    const CHOICES: u32 = 5;
    for program in 0..CHOICES.pow(STEPS) {
        let (mut fixture, mut left) = (new(), program);
        // What is armed, whether an event must be unread, and how many completions there may be.
        let (mut armed, mut is_due, mut held) = (None, false, 0);
        for number in 0..u64::from(STEPS) {
            let choice = left % CHOICES;
            match choice {
                0 if held < F::CAPACITY - 1 => {
                    fixture.complete(Kind::Receive, number);
                    is_due |= armed.take_if(|on| *on == Notify::Next).is_some();
                    held += 1;
                }
                1 => held -= poll(fixture.queue(), &mut buffer::<_, 1>())?.min(held),
                2 | 3 => {
                    let on = if choice == 2 { Notify::Next } else { Notify::Solicited };
                    let _may_have_missed = arm(&mut fixture, on)?;
                    armed = armed.max(Some(on));
                }
                _ => is_woken(&mut fixture, core::mem::take(&mut is_due))?,
            }
            left /= CHOICES;
        }
        // An arm is good until its event, whether the queue was polled empty or not.
        if program % 2 == 0 {
            drain(&mut fixture)?;
        }
        is_woken(&mut fixture, is_due)?;
        if armed.is_some() {
            fixture.complete(Kind::Solicited, u64::from(STEPS));
            is_woken(&mut fixture, true)?;
        }
        sleeps(&mut fixture)?;
    }
    Ok(())
}

/// Takes the events. There must be one if it `is_due`.
fn is_woken<F: Fixture>(fixture: &mut F, is_due: bool) -> Result<(), Broken> {
    let is_woken = events(fixture)? > 0;
    holds(is_woken || !is_due, "N6", "a completion in an armed queue woke nobody")
}

/// Goes to sleep: polls, takes the events, arms, polls again. The next completion must raise an event.
fn sleeps<F: Fixture>(fixture: &mut F) -> Result<(), Broken> {
    drain(fixture)?;
    events(fixture)?;
    if arm(fixture, Notify::Next)? == Armed::MayHaveMissed {
        holds(drain(fixture)? == 0, "P2", "a poll left something in the queue")?;
    }
    fixture.complete(Kind::Send, 1);
    is_woken(fixture, true)?;
    holds(drain(fixture)? == 1, "N6", "the completion of an event was not there")
}
