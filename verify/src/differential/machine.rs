//! Executes a program on a device, and records what can be observed.

use std::time::Instant;

use cq_core::transport::{Arm, Events, PollCq, PollError};
use cq_core::wc::Wc;
use cq_verbs::async_event::{AsyncEvent, Element};
use cq_verbs::post::{Post, PostError};
use cq_verbs::wr::{self, RecvWr, SendWr, Sge};

use super::dialect::{Dialect, Omission};
use super::end::{CQE, End, GRH};
use super::program::*;
use super::seen::{Completed, Done, Look, RECV};
use crate::device::{
    Cq, Destination, Device, Mr, Qp, QpAttr, QpCaps, QpInit, QpState, QpType, Srq, small,
};

/// The Q_Key of every UD queue pair.
pub const QKEY: u32 = 0x5eed;

/// Capacities that devices do not round up.
const CAPS: QpCaps =
    QpCaps::USUAL.max_send_wr(3).max_recv_wr(3).max_send_sge(2).max_recv_sge(2).max_inline(32);
/// More requests than a program posts.
const MANY: u32 = 127;
/// The largest slice of a poll.
const CHUNK: usize = 16;

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The number of posted requests, of which the next one was refused; or of polled completions.
    Count(usize),
    /// The queue failed.
    Broken(PollError),
    /// Which of the calls succeeded; empty if the step was left out.
    Obeyed(Vec<bool>),
}

/// The number of completions that a poll has to find, or of receives that a queue has to accept, and the deadline.
pub type Wanted = Option<(usize, Instant)>;

fn are_missing(wanted: Wanted, count: usize) -> bool {
    wanted.is_some_and(|(all, until)| count < all && Instant::now() < until)
}

/// A running program.
pub struct Machine<D: Device> {
    /// The two ends.
    devices: [D; 2],
    // Declared before the objects that they use, so that they are dropped first.
    pub(super) qps: Vec<D::Qp>,
    pub(super) ends: [End<D>; 2],
    pub(super) shape: Shape,
    dialect: &'static Dialect,
    steps: u64,
    look: Look,
    completed: Completed,
}

impl<D: Device> Machine<D> {
    /// Creates and connects everything.
    pub fn new(shape: &Shape, dialect: &'static Dialect) -> Self {
        let devices = [D::open(), D::open_far()];
        let full = !dialect.lacks(Omission::FullQueues);
        // The first SGE receives the GRH.
        let max_recv_sge = CAPS.max_recv_sge + u32::from(shape.qp_type == QpType::UD);
        let caps = CAPS.max_recv_sge(max_recv_sge);
        let caps = if full { caps } else { caps.max_send_wr(MANY) };
        let pds = devices.each_ref().map(D::alloc_pd);
        let ends =
            [0, 1].map(|end| End::new(&devices[end], &pds[end], (shape, end), &caps, dialect));
        let qps = (0..shape.pairs * 2).map(|qp| {
            let end = &ends[qp % 2];
            let init = QpInit {
                recv_cq: end.cqs.last().expect("an end has a completion queue"),
                caps,
                sq_sig_all: shape.signal_all,
                qp_type: shape.qp_type,
                srq: end.srq.as_ref(),
                ..small(&end.cqs[0])
            };
            devices[qp % 2].create_qp(&pds[qp % 2], &init).expect("a queue pair")
        });
        let (qps, completed) = (qps.collect(), vec![Vec::new(); shape.pairs * 4]);
        let look = Look::default();
        let shape = shape.clone();
        let mut machine = Self { devices, qps, ends, shape, dialect, steps: 0, look, completed };
        for qp in 0..machine.qps.len() {
            machine.change(qp, Change::Reconnect);
        }
        machine
    }

    /// Executes a step. A poll waits for the `wanted` completions, and posting receives waits for free slots.
    pub fn step(&mut self, step: &Step, wanted: Wanted) -> Outcome {
        self.steps += 1;
        match step {
            Step::Send(qp, list) => self.send(*qp % self.qps.len(), list),
            Step::Recv(qp, list) => {
                let qp = *qp % self.qps.len();
                if self.fails(qp) && self.dialect.lacks(Omission::ReceivesInErr) {
                    return Outcome::Obeyed(Vec::new());
                }
                self.recv(qp, list, wanted)
            }
            Step::Change(qp, change) => self.change(*qp % self.qps.len(), *change),
            Step::Poll(cq, capacity) => {
                self.poll(*cq, *capacity, wanted).map_or_else(Outcome::Broken, Outcome::Count)
            }
            step => Outcome::Obeyed(self.other(step).into_iter().collect()),
        }
    }

