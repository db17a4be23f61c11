//! The connection of two processes, a socket of any kind: messages in frames, and a thread that reads them, so that whoever
//! works has only a flag to look at.
//!
//! Each side begins with eight bytes, `cqperf` and a version. Then come frames: the length of what follows,
//! four bytes, the most significant first, and a message in JSON. Nothing of it is believed: what is not
//! like this ends the connection.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{Shutdown, shutdown};

use crate::interrupt::Stop;
use crate::message::Message;

const NAME: [u8; 6] = *b"cqperf";
const VERSION: u16 = 2;

/// The longest message.
const LONGEST: u32 = 4096;

/// Messages that nobody has asked for yet. The other side sends no more at a time, if it keeps to the order.
const WAITING: usize = 8;

/// How long to sleep before looking for an interrupt.
const SLICE: Duration = Duration::from_millis(100);

/// How long the other side may be silent: longer than a process waits for a completion, so that its
/// explanation comes first.
pub const SILENCE: Duration = Duration::from_secs(45);

/// A connection to the other process. Dropping it closes it.
pub struct Link {
    socket: File,
    inbox: Mutex<Inbox>,
    reader: Option<JoinHandle<()>>,
    silence: Duration,
}

struct Inbox {
    messages: Receiver<Result<Message, LinkError>>,
    /// What was put back.
    kept: Option<Message>,
}

impl Link {
    /// Greets the other side. Once it has greeted, too, whatever says that it is gone, or leaving, sets `stop`.
    pub fn new(
        socket: impl Into<OwnedFd>,
        stop: &Arc<Stop>,
        silence: Duration,
    ) -> io::Result<Self> {
        let socket = File::from(socket.into());
        set_socket_timeout(&socket, Timeout::Send, Some(silence))?;
        let incoming = socket.try_clone()?;
        let (sender, messages) = sync_channel(WAITING);
        let stop = Arc::clone(stop);
        let reader = thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || read_all(incoming, &sender, &stop))?;
        let inbox = Mutex::new(Inbox { messages, kept: None });
        let link = Self { socket, inbox, reader: Some(reader), silence };
        (&link.socket).write_all(&greeting(VERSION))?;
        Ok(link)
    }

    /// Sends a message.
    pub fn send(&self, message: &Message) -> Result<(), LinkError> {
        let text = serde_json::to_vec(message).map_err(io::Error::from)?;
        let length = u32::try_from(text.len()).ok().filter(|&length| length <= LONGEST);
        let length = length.ok_or(LinkError::TooLong)?;
        let frame = [&length.to_be_bytes(), &text[..]].concat();
        Ok((&self.socket).write_all(&frame)?)
    }

    /// The next message; none if `stop` was interrupted before it came.
    pub fn next(&self, stop: Option<&Stop>) -> Result<Option<Message>, LinkError> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = inbox.kept.take() {
            return Ok(Some(message));
        }
        let deadline = Instant::now() + self.silence;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match inbox.messages.recv_timeout(left.min(SLICE)) {
                Ok(message) => return message.map(Some),
                Err(RecvTimeoutError::Disconnected) => return Err(LinkError::Closed),
                Err(RecvTimeoutError::Timeout) if stop.is_some_and(Stop::interrupted) => {
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(LinkError::Silent { seconds: self.silence.as_secs() });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// From now on the other side may be silent for this long.
    pub const fn allow(&mut self, silence: Duration) {
        self.silence = silence;
    }

    /// Puts a message back, to be the next one.
    pub fn keep(&self, message: Message) {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).kept = Some(message);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Ends the reader; it fails only if the connection is gone already.
        let _ = shutdown(&self.socket, Shutdown::Both);
        let _ = self.reader.take().map(JoinHandle::join);
    }
}

fn greeting(version: u16) -> [u8; 8] {
    let mut greeting = [0; 8];
    greeting[..NAME.len()].copy_from_slice(&NAME);
    greeting[NAME.len()..].copy_from_slice(&version.to_be_bytes());
    greeting
}

/// Reads until the connection ends, or nobody takes what was read.
fn read_all(mut from: impl Read, to: &SyncSender<Result<Message, LinkError>>, stop: &Stop) {
    if let Err(error) = greeted(&mut from) {
        // Nobody waits for a stranger, so nobody has to leave.
        let _ = to.try_send(Err(error));
        return;
    }
    let mut read = || -> Result<(), LinkError> {
        loop {
            let message = read_message(&mut from)?;
            if message.is_leaving() {
                stop.leave();
            }
            to.try_send(Ok(message)).map_err(|_| LinkError::Unexpected)?;
        }
    };
    if let Err(error) = read() {
        stop.leave();
        // Full, or closed: then the channel's end says the same.
        let _ = to.try_send(Err(error));
    }
}

fn greeted(from: &mut impl Read) -> Result<(), LinkError> {
    let mut greeting = [0; 8];
    from.read_exact(&mut greeting)?;
    let [name @ .., high, low] = greeting;
    match u16::from_be_bytes([high, low]) {
        _ if name != NAME => Err(LinkError::Stranger),
        VERSION => Ok(()),
        version => Err(LinkError::Version { version }),
    }
}

fn read_message(from: &mut impl Read) -> Result<Message, LinkError> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST {
        return Err(LinkError::TooLong);
    }
    let mut text = vec![0; length as usize];
    from.read_exact(&mut text)?;
    // What serde says of it would repeat what the other side wrote.
    serde_json::from_slice(&text).map_err(|_| LinkError::Garbled)
}

/// Why the other process can't be talked to.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It is gone.
    #[error("its process closed the connection before it was done")]
    Closed,
    /// It says nothing.
    #[error("its process said nothing for {seconds} s")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It is something else.
    #[error("it is no cqperf: check host and port")]
    Stranger,
    /// It speaks another language.
    #[error(
        "its process is another cqperf (protocol {version}, here {VERSION}): use the same on both sides"
    )]
    Version {
        /// Which it speaks.
        version: u16,
    },
    /// A message is too long.
    #[error("a message has more than {LONGEST} bytes")]
    TooLong,
    /// A message is none.
    #[error("its process sent what is no message")]
    Garbled,
    /// A message is out of order.
    #[error("its process sent a message out of order")]
    Unexpected,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                Self::Closed
            }
            _ => Self::Io(error),
        }
    }
}
