//! Validation for queue pairs: capacities when one is made, changes of state (Q1), sends when they are posted (Q4).

use cq_verbs::post::WrError;
use cq_verbs::setup::{
    AddressError, AddressVector, ModifyError, QpAttr, QpAttrMask, QpCaps, QpState, QpType,
};
use cq_verbs::wr::{Data, Placement, RecvWr, SendOp, SendWr};
use rustix::io::Errno;

use crate::api::ah;
use crate::api::attr::{self, MAX_RD_ATOMIC};
use crate::api::qp::QueuePair;
use crate::engine::port;
use crate::engine::ring::{MAX_INLINE, MAX_MSG_SIZE, MAX_QP_WR, WireOp};
use crate::engine::ud_address::UdAddress;
use crate::error::{CreateError, LimitKind};
use crate::memory::sge::MAX_SGE;
use crate::policy::strict::Strict;
use crate::sync;

/// Checks capacities against the device's limits.
pub fn check(caps: &QpCaps) -> Result<(), CreateError> {
    let limits = [
        (LimitKind::SendWr, caps.max_send_wr, MAX_QP_WR),
        (LimitKind::RecvWr, caps.max_recv_wr, MAX_QP_WR),
        (LimitKind::SendSge, caps.max_send_sge, MAX_SGE as u32),
        (LimitKind::RecvSge, caps.max_recv_sge, MAX_SGE as u32),
        (LimitKind::Inline, caps.max_inline, MAX_INLINE),
    ];
    match limits.into_iter().find(|&(_, asked, max)| asked > max) {
        Some((what, asked, max)) => Err(CreateError::TooMany { what, asked, max }),
        None => Ok(()),
    }
}

/// Whether queue pairs of a type support an operation.
#[inline]
const fn carries(qp_type: QpType, op: &SendOp) -> bool {
    match qp_type {
        QpType::RC => true,
        QpType::UC => matches!(
            op,
            SendOp::Send { .. }
                | SendOp::SendInvalidate { .. }
                | SendOp::Write { .. }
                | SendOp::BindWindow(_)
                | SendOp::LocalInvalidate { .. }
        ),
        _ => matches!(op, SendOp::Send { .. }),
    }
}

/// Checks that a FLUSH has a placement, and only known bits in it.
#[cold]
fn check_placement(op: &SendOp) -> Result<(), WrError> {
    match op {
        SendOp::Flush { placement, .. }
            if placement.is_empty() || !Placement::all().contains(*placement) =>
        {
            Err(WrError::BadPlacement)
        }
        _ => Ok(()),
    }
}

/// Checks an atomic as Soft-RoCE does: it is aligned, and not too short.
#[cold]
fn check_atomic(op: &SendOp, data: &Data<'_>) -> Result<(), WrError> {
    match op {
        SendOp::CompareSwap { remote, .. } | SendOp::FetchAdd { remote, .. }
            if data.len() < 8 || !remote.addr.is_multiple_of(8) =>
        {
            Err(WrError::Device(Errno::INVAL.raw_os_error()))
        }
        _ => Ok(()),
    }
}

/// Validates a change of a queue pair in state `is` as Soft-RoCE does: it trusts the caller's current state and
/// truncates values. Returns the new state.
pub fn check_believing(attr: &QpAttr, is: QpState, of: QpType) -> Result<QpState, ModifyError> {
    const BITS24: u32 = (1 << 24) - 1;
    const RETRIES: u8 = 7;
    let mut judged = *attr;
    judged.rq_psn = attr.rq_psn.map(|psn| psn & BITS24);
    judged.sq_psn = attr.sq_psn.map(|psn| psn & BITS24);
    judged.retry_cnt = attr.retry_cnt.map(|count| count.min(RETRIES));
    judged.rnr_retry = attr.rnr_retry.map(|count| count.min(RETRIES));
    judged.max_dest_rd_atomic = attr.max_dest_rd_atomic.map(|max| max.min(MAX_RD_ATOMIC));
    let from = attr.cur_state.unwrap_or(is);
    let to = attr::check(&judged, from, of)?;
    let superfluous = attr.mask().intersection(QpAttrMask::AV);
    if (from, to, of) == (QpState::SQD, QpState::SQD, QpType::UC) && !superfluous.is_empty() {
        return Err(ModifyError::Superfluous { from, to, superfluous });
    }
    Ok(if attr.state.is_some() { to } else { is })
}

