//! One measurement from set-up to result: the ends in threads of their own.

use std::panic::resume_unwind;
use std::thread::{self, Scope, ScopedJoinHandle};

use bench::cores::Cores;
use bench::transport::{Attempt, End, Memory, SetUpError, Transport};
use cq_core::wr::RemoteAddr;

use crate::control::{Control, Failure, Threads};
use crate::fetch;
use crate::interrupt::Stop;
use crate::job::{Job, Kind, Outcome};
use crate::op::Op;
use crate::payload::Layout;
use crate::pingpong;
use crate::progress;
use crate::side::{Side, Waiting};
use crate::stats::Latencies;
use crate::stream;

/// A job at work.
pub struct Run<'a> {
    /// The job.
    pub job: Job,
    control: &'a Control<'a>,
    cores: Cores,
}

impl Job {
    /// Measures with both ends in this process. The result is what was measured so far if `stop` or a
    /// failure comes between.
    pub fn run<T: Transport>(&self, transport: &T, stop: &Stop) -> Result<Outcome, SetUpError> {
        let meeting = Threads::default();
        let control = Control::new(stop, &meeting);
        let run = Run::new(*self, &control);
        let [one, other] = transport.pair(&self.needs())?;
        let [to_one, to_other] = [&one, &other].map(|end| end.memory.remote(0));
        let (mut measuring, mut other) = (run.side(one, to_other), run.side(other, to_one));
        let mut latencies = Latencies::new();
        let elapsed = thread::scope(|scope| {
            run.help(scope, &mut other)?;
            // The helper must not wait for an end that never comes.
            run.measure(scope, &mut measuring, &mut latencies).inspect_err(|_| stop.leave())
        })?;
        Ok(Outcome {
            job: *self,
            done: control.done(),
            elapsed,
            latencies,
            tally: measuring.tally() + other.tally(),
            failures: control.into_failure().into_iter().collect(),
        })
    }
}

impl<'a> Run<'a> {
    /// Puts a job to work.
    pub fn new(job: Job, control: &'a Control<'a>) -> Self {
        Self { job, control, cores: Cores::allowed() }
    }

