//! A run of two processes, each with one end. The one that connects has the command line, measures, and
//! reports; the one that listens helps, and serves one run.

use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bench::transport::{End, Limits, Memory, Needs, SetUpError, Transport};
use cq_core::causes::Causes;
use cq_core::wr::RemoteAddr;

use crate::command::Command;
use crate::control::{Control, EndFailure, Failure, Meeting};
use crate::host::{self, Unreachable};
use crate::interrupt::Stop;
use crate::job::{Job, Kind, Outcome, Unfit};
use crate::link::{Link, LinkError, SILENCE};
use crate::message::{Address, Ending, Hello, Message, words};
use crate::run::Run;
use crate::stats::{Latencies, Tally};

/// The other process, and what runs here.
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
    ) -> Result<Self, Error> {
        loop {
            let (socket, from) = host::accept(&listener, stop)?.ok_or(Error::Interrupted)?;
            match Self::meet_within(GREETING, transport, socket, stop) {
                // None of ours: one of ours that is lost would have asked to leave.
                Err(Error::Link(why)) if !stop.asked() => {
                    // Where stderr is closed, nobody wants to know.
                    let _ = writeln!(io::stderr(), "turned away {from}: {}", Causes(&why));
                }
                met => return met,
            }
        }
    }

    /// Gets to know the process at the other end of this connection.
    pub fn meet(
        transport: &'a T,
        socket: impl Into<OwnedFd>,
        stop: &Arc<Stop>,
    ) -> Result<Self, Error> {
        Self::meet_within(SILENCE, transport, socket, stop)
    }

    fn meet_within(
        greeting: Duration,
        transport: &'a T,
        socket: impl Into<OwnedFd>,
        stop: &Arc<Stop>,
    ) -> Result<Self, Error> {
        let link = Link::new(socket, stop, greeting).map_err(LinkError::Io)?;
        let limits = transport.limits();
        let mut peer = Self { transport, link, stop: Arc::clone(stop), limits };
        peer.say(&Message::Hello(Hello { transport: T::NAME.to_owned(), limits }))?;
        let met = peer.greeted();
        peer.explain(&met);
        peer.limits = met?;
        peer.link.allow(SILENCE);
        Ok(peer)
    }

    /// What both devices can.
    fn greeted(&self) -> Result<Limits, Error> {
        match self.hear()? {
            Message::Hello(hello) if hello.transport == T::NAME => {
                Ok(self.limits.min(hello.limits))
            }
            Message::Hello(hello) => {
                Err(Error::OtherTransport { theirs: words(&hello.transport), ours: T::NAME })
            }
            _ => Err(LinkError::Unexpected.into()),
        }
    }

    /// Measures with one end here.
    pub fn measure(&self, command: &Command) -> Result<Outcome, Error> {
        let job = Job::new(command, &self.limits)?;
        self.say(&Message::Job(*command))?;
        let [needs, _] = job.needs();
        let (end, there) = self.end(&needs)?;
        let control = Control::new(&self.stop, &self.link);
        let run = Run::new(job, &control);
        let mut side = run.side(end, there);
        let mut latencies = Latencies::new();
        let elapsed = thread::scope(|scope| run.measure(scope, &mut side, &mut latencies))?;
        if !job.op.fetches() && matches!(job.kind, Kind::Stream(_)) {
            // The stamps are of another clock.
            latencies = Latencies::new();
        }
        let done = control.done();
        let [_, helper] = job.names();
        let Parted { tally, failures, .. } =
            self.part(helper, side.tally(), control.into_failure());
        Ok(Outcome { job, done, elapsed, latencies, tally, failures })
    }

    /// Says that there is no more to measure, or why not.
    pub fn close<E: std::error::Error>(self, ended: &Result<(), E>) {
        let last = match ended {
            Ok(()) => Message::Done,
            Err(_) if self.stop.interrupted() => Message::Interrupted,
            Err(error) => Message::sorry(&Causes(error)),
        };
        // If it fails, the other side knows already.
        let _ = self.say(&last);
    }

    /// Helps the other process to measure until it is done.
    pub fn serve(&self) -> Result<(), Error> {
        let served = self.serve_all();
        self.explain(&served);
        served
    }

    fn serve_all(&self) -> Result<(), Error> {
        loop {
            match self.hear()? {
                Message::Job(command) => self.help(Job::new(&command, &self.limits)?)?,
                Message::Done => return Ok(()),
                _ => return Err(LinkError::Unexpected.into()),
            }
        }
    }

    fn help(&self, job: Job) -> Result<(), Error> {
        let [_, needs] = job.needs();
        let (end, there) = self.end(&needs)?;
        let control = Control::new(&self.stop, &self.link);
        let run = Run::new(job, &control);
        let mut side = run.side(end, there);
        thread::scope(|scope| run.help(scope, &mut side).map(drop))?;
        let [measurer, _] = job.names();
        let parted = self.part(measurer, side.tally(), control.into_failure());
        match parted.failures.first() {
            Some(failure) => Err(Error::Failed(format!("{job}: {}", Causes(failure)))),
            None if parted.left => Err(Error::Interrupted),
            None => Ok(()),
        }
    }

    /// An end that is connected to one of the other process, and where that one's memory is.
    fn end(&self, needs: &Needs) -> Result<(End<T>, RemoteAddr), Error> {
        let mut end = self.transport.end(needs)?;
        let ours = self.transport.address(&end.pair)?;
        let RemoteAddr { addr, rkey } = end.memory.remote(0);
        self.say(&Message::Address(Address { pair: ours.clone(), addr, rkey }))?;
        let Message::Address(Address { pair, addr, rkey }) = self.hear()? else {
            return Err(LinkError::Unexpected.into());
        };
        if pair == ours {
            // Connected to itself, it would find every message right.
            return Err(Error::OtherDevice);
        }
        self.transport.connect(&mut end.pair, &pair)?;
        Ok((end, RemoteAddr { addr, rkey }))
    }

    /// Tells the other process how the part of this one's end was, and waits for its word, while this one's
    /// end is still there.
    fn part(&self, there: &'static str, tally: Tally, failure: Option<EndFailure>) -> Parted {
        let left = self.stop.asked();
        let words = failure.as_ref().map(|failure| words(&Causes(&failure.why).to_string()));
        // If it can't be told, it can't be heard either, and that says why.
        let _ = self.say(&Message::Ended(Ending { tally, left, failure: words }));
        let mut parted = Parted { tally, left, failures: failure.into_iter().collect() };
        match self.ending() {
            Ok(Ending { tally: theirs, left, failure }) => {
                parted.tally = tally + theirs;
                parted.left |= left;
                parted.fail(there, failure.map(Failure::Told));
            }
            Err(why) => parted.fail(there, Some(why)),
        }
        parted
    }

    /// How the part of the other process' end was.
    fn ending(&self) -> Result<Ending, Failure> {
        loop {
            match self.link.next(None)? {
                // It was ready, and this end had left.
                Some(Message::Ready) => {}
                Some(Message::Ended(mut ending)) => {
                    ending.failure = ending.failure.map(|text| words(&text));
                    return Ok(ending);
                }
                Some(Message::Sorry(why)) => return Err(Failure::Told(words(&why))),
                // It was, before it began.
                Some(Message::Interrupted) => {
                    return Ok(Ending { tally: Tally::default(), left: true, failure: None });
                }
                _ => return Err(LinkError::Unexpected.into()),
            }
        }
    }

    fn say(&self, message: &Message) -> Result<(), Error> {
        Ok(self.link.send(message)?)
    }

    /// The next message, unless it says that the other process gives up.
    fn hear(&self) -> Result<Message, Error> {
        match self.link.next(Some(&self.stop))? {
            Some(Message::Sorry(why)) => Err(Error::Told(words(&why))),
            Some(Message::Interrupted) | None => Err(Error::Interrupted),
            Some(message) => Ok(message),
        }
    }

    /// Tells the other process why this one gives up.
    fn explain<V>(&self, ended: &Result<V, Error>) {
        let last = match ended {
            Ok(_) | Err(Error::Told(_) | Error::Failed(_)) => return,
            Err(Error::Interrupted) => Message::Interrupted,
            Err(error) => Message::sorry(&Causes(error)),
        };
        // If it fails, the other side knows already.
        let _ = self.say(&last);
    }
}

