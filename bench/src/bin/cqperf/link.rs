//! The connection of two ends, a socket of any kind: messages in lines, and a thread that reads them, so that the
//! measuring thread only checks a flag.
//!
//! Each side begins with a line, `cqperf` and a version. Then come messages, a line of JSON each. Nothing of it is
//! believed: what is not like this ends the connection.
//!
//! ```text
//!   connector                                listener
//!      Hello  ------------------------------>
//!             <------------------------------  Hello
//!   for each job:
//!      Job    ------------------------------>
//!      Address ----------------------------->  makes its end
//!      makes its end  <----------------------  Address
//!      connects, posts receives                connects, posts receives
//!      Ready  <----------------------------->  Ready
//!      measures                                helps
//!      Ended  <----------------------------->  Ended
//!   then:
//!      Done   ------------------------------>
//! ```
//!
//! In place of any of these, either may say by `Ended` that it gives up, and why. An end stays as it is until both have
//! said `Ended`, so that the requests of the other one do not fail.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bench::transport::Limits;
use cq_verbs::setup::Endpoint;
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use crate::interrupt::Stop;
use crate::job::Job;
use crate::stats::Tally;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// Over which transport a process runs, and what its device can.
    Hello { transport: String, limits: Limits },
    /// What to measure.
    Job(Job),
    /// Where its end can be reached: the queue pair's endpoint, where its memory starts, and the key of that.
    Address { pair: Endpoint, addr: u64, rkey: u32 },
    /// Its receives are posted.
    Ready,
    /// Its part of the job is over, or it gives up.
    Ended(Ending),
    /// There are no more jobs.
    Done,
}

/// How one end's part ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// Its polls and completions.
    pub tally: Tally,
    /// Whether it was asked to leave before.
    pub left: bool,
    /// What went wrong.
    pub failure: Option<String>,
}

impl Message {
    /// Whether who says this works on nothing any more, so that the other end must not wait for it.
    const fn is_leaving(&self) -> bool {
        matches!(self, Self::Ended(ending) if ending.left || ending.failure.is_some())
    }
}

/// Words for another process, or of one, fit for a line on a terminal, and for a message.
pub fn words(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(500).collect()
}

const NAME: &str = "cqperf ";
const VERSION: &str = "4";

/// Bytes of the longest line.
const LONGEST: usize = 4096;

/// How long to sleep before looking for an interrupt.
const SLICE: Duration = Duration::from_millis(100);

/// How long the other side may be silent: longer than a process waits for a completion, so that its
/// explanation comes first.
pub const SILENCE: Duration = Duration::from_secs(45);

/// How long a connection is silent until the other host is probed, and between probes.
const KEEPALIVE: Duration = Duration::from_secs(5);

/// Why the other process can't be talked to.
#[derive(Debug, thiserror::Error)]
#[error("the other process {0}")]
pub struct LinkError(pub String);

impl LinkError {
    /// What it said has its place elsewhere.
    pub fn out_of_order() -> Self {
        Self("sent a message out of order".to_owned())
    }

    fn closed() -> Self {
        Self("closed the connection before it was done".to_owned())
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::closed(),
            _ => Self(format!("can't be reached: {error}")),
        }
    }
}

/// A connection to the other process. Dropping it closes it.
pub struct Link {
    socket: TcpStream,
    inbox: Mutex<Inbox>,
    reader: Option<JoinHandle<()>>,
    /// How long the other side may be silent.
    pub silence: Duration,
}

struct Inbox {
    messages: Receiver<Result<Message, LinkError>>,
    /// What was put back, to be the next one.
    kept: Option<Message>,
}

