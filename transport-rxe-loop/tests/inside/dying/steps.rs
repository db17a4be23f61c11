//! Tests of processes that die at each step, while a process that is connected to them continues and counts.

use std::iter;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::line::Survivor;
use super::work::Far;
use super::*;
use crate::inside::actor::few_or;
use crate::protocol::steps;

impl Step {
    /// The steps of connecting by addresses.
    pub const CONNECTING: [Self; 4] = [Self::Bound, Self::Named, Self::Sent, Self::Received];

    /// All other steps.
    pub const ALL: [Self; 30] = [
        Self::Entered,
        Self::Inherited,
        Self::Left,
        Self::Published,
        Self::Settled,
        Self::Kept,
        Self::Copied,
        Self::Adopted,
        Self::Moved,
        Self::Held,
        Self::Due,
        Self::Counted,
        Self::Taken,
        Self::SetBack,
        Self::Announced,
        Self::Opened,
        Self::Withdrawn,
        Self::Closed,
        Self::Changed,
        Self::Locked,
        Self::Attached,
        Self::Claimed,
        Self::Marked,
        Self::Made,
        Self::Requested,
        Self::Recovered,
        Self::Asked,
        Self::Serving,
        Self::Served,
        Self::Answered,
    ];
}

/// The step at which to die, by its name, at which occurrence, from 0, and by which signal.
const STEP: &str = "DYING_STEP";
const TIME: &str = "DYING_TIME";
const SIGNAL: &str = "DYING_SIGNAL";

/// The occurrences of each step at which to die. The first is used for every step; of the others one, which depends
/// on the process, or with `VERIFY_LONG` all.
const TIMES: [usize; 5] = [0, 1, 3, 10, 40];

/// Those of the `nth` step.
fn times(nth: usize) -> impl Iterator<Item = usize> {
    let (first, others) = TIMES.split_first().unwrap();
    iter::once(*first).chain(one_or_all(others, nth))
}

/// One of these for the `nth` step, which depends on the process, or with `VERIFY_LONG` all.
pub fn one_or_all<T: Copy>(all: &[T], nth: usize) -> impl Iterator<Item = T> {
    let one = (std::process::id() as usize + nth) % all.len();
    few_or(&all[one..=one], all).iter().copied()
}

static END: OnceLock<(Step, usize, Signal)> = OnceLock::new();
/// How often this process has reached the step.
static CAME: AtomicUsize = AtomicUsize::new(0);

/// Kills or stops this process at its end. The signal goes to this thread: one to the process may be delivered to
/// another, and this one would continue for a while.
#[allow(unsafe_code)]
fn at_step(step: Step) {
    if let Some(&(end, time, signal)) = END.get() {
        if step == end && CAME.fetch_add(1, Relaxed) == time {
            // SAFETY: it has no pointers, and these signals have no handlers.
            unsafe { libc::raise(signal.as_raw()) };
        }
    }
}

/// Whether a step occurs only in processes that ask others to move bytes, or that are asked.
pub const fn asks(step: Step) -> bool {
    matches!(step, Step::Asked | Step::Serving | Step::Served | Step::Answered)
}

/// A process that is killed or stopped at a step.
pub fn mortal(fabric: &str, step: Step, time: usize, signal: Signal) -> Actor {
    mortal_at("inside::dying::steps::dies", fabric, step, time, signal)
}

/// The same, for a process that runs a test which calls [`die_there`].
pub fn mortal_at(test: &str, fabric: &str, step: Step, time: usize, signal: Signal) -> Actor {
    let more = if asks(step) { &[(BY_SERVICE, "")][..] } else { &[] };
    mortal_with(test, fabric, (step, time, signal), more)
}

/// The same, with more in its environment.
pub fn mortal_with(
    test: &str,
    fabric: &str,
    (step, time, signal): (Step, usize, Signal),
    more: &[(&str, &str)],
) -> Actor {
    let (name, time) = (format!("{step:?}"), time.to_string());
    let signal = signal.as_raw().to_string();
    let end = [(FABRIC, fabric), (STEP, &*name), (TIME, &*time), (SIGNAL, &*signal)];
    Actor::start(test, &[&end[..], more].concat())
}