/// Tells the process at the other end of this connection why this one can't meet it.
pub fn decline(socket: impl Into<OwnedFd>, why: &impl ToString) {
    let told =
        Link::new(socket, &Arc::default(), GREETING).map_err(LinkError::Io).and_then(|link| {
            link.send(&Message::sorry(why))?;
            // Before the connection is closed, it says who it is.
            link.next(None).map(drop)
        });
    // If it can't be told, it will miss this one.
    drop(told);
}

/// How both parts of a job ended.
struct Parted {
    tally: Tally,
    /// Whether one of them was asked to leave.
    left: bool,
    failures: Vec<EndFailure>,
}

impl Parted {
    fn fail(&mut self, end: &'static str, why: Option<Failure>) {
        self.failures.extend(why.map(|why| EndFailure { end, why }));
    }
}

/// Two processes meet by telling each other.
impl Meeting for Link {
    fn meet(&self, stop: &Stop) -> Result<(), Failure> {
        self.send(&Message::Ready)?;
        match self.next(Some(stop))? {
            Some(Message::Ready) | None => Ok(()),
            // It has set the flag to leave, too.
            Some(message) if message.is_leaving() => {
                self.keep(message);
                Ok(())
            }
            Some(_) => Err(LinkError::Unexpected.into()),
        }
    }
}

/// Why two processes can't run a job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody can come.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The other side is lost, or strange.
    #[error("the other end is lost")]
    Link(#[from] LinkError),
    /// The other side gave up.
    #[error("the other end: {0}")]
    Told(String),
    /// The two would never meet.
    #[error("the other end runs over {theirs}, this one over {ours}: choose the same --transport")]
    OtherTransport {
        /// What the other side says.
        theirs: String,
        /// This side's.
        ours: &'static str,
    },
    /// The two could only talk to themselves.
    #[error("the other end has the address of this one: the two processes do not share a device")]
    OtherDevice,
    /// The job can't be done here.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// This side's end can't be had.
    #[error(transparent)]
    SetUp(#[from] SetUpError),
    /// A job failed.
    #[error("{0}")]
    Failed(String),
    /// Somebody wanted it to end.
    #[error("interrupted")]
    Interrupted,
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
