//! What can be measured: one description for the command line, the other process and the report.
//!
//! | operation | what happens | who learns of it |
//! |---|---|---|
//! | send | a message goes to a receive | both ends, by completions |
//! | write | a message goes to memory of the peer | the peer, by looking at that memory |
//! | read | a message is fetched from memory of the peer | who fetches |
//! | cas | a counter in memory of the peer is replaced by the next number | who does it |
//! | faa | one is added to it | who does it |

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

use bench::transport::{Limits, MemoryKind, Needs};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::payload;
use crate::stats::{Latency, Tally};

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Which way messages go.
    pub flow: Flow,
    /// What they are moved by.
    pub op: Op,
    /// Whose memory they lie in.
    pub memory: MemoryKind,
    /// Whether the ends sleep on completion channels.
    pub events: bool,
    /// Bytes of a message.
    pub size: NonZeroU64,
    /// Round trips, or messages of a stream.
    pub iters: NonZeroU64,
    /// Requests that a stream posts, and completions that it polls, at a time.
    pub batch: NonZeroU32,
    /// How far apart signaled requests of a stream are.
    pub signal_every: NonZeroU32,
}

/// Which way messages go: to and fro, or one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    Pingpong,
    Stream,
}

/// An operation. A variant with a docstring would make the help twice as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    Send,
    Write,
    Read,
    Cas,
    Faa,
}

/// As the command line has it.
pub fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is skipped").get_name().to_owned()
}

impl Op {
    /// Whether one end does everything, and the other one only has the memory.
    pub const fn fetches(self) -> bool {
        matches!(self, Self::Read | Self::Cas | Self::Faa)
    }

    /// Whether it is about eight bytes, as one step.
    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::Cas | Self::Faa)
    }

    /// What a latency is the time of.
    pub const fn latency_is(self) -> &'static str {
        if self.fetches() { "operation" } else { "one way" }
    }
}

/// Bytes of a message, where none are said.
pub const SIZE: NonZeroU64 = NonZeroU64::new(64).expect("it is not zero");
/// Bytes that an atomic is about.
pub const WORD: NonZeroU64 = NonZeroU64::new(8).expect("it is not zero");
/// Requests posted at a time, where it is not said.
pub const BATCH: NonZeroU32 = NonZeroU32::new(32).expect("it is not zero");

/// What is measured without a command: a few seconds in all, also on a slow machine with one core.
pub const DEFAULT: [Job; 4] = [
    usual(Flow::Pingpong, Op::Send, false, 200_000),
    usual(Flow::Pingpong, Op::Send, true, 20_000),
    usual(Flow::Pingpong, Op::Write, false, 200_000),
    usual(Flow::Stream, Op::Send, false, 1_000_000),
];

const fn usual(flow: Flow, op: Op, events: bool, iters: u64) -> Job {
    let iters = NonZeroU64::new(iters).expect("it is not zero");
    let memory = MemoryKind::Fabric;
    Job { flow, op, memory, events, size: SIZE, iters, batch: BATCH, signal_every: BATCH }
}

/// Messages and requests of either end of a ping-pong. Receives are posted well ahead, so that nobody waits for one.
pub const DEPTH: u32 = 16;

/// Credit messages of a stream that can be under way: one for each half of the receives.
pub const CREDITS: u32 = 2;

/// How deep the queues of a stream are, and how much of them is used at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many sends are posted, and how many completions polled, at a time.
    pub batch: u32,
    /// How far apart signaled sends are.
    pub signal_every: u32,
    /// Messages at either end, each with its request: a multiple of two batches, and enough for a batch to
    /// be posted while the sends before it wait for the signaled one that covers them.
    pub depth: u32,
}

impl Shape {
    /// How many messages a credit message allows.
    pub const fn credit(&self) -> u64 {
        (self.depth / CREDITS) as u64
    }
}

impl Job {
    /// Whether it can be measured on a device with these limits.
    ///
    /// # Errors
    /// It can't.
    pub fn fit(&self, limits: &Limits) -> Result<(), Exit> {
        /// The memory that messages may take, so that a large number meets an explanation and not the kernel's
        /// out-of-memory killer. Enough for a ping-pong of 1 GiB.
        const MEMORY: u64 = 4 << 30;
        let (size, op, longest) = (self.size, name(self.op), limits.message.min(u32::MAX.into()));
        let Shape { batch, signal_every, depth } = self.shape();
        let taken = || self.needs().iter().map(|needs| needs.bytes as u64).sum::<u64>();
        Err(Exit::usage(if self.op.is_atomic() && !limits.atomics {
            format!("--op {op}: the device has no atomics")
        } else if self.op.is_atomic() && size != WORD {
            format!("--size {size}: --op {op} is about {WORD} bytes, always")
        } else if size.get() > longest {
            format!("--size {size}: the device's messages have at most {longest} bytes")
        } else if self.op == Op::Write && self.events {
            let silent = "who is written to is not told, so it polls its memory";
            format!("--events with --op write: {silent}")
        } else if depth > limits.requests {
            format!(
                "--batch {batch} with --signal-every {signal_every} needs queues of {depth} \
                 requests: the device's have at most {}",
                limits.requests
            )
        } else if taken() > MEMORY {
            format!(
                "the messages would take {} bytes of memory, more than the {MEMORY} that they may: \
                 choose a smaller --size, or for a stream a smaller --batch or --signal-every",
                taken()
            )
        } else {
            return Ok(());
        }))
    }

    /// Bytes of a message that [fits](Self::fit).
    pub const fn bytes(&self) -> u32 {
        self.size.get() as u32
    }

