//! Changing a queue pair's state and attributes: Q1.

use super::stand::*;

super::chapter! {
    q01_every_transition_takes_what_it_needs,
    q01_no_other_transition_is_taken,
    q01_every_attribute_left_out_is_missed,
    q01_every_attribute_too_many_is_refused,
    q01_every_optional_attribute_is_taken,
    q01_a_port_that_is_not_there_is_refused,
    q01_a_packet_size_that_is_not_one_is_refused,
    q01_a_packet_number_of_more_than_24_bits_is_refused,
    q01_more_retries_than_seven_are_refused,
    q01_a_timeout_above_31_is_refused,
    q01_a_wrong_current_state_is_refused,
    q01_a_refused_change_changes_no_attribute,
    q01_rights_can_be_changed_in_rts,
    q01_sqd_holds_sends_back_and_nothing_else,
    q01_rts_resumes_what_sqd_held_back,
    q01_sqd_tells_when_it_is_drained,
    q01_sqd_tells_nothing_unless_asked,
}

/// An attribute: its name, and how to take it over from another set.
type Attribute = (&'static str, fn(&mut Attr, &Attr));

/// Every attribute but the state.
const ATTRIBUTES: [Attribute; 16] = [
    ("cur_state", |to, from| to.cur_state = from.cur_state),
    ("sqd_async_notify", |to, from| to.sqd_async_notify = from.sqd_async_notify),
    ("access", |to, from| to.access = from.access),
    ("pkey_index", |to, from| to.pkey_index = from.pkey_index),
    ("port", |to, from| to.port = from.port),
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

/// The states that a reliable connection can be in.
const REACHED: [State; 6] =
    [State::Reset, State::Init, State::Rtr, State::Rts, State::Sqd, State::Err];

/// What a change needs and what it may bring, by `ibv_modify_qp(3)` and Linux' table.
fn rule(from: State, to: State) -> Option<(&'static [&'static str], &'static [&'static str])> {
    use State::{Err, Init, Reset, Rtr, Rts, Sqd};
    let running = &["cur_state", "access", "min_rnr_timer"];
    Some(match (from, to) {
        (_, Reset) => (&[], &[]),
        (Reset, Err) => return None,
        (_, Err) => (&[], &[]),
        (Reset, Init) => (&["pkey_index", "port", "access"], &[]),
        (Init, Init) => (&[], &["pkey_index", "port", "access"]),
        (Init, Rtr) => (
            &["av", "path_mtu", "dest_qp_num", "rq_psn", "max_dest_rd_atomic", "min_rnr_timer"],
            &["access", "pkey_index"],
        ),
        (Rtr, Rts) => (&["timeout", "retry_cnt", "rnr_retry", "sq_psn", "max_rd_atomic"], running),
        (Rts, Rts) | (Sqd, Rts) => (&[], running),
        (Rts, Sqd) => (&[], &["sqd_async_notify"]),
        (Sqd, Sqd) => (
            &[],
            &[
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
        ),
        _ => return None,
    })
}

/// A change with these attributes, of values that are good everywhere.
fn change(from: State, to: State, peer: u32, names: &[&str]) -> Attr {
    let good = Attr {
        cur_state: Some(from),
        sqd_async_notify: Some(true),
        access: Some(Access::EVERY),
        pkey_index: Some(0),
        port: Some(1),
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

/// Who the queue pairs are connected to of which changes are tried.
fn peer<D: Device>() -> End<D> {
    End::far(&Plan::default())
}

/// Tries a change on a queue pair in `from`; where it is refused the state must be the old one.
#[track_caller]
fn try_change<D: Device>(peer: &End<D>, from: State, to: State, names: &[&str], wanted: bool) {
    let (mut end, peer) = (End::<D>::near(&Plan::default()), peer.qp.number());
    end.bring_to(from, peer);
    let said = end.qp.modify(&change(from, to, peer, names));
    let refused = Err(Refusal::Invalid);
    assert_eq!(said, if wanted { Ok(()) } else { refused }, "{from:?} to {to:?} with {names:?}");
    let state = if wanted { to } else { from };
    assert_eq!(end.qp.state(), state, "after {from:?} to {to:?} with {names:?}");
}

/// Each legal change, with what it needs and what it may bring.
fn legal() -> Vec<(State, State, &'static [&'static str], &'static [&'static str])> {
    let pairs = REACHED.into_iter().flat_map(|from| State::ALL.map(|to| (from, to)));
    pairs
        .filter_map(|(from, to)| rule(from, to).map(|(needs, may)| (from, to, needs, may)))
        .collect()
}

fn q01_every_transition_takes_what_it_needs<D: Device>() {
    let peer = peer::<D>();
    for (from, to, needs, _) in legal() {
        try_change(&peer, from, to, needs, true);
    }
}

fn q01_no_other_transition_is_taken<D: Device>() {
    let peer = peer::<D>();
    let everything = ATTRIBUTES.map(|(name, _)| name);
    for from in REACHED {
        for to in State::ALL {
            if rule(from, to).is_none() {
                try_change(&peer, from, to, &[], false);
                try_change(&peer, from, to, &["pkey_index", "port", "access"], false);
                try_change(&peer, from, to, &everything, false);
            }
        }
    }
}

fn q01_every_attribute_left_out_is_missed<D: Device>() {
    let peer = peer::<D>();
    for (from, to, needs, _) in legal() {
        for missing in needs {
            let rest: Vec<_> = needs.iter().copied().filter(|name| name != missing).collect();
            try_change(&peer, from, to, &rest, false);
        }
    }
}

fn q01_every_attribute_too_many_is_refused<D: Device>() {
    let peer = peer::<D>();
    for (from, to, needs, may) in legal() {
        for (name, _) in ATTRIBUTES {
            if !needs.contains(&name) && !may.contains(&name) {
                try_change(&peer, from, to, &[needs, &[name]].concat(), false);
            }
        }
    }
}

fn q01_every_optional_attribute_is_taken<D: Device>() {
    let peer = peer::<D>();
    for (from, to, needs, may) in legal() {
        for name in may {
            try_change(&peer, from, to, &[needs, &[*name]].concat(), true);
        }
        try_change(&peer, from, to, &[needs, may].concat(), true);
    }
}

/// Brings a queue pair up step by step; before the step that `bad` is about, its change is refused and
/// changes nothing.
#[track_caller]
fn refused<D: Device>(state: State, bad: fn(Attr) -> Attr) {
    let (mut end, peer) = two::<D>();
    for good in [Attr::init(Access::EVERY), Attr::rtr(peer.qp.number()), Attr::rts()] {
        let before = end.qp.state();
        if good.state == Some(state) {
            let attr = bad(good);
            assert_eq!(end.qp.modify(&attr), Err(Refusal::Invalid), "{attr:?}");
            assert_eq!(end.qp.state(), before);
        }
        end.qp.modify(&good).unwrap();
    }
}

fn q01_a_port_that_is_not_there_is_refused<D: Device>() {
    refused::<D>(State::Init, |init| Attr { port: Some(0), ..init });
    refused::<D>(State::Init, |init| Attr { port: Some(99), ..init });
}

fn q01_a_packet_size_that_is_not_one_is_refused<D: Device>() {
    refused::<D>(State::Rtr, |rtr| Attr { path_mtu: Some(1000), ..rtr });
}

fn q01_a_packet_number_of_more_than_24_bits_is_refused<D: Device>() {
    refused::<D>(State::Rtr, |rtr| Attr { rq_psn: Some(1 << 24), ..rtr });
    refused::<D>(State::Rts, |rts| Attr { sq_psn: Some(1 << 24), ..rts });
}

fn q01_more_retries_than_seven_are_refused<D: Device>() {
    refused::<D>(State::Rts, |rts| Attr { retry_cnt: Some(8), ..rts });
    refused::<D>(State::Rts, |rts| Attr { rnr_retry: Some(8), ..rts });
}

fn q01_a_timeout_above_31_is_refused<D: Device>() {
    refused::<D>(State::Rts, |rts| Attr { timeout: Some(32), ..rts });
}

fn q01_a_wrong_current_state_is_refused<D: Device>() {
    let (mut a, _b) = pair::<D>();
    let claim = |cur_state| Attr { cur_state: Some(cur_state), ..Attr::to(State::Rts) };
    assert_eq!(a.qp.modify(&claim(State::Sqd)), Err(Refusal::Invalid));
    assert_eq!(a.qp.modify(&claim(State::Rts)), Ok(()));
}

fn q01_a_refused_change_changes_no_attribute<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let rtr = Attr { access: Some(Access::empty()), ..Attr::rtr(b.qp.number() + 1) };
    assert_eq!(b.qp.modify(&rtr), Err(Refusal::Invalid), "no way leads from RTS to RTR");
    let sqd = Attr { access: Some(Access::empty()), ..Attr::to(State::Sqd) };
    assert_eq!(b.qp.modify(&sqd), Err(Refusal::Invalid), "SQD takes no rights along");
    a.post(SendWr::write_inline(1, b"still", b.remote(0)));
    a.expect_sent(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 5), b"still");
}

