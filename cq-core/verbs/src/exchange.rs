//! Connecting over a socket: both sides exchange their endpoints, connect their queue pairs, and wait for each other.
//! Feature `std`; Linux.
//!
//! ```
//! use cq_verbs::device::{Device, DevicePd};
//! use cq_verbs::exchange;
//! use std::error::Error;
//! use std::os::unix::net::UnixStream;
//! use std::time::Duration;
//!
//! /// Connects to a server, which accepts and then does the same.
//! fn connect<D: Device>(
//!     device: &D,
//!     cq: &D::CqHandle,
//!     path: &str,
//! ) -> Result<(UnixStream, D::Qp), Box<dyn Error>> {
//!     let mut qp = device.alloc_pd()?.qp(cq).create()?;
//!     let stream = UnixStream::connect(path)?; // to another host: a TcpStream
//!     exchange::connect_over(&stream, &mut qp, &device.port(1)?, Duration::from_secs(5))?;
//!     // `qp` may send now, and `stream` is free for the program's own messages.
//!     Ok((stream, qp))
//! }
//! ```
//!
//! A [`TrackedQp`](crate::tracked::TrackedQp::connect_over) has a method for it. The stream is a connected stream socket
//! of any family. Keep it: it ends when the peer dies, however that happens, and a
//! [`WaitSet`](crate::wait_set::WaitSet) returns it as readable then. A queue pair that only receives does not notice
//! ([recovery](crate::guide::recovery)).
//!
//! [`connect_over`] consists of three steps, which a program can also call one by one: [`exchange()`],
//! [`DeviceQp::connect`] and [`barrier`]. After `connect` the queue pair may send, but the peer's may not be ready:
//! messages are retried until `retry_cnt` is exceeded. The barrier returns once both sides have connected. Receives that
//! are posted before the barrier precede the peer's first message.
//!
//! # Clients of an event loop
//! A client that sends nothing delays a step for its whole limit. But each side sends before it reads, so a server that calls
//! a step once the socket is readable waits for no client that sends whole frames. A limit of some milliseconds ends the
//! others:
//!
//! ```
//! use cq_verbs::device::DeviceQp;
//! use cq_verbs::exchange::{ConnectError, barrier, exchange};
//! use cq_verbs::setup::Port;
//! use std::os::unix::net::UnixStream;
//! use std::time::Duration;
//!
//! /// A client that was accepted. Its socket is in the `WaitSet`.
//! struct Arrival<Q> { stream: UnixStream, qp: Q, is_connected: bool }
//!
//! impl<Q: DeviceQp> Arrival<Q> {
//!     /// The next step, when the socket is readable. Whether it was the last. After an error, drop the client.
//!     fn advance(&mut self, port: &Port) -> Result<bool, ConnectError> {
//!         const LIMIT: Duration = Duration::from_millis(10);
//!         if self.is_connected {
//!             return Ok(barrier(&self.stream, LIMIT).map(|()| true)?);
//!         }
//!         let peer = exchange(&self.stream, &self.qp.endpoint(port), LIMIT)?;
//!         self.qp.connect(port, &peer)?;
//!         self.is_connected = true; // post receives here: they precede the client's first message
//!         Ok(false)
//!     }
//! }
//! ```
//!
//! The client calls [`connect_over`]: if both sides waited for the other's first frame, none would come. A client that
//! never sends costs a descriptor and what was created for it, until the server drops it. A server of few clients can
//! call `connect_over` when it accepts, with a limit that it can spare.
//!
//! # The protocol
//! In each step each side sends one frame of a fixed size and reads exactly one. A frame begins with `CQVB`, the version
//! and the step, two bytes each, in network byte order. The [`Endpoint`] follows; the frame of the barrier has none.
//! Anything else is refused with an [`ExchangeError`]. The time limit is that of the whole step. The timeouts and the
//! blocking mode of the stream are neither used nor changed.

mod swap;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use cq_core::transport::{Deadline, Woken};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

pub(crate) use self::swap::{Next, Step, Swap};
use crate::descriptor::sleep;
use crate::device::DeviceQp;
use crate::post::PostError;
use crate::setup::{Endpoint, EndpointError, ModifyError, Port};

