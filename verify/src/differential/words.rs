//! What the names of a program stand for on a device: keys, addresses and numbers.

use cq_core::wr::{RemoteAddr, SendOp, Sge, WindowBind};

use super::end::names;
use super::machine::{Machine, QKEY};
use super::program::*;
use crate::device::{Device, Mr, Qp, QpAttr, QpState, QpType, attr};

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
    pub fn attr(&self, qp: usize, state: QpState) -> QpAttr {
        let shape = &self.shape.ends[qp % 2];
        let Shape { qp_type, impatient, .. } = self.shape;
        match state {
            QpState::INIT => attr::init_as(qp_type, shape.rights, QKEY),
            QpState::RTR if qp_type != QpType::Rc => {
                attr::rtr_as(qp_type, self.qps[qp ^ 1].number())
            }
            QpState::RTS if self.qps[qp].state() == QpState::SQE => QpAttr::to(state),
            QpState::RTS if qp_type != QpType::Rc => attr::rts_as(qp_type),
            QpState::RTR => QpAttr {
                max_dest_rd_atomic: Some(shape.max_dest_rd_atomic),
                min_rnr_timer: Some(1),
                ..attr::rtr(self.qps[qp ^ 1].number())
            },
            QpState::RTS => attr::rts()
                .max_rd_atomic(shape.max_rd_atomic)
                .timeout(u8::from(impatient))
                .retry_cnt(1)
                .rnr_retry(match (shape.waits_for_receives, impatient) {
                    (false, _) => 0,
                    (true, true) => 2,
                    (true, false) => 7,
                }),
            QpState::SQD => QpAttr::to(QpState::SQD).en_sqd_async_notify(true),
            _ => QpAttr::to(state),
        }
    }
}