/// From here on this process is killed or stopped where its parent said.
pub fn die_there() -> (Step, usize, bool) {
    die_with_parent();
    let name = std::env::var(STEP).expect("started by another test");
    let time = std::env::var(TIME).unwrap().parse().unwrap();
    let mut all = Step::ALL.into_iter().chain(Step::CONNECTING);
    let step = all.find(|step| format!("{step:?}") == name).unwrap();
    let stops = std::env::var(SIGNAL).unwrap() == Signal::STOP.as_raw().to_string();
    END.set((step, time, if stops { Signal::STOP } else { Signal::KILL })).unwrap();
    steps::hook(at_step);
    (step, time, stops)
}

#[test]
#[ignore = "a process of another test"]
fn dies() {
    let (step, time, stops) = die_there();
    let outcome = lives(step, time);
    // If others gave up on it while it was stopped, its operations are refused.
    assert!(stops || outcome.is_ok(), "{outcome:?}");
}

/// Uses everything a little, and recovers from the death of others, if the step requires that.
fn lives(step: Step, time: usize) -> Outcome<()> {
    let context = open();
    let shared = context.device;
    let pd = context.alloc_pd().unwrap();
    let mut far = Far::new(&context, &pd)?;
    (0..LINES).try_for_each(|_| far.obey(&order()))?;
    let mut chance = Chance::new(time as u64);
    // Other processes may recover first: for the first occurrence it waits.
    let deadline = Instant::now() + PATIENCE / 2;
    let is_to_come = || time == 0 && CAME.load(Relaxed) == 0 && Instant::now() < deadline;
    let mut round = 0;
    while round < 60 || is_to_come() {
        far.work(&mut chance)?;
        Near::new(&context, &pd)?.work(&mut chance)?;
        if matches!(step, Step::Inherited | Step::Recovered) && round % 10 == 0 {
            let held = if round % 20 == 0 { Step::Settled } else { Step::Counted };
            let dead =
                mortal_at("inside::dying::steps::leaves_work", &fabric(), held, 5, Signal::KILL);
            let _ended = dead.ended();
            while deaths::look(shared) && shared.shm.others().count() > 1 {}
        }
        round += 1;
    }
    Ok(())
}

/// Uses everything a little in the same fabric, and dies with a completion queue's lock, or with an event that it has
/// not raised.
#[test]
#[ignore = "a process of another test"]
fn leaves_work() {
    die_there();
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let mut chance = Chance::new(7);
    loop {
        Near::new(&context, &pd).unwrap().work(&mut chance).unwrap();
    }
}

#[test]
#[ignore = "a process of another test"]
fn goes_on() {
    die_with_parent();
    let mortal = |step, time| mortal(&fabric(), step, time, Signal::KILL);
    let mut me = Survivor::new(1, 1, || mortal(Step::Attached, 0));
    for (nth, step) in Step::ALL.into_iter().enumerate() {
        for time in times(nth) {
            let victim = mortal(step, time);
            me.lines[0].replace(&me.pd, victim, time % 2 == 0);
            let deadline = Instant::now() + PATIENCE;
            while !me.lines[0].victim.has_ended() {
                me.work();
                assert!(Instant::now() < deadline, "{step:?} {time}: {:#?}", me.lines[0].ends);
            }
            let status = me.lines[0].victim.status();
            let died = status.signal() == Some(Signal::KILL.as_raw());
            assert!(died || status.success(), "{step:?} {time}: {status}");
            assert!(died || time > 0, "nobody comes to {step:?}");
            me.lines[0].expect_the_end(time % 2 == 1);
            me.use_device();
            me.nothing_is_left_of_the_dead();
            assert_eq!(Estate::mine(me.device), me.estate, "{step:?} {time}");
            say(format!("{step:?} {time} {}", if died { "died" } else { "never came" }));
        }
    }
}

#[test]
fn x03_a_death_at_any_step_stops_no_other_and_leaks_nothing() {
    runs_well("steps::goes_on", &[(BY_SERVICE, "")], |_| {});
}
