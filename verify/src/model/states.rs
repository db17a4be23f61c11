//! The states of a queue pair and what may be changed when: Q1. The table is that of `ibv_modify_qp(3)`,
//! for each type of queue pair, with the optional attributes as Linux has them (`qp_state_table`).

use cq_core::setup::QpType;

use super::memory::access_is_known;
use super::world::{Id, Qp, World};
use crate::device::{Attr, Refusal, State};

bitflags::bitflags! {
    /// Which attributes are given: `enum ibv_qp_attr_mask` without IBV_QP_STATE.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Given: u32 {
        const CUR_STATE = 1;
        const EN_SQD_ASYNC_NOTIFY = 1 << 1;
        const ACCESS_FLAGS = 1 << 2;
        const PKEY_INDEX = 1 << 3;
        const PORT = 1 << 4;
        const AV = 1 << 5;
        const PATH_MTU = 1 << 6;
        const DEST_QPN = 1 << 7;
        const RQ_PSN = 1 << 8;
        const SQ_PSN = 1 << 9;
        const MAX_DEST_RD_ATOMIC = 1 << 10;
        const MAX_QP_RD_ATOMIC = 1 << 11;
        const MIN_RNR_TIMER = 1 << 12;
        const TIMEOUT = 1 << 13;
        const RETRY_CNT = 1 << 14;
        const RNR_RETRY = 1 << 15;
        const QKEY = 1 << 16;
    }
}

impl Given {
    fn of(attr: &Attr) -> Self {
        let given = [
            (attr.cur_state.is_some(), Self::CUR_STATE),
            (attr.sqd_async_notify.is_some(), Self::EN_SQD_ASYNC_NOTIFY),
            (attr.access.is_some(), Self::ACCESS_FLAGS),
            (attr.pkey_index.is_some(), Self::PKEY_INDEX),
            (attr.port.is_some(), Self::PORT),
            (attr.av.is_some(), Self::AV),
            (attr.path_mtu.is_some(), Self::PATH_MTU),
            (attr.dest_qp_num.is_some(), Self::DEST_QPN),
            (attr.rq_psn.is_some(), Self::RQ_PSN),
            (attr.sq_psn.is_some(), Self::SQ_PSN),
            (attr.max_dest_rd_atomic.is_some(), Self::MAX_DEST_RD_ATOMIC),
            (attr.max_rd_atomic.is_some(), Self::MAX_QP_RD_ATOMIC),
            (attr.min_rnr_timer.is_some(), Self::MIN_RNR_TIMER),
            (attr.timeout.is_some(), Self::TIMEOUT),
            (attr.retry_cnt.is_some(), Self::RETRY_CNT),
            (attr.rnr_retry.is_some(), Self::RNR_RETRY),
            (attr.qkey.is_some(), Self::QKEY),
        ];
        given.iter().filter(|(is, _)| *is).map(|(_, flag)| *flag).collect()
    }
}

/// The lists of attributes that come together, for each type of queue pair.
impl Given {
    /// Who may do what here.
    const fn rights(kind: QpType) -> Self {
        match kind {
            QpType::Rc | QpType::Uc => Self::ACCESS_FLAGS,
            QpType::Ud => Self::QKEY,
        }
    }

    const fn init(kind: QpType) -> Self {
        Self::PKEY_INDEX.union(Self::PORT).union(Self::rights(kind))
    }

    /// What a peer sends.
    const fn rtr(kind: QpType) -> Self {
        let peer = Self::AV.union(Self::PATH_MTU).union(Self::DEST_QPN).union(Self::RQ_PSN);
        match kind {
            QpType::Rc => peer.union(Self::MAX_DEST_RD_ATOMIC).union(Self::MIN_RNR_TIMER),
            QpType::Uc => peer,
            QpType::Ud => Self::empty(),
        }
    }

    /// How this side sends.
    const fn rts(kind: QpType) -> Self {
        match kind {
            QpType::Rc => Self::SQ_PSN.union(Self::PATIENCE).union(Self::MAX_QP_RD_ATOMIC),
            QpType::Uc | QpType::Ud => Self::SQ_PSN,
        }
    }

    const PATIENCE: Self = Self::TIMEOUT.union(Self::RETRY_CNT).union(Self::RNR_RETRY);

    /// While requests may come in.
    const fn running(kind: QpType) -> Self {
        let all = Self::CUR_STATE.union(Self::rights(kind));
        match kind {
            QpType::Rc => all.union(Self::MIN_RNR_TIMER),
            QpType::Uc | QpType::Ud => all,
        }
    }

    /// While no request goes out.
    const fn drained(kind: QpType) -> Self {
        let all = Self::PKEY_INDEX.union(Self::rights(kind));
        match kind {
            QpType::Rc => all
                .union(Self::AV)
                .union(Self::PORT)
                .union(Self::PATIENCE)
                .union(Self::MAX_QP_RD_ATOMIC)
                .union(Self::MAX_DEST_RD_ATOMIC)
                .union(Self::MIN_RNR_TIMER),
            QpType::Uc => all.union(Self::AV),
            QpType::Ud => all,
        }
    }
}

