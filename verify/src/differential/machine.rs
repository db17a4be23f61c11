//! Carries a program out on a device, and keeps what can be seen of it.

use std::collections::BTreeMap;
use std::time::Instant;

use cq_core::async_event::Element;
use cq_core::transport::{Arm, Events, Poll, PollError, Post, PostError};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_core::wr::{self, RecvWr, RemoteAddr, SendFlags, SendOp, SendWr, Sge};

use super::program::*;
use crate::device::{Access, Attr, Caps, Cq, Device, Mr, Qp, QpInit, State};

/// More than a program can leave unpolled, so that nothing overruns: when that happens is not defined to
/// the entry (O1).
const CQE: u32 = 512;
const CAPS: Caps =
    Caps { max_send_wr: 4, max_recv_wr: 4, max_send_sge: 2, max_recv_sge: 2, max_inline: 16 };
/// Room of one poll, at most.
const CHUNK: usize = 16;
/// Receives have it in their `wr_id`.
const RECV: u64 = 1 << 63;

/// What a step returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// How many requests of the list were posted; the next one was refused.
    Posted(usize),
    /// Which of the changes were made.
    Changed(Vec<bool>),
    /// How many completions came.
    Polled(usize),
    /// The queue itself failed.
    Broken(PollError),
    /// Whether the call was obeyed.
    Obeyed(bool),
}

/// What can be seen from outside without changing anything but events, which were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The states of the queue pairs.
    pub states: Vec<State>,
    /// How many events each completion queue has raised.
    pub events: [u32; 4],
    /// How often each asynchronous event came: its number, whether it is a queue pair's, and whose.
    pub reports: BTreeMap<(u32, bool, usize), u32>,
}

/// A completion, as far as it is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    wr_id: u64,
    qp: Option<usize>,
    status: WcStatus,
    /// Opcode, bytes, immediate data.
    success: Option<(WcOpcode, Option<u32>, Option<[u8; 4]>)>,
}

/// The completions of each queue, in order: those of send queue `n` at `2 * n`, of its receive queue
/// behind it.
pub type Completed = Vec<Vec<Done>>;

/// How many completions a poll has to find.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// So many.
    pub count: usize,
    /// If they come before this.
    pub until: Instant,
}

impl Wanted {
    fn lacks(&self, count: usize) -> bool {
        count < self.count && Instant::now() < self.until
    }
}

struct End<D: Device> {
    main: D::Mr,
    local: Option<D::Mr>,
    fixed: Option<D::Mr>,
    /// Those that are gone, too, so that their keys can be used.
    keys: [(u64, u32, u32); 2],
    channel: D::Channel,
    /// Of sends, and of receives if that is another one.
    cqs: Vec<D::Cq>,
}

/// A program under way.
pub struct Machine<D: Device> {
    device: D,
    // Before what they refer to.
    qps: Vec<D::Qp>,
    ends: [End<D>; 2],
    shape: Shape,
    steps: u64,
    look: Look,
    completed: Completed,
}

impl<D: Device> Machine<D> {
    /// Makes and connects everything.
    pub fn new(shape: &Shape) -> Self {
        let device = D::open();
        let pds = [device.alloc_pd(), device.alloc_pd()];
        let ends = pds.each_ref().map(|pd| End::new(&device, pd, shape.separate_cqs));
        let qps = (0..shape.pairs * 2).map(|qp| {
            let end = &ends[qp % 2];
            let init = QpInit {
                send_cq: &end.cqs[0],
                recv_cq: end.cqs.last().expect("an end has a completion queue"),
                caps: CAPS,
                sq_sig_all: shape.signal_all,
            };
            device.create_qp(&pds[qp % 2], &init).expect("a queue pair")
        });
        let (qps, completed) = (qps.collect(), vec![Vec::new(); shape.pairs * 4]);
        let look = Look::default();
        let mut machine =
            Self { device, qps, ends, shape: shape.clone(), steps: 0, look, completed };
        for qp in 0..shape.pairs * 2 {
            machine.change(qp, Change::Reconnect);
        }
        machine
    }

