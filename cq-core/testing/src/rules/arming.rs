//! The rules of arming and events.

use cq_core::transport::{Arm, Armed, Notify};

use super::{Check, EventFixture, Kind, RuleError, Tested, buffer, checks, events, holds, polling};

/// All checks of a transport: those of [polling()], and [N1](cq_core::contract#n1)–[N6](cq_core::contract#n6) of arming,
/// which find breaches of [N7](cq_core::contract#n7) and [N8](cq_core::contract#n8) too. If the device has no solicited
/// completions, or no failures, the checks of [N3](cq_core::contract#n3) that need them are not applicable.
pub fn all<F: EventFixture>() -> impl Iterator<Item = Check> {
    let arming = checks![
        n01_one_event_for_an_arm::<F>,
        n02_arming_raises_nothing::<F>,
        n03_others_raise_nothing::<F>,
        n03_solicited::<F> needs Solicited,
        n03_failure::<F> needs Failure,
        n03_failed_receive::<F> needs FailedReceive,
        n04_never_weakens::<F>,
        n05_an_event_may_find_nothing::<F>,
        n06_no_wake_up_is_lost::<F>,
    ];
    polling::<F>().chain(arming)
}

impl<F: EventFixture> Tested<F> {
    fn arm(&mut self, on: Notify) -> Result<Armed, RuleError> {
        let armed = self.fixture.queue().arm(on);
        armed.map_err(|_| RuleError { rule: "N1", how: "the queue can't be armed" })
    }

    /// Takes all events, and returns how many there were.
    fn events(&mut self) -> Result<usize, RuleError> {
        events(&mut self.fixture)
    }

    /// Polls until the queue is empty. Returns the number of completions.
    fn drain(&mut self) -> Result<usize, RuleError> {
        let (mut out, mut count) = (buffer::<_, 8>(), 0);
        loop {
            match self.poll(&mut out)? {
                0 => return Ok(count),
                more => count += more,
            }
        }
    }

    /// Takes the events. There must be one if it `is_due`.
    fn is_woken(&mut self, is_due: bool) -> Result<(), RuleError> {
        let is_woken = self.events()? > 0;
        holds(is_woken || !is_due, "N6", "a completion in an armed queue woke nobody")
    }

    /// Goes to sleep: polls, takes the events, arms, polls again. The next completion must raise an event.
    fn sleeps(&mut self) -> Result<(), RuleError> {
        self.drain()?;
        self.events()?;
        if self.arm(Notify::Next)? == Armed::MayHaveMissed {
            holds(self.drain()? == 0, "P2", "a poll left something in the queue")?;
        }
        self.complete_for(Notify::Next);
        self.is_woken(true)?;
        holds(self.drain()? == 1, "N6", "the completion of an event was not there")
    }
}

/// A queue that is not armed raises no event. An armed queue raises one, at the next completion.
fn n01_one_event_for_an_arm<F: EventFixture>() -> Result<(), RuleError> {
    let mut tested = Tested::<F>::new();
    tested.complete_for(Notify::Next);
    holds(tested.events()? == 0, "N1", "a queue that was not armed raised an event")?;
    tested.drain()?;
    for _ in 0..3 {
        let _empty = tested.arm(Notify::Next)?;
        holds(tested.events()? == 0, "N1", "arming an empty queue raised an event")?;
        tested.complete_for(Notify::Next);
        let how = "an armed queue did not raise one event at the next completion";
        holds(tested.events()? == 1, "N1", how)?;
        tested.complete_for(Notify::Next);
        holds(tested.events()? == 0, "N1", "an arm raised a second event")?;
        tested.drain()?;
    }
    Ok(())
}

/// Arming a queue that holds completions raises no event. It returns [`Armed::MayHaveMissed`].
fn n02_arming_raises_nothing<F: EventFixture>() -> Result<(), RuleError> {
    let mut tested = Tested::<F>::new();
    tested.complete_for(Notify::Next);
    let armed = tested.arm(Notify::Next)?;
    holds(tested.events()? == 0, "N2", "arming raised an event for what had come before")?;
    let is_told = armed == Armed::MayHaveMissed;
    holds(is_told, "N2", "arming a queue that held a completion said that it is safe to sleep")?;
    holds(tested.drain()? == 1, "N2", "what came before an arm was lost")
}

