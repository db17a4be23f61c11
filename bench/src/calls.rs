//! The calls whose instructions are counted: messages between two ends of this process, and polls. Each call of the
//! loopback is a function here, so that [callgrind](crate::callgrind) knows it by a symbol. The two polls differ by what
//! the optimizer can't see through: of equal functions it keeps one.
//!
//! ```
//! use bench::calls::{Ends, JOBS, LOOPBACK};
//! use bench::transport::loopback::Loopback;
//!
//! let mut ends = Ends::new(&Loopback::open()?)?;
//! JOBS.iter().try_for_each(|job| ends.work(job, &LOOPBACK))?;
//! # Ok::<(), bench::Failure>(())
//! ```

use std::hint::black_box;

use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;
use cq_verbs::post::PostError;
use cq_verbs::wr::{RecvWr, SendWr};
use transport_rxe_loop::{Cq, QueuePair};

use crate::delivery::counted;
use crate::failure::Failure;
use crate::transport::loopback::Loopback;
use crate::transport::{End, Needs, Transport};

/// A call that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Call {
    PostSend,
    PostRecv,
    PollSend,
    PollRecv,
}

impl Call {
    /// As the table has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["post_send", "post_recv", "poll of the send", "poll of the receive"][self as usize]
    }
}

/// A poll.
pub type Poll<T> = fn(&mut <T as Transport>::Queue, &mut [Wc]) -> Result<usize, PollError>;