    /// Carries a step out; a poll waits for what is `wanted`.
    pub fn step(&mut self, step: &Step, wanted: Option<Wanted>) -> Outcome {
        self.steps += 1;
        match step {
            Step::Send(qp, list) => self.send(*qp % self.qps.len(), list),
            Step::Recv(qp, list) => self.recv(*qp % self.qps.len(), list),
            Step::Change(qp, change) => self.change(*qp % self.qps.len(), *change),
            Step::Poll(cq, room) => match self.poll(*cq, *room, wanted) {
                Ok(count) => Outcome::Polled(count),
                Err(error) => Outcome::Broken(error),
            },
            Step::Arm(cq, on) => Outcome::Obeyed(self.cq(*cq).arm(*on).is_ok()),
            Step::Resize(cq, capacity) => Outcome::Obeyed(self.resize(*cq, *capacity)),
            Step::Fill(end, at, byte) => {
                let part = vec![*byte; 16.min(MAIN - at)];
                self.ends[*end].main.write(*at, &part);
                Outcome::Obeyed(true)
            }
            Step::Deregister(end, region) => Outcome::Obeyed(self.deregister(*end, *region)),
        }
    }

    /// What can be seen now.
    pub fn look(&mut self) -> &Look {
        self.look.states = self.qps.iter().map(Qp::state).collect();
        for (index, end) in self.ends.iter_mut().enumerate() {
            while let Some(key) = end.channel.next().expect("a channel that works") {
                let cq = end.cqs.iter().position(|cq| cq.key() == key);
                self.look.events[index * 2 + cq.expect("a queue of this channel")] += 1;
            }
        }
        while let Some(event) = self.device.next_async().expect("a device that works") {
            let whose = match event.element {
                Element::Qp(number) => (true, self.index_of(number)),
                Element::Cq(key) => {
                    let mut cqs = self.ends.iter().flat_map(|end| &end.cqs);
                    (false, cqs.position(|cq| cq.key() == key))
                }
                _ => (false, None),
            };
            let whose = (event.event_type.0, whose.0, whose.1.unwrap_or(usize::MAX));
            *self.look.reports.entry(whose).or_default() += 1;
        }
        &self.look
    }

    /// All that completed, and the memory of both ends.
    pub fn finish(self) -> (Completed, [Vec<u8>; 2]) {
        let memory = self.ends.each_ref().map(|end| {
            let mut bytes = vec![0; MAIN];
            end.main.read(0, &mut bytes);
            bytes
        });
        (self.completed, memory)
    }

    /// Lets the device go on.
    pub fn pause(&self) {
        self.device.pause();
    }

    fn send(&mut self, qp: usize, list: &[Request]) -> Outcome {
        let pieces: Vec<Vec<Sge>> = list.iter().map(|request| self.sges(qp, request)).collect();
        let requests = list.iter().zip(&pieces).zip(0..);
        let requests: Vec<SendWr<'_>> = requests
            .map(|((request, pieces), nth)| {
                let data = match &request.data {
                    Data::Pieces(_) => wr::Data::Sges(pieces),
                    Data::Inline(bytes) => wr::Data::Inline(bytes),
                };
                let mut wr = SendWr::new(self.steps << 8 | nth, self.op(qp, request.op), data);
                wr.flags = SendFlags::empty();
                wr.flags.set(SendFlags::SIGNALED, request.signaled);
                wr.flags.set(SendFlags::SOLICITED, request.solicited);
                wr.flags.set(SendFlags::FENCE, request.fenced);
                wr
            })
            .collect();
        posted(self.qps[qp].post_send(&requests), list.len())
    }

