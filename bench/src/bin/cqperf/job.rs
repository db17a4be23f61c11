//! What is measured, and what comes of it.

use std::fmt;

use bench::transport::{Limits, MemoryKind, Needs};
use cq_core::causes::Causes;

use crate::command::{Command, Flow};
use crate::control::EndFailure;
use crate::op::{Op, WORD};
use crate::payload;
use crate::pingpong;
use crate::shape::{CREDITS, Shape, TooDeep};
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

/// The memory that messages may take, so that a large number meets an explanation and not the kernel's
/// out-of-memory killer. Enough for a ping-pong of 1 GiB.
const MEMORY: u64 = 4 << 30;

impl Job {
    /// This command's, on a device with these limits.
    pub fn new(command: &Command, limits: &Limits) -> Result<Self, Unfit> {
        let &Command { flow, op, memory, events, iters, .. } = command;
        let size = size(command, limits)?;
        if op == Op::Write && events {
            return Err(Unfit::Silent);
        }
        let kind = match flow {
            Flow::Pingpong => Kind::PingPong,
            Flow::Stream { batch, signal_every } => {
                Kind::Stream(Shape::new(size, batch.get(), signal_every.get(), limits)?)
            }
        };
        let job = Self { kind, op, memory, events, size, iters: iters.get() };
        match job.needs().iter().map(|needs| needs.bytes as u64).sum() {
            bytes if bytes > MEMORY => Err(Unfit::Memory { bytes }),
            _ => Ok(job),
        }
    }

    /// How the ends wait.
    pub const fn mode(&self) -> &'static str {
        if self.events { "events" } else { "polled" }
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

fn size(command: &Command, limits: &Limits) -> Result<u32, Unfit> {
    let (size, op) = (command.size.get(), command.op.name());
    if command.op.is_atomic() {
        return match limits.atomics {
            true if size == u64::from(WORD) => Ok(WORD),
            true => Err(Unfit::Word { size, op }),
            false => Err(Unfit::Atomics { op }),
        };
    }
    u32::try_from(size)
        .ok()
        .filter(|&size| u64::from(size) <= limits.message)
        .ok_or(Unfit::Message { size, most: limits.message })
}

/// What can't be measured on this device.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// A message is too long for the device.
    #[error("--size {size}: the device's messages have at most {most} bytes")]
    Message {
        /// What was asked for.
        size: u64,
        /// What the device can.
        most: u64,
    },
    /// An atomic is asked to be of another size.
    #[error("--size {size}: --op {op} is about {WORD} bytes, always")]
    Word {
        /// What was asked for.
        size: u64,
        /// Which one.
        op: &'static str,
    },
    /// There are no atomics.
    #[error("--op {op}: the device has no atomics")]
    Atomics {
        /// Which one.
        op: &'static str,
    },
    /// A WRITE raises no event at the peer.
    #[error("--events with --op write: who is written to is not told, so it polls its memory")]
    Silent,
    /// The queues would be too deep.
    #[error(transparent)]
    Queues(#[from] TooDeep),
    /// The messages would take too much memory.
    #[error(
        "the messages would take {bytes} bytes of memory, more than the {MEMORY} that they may: \
         choose a smaller --size, or for a stream a smaller --batch or --signal-every"
    )]
    Memory {
        /// What they would take.
        bytes: u64,
    },
}
