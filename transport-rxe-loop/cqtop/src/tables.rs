//! Which tables there are, their columns, and how they are printed.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, presets};
use transport_rxe_loop::QpType;
use transport_rxe_loop::observe::{Awaited, CqHealth, RegionKind, RequestWait, Subject, WaitLimit};

use crate::cell::{Cell, Tone, binary, duration};
use crate::proc::RunState;
use crate::report::{
    CompletionQueueReport, LockReport, ProcessReport, QueuePairReport, Report,
    SharedReceiveQueueReport, WaitReport,
};

/// A table of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Page {
    Processes,
    QueuePairs,
    Completions,
    Shared,
    Memory,
    Waits,
}

/// A table: a title, columns, and rows of as many cells.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it is of.
    pub title: &'static str,
    /// The heads of the columns; those of numbers begin with a blank, and are aligned to the right.
    pub columns: &'static [&'static str],
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The head of a column, and whether it is aligned to the right.
    #[must_use]
    pub fn column(&self, nth: usize) -> (&'static str, bool) {
        let head = self.columns[nth];
        (head.trim_start(), head.starts_with(' '))
    }

    /// Sorts the rows by a column.
    pub fn sort(&mut self, column: usize, reverse: bool) {
        let key = |row: &Vec<Cell>| row.get(column).cloned().unwrap_or_else(Cell::none);
        self.rows.sort_by(|one, other| {
            let order = key(one).compare(&key(other));
            if reverse { order.reverse() } else { order }
        });
    }
}

impl Page {
    /// All of them, in their order.
    pub const ALL: [Self; 6] = [
        Self::Processes,
        Self::QueuePairs,
        Self::Completions,
        Self::Shared,
        Self::Memory,
        Self::Waits,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::QueuePairs => "queue pairs",
            Self::Completions => "completions",
            Self::Shared => "shared",
            Self::Memory => "memory",
            Self::Waits => "waits",
        }
    }

    /// Its tables: the first can be sorted and scrolled.
    #[must_use]
    pub fn tables(self, report: &Report) -> Vec<Table> {
        match self {
            Self::Processes => vec![processes(report)],
            Self::QueuePairs => vec![queue_pairs(report)],
            Self::Completions => vec![completion_queues(report)],
            Self::Shared => vec![shared_receive_queues(report)],
            Self::Memory => vec![regions(report), channels(report)],
            Self::Waits => vec![waits(report), locks(report)],
        }
    }
}

/// The lines above the tables: how full everything is, and what is wrong with the fabric as a whole.
#[must_use]
pub fn summary(report: &Report) -> Vec<(String, Tone)> {
    let tables = report
        .tables
        .iter()
        .map(|table| format!("{} {} of {}", table.what, table.used, table.limit));
    let arena = &report.arena;
    let memory = format!(
        "memory {} of {} in use, largest free {}, tables {}",
        binary(arena.used),
        binary(arena.bytes),
        binary(arena.largest_free),
        binary(report.table_bytes)
    );
    let tables: Vec<_> = tables.collect();
    let mut lines = vec![
        (format!("fabric {}: {}", report.fabric, tables[..3].join(", ")), Tone::Plain),
        (tables[3..].join(", "), Tone::Plain),
        (memory, Tone::Plain),
    ];
    if !report.is_current {
        lines.push(("this fabric has ended: its name leads elsewhere".to_owned(), Tone::Bad));
    }
    if report.missing_bytes > 0 {
        let missing = binary(report.missing_bytes);
        lines.push((format!("{missing} of its file are missing: it was truncated"), Tone::Bad));
    }
    lines
}

