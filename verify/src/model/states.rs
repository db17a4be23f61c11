//! The states of a queue pair: Q1, Q2. The table of transitions is cq-core's; the suite has one of its own to judge
//! it by.

use super::memory::access_is_known;
use super::world::{Id, LIMITS, Qp, World};
use crate::device::{Errno, QpAttr, QpState};

/// Whether the device has what the attributes name: one port with one partition, and so many READs and atomics.
fn is_there(attr: &QpAttr) -> bool {
    let at_most = |value: Option<u8>| value.is_none_or(|value| value <= LIMITS.max_rd_atomic);
    attr.access.is_none_or(access_is_known)
        && attr.pkey_index.is_none_or(|index| index == 0)
        && attr.port.is_none_or(|port| port == 1)
        && attr.av.is_none_or(|av| av.port == 1)
        && at_most(attr.max_dest_rd_atomic)
        && at_most(attr.max_rd_atomic)
}

impl World {
    /// Changes a queue pair; an illegal or incomplete change changes nothing (Q1).
    pub fn modify(&mut self, number: Id, attr: &QpAttr) -> Result<(), Errno> {
        let qp = self.qps.get_mut(&number).expect("its handle is alive");
        let to = attr.check(qp.state, qp.kind).map_err(|_| Errno::EINVAL)?;
        if !is_there(attr) {
            return Err(Errno::EINVAL);
        }
        match to {
            QpState::RESET => {
                qp.reset();
                self.unbind(|bound| bound.qp == number);
            }
            QpState::ERR => self.break_qp(number),
            _ => {
                qp.report_drained = to == QpState::SQD && attr.en_sqd_async_notify == Some(true)
                    || to == qp.state && qp.report_drained;
                qp.state = to;
                qp.attr = attr.or(qp.attr);
            }
        }
        self.settle();
        Ok(())
    }
}

impl Qp {
    /// Q2: RESET discards outstanding requests, without completions, and every attribute. Completions that are
    /// queued already stay. All slots are free (Q5).
    fn reset(&mut self) {
        self.state = QpState::RESET;
        self.attr = QpAttr::default();
        self.sends.clear();
        self.receives.clear();
        self.sends_retired = self.sends_posted;
        self.wait = None;
        self.report_drained = false;
    }

    /// Whether requests of the peer are executed.
    pub fn answers(&self) -> bool {
        matches!(self.state, QpState::RTR | QpState::RTS | QpState::SQD | QpState::SQE)
    }
}
