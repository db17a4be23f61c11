//! Runs a program on two devices step by step, and reports the first difference.

use std::fmt;
use std::time::{Duration, Instant};

use super::dialect::{Dialect, Omission};
use super::machine::{Machine, Outcome};
use super::program::{Program, Step};
use super::seen::Completed;
use crate::device::Device;

/// More timers than a step starts: a device may pause at least so often, even on a busy machine.
const DEADLINES: usize = 64;

/// Runs `program` on the reference `R` and on the device `D`, which has `patience` for each step. Returns the completions.
///
/// # Errors
/// The first difference.
pub fn compare<R: Device, D: Device>(
    program: &Program,
    dialect: &'static Dialect,
    patience: Duration,
) -> Result<Completed, String> {
    let mut reference = Machine::<R>::new(&program.shape, dialect);
    let mut device = Machine::<D>::new(&program.shape, dialect);
    // At the end everything is polled.
    let drains = (0..4).map(|cq| Step::Poll(cq, usize::MAX));
    for (nth, step) in program.steps.iter().cloned().chain(drains).enumerate() {
        let first = reference.step(&step, None);
        let moderates = program.steps.iter().any(|step| matches!(step, Step::Moderate(..)));
        for _ in 0..if program.shape.impatient || moderates { DEADLINES } else { 1 } {
            reference.pause();
        }
        let until = Instant::now() + patience;
        let wanted = if let Outcome::Count(count) = first { Some((count, until)) } else { None };
        let second = device.step(&step, wanted);
        if first != second {
            let text = format!("step {nth} returned {second:?}, should be {first:?}");
            return Err(text);
        }
        settle(&mut reference, &mut device, dialect, until)
            .map_err(|what| format!("after step {nth}, {what}"))?;
    }
    compare_results(&reference, &device)?;
    Ok(reference.completed().clone())
}

/// Waits until the device's state equals that of the reference.
fn settle<R: Device, D: Device>(
    reference: &mut Machine<R>,
    device: &mut Machine<D>,
    dialect: &Dialect,
    until: Instant,
) -> Result<(), String> {
    let all = dialect.lacks(Omission::Polls);
    if all {
        reference.take_all();
    }
    let first = reference.look().clone();
    let mut pauses = 0;
    loop {
        let late = Instant::now() >= until && pauses > DEADLINES;
        let second = device.look();
        let mut result = match first == *second {
            true => Ok(()),
            false => Err(format!("there was {second:?}, should be {first:?}")),
        };
        if all && result.is_ok() {
            device.take_all();
            result = compare_results(reference, device);
        }
        if result.is_ok() || late {
            return result;
        }
        device.pause();
        pauses += 1;
    }
}

fn compare_results<R: Device, D: Device>(
    reference: &Machine<R>,
    device: &Machine<D>,
) -> Result<(), String> {
    let queues = reference.completed().iter().zip(device.completed()).enumerate();
    for (queue, (first, second)) in queues {
        if first != second {
            let direction = ["send", "receive"][queue % 2];
            let (qp, first, second) = (queue / 2, lines(first), lines(second));
            return Err(format!(
                "the {direction} queue of queue pair {qp} completed\n{second}should be\n{first}"
            ));
        }
    }
    for (end, (first, second)) in reference.memory().iter().zip(&device.memory()).enumerate() {
        if let Some(at) = first.iter().zip(second).position(|(first, second)| first != second) {
            let (first, second) = (first[at], second[at]);
            return Err(format!("byte {at} of end {end} is {second:#04x}, should be {first:#04x}"));
        }
    }
    Ok(())
}

fn lines(all: &[impl fmt::Debug]) -> String {
    all.iter().map(|one| format!("    {one:?}\n")).collect()
}