fn q01_rights_can_be_changed_in_rts<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.qp.modify(&Attr { access: Some(Access::empty()), ..Attr::to(State::Rts) }).unwrap();
    a.post(SendWr::write_inline(1, b"x", b.remote(0)));
    a.expect_sent(&[(1, S::REM_INV_REQ_ERR)]);
    assert_eq!(b.bytes(0, 1), [0], "nothing was written");
}

fn q01_sqd_holds_sends_back_and_nothing_else<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.drain();
    b.recv(1, 0, 8);
    a.send(2);
    a.post(SendWr::send_inline(3, b"then").unsignaled());
    a.recv(4, 0, 8);
    a.expect_silence();
    b.send(5); // the receive side goes on
    a.expect_received(&[(4, S::SUCCESS)]);
    b.expect_sent(&[(5, S::SUCCESS)]);
    b.expect_received(&[]);
}

fn q01_rts_resumes_what_sqd_held_back<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.drain();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.send(3);
    a.post(SendWr::send_inline(4, b"then").unsignaled());
    a.to(State::Rts);
    a.expect_sent(&[(3, S::SUCCESS)]);
    b.expect_received(&all(1..3, S::SUCCESS));
}

fn q01_sqd_tells_when_it_is_drained<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.post(SendWr::write_inline(1, b"x", b.remote(0)));
    a.qp.modify(&Attr { sqd_async_notify: Some(true), ..Attr::to(State::Sqd) }).unwrap();
    let drained = (AsyncEventType::SQ_DRAINED, a.element());
    a.expect_async(&[drained]);
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q01_sqd_tells_nothing_unless_asked<D: Device>() {
    let (mut a, _b) = pair::<D>();
    a.to(State::Sqd);
    a.expect_silence();
    a.expect_async(&[]);
}
