//! Connecting over a TCP stream: both sides exchange their endpoints, connect their queue pairs, and wait for each other.
//!
//! ```no_run
//! use std::net::TcpStream;
//! use std::time::Duration;
//!
//! use transport_verbs::{Context, QpInit, exchange};
//!
//! let context = Context::open_first()?;
//! let port = context.port(1)?;
//! let pd = context.alloc_pd()?;
//! let cq = context.create_cq(16, None)?;
//! let mut qp = pd.create_qp(&QpInit::new(&cq))?;
//!
//! // The other side accepts, and then does the same.
//! let mut stream = TcpStream::connect("192.0.2.1:7471")?;
//! exchange::connect_over(&mut stream, &mut qp, &port, Duration::from_secs(5))?;
//! // `qp` may send now, and `stream` is free for the program's own messages.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It consists of three steps, which a program can call by themselves: [`exchange()`], [`QueuePair::connect`] and
//! [`barrier`]. After `connect` the queue pair may send, but the peer's may not be ready: messages are retried until
//! `retry_cnt` is exceeded. The barrier returns once both sides have connected. Receives that are posted before the
//! barrier precede the peer's first message.
//!
//! # The protocol
//! In each step each side sends one frame of a fixed size and reads exactly one. A frame begins with `CQVB`, the version
//! and the step, two bytes each, in network byte order. The [`Endpoint`] follows; the frame of the barrier has none.
//! Anything else is refused with an [`ExchangeError`]. The time limit is that of the whole step. The timeouts and the
//! blocking mode of the stream are neither used nor changed.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use thiserror::Error;

use crate::qp::QueuePair;
use crate::wait::{self, Deadline};
use cq_core::setup::{Endpoint, EndpointError, ModifyError, Port};

/// The version of the frames. Peers must have the same.
pub const VERSION: u16 = 1;

const MAGIC: [u8; 4] = *b"CQVB";
const HEADER: usize = 8;

/// The step of a frame.
#[derive(Clone, Copy)]
enum Step {
    Endpoint = 1,
    Ready = 2,
}

/// Why an exchange failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The peer sent nothing, or too slowly.
    #[error(
        "the peer sent {received} of {size} bytes in time: is the same program running there, and at the same step?"
    )]
    TimedOut {
        /// The number of bytes received.
        received: usize,
        /// The size of a frame.
        size: usize,
    },
    /// The peer closed the stream.
    #[error(
        "the peer closed the connection after {received} of {size} bytes: its own messages say why"
    )]
    Closed {
        /// The number of bytes received.
        received: usize,
        /// The size of a frame.
        size: usize,
    },
    /// The received bytes are no frame.
    #[error(
        "the peer does not speak this protocol: it sent {found:02x?} first; is this the right port?"
    )]
    NotAPeer {
        /// The first bytes.
        found: [u8; 4],
    },
    /// The peer has another version of the protocol.
    #[error(
        "the peer has version {theirs} of the protocol, this side version {VERSION}: run the same release on both"
    )]
    Version {
        /// The peer's.
        theirs: u16,
    },
    /// The peer is at another step: one calls [`exchange()`] where the other calls [`barrier`].
    #[error(
        "the peer is at step {theirs}, this side at step {ours}: both sides have to call `exchange` first, then `barrier`"
    )]
    OutOfStep {
        /// The peer's.
        theirs: u16,
        /// This side's.
        ours: u16,
    },
    /// The frame has no valid endpoint.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The stream failed.
    #[error("the connection failed")]
    Stream(#[from] io::Error),
}

/// Why [`connect_over`] did not connect.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The exchange failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The queue pair did not go to RTS.
    #[error(transparent)]
    Modify(#[from] ModifyError),
}

impl From<Errno> for ExchangeError {
    fn from(errno: Errno) -> Self {
        Self::Stream(errno.into())
    }
}

