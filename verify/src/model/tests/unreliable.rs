//! Unreliable connections, and SQE.

use cq_core::transport::{Post, Refused};
use cq_core::wc::{Wc, WcStatus as S};
use cq_core::wr::{RecvWr, RemoteAddr, SendWr, Sge};

use super::{EVERY, Pair, connect, taken};
use crate::device::{Device, Mr, Qp, QpAttr, QpInit, QpState, QpType, attr, small};

const NOWHERE: RemoteAddr = RemoteAddr { addr: 0, rkey: 0 };

fn uc() -> Pair {
    Pair::of(QpType::Uc)
}

#[test]
fn q06_what_an_unreliable_connection_carries() {
    let mut pair = uc();
    pair.recv(1, 0, 8);
    pair.recv(2, 0, 8);
    let write = SendWr::write_inline(12, b"abc", pair.memory.remote(16)).with_imm([0; 4]);
    pair.a.post_send(&[SendWr::send_inline(11, b"x"), write]).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(taken(&mut pair.at_a), [(11, S::SUCCESS), (12, S::SUCCESS)]);
    assert_eq!(&pair.bytes::<3>(16), b"abc");
    let (word, remote) = ([pair.memory.sge(0, 8)], pair.memory.remote(0));
    for wr in [
        SendWr::read(1, &word, remote),
        SendWr::fetch_add(1, &word, remote, 1),
        SendWr::compare_swap(1, &word, remote, 0, 1),
        SendWr::atomic_write(1, &word, remote),
    ] {
        assert_eq!(pair.a.post_send(&[wr]).unwrap_err().why, Refused::Unsupported);
    }
}

#[test]
fn q07_what_nobody_takes_succeeds_and_leaves_no_trace() {
    let mut pair = uc();
    let send = SendWr::send_inline(1, b"x");
    let write = SendWr::write_inline(2, b"x", NOWHERE);
    pair.a.post_send(&[send, write, write.with_imm([0; 4])]).unwrap();
    pair.recv(10, 0, 8);
    pair.a.post_send(&[write.with_imm([0; 4])]).unwrap();
    assert!(taken(&mut pair.at_a).iter().all(|(_, status)| *status == S::SUCCESS));
    assert_eq!(taken(&mut pair.at_b), []);

    pair.b.modify(&QpAttr::to(QpState::RTS).access(EVERY)).unwrap();
    pair.b.modify(&QpAttr::to(QpState::ERR)).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(10, S::WR_FLUSH_ERR)]);
    pair.a.post_send(&[send]).unwrap();
    drop(pair.b);
    pair.a.post_send(&[send]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::SUCCESS); 2]);
    assert_eq!(pair.a.state(), QpState::RTS);
}

#[test]
fn q07_a_receive_that_can_t_take_it_fails_alone() {
    let bad = [Sge { addr: 0, length: 8, lkey: 0 }];
    for (sges, status) in [(&[][..], S::LOC_LEN_ERR), (&bad[..], S::LOC_PROT_ERR)] {
        let mut pair = uc();
        pair.b.post_recv(&[RecvWr::new(10, sges), RecvWr::new(11, &[])]).unwrap();
        pair.a.post_send(&[SendWr::send_inline(1, b"x")]).unwrap();
        assert_eq!(taken(&mut pair.at_a), [(1, S::SUCCESS)]);
        assert_eq!(taken(&mut pair.at_b), [(10, status), (11, S::WR_FLUSH_ERR)]);
        assert_eq!((pair.a.state(), pair.b.state()), (QpState::RTS, QpState::ERR));
    }
}

#[test]
fn q07_a_queue_pair_that_sends_to_itself_and_can_t_take_it_completes_the_send_first() {
    let mut pair = uc();
    pair.a.modify(&QpAttr::to(QpState::RESET)).unwrap();
    let itself = pair.a.number();
    for attr in [
        attr::init(EVERY),
        attr::rtr_as(QpType::Uc, itself),
        QpAttr::to(QpState::RTR),
        attr::rts_as(QpType::Uc),
    ] {
        // The third is no change.
        assert_eq!(pair.a.modify(&attr).is_ok(), attr != QpAttr::to(QpState::RTR));
    }
    pair.a.post_recv(&[RecvWr::new(10, &[])]).unwrap();
    pair.a.post_send(&[SendWr::send_inline(1, b"x"), SendWr::send_inline(2, b"x")]).unwrap();
    let done = [(10, S::LOC_LEN_ERR), (1, S::SUCCESS), (2, S::WR_FLUSH_ERR)];
    assert_eq!(taken(&mut pair.at_a), done);
}

