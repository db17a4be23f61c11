//! What is measured, and what comes of it.

use std::fmt;

use bench::transport::Needs;

use crate::control::EndFailure;
use crate::payload;
use crate::pingpong;
use crate::stats::{Latencies, Tally};
use crate::stream::{self, Shape};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// Which way messages go.
    pub kind: Kind,
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

    const fn messages_per_iter(&self) -> u64 {
        match self {
            Self::PingPong => 2,
            Self::Stream(_) => 1,
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
        let failures: Vec<_> = self.failures.iter().map(ToString::to_string).collect();
        (!failures.is_empty()).then(|| failures.join("; "))
    }

    /// Whether something is left undone.
    pub const fn partial(&self) -> bool {
        self.done < self.job.iters
    }

    /// Messages that arrived.
    pub const fn messages(&self) -> u64 {
        self.done.saturating_mul(self.job.kind.messages_per_iter())
    }

    /// How many of something there were in a second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / (self.elapsed.max(1) as f64 / 1e9)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kind.name(), self.mode())
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
            Kind::PingPong => pingpong::DEPTH,
            Kind::Stream(shape) => shape.depth,
        }
    }

    /// The needs of the measuring end, and of the other one.
    pub fn needs(&self) -> [Needs; 2] {
        let (bytes, events) = (payload::bytes(self.size, self.slots()), self.events);
        let (sends, receives) = match self.kind {
            Kind::PingPong => (pingpong::DEPTH, pingpong::DEPTH),
            Kind::Stream(shape) => (stream::CREDITS, shape.depth),
        };
        [
            Needs { sends, receives, bytes, events },
            Needs { sends: receives, receives: sends, bytes, events },
        ]
    }

    /// The names of the measuring end, and of the other one.
    pub const fn names(&self) -> [&'static str; 2] {
        match self.kind {
            Kind::PingPong => ["client", "server"],
            Kind::Stream(_) => ["receiver", "sender"],
        }
    }
}
