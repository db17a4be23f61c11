//! The tables of queue pairs, completion queues and shared receive queues.

use transport_rxe_loop::observe::{
    Awaited, CompletionQueue, CqHealth, Moderated, QueuePair, RequestWait, WaitLimit,
};
use transport_rxe_loop::{QpState, QpType};

use super::processes::who;
use super::{Narrow, Table};
use crate::cell::{Cell, Tone};
use crate::report::{CompletionQueueReport, QueuePairReport, Report, SharedReceiveQueueReport};

pub fn queue_pairs(report: &Report) -> Table {
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
        narrow: Narrow {
            leave_out: &["CQs", "type", "flags", "recvs/s", "peer state", "sends/s", "receives"],
            flexible: "oldest send waits",
            wraps: false,
        },
        rows: report.queue_pairs.iter().map(|qp| of_queue_pair(report, qp)).collect(),
    }
}

fn of_queue_pair(report: &Report, qp: &QueuePairReport) -> Vec<Cell> {
    let seen = &qp.seen;
    let receives = match seen.srq {
        0 => Cell::fill(seen.receives.outstanding, seen.receives.capacity).tone(Tone::Plain),
        srq => Cell::text(format!("SRQ {srq:#x}")),
    };
    vec![
        Cell::hex(seen.number),
        who(report, seen.owner),
        Cell::text(format!("{:?}", seen.qp_type)),
        state(seen.state),
        Cell::hex(if is_connected(seen) { seen.peer } else { 0 }),
        peer_state(seen),
        Cell::fill(seen.sends.outstanding, seen.sends.capacity),
        receives,
        Cell::rate(qp.sends_per_s),
        Cell::rate(qp.receives_per_s),
        Cell::by(format!("{} {}", seen.send_cq, seen.recv_cq), seen.send_cq.into()),
        flags(seen),
        oldest(seen),
    ]
}

fn state(state: QpState) -> Cell {
    let tone = match state {
        QpState::ERR | QpState::SQE => Tone::Bad,
        QpState::RTS => Tone::Plain,
        _ => Tone::Dim,
    };
    Cell::text(state.to_string()).tone(tone)
}

fn is_connected(qp: &QueuePair) -> bool {
    qp.qp_type != QpType::UD && qp.peer != 0
}

fn peer_state(qp: &QueuePair) -> Cell {
    match qp.peer_state {
        Some(peer) if is_connected(qp) => state(peer),
        None if is_connected(qp) => Cell::text("gone").tone(Tone::Bad),
        _ => Cell::none(),
    }
}

fn flags(qp: &QueuePair) -> Cell {
    match (qp.is_copying, qp.is_starved) {
        (true, true) => Cell::text("copying starved"),
        (true, false) => Cell::text("copying"),
        (false, true) => Cell::text("starved"),
        (false, false) => Cell::none(),
    }
}

/// What the oldest request of the send queue waits for.
fn oldest(qp: &QueuePair) -> Cell {
    let Some(waits) = qp.waits.map(wait) else { return Cell::none() };
    let request = qp
        .oldest
        .map_or_else(String::new, |send| format!("{:?} wr_id {}: ", send.operation, send.wr_id));
    Cell::text(request + &waits).tone(Tone::Warn)
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

pub fn completion_queues(report: &Report) -> Table {
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
        narrow: Narrow {
            leave_out: &[
                "producer",
                "empty/s",
                "polls/s",
                "moderated",
                "channel",
                "events/s",
                "high water",
                "dropped",
            ],
            ..Narrow::default()
        },
        rows: report.completion_queues.iter().map(|cq| of_completion_queue(report, cq)).collect(),
    }
}

fn of_completion_queue(report: &Report, cq: &CompletionQueueReport) -> Vec<Cell> {
    let seen = &cq.seen;
    let armed = seen.armed.map(|armed| format!("{armed:?}").to_lowercase());
    vec![
        Cell::number(seen.index),
        who(report, seen.owner),
        unpolled(seen),
        Cell::number(seen.capacity),
        high_water(cq),
        Cell::rate(cq.pushed_per_s),
        Cell::rate(cq.polls_per_s),
        Cell::rate(cq.empty_polls_per_s),
        Cell::rate(cq.events_per_s),
        health(seen),
        Cell::nonzero(seen.dropped),
        armed.map_or_else(Cell::none, Cell::text),
        seen.moderation.map_or_else(Cell::none, moderation),
        seen.channel.map_or_else(Cell::none, Cell::number),
        Cell::nonzero(seen.unread_events),
        seen.sole_producer.map_or_else(|| Cell::text("shared"), Cell::hex),
    ]
}

fn unpolled(cq: &CompletionQueue) -> Cell {
    let most = cq.unpolled_max.into();
    let range = match cq.unpolled_min {
        least if least == cq.unpolled_max => Cell::number(least),
        least => Cell::by(format!("{least}-{}", cq.unpolled_max), most),
    };
    let is_full = cq.unpolled_min >= cq.capacity && cq.capacity > 0;
    range.tone(if is_full { Tone::Warn } else { Tone::Plain })
}

fn health(cq: &CompletionQueue) -> Cell {
    let (state, tone) = match cq.health {
        CqHealth::Running if cq.ignores_overrun => ("drops", Tone::Plain),
        CqHealth::Running => ("ok", Tone::Plain),
        CqHealth::Overrun => ("overrun", Tone::Bad),
        CqHealth::Failed => ("failed", Tone::Bad),
        _ => ("unknown", Tone::Dim),
    };
    Cell::text(state).tone(tone)
}

fn moderation(moderated: Moderated) -> Cell {
    let due = moderated
        .due_in_ns
        .map_or_else(String::new, |ns| format!(", {} due in {} us", moderated.held, ns / 1000));
    Cell::text(format!("{} or {} us{due}", moderated.count, moderated.period_us))
}

/// The most unpolled completions that there ever were, if its process counts that; else that cqtop has seen.
fn high_water(cq: &CompletionQueueReport) -> Cell {
    match cq.seen.counts {
        Some(counts) => Cell::number(counts.high_water),
        None => Cell::by(format!(">={}", cq.seen_high_water), cq.seen_high_water.into()),
    }
}

pub fn shared_receive_queues(report: &Report) -> Table {
    let all = &report.shared_receive_queues;
    Table {
        title: "shared receive queues",
        columns: &[" SRQ", "process", " waiting", " in use", " limit", " taken/s", "flags"],
        narrow: Narrow { leave_out: &["limit", "in use"], ..Narrow::default() },
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