/// A queue armed for solicited completions, which others came into since.
fn solicited<F: EventFixture>() -> Result<Tested<F>, RuleError> {
    let mut tested = Tested::<F>::new();
    let _empty = tested.arm(Notify::Solicited)?;
    for kind in F::KINDS.iter().filter(|kind| !kind.is_urgent()) {
        tested.complete(*kind);
        let how = "an arm for solicited completions raised an event for another one";
        holds(tested.events()? == 0, "N3", how)?;
        tested.drain()?;
    }
    Ok(tested)
}

/// A queue armed for solicited completions raises no event for those that are not urgent.
fn n03_others_raise_nothing<F: EventFixture>() -> Result<(), RuleError> {
    solicited::<F>().map(drop)
}

/// A queue armed for solicited completions raises its event for one of this kind.
fn raises<F: EventFixture>(kind: Kind) -> Result<(), RuleError> {
    let mut tested = solicited::<F>()?;
    tested.complete(kind);
    let how = "an arm for solicited completions raised none for one, or a failure";
    holds(tested.events()? == 1, "N3", how)
}

fn n03_solicited<F: EventFixture>() -> Result<(), RuleError> {
    raises::<F>(Kind::Solicited)
}

fn n03_failure<F: EventFixture>() -> Result<(), RuleError> {
    raises::<F>(Kind::Failure)
}

fn n03_failed_receive<F: EventFixture>() -> Result<(), RuleError> {
    raises::<F>(Kind::FailedReceive)
}

/// Arming never weakens: [`Notify::Next`] is in force, whether armed before or after [`Notify::Solicited`].
fn n04_never_weakens<F: EventFixture>() -> Result<(), RuleError> {
    let mut tested = Tested::<F>::new();
    for arms in [[Notify::Next, Notify::Solicited], [Notify::Solicited, Notify::Next]] {
        for on in arms {
            let _empty = tested.arm(on)?;
        }
        tested.complete_for(Notify::Next);
        holds(tested.events()? == 1, "N4", "the strongest of two arms was not in force")?;
        tested.drain()?;
    }
    Ok(())
}

/// An event may find the queue empty. The next arm works as before.
fn n05_an_event_may_find_nothing<F: EventFixture>() -> Result<(), RuleError> {
    let mut tested = Tested::<F>::new();
    for on in [Notify::Next, Notify::Solicited, Notify::Next] {
        let _empty = tested.arm(on)?;
        if tested.complete_for(on) {
            // Poll before the event is taken.
            holds(tested.drain()? == 1, "N5", "a completion of an armed queue was lost")?;
            holds(tested.events()? == 1, "N5", "the event of an arm went with its completion")?;
            holds(tested.drain()? == 0, "N5", "a completion came twice")?;
        }
    }
    Ok(())
}

/// After [`Armed::Armed`], or after an armed queue was polled empty, the next completion raises an event, whatever
/// happened before.
fn n06_no_wake_up_is_lost<F: EventFixture>() -> Result<(), RuleError> {
    const STEPS: u32 = 6;
    const CHOICES: u32 = 5;
    for program in 0..CHOICES.pow(STEPS) {
        let (mut tested, mut left) = (Tested::<F>::new(), program);
        // What is armed, whether an event must be unread, and how many completions there may be.
        let (mut armed, mut is_due, mut held) = (None, false, 0);
        for _ in 0..STEPS {
            let choice = left % CHOICES;
            match choice {
                0 if held < F::CAPACITY - 1 => {
                    tested.complete_for(Notify::Next);
                    is_due |= armed.take_if(|on| *on == Notify::Next).is_some();
                    held += 1;
                }
                1 => held -= tested.poll(&mut buffer::<_, 1>())?.min(held),
                2 | 3 => {
                    let on = if choice == 2 { Notify::Next } else { Notify::Solicited };
                    let _may_have_missed = tested.arm(on)?;
                    armed = armed.max(Some(on));
                }
                _ => tested.is_woken(core::mem::take(&mut is_due))?,
            }
            left /= CHOICES;
        }
        // An arm is good until its event, whether the queue was polled empty or not.
        if program % 2 == 0 {
            tested.drain()?;
        }
        tested.is_woken(is_due)?;
        if armed.is_some_and(|on| tested.complete_for(on)) {
            tested.is_woken(true)?;
        }
        tested.sleeps()?;
    }
    Ok(())
}