/// Connects a queue pair in RESET to that of the peer, which calls this, too: exchange, connect, barrier. Both may send
/// when it returns. Returns the peer's endpoint.
///
/// # Errors
/// The exchange failed, or the queue pair did not go to RTS.
pub fn connect_over(
    stream: &mut TcpStream,
    qp: &mut QueuePair,
    port: &Port,
    limit: Duration,
) -> Result<Endpoint, ConnectError> {
    let start = Instant::now();
    let peer = exchange(stream, &qp.endpoint(port), limit)?;
    qp.connect(port, &peer)?;
    barrier(stream, limit.saturating_sub(start.elapsed()))?;
    Ok(peer)
}

/// Sends this side's endpoint, and returns the peer's.
///
/// # Errors
/// See [`ExchangeError`].
pub fn exchange(
    stream: &mut TcpStream,
    mine: &Endpoint,
    limit: Duration,
) -> Result<Endpoint, ExchangeError> {
    let theirs = swap(stream, Step::Endpoint, &mine.to_bytes(), limit)?;
    Ok(Endpoint::from_bytes(&theirs)?)
}

/// Waits until the peer does the same: both queue pairs are connected then.
///
/// # Errors
/// See [`ExchangeError`].
pub fn barrier(stream: &mut TcpStream, limit: Duration) -> Result<(), ExchangeError> {
    swap(stream, Step::Ready, &[], limit).map(|[]| ())
}

/// Sends a frame and reads the peer's.
fn swap<const N: usize>(
    stream: &TcpStream,
    step: Step,
    body: &[u8; N],
    limit: Duration,
) -> Result<[u8; N], ExchangeError> {
    let deadline = Deadline::after(Some(limit));
    let sent = send_all(stream, &[&header(step)[..], body].concat(), deadline);
    // A peer that refused the frame may have sent something before it closed the stream.
    let theirs = receive(stream, step, deadline)?;
    sent?;
    Ok(theirs)
}

fn header(step: Step) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&VERSION.to_be_bytes());
    header[6..].copy_from_slice(&(step as u16).to_be_bytes());
    header
}

/// Whether a frame of this step begins like this.
fn judge(header: [u8; HEADER], step: Step) -> Result<(), ExchangeError> {
    let [m0, m1, m2, m3, v0, v1, s0, s1] = header;
    let (found, ours) = ([m0, m1, m2, m3], step as u16);
    match (u16::from_be_bytes([v0, v1]), u16::from_be_bytes([s0, s1])) {
        _ if found != MAGIC => Err(ExchangeError::NotAPeer { found }),
        (theirs, _) if theirs != VERSION => Err(ExchangeError::Version { theirs }),
        (_, theirs) if theirs != ours => Err(ExchangeError::OutOfStep { theirs, ours }),
        _ => Ok(()),
    }
}

/// Reads the peer's frame. Returns without the rest of one that begins wrongly.
fn receive<const N: usize>(
    stream: &TcpStream,
    step: Step,
    deadline: Deadline,
) -> Result<[u8; N], ExchangeError> {
    let (mut header, mut body) = ([0; HEADER], [0; N]);
    let size = HEADER + N;
    receive_part(stream, &mut header, 0, size, deadline)?;
    judge(header, step)?;
    receive_part(stream, &mut body, HEADER, size, deadline)?;
    Ok(body)
}

/// Fills the part of a frame of `size` bytes that follows the first `before`.
fn receive_part(
    stream: &TcpStream,
    mut part: &mut [u8],
    before: usize,
    size: usize,
    deadline: Deadline,
) -> Result<(), ExchangeError> {
    let mut received = before;
    while !part.is_empty() {
        if !wait::ready(stream.as_fd(), PollFlags::IN, deadline)? {
            return Err(ExchangeError::TimedOut { received, size });
        }
        match recv(stream, &mut *part, RecvFlags::DONTWAIT) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => {
                return Err(ExchangeError::Closed { received, size });
            }
            Ok((_, count)) => {
                received += count;
                part = &mut part[count..];
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn send_all(stream: &TcpStream, mut frame: &[u8], deadline: Deadline) -> Result<(), ExchangeError> {
    let size = frame.len();
    while !frame.is_empty() {
        if !wait::ready(stream.as_fd(), PollFlags::OUT, deadline)? {
            return Err(ExchangeError::TimedOut { received: 0, size });
        }
        match send(stream, frame, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => frame = &frame[count..],
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