/// Checks the path to a peer: that it begins at the port; on a strict device that it ends there, too.
fn check_path(path: &AddressVector, there: &port::Port, strict: Strict) -> Result<(), ModifyError> {
    let judged = if strict.is_on() {
        ah::check(path, there).map(drop)
    } else {
        ah::check_source(path, there)
    };
    judged.map_err(|error| {
        let (value, allowed) = match error {
            AddressError::NoSuchGid { index } => {
                (index.into(), "the source of a path is the index of a GID of the port")
            }
            AddressError::NoRoute => (path.lid.into(), "on Ethernet a path has a global route"),
            AddressError::OtherNetwork { index, .. } => {
                (index.into(), "the GIDs of a path are two of IPv4, or two of IPv6")
            }
            _ => (
                path.lid.into(),
                "on a strict device the LID and the GID of a path are those of the fabric's port",
            ),
        };
        ModifyError::BadValue { attr: QpAttrMask::AV, value, allowed }
    })
}

impl QueuePair {
    /// Validates a change from this state. Returns the new state.
    pub(super) fn validate_change(
        &self,
        attr: &QpAttr,
        from: QpState,
    ) -> Result<QpState, ModifyError> {
        let to = if self.behavior.believes_attributes {
            check_believing(attr, from, self.qp_type)?
        } else {
            attr::check(attr, from, self.qp_type)?
        };
        let engine = self.claimed.queue.engine;
        if let Some(path) = attr.av {
            check_path(&path, engine.current_port()?, engine.policy.strict)?;
        }
        Ok(to)
    }

    /// Validates a send. Returns the operation and data to write to the queue.
    #[inline]
    pub(super) fn validate_send<'w>(
        &self,
        wr: &SendWr<'w>,
        way: Option<&UdAddress>,
    ) -> Result<(WireOp, Data<'w>), WrError> {
        let mut op = WireOp::of(&wr.op).ok_or(WrError::Unsupported)?;
        if self.qp_type != QpType::RC {
            op = self.validate_unreliable(&wr.op, op, way)?;
        }
        if !wr.op.carries_data() {
            check_placement(&wr.op)?;
            return Ok((op, Data::Sges(&[])));
        }
        let returns_data = wr.op.returns_data();
        match wr.data {
            Data::Sges(sges) if sges.len() > self.caps.max_send_sge as usize => {
                return Err(WrError::TooManySges { max: self.caps.max_send_sge });
            }
            Data::Inline(_) if returns_data => return Err(WrError::InlineResult),
            Data::Inline(bytes) if bytes.len() > self.caps.max_inline as usize => {
                return Err(WrError::InlineTooLong { max: self.caps.max_inline });
            }
            data if data.len() > MAX_MSG_SIZE => {
                return Err(WrError::TooLong { max: MAX_MSG_SIZE });
            }
            _ => {}
        }
        if self.behavior.checks_atomics {
            check_atomic(&wr.op, &wr.data)?;
        }
        if returns_data && sync::load(&self.claimed.queue.slot.max_rd_atomic) == 0 {
            return Err(WrError::NoReadAtomic);
        }
        Ok((op, wr.data))
    }

    /// Validates a receive.
    #[inline]
    pub(super) fn validate_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        if self.has_srq {
            return Err(WrError::SharedReceives);
        }
        if wr.sges.len() > self.caps.max_recv_sge as usize {
            return Err(WrError::TooManySges { max: self.caps.max_recv_sge });
        }
        Ok(())
    }

    /// Validates an operation of an unreliable type. Returns the operation to write to the queue.
    #[inline(never)]
    fn validate_unreliable(
        &self,
        op: &SendOp,
        wired: WireOp,
        way: Option<&UdAddress>,
    ) -> Result<WireOp, WrError> {
        match way {
            _ if !carries(self.qp_type, op) => Err(WrError::Unsupported),
            Some(way) => Ok(wired.along(way)),
            None if self.qp_type == QpType::UD => Err(WrError::NoDestination),
            None => Ok(wired),
        }
    }
}

#[cfg(test)]
mod tests;
