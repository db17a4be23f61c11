//! Carrying requests out: Q6 and, where something is wrong, Q7.
//!
//! Requests of a send queue are carried out one after the other (C10), each as a whole: nothing happens
//! in between, so that a WRITE is there before any later SEND arrives (Q8), an atomic is atomic, and a
//! FENCE has nothing to wait for. A request that fails changes no memory.

use cq_core::wc::{Wc, WcOpcode, WcStatus};
use cq_core::wr::RemoteAddr;

use super::failures::Fault;
use super::memory::Place;
use super::time::Why;
use super::world::{Bytes, Id, Op, Request, World};
use crate::device::{Access, State};

/// Why a request was not carried out.
#[derive(Debug)]
enum Stop {
    /// It can't go on now.
    Wait(Why),
    /// It failed.
    Fault(Fault),
}

/// What the completion of a request says besides the fields that are always valid.
pub struct Done {
    pub opcode: WcOpcode,
    /// C7: for READ and atomics.
    pub byte_len: u32,
}

impl World {
    /// Lets everything happen that can happen without time going by.
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

    /// Tries the oldest request of a send queue; false if nothing came of it.
    fn step(&mut self, number: Id) -> bool {
        let qp = &self.qps[&number];
        // Q1: in SQD what was begun is ended, and nothing is begun.
        let sends = qp.state == State::Rts || qp.state == State::Sqd && qp.wait.is_some();
        let Some(request) = qp.sends.front().filter(|_| sends).cloned() else {
            return false;
        };
        let result = match self.carry_out(number, &request) {
            Ok(done) => Ok(done),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Wait(why)) => match self.wait_for(number, why) {
                Ok(()) => return false,
                Err(fault) => Err(fault),
            },
        };
        match result {
            Ok(done) => self.succeed(number, &request, &done),
            Err(fault) => self.fail(number, fault),
        }
        true
    }

    fn carry_out(&mut self, number: Id, request: &Request) -> Result<Done, Stop> {
        match request.op {
            Op::Send { imm } => self.send(number, request, imm),
            Op::Write { remote } => self.rdma_write(number, request, remote),
            Op::Read { remote } => self.rdma_read(number, request, remote),
            Op::CompareSwap { remote, compare, swap } => {
                let change = |old| if old == compare { swap } else { old };
                self.atomic(number, request, remote, WcOpcode::COMP_SWAP, change)
            }
            Op::FetchAdd { remote, add } => {
                let change = |old: u64| old.wrapping_add(add);
                self.atomic(number, request, remote, WcOpcode::FETCH_ADD, change)
            }
        }
    }

    /// Q6: SEND goes into the oldest receive of the peer.
    fn send(&mut self, from: Id, request: &Request, imm: Option<[u8; 4]>) -> Result<Done, Stop> {
        let bytes = self.local_bytes(from, request)?;
        let to = self.peer(from)?;
        let qp = &self.qps[&to];
        let receive = qp.receives.front().ok_or(Stop::Wait(Why::NoReceive))?;
        let room: u64 = receive.pieces.iter().map(|piece| u64::from(piece.length)).sum();
        if room < bytes.len() as u64 {
            return Err(Stop::Fault(Fault::ReceiveTooSmall));
        }
        let places = self.targets(qp.pd, &receive.pieces, bytes.len() as u64);
        let places = places.ok_or(Stop::Fault(Fault::ReceiveMemory))?;
        let done = Wc::new(receive.wr_id, WcStatus::SUCCESS, to).with_opcode(WcOpcode::RECV);
        // C7: without the immediate. C5.
        let done = done.with_byte_len(bytes.len() as u32);
        let done = imm.map_or(done, |imm| done.with_imm(imm));

        self.write(&places, &bytes);
        self.receive_done(to, done, request.solicited);
        Ok(Done { opcode: WcOpcode::SEND, byte_len: 0 })
    }

    /// Q6: RDMA WRITE. Q7: the local key is judged before the remote one.
    fn rdma_write(
        &mut self,
        from: Id,
        request: &Request,
        remote: RemoteAddr,
    ) -> Result<Done, Stop> {
        let bytes = self.local_bytes(from, request)?;
        let to = self.allowing_peer(from, Access::REMOTE_WRITE)?;
        if !bytes.is_empty() {
            let pd = self.qps[&to].pd;
            let place = self.remote(pd, remote, bytes.len() as u64, Access::REMOTE_WRITE);
            let place = place.ok_or(Stop::Fault(Fault::RemoteMemory))?;
            self.write(&[place], &bytes);
        }
        Ok(Done { opcode: WcOpcode::RDMA_WRITE, byte_len: 0 })
    }

    /// Q6: RDMA READ. Q7: the remote key is judged before the local one.
    fn rdma_read(&mut self, from: Id, request: &Request, remote: RemoteAddr) -> Result<Done, Stop> {
        let len = request.len();
        let to = self.reading_peer(from, Access::REMOTE_READ)?;
        if len > 0 {
            let place = self.remote(self.qps[&to].pd, remote, len, Access::REMOTE_READ);
            let (key, range) = place.ok_or(Stop::Fault(Fault::RemoteMemory))?;
            let answer = self.answer_places(from, request)?;
            let bytes = self.regions[&key].bytes[range].to_vec();
            self.write(&answer, &bytes);
        }
        Ok(Done { opcode: WcOpcode::RDMA_READ, byte_len: len as u32 })
    }

    /// Q6: COMP_SWAP and FETCH_ADD: what was there before is the answer, in this machine's byte order.
    fn atomic(
        &mut self,
        from: Id,
        request: &Request,
        remote: RemoteAddr,
        opcode: WcOpcode,
        change: impl Fn(u64) -> u64,
    ) -> Result<Done, Stop> {
        if request.len() != 8 {
            return Err(Stop::Fault(Fault::LocalLength));
        }
        let to = self.reading_peer(from, Access::REMOTE_ATOMIC)?;
        // Q7: misaligned, whatever the keys.
        if !remote.addr.is_multiple_of(8) {
            return Err(Stop::Fault(Fault::RemoteRefusal));
        }
        let place = self.remote(self.qps[&to].pd, remote, 8, Access::REMOTE_ATOMIC);
        let (key, range) = place.ok_or(Stop::Fault(Fault::RemoteMemory))?;
        let held = &self.regions[&key].bytes[range.clone()];
        let old = u64::from_ne_bytes(held.try_into().expect("eight bytes"));
        let answer = self.answer_places(from, request)?;
        self.write(&[(key, range)], &change(old).to_ne_bytes());
        self.write(&answer, &old.to_ne_bytes());
        Ok(Done { opcode, byte_len: 8 })
    }

    /// The bytes that the request sends.
    fn local_bytes(&self, number: Id, request: &Request) -> Result<Vec<u8>, Stop> {
        match &request.data {
            Bytes::Pieces(pieces) => {
                let bytes = self.gather(self.qps[&number].pd, pieces);
                bytes.ok_or(Stop::Fault(Fault::LocalMemory))
            }
            Bytes::Inline(bytes) => Ok(bytes.clone()),
        }
    }

    /// Q7: a peer answers if it exists, is ready to receive, and is connected to the requester.
    fn peer(&self, number: Id) -> Result<Id, Stop> {
        let to = self.qps[&number].attr.dest_qp_num.unwrap_or_default();
        match self.qps.get(&to) {
            None => Err(Stop::Wait(Why::Gone)),
            Some(peer) if peer.answers() && peer.attr.dest_qp_num == Some(number) => Ok(to),
            Some(_) => Err(Stop::Wait(Why::NotReady)),
        }
    }

    /// Q7: the right of the queue pair is judged before any key, and for no bytes too.
    fn allowing_peer(&self, number: Id, right: Access) -> Result<Id, Stop> {
        let to = self.peer(number)?;
        if self.qps[&to].attr.access.unwrap_or_default().contains(right) {
            Ok(to)
        } else {
            Err(Stop::Fault(Fault::RemoteRefusal))
        }
    }

    /// Q7: `max_dest_rd_atomic` 0 allows no READ and no atomic.
    fn reading_peer(&self, number: Id, right: Access) -> Result<Id, Stop> {
        let to = self.allowing_peer(number, right)?;
        match self.qps[&to].attr.max_dest_rd_atomic {
            Some(0) | None => Err(Stop::Fault(Fault::RemoteRefusal)),
            Some(_) => Ok(to),
        }
    }

    /// Where the peer's answer goes: the request's own pieces.
    fn answer_places(&self, number: Id, request: &Request) -> Result<Vec<Place>, Stop> {
        let Bytes::Pieces(pieces) = &request.data else {
            unreachable!("posting refuses inline results");
        };
        let places = self.targets(self.qps[&number].pd, pieces, request.len());
        places.ok_or(Stop::Fault(Fault::LocalMemory))
    }
}

impl Request {
    /// How many bytes it moves.
    fn len(&self) -> u64 {
        match &self.data {
            Bytes::Pieces(pieces) => pieces.iter().map(|piece| u64::from(piece.length)).sum(),
            Bytes::Inline(bytes) => bytes.len() as u64,
        }
    }
}
