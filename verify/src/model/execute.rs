//! Executing requests: the order of checks (Q7), and messages that consume a receive (Q6).
//!
//! Requests of a send queue are executed one after the other (C10), each as a whole. So a WRITE is visible before any
//! later SEND completes (Q8), an atomic is atomic, and FENCE and FLUSH have nothing to wait for. A request that fails changes no memory.

use cq_core::wc::{Wc, WcOpcode, WcStatus};
use cq_verbs::setup::QpType;
use cq_verbs::wr::{SendOp, Sge};

use super::failures::Fault;
use super::time::Why;
use super::world::{Bytes, Id, Request, World};
use crate::device::{Access, QpState};

/// Why a request was not executed.
#[derive(Debug)]
pub enum Stop {
    /// It has to wait.
    Wait(Why),
    /// It failed.
    Fault(Fault),
}

/// The result of an executed request.
#[derive(Debug, Default)]
pub struct Done {
    /// C7: for READ and atomics.
    pub byte_len: u32,
    /// The queue pair whose receive failed, though the request did not.
    pub breaks: Option<Id>,
}

/// What came of trying a request.
pub type Execution = Result<Done, Stop>;

impl World {
    /// Executes everything that can be without advancing the clock.
    pub fn settle(&mut self) {
        loop {
            let numbers: Vec<Id> = self.qps.keys().copied().collect();
            let steps = numbers.iter().filter(|number| self.step(**number)).count();
            let broken = self.break_for_overruns();
            if steps == 0 && !broken {
                break;
            }
        }
        self.report_drained();
    }

