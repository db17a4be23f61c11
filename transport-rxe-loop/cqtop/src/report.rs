//! A snapshot with what it does not have: rates and times, which are differences to earlier snapshots, and the names of
//! processes.
//!
//! # JSON
//! `cqtop --once --json` prints a [`Report`]. Its fields, and those of the objects in it, are those documented here and
//! in [`transport_rxe_loop::observe`], by the same names; a version is only added to. Names of verbs, such as states, are
//! those of `<infiniband/verbs.h>` without the prefix. Rates are per second, and null where there is no earlier number.
//! Times (`_s`) are in seconds, counted from when cqtop first saw what they are of.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::mem::{self, Discriminant};

use serde::Serialize;
use transport_rxe_loop::Limits;
use transport_rxe_loop::observe::{
    ArenaUse, Channel, CompletionQueue, CopyRequest, HeldLock, Holder, LockName, PollCounts,
    Process, QueuePair, Reason, Region, SharedReceiveQueue, Snapshot, Subject, Wait,
};

use crate::proc::{RunState, Seen};

/// The version of the JSON.
pub const VERSION: u32 = 1;

/// What cqtop shows.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this format: [`VERSION`].
    pub version: u32,
    /// The name of the fabric.
    pub fabric: String,
    /// Whether the name leads to it: once its last process has ended, it does not.
    pub is_current: bool,
    /// Bytes that its file should have and has not.
    pub missing_bytes: u64,
    /// The time between the two snapshots that the rates are of; null for the first.
    pub interval_s: Option<f64>,
    /// The limits of the fabric.
    pub limits: Limits,
    /// Its tables.
    pub tables: Vec<TableUse>,
    /// Bytes of the tables.
    pub table_bytes: u64,
    /// The use of the other bytes.
    pub arena: ArenaUse,
    /// The processes.
    pub processes: Vec<ProcessReport>,
    /// The queue pairs.
    pub queue_pairs: Vec<QueuePairReport>,
    /// The completion queues.
    pub completion_queues: Vec<CompletionQueueReport>,
    /// The shared receive queues.
    pub shared_receive_queues: Vec<SharedReceiveQueueReport>,
    /// Memory regions and memory windows.
    pub regions: Vec<Region>,
    /// The channels.
    pub channels: Vec<Channel>,
    /// What waits for what.
    pub waits: Vec<WaitReport>,
    /// The locks that are held.
    pub locks: Vec<LockReport>,
    /// Copies that processes ask each other for.
    pub copies: Vec<CopyRequest>,
}

/// How much of a table is in use.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TableUse {
    /// What it holds.
    pub what: &'static str,
    /// Entries that are in use.
    pub used: usize,
    /// All entries.
    pub limit: u32,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    /// What the fabric says of it.
    #[serde(flatten)]
    pub seen: Process,
    /// Its pid; for a dead process the one that it had, if cqtop knew it.
    pub last_pid: Option<i32>,
    /// The name of its program.
    pub name: Option<String>,
    /// Its command line.
    pub command: Option<String>,
    /// Whether it runs.
    pub run_state: RunState,
    /// How long it has been stopped or dead.
    pub halted_s: Option<f64>,
    /// Wake-ups of its service thread.
    pub calls_per_s: Option<f64>,
    /// Its queue pairs.
    pub queue_pairs: usize,
    /// Its completion queues.
    pub completion_queues: usize,
    /// Its memory regions and windows.
    pub regions: usize,
}

/// A queue pair.
#[derive(Clone, Debug, Serialize)]
pub struct QueuePairReport {
    /// What the fabric says of it.
    #[serde(flatten)]
    pub seen: QueuePair,
    /// Requests of its send queue that were carried out.
    pub sends_per_s: Option<f64>,
    /// Receives of its receive queue that were consumed.
    pub receives_per_s: Option<f64>,
}

/// A completion queue.
#[derive(Clone, Debug, Serialize)]
pub struct CompletionQueueReport {
    /// What the fabric says of it.
    #[serde(flatten)]
    pub seen: CompletionQueue,
    /// Completions that were pushed.
    pub pushed_per_s: Option<f64>,
    /// Polls, if they are counted.
    pub polls_per_s: Option<f64>,
    /// Polls that returned nothing.
    pub empty_polls_per_s: Option<f64>,
    /// Events that were taken.
    pub events_per_s: Option<f64>,
    /// The most unpolled completions that cqtop has seen, at least.
    pub seen_high_water: u32,
}

/// A shared receive queue.
#[derive(Clone, Debug, Serialize)]
pub struct SharedReceiveQueueReport {
    /// What the fabric says of it.
    #[serde(flatten)]
    pub seen: SharedReceiveQueue,
    /// Receives that were taken.
    pub taken_per_s: Option<f64>,
}

/// Something that waits.
#[derive(Clone, Debug, Serialize)]
pub struct WaitReport {
    /// What, and for what.
    #[serde(flatten)]
    pub wait: Wait,
    /// Since when cqtop has seen it wait, in seconds.
    pub since_s: f64,
    /// Whether that is usual for a moment, and seen for the first time.
    pub is_usual: bool,
    /// The same as a sentence.
    pub text: String,
}

