//! What becomes of datagrams that are refused, lost, or can't be taken (Q7).

use crate::common::datagrams::{GRH, ends, handles};
use crate::common::{self, ALL, BAD, CAPS, End, QKEY, S, connect, take};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wc::{Wc, WcFlags};
use cq_core::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use transport_rxe_loop::{Access, AddressError, QpAttr, QpState, QpType};

#[track_caller]
fn refused(result: Result<(), PostError>, why: Refused) {
    assert_eq!(result, Err(PostError { posted: 0, why }));
}

#[test]
fn c04_nobody_answers_what_is_no_datagram() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    b.hears(&mut a, 2);
    let grh = [0; GRH];
    let sent = a.expect(&[(2, S::SUCCESS)])[0];
    assert_eq!(a.pd.ah_from_wc(&sent, &grh).unwrap_err(), AddressError::NoDatagram);
    // As it would stand after a failure.
    let failed = Wc::new(1, S::WR_FLUSH_ERR, b.qp.number()).with_flags(WcFlags::GRH);
    assert_eq!(b.pd.ah_from_wc(&failed, &grh).unwrap_err(), AddressError::NoDatagram);
    // The program wrote over the route.
    let got = b.expect(&[(1, S::SUCCESS)])[0].with_flags(WcFlags::GRH);
    assert!(matches!(b.pd.ah_from_wc(&got, &grh), Err(AddressError::UnknownGid { .. })));
}

#[test]
fn q07_what_nobody_takes_is_lost_and_its_sender_succeeds() {
    // No receive: one that is posted later gets the next.
    let (mut a, mut b) = ends();
    b.hears(&mut a, 1);
    b.recv(2, 0, 64);
    b.hears(&mut a, 3);
    a.expect(&[(1, S::SUCCESS), (3, S::SUCCESS)]);
    b.expect(&[(2, S::SUCCESS)]);
    assert_eq!(b.bytes(GRH, 1), [3]);

    // Nobody has the number, or no number is that large.
    let gone = b.qp.number();
    drop(b);
    for number in [gone, 0, 1, gone ^ 1 << 23, 0xff_ffff, u32::MAX] {
        a.post_to(number, &[SendWr::send_inline(4, b"x")]);
        a.expect(&[(4, S::SUCCESS)]);
    }
    assert_eq!(a.qp.state(), QpState::Rts);
}

#[test]
fn q07_only_what_is_ready_takes_datagrams() {
    for state in QpState::ALL {
        let (mut a, _) = ends();
        let mut b = End::of(QpType::Ud, CAPS);
        b.bring_to(0, state);
        let takes_recvs = state != QpState::Reset;
        if takes_recvs {
            b.recv(1, 0, 64);
        }
        b.hears(&mut a, 2);
        a.expect(&[(2, S::SUCCESS)]);
        match state {
            QpState::Reset | QpState::Init => b.expect_nothing(),
            QpState::Err => drop(b.expect(&[(1, S::WR_FLUSH_ERR)])),
            QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe => {
                b.expect(&[(1, S::SUCCESS)]);
            }
        }
    }
}

