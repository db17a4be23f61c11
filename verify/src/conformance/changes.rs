//! The table of transitions for each type of queue pair, with the required and the optional attributes, by
//! `ibv_modify_qp(3)` and Linux' table; and trying transitions by it.

use cq_verbs::setup::QpAttrMask as Mask;

use super::stand::*;

/// The states that can be requested. SQE is tested in `local_errors`.
const REACHED: [QpState; 6] =
    [QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS, QpState::SQD, QpState::ERR];

/// Every attribute of [`QpAttr`] but the state.
fn every() -> Mask {
    good(QpState::RTS, 0).mask().difference(Mask::STATE)
}

/// The attributes that a transition requires, and those that it allows.
fn rule(qp_type: QpType, from: QpState, to: QpState) -> Option<(Mask, Mask)> {
    let none = Mask::empty();
    let path = Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN;
    Some(match (from, to) {
        (_, QpState::RESET) => (none, none),
        (QpState::RESET, QpState::ERR) => return None,
        (_, QpState::ERR) => (none, none),
        (QpState::RTS, QpState::SQD) => (none, Mask::EN_SQD_ASYNC_NOTIFY),
        (QpState::RESET, QpState::INIT) => (initial(qp_type), none),
        (QpState::INIT, QpState::INIT) => (none, initial(qp_type)),
        (QpState::INIT, QpState::RTR) => match qp_type {
            QpType::RC => (
                path | Mask::MAX_DEST_RD_ATOMIC | Mask::MIN_RNR_TIMER,
                Mask::ACCESS_FLAGS | Mask::PKEY_INDEX,
            ),
            QpType::UC => (path, Mask::ACCESS_FLAGS | Mask::PKEY_INDEX),
            _ => (none, Mask::PKEY_INDEX | Mask::QKEY),
        },
        (QpState::RTR, QpState::RTS) => match qp_type {
            QpType::RC => (RETRIES | Mask::SQ_PSN | Mask::MAX_QP_RD_ATOMIC, running(qp_type)),
            _ => (Mask::SQ_PSN, running(qp_type)),
        },
        (QpState::RTS | QpState::SQD, QpState::RTS) => (none, running(qp_type)),
        (QpState::SQD, QpState::SQD) => (none, drained(qp_type)),
        _ => return None,
    })
}

const RETRIES: Mask = Mask::TIMEOUT.union(Mask::RETRY_CNT).union(Mask::RNR_RETRY);

/// What RESET→INIT requires.
fn initial(qp_type: QpType) -> Mask {
    let rights = if qp_type == QpType::UD { Mask::QKEY } else { Mask::ACCESS_FLAGS };
    Mask::PKEY_INDEX | Mask::PORT | rights
}

/// What a transition to RTS allows.
fn running(qp_type: QpType) -> Mask {
    match qp_type {
        QpType::RC => Mask::CUR_STATE | Mask::ACCESS_FLAGS | Mask::MIN_RNR_TIMER,
        QpType::UC => Mask::CUR_STATE | Mask::ACCESS_FLAGS,
        _ => Mask::CUR_STATE | Mask::QKEY,
    }
}

/// What can be changed in SQD.
fn drained(qp_type: QpType) -> Mask {
    let connected = Mask::AV | Mask::ACCESS_FLAGS | Mask::PKEY_INDEX;
    match qp_type {
        QpType::RC => {
            let limits = Mask::MAX_QP_RD_ATOMIC | Mask::MAX_DEST_RD_ATOMIC | Mask::MIN_RNR_TIMER;
            connected | Mask::PORT | RETRIES | limits
        }
        QpType::UC => connected,
        _ => Mask::PKEY_INDEX | Mask::QKEY,
    }
}

/// All attributes, with values that are valid everywhere.
fn good(from: QpState, peer: u32) -> QpAttr {
    attr::rts()
        .or(attr::rtr(peer))
        .or(attr::init(Access::EVERY))
        .cur_state(from)
        .en_sqd_async_notify(true)
        .qkey(QKEY)
}

/// A transition with these attributes.
fn change(from: QpState, to: QpState, peer: u32, given: Mask) -> QpAttr {
    good(from, peer).without(Mask::all().difference(given)).state(to)
}

/// Tries transitions on queue pairs of a type.
pub struct Tries<D: Device> {
    qp_type: QpType,
    /// The peer that the queue pairs are connected to.
    peer: End<D>,
}

impl<D: Device> Tries<D> {
    /// On queue pairs of this type.
    pub fn of(qp_type: QpType) -> Self {
        Self { qp_type, peer: End::far(&Plan::of(qp_type)) }
    }

    /// Tries a transition of a queue pair in `from`; a refused one must leave the state unchanged.
    #[track_caller]
    fn change(&self, from: QpState, to: QpState, given: Mask, wanted: bool) {
        let mut end = End::<D>::near(&Plan::of(self.qp_type));
        let peer = self.peer.qp.number();
        end.bring_to(from, peer);
        let said = end.qp.modify(&change(from, to, peer, given));
        let refused = Err(Errno::EINVAL);
        assert_eq!(said, if wanted { Ok(()) } else { refused }, "{from} to {to} with {given}");
        let state = if wanted { to } else { from };
        assert_eq!(end.qp.state(), state, "after {from} to {to} with {given}");
    }

    /// Every legal transition, with its required and optional attributes.
    fn legal(&self) -> Vec<(QpState, QpState, Mask, Mask)> {
        let pairs =
            REACHED.into_iter().flat_map(|from| QpState::KNOWN.iter().map(move |&to| (from, to)));
        let legal = pairs.filter_map(|(from, to)| {
            rule(self.qp_type, from, to).map(|(needs, may)| (from, to, needs, may))
        });
        legal.collect()
    }

    /// Every legal transition succeeds with the required attributes.
    #[track_caller]
    pub fn what_it_needs(&self) {
        for (from, to, needs, _) in self.legal() {
            self.change(from, to, needs, true);
        }
    }

    /// Every other transition is refused, with any attributes.
    #[track_caller]
    pub fn no_other(&self) {
        for from in REACHED {
            for &to in QpState::KNOWN {
                if rule(self.qp_type, from, to).is_none() {
                    self.change(from, to, Mask::empty(), false);
                    self.change(from, to, initial(self.qp_type), false);
                    self.change(from, to, every(), false);
                }
            }
        }
    }

    /// A transition without one of the required attributes is refused.
    #[track_caller]
    pub fn one_left_out(&self) {
        for (from, to, needs, _) in self.legal() {
            for missing in needs.iter() {
                self.change(from, to, needs.difference(missing), false);
            }
        }
    }

    /// A transition with an attribute that is neither required nor optional is refused.
    #[track_caller]
    pub fn one_too_many(&self) {
        for (from, to, needs, may) in self.legal() {
            for superfluous in every().difference(needs | may).iter() {
                self.change(from, to, needs | superfluous, false);
            }
        }
    }

    /// Every legal transition succeeds with each optional attribute, and with all of them.
    #[track_caller]
    pub fn what_it_may_bring(&self) {
        for (from, to, needs, may) in self.legal() {
            for optional in may.iter() {
                self.change(from, to, needs | optional, true);
            }
            self.change(from, to, needs | may, true);
        }
    }
}
