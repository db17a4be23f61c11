//! Runs a program on two devices step by step, and tells the first difference.

use std::fmt;
use std::time::{Duration, Instant};

use super::dialect::{Dialect, Omission};
use super::machine::{Machine, Outcome, Wanted};
use super::program::{Program, Step};
use super::seen::{Completed, Look};
use crate::device::Device;

/// More deadlines than a step leaves behind. So often a device may pause at least, however busy the machine
/// is.
const DEADLINES: usize = 64;

/// What a device did otherwise than the reference.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Difference(String);

/// Runs `program` on the reference `R` and on the device `D`, which may take as long as `patience` for what
/// a step leads to. Returns what completed.
///
/// # Errors
/// The first difference.
pub fn compare<R: Device, D: Device>(
    program: &Program,
    dialect: &'static Dialect,
    patience: Duration,
) -> Result<Completed, Difference> {
    let mut reference = Machine::<R>::new(&program.shape, dialect);
    let mut device = Machine::<D>::new(&program.shape, dialect);
    // In the end everything is polled.
    let drains = (0..4).map(|cq| Step::Poll(cq, usize::MAX));
    for (nth, step) in program.steps.iter().cloned().chain(drains).enumerate() {
        let first = reference.step(&step, None);
        let moderates = program.steps.iter().any(|step| matches!(step, Step::Moderate(..)));
        for _ in 0..if program.shape.impatient || moderates { DEADLINES } else { 1 } {
            reference.pause();
        }
        let until = Instant::now() + patience;
        let wanted = match first {
            Outcome::Polled(count) | Outcome::Posted(count) => Some(Wanted { count, until }),
            _ => None,
        };
        let second = device.step(&step, wanted);
        if first != second {
            let text = format!("step {nth} returned {second:?}, should be {first:?}");
            return Err(Difference(text));
        }
        settle(&mut reference, &mut device, dialect, until)
            .map_err(|Difference(what)| Difference(format!("after step {nth}, {what}")))?;
    }
    compare_completions(reference.completed(), device.completed())?;
    compare_memory(&reference.memory(), &device.memory())?;
    Ok(reference.completed().clone())
}

/// Waits until the device looks as the reference does.
fn settle<R: Device, D: Device>(
    reference: &mut Machine<R>,
    device: &mut Machine<D>,
    dialect: &Dialect,
    until: Instant,
) -> Result<(), Difference> {
    let all = dialect.lacks(Omission::Polls);
    if all {
        reference.take_all();
    }
    let first = reference.look().clone();
    let mut pauses = 0;
    loop {
        let late = Instant::now() >= until && pauses > DEADLINES;
        let mut result = compare_looks(&first, device.look());
        if all && result.is_ok() {
            device.take_all();
            result = compare_completions(reference.completed(), device.completed())
                .and_then(|()| compare_memory(&reference.memory(), &device.memory()));
        }
        if result.is_ok() || late {
            return result;
        }
        device.pause();
        pauses += 1;
    }
}

fn compare_looks(first: &Look, second: &Look) -> Result<(), Difference> {
    match first == second {
        true => Ok(()),
        false => Err(Difference(format!("there was {second:?}, should be {first:?}"))),
    }
}

fn compare_completions(first: &Completed, second: &Completed) -> Result<(), Difference> {
    for (queue, (first, second)) in first.iter().zip(second).enumerate() {
        if first != second {
            let direction = ["send", "receive"][queue % 2];
            let (qp, first, second) = (queue / 2, lines(first), lines(second));
            return Err(Difference(format!(
                "the {direction} queue of queue pair {qp} completed\n{second}should be\n{first}"
            )));
        }
    }
    Ok(())
}

fn lines(all: &[impl fmt::Debug]) -> String {
    all.iter().map(|one| format!("    {one:?}\n")).collect()
}

fn compare_memory(first: &[Vec<u8>; 2], second: &[Vec<u8>; 2]) -> Result<(), Difference> {
    for (end, (first, second)) in first.iter().zip(second).enumerate() {
        let different = first.iter().zip(second).position(|(first, second)| first != second);
        if let Some(at) = different {
            let (first, second) = (first[at], second[at]);
            return Err(Difference(format!(
                "byte {at} of end {end} is {second:#04x}, should be {first:#04x}"
            )));
        }
    }
    Ok(())
}
