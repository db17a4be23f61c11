//! What the names of a program stand for on a device: keys, addresses and numbers.

use cq_core::wr::{RemoteAddr, SendOp, Sge, WindowBind};

use super::end::names;
use super::machine::{Machine, QKEY};
use super::program::*;
use crate::device::{Attr, Device, Mr, Qp, QpType, State};

impl<D: Device> Machine<D> {
    pub fn sges(&self, qp: usize, request: &Request) -> Vec<Sge> {
        match &request.data {
            Data::Pieces(pieces) => pieces.iter().map(|piece| self.sge(qp % 2, piece)).collect(),
            Data::Inline(_) => Vec::new(),
        }
    }

    pub fn sge(&self, end: usize, piece: &Piece) -> Sge {
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
            // Windows have no local key.
            Region::Window(nth) => {
                let key = self.ends[end].key(nth);
                (self.ends[end].main.addr(), key, key)
            }
        }
    }

    pub fn op(&self, qp: usize, op: Op) -> SendOp {
        match op {
            Op::Send { imm } => SendOp::Send { imm },
            Op::SendInvalidate { key } => {
                SendOp::SendInvalidate { rkey: self.ends[(qp % 2) ^ 1].key(key) }
            }
            Op::Write { to, imm } => SendOp::Write { remote: self.remote(qp, to), imm },
            Op::Read { from } => SendOp::Read { remote: self.remote(qp, from) },
            Op::CompareSwap { at, compare, swap } => {
                SendOp::CompareSwap { remote: self.remote(qp, at), compare, swap }
            }
            Op::FetchAdd { at, add } => SendOp::FetchAdd { remote: self.remote(qp, at), add },
            Op::AtomicWrite { to } => SendOp::AtomicWrite { remote: self.remote(qp, to) },
            Op::Flush { at, length, placement, selectivity } => {
                SendOp::Flush { remote: self.remote(qp, at), length, placement, selectivity }
            }
            Op::Bind { key, on, access } => {
                let end = &self.ends[qp % 2];
                let Sge { addr, length, lkey } = self.sge(qp % 2, &on);
                SendOp::BindWindow(WindowBind {
                    window: end.key(0),
                    rkey: end.key(key),
                    lkey,
                    addr,
                    length: length.into(),
                    access,
                })
            }
            Op::LocalInvalidate { key } => {
                SendOp::LocalInvalidate { rkey: self.ends[qp % 2].key(key) }
            }
        }
    }

    /// What a queue pair needs for this state, as its end has it.
    pub fn attr(&self, qp: usize, state: State) -> Attr {
        let shape = &self.shape.ends[qp % 2];
        let Shape { qp_type, impatient, .. } = self.shape;
        match state {
            State::Init => Attr::init_as(qp_type, shape.rights, QKEY),
            State::Rtr if qp_type != QpType::Rc => Attr::rtr_as(qp_type, self.qps[qp ^ 1].number()),
            State::Rts if self.qps[qp].state() == State::Sqe => Attr::to(state),
            State::Rts if qp_type != QpType::Rc => Attr::rts_as(qp_type),
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
}