/// A lock that is held.
#[derive(Clone, Debug, Serialize)]
pub struct LockReport {
    /// Which, and by whom.
    #[serde(flatten)]
    pub held: HeldLock,
    /// Whether the holder is alive; a dead one's lock is taken over by the next who wants it.
    pub is_holder_alive: bool,
    /// Since when cqtop has seen it held, without anything that was done under it, in seconds.
    pub since_s: f64,
}

/// When something was first seen, in nanoseconds of the monotonic clock.
#[derive(Debug)]
struct Since<K>(HashMap<K, u64>);

impl<K> Default for Since<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone> Since<K> {
    /// What is there now; returns for how many seconds each was.
    fn update(&mut self, keys: &[K], now: u64) -> Vec<f64> {
        let there: HashSet<_> = keys.iter().collect();
        self.0.retain(|key, _| there.contains(key));
        let since = |key: &K| *self.0.entry(key.clone()).or_insert(now);
        let seconds = |since| now.saturating_sub(since) as f64 / 1e9;
        keys.iter().map(since).map(seconds).collect()
    }
}

/// What is known of the snapshots before.
#[derive(Debug, Default)]
pub struct History {
    before: Option<Snapshot>,
    waits: Since<(Subject, Discriminant<Reason>, u64)>,
    locks: Since<(LockName, Holder, u64)>,
    halted: Since<(u16, u16, RunState)>,
    /// By attachment and generation: the pid, and what /proc said last.
    known: HashMap<(u16, u16), (i32, Option<Seen>)>,
    /// By index and generation.
    high_water: HashMap<(u32, u32), u32>,
}

/// Differences to the snapshot before.
struct Rates<'a> {
    before: Option<&'a Snapshot>,
    seconds: f64,
}

impl Rates<'_> {
    /// Positions that are so far apart are of different objects, or corrupted.
    const MOST: u64 = 1 << 40;

    fn of(&self, before: Option<u64>, now: u64) -> Option<f64> {
        let count = now.wrapping_sub(before?);
        (self.seconds > 0.0 && count < Self::MOST).then(|| count as f64 / self.seconds)
    }

    /// The entry of the same index in the snapshot before.
    fn before<'s, T>(
        &'s self,
        all: impl FnOnce(&'s Snapshot) -> &'s [T],
        index: u32,
        of: impl Fn(&T) -> u32,
    ) -> Option<&'s T> {
        let all = all(self.before?);
        all.get(all.binary_search_by_key(&index, of).ok()?)
    }
}

impl History {
    /// Adds a snapshot, of the same fabric as those before. `look` says what /proc has of a pid.
    pub fn report(&mut self, now: Snapshot, look: impl Fn(i32) -> Option<Seen>) -> Report {
        let before = self.before.take();
        let passed = |before: &Snapshot| now.taken_at_ns.saturating_sub(before.taken_at_ns);
        let interval_s = before.as_ref().map(|before| passed(before) as f64 / 1e9);
        let rates = Rates { before: before.as_ref(), seconds: interval_s.unwrap_or_default() };
        let processes = self.processes(&now, &rates, look);
        let tables = now.tables().map(|(what, used, limit)| TableUse { what, used, limit });
        let report = Report {
            version: VERSION,
            fabric: now.fabric.clone(),
            is_current: now.is_current,
            missing_bytes: now.missing_bytes,
            interval_s,
            limits: now.limits,
            tables: tables.into(),
            table_bytes: now.table_bytes,
            arena: now.arena,
            waits: self.waits(&now),
            locks: self.locks(&now),
            processes,
            queue_pairs: now.queue_pairs.iter().map(|qp| of_queue_pair(qp, &rates)).collect(),
            completion_queues: self.completion_queues(&now, &rates),
            shared_receive_queues: now
                .shared_receive_queues
                .iter()
                .map(|srq| of_srq(srq, &rates))
                .collect(),
            regions: now.regions.clone(),
            channels: now.channels.clone(),
            copies: now.copies.clone(),
        };
        self.before = Some(now);
        report
    }

    fn processes(
        &mut self,
        now: &Snapshot,
        rates: &Rates<'_>,
        look: impl Fn(i32) -> Option<Seen>,
    ) -> Vec<ProcessReport> {
        self.look(now, look);
        let states: Vec<_> = now.processes.iter().map(|process| self.run_state(process)).collect();
        let halts = |state| matches!(state, RunState::Stopped | RunState::Dead);
        let keyed = now.processes.iter().zip(&states).filter(|(_, state)| halts(**state));
        let halted: Vec<_> =
            keyed.map(|(it, state)| (it.attachment, it.generation, *state)).collect();
        let times = self.halted.update(&halted, now.taken_at_ns);
        let all = now.processes.iter().zip(states).map(|(process, run_state)| {
            let owner = process.attachment;
            let at = halted.iter().position(|(attachment, ..)| *attachment == owner);
            let known = self.known.get(&(owner, process.generation));
            let seen = known.and_then(|(_, seen)| seen.as_ref());
            let (qps, cqs) = (&now.queue_pairs, &now.completion_queues);
            ProcessReport {
                last_pid: known.map(|(pid, _)| *pid),
                name: seen.map(|seen| seen.name.clone()),
                command: seen.map(|seen| seen.command.clone()),
                run_state,
                halted_s: at.map(|at| times[at]),
                calls_per_s: calls(process, rates),
                queue_pairs: qps.iter().filter(|qp| qp.owner == owner).count(),
                completion_queues: cqs.iter().filter(|cq| cq.owner == owner).count(),
                regions: now.regions.iter().filter(|region| region.owner == owner).count(),
                seen: process.clone(),
            }
        });
        all.collect()
    }