impl Link {
    /// Greets the other side. Once it has greeted, too, whatever says that it is gone, or leaving, sets `stop`.
    pub fn new(socket: OwnedFd, stop: &Arc<Stop>, silence: Duration) -> io::Result<Self> {
        /// Messages that nobody has asked for yet. The other side sends no more at a time, if it keeps to the order.
        const WAITING: usize = 8;
        // What is called of it is the same for a socket of any kind.
        let socket = TcpStream::from(socket);
        socket.set_write_timeout(Some(silence))?;
        // Where it is one of TCP, it sends at once what there is to send, and notices a host that is gone without a word.
        let _ = socket.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(&socket, true);
        let _ = sockopt::set_tcp_keepidle(&socket, KEEPALIVE);
        let _ = sockopt::set_tcp_keepintvl(&socket, KEEPALIVE);
        let incoming = BufReader::new(socket.try_clone()?);
        let (sender, messages) = sync_channel(WAITING);
        let stop = Arc::clone(stop);
        let reader = thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || read_all(incoming, &sender, &stop))?;
        let inbox = Mutex::new(Inbox { messages, kept: None });
        let link = Self { socket, inbox, reader: Some(reader), silence };
        writeln!(&link.socket, "{NAME}{VERSION}")?;
        Ok(link)
    }

    /// Sends a message.
    pub fn send(&self, message: &Message) -> Result<(), LinkError> {
        let line = serde_json::to_string(message).expect("a message has a text") + "\n";
        Ok((&self.socket).write_all(line.as_bytes())?)
    }

    /// The next message; none if `stop` was interrupted before it came.
    pub fn next(&self, stop: Option<&Stop>) -> Result<Option<Message>, LinkError> {
        let mut inbox = self.inbox();
        if let Some(message) = inbox.kept.take() {
            return Ok(Some(message));
        }
        let deadline = Instant::now() + self.silence;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match inbox.messages.recv_timeout(left.min(SLICE)) {
                Ok(message) => return message.map(Some),
                Err(RecvTimeoutError::Disconnected) => return Err(LinkError::closed()),
                Err(RecvTimeoutError::Timeout) if stop.is_some_and(Stop::interrupted) => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    let seconds = self.silence.as_secs();
                    return Err(LinkError(format!("said nothing for {seconds} s")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Says that this end is ready, and waits until the other one is, or there is a reason to leave.
    pub fn meet(&self, stop: &Stop) -> Result<(), LinkError> {
        self.send(&Message::Ready)?;
        match self.next(Some(stop))? {
            Some(Message::Ready) | None => Ok(()),
            // It has set the flag to leave, too.
            Some(message) if message.is_leaving() => {
                self.inbox().kept = Some(message);
                Ok(())
            }
            Some(_) => Err(LinkError::out_of_order()),
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Ends the reader; it fails only if the connection is gone already.
        let _ = self.socket.shutdown(Shutdown::Both);
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

/// Reads until the connection ends, or nobody takes what was read.
fn read_all(mut from: impl BufRead, to: &SyncSender<Result<Message, LinkError>>, stop: &Stop) {
    if let Err(error) = read_line(&mut from).and_then(|line| greeted(&line)) {
        // Nobody waits for a client before its greeting, so nobody has to leave.
        let _ = to.try_send(Err(error));
        return;
    }
    let mut read = || -> Result<(), LinkError> {
        loop {
            // What serde says of it would repeat what the other side wrote.
            let message = serde_json::from_slice::<Message>(&read_line(&mut from)?)
                .map_err(|_| LinkError("sent what is no message".to_owned()))?;
            if message.is_leaving() {
                stop.leave();
            }
            to.try_send(Ok(message)).map_err(|_| LinkError::out_of_order())?;
        }
    };
    if let Err(error) = read() {
        stop.leave();
        // Full, or closed: then the channel's end says the same.
        let _ = to.try_send(Err(error));
    }
}

fn read_line(from: &mut impl BufRead) -> Result<Vec<u8>, LinkError> {
    let mut line = Vec::new();
    let count = from.take(LONGEST as u64).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        _ if count == LONGEST => {
            Err(LinkError(format!("sent a message of more than {LONGEST} bytes")))
        }
        _ => Err(LinkError::closed()),
    }
}

fn greeted(line: &[u8]) -> Result<(), LinkError> {
    let version = line.strip_prefix(NAME.as_bytes());
    match version.map(String::from_utf8_lossy) {
        None => Err(LinkError("is no cqperf: check host and port".to_owned())),
        Some(version) if version == VERSION => Ok(()),
        Some(version) => Err(LinkError(format!(
            "is another cqperf (protocol {}, here {VERSION}): use the same on both sides",
            words(&version)
        ))),
    }
}
