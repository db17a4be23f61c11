//! Attributes of queue pairs: `struct ibv_qp_attr` and what the device has for it, both ways.

use std::mem::offset_of;

use cq_verbs::setup::{Access, AckTimeout, Mtu, QpAttr, QpAttrMask, QpState, RnrTimer};

use crate::ah;
use crate::cq;
use crate::errno::Errno;
use crate::port;
use crate::qp::{PAIRS, Pair, caps_to_c};
use crate::raw::{In, Out, Slot};
use crate::sys::*;

/// Where a queue pair is for C, and its state.
const QP: usize = offset_of!(ibv_qp_ex_and_flush, qp.qp_base);
const STATE: usize = QP + offset_of!(ibv_qp, state);

/// What the device has no attribute for.
const ABSENT: QpAttrMask = QpAttrMask::ALT_PATH
    .union(QpAttrMask::PATH_MIG_STATE)
    .union(QpAttrMask::CAP)
    .union(QpAttrMask::RATE_LIMIT);

/// `ibv_modify_qp(3)`. EINVAL: no such change, attributes missing, too many, unknown or out of range; nothing was
/// changed (Q1). EOPNOTSUPP: capacities, another path, a rate. EBUSY: the peer's process is suspended in the middle
/// of a message.
pub fn modify_qp(qp: *const ibv_qp, attr: In<'_, ibv_qp_attr>, mask: c_int) -> Result<(), Errno> {
    let attr = attr.given()?;
    let slot = PAIRS.find(qp)?;
    let mask = QpAttrMask::from_bits(mask.cast_unsigned()).ok_or(Errno::INVAL)?;
    modify(slot, attr, mask)
}

/// Does what `ibv_modify_qp` does, with its errors.
pub fn modify(slot: &Slot<Pair>, attr: &ibv_qp_attr, mask: QpAttrMask) -> Result<(), Errno> {
    let wanted = of_c(attr, mask)?;
    let state = slot.with(|pair| {
        let modified = pair.qp.modify(&wanted);
        let state = pair.qp.state()?;
        slot.store(STATE, state.0);
        modified?;
        if state == QpState::RESET {
            pair.path = ibv_ah_attr::ZEROED;
        } else if mask.contains(QpAttrMask::AV) {
            pair.path = attr.ah_attr;
        }
        Ok::<_, Errno>(state)
    })??;
    if wanted.state == Some(QpState::RTR) && state == QpState::RTR {
        let qp_num = slot.load(QP + offset_of!(ibv_qp, qp_num));
        for at in [offset_of!(ibv_qp, send_cq), offset_of!(ibv_qp, recv_cq)] {
            cq::tell_demand(slot.load::<*mut ibv_cq>(QP + at), qp_num);
        }
    }
    Ok(())
}

/// The attributes that C gives, as the device has them.
fn of_c(attr: &ibv_qp_attr, mask: QpAttrMask) -> Result<QpAttr, Errno> {
    if mask.intersects(ABSENT) {
        return Err(Errno::OPNOTSUPP);
    }
    mask.iter().try_fold(QpAttr::new(), |all, flag| one_of_c(all, attr, flag))
}

/// One more of them.
fn one_of_c(all: QpAttr, attr: &ibv_qp_attr, flag: QpAttrMask) -> Result<QpAttr, Errno> {
    Ok(match flag {
        QpAttrMask::STATE => all.state(state_of_c(attr.qp_state)?),
        QpAttrMask::CUR_STATE => all.cur_state(state_of_c(attr.cur_qp_state)?),
        QpAttrMask::EN_SQD_ASYNC_NOTIFY => all.en_sqd_async_notify(attr.en_sqd_async_notify != 0),
        QpAttrMask::ACCESS_FLAGS => all.access(Access::from_bits_retain(attr.qp_access_flags)),
        QpAttrMask::PKEY_INDEX => all.pkey_index(attr.pkey_index),
        QpAttrMask::PORT => all.port(attr.port_num),
        QpAttrMask::QKEY => all.qkey(attr.qkey),
        QpAttrMask::AV => all.av(ah::address(&attr.ah_attr)),
        QpAttrMask::PATH_MTU => all.path_mtu(Mtu::from_number(attr.path_mtu).ok_or(Errno::INVAL)?),
        QpAttrMask::TIMEOUT => all.timeout(ack_timeout(attr.timeout)?),
        QpAttrMask::RETRY_CNT => all.retry_cnt(attr.retry_cnt),
        QpAttrMask::RNR_RETRY => all.rnr_retry(attr.rnr_retry),
        QpAttrMask::RQ_PSN => all.rq_psn(attr.rq_psn),
        QpAttrMask::MAX_QP_RD_ATOMIC => all.max_rd_atomic(attr.max_rd_atomic),
        QpAttrMask::MIN_RNR_TIMER => {
            all.min_rnr_timer(RnrTimer::from_number(attr.min_rnr_timer).ok_or(Errno::INVAL)?)
        }
        QpAttrMask::SQ_PSN => all.sq_psn(attr.sq_psn),
        QpAttrMask::MAX_DEST_RD_ATOMIC => all.max_dest_rd_atomic(attr.max_dest_rd_atomic),
        QpAttrMask::DEST_QPN => all.dest_qp_num(attr.dest_qp_num),
        _ => return Err(Errno::INVAL),
    })
}

