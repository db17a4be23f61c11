//! What is measured, and what comes of it.

use std::fmt;

use bench::transport::{MemoryKind, Needs};
use cq_core::causes::Causes;

use crate::control::EndFailure;
use crate::op::Op;
use crate::payload;
use crate::pingpong;
use crate::shape::{CREDITS, Shape};
use crate::stats::{Latencies, Tally};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Which way messages go.
    pub kind: Kind,
    /// What they are moved by.
    pub op: Op,
    /// Whose memory they lie in.
    pub memory: MemoryKind,
    /// Whether the ends sleep on completion channels.
    pub events: bool,
    /// Bytes of a message.
    pub size: u32,
    /// Round trips, or messages of a stream.
    pub iters: u64,
}

/// Which way messages go.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// To and fro.
    PingPong,
    /// One way.
    Stream(Shape),
}

impl Kind {
    /// As the subcommand is named.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PingPong => "pingpong",
            Self::Stream(_) => "stream",
        }
    }
}

/// What a job came to.
pub struct Outcome {
    /// What was to be measured.
    pub job: Job,
    /// Iterations done.
    pub done: u64,
    /// Nanoseconds that they took.
    pub elapsed: u64,
    /// How long messages took one way.
    pub latencies: Latencies,
    /// Polls and completions of both ends.
    pub tally: Tally,
    /// What went wrong: one failure, unless the ends are in two processes and both have one to tell.
    pub failures: Vec<EndFailure>,
}

impl Outcome {
    /// Whether messages were checked and every one was right.
    pub const fn verified(&self) -> bool {
        self.failures.is_empty() && self.done > 0
    }

    /// What went wrong, in a line.
    pub fn error(&self) -> Option<String> {
        let failures: Vec<_> =
            self.failures.iter().map(|failure| Causes(failure).to_string()).collect();
        (!failures.is_empty()).then(|| failures.join("; "))
    }

    /// Whether something is left undone.
    pub const fn partial(&self) -> bool {
        self.done < self.job.iters
    }

    /// Messages that arrived: what goes to and fro is two.
    pub const fn messages(&self) -> u64 {
        let each = match self.job.kind {
            Kind::PingPong if !self.job.op.fetches() => 2,
            _ => 1,
        };
        self.done.saturating_mul(each)
    }

    /// How many of something there were in a second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.elapsed.max(1) as f64 / 1e9)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}, {}", self.kind.name(), self.op.name(), self.mode())
    }
}

impl Job {
    /// How the ends wait.
    pub const fn mode(&self) -> &'static str {
        if self.events { "events" } else { "polled" }
    }

    /// Bytes that the messages of both ends take.
    pub fn memory(&self) -> u64 {
        self.needs().iter().map(|needs| needs.bytes as u64).sum()
    }

    /// Slots of either end.
    pub const fn slots(&self) -> u32 {
        match self.kind {
            Kind::PingPong if matches!(self.op, Op::Write) => pingpong::write::SLOTS,
            Kind::PingPong => pingpong::DEPTH,
            Kind::Stream(shape) => shape.depth,
        }
    }

    /// How the end that fetches does it: a ping-pong is one request at a time.
    pub const fn shape(&self) -> Shape {
        match self.kind {
            Kind::PingPong => Shape::ONE,
            Kind::Stream(shape) => shape,
        }
    }

    /// The needs of the measuring end, and of the other one.
    pub fn needs(&self) -> [Needs; 2] {
        let &Self { memory, events, op, .. } = self;
        let bytes = payload::bytes(self.size, self.slots());
        let atomics = op.is_atomic();
        let needs = |sends, receives| Needs { sends, receives, bytes, memory, atomics, events };
        match self.kind {
            // Who is fetched from sleeps until it is over.
            _ if op.fetches() => {
                [needs(self.shape().depth, 1), Needs { events: true, ..needs(1, 1) }]
            }
            Kind::PingPong => [needs(pingpong::DEPTH, pingpong::DEPTH); 2],
            Kind::Stream(shape) => [needs(CREDITS, shape.depth), needs(shape.depth, CREDITS)],
        }
    }

    /// The names of the measuring end, and of the other one.
    pub const fn names(&self) -> [&'static str; 2] {
        match self.kind {
            _ if self.op.fetches() => ["initiator", "target"],
            Kind::PingPong => ["client", "server"],
            Kind::Stream(_) => ["receiver", "sender"],
        }
    }
}