#[test]
fn q07_connections_and_datagrams_do_not_mix() {
    for kind in [QpType::Rc, QpType::Uc] {
        let (mut a, mut b) = (End::of(QpType::Ud, CAPS), End::of(kind, CAPS));
        a.qp.activate(QKEY).unwrap();
        let number = a.qp.number();
        b.bring_to(number, QpState::Rts);
        b.recv(1, 0, 64);
        a.recv(2, 0, 64);
        b.hears(&mut a, 3);
        a.expect(&[(3, S::SUCCESS)]);
        if kind == QpType::Rc {
            // It waits for an answer that never comes.
            b.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
            let rts = common::impatient();
            common::connect_by(&mut b.qp, &QpAttr::rtr(number), &rts);
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
fn q07_a_receive_that_cannot_take_a_datagram_fails() {
    let read_only = |end: &End| end.pd.allocate(512, Access::empty()).unwrap();
    type Pieces = fn(&End, Sge) -> Vec<Sge>;
    let cases: [(Pieces, S); 6] = [
        (|b, _| vec![b.region.sge(0, GRH + 7).unwrap()], S::LOC_LEN_ERR),
        (|b, _| vec![b.region.sge(0, 8).unwrap()], S::LOC_LEN_ERR),
        (|_, _| vec![], S::LOC_LEN_ERR),
        (|b, _| vec![b.region.sge(0, GRH).unwrap(), BAD], S::LOC_PROT_ERR),
        (|b, _| vec![BAD, b.region.sge(0, 64).unwrap()], S::LOC_PROT_ERR),
        (|_, read_only| vec![read_only], S::LOC_PROT_ERR),
    ];
    for (pieces, status) in cases {
        let (mut a, mut b) = ends();
        let region = read_only(&b);
        let pieces = pieces(&b, region.sge(0, 512).unwrap());
        b.qp.post_recv(&[RecvWr::new(1, &pieces)]).unwrap();
        b.recv(2, 0, 64);
        a.post_to(b.qp.number(), &[SendWr::send_inline(3, b"8 bytes!")]);
        a.expect(&[(3, S::SUCCESS)]);
        b.expect(&[(1, status), (2, S::WR_FLUSH_ERR)]);
        assert_eq!(b.qp.state(), QpState::Err);
        assert_eq!(a.qp.state(), QpState::Rts);
    }
}

#[test]
fn q06_a_datagram_is_a_send_with_a_destination() {
    let (mut a, b) = ends();
    refused(a.qp.post_send(&[SendWr::send_inline(1, b"x")]), Refused::NoDestination);
    let nowhere = RemoteAddr { addr: 8, rkey: 1 };
    let sge = [a.region.sge(0, 8).unwrap()];
    let others = [
        SendWr::write(1, &sge, nowhere),
        SendWr::write(1, &sge, nowhere).with_imm([0; 4]),
        SendWr::read(1, &sge, nowhere),
        SendWr::fetch_add(1, &sge, nowhere, 1),
        SendWr::compare_swap(1, &sge, nowhere, 1, 1),
        SendWr::atomic_write(1, &sge, nowhere),
        SendWr::send_with_inv(1, &sge, 1),
        SendWr::local_invalidate(1, 1),
    ];
    let [ah, _] = handles(&a);
    for wr in others {
        refused(a.qp.post_send(&[wr]), Refused::Unsupported);
        refused(a.qp.to(&b.by(&ah)).post_send(&[wr]), Refused::Unsupported);
    }
    // A list stops at the first bad request.
    let list = [SendWr::send(2, &sge), others[0], SendWr::send(3, &sge)];
    let error = PostError { posted: 1, why: Refused::Unsupported };
    assert_eq!(a.qp.to(&b.by(&ah)).post_send(&list), Err(error));
    a.expect(&[(2, S::SUCCESS)]);

    let [foreign, _] = handles(&b);
    let by_foreign = a.qp.to(&b.by(&foreign)).post_send(&[SendWr::send(1, &sge)]);
    refused(by_foreign, Refused::NoDestination);
    let (mut c, mut d) = (End::new(), End::new());
    connect(&mut c, &mut d);
    let [ah, _] = handles(&c);
    let on_a_connection = c.qp.to(&d.by(&ah)).post_send(&[SendWr::send_inline(1, b"x")]);
    refused(on_a_connection, Refused::Unsupported);
    a.expect_nothing();
    c.expect_nothing();
}

#[test]
fn q02_err_flushes_and_reset_drops_what_datagrams_have_left() {
    let (mut a, mut b) = ends();
    for wr_id in 1..=3 {
        b.recv(wr_id, 0, 64);
    }
    b.hears(&mut a, 10);
    b.qp.modify(&QpAttr::to(QpState::Err)).unwrap();
    b.hears(&mut a, 11);
    b.expect(&[(1, S::SUCCESS), (2, S::WR_FLUSH_ERR), (3, S::WR_FLUSH_ERR)]);
    b.recv(4, 0, 64);
    b.expect(&[(4, S::WR_FLUSH_ERR)]);
    b.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    b.qp.activate(QKEY).unwrap();
    for wr_id in 20..28 {
        b.recv(wr_id, 0, 64);
    }
    b.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    b.qp.activate(QKEY).unwrap();
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