/// How a device is called.
pub struct Calls<T: Transport> {
    /// Posts sends.
    pub post_send: fn(&mut T::Pair, &[SendWr<'_>]) -> Result<(), PostError>,
    /// Posts receives.
    pub post_recv: fn(&mut T::Pair, &[RecvWr<'_>]) -> Result<(), PostError>,
    /// Poll for a send, and for a receive.
    pub polls: [Poll<T>; 2],
    /// What callgrind knows each [`Call`] by.
    pub symbols: [&'static str; 4],
}

/// By the Rust API of the loopback.
pub const LOOPBACK: Calls<Loopback> = Calls {
    post_send: counted_post_send,
    post_recv: counted_post_recv,
    polls: [counted_poll_send, counted_poll_recv],
    symbols: ["counted_post_send", "counted_post_recv", "counted_poll_send", "counted_poll_recv"],
};

/// What the messages of a job are.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    /// None: a poll finds nothing.
    Nothing,
    Send,
    SendInline,
    Write,
    Read,
    FetchAdd,
}

/// Messages that are posted together.
#[derive(Debug)]
pub struct Job {
    /// What it is called.
    pub name: &'static str,
    /// What its messages are.
    pub kind: Kind,
    /// Bytes of a message.
    pub bytes: usize,
    /// How many messages there are, at most [`LIST`].
    pub list: usize,
    /// The calls, and what each took for one message at the commit that is compared with.
    pub base: &'static [(Call, f64)],
}

/// Messages of a list.
pub const LIST: usize = 32;
/// Bytes of the longest message.
const MOST: usize = 4096;

/// The jobs that have been counted before.
pub const JOBS: [Job; 8] = {
    use Call::{PollRecv, PollSend, PostRecv, PostSend};
    const fn job(
        name: &'static str,
        kind: Kind,
        [bytes, list]: [usize; 2],
        base: &'static [(Call, f64)],
    ) -> Job {
        Job { name, kind, bytes, list, base }
    }
    const ONE: &[(Call, f64)] =
        &[(PostRecv, 107.0), (PostSend, 2054.0), (PollRecv, 129.0), (PollSend, 171.0)];
    const MANY: &[(Call, f64)] =
        &[(PostRecv, 58.0), (PostSend, 1210.0), (PollRecv, 47.0), (PollSend, 83.0)];
    const WRITES: &[(Call, f64)] = &[(PostSend, 1056.0), (PollSend, 83.0)];
    [
        job("SEND, 64 bytes", Kind::Send, [64, 1], ONE),
        job("SEND, 64 bytes inline", Kind::SendInline, [64, 1], &[(PostSend, 1939.0)]),
        job("SEND, 4096 bytes", Kind::Send, [MOST, 1], &[(PostSend, 2543.0)]),
        job("SEND, 64 bytes, lists of 32", Kind::Send, [64, LIST], MANY),
        job("WRITE, 64 bytes", Kind::Write, [64, 1], &[(PostSend, 1837.0), (PollSend, 181.0)]),
        job("WRITE, 64 bytes, lists of 32", Kind::Write, [64, LIST], WRITES),
        job("READ, 64 bytes", Kind::Read, [64, 1], &[(PostSend, 1616.0)]),
        job("FETCH_ADD", Kind::FetchAdd, [8, 1], &[(PostSend, 1708.0)]),
    ]
};

/// Two ends that are connected.
pub struct Ends<T: Transport> {
    sender: End<T>,
    receiver: End<T>,
}

impl<T: Transport> Ends<T> {
    /// Connects two.
    ///
    /// # Errors
    /// What the device said.
    pub fn new(transport: &T) -> Result<Self, Failure> {
        let depth = LIST as u32;
        let needs = Needs { sends: depth, receives: depth, bytes: MOST, ..Needs::default() };
        let [sender, receiver] =
            transport.pair(&[Needs { atomics: true, inline: 64, ..needs }; 2])?;
        Ok(Self { sender, receiver })
    }

    /// Does a job: posts receives if it takes any, its messages, and polls for all completions.
    ///
    /// # Errors
    /// It failed.
    pub fn work(&mut self, job: &Job, calls: &Calls<T>) -> Result<(), Failure> {
        let Self { sender, receiver } = self;
        let [poll_send, poll_recv] = calls.polls;
        let from = [sender.memory.registered().sge(..job.bytes)?];
        let to = [receiver.memory.registered().sge(..job.bytes)?];
        let (remote, inline) = (receiver.memory.remote(0)?, [7; 64]);
        let wr = match job.kind {
            Kind::Nothing => return polled::<T>(poll_send, &mut sender.queue, 0),
            Kind::Send => SendWr::send(1, &from),
            Kind::SendInline => SendWr::send_inline(1, &inline),
            Kind::Write => SendWr::write(1, &from, remote),
            Kind::Read => SendWr::read(1, &from, remote),
            Kind::FetchAdd => SendWr::fetch_add(1, &from, remote, 1),
        };
        let takes_receives = matches!(job.kind, Kind::Send | Kind::SendInline);
        if takes_receives {
            (calls.post_recv)(&mut receiver.pair, &[RecvWr::new(1, &to); LIST][..job.list])?;
        }
        (calls.post_send)(&mut sender.pair, &[wr; LIST][..job.list])?;
        if takes_receives {
            polled::<T>(poll_recv, &mut receiver.queue, job.list)?;
        }
        polled::<T>(poll_send, &mut sender.queue, job.list)
    }
}

/// Checks that so many completions are there, and good.
fn polled<T: Transport>(poll: Poll<T>, cq: &mut T::Queue, due: usize) -> Result<(), Failure> {
    let mut wcs = [Wc::default(); LIST];
    let came = poll(cq, &mut wcs[..due.max(1)])?;
    counted(came, due)?;
    Ok(wcs[..came].iter().try_for_each(|wc| wc.result().map(drop))?)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn counted_post_send(qp: &mut QueuePair, wrs: &[SendWr<'_>]) -> Result<(), PostError> {
    qp.post_send(wrs)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn counted_post_recv(qp: &mut QueuePair, wrs: &[RecvWr<'_>]) -> Result<(), PostError> {
    qp.post_recv(wrs)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn counted_poll_send(cq: &mut Cq, wcs: &mut [Wc]) -> Result<usize, PollError> {
    black_box(Call::PollSend);
    cq.poll_into(wcs)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn counted_poll_recv(cq: &mut Cq, wcs: &mut [Wc]) -> Result<usize, PollError> {
    black_box(Call::PollRecv);
    cq.poll_into(wcs)
}
