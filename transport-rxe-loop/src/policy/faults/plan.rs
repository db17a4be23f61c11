//! The decision what happens to a request, made once, when it comes first in its send queue; and the queue pairs that
//! have stopped.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use cq_core::wc::WcStatus;
use cq_verbs::fault::{Dice, Occasion};

use super::{Fault, Faults, Injected};
use crate::protocol::number::{Position, QpIndex, QpNumber};
use crate::sync;

/// The faults of a process in one fabric. Times are in nanoseconds, of the clock of the alarms.
#[derive(Debug)]
pub struct Injector {
    faults: Faults,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The source of the queue pairs' dice.
    dice: Dice,
    /// By table index, so that there are no more than table entries.
    courses: BTreeMap<QpIndex, Course>,
    /// When stopped queue pairs resume, by their numbers.
    stopped: BTreeMap<QpNumber, u64>,
    injected: Injected,
}

/// The faults of one queue pair.
#[derive(Debug)]
struct Course {
    dice: Dice,
    /// One for each rule, in their order.
    occasions: Vec<Occasion>,
    /// The decision for the request at a position.
    plan: Option<(Position, Plan)>,
}

/// A request that is next to be carried out.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The table index of its queue pair.
    pub index: QpIndex,
    pub number: QpNumber,
    /// The number of its responder, if it has one.
    pub peer: Option<QpNumber>,
    pub position: Position,
    pub takes_receive: bool,
    pub now: u64,
}

/// The decision for a request.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    /// The earliest time to begin it.
    begins: u64,
    /// The earliest time at which its peer has a receive.
    fed: u64,
    fails: Option<WcStatus>,
    noise: Noise,
}

/// Faults around a request that is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// Its completion queue overruns.
    pub overruns: bool,
    /// Spurious events are raised.
    pub spurious: bool,
}

/// What happens to a request now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is not begun before this time.
    Later(u64),
    /// Its peer does not answer before this time.
    Unanswered(u64),
    /// Its peer has no receive before this time.
    Starved(u64),
    Fails(WcStatus),
    /// It is carried out.
    Runs(Noise),
}

impl Injector {
    /// Nothing was injected yet.
    pub fn new(faults: Faults) -> Self {
        let (seed, dice) = (faults.seed, Dice::new(faults.seed));
        let injected = Injected { seed, ..Injected::default() };
        let (courses, stopped) = (BTreeMap::new(), BTreeMap::new());
        Self { faults, state: Mutex::new(State { dice, courses, stopped, injected }) }
    }

    /// Adds a new queue pair at a table index.
    pub fn join(&self, index: QpIndex) {
        let mut state = sync::lock(&self.state);
        let dice = state.dice.fork();
        let occasions = self.faults.rules.iter().map(|&(when, _)| Occasion::new(when)).collect();
        state.courses.insert(index, Course { dice, occasions, plan: None });
    }

    /// The counts of injected faults.
    pub fn injected(&self) -> Injected {
        sync::lock(&self.state).injected
    }

    /// What happens to a request, each time that it is tried. Noise is returned once, when it is carried out first.
    pub fn fate(&self, candidate: &Candidate) -> Fate {
        let State { courses, stopped, injected, .. } = &mut *sync::lock(&self.state);
        let Some(course) = courses.get_mut(&candidate.index) else {
            return Fate::Runs(Noise::default());
        };
        if course.plan.is_none_or(|(position, _)| position != candidate.position) {
            let (plan, stops) = course.decide(&self.faults, candidate, injected);
            course.plan = Some((candidate.position, plan));
            if let (Some(until), Some(peer)) = (stops, candidate.peer) {
                let end = stopped.entry(peer).or_default();
                *end = until.max(*end);
            }
        }
        let now = candidate.now;
        stopped.retain(|_, until| now < *until);
        let end_of_stop = |number| stopped.get(&number).copied().unwrap_or(0);
        let Some((_, plan)) = &mut course.plan else { return Fate::Runs(Noise::default()) };
        let begins = plan.begins.max(end_of_stop(candidate.number));
        if now < begins {
            return Fate::Later(begins);
        }
        plan.meet(candidate.peer.map_or(0, end_of_stop), now)
    }
}

impl Plan {
    /// What happens to a request that is begun, whose peer answers from a time on.
    fn meet(&mut self, answers: u64, now: u64) -> Fate {
        match self.fails {
            _ if now < answers => Fate::Unanswered(answers),
            _ if now < self.fed => Fate::Starved(self.fed),
            Some(status) => Fate::Fails(status),
            None => Fate::Runs(std::mem::take(&mut self.noise)),
        }
    }
}

impl Course {
    /// Decides about a request, and when its peer resumes, if it stops.
    fn decide(
        &mut self,
        faults: &Faults,
        candidate: &Candidate,
        injected: &mut Injected,
    ) -> (Plan, Option<u64>) {
        let (mut plan, mut starves, mut stops) = (Plan::default(), None, None);
        let mut late = 0;
        for (&(_, fault), occasion) in faults.rules.iter().zip(&mut self.occasions) {
            let concerns = match fault {
                Fault::Starve(_) => candidate.takes_receive,
                Fault::Stop(_) => candidate.peer.is_some(),
                _ => true,
            };
            if !concerns || !occasion.comes(None, &mut self.dice) {
                continue;
            }
            match fault {
                Fault::Fail(status) => plan.fails = plan.fails.or(Some(status)),
                Fault::Defer(up_to) => late += some_of(up_to, &mut self.dice),
                Fault::Delay(by) => late += nanos(by),
                Fault::Starve(length) => starves = Some(nanos(length)),
                Fault::Stop(length) => stops = Some(nanos(length)),
                Fault::Overrun => plan.noise.overruns = true,
                Fault::Spurious => plan.noise.spurious = true,
            }
        }
        plan.begins = candidate.now + late;
        plan.fed = starves.map_or(0, |length| plan.begins + length);
        injected.failed += u64::from(plan.fails.is_some());
        injected.delayed += u64::from(late > 0);
        injected.starved += u64::from(starves.is_some());
        injected.stopped += u64::from(stops.is_some());
        injected.overrun += u64::from(plan.noise.overruns);
        injected.spurious += u64::from(plan.noise.spurious);
        (plan, stops.map(|length| plan.begins + length))
    }
}

/// In nanoseconds, and at most a year: sums of hundreds do not overflow.
fn nanos(time: Duration) -> u64 {
    const YEAR: u64 = 365 * 24 * 3600 * 1_000_000_000;
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(YEAR)
}

/// A random part of a duration, in larger steps if it is long.
fn some_of(time: Duration, dice: &mut Dice) -> u64 {
    const MOST: u64 = 1 << 32;
    let all = nanos(time);
    let step = all / MOST + 1;
    dice.below(all / step + 1) * step
}

#[cfg(test)]
mod tests;
