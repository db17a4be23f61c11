//! What is measured, and one measurement from set-up to result.

use std::fmt;
use std::panic::resume_unwind;
use std::thread::{self, Scope, ScopedJoinHandle};

use bench::cores::Cores;
use bench::transport::{Attempt, End, Needs, SetUpError, Transport};

use crate::control::{Control, EndFailure, Failure};
use crate::interrupt::Stop;
use crate::payload;
use crate::pingpong;
use crate::progress;
use crate::side::{Side, Waiting};
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
    /// What went wrong.
    pub failure: Option<EndFailure>,
}

impl Outcome {
    /// Whether messages were checked and every one was right.
    pub const fn verified(&self) -> bool {
        self.failure.is_none() && self.done > 0
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
    const fn slots(&self) -> u32 {
        match self.kind {
            Kind::PingPong => pingpong::DEPTH,
            Kind::Stream(shape) => shape.depth,
        }
    }

    /// The needs of the measuring end, and of the other one.
    fn needs(&self) -> [Needs; 2] {
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
    const fn names(&self) -> [&'static str; 2] {
        match self.kind {
            Kind::PingPong => ["client", "server"],
            Kind::Stream(_) => ["receiver", "sender"],
        }
    }

    /// Measures. The result is what was measured so far if `stop` or a failure comes between.
    pub fn run<T: Transport>(&self, transport: &T, stop: &Stop) -> Result<Outcome, SetUpError> {
        let cores = Cores::allowed();
        let control = Control::new(stop);
        let waiting = Waiting { control: &control, shared_core: cores.shared() };
        let ends = transport.pair(&self.needs())?;
        let [mut measuring, mut other] = ends.map(|end| self.side(end, waiting));
        let mut latencies = Latencies::new();
        let watcher = thread::current();
        let [measurer, helper] = self.names();
        let elapsed = thread::scope(|scope| {
            spawn(scope, helper, || {
                cores.settle_second();
                control.oversee(helper, || self.help(&mut other));
            })?;
            let measurer = spawn(scope, measurer, || {
                cores.settle_first();
                control.oversee(measurer, || self.measure(&mut measuring, &mut latencies));
                let elapsed = control.elapsed();
                watcher.unpark();
                elapsed
            });
            // The helper must not wait for an end that never comes.
            let measurer = measurer.inspect_err(|_| stop.leave())?;
            progress::watch(self, &control, &measurer);
            Ok(measurer.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        Ok(Outcome {
            job: *self,
            done: control.done(),
            elapsed,
            latencies,
            tally: measuring.tally() + other.tally(),
            failure: control.into_failure(),
        })
    }

    fn side<'a, T: Transport>(&self, end: End<T>, waiting: Waiting<'a>) -> Side<'a, T> {
        let batch = match self.kind {
            Kind::PingPong => pingpong::DEPTH,
            Kind::Stream(shape) => shape.batch,
        };
        Side::new(end, (self.size, self.slots()), batch, waiting)
    }

    fn measure<T: Transport>(
        &self,
        side: &mut Side<'_, T>,
        latencies: &mut Latencies,
    ) -> Result<(), Failure> {
        match self.kind {
            Kind::PingPong => pingpong::client(side, self.iters, latencies),
            Kind::Stream(shape) => stream::receive(side, shape, self.iters, latencies),
        }
    }

    fn help<T: Transport>(&self, side: &mut Side<'_, T>) -> Result<(), Failure> {
        match self.kind {
            Kind::PingPong => pingpong::server(side, self.iters),
            Kind::Stream(shape) => stream::send(side, shape, self.iters),
        }
    }
}

fn spawn<'scope, V: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> V + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, V>, SetUpError> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn_scoped(scope, work).attempt("start a thread")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{Fault, Faulty};
    use bench::transport::loopback::Loopback;

    /// Both kinds of job, awake and asleep, that never end by themselves.
    fn endless(transport: &impl Transport) -> Vec<Job> {
        let shape = Shape::new(64, 8, 3, &transport.limits()).unwrap();
        [Kind::PingPong, Kind::Stream(shape)]
            .into_iter()
            .flat_map(|kind| [false, true].map(|events| (kind, events)))
            .map(|(kind, events)| Job { kind, events, size: 64, iters: u64::MAX })
            .collect()
    }

    /// What each job says of this fault. That it says anything shows that the other end left too.
    fn failures(fault: Fault) -> Vec<String> {
        let transport = Faulty { loopback: Loopback::open().unwrap(), fault };
        endless(&transport)
            .into_iter()
            .map(|job| {
                let outcome = job.run(&transport, &Stop::default()).unwrap();
                assert!(!outcome.verified() && outcome.partial());
                outcome.failure.unwrap().to_string()
            })
            .collect()
    }

    #[track_caller]
    fn every_job_says(fault: Fault, what: &str) {
        for failure in failures(fault) {
            assert!(failure.contains(what), "{failure}");
            assert!(failure.starts_with("the client") || failure.starts_with("the receiver"));
        }
    }

    #[test]
    fn a_wrong_byte_ends_the_job() {
        every_job_says(Fault::Byte, "is wrong at byte");
    }

    #[test]
    fn a_failed_request_ends_the_job() {
        every_job_says(Fault::Status, "request 7 completed with remote access error");
    }

    #[test]
    fn a_completion_out_of_order_ends_the_job() {
        every_job_says(Fault::Order, "request 7 completed where request");
    }

    #[test]
    fn a_wrong_length_ends_the_job() {
        every_job_says(Fault::Length, "has 5 bytes instead of 64");
    }

    #[test]
    fn an_overrun_ends_the_job() {
        every_job_says(Fault::Overrun, "overran");
    }

    #[test]
    fn a_job_that_is_stopped_at_once_is_partial_and_shows_nothing() {
        let transport = Loopback::open().unwrap();
        let stop = Stop::default();
        stop.leave();
        for job in endless(&transport) {
            let outcome = job.run(&transport, &stop).unwrap();
            assert!(outcome.partial() && !outcome.verified());
            assert_eq!((outcome.done, outcome.latencies.summary()), (0, None));
        }
    }
}
