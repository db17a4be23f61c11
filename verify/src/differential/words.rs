//! Translates the names of a program to the keys, addresses and numbers of a device.

use std::time::Duration;

use cq_verbs::wr::{RemoteAddr, SendOp, Sge, WindowBind};

use super::end::names;
use super::machine::{Machine, QKEY};
use super::program::*;
use crate::device::{AckTimeout, Device, Mr, Qp, QpAttr, QpState, QpType, RnrTimer, attr};

impl<D: Device> Machine<D> {
    pub fn sges(&self, qp: usize, request: &Request) -> Vec<Sge> {
        match &request.data {
            Data::Sges(sges) => sges.iter().map(|sge| self.sge(qp % 2, sge)).collect(),
            Data::Inline(_) => Vec::new(),
        }
    }

    pub fn sge(&self, end: usize, sge: &NamedSge) -> Sge {
        let (base, lkey, _) = self.region(end, sge.region);
        Sge { addr: base.wrapping_add(sge.offset), length: sge.length, lkey }
    }

    fn remote(&self, qp: usize, place: Place) -> RemoteAddr {
        let (base, _, rkey) = self.region((qp % 2) ^ 1, place.region);
        RemoteAddr { addr: base.wrapping_add(place.offset), rkey }
    }

    /// The address, local key and remote key of a region that `end` names.
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
        let (end, peer) = (&self.ends[qp % 2], &self.ends[(qp % 2) ^ 1]);
        let remote = |place| self.remote(qp, place);
        match op {
            Op::Send { imm } => SendOp::Send { imm },
            Op::SendInvalidate { key } => SendOp::SendInvalidate { rkey: peer.key(key) },
            Op::Write { to, imm } => SendOp::Write { remote: remote(to), imm },
            Op::Read { from } => SendOp::Read { remote: remote(from) },
            Op::CompareSwap { at, compare, swap } => {
                SendOp::CompareSwap { remote: remote(at), compare, swap }
            }
            Op::FetchAdd { at, add } => SendOp::FetchAdd { remote: remote(at), add },
            Op::AtomicWrite { to } => SendOp::AtomicWrite { remote: remote(to) },
            Op::Flush { at, length, placement, selectivity } => {
                SendOp::Flush { remote: remote(at), length, placement, selectivity }
            }
            Op::Bind { key, on, access } => {
                let Sge { addr, length, lkey } = self.sge(qp % 2, &on);
                let (window, rkey, length) = (end.key(0), end.key(key), length.into());
                SendOp::BindWindow(WindowBind { window, rkey, lkey, addr, length, access })
            }
            Op::LocalInvalidate { key } => SendOp::LocalInvalidate { rkey: end.key(key) },
        }
    }

    /// The attributes of a transition to this state, by the settings of the end.
    pub fn attr(&self, qp: usize, state: QpState) -> QpAttr {
        let shape = &self.shape.ends[qp % 2];
        let Shape { qp_type, impatient, .. } = self.shape;
        match state {
            QpState::INIT => attr::init_as(qp_type, shape.rights, QKEY),
            QpState::RTR if qp_type == QpType::UD => QpAttr::new().state(state),
            QpState::RTR => attr::rtr(self.qps[qp ^ 1].number())
                .max_dest_rd_atomic(shape.max_dest_rd_atomic)
                .min_rnr_timer(RnrTimer::from_number(1).unwrap())
                .for_type(qp_type),
            QpState::RTS if self.qps[qp].state() == QpState::SQE => QpAttr::new().state(state),
            QpState::RTS => attr::rts()
                .max_rd_atomic(shape.max_rd_atomic)
                .timeout(if impatient {
                    AckTimeout::at_least(Duration::ZERO)
                } else {
                    AckTimeout::UNLIMITED
                })
                .retry_cnt(1)
                .rnr_retry(match (shape.waits_for_receives, impatient) {
                    (false, _) => 0,
                    (true, true) => 2,
                    (true, false) => 7,
                })
                .for_type(qp_type),
            QpState::SQD => QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true),
            _ => QpAttr::new().state(state),
        }
    }
}
