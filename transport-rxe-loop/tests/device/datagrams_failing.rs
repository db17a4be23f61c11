//! What becomes of datagrams that are lost, or can't be taken (Q7).

use crate::common::datagrams::{GRH, ends};
use crate::common::{self, ALL, BAD, CAPS, End, QKEY, S, take};
use cq_core::setup::{Endpoint, Port};
use cq_core::transport::Post;
use cq_core::wc::{Wc, WcFlags};
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{Access, AddressError, QpAttr, QpState, QpType};

#[test]
fn c04_nobody_answers_what_is_no_datagram() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    b.hears(&mut a, 2);
    let grh = [0; GRH];
    let sent = a.expect(&[(2, S::SUCCESS)])[0];
    assert_eq!(a.pd.ah_from_wc(&Port::new(1), &sent, &grh).unwrap_err(), AddressError::NoDatagram);
    // As it would stand after a failure.
    let failed = Wc::new(1, S::WR_FLUSH_ERR, b.qp.number()).with_flags(WcFlags::GRH);
    assert_eq!(
        b.pd.ah_from_wc(&Port::new(1), &failed, &grh).unwrap_err(),
        AddressError::NoDatagram
    );
    // The program wrote over the route.
    let got = b.expect(&[(1, S::SUCCESS)])[0].with_flags(WcFlags::GRH);
    assert!(matches!(
        b.pd.ah_from_wc(&Port::new(1), &got, &grh),
        Err(AddressError::UnknownGid { .. })
    ));
}

#[test]
fn q07_what_goes_to_nobody_is_lost_and_its_sender_succeeds() {
    // Nobody has the number, or no number is that large.
    let (mut a, b) = ends();
    let gone = b.qp.number();
    drop(b);
    for number in [gone, 0, 1, gone ^ 1 << 23, 0xff_ffff, u32::MAX] {
        a.post_to(number, &[SendWr::send_inline(4, b"x")]);
        a.expect(&[(4, S::SUCCESS)]);
    }
    assert_eq!(a.qp.state().unwrap(), QpState::RTS);
}

#[test]
fn q07_in_sqd_datagrams_are_taken() {
    let (mut a, mut b) = ends();
    b.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
    b.recv(1, 0, 64);
    b.hears(&mut a, 2);
    b.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_what_a_connection_sends_is_no_datagram() {
    for kind in [QpType::Rc, QpType::Uc] {
        let (mut a, mut b) = (End::of(QpType::Ud, CAPS), End::of(kind, CAPS));
        a.qp.activate(&Port::new(1), QKEY).unwrap();
        let number = a.qp.number();
        b.bring_to(number, QpState::RTS);
        a.recv(2, 0, 64);
        if kind == QpType::Rc {
            // It waits for an answer that never comes.
            b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
            let rts = common::impatient();
            common::connect_by(
                &mut b.qp,
                &QpAttr::rtr(&Port::new(1), &Endpoint::new(number)),
                &rts,
            );
            b.send(4, 0, 8);
            b.expect(&[(4, S::RETRY_EXC_ERR)]);
        } else {
            b.send(4, 0, 8);
            b.expect(&[(4, S::SUCCESS)]);
        }
        a.expect_nothing();
    }
}

#[test]
fn q07_a_receive_whose_memory_can_not_be_written_fails() {
    let read_only = |end: &End| end.pd.allocate(512, Access::empty()).unwrap();
    type Sges = fn(&End, Sge) -> Vec<Sge>;
    let cases: [Sges; 2] =
        [|b, _| vec![BAD, b.region.sge(0, 64).unwrap()], |_, read_only| vec![read_only]];
    for case in cases {
        let (mut a, mut b) = ends();
        let region = read_only(&b);
        let sges = case(&b, region.sge(0, 512).unwrap());
        b.qp.post_recv(&[RecvWr::new(1, &sges)]).unwrap();
        b.recv(2, 0, 64);
        a.post_to(b.qp.number(), &[SendWr::send_inline(3, b"8 bytes!")]);
        a.expect(&[(3, S::SUCCESS)]);
        b.expect(&[(1, S::LOC_PROT_ERR), (2, S::WR_FLUSH_ERR)]);
        assert_eq!(b.qp.state().unwrap(), QpState::ERR);
        assert_eq!(a.qp.state().unwrap(), QpState::RTS);
    }
}

#[test]
fn q02_err_flushes_and_reset_drops_what_datagrams_have_left() {
    let (mut a, mut b) = ends();
    for wr_id in 1..=3 {
        b.recv(wr_id, 0, 64);
    }
    b.hears(&mut a, 10);
    b.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    b.hears(&mut a, 11);
    b.expect(&[(1, S::SUCCESS), (2, S::WR_FLUSH_ERR), (3, S::WR_FLUSH_ERR)]);
    b.recv(4, 0, 64);
    b.expect(&[(4, S::WR_FLUSH_ERR)]);
    b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    b.qp.activate(&Port::new(1), QKEY).unwrap();
    for wr_id in 20..28 {
        b.recv(wr_id, 0, 64);
    }
    b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    b.qp.activate(&Port::new(1), QKEY).unwrap();
    b.recv(5, 0, 64);
    b.hears(&mut a, 12);
    b.expect(&[(5, S::SUCCESS)]);
    assert_eq!(take(&mut a.cq).len(), 3);
}

#[test]
fn q10_datagrams_go_nowhere_near_a_region_that_is_deregistered() {
    let (mut a, mut b) = ends();
    let region = b.pd.allocate(512, ALL).unwrap();
    b.qp.post_recv(&[RecvWr::new(1, &[region.sge(0, 512).unwrap()])]).unwrap();
    region.deregister();
    b.hears(&mut a, 2);
    a.expect(&[(2, S::SUCCESS)]);
    b.expect(&[(1, S::LOC_PROT_ERR)]);
}
