//! One job, measured by two ends that are connected by a [`Link`]. The one that connects has the command line, measures,
//! and reports; the one that listens helps, and serves one run.

use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bench::Failure;
use bench::cores::Cores;
use bench::transport::{About, Attempt, CONNECT, End, Limits, Needs, Transport};
use cq_verbs::causes::Causes;
use cq_verbs::device::DeviceQp;
use cq_verbs::wr::RemoteAddr;

use crate::control::Control;
use crate::exit::{Exit, INTERRUPTED};
use crate::interrupt::Stop;
use crate::job::{Flow, Job, Op, Outcome};
use crate::link::{Ending, Link, LinkError, Message, SILENCE, words};
use crate::side::Side;
use crate::{host, pingpong, progress, receiver, requester};

/// The other end's process or thread, and what runs here.
pub struct Peer<'a, T> {
    transport: &'a T,
    link: Link,
    stop: Arc<Stop>,
    /// What both devices can.
    limits: Limits,
}

/// How long one that connects may be silent at first, while others wait.
const GREETING: Duration = Duration::from_secs(10);

impl<'a, T: Transport> Peer<'a, T> {
    /// Waits for a process that connects, and gets to know it. What is no cqperf is turned away, in a line on
    /// stderr. Whoever comes later meets nobody.
    pub fn receive(
        transport: &'a T,
        listener: TcpListener,
        stop: &Arc<Stop>,
    ) -> Result<Self, Exit> {
        loop {
            let (socket, from) = host::accept(&listener, stop)?;
            match Self::meet(transport, socket, stop, GREETING) {
                // None of ours: one of ours that is lost would have asked to leave.
                Err(exit) if exit.why.is::<LinkError>() && !stop.asked() => {
                    // Where stderr is closed, nobody wants to know.
                    let _ = writeln!(io::stderr(), "turned away {from}: {exit}");
                }
                met => return met,
            }
        }
    }

    /// Gets to know the process at the other end of this connection, which may be silent for so long at first.
    pub fn meet(
        transport: &'a T,
        socket: impl Into<OwnedFd>,
        stop: &Arc<Stop>,
        greeting: Duration,
    ) -> Result<Self, Exit> {
        let link = Link::new(socket.into(), stop, greeting).map_err(LinkError::from)?;
        let &About { name, limits, .. } = transport.about();
        let mut peer = Self { transport, link, stop: Arc::clone(stop), limits };
        peer.say(&Message::Hello { transport: name.to_owned(), limits })?;
        peer.limits = peer.explained(peer.greeted())?;
        peer.link.silence = SILENCE;
        Ok(peer)
    }

    /// What both devices can.
    fn greeted(&self) -> Result<Limits, Exit> {
        let ours = self.transport.about().name;
        match self.hear()? {
            Message::Hello { transport, limits } if transport == ours => {
                Ok(self.limits.min(limits))
            }
            Message::Hello { transport, .. } => Err(Exit::failed(format!(
                "the other end runs over {}, this one over {ours}: choose the same --transport",
                words(&transport)
            ))),
            _ => Err(LinkError::out_of_order().into()),
        }
    }

    /// Measures with one end here. If both ends have `one_clock`, a stream's latencies tell.
    pub fn measure(&self, job: &Job, one_clock: bool) -> Result<Outcome, Exit> {
        job.fit(&self.limits)?;
        self.say(&Message::Job(*job))?;
        let mut outcome = self.work(*job, 0)?;
        if !one_clock && job.flow == Flow::Stream && !job.op.fetches() {
            // The stamps are of another clock.
            outcome.latency = None;
        }
        Ok(outcome)
    }

    /// Says that there is no more to measure, or why not.
    pub fn close<V>(&self, ended: Result<V, Exit>) -> Result<V, Exit> {
        if ended.is_ok() {
            // If it fails, the other side knows already.
            let _ = self.say(&Message::Done);
        }
        self.explained(ended)
    }

    /// Helps the other process to measure until it is done.
    pub fn serve(&self) -> Result<(), Exit> {
        self.explained(self.serve_all())
    }

    fn serve_all(&self) -> Result<(), Exit> {
        loop {
            let job = match self.hear()? {
                Message::Job(job) => job,
                Message::Done => return Ok(()),
                _ => return Err(LinkError::out_of_order().into()),
            };
            job.fit(&self.limits)?;
            let outcome = self.work(job, 1)?;
            match outcome.error() {
                Some(why) => return Err(Exit::failed(format!("{job}: {why}"))),
                None if outcome.left => return Err(Exit::interrupted()),
                None => {}
            }
        }
    }

