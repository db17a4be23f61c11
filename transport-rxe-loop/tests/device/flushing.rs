//! FLUSH, beyond what the conformance suite tries: Q4, Q6, Q7.

use crate::common::{End, S, connect_by, impatient};
use cq_core::setup::{Endpoint, Port};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wr::{Data, Placement, RemoteAddr, Selectivity, SendWr, Sge};
use transport_rxe_loop::{Access, OwnedRegion, QpAttr, QpState};

const LEN: u32 = 4096;

/// Two ends, of which the target can be flushed, and memory of its that can be.
fn flushable() -> (End, End, OwnedRegion) {
    let (mut a, mut b) = (End::new(), End::new());
    let attrs = [
        QpAttr::init(&Port::new(1), Access::FLUSH_GLOBAL),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number())),
        QpAttr::rts(),
    ];
    for attr in attrs {
        b.qp.modify(&attr).unwrap();
    }
    a.qp.connect_to(b.qp.number()).unwrap();
    let region = b.pd.allocate(LEN as usize, Access::FLUSH_GLOBAL).unwrap();
    (a, b, region)
}

fn flush(remote: RemoteAddr, length: u32, placement: Placement) -> SendWr<'static> {
    SendWr::flush(1, remote, length, placement, Selectivity::Range)
}

/// Neither is a queue pair's capacity judged by them.
#[test]
fn q06_a_flush_looks_at_no_piece_of_its_own() {
    let (mut a, _b, region) = flushable();
    let bad = [Sge { addr: u64::MAX, length: u32::MAX, lkey: 0xdead }; 64];
    let plain = flush(region.remote(0).unwrap(), LEN, Placement::GLOBAL);
    for data in [Data::Sges(&bad), Data::Inline(&[0; 1000])] {
        a.post(SendWr { data, ..plain });
        a.expect(&[(1, S::SUCCESS)]);
    }
}

#[test]
fn q04_a_flush_with_a_strange_placement_is_refused() {
    let (mut a, _b, region) = flushable();
    let remote = region.remote(0).unwrap();
    let strange = Placement::from_bits_retain(1 << 2);
    for placement in [strange, strange | Placement::GLOBAL] {
        let refused = PostError { posted: 0, why: Refused::BadPlacement };
        assert_eq!(a.qp.post_send(&[flush(remote, 8, placement)]), Err(refused));
    }
    a.expect_nothing();
}

#[test]
fn q07_a_flush_waits_for_its_peer_like_any_other_and_is_flushed_like_any_other() {
    let (mut a, b) = (End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(&Port::new(1), &Endpoint::new(b.qp.number())), &impatient());
    let wr = flush(b.region.remote(0).unwrap(), 8, Placement::GLOBAL);
    a.qp.post_send(&[wr.unsignaled(), wr]).unwrap();
    a.expect(&[(1, S::RETRY_EXC_ERR), (1, S::WR_FLUSH_ERR)]);
    assert_eq!((a.qp.state().unwrap(), b.qp.state().unwrap()), (QpState::ERR, QpState::RESET));
}
