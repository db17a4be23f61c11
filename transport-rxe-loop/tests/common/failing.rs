//! A request that fails, with others behind it, and what both ends make of that (Q7).

use cq_core::transport::Post;
use cq_core::wr::{RecvWr, Sge};
use transport_rxe_loop::{QpAttr, QpState};

use super::{End, S, pair};

/// Both ends after a failure, and that what is behind it is flushed, once, on both sides.
#[track_caller]
pub fn expect_failure(
    (a, b): (&mut End, &mut End),
    (ours, our_state): (S, QpState),
    (theirs, their_state): (Option<S>, QpState),
) {
    a.expect(&[(1, ours), (2, S::WR_FLUSH_ERR)]);
    let mut wanted: Vec<_> = theirs.iter().map(|status| (100, *status)).collect();
    if their_state == QpState::ERR {
        let first = 100 + wanted.len() as u64;
        wanted.extend((first..103).map(|id| (id, S::WR_FLUSH_ERR)));
    }
    b.expect(&wanted);
    assert_eq!((a.qp.state().unwrap(), b.qp.state().unwrap()), (our_state, their_state));
}

/// A pair, three receives into `sge` at the target, and the request with another one behind it.
pub fn run(sge: impl Fn(&End) -> Sge, wr: impl FnOnce(&mut End, &End)) -> (End, End) {
    run_on(pair(), sge, wr)
}

/// [`run`] with these two.
pub fn run_on(
    (mut a, mut b): (End, End),
    sge: impl Fn(&End) -> Sge,
    wr: impl FnOnce(&mut End, &End),
) -> (End, End) {
    let sge = [sge(&b)];
    for wr_id in 100..103 {
        b.qp.post_recv(&[RecvWr::new(wr_id, &sge)]).unwrap();
    }
    a.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
    wr(&mut a, &b);
    a.send(2, 0, 8);
    a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
    (a, b)
}

/// A receive buffer that nothing is wrong with.
pub fn good(b: &End) -> Sge {
    b.region.sge(4096, 64).unwrap()
}