    /// Does the part of the measuring end, which is 0, or of the other one, 1.
    fn work(&self, job: Job, which: usize) -> Result<Outcome, Exit> {
        let (end, there) = self.end(&job.needs()[which])?;
        let (control, cores) = (Control::new(&self.stop, &self.link), Cores::allowed());
        let mut side = Side::new(end, job, there, &control, cores.shared());
        let (work, watcher) = (part(&job, which), thread::current());
        let (worked, elapsed) = thread::scope(|scope| {
            let worker = || {
                cores.settle(which);
                let worked = (work(&mut side), control.elapsed());
                watcher.unpark();
                worked
            };
            let thread = thread::Builder::new().name(job.names()[which].to_owned());
            let worker = thread.spawn_scoped(scope, worker).attempt("start a thread")?;
            if which == 0 {
                progress::watch(&job, &control, &worker);
            }
            Ok::<_, Exit>(worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        let failure = worked.err().map(|why| words(&Causes(&*why).to_string()));
        let ours = Ending { tally: side.tally(), left: self.stop.asked(), failure };
        // If it can't be told, the other one can't be heard either, and that says why.
        let _ = self.say(&Message::Ended(ours.clone()));
        // This end is still there until the other one has said so.
        let theirs = self.ending();
        let failed = |ending: &Ending, which: usize| {
            let end = job.names()[which];
            ending.failure.as_ref().map(|why| format!("the {end} failed: {why}"))
        };
        Ok(Outcome {
            job,
            done: control.done(),
            elapsed,
            latency: side.latencies.summary(),
            tally: ours.tally + theirs.tally,
            left: ours.left || theirs.left,
            failures: failed(&ours, which).into_iter().chain(failed(&theirs, 1 - which)).collect(),
        })
    }

    /// An end that is connected to one of the other process, and where that one's memory is.
    fn end(&self, needs: &Needs) -> Result<(End<T>, RemoteAddr), Exit> {
        let (mut end, port) = (self.transport.end(needs)?, &self.transport.about().port);
        let (ours, RemoteAddr { addr, rkey }) = (end.pair.endpoint(port), end.memory.remote(0)?);
        self.say(&Message::Address { pair: ours, addr, rkey })?;
        let Message::Address { pair, addr, rkey } = self.hear()? else {
            return Err(LinkError::out_of_order().into());
        };
        if pair == ours {
            // Connected to itself, it would find every message right.
            let why = "the two processes do not share a device";
            return Err(Exit::failed(format!("the other end has the address of this one: {why}")));
        }
        end.pair.connect(port, &pair).attempt(CONNECT)?;
        Ok((end, RemoteAddr { addr, rkey }))
    }

    /// How the part of the other process' end was.
    fn ending(&self) -> Ending {
        let why = loop {
            match self.link.next(None) {
                // It was ready, and this end had left.
                Ok(Some(Message::Ready)) => {}
                Ok(Some(Message::Ended(ending))) => {
                    let failure = ending.failure.map(|why| words(&why));
                    return Ending { failure, ..ending };
                }
                Ok(_) => break LinkError::out_of_order(),
                Err(why) => break why,
            }
        };
        Ending { failure: Some(why.to_string()), ..Ending::default() }
    }

    fn say(&self, message: &Message) -> Result<(), LinkError> {
        self.link.send(message)
    }

    /// The next message, unless it says that the other process gives up.
    fn hear(&self) -> Result<Message, Exit> {
        match self.link.next(Some(&self.stop))? {
            Some(Message::Ended(Ending { failure: Some(why), .. })) => {
                Err(Exit::failed(format!("the other end: {}", words(&why))))
            }
            Some(Message::Ended(Ending { left: true, .. })) | None => Err(Exit::interrupted()),
            Some(message) => Ok(message),
        }
    }

    /// Tells the other process why this one gives up, if it does.
    fn explained<V>(&self, ended: Result<V, Exit>) -> Result<V, Exit> {
        if let Err(exit) = &ended {
            // If it fails, the other side knows already.
            let _ = self.say(&Message::Ended(giving_up(exit)));
        }
        ended
    }
}

fn giving_up(exit: &Exit) -> Ending {
    let left = exit.code == INTERRUPTED;
    let failure = (!left).then(|| words(&exit.to_string()));
    Ending { left, failure, ..Ending::default() }
}

/// Tells the process at the other end of this connection why this one can't meet it.
pub fn decline(socket: OwnedFd, why: &Exit) -> Result<(), LinkError> {
    let link = Link::new(socket, &Arc::default(), GREETING)?;
    link.send(&Message::Ended(giving_up(why)))?;
    // Before the connection is closed, it says who it is.
    link.next(None).map(drop)
}

/// What the measuring end does, which is 0, or the other one, 1.
fn part<T: Transport>(job: &Job, which: usize) -> fn(&mut Side<'_, T>) -> Result<(), Failure> {
    match (job.flow, job.op, which) {
        (_, Op::Read | Op::Cas | Op::Faa, 0) => requester::request,
        (_, Op::Read | Op::Cas | Op::Faa, _) => requester::target,
        (Flow::Pingpong, Op::Send | Op::Write, 0) => pingpong::client,
        (Flow::Pingpong, Op::Send | Op::Write, _) => pingpong::server,
        (Flow::Stream, Op::Send, 0) => receiver::receive,
        (Flow::Stream, Op::Write, 0) => receiver::receive_writes,
        (Flow::Stream, Op::Send | Op::Write, _) => requester::request,
    }
}

#[cfg(test)]
mod tests;
