//! The table of state changes, for each type of queue pair: what a change needs and what it may bring, by
//! `ibv_modify_qp(3)` and Linux' table; and trying changes by it.

use super::stand::*;

/// An attribute: its name, and how to take it over from another set.
type Attribute = (&'static str, fn(&mut Attr, &Attr));

/// Every attribute but the state.
const ATTRIBUTES: [Attribute; 17] = [
    ("cur_state", |to, from| to.cur_state = from.cur_state),
    ("sqd_async_notify", |to, from| to.sqd_async_notify = from.sqd_async_notify),
    ("access", |to, from| to.access = from.access),
    ("pkey_index", |to, from| to.pkey_index = from.pkey_index),
    ("port", |to, from| to.port = from.port),
    ("qkey", |to, from| to.qkey = from.qkey),
    ("av", |to, from| to.av = from.av),
    ("path_mtu", |to, from| to.path_mtu = from.path_mtu),
    ("dest_qp_num", |to, from| to.dest_qp_num = from.dest_qp_num),
    ("rq_psn", |to, from| to.rq_psn = from.rq_psn),
    ("sq_psn", |to, from| to.sq_psn = from.sq_psn),
    ("max_dest_rd_atomic", |to, from| to.max_dest_rd_atomic = from.max_dest_rd_atomic),
    ("max_rd_atomic", |to, from| to.max_rd_atomic = from.max_rd_atomic),
    ("min_rnr_timer", |to, from| to.min_rnr_timer = from.min_rnr_timer),
    ("timeout", |to, from| to.timeout = from.timeout),
    ("retry_cnt", |to, from| to.retry_cnt = from.retry_cnt),
    ("rnr_retry", |to, from| to.rnr_retry = from.rnr_retry),
];

/// The states that attributes lead to; SQE is another chapter's.
const REACHED: [State; 6] =
    [State::Reset, State::Init, State::Rtr, State::Rts, State::Sqd, State::Err];

/// Names of attributes.
type Names = &'static [&'static str];

/// What a change needs and what it may bring.
fn rule(qp_type: QpType, from: State, to: State) -> Option<(Names, Names)> {
    use State::{Err, Init, Reset, Rtr, Rts, Sqd};
    Some(match (from, to) {
        (_, Reset) => (&[], &[]),
        (Reset, Err) => return None,
        (_, Err) => (&[], &[]),
        (Rts, Sqd) => (&[], &["sqd_async_notify"]),
        (Reset, Init) => (initial(qp_type), &[]),
        (Init, Init) => (&[], initial(qp_type)),
        (Init, Rtr) => match qp_type {
            QpType::Rc => (
                &["av", "path_mtu", "dest_qp_num", "rq_psn", "max_dest_rd_atomic", "min_rnr_timer"],
                &["access", "pkey_index"],
            ),
            QpType::Uc => (&["av", "path_mtu", "dest_qp_num", "rq_psn"], &["access", "pkey_index"]),
            QpType::Ud => (&[], &["pkey_index", "qkey"]),
        },
        (Rtr, Rts) => match qp_type {
            QpType::Rc => (
                &["timeout", "retry_cnt", "rnr_retry", "sq_psn", "max_rd_atomic"],
                running(qp_type),
            ),
            _ => (&["sq_psn"], running(qp_type)),
        },
        (Rts, Rts) | (Sqd, Rts) => (&[], running(qp_type)),
        (Sqd, Sqd) => (&[], drained(qp_type)),
        _ => return None,
    })
}

/// What RESET→INIT needs.
const fn initial(qp_type: QpType) -> Names {
    match qp_type {
        QpType::Ud => &["pkey_index", "port", "qkey"],
        _ => &["pkey_index", "port", "access"],
    }
}

/// What going to RTS may bring.
const fn running(qp_type: QpType) -> Names {
    match qp_type {
        QpType::Rc => &["cur_state", "access", "min_rnr_timer"],
        QpType::Uc => &["cur_state", "access"],
        QpType::Ud => &["cur_state", "qkey"],
    }
}

/// What can be changed in SQD.
const fn drained(qp_type: QpType) -> Names {
    match qp_type {
        QpType::Rc => &[
            "pkey_index",
            "port",
            "av",
            "timeout",
            "retry_cnt",
            "rnr_retry",
            "max_rd_atomic",
            "max_dest_rd_atomic",
            "min_rnr_timer",
            "access",
        ],
        QpType::Uc => &["av", "access", "pkey_index"],
        QpType::Ud => &["pkey_index", "qkey"],
    }
}