/// Q1: the attributes that a change must and may come with; `None` where there is no such change. A
/// change to the state that the queue pair is in changes attributes only.
fn attributes(kind: QpType, from: State, to: State) -> Option<(Given, Given)> {
    use State::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    const NONE: Given = Given::empty();
    Some(match (from, to) {
        (_, Reset) => (NONE, NONE),
        // The manual page has any state; Linux refuses it, since nothing can be flushed yet.
        (Reset, Err) => return None,
        (_, Err) => (NONE, NONE),
        (Reset, Init) => (Given::init(kind), NONE),
        (Init, Init) => (NONE, Given::init(kind)),
        (Init, Rtr) => (Given::rtr(kind), Given::PKEY_INDEX | Given::rights(kind)),
        (Rtr, Rts) => (Given::rts(kind), Given::running(kind)),
        (Rts | Sqd, Rts) => (NONE, Given::running(kind)),
        (Rts, Sqd) => (NONE, Given::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Sqd) => (NONE, Given::drained(kind)),
        // A reliable connection goes to ERR where others go to SQE, so that it never is there.
        (Sqe, Rts) => (NONE, Given::running(kind)),
        _ => return None,
    })
}

/// What there is of one port with one partition, and the width of the fields in the packet.
fn in_range(attr: &Attr, max_rd_atomic: u8) -> bool {
    let number = |value: Option<u32>| value.is_none_or(|value| value <= 0xff_ffff);
    let at_most = |value: Option<u8>, most: u8| value.is_none_or(|value| value <= most);
    attr.access.is_none_or(access_is_known)
        && attr.pkey_index.is_none_or(|index| index == 0)
        && attr.port.is_none_or(|port| port == 1)
        && attr.av.is_none_or(|port| port == 1)
        && attr.path_mtu.is_none_or(|mtu| [256, 512, 1024, 2048, 4096].contains(&mtu))
        && number(attr.dest_qp_num)
        && number(attr.rq_psn)
        && number(attr.sq_psn)
        && at_most(attr.max_dest_rd_atomic, max_rd_atomic)
        && at_most(attr.max_rd_atomic, max_rd_atomic)
        && at_most(attr.min_rnr_timer, 31)
        && at_most(attr.timeout, 31)
        && at_most(attr.retry_cnt, 7)
        && at_most(attr.rnr_retry, 7)
}

impl World {
    /// Changes a queue pair; where anything is wrong with the change, nothing of it happens (Q1).
    pub fn modify(&mut self, number: Id, attr: &Attr, max_rd_atomic: u8) -> Result<(), Refusal> {
        let qp = self.qps.get_mut(&number).expect("its handle is alive");
        let to = attr.state.unwrap_or(qp.state);
        let (required, optional) = attributes(qp.kind, qp.state, to).ok_or(Refusal::Invalid)?;
        let given = Given::of(attr);
        let complete = given.contains(required) && (required | optional).contains(given);
        let assumed = attr.cur_state.is_none_or(|state| state == qp.state);
        if !complete || !assumed || !in_range(attr, max_rd_atomic) {
            return Err(Refusal::Invalid);
        }
        match to {
            State::Reset => {
                qp.reset();
                self.unbind_all(number);
            }
            State::Err => self.break_qp(number),
            _ => {
                qp.report_drained = to == State::Sqd && attr.sqd_async_notify == Some(true)
                    || to == qp.state && qp.report_drained;
                qp.state = to;
                merge(&mut qp.attr, attr);
            }
        }
        self.settle();
        Ok(())
    }
}

impl Qp {
    /// Q2: RESET forgets what is outstanding, in silence, and every attribute. Completions that are in
    /// their queue already stay there. All slots are free (Q5).
    fn reset(&mut self) {
        self.state = State::Reset;
        self.attr = Attr::default();
        self.sends.clear();
        self.receives.clear();
        self.sends_retired = self.sends_posted;
        self.wait = None;
        self.report_drained = false;
    }

    /// Whether requests of the peer are carried out here.
    pub fn answers(&self) -> bool {
        matches!(self.state, State::Rtr | State::Rts | State::Sqd | State::Sqe)
    }
}

/// Takes over what is given.
fn merge(into: &mut Attr, attr: &Attr) {
    into.access = attr.access.or(into.access);
    into.dest_qp_num = attr.dest_qp_num.or(into.dest_qp_num);
    into.max_dest_rd_atomic = attr.max_dest_rd_atomic.or(into.max_dest_rd_atomic);
    into.max_rd_atomic = attr.max_rd_atomic.or(into.max_rd_atomic);
    into.min_rnr_timer = attr.min_rnr_timer.or(into.min_rnr_timer);
    into.timeout = attr.timeout.or(into.timeout);
    into.retry_cnt = attr.retry_cnt.or(into.retry_cnt);
    into.qkey = attr.qkey.or(into.qkey);
    into.rnr_retry = attr.rnr_retry.or(into.rnr_retry);
}