    fn recv(&mut self, qp: usize, list: &[Vec<Piece>]) -> Outcome {
        let pieces: Vec<Vec<Sge>> = list
            .iter()
            .map(|pieces| pieces.iter().map(|piece| self.sge(qp % 2, piece)).collect())
            .collect();
        let first = RECV | self.steps << 8;
        let requests: Vec<RecvWr<'_>> =
            (first..).zip(&pieces).map(|(wr_id, sges)| RecvWr::new(wr_id, sges)).collect();
        posted(self.qps[qp].post_recv(&requests), list.len())
    }

    fn change(&mut self, qp: usize, change: Change) -> Outcome {
        let attrs = match change {
            Change::Bare(state) => vec![Attr::to(state)],
            Change::To(state) => vec![self.attr(qp, state)],
            Change::Reconnect => [State::Reset, State::Init, State::Rtr, State::Rts]
                .map(|state| self.attr(qp, state))
                .to_vec(),
        };
        Outcome::Changed(attrs.iter().map(|attr| self.qps[qp].modify(attr).is_ok()).collect())
    }

    fn attr(&self, qp: usize, state: State) -> Attr {
        let shape = &self.shape.ends[qp % 2];
        let impatient = self.shape.impatient;
        match state {
            State::Init => Attr::init(shape.rights),
            State::Rtr => Attr {
                max_dest_rd_atomic: Some(shape.max_dest_rd_atomic),
                min_rnr_timer: Some(1),
                ..Attr::rtr(self.qps[qp ^ 1].number())
            },
            State::Rts => Attr {
                max_rd_atomic: Some(shape.max_rd_atomic),
                timeout: Some(u8::from(impatient)),
                retry_cnt: Some(1),
                rnr_retry: Some(match (shape.waits_for_receives, impatient) {
                    (false, _) => 0,
                    (true, true) => 2,
                    (true, false) => 7,
                }),
                ..Attr::rts()
            },
            State::Sqd => Attr { sqd_async_notify: Some(true), ..Attr::to(State::Sqd) },
            _ => Attr::to(state),
        }
    }

    /// Empties the queues of an end first: what becomes of a request whose memory goes while it waits is
    /// nobody's promise. Whether the region was still there.
    fn deregister(&mut self, end: usize, region: Region) -> bool {
        let qps = || (end..self.shape.pairs * 2).step_by(2);
        for qp in qps() {
            self.qps[qp].modify(&Attr::to(State::Reset)).expect("any state goes to RESET");
        }
        let was_there = self.ends[end].deregister(region);
        let again: Vec<usize> = qps().collect();
        for qp in again {
            self.change(qp, Change::Reconnect);
        }
        was_there
    }

    /// Makes a queue as small as that, and as large as it was again.
    fn resize(&mut self, cq: usize, capacity: u32) -> bool {
        let cq = self.cq(cq);
        cq.resize(capacity).is_ok() && cq.resize(CQE).is_ok()
    }

    fn poll(&mut self, cq: usize, room: usize, wanted: Option<Wanted>) -> Result<usize, PollError> {
        // In which order the queues of different queue pairs complete is nobody's promise.
        let shared = self.shape.pairs > 1 || !self.shape.separate_cqs;
        let (most, mut count) = (if shared { usize::MAX } else { room }, 0);
        loop {
            let taken = self.take(cq, room.min(most - count).min(CHUNK))?;
            count += taken;
            if count == most || taken == 0 && wanted.is_none_or(|wanted| !wanted.lacks(count)) {
                return Ok(count);
            }
            if taken == 0 {
                self.pause();
            }
        }
    }

    /// Polls once.
    fn take(&mut self, cq: usize, room: usize) -> Result<usize, PollError> {
        let mut out = vec![Wc::default(); room];
        let count = self.cq(cq).poll(&mut out)?;
        for wc in &out[..count] {
            let done = self.done(wc);
            let queue = done.qp.map_or(0, |qp| qp * 2 + usize::from(done.wr_id & RECV != 0));
            self.completed[queue].push(done);
        }
        Ok(count)
    }

