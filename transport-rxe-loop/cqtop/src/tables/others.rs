//! The tables of memory, channels, waits and locks.

use transport_rxe_loop::observe::{RegionKind, Subject};

use super::processes::who;
use super::{Narrow, Table};
use crate::cell::{Cell, Tone, duration};
use crate::report::{LockReport, Report, WaitReport};

pub fn regions(report: &Report) -> Table {
    let rows = report.regions.iter().map(|region| {
        let kind = match region.kind {
            RegionKind::Private => "private",
            RegionKind::Fabric => "fabric",
            RegionKind::Window => "window",
            _ => "none",
        };
        vec![
            Cell::hex(region.key),
            who(report, region.owner),
            Cell::text(kind),
            Cell::bytes(region.len),
            Cell::by(format!("{:#x}", region.address), region.address as f64),
            Cell::by(format!("{:#x}", region.access), region.access.into()),
            Cell::hex(region.domain),
            Cell::hex(region.qp),
        ]
    });
    Table {
        title: "regions and windows",
        columns: &[
            " key",
            "process",
            "kind",
            " bytes",
            " address",
            " access",
            " domain",
            " bound to",
        ],
        narrow: Narrow {
            leave_out: &["domain", "access", "bound to", "address"],
            ..Narrow::default()
        },
        rows: rows.collect(),
    }
}

pub fn channels(report: &Report) -> Table {
    let rows = report.channels.iter().map(|channel| {
        vec![
            Cell::number(channel.index),
            who(report, channel.owner),
            Cell::number(channel.queues),
            Cell::number(channel.other_sources),
            Cell::nonzero(channel.unread_events),
        ]
    });
    Table {
        title: "channels",
        columns: &[" channel", "process", " CQs", " other sources", " unread events"],
        narrow: Narrow { leave_out: &["other sources", "CQs"], ..Narrow::default() },
        rows: rows.collect(),
    }
}

pub fn waits(report: &Report) -> Table {
    let shown = report.waits.iter().filter(|wait| !wait.is_usual);
    Table {
        title: "waits",
        columns: &["what", "process", "seen for", "because", "depends on"],
        narrow: Narrow { leave_out: &["seen for"], flexible: "because", wraps: true },
        rows: shown.map(|wait| of_wait(report, wait)).collect(),
    }
}

fn of_wait(report: &Report, WaitReport { wait, since_s, .. }: &WaitReport) -> Vec<Cell> {
    let is_process = matches!(wait.subject, Subject::Process(_) | Subject::Attaching);
    let depends = wait.blocker.map_or_else(Cell::none, |blocker| who(report, blocker));
    vec![
        Cell::text(wait.subject.to_string()),
        if is_process && wait.owner == u16::MAX { Cell::none() } else { who(report, wait.owner) },
        Cell::by(duration(*since_s), *since_s),
        Cell::text(wait.reason.to_string()),
        depends,
    ]
}

pub fn locks(report: &Report) -> Table {
    let rows = report.locks.iter().map(|LockReport { held, is_holder_alive, since_s }| {
        let alive =
            if *is_holder_alive { Cell::text("yes") } else { Cell::text("no").tone(Tone::Bad) };
        vec![
            Cell::text(held.lock.to_string()),
            who(report, held.holder.attachment),
            alive,
            Cell::by(duration(*since_s), *since_s),
        ]
    });
    Table {
        title: "locks",
        columns: &["lock", "holder", "alive", "seen for"],
        narrow: Narrow { leave_out: &["seen for"], ..Narrow::default() },
        rows: rows.collect(),
    }
}