    /// Whether a call succeeded, if it was made.
    fn other(&mut self, step: &Step) -> Option<bool> {
        Some(match step {
            Step::Arm(cq, on) => {
                if self.dialect.lacks(Omission::UnpolledArms) {
                    self.empty(*cq);
                }
                self.cq(*cq).arm(*on).is_ok()
            }
            Step::Resize(cq, capacity) => self.resize(*cq, *capacity),
            Step::Limit(end, limit) => self.ends[*end].srq.as_mut()?.arm_limit(*limit).is_ok(),
            Step::Moderate(cq, count, period) => self.cq(*cq).moderate(*count, *period).is_ok(),
            Step::Deregister(end, region) => self.deregister(*end, *region),
            Step::Fill(end, at, byte) => {
                self.ends[*end].main.write(*at, &vec![*byte; 16.min(MAIN - at)]);
                true
            }
            Step::Send(..) | Step::Recv(..) | Step::Change(..) | Step::Poll(..) => return None,
        })
    }

    /// The observable state.
    pub fn look(&mut self) -> &Look {
        self.look.states = self.qps.iter().map(Qp::state).collect();
        let others = |end: &End<D>| (end.nth_key(), end.srq.as_ref().map_or(0, Srq::limit));
        self.look.others = self.ends.each_ref().map(others);
        for (index, end) in self.ends.iter_mut().enumerate() {
            while let Some(key) = end.channel.take_event().expect("a channel that works") {
                let cq = end.cqs.iter().position(|cq| cq.key() == key);
                self.look.events[index * 2 + cq.expect("a queue of this channel")] += 1;
            }
        }
        while let Some(event) = self.take_async_event() {
            if self.dialect.lacks(Omission::Reports) {
                continue;
            }
            let mut cqs = self.ends.iter().flat_map(|end| &end.cqs);
            let mut srqs = self.ends.iter().map(|end| end.srq.as_ref().map(Srq::number));
            let whose = match event.element {
                Element::Qp(number) => self.index_of(number),
                Element::Srq(number) => srqs.position(|srq| srq == Some(number)),
                Element::Cq(key) => cqs.position(|cq| cq.key() == key),
                _ => None,
            };
            *self.look.reports.entry((event.event_type.0, whose)).or_default() += 1;
        }
        &self.look
    }

    /// Polls all completions.
    pub fn take_all(&mut self) {
        (0..4).for_each(|cq| self.empty(cq));
    }

    /// Polls all completions of a queue.
    fn empty(&mut self, cq: usize) {
        while self.take(cq, CHUNK).is_ok_and(|count| count > 0) {}
    }

    /// The completions polled so far.
    pub const fn completed(&self) -> &Completed {
        &self.completed
    }

    /// The main regions of both ends.
    pub fn memory(&self) -> [Vec<u8>; 2] {
        self.ends.each_ref().map(|end| {
            let mut bytes = vec![0; MAIN];
            end.main.read(0, &mut bytes);
            bytes
        })
    }

    /// Lets the device work for a moment.
    pub fn pause(&self) {
        self.devices[0].pause();
    }

    fn take_async_event(&mut self) -> Option<AsyncEvent> {
        let next = |device: &mut D| device.take_async_event().expect("a device that works");
        self.devices.iter_mut().find_map(next)
    }

    fn send(&mut self, qp: usize, list: &[Request]) -> Outcome {
        let lists: Vec<Vec<Sge>> = list.iter().map(|request| self.sges(qp, request)).collect();
        let requests = list.iter().zip(&lists).zip(0..);
        let requests: Vec<SendWr<'_>> = requests
            .map(|((request, sges), nth)| {
                let data = match &request.data {
                    Data::Sges(_) => wr::Data::Sges(sges),
                    Data::Inline(bytes) => wr::Data::Inline(bytes),
                };
                let wr = SendWr::new(self.steps << 8 | nth, self.op(qp, request.op), data);
                SendWr { flags: request.flags, ..wr }
            })
            .collect();
        let target = list.first().map(|request| request.target);
        let result = match (&self.ends[qp % 2].handles, target) {
            (Some(handles), Some(Target { qp: to, knows_key, global })) => {
                let qp_num = self.qps[to % self.qps.len()].number();
                let qkey = QKEY ^ u32::from(!knows_key);
                let to = Destination::new(&handles[usize::from(global)], qp_num, qkey);
                self.qps[qp].post_to(&to, &requests)
            }
            _ => self.qps[qp].post_send(&requests),
        };
        Outcome::Count(posted(result, list.len()))
    }

