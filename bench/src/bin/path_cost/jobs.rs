//! The jobs whose calls are counted. Each call is a function here, so that callgrind knows it by a symbol. The two polls
//! differ by what the optimizer can't see through: of equal functions it keeps one.

use std::error::Error;
use std::hint::black_box;

use cq_core::transport::{PollCq, PollError, Post, PostError};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{Access, Context, Cq, OwnedRegion, QpInit, QueuePair};

/// A call that is counted.
#[derive(Clone, Copy)]
pub enum Call {
    PostSend,
    PostRecv,
    PollSend,
    PollRecv,
}

impl Call {
    /// As the table has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PostSend => "post_send",
            Self::PostRecv => "post_recv",
            Self::PollSend => "poll of the send",
            Self::PollRecv => "poll of the receive",
        }
    }

    /// As callgrind has it.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::PostSend => "path_cost_post_send",
            Self::PostRecv => "path_cost_post_recv",
            Self::PollSend => "path_cost_poll_send",
            Self::PollRecv => "path_cost_poll_recv",
        }
    }
}

/// What the messages of a job are.
#[derive(Clone, Copy)]
pub enum Kind {
    Send,
    SendInline,
    Write,
    Read,
    FetchAdd,
}

/// Messages that are posted together.
pub struct Job {
    pub name: &'static str,
    kind: Kind,
    bytes: usize,
    list: usize,
    /// The calls, and what each took for one message at the commit that is compared with.
    pub base: &'static [(Call, f64)],
}

impl Job {
    /// How many there are.
    pub const fn messages(&self) -> u32 {
        self.list as u32
    }

    const fn takes_receives(&self) -> bool {
        matches!(self.kind, Kind::Send | Kind::SendInline)
    }
}

/// Messages of a list.
const LIST: usize = 32;
/// Bytes of the longest message.
const MOST: usize = 4096;

/// All jobs.
pub const JOBS: [Job; 8] = [
    Job {
        name: "SEND, 64 bytes",
        kind: Kind::Send,
        bytes: 64,
        list: 1,
        base: &[
            (Call::PostRecv, 107.0),
            (Call::PostSend, 2054.0),
            (Call::PollRecv, 129.0),
            (Call::PollSend, 171.0),
        ],
    },
    Job {
        name: "SEND, 64 bytes inline",
        kind: Kind::SendInline,
        bytes: 64,
        list: 1,
        base: &[(Call::PostSend, 1939.0)],
    },
    Job {
        name: "SEND, 4096 bytes",
        kind: Kind::Send,
        bytes: MOST,
        list: 1,
        base: &[(Call::PostSend, 2543.0)],
    },
    Job {
        name: "SEND, 64 bytes, lists of 32",
        kind: Kind::Send,
        bytes: 64,
        list: LIST,
        base: &[
            (Call::PostRecv, 58.0),
            (Call::PostSend, 1210.0),
            (Call::PollRecv, 47.0),
            (Call::PollSend, 83.0),
        ],
    },
    Job {
        name: "WRITE, 64 bytes",
        kind: Kind::Write,
        bytes: 64,
        list: 1,
        base: &[(Call::PostSend, 1837.0), (Call::PollSend, 181.0)],
    },
    Job {
        name: "WRITE, 64 bytes, lists of 32",
        kind: Kind::Write,
        bytes: 64,
        list: LIST,
        base: &[(Call::PostSend, 1056.0), (Call::PollSend, 83.0)],
    },
    Job {
        name: "READ, 64 bytes",
        kind: Kind::Read,
        bytes: 64,
        list: 1,
        base: &[(Call::PostSend, 1616.0)],
    },
    Job {
        name: "FETCH_ADD",
        kind: Kind::FetchAdd,
        bytes: 8,
        list: 1,
        base: &[(Call::PostSend, 1708.0)],
    },
];

/// One end: a queue pair, its completion queue, and memory that its peer may use.
struct End {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
}

impl End {
    fn new(context: &Context) -> Result<Self, Box<dyn Error>> {
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(LIST as u32, None)?);
        let qp = pd.create_qp(&QpInit::new(&cq))?;
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let region = pd.allocate(MOST, Access::LOCAL_WRITE | remote)?;
        Ok(Self { qp, cq, region })
    }
}

/// Two ends that are connected.
pub struct Ends {
    sender: End,
    receiver: End,
}

impl Ends {
    /// Connects two.
    ///
    /// # Errors
    /// What the device said.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let context = Context::open("loop0")?;
        let (mut sender, mut receiver) = (End::new(&context)?, End::new(&context)?);
        sender.qp.connect_to(receiver.qp.number())?;
        receiver.qp.connect_to(sender.qp.number())?;
        Ok(Self { sender, receiver })
    }

    /// Does a job: posts receives if it takes any, its messages, and polls for all completions.
    ///
    /// # Errors
    /// It failed.
    pub fn work(&mut self, job: &Job) -> Result<(), Box<dyn Error>> {
        let Self { sender, receiver } = self;
        let from = [sender.region.sge(0, job.bytes)?];
        let to = [receiver.region.sge(0, job.bytes)?];
        let (remote, inline) = (receiver.region.remote(0)?, [7; 64]);
        let wr = match job.kind {
            Kind::Send => SendWr::send(1, &from),
            Kind::SendInline => SendWr::send_inline(1, &inline),
            Kind::Write => SendWr::write(1, &from, remote),
            Kind::Read => SendWr::read(1, &from, remote),
            Kind::FetchAdd => SendWr::fetch_add(1, &from, remote, 1),
        };
        let (sends, recvs) = ([wr; LIST], [RecvWr::new(1, &to); LIST]);
        if job.takes_receives() {
            path_cost_post_recv(&mut receiver.qp, &recvs[..job.list])?;
        }
        path_cost_post_send(&mut sender.qp, &sends[..job.list])?;
        let mut wcs = [Wc::default(); LIST];
        if job.takes_receives() {
            let came = path_cost_poll_recv(&mut receiver.cq, &mut wcs[..job.list])?;
            check(&wcs[..came], job.list)?;
        }
        let came = path_cost_poll_send(&mut sender.cq, &mut wcs[..job.list])?;
        check(&wcs[..came], job.list)
    }
}

/// Checks that all completions are there, and good.
fn check(wcs: &[Wc], due: usize) -> Result<(), Box<dyn Error>> {
    let came = wcs.len();
    if came != due {
        return Err(format!("{came} completions were there instead of {due}").into());
    }
    wcs.iter().try_for_each(|wc| wc.result().map(drop))?;
    Ok(())
}

#[unsafe(no_mangle)]
#[inline(never)]
fn path_cost_post_send(qp: &mut QueuePair, wrs: &[SendWr<'_>]) -> Result<(), PostError> {
    qp.post_send(wrs)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn path_cost_post_recv(qp: &mut QueuePair, wrs: &[RecvWr<'_>]) -> Result<(), PostError> {
    qp.post_recv(wrs)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn path_cost_poll_send(cq: &mut Cq, wcs: &mut [Wc]) -> Result<usize, PollError> {
    black_box(Call::PollSend);
    cq.poll(wcs)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn path_cost_poll_recv(cq: &mut Cq, wcs: &mut [Wc]) -> Result<usize, PollError> {
    black_box(Call::PollRecv);
    cq.poll(wcs)
}
