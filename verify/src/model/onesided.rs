//! Remote memory access (Q6): WRITE, READ, atomics, FLUSH.

use cq_core::wc::WcOpcode;
use cq_verbs::wr::{Placement, RemoteAddr, Selectivity, SendOp};

use super::execute::{Done, Execution, Stop};
use super::failures::Fault;
use super::memory::Place;
use super::time::Why;
use super::world::{Bytes, Id, Request, World};
use crate::device::Access;

impl World {
    /// RDMA WRITE. Q7: the local key is checked before the remote one, and so is the receive that immediate data consumes.
    pub fn rdma_write(&mut self, from: Id, request: &Request, remote: RemoteAddr) -> Execution {
        let with_imm = matches!(request.op, SendOp::Write { imm: Some(_), .. });
        let bytes = self.local_bytes(from, request)?;
        let to = self.allowing_peer(from, Access::REMOTE_WRITE)?;
        if with_imm && self.next_receive(to).is_none() {
            return Err(Stop::Wait(Why::NoReceive));
        }
        if !bytes.is_empty() {
            let place = self.remote(to, remote, bytes.len() as u64, Access::REMOTE_WRITE);
            let fault = if with_imm { Fault::RemoteMemoryWithImm } else { Fault::RemoteMemory };
            self.write(&[place.ok_or(Stop::Fault(fault))?], &bytes);
        }
        if with_imm {
            // The SGEs of the receive are neither checked nor used. C7: the bytes written.
            self.arrived(to, request, WcOpcode::RECV_RDMA_WITH_IMM, bytes.len() as u32);
        }
        Ok(Done::default())
    }

    /// RDMA READ. Q7: the remote key is checked before the local one.
    pub fn rdma_read(&mut self, from: Id, request: &Request, remote: RemoteAddr) -> Execution {
        let len = request.len();
        let to = self.reading_peer(from, Access::REMOTE_READ)?;
        if len > 0 {
            let place = self.remote(to, remote, len, Access::REMOTE_READ);
            let (key, range) = place.ok_or(Stop::Fault(Fault::RemoteMemory))?;
            let answer = self.answer_places(from, request)?;
            let bytes = self.regions[&key].bytes[range].to_vec();
            self.write(&answer, &bytes);
        }
        Ok(Done { byte_len: len as u32, ..Done::default() })
    }

    /// COMP_SWAP and FETCH_ADD: they return the previous value, in this machine's byte order.
    pub fn atomic(&mut self, from: Id, request: &Request, remote: RemoteAddr) -> Execution {
        if request.len() != 8 {
            return Err(Stop::Fault(Fault::LocalLength));
        }
        let to = self.reading_peer(from, Access::REMOTE_ATOMIC)?;
        let (key, range) = self.word(to, remote, Access::REMOTE_ATOMIC)?;
        let held = &self.regions[&key].bytes[range.clone()];
        let old = u64::from_ne_bytes(held.try_into().expect("eight bytes"));
        let new = match request.op {
            SendOp::CompareSwap { compare, swap, .. } if old == compare => swap,
            SendOp::FetchAdd { add, .. } => old.wrapping_add(add),
            _ => old,
        };
        self.write(&[(key, range)], &new.to_ne_bytes());
        let answer = self.answer_places(from, request)?;
        self.write(&answer, &old.to_ne_bytes());
        Ok(Done { byte_len: 8, ..Done::default() })
    }

    /// ATOMIC_WRITE: an atomic WRITE of eight bytes. It does not count for `max_rd_atomic`.
    pub fn atomic_write(&mut self, from: Id, request: &Request, remote: RemoteAddr) -> Execution {
        if request.len() != 8 {
            return Err(Stop::Fault(Fault::LocalLength));
        }
        let bytes = self.local_bytes(from, request)?;
        let to = self.allowing_peer(from, Access::REMOTE_WRITE)?;
        let place = self.word(to, remote, Access::REMOTE_WRITE)?;
        self.write(&[place], &bytes);
        Ok(Done::default())
    }

    /// FLUSH: everything earlier is visible already, so only the rights are checked. For zero bytes no key
    /// is checked; for a whole region, neither address nor length.
    pub fn rdma_flush(&self, from: Id, op: SendOp) -> Execution {
        let SendOp::Flush { remote, length, placement, selectivity } = op else {
            unreachable!("it is a FLUSH");
        };
        let right = rights(placement);
        let to = self.allowing_peer(from, right)?;
        let good = match selectivity {
            Selectivity::Region => self.key_allows(to, remote.rkey, right),
            Selectivity::Range if length == 0 => true,
            Selectivity::Range => self.remote(to, remote, length.into(), right).is_some(),
        };
        if good { Ok(Done::default()) } else { Err(Stop::Fault(Fault::RemoteMemory)) }
    }

    /// Eight bytes of the peer's memory. Q7: alignment is checked before the key.
    fn word(&self, to: Id, remote: RemoteAddr, right: Access) -> Result<Place, Stop> {
        if !remote.addr.is_multiple_of(8) {
            return Err(Stop::Fault(Fault::RemoteRefusal));
        }
        self.remote(to, remote, 8, right).ok_or(Stop::Fault(Fault::RemoteMemory))
    }

    /// Q7: `max_dest_rd_atomic` 0 allows no READ and no atomic.
    fn reading_peer(&self, number: Id, right: Access) -> Result<Id, Stop> {
        let to = self.allowing_peer(number, right)?;
        match self.qps[&to].attr.max_dest_rd_atomic {
            Some(0) | None => Err(Stop::Fault(Fault::RemoteRefusal)),
            Some(_) => Ok(to),
        }
    }

    /// The places of the peer's answer: the request's SGEs.
    fn answer_places(&self, number: Id, request: &Request) -> Result<Vec<Place>, Stop> {
        let Bytes::Sges(sges) = &request.data else {
            unreachable!("posting refuses inline results");
        };
        let pd = self.qps[&number].pd;
        let places = self.places(pd, sges, request.len(), Access::LOCAL_WRITE);
        places.ok_or(Stop::Fault(Fault::LocalMemory))
    }
}

/// The rights that a FLUSH with this placement needs.
fn rights(placement: Placement) -> Access {
    let mut rights = Access::empty();
    rights.set(Access::FLUSH_GLOBAL, placement.contains(Placement::GLOBAL));
    rights.set(Access::FLUSH_PERSISTENT, placement.contains(Placement::PERSISTENT));
    rights
}