#[test]
fn q01_a_request_that_fails_on_its_own_side_leads_to_sqe_where_receives_go_on() {
    let mut pair = uc();
    pair.a.post_recv(&[RecvWr::new(10, &[pair.memory.sge(0, 8)])]).unwrap();
    let bad = [Sge { addr: 0, length: 1, lkey: 0 }];
    let list = [SendWr::send(1, &bad), SendWr::send(2, &[]).unsignaled()];
    pair.a.post_send(&list).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::LOC_PROT_ERR), (2, S::WR_FLUSH_ERR)]);
    assert_eq!(pair.a.state(), QpState::SQE);
    assert_eq!(pair.a.post_send(&list).unwrap_err().why, Refused::WrongState);
    pair.b.post_send(&[SendWr::send_inline(3, b"x")]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(10, S::SUCCESS)]);

    let back = QpAttr::to(QpState::RTS).cur_state(QpState::SQE);
    pair.a.modify(&back).unwrap();
    pair.recv(11, 0, 8);
    pair.a.post_send(&[SendWr::send_inline(4, b"x")]).unwrap();
    assert_eq!(taken(&mut pair.at_b)[1], (11, S::SUCCESS));
}

#[test]
fn q07_queue_pairs_of_two_types_do_not_hear_each_other() {
    let mut pair = Pair::new(16, attr::rts().timeout(1));
    let init = QpInit { qp_type: QpType::Uc, ..small(&pair.at_b) };
    let mut uc = pair.device.create_qp(&pair.pd, &init).unwrap();
    uc.modify(&attr::init(EVERY)).unwrap();
    uc.modify(&attr::rtr_as(QpType::Uc, pair.a.number())).unwrap();
    pair.a.modify(&QpAttr::to(QpState::RESET)).unwrap();
    let rts = attr::rts().timeout(1);
    connect(&mut pair.a, uc.number(), &rts);
    uc.post_recv(&[RecvWr::new(10, &[])]).unwrap();
    pair.a.post_send(&[SendWr::send(1, &[])]).unwrap();
    while taken(&mut pair.at_a) != [(1, S::RETRY_EXC_ERR)] {
        assert!(pair.now() < std::time::Duration::from_secs(1), "it waits for ever");
        pair.device.pause();
    }
    let mut room = [Wc::default()];
    assert_eq!(cq_core::transport::PollCq::poll(&mut pair.at_b, &mut room), Ok(0));
}

#[test]
fn q01_each_type_has_its_own_attributes() {
    for (qp_type, refused) in [
        (QpType::Uc, attr::init(EVERY).qkey(1)),
        (QpType::Uc, attr::init_as(QpType::Ud, EVERY, 1)),
        (QpType::Ud, attr::init(EVERY)),
        (QpType::Ud, QpAttr { qkey: None, ..attr::init_as(QpType::Ud, EVERY, 1) }),
        (QpType::Rc, attr::init(EVERY).qkey(1)),
    ] {
        let pair = uc();
        let init = QpInit { qp_type, ..small(&pair.at_a) };
        let mut qp = pair.device.create_qp(&pair.pd, &init).unwrap();
        assert!(qp.modify(&refused).is_err(), "{qp_type:?} {refused:?}");
    }
    for (qp_type, refused) in [
        (QpType::Uc, attr::rtr(1)),
        (QpType::Ud, attr::rtr_as(QpType::Uc, 1)),
        (QpType::Rc, attr::rtr_as(QpType::Uc, 1)),
    ] {
        let pair = uc();
        let init = QpInit { qp_type, ..small(&pair.at_a) };
        let mut qp = pair.device.create_qp(&pair.pd, &init).unwrap();
        qp.modify(&attr::init_as(qp_type, EVERY, 1)).unwrap();
        assert!(qp.modify(&refused).is_err(), "{qp_type:?} {refused:?}");
        qp.modify(&attr::rtr_as(qp_type, 1)).unwrap();
        assert_eq!(qp.modify(&attr::rts()).is_ok(), qp_type == QpType::Rc);
    }
}