    /// Puts one of its ends to work, whose peer has its memory there.
    pub fn side<T: Transport>(&self, end: End<T>, peer: RemoteAddr) -> Side<'a, T> {
        let Self { job, control, cores } = self;
        let batch = match job.kind {
            Kind::PingPong => pingpong::DEPTH,
            Kind::Stream(shape) => shape.batch,
        };
        let waiting = Waiting { control, shared_core: cores.shared() };
        let layout =
            Layout { size: job.size, count: job.slots(), peer, marked: job.op == Op::Write };
        Side::new(end, layout, batch, waiting)
    }

    /// Starts the end that helps.
    pub fn help<'scope, T: Transport>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        side: &'scope mut Side<'a, T>,
    ) -> Result<ScopedJoinHandle<'scope, ()>, SetUpError> {
        let Job { kind, op, iters, .. } = self.job;
        let [_, name] = self.job.names();
        spawn(scope, name, move || {
            self.cores.settle_second();
            self.control.oversee(name, || match kind {
                _ if op.fetches() => fetch::target(side, op, iters),
                Kind::PingPong if op == Op::Write => pingpong::write::server(side, iters),
                Kind::PingPong => pingpong::send::server(side, iters),
                Kind::Stream(shape) => stream::sender::send(side, op, shape, iters),
            });
        })
    }

    /// Runs the end that measures, and shows its progress; how many nanoseconds it took.
    pub fn measure<'scope, T: Transport>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        side: &'scope mut Side<'a, T>,
        latencies: &'scope mut Latencies,
    ) -> Result<u64, SetUpError> {
        let [name, _] = self.job.names();
        let watcher = thread::current();
        let measurer = spawn(scope, name, move || {
            self.cores.settle_first();
            self.control.oversee(name, || self.measure_with(side, latencies));
            let elapsed = self.control.elapsed();
            watcher.unpark();
            elapsed
        })?;
        progress::watch(&self.job, self.control, &measurer);
        Ok(measurer.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }

    fn measure_with<T: Transport>(
        &self,
        side: &mut Side<'a, T>,
        latencies: &mut Latencies,
    ) -> Result<(), Failure> {
        let Job { kind, op, iters, .. } = self.job;
        match kind {
            _ if op.fetches() => fetch::initiator(side, (op, self.job.shape()), iters, latencies),
            Kind::PingPong if op == Op::Write => pingpong::write::client(side, iters, latencies),
            Kind::PingPong => pingpong::send::client(side, iters, latencies),
            Kind::Stream(shape) if op == Op::Write => {
                stream::target::receive_writes(side, shape, iters, latencies)
            }
            Kind::Stream(shape) => stream::receiver::receive(side, shape, iters, latencies),
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
    use bench::transport::MemoryKind;
    use bench::transport::loopback::Loopback;

    use super::*;
    use crate::faulty::{Fault, Faulty};
    use crate::shape::Shape;

    const OPS: [Op; 5] = [Op::Send, Op::Write, Op::Read, Op::Cas, Op::Faa];

    /// Both kinds of job, awake and, where that can be, asleep, that never end by themselves.
    fn endless(transport: &impl Transport, op: Op) -> Vec<Job> {
        let size = if op.is_atomic() { 8 } else { 64 };
        let shape = Shape::new(size, 8, 3, &transport.limits()).unwrap();
        let memory = MemoryKind::Fabric;
        [Kind::PingPong, Kind::Stream(shape)]
            .into_iter()
            .flat_map(|kind| [false, true].map(|events| (kind, events)))
            .filter(|&(_, events)| op != Op::Write || !events)
            .map(|(kind, events)| Job { kind, op, memory, events, size, iters: u64::MAX })
            .collect()
    }

    /// What each job says of this fault. That it says anything shows that the other end left too.
    fn failures(fault: Fault, op: Op) -> Vec<String> {
        let transport = Faulty::new(fault);
        endless(&transport, op)
            .into_iter()
            .map(|job| {
                let outcome = job.run(&transport, &Stop::default()).unwrap();
                assert!(!outcome.verified() && outcome.partial());
                outcome.error().unwrap()
            })
            .collect()
    }

    #[track_caller]
    fn every_job_says(fault: Fault, ops: &[Op], what: &str) {
        for failure in ops.iter().flat_map(|&op| failures(fault, op)) {
            assert!(failure.contains(what), "{failure}");
            let ends = ["the client", "the receiver", "the initiator"];
            assert!(ends.iter().any(|end| failure.starts_with(end)), "{failure}");
        }
    }

    #[test]
    fn a_wrong_byte_ends_the_job() {
        every_job_says(Fault::Byte, &[Op::Send, Op::Write, Op::Read], "is wrong at byte");
        every_job_says(Fault::Byte, &[Op::Cas, Op::Faa], "the counter was at");
    }

    #[test]
    fn a_failed_request_ends_the_job() {
        every_job_says(Fault::Status, &OPS, "request 7 failed: remote access error");
    }

    #[test]
    fn a_completion_out_of_order_ends_the_job() {
        every_job_says(Fault::Order, &OPS, "request 7 completed where request");
    }

    #[test]
    fn a_wrong_length_ends_the_job() {
        every_job_says(Fault::Length, &[Op::Send], "has 5 bytes instead of 64");
    }

    #[test]
    fn an_overrun_ends_the_job() {
        every_job_says(Fault::Overrun, &OPS, "overran");
    }

    #[test]
    fn a_job_that_is_stopped_at_once_is_partial_and_shows_nothing() {
        let transport = Loopback::open().unwrap();
        let stop = Stop::default();
        stop.leave();
        for job in OPS.into_iter().flat_map(|op| endless(&transport, op)) {
            let outcome = job.run(&transport, &stop).unwrap();
            assert!(outcome.partial() && !outcome.verified());
            assert_eq!((outcome.done, outcome.latencies.summary()), (0, None));
        }
    }
}