    fn recv(&mut self, qp: usize, list: &[Vec<NamedSge>], wanted: Wanted) -> Outcome {
        let end = &self.ends[qp % 2];
        let sges = |named: &Vec<NamedSge>| {
            let route = (self.shape.qp_type == QpType::UD).then(|| end.routes.sge(0, GRH));
            route.into_iter().chain(named.iter().map(|sge| self.sge(qp % 2, sge))).collect()
        };
        let lists: Vec<Vec<Sge>> = list.iter().map(sges).collect();
        let first = RECV | self.steps << 8;
        let requests: Vec<RecvWr<'_>> =
            (first..).zip(&lists).map(|(wr_id, sges)| RecvWr::new(wr_id, sges)).collect();
        let mut count = 0;
        loop {
            let rest = &requests[count..];
            let result = match &mut self.ends[qp % 2].srq {
                Some(srq) => srq.post_recv(rest),
                None => self.qps[qp].post_recv(rest),
            };
            count += posted(result, rest.len());
            // A queue pair is in ERR a moment before its requests are flushed.
            if !self.fails(qp) || !are_missing(wanted, count) {
                return Outcome::Count(count);
            }
            self.pause();
        }
    }

    fn change(&mut self, qp: usize, change: Change) -> Outcome {
        let attrs = match change {
            Change::Bare(state) => vec![(qp, QpAttr::new().state(state))],
            Change::To(state) => vec![(qp, self.attr(qp, state))],
            Change::Reconnect => {
                let both = self.dialect.lacks(Omission::OneSidedResets);
                let qps = &[qp, qp ^ 1][..1 + usize::from(both)];
                let states = [QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS];
                let this = &*self;
                let attr = |state| qps.iter().map(move |&qp| (qp, this.attr(qp, state)));
                states.into_iter().flat_map(attr).collect()
            }
        };
        let obeys = |(qp, attr): &(usize, _)| self.qps[*qp].modify(attr).is_ok();
        Outcome::Obeyed(attrs.iter().map(obeys).collect())
    }

    /// Deregisters a region after resetting the queue pairs of its end, because the result of a request whose memory is
    /// deregistered is undefined. False if the region was deregistered before.
    fn deregister(&mut self, end: usize, region: Region) -> bool {
        let both = self.dialect.lacks(Omission::OneSidedResets);
        let its = |qp: &usize| both || qp % 2 == end;
        let qps: Vec<usize> = (0..self.qps.len()).filter(its).collect();
        for qp in &qps {
            self.qps[*qp]
                .modify(&QpAttr::new().state(QpState::RESET))
                .expect("any state goes to RESET");
        }
        let was_there = self.ends[end].deregister(region);
        for qp in qps {
            self.change(qp, Change::Reconnect);
        }
        was_there
    }

    /// Resizes a completion queue to `capacity`, and back.
    fn resize(&mut self, cq: usize, capacity: u32) -> bool {
        let cq = self.cq(cq);
        cq.resize(capacity).is_ok() && cq.resize(CQE).is_ok()
    }

    fn poll(&mut self, cq: usize, capacity: usize, wanted: Wanted) -> Result<usize, PollError> {
        // The order of completions of different queue pairs is undefined.
        let shared = self.shape.pairs > 1 || !self.shape.separate_cqs;
        let (most, mut count) = (if shared { usize::MAX } else { capacity }, 0);
        loop {
            let taken = self.take(cq, capacity.min(most - count).min(CHUNK))?;
            count += taken;
            if count == most || taken == 0 && !are_missing(wanted, count) {
                return Ok(count);
            }
            if taken == 0 {
                self.pause();
            }
        }
    }

    /// Polls the queue once.
    fn take(&mut self, cq: usize, capacity: usize) -> Result<usize, PollError> {
        let mut out = vec![Wc::default(); capacity];
        let count = self.cq(cq).poll_into(&mut out)?;
        for wc in &out[..count] {
            let datagram = self.shape.qp_type == QpType::UD;
            let done = Done::new(wc, |number| self.index_of(number), datagram, self.dialect);
            self.completed[done.queue()].push(done);
        }
        Ok(count)
    }

    fn fails(&self, qp: usize) -> bool {
        self.qps[qp].state() == QpState::ERR
    }

    fn index_of(&self, number: u32) -> Option<usize> {
        self.qps.iter().position(|qp| qp.number() == number)
    }

    fn cq(&mut self, cq: usize) -> &mut D::Cq {
        let cqs = &mut self.ends[cq / 2].cqs;
        let last = cqs.len() - 1;
        &mut cqs[(cq % 2).min(last)]
    }
}

fn posted(result: Result<(), PostError>, all: usize) -> usize {
    result.map_or_else(|error| error.posted, |()| all)
}