    /// Tries the oldest request of a send queue; false if it did not complete.
    fn step(&mut self, number: Id) -> bool {
        let qp = &self.qps[&number];
        // Q1: in SQD started requests complete, and none is started.
        let sends = qp.state == QpState::RTS || qp.state == QpState::SQD && qp.wait.is_some();
        let Some(request) = qp.sends.front().filter(|_| sends).cloned() else {
            return false;
        };
        let answered = qp.kind == QpType::RC;
        let result = match self.carry_out(number, &request) {
            Ok(done) => Ok(done),
            Err(stop) if !answered => self.unanswered(number, &request, stop),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Wait(why)) => match self.wait_for(number, why) {
                Ok(()) => return false,
                Err(fault) => Err(fault),
            },
        };
        match result {
            Ok(done) => {
                self.succeed(number, &request, &done);
                if let Some(broken) = done.breaks {
                    self.break_qp(broken);
                }
            }
            Err(fault) => self.fail(number, fault),
        }
        true
    }

    fn carry_out(&mut self, number: Id, request: &Request) -> Execution {
        match request.op {
            SendOp::Send { .. } if self.qps[&number].kind == QpType::UD => {
                self.datagram(number, request)
            }
            SendOp::Send { .. } => self.send(number, request, None),
            SendOp::SendInvalidate { rkey } => self.send(number, request, Some(rkey)),
            SendOp::Write { remote, .. } => self.rdma_write(number, request, remote),
            SendOp::Read { remote } => self.rdma_read(number, request, remote),
            SendOp::CompareSwap { remote, .. } | SendOp::FetchAdd { remote, .. } => {
                self.atomic(number, request, remote)
            }
            SendOp::AtomicWrite { remote } => self.atomic_write(number, request, remote),
            SendOp::Flush { .. } => self.rdma_flush(number, request.op),
            SendOp::BindWindow(bind) => self.bind(number, &bind),
            SendOp::LocalInvalidate { rkey } => self.local_invalidate(number, rkey),
            _ => unreachable!("posting refuses what there is not"),
        }
    }

    /// Q7 without acknowledgements, for UC and UD: the requester sees local errors, the receiver that its receive is bad,
    /// and nobody any other error. There is no waiting.
    fn unanswered(&mut self, number: Id, request: &Request, stop: Stop) -> Result<Done, Fault> {
        let status = match stop {
            Stop::Fault(fault @ (Fault::LocalMemory | Fault::LocalLength | Fault::Window)) => {
                return Err(fault);
            }
            Stop::Fault(Fault::ReceiveTooSmall) => WcStatus::LOC_LEN_ERR,
            Stop::Fault(Fault::ReceiveMemory) => WcStatus::LOC_PROT_ERR,
            _ => return Ok(Done::default()),
        };
        let peer = self.qps[&number].attr.dest_qp_num;
        let to = request.target.map(|target| target.qp_num).or(peer).expect("it had a receive");
        self.receive_fails(to, status);
        Ok(Done { breaks: Some(to), ..Done::default() })
    }

    /// Q6: SEND uses the next receive of the peer, and may invalidate the key of one of its windows.
    fn send(&mut self, from: Id, request: &Request, inv: Option<u32>) -> Execution {
        let bytes = self.local_bytes(from, request)?;
        let to = self.peer(from)?;
        let places = self.landing(to, bytes.len() as u64)?;
        self.write(&places, &bytes);
        if inv.is_some_and(|rkey| !self.invalidate(to, rkey)) {
            self.receive_fails(to, WcStatus::REM_INV_REQ_ERR);
            return Ok(Done { breaks: Some(to), ..Done::default() });
        }
        self.arrived(to, request, WcOpcode::RECV, bytes.len() as u32);
        Ok(Done::default())
    }

    /// The message of this request consumes the next receive, which completes. C7: without the immediate data.
    pub fn arrived(&mut self, to: Id, request: &Request, opcode: WcOpcode, byte_len: u32) {
        let receive = self.take_receive(to);
        let done = Wc::new(receive.wr_id, WcStatus::SUCCESS, to).with_opcode(opcode);
        self.receive_done(to, request.with_imm(done.with_byte_len(byte_len)), request.solicited);
    }

    /// The bytes that the request sends.
    pub fn local_bytes(&self, number: Id, request: &Request) -> Result<Vec<u8>, Stop> {
        match &request.data {
            Bytes::Sges(sges) => self.gather(self.qps[&number].pd, sges),
            Bytes::Inline(bytes) => Ok(bytes.clone()),
        }
    }

    /// Q7: a peer answers if it exists, is of the same type, is ready to receive, and is connected to the
    /// requester.
    pub fn peer(&self, number: Id) -> Result<Id, Stop> {
        let qp = &self.qps[&number];
        let to = qp.attr.dest_qp_num.unwrap_or_default();
        let Some(peer) = self.qps.get(&to) else {
            return Err(Stop::Wait(Why::Gone));
        };
        let connected = peer.kind == qp.kind && peer.attr.dest_qp_num == Some(number);
        if connected && peer.answers() { Ok(to) } else { Err(Stop::Wait(Why::NotReady)) }
    }

    /// Q7: the rights of the queue pair are checked before any key, also for zero bytes.
    pub fn allowing_peer(&self, number: Id, right: Access) -> Result<Id, Stop> {
        let to = self.peer(number)?;
        let allows = self.qps[&to].attr.access.unwrap_or_default().contains(right);
        if allows { Ok(to) } else { Err(Stop::Fault(Fault::RemoteRefusal)) }
    }
}

/// How many bytes SGEs have.
pub fn length(sges: &[Sge]) -> u64 {
    sges.iter().map(|sge| u64::from(sge.length)).sum()
}

impl Request {
    /// How many bytes it moves.
    pub fn len(&self) -> u64 {
        match &self.data {
            Bytes::Sges(sges) => length(sges),
            Bytes::Inline(bytes) => bytes.len() as u64,
        }
    }

    /// C5: the completion of the receive that this message consumes.
    pub fn with_imm(&self, done: Wc) -> Wc {
        match self.op {
            SendOp::Send { imm: Some(imm) } | SendOp::Write { imm: Some(imm), .. } => {
                done.with_imm(imm)
            }
            SendOp::SendInvalidate { rkey } => done.with_invalidated_rkey(rkey),
            _ => done,
        }
    }
}