/// A change with these attributes, of values that are good everywhere.
fn change(from: State, to: State, peer: u32, names: &[&str]) -> Attr {
    let good = Attr {
        cur_state: Some(from),
        sqd_async_notify: Some(true),
        access: Some(Access::EVERY),
        pkey_index: Some(0),
        port: Some(1),
        qkey: Some(QKEY),
        ..Attr::rtr(peer)
    };
    let rts = Attr::rts();
    let good = Attr {
        sq_psn: rts.sq_psn,
        max_rd_atomic: rts.max_rd_atomic,
        timeout: rts.timeout,
        retry_cnt: rts.retry_cnt,
        rnr_retry: rts.rnr_retry,
        ..good
    };
    let mut attr = Attr::to(to);
    for (_, take) in ATTRIBUTES.iter().filter(|(name, _)| names.contains(name)) {
        take(&mut attr, &good);
    }
    attr
}

/// Who tries changes on queue pairs of a type.
pub struct Tries<D: Device> {
    qp_type: QpType,
    /// Who the queue pairs are connected to.
    peer: End<D>,
}

impl<D: Device> Tries<D> {
    /// On queue pairs of this type.
    pub fn of(qp_type: QpType) -> Self {
        Self { qp_type, peer: End::far(&Plan::of(qp_type)) }
    }

    /// Tries a change on a queue pair in `from`; where it is refused the state must be the old one.
    #[track_caller]
    fn change(&self, from: State, to: State, names: &[&str], wanted: bool) {
        let mut end = End::<D>::near(&Plan::of(self.qp_type));
        let peer = self.peer.qp.number();
        end.bring_to(from, peer);
        let said = end.qp.modify(&change(from, to, peer, names));
        let refused = Err(Refusal::Invalid);
        assert_eq!(
            said,
            if wanted { Ok(()) } else { refused },
            "{from:?} to {to:?} with {names:?}"
        );
        let state = if wanted { to } else { from };
        assert_eq!(end.qp.state(), state, "after {from:?} to {to:?} with {names:?}");
    }

    /// Each legal change, with what it needs and what it may bring.
    fn legal(&self) -> Vec<(State, State, Names, Names)> {
        let pairs = REACHED.into_iter().flat_map(|from| State::ALL.map(|to| (from, to)));
        let legal = pairs.filter_map(|(from, to)| {
            rule(self.qp_type, from, to).map(|(needs, may)| (from, to, needs, may))
        });
        legal.collect()
    }

    /// Every change is made with what it needs.
    #[track_caller]
    pub fn what_it_needs(&self) {
        for (from, to, needs, _) in self.legal() {
            self.change(from, to, needs, true);
        }
    }

    /// No other change is made, whatever it brings.
    #[track_caller]
    pub fn no_other(&self) {
        let everything = ATTRIBUTES.map(|(name, _)| name);
        for from in REACHED {
            for to in State::ALL {
                if rule(self.qp_type, from, to).is_none() {
                    self.change(from, to, &[], false);
                    self.change(from, to, initial(self.qp_type), false);
                    self.change(from, to, &everything, false);
                }
            }
        }
    }

    /// No change is made without one of what it needs.
    #[track_caller]
    pub fn one_left_out(&self) {
        for (from, to, needs, _) in self.legal() {
            for missing in needs {
                let rest: Vec<_> = needs.iter().copied().filter(|name| name != missing).collect();
                self.change(from, to, &rest, false);
            }
        }
    }

    /// No change is made with one that it may not bring.
    #[track_caller]
    pub fn one_too_many(&self) {
        for (from, to, needs, may) in self.legal() {
            for (name, _) in ATTRIBUTES {
                if !needs.contains(&name) && !may.contains(&name) {
                    self.change(from, to, &[needs, &[name]].concat(), false);
                }
            }
        }
    }

    /// Every change is made with each of what it may bring, and with all of it.
    #[track_caller]
    pub fn what_it_may_bring(&self) {
        for (from, to, needs, may) in self.legal() {
            for name in may {
                self.change(from, to, &[needs, &[*name]].concat(), true);
            }
            self.change(from, to, &[needs, may].concat(), true);
        }
    }
}
