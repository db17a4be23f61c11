//! The table of processes, and how other tables name one.

use super::{Narrow, Table};
use crate::cell::{Cell, Tone};
use crate::proc::RunState;
use crate::report::{ProcessReport, Report};

pub fn processes(report: &Report) -> Table {
    Table {
        title: "processes",
        columns: &[
            " id", " pid", "state", "for", " QPs", " CQs", " regions", " arena", " wakes/s",
            "command",
        ],
        narrow: Narrow {
            leave_out: &["wakes/s", "regions", "arena"],
            flexible: "command",
            wraps: false,
        },
        rows: report.processes.iter().map(of_process).collect(),
    }
}

fn of_process(process: &ProcessReport) -> Vec<Cell> {
    let seen = &process.seen;
    let (state, tone) = match process.run_state {
        RunState::Running => ("running", Tone::Plain),
        RunState::Sleeping => ("sleeping", Tone::Plain),
        RunState::Blocked => ("blocked", Tone::Warn),
        RunState::Stopped => ("stopped", Tone::Bad),
        RunState::Zombie | RunState::Dead => ("dead", Tone::Bad),
        RunState::Unknown => ("unknown", Tone::Warn),
    };
    let leaving = if seen.is_alive && seen.is_leaving { ", leaving" } else { "" };
    let count = |count: usize| Cell::nonzero(count as u64);
    let command = process.command.as_ref().filter(|command| !command.is_empty());
    vec![
        Cell::number(seen.attachment),
        process.last_pid.map_or_else(Cell::none, |pid| Cell::number(pid.unsigned_abs())),
        Cell::text(format!("{state}{leaving}")).tone(tone),
        Cell::time(process.halted_s),
        count(process.queue_pairs),
        count(process.completion_queues),
        count(process.regions),
        Cell::bytes(seen.arena_bytes),
        Cell::rate(process.calls_per_s),
        command.or(process.name.as_ref()).map_or_else(Cell::none, Cell::text),
    ]
}

/// A process: by its pid, if that is known, else by its attachment.
pub fn who(report: &Report, attachment: u16) -> Cell {
    let process = report.processes.iter().find(|process| process.seen.attachment == attachment);
    let Some(process) = process else {
        return Cell::text(format!("#{attachment}")).tone(Tone::Bad);
    };
    let tone = match process.run_state {
        RunState::Stopped | RunState::Dead | RunState::Zombie => Tone::Bad,
        _ => Tone::Plain,
    };
    let text = match (process.last_pid, process.run_state) {
        (Some(pid), RunState::Stopped) => format!("{pid} (stopped)"),
        (Some(pid), RunState::Dead | RunState::Zombie) => format!("{pid} (dead)"),
        (Some(pid), _) => pid.to_string(),
        (None, RunState::Dead) => format!("#{attachment} (dead)"),
        (None, _) => format!("#{attachment}"),
    };
    Cell::text(text).tone(tone)
}