    /// How the ends wait.
    pub const fn mode(&self) -> &'static str {
        if self.events { "events" } else { "polled" }
    }

    /// Slots of either end.
    pub fn slots(&self) -> u32 {
        match self.flow {
            // One that the server answers from.
            Flow::Pingpong if self.op == Op::Write => DEPTH + 1,
            Flow::Pingpong => DEPTH,
            Flow::Stream => self.shape().depth,
        }
    }

    /// How messages are streamed, or fetched: in a ping-pong one after the other.
    pub fn shape(&self) -> Shape {
        /// Messages under way, so that neither end waits for the other after each batch. Fewer if they are long,
        /// since they should stay in the caches.
        const UNDER_WAY: u64 = 128;
        const CACHED: u64 = 1 << 20;
        if self.flow == Flow::Pingpong {
            return Shape { batch: 1, signal_every: 1, depth: 1 };
        }
        let [batch, signal_every] = [self.batch, self.signal_every].map(NonZeroU32::get);
        let covered = u64::from(batch) + u64::from(signal_every);
        let needed = UNDER_WAY.min(CACHED / self.size).max(covered);
        let needed = needed.next_multiple_of(u64::from(CREDITS) * u64::from(batch));
        // Too many for any device are as good as more.
        Shape { batch, signal_every, depth: needed.try_into().unwrap_or(u32::MAX) }
    }

    /// The needs of the measuring end, and of the other one.
    pub fn needs(&self) -> [Needs; 2] {
        let &Self { memory, events, op, .. } = self;
        let (depth, bytes) = (self.shape().depth, payload::bytes(self.bytes(), self.slots()));
        let atomics = op.is_atomic();
        let needs =
            |sends, receives| Needs { sends, receives, inline: 0, bytes, memory, atomics, events };
        match self.flow {
            // Who is fetched from sleeps until it is over.
            _ if op.fetches() => [needs(depth, 1), Needs { events: true, ..needs(1, 1) }],
            Flow::Pingpong => [needs(DEPTH, DEPTH); 2],
            Flow::Stream => [needs(CREDITS, depth), needs(depth, CREDITS)],
        }
    }

    /// The names of the measuring end, and of the other one.
    pub const fn names(&self) -> [&'static str; 2] {
        match self.flow {
            _ if self.op.fetches() => ["initiator", "target"],
            Flow::Pingpong => ["client", "server"],
            Flow::Stream => ["receiver", "sender"],
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, {}", name(self.flow), name(self.op), self.mode())
    }
}

/// What a job came to.
#[derive(Debug)]
pub struct Outcome {
    /// What was to be measured.
    pub job: Job,
    /// Iterations done.
    pub done: u64,
    /// Nanoseconds that they took.
    pub elapsed: u64,
    /// How long messages took, if that can be told.
    pub latency: Option<Latency>,
    /// Polls and completions of both ends.
    pub tally: Tally,
    /// Whether an end was asked to leave.
    pub left: bool,
    /// What went wrong: one failure, unless both ends have one to tell.
    pub failures: Vec<String>,
}

impl Outcome {
    /// Whether messages were checked and every one was right.
    pub const fn verified(&self) -> bool {
        self.failures.is_empty() && self.done > 0
    }

    /// What went wrong, in a line.
    pub fn error(&self) -> Option<String> {
        (!self.failures.is_empty()).then(|| self.failures.join("; "))
    }

    /// Whether something is left undone.
    pub const fn partial(&self) -> bool {
        self.done < self.job.iters.get()
    }

    /// Messages that arrived: what goes to and fro is two.
    pub fn messages(&self) -> u64 {
        let two = self.job.flow == Flow::Pingpong && !self.job.op.fetches();
        self.done.saturating_mul(if two { 2 } else { 1 })
    }

    /// How many of something there were in a second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.elapsed.max(1) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { message: 1 << 30, requests: 4096, atomics: true };

    fn stream(size: u64, batch: u32, signal_every: u32) -> Job {
        let [batch, signal_every] = [batch, signal_every].map(|n| NonZeroU32::new(n).unwrap());
        Job { size: NonZeroU64::new(size).unwrap(), batch, signal_every, ..DEFAULT[3] }
    }

    #[test]
    fn the_depth_is_whole_batches_for_each_credit() {
        for (batch, signal_every) in [(1, 1), (1, 100), (32, 32), (33, 7), (1024, 1), (7, 900)] {
            for size in [1, 64, 1 << 16, 1 << 20, 1 << 30] {
                let shape = stream(size, batch, signal_every).shape();
                assert_eq!(shape.depth % (CREDITS * batch), 0, "{shape:?}");
                assert!(shape.depth >= batch + signal_every, "{shape:?}");
            }
        }
        // Long messages are fewer.
        let depth = |size| stream(size, 1, 1).shape().depth;
        assert_eq!([64, 1 << 14, 1 << 30].map(depth), [128, 64, 2]);
    }

    #[test]
    fn what_is_too_deep_for_the_device_is_refused_without_overflow() {
        assert!(stream(64, 1024, 1).fit(&LIMITS).is_ok());
        for (batch, signal_every) in [(2049, 1), (1, 4096), (u32::MAX, u32::MAX), (1, u32::MAX)] {
            let error = stream(64, batch, signal_every).fit(&LIMITS).unwrap_err().to_string();
            assert!(error.contains("at most 4096"), "{error}");
        }
        let none = Limits { atomics: false, ..LIMITS };
        let atomic = Job { op: Op::Faa, ..stream(8, 1, 1) };
        assert!(atomic.fit(&LIMITS).is_ok() && atomic.fit(&none).is_err());
    }
}