/// The version of the frames. Peers must have the same.
pub const VERSION: u16 = 2;

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
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
    /// The peer closed or reset the stream.
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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The exchange failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The queue pair did not go to RTS.
    #[error(transparent)]
    Modify(#[from] ModifyError),
    /// A receive could not be posted before the peer was notified that it may send.
    #[error("the receives for the peer's first messages can't be posted")]
    Post(#[from] PostError),
}

/// Connects a queue pair in RESET to that of the peer, which calls this, too: exchange, connect, barrier. Both may send
/// when it returns. Returns the peer's endpoint.
///
/// A message of the peer that comes before this side has posted a receive waits for it; on an unreliable connection it
/// is lost. Call the three steps to post receives between them.
///
/// # Errors
/// The exchange failed, or the queue pair did not go to RTS. Reset it before another attempt.
pub fn connect_over(
    stream: &impl AsFd,
    qp: &mut impl DeviceQp,
    port: &Port,
    limit: Duration,
) -> Result<Endpoint, ConnectError> {
    Timed::new(stream, limit).connect(&qp.endpoint(port), |peer| Ok(qp.connect(port, peer)?))
}

/// Sends this side's endpoint, and returns the peer's.
///
/// # Errors
/// See [`ExchangeError`].
pub fn exchange(
    stream: &impl AsFd,
    mine: &Endpoint,
    limit: Duration,
) -> Result<Endpoint, ExchangeError> {
    Timed::new(stream, limit).exchange(mine)
}

/// Waits until the peer does the same: both queue pairs are connected then.
///
/// # Errors
/// See [`ExchangeError`].
pub fn barrier(stream: &impl AsFd, limit: Duration) -> Result<(), ExchangeError> {
    Timed::new(stream, limit).barrier()
}

/// Whether the peer's end of a stream is closed, as it is when its process has ended, or the stream has failed. Never
/// blocks. What the peer has sent and nobody has read counts as no end.
///
/// ```
/// use cq_verbs::exchange::has_ended;
/// use std::os::unix::net::UnixStream;
///
/// let (ours, theirs) = UnixStream::pair()?;
/// assert!(!has_ended(&ours));
/// drop(theirs);
/// assert!(has_ended(&ours));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn has_ended(stream: &impl AsFd) -> bool {
    match recv(stream, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK) {
        Ok((_, received)) => received == 0,
        Err(errno) => !matches!(errno, Errno::AGAIN | Errno::INTR),
    }
}

/// A stream, and when a step on it has to be done; None is never.
#[derive(Clone, Copy)]
pub(crate) struct Timed<'s> {
    stream: BorrowedFd<'s>,
    deadline: Option<Instant>,
}

impl<'s> Timed<'s> {
    pub(crate) fn new(stream: &'s impl AsFd, limit: Duration) -> Self {
        Self { stream: stream.as_fd(), deadline: Deadline::after(limit) }
    }

    /// Exchanges endpoints, and has this side connected by `connect`. Then waits for the other side.
    pub(crate) fn connect(
        self,
        mine: &Endpoint,
        connect: impl FnOnce(&Endpoint) -> Result<(), ConnectError>,
    ) -> Result<Endpoint, ConnectError> {
        let peer = self.exchange(mine)?;
        connect(&peer)?;
        self.barrier()?;
        Ok(peer)
    }

    fn exchange(self, mine: &Endpoint) -> Result<Endpoint, ExchangeError> {
        Ok(Endpoint::from_bytes(&self.swap(Step::Endpoint, mine.to_bytes())?)?)
    }

    fn barrier(self) -> Result<(), ExchangeError> {
        self.swap(Step::Ready, []).map(|[]| ())
    }

    fn swap<const N: usize>(self, step: Step, body: [u8; N]) -> Result<[u8; N], ExchangeError> {
        const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
        let mut swap = Swap::new(step, body);
        loop {
            let bytes = match swap.next()? {
                Next::Send(bytes) => self.when(PollFlags::OUT, || send(self.stream, bytes, SEND)),
                Next::Receive(buffer) => self.when(PollFlags::IN, || {
                    recv(self.stream, buffer, RecvFlags::DONTWAIT).map(|(_, count)| count)
                }),
                Next::Done(theirs) => return Ok(theirs),
            };
            swap.did(bytes)?;
        }
    }

    /// Calls once the stream is ready or has failed. `None` if the deadline comes before.
    fn when(
        self,
        flags: PollFlags,
        call: impl FnOnce() -> Result<usize, Errno>,
    ) -> io::Result<Option<usize>> {
        let stream = PollFd::from_borrowed_fd(self.stream, flags);
        match sleep(&mut [stream], self.deadline)? {
            Woken::DeadlinePassed => Ok(None),
            _ => Ok(Some(call()?)),
        }
    }
}