    /// Looks at the processes whose pids are known, and forgets those that are gone.
    fn look(&mut self, now: &Snapshot, look: impl Fn(i32) -> Option<Seen>) {
        let key = |process: &Process| (process.attachment, process.generation);
        let there: HashSet<_> = now.processes.iter().map(key).collect();
        self.known.retain(|key, _| there.contains(key));
        for process in &now.processes {
            if let Some(pid) = process.pid {
                self.known.insert(key(process), (pid, look(pid)));
            }
        }
    }

    fn run_state(&self, process: &Process) -> RunState {
        match self.known.get(&(process.attachment, process.generation)) {
            _ if !process.is_alive => RunState::Dead,
            Some((_, Some(seen))) if process.pid.is_some() => seen.run_state,
            _ => RunState::Unknown,
        }
    }

    fn completion_queues(
        &mut self,
        now: &Snapshot,
        rates: &Rates<'_>,
    ) -> Vec<CompletionQueueReport> {
        let key = |cq: &CompletionQueue| (cq.index, cq.generation);
        let there: HashSet<_> = now.completion_queues.iter().map(key).collect();
        self.high_water.retain(|key, _| there.contains(key));
        let all = now.completion_queues.iter().map(|cq| {
            let before = rates.before(|before| &before.completion_queues, cq.index, |cq| cq.index);
            let before = before.filter(|before| before.generation == cq.generation);
            let high = self.high_water.entry(key(cq)).or_default();
            *high = cq.unpolled_min.max(*high);
            let counts = |count: fn(PollCounts) -> u64| {
                let before = before.and_then(|before| before.counts);
                rates.of(before.map(count), cq.counts.map(count)?)
            };
            CompletionQueueReport {
                polls_per_s: counts(|counts| counts.polls),
                empty_polls_per_s: counts(|counts| counts.empty_polls),
                events_per_s: counts(|counts| counts.events),
                pushed_per_s: rates.of(before.map(|before| before.pushed), cq.pushed),
                seen_high_water: *high,
                seen: cq.clone(),
            }
        });
        all.collect()
    }

    fn waits(&mut self, now: &Snapshot) -> Vec<WaitReport> {
        let waits = now.waits();
        let key = |wait: &Wait| (wait.subject, mem::discriminant(&wait.reason), wait.progress);
        let keys: Vec<_> = waits.iter().map(key).collect();
        let times = self.waits.update(&keys, now.taken_at_ns);
        let reports = waits.into_iter().zip(times).map(|(wait, since_s)| WaitReport {
            since_s,
            is_usual: wait.reason.is_usual() && since_s == 0.0,
            text: format!("{} {}", wait.subject, wait.reason),
            wait,
        });
        reports.collect()
    }

    fn locks(&mut self, now: &Snapshot) -> Vec<LockReport> {
        let keys: Vec<_> =
            now.locks.iter().map(|held| (held.lock, held.holder, held.progress)).collect();
        let times = self.locks.update(&keys, now.taken_at_ns);
        let reports = now.locks.iter().zip(times).map(|(held, since_s)| LockReport {
            held: *held,
            is_holder_alive: now.is_alive(held.holder),
            since_s,
        });
        reports.collect()
    }
}

/// Wake-ups of the service thread, whose count has 32 bits.
fn calls(process: &Process, rates: &Rates<'_>) -> Option<f64> {
    let before = rates.before?.process(process.attachment)?;
    let calls = process.calls.wrapping_sub(before.calls);
    if before.generation == process.generation { rates.of(Some(0), calls.into()) } else { None }
}

fn of_queue_pair(qp: &QueuePair, rates: &Rates<'_>) -> QueuePairReport {
    let before = rates.before(|before| &before.queue_pairs, qp.index, |qp| qp.index);
    let before = before.filter(|before| before.number == qp.number);
    QueuePairReport {
        sends_per_s: rates.of(before.map(|before| before.sends.done), qp.sends.done),
        receives_per_s: rates.of(before.map(|before| before.receives.done), qp.receives.done),
        seen: qp.clone(),
    }
}

fn of_srq(srq: &SharedReceiveQueue, rates: &Rates<'_>) -> SharedReceiveQueueReport {
    let before = rates.before(|before| &before.shared_receive_queues, srq.index, |srq| srq.index);
    let before = before.filter(|before| before.number == srq.number);
    let taken = rates.of(before.map(|before| before.receives.done), srq.receives.done);
    SharedReceiveQueueReport { taken_per_s: taken, seen: srq.clone() }
}