/// All tables as text.
#[must_use]
pub fn plain(report: &Report) -> String {
    let mut text = String::new();
    for (line, _) in summary(report) {
        let _ = writeln!(text, "{line}");
    }
    for table in Page::ALL.into_iter().flat_map(|page| page.tables(report)) {
        let _ = writeln!(text, "\n{}", table.title.to_uppercase());
        if table.rows.is_empty() {
            let _ = writeln!(text, "none");
            continue;
        }
        let mut printed = comfy_table::Table::new();
        printed.load_preset(presets::NOTHING);
        printed.set_header((0..table.columns.len()).map(|nth| table.column(nth).0));
        for row in &table.rows {
            printed.add_row(row.iter().map(|cell| &cell.text));
        }
        for (nth, column) in printed.column_iter_mut().enumerate() {
            column.set_padding((0, 1));
            if table.column(nth).1 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in printed.lines() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

fn processes(report: &Report) -> Table {
    Table {
        title: "processes",
        columns: &[
            " id", " pid", "state", "for", "lock", " QPs", " CQs", " regions", " arena",
            " wakes/s", "command",
        ],
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
    let lock = match (seen.is_alive, seen.is_leaving) {
        (true, false) => Cell::text("held"),
        (true, true) => Cell::text("held, leaving"),
        (false, _) => Cell::text("lost").tone(Tone::Bad),
    };
    let count = |count: usize| Cell::nonzero(count as u64);
    let command = process.command.as_ref().filter(|command| !command.is_empty());
    vec![
        Cell::number(seen.attachment),
        process.last_pid.map_or_else(Cell::none, |pid| Cell::number(pid.unsigned_abs())),
        Cell::text(state).tone(tone),
        Cell::time(process.halted_s),
        lock,
        count(process.queue_pairs),
        count(process.completion_queues),
        count(process.regions),
        Cell::bytes(seen.arena_bytes),
        Cell::rate(process.calls_per_s),
        command.or(process.name.as_ref()).map_or_else(Cell::none, Cell::text),
    ]
}

/// A process: by its pid, if that is known, else by its attachment.
fn who(report: &Report, attachment: u16) -> Cell {
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

fn queue_pairs(report: &Report) -> Table {
    Table {
        title: "queue pairs",
        columns: &[
            " QP",
            "process",
            "type",
            "state",
            " peer",
            "peer state",
            " sends",
            " receives",
            " sends/s",
            " recvs/s",
            " CQs",
            "flags",
            "oldest send waits",
        ],
        rows: report.queue_pairs.iter().map(|qp| of_queue_pair(report, qp)).collect(),
    }
}

fn of_queue_pair(report: &Report, qp: &QueuePairReport) -> Vec<Cell> {
    let seen = &qp.seen;
    let state = |state: transport_rxe_loop::QpState| {
        let tone = match state {
            transport_rxe_loop::QpState::ERR | transport_rxe_loop::QpState::SQE => Tone::Bad,
            transport_rxe_loop::QpState::RTS => Tone::Plain,
            _ => Tone::Dim,
        };
        Cell::text(state.to_string()).tone(tone)
    };
    let connects = seen.qp_type != QpType::Ud && seen.peer != 0;
    let peer_state = match seen.peer_state {
        Some(peer) if connects => state(peer),
        None if connects => Cell::text("gone").tone(Tone::Bad),
        _ => Cell::none(),
    };
    let receives = match seen.srq {
        0 => Cell::fill(seen.receives.outstanding, seen.receives.capacity).tone(Tone::Plain),
        srq => Cell::text(format!("SRQ {srq:#x}")),
    };
    let flags = [(seen.is_copying, "copying"), (seen.is_starved, "starved")];
    let flags: Vec<_> = flags.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    let waits = seen.waits.map(wait).unwrap_or_default();
    let oldest = seen.oldest.map(|send| format!("{:?} wr_id {}", send.operation, send.wr_id));
    let waits = match oldest {
        Some(oldest) if !waits.is_empty() => {
            Cell::text(format!("{oldest}: {waits}")).tone(Tone::Warn)
        }
        _ => Cell::none(),
    };
    vec![
        Cell::hex(seen.number),
        who(report, seen.owner),
        Cell::text(format!("{:?}", seen.qp_type).to_uppercase()),
        state(seen.state),
        Cell::hex(if seen.qp_type == QpType::Ud { 0 } else { seen.peer }),
        peer_state,
        Cell::fill(seen.sends.outstanding, seen.sends.capacity),
        receives,
        Cell::rate(qp.sends_per_s),
        Cell::rate(qp.receives_per_s),
        Cell::by(format!("{} {}", seen.send_cq, seen.recv_cq), seen.send_cq.into()),
        if flags.is_empty() { Cell::none() } else { Cell::text(flags.join(" ")) },
        waits,
    ]
}

fn wait(wait: RequestWait) -> String {
    let awaited = match wait.awaited {
        Awaited::Receive => "for a receive",
        _ => "for an answer",
    };
    let limit = match wait.limit {
        WaitLimit::Forever => ", no time limit",
        WaitLimit::LastTry => ", last try",
        _ => "",
    };
    format!("{awaited}{limit}")
}

fn completion_queues(report: &Report) -> Table {
    Table {
        title: "completion queues",
        columns: &[
            " CQ",
            "process",
            " unpolled",
            " capacity",
            " high water",
            " pushed/s",
            " polls/s",
            " empty/s",
            " events/s",
            "state",
            " dropped",
            "armed",
            "moderated",
            " channel",
            " unread",
            "producer",
        ],
        rows: report.completion_queues.iter().map(|cq| of_completion_queue(report, cq)).collect(),
    }
}

fn of_completion_queue(report: &Report, cq: &CompletionQueueReport) -> Vec<Cell> {
    let seen = &cq.seen;
    let unpolled = if seen.unpolled_min == seen.unpolled_max {
        Cell::number(seen.unpolled_max)
    } else {
        let range = format!("{}-{}", seen.unpolled_min, seen.unpolled_max);
        Cell::by(range, seen.unpolled_max.into())
    };
    let is_full = seen.unpolled_min >= seen.capacity && seen.capacity > 0;
    let (state, tone) = match seen.health {
        CqHealth::Running if seen.ignores_overrun => ("drops", Tone::Plain),
        CqHealth::Running => ("ok", Tone::Plain),
        CqHealth::Overrun => ("overrun", Tone::Bad),
        CqHealth::Failed => ("failed", Tone::Bad),
        _ => ("unknown", Tone::Dim),
    };
    let armed = seen.armed.map(|armed| format!("{armed:?}").to_lowercase());
    let moderation = seen.moderation.map(|moderated| {
        let due =
            moderated.due_in_ns.map(|ns| format!(", {} due in {} us", moderated.held, ns / 1000));
        let due = due.unwrap_or_default();
        format!("{} or {} us{due}", moderated.count, moderated.period_us)
    });
    vec![
        Cell::number(seen.index),
        who(report, seen.owner),
        unpolled.tone(if is_full { Tone::Warn } else { Tone::Plain }),
        Cell::number(seen.capacity),
        high_water(cq),
        Cell::rate(cq.pushed_per_s),
        Cell::rate(cq.polls_per_s),
        Cell::rate(cq.empty_polls_per_s),
        Cell::rate(cq.events_per_s),
        Cell::text(state).tone(tone),
        Cell::nonzero(seen.dropped),
        armed.map_or_else(Cell::none, Cell::text),
        moderation.map_or_else(Cell::none, Cell::text),
        seen.channel.map_or_else(Cell::none, Cell::number),
        Cell::nonzero(seen.unread_events),
        seen.sole_producer.map_or_else(|| Cell::text("shared"), Cell::hex),
    ]
}

/// The most unpolled completions that there ever were, if its process counts that; else that cqtop has seen.
fn high_water(cq: &CompletionQueueReport) -> Cell {
    match cq.seen.counts {
        Some(counts) => Cell::number(counts.high_water),
        None => Cell::by(format!(">={}", cq.seen_high_water), cq.seen_high_water.into()),
    }
}

fn shared_receive_queues(report: &Report) -> Table {
    let all = &report.shared_receive_queues;
    Table {
        title: "shared receive queues",
        columns: &[" SRQ", "process", " waiting", " in use", " limit", " taken/s", "flags"],
        rows: all.iter().map(|srq| of_srq(report, srq)).collect(),
    }
}

fn of_srq(report: &Report, srq: &SharedReceiveQueueReport) -> Vec<Cell> {
    let seen = &srq.seen;
    let starved = || Cell::text("starved").tone(Tone::Warn);
    vec![
        Cell::hex(seen.number),
        who(report, seen.owner),
        Cell::fill(seen.receives.outstanding, seen.receives.capacity).tone(Tone::Plain),
        Cell::nonzero(seen.in_use),
        Cell::nonzero(seen.limit),
        Cell::rate(srq.taken_per_s),
        if seen.is_starved { starved() } else { Cell::none() },
    ]
}

fn regions(report: &Report) -> Table {
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
        rows: rows.collect(),
    }
}

fn channels(report: &Report) -> Table {
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
        rows: rows.collect(),
    }
}

fn waits(report: &Report) -> Table {
    let shown = report.waits.iter().filter(|wait| !wait.is_usual);
    Table {
        title: "waits",
        columns: &["what", "process", "seen for", "because", "depends on"],
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

fn locks(report: &Report) -> Table {
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
        rows: rows.collect(),
    }
}