/// A local ACK timeout. EINVAL: it has more than five bits.
pub fn ack_timeout(number: u8) -> Result<AckTimeout, Errno> {
    AckTimeout::from_number(number).ok_or(Errno::INVAL)
}

fn state_of_c(number: ibv_qp_state) -> Result<QpState, Errno> {
    Some(QpState(number)).filter(|state| QpState::KNOWN.contains(state)).ok_or(Errno::INVAL)
}

/// What a queue pair was given, and its state, for C: whatever it was not given is as [`put`] has it.
fn to_c(pair: &Pair) -> Result<ibv_qp_attr, Errno> {
    let given = pair.qp.attributes()?;
    let mut attr = ibv_qp_attr { cap: caps_to_c(pair.qp.caps()), ..ibv_qp_attr::ZEROED };
    put(&given, &mut attr);
    attr.cur_qp_state = attr.qp_state;
    attr.path_mig_state = IBV_MIG_MIGRATED;
    attr.port_num = port::PORT;
    attr.ah_attr = pair.path;
    Ok(attr)
}

/// Writes attributes where C has them; those that are not there become 0, or the first enumerator where C has no 0, as
/// with Soft-RoCE; the capacities stay.
pub fn put(given: &QpAttr, attr: &mut ibv_qp_attr) {
    *attr = ibv_qp_attr {
        qp_state: given.state.unwrap_or(QpState::RESET).0,
        pkey_index: given.pkey_index.unwrap_or_default(),
        port_num: given.port.unwrap_or_default(),
        ah_attr: given.av.as_ref().map_or(ibv_ah_attr::ZEROED, ah::attr),
        path_mtu: given.path_mtu.map_or(IBV_MTU_256, Mtu::number),
        qkey: given.qkey.unwrap_or_default(),
        rq_psn: given.rq_psn.unwrap_or_default(),
        sq_psn: given.sq_psn.unwrap_or_default(),
        dest_qp_num: given.dest_qp_num.unwrap_or_default(),
        qp_access_flags: given.access.unwrap_or_default().bits(),
        max_rd_atomic: given.max_rd_atomic.unwrap_or_default(),
        max_dest_rd_atomic: given.max_dest_rd_atomic.unwrap_or_default(),
        min_rnr_timer: given.min_rnr_timer.map_or(0, RnrTimer::number),
        timeout: given.timeout.map_or(0, AckTimeout::number),
        retry_cnt: given.retry_cnt.unwrap_or_default(),
        rnr_retry: given.rnr_retry.unwrap_or_default(),
        cap: attr.cap,
        ..ibv_qp_attr::ZEROED
    };
}

/// `ibv_query_qp(3)`: everything, whatever is asked for.
pub fn query_qp(
    qp: *const ibv_qp,
    attr: Out<'_, ibv_qp_attr>,
    _attr_mask: c_int,
    init_attr: Out<'_, ibv_qp_init_attr>,
) -> Result<(), Errno> {
    let slot = PAIRS.find(qp)?;
    let (found, init) = slot.with(|pair| {
        let attr = to_c(pair)?;
        slot.store(STATE, attr.qp_state);
        let init = ibv_qp_init_attr {
            qp_context: slot.load(QP + offset_of!(ibv_qp, qp_context)),
            send_cq: slot.load(QP + offset_of!(ibv_qp, send_cq)),
            recv_cq: slot.load(QP + offset_of!(ibv_qp, recv_cq)),
            srq: slot.load(QP + offset_of!(ibv_qp, srq)),
            cap: attr.cap,
            qp_type: slot.load(QP + offset_of!(ibv_qp, qp_type)),
            sq_sig_all: pair.sq_sig_all.into(),
        };
        Ok::<_, Errno>((attr, init))
    })??;
    attr.put(found)?;
    init_attr.put(init)
}

#[cfg(test)]
mod tests;