    fn done(&self, wc: &Wc) -> Done {
        let is_recv = wc.wr_id() & RECV != 0;
        let success = wc.result().ok().map(|done| {
            let counts = is_recv || !matches!(done.opcode(), WcOpcode::SEND | WcOpcode::RDMA_WRITE);
            let with_imm = is_recv && done.flags().contains(WcFlags::WITH_IMM);
            let imm = with_imm.then(|| done.imm()).flatten();
            (done.opcode(), counts.then(|| done.byte_len()), imm)
        });
        Done { wr_id: wc.wr_id(), qp: self.index_of(wc.qp_num()), status: wc.status(), success }
    }

    fn index_of(&self, number: u32) -> Option<usize> {
        self.qps.iter().position(|qp| qp.number() == number)
    }

    fn cq(&mut self, cq: usize) -> &mut D::Cq {
        let cqs = &mut self.ends[cq / 2].cqs;
        let last = cqs.len() - 1;
        &mut cqs[(cq % 2).min(last)]
    }

    fn sges(&self, qp: usize, request: &Request) -> Vec<Sge> {
        match &request.data {
            Data::Pieces(pieces) => pieces.iter().map(|piece| self.sge(qp % 2, piece)).collect(),
            Data::Inline(_) => Vec::new(),
        }
    }

    fn sge(&self, end: usize, piece: &Piece) -> Sge {
        let (base, lkey, _) = self.region(end, piece.region);
        Sge { addr: base.wrapping_add(piece.offset), length: piece.length, lkey }
    }

    fn remote(&self, qp: usize, place: Place) -> RemoteAddr {
        let (base, _, rkey) = self.region((qp % 2) ^ 1, place.region);
        RemoteAddr { addr: base.wrapping_add(place.offset), rkey }
    }

    /// Address, local key and remote key of a region as `end` names it.
    fn region(&self, end: usize, region: Region) -> (u64, u32, u32) {
        match region {
            Region::Main => names(&self.ends[end].main),
            Region::Local => self.ends[end].keys[0],
            Region::Fixed => self.ends[end].keys[1],
            Region::Foreign => names(&self.ends[end ^ 1].main),
            Region::Unknown => (self.ends[end].main.addr(), 0, 0),
        }
    }

    fn op(&self, qp: usize, op: Op) -> SendOp {
        match op {
            Op::Send { imm } => SendOp::Send { imm },
            Op::Write { to } => SendOp::Write { remote: self.remote(qp, to), imm: None },
            Op::Read { from } => SendOp::Read { remote: self.remote(qp, from) },
            Op::CompareSwap { at, compare, swap } => {
                SendOp::CompareSwap { remote: self.remote(qp, at), compare, swap }
            }
            Op::FetchAdd { at, add } => SendOp::FetchAdd { remote: self.remote(qp, at), add },
        }
    }
}

impl<D: Device> End<D> {
    fn new(device: &D, pd: &D::Pd, separate_cqs: bool) -> Self {
        let region = |len, access| device.register(pd, len, access).expect("a region");
        let main = region(MAIN, Access::EVERY);
        let (local, fixed) = (region(SMALL, Access::LOCAL_WRITE), region(SMALL, Access::empty()));
        let keys = [names(&local), names(&fixed)];
        let channel = device.create_channel();
        let cqs = (0..1 + usize::from(separate_cqs))
            .map(|_| device.create_cq(CQE, Some(&channel)).expect("a completion queue"))
            .collect();
        Self { main, local: Some(local), fixed: Some(fixed), keys, channel, cqs }
    }

    /// Whether it was still there.
    fn deregister(&mut self, region: Region) -> bool {
        match region {
            Region::Local => self.local.take().is_some(),
            _ => self.fixed.take().is_some(),
        }
    }
}

fn names(region: &impl Mr) -> (u64, u32, u32) {
    (region.addr(), region.lkey(), region.rkey())
}

fn posted(result: Result<(), PostError>, all: usize) -> Outcome {
    Outcome::Posted(result.map_or_else(|error| error.posted, |()| all))
}
