//! Unreliable connections, beyond what the conformance suite tries (Q6, Q7).

use crate::common::{self, CAPS, End, S, pair_of};
use cq_core::setup::Port;
use cq_core::wr::SendWr;
use transport_rxe_loop::{Access, QpAttr, QpState, QpType};

#[test]
fn q06_connecting_takes_the_attributes_that_there_are() {
    let [mut a, mut b] = [(); 2].map(|()| End::of(QpType::Uc, CAPS));
    assert_eq!(a.qp.qp_type(), QpType::Uc);
    common::connect(&mut a, &mut b);
    b.recv(1, 0, 8);
    a.send(2, 0, 8);
    b.expect(&[(1, S::SUCCESS)]);
    let mut datagrams = End::of(QpType::Ud, CAPS);
    datagrams.qp.connect_to(b.qp.number()).unwrap_err();
    b.qp.activate(&Port::new(1), 1).unwrap_err();
}

#[test]
fn q06_a_write_with_immediate_without_the_queue_pairs_right_takes_no_receive() {
    let (mut a, mut b) = pair_of(QpType::Uc);
    b.qp.modify(&QpAttr::new().access(Access::empty())).unwrap();
    b.recv(1, 0, 64);
    let to = b.region.remote(4096).unwrap();
    a.post(SendWr::write_inline(2, b"lost", to).with_imm([1; 4]));
    a.expect(&[(2, S::SUCCESS)]);
    b.expect_nothing();
    assert_eq!((b.qp.state().unwrap(), b.bytes(4096, 4)), (QpState::RTS, vec![0; 4]));
    a.send(3, 0, 8);
    b.expect(&[(1, S::SUCCESS)]);
}
