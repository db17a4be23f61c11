//! How requests fail, and what is flushed behind them: C4, C8, Q2, Q7. Where devices are known to differ in
//! the status, that there is a failure is asked for.

mod common;

use common::{End, S, connect_by, device, impatient, pair};
use cq_core::transport::Post;
use cq_core::wr::{RemoteAddr, SendWr, Sge};
use transport_verbs::{Access, QpAttr, QpState, QpType};

/// A fails with `status`, what is behind it is flushed, and so are the receives of B.
#[track_caller]
fn fails_remotely(a: &mut End, b: &mut End, bad: SendWr<'_>, status: S) {
    b.recv(1, 0, 64);
    b.recv(2, 0, 64);
    a.qp.post_send(&[bad, SendWr::send_inline(11, b"behind").unsignaled()]).unwrap();
    a.expect(&[(bad.wr_id, status), (11, S::WR_FLUSH_ERR)]);
    b.expect(&[(1, S::WR_FLUSH_ERR), (2, S::WR_FLUSH_ERR)]);
    assert_eq!([&a.qp, &b.qp].map(|qp| qp.state().unwrap()), [QpState::ERR; 2]);
}

#[test]
fn q07_a_bad_remote_key() {
    let Some((mut a, mut b)) = pair() else { return };
    let bad = RemoteAddr { addr: b.region.addr(), rkey: !b.region.rkey() };
    let sge = [a.region.sge(0, 8).unwrap()];
    fails_remotely(&mut a, &mut b, SendWr::write(10, &sge, bad), S::REM_ACCESS_ERR);
}

#[test]
fn q07_a_remote_range_that_is_not_inside() {
    let Some((mut a, mut b)) = pair() else { return };
    let sge = [a.region.sge(0, 8).unwrap()];
    let bad = b.region.remote(b.region.len() - 7).unwrap();
    b.region.write(b.region.len() - 8, &[9; 8]).unwrap();
    fails_remotely(&mut a, &mut b, SendWr::read(10, &sge, bad).unsignaled(), S::REM_ACCESS_ERR);
    assert_eq!(b.bytes(b.region.len() - 8, 8), [9; 8]);
}

#[test]
fn q07_a_region_without_the_right() {
    let Some((mut a, mut b)) = pair() else { return };
    let region = b.pd.allocate(64, Access::LOCAL_WRITE | Access::REMOTE_READ).unwrap();
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], region.remote(0).unwrap());
    a.region.write(0, &[7; 8]).unwrap();
    fails_remotely(&mut a, &mut b, SendWr::write(10, &sge, to), S::REM_ACCESS_ERR);
    let mut bytes = [1; 8];
    region.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 8]);
}

#[test]
fn q07_a_queue_pair_without_the_right() {
    let Some(context) = device() else { return };
    let (mut a, mut b) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Rc));
    connect_by(&mut a, &b, &impatient());
    let to_a = a.qp.endpoint(&a.port);
    let init = QpAttr::init(&b.port, Access::REMOTE_READ);
    for step in [init, QpAttr::rtr(&b.port, &to_a), impatient()] {
        b.qp.modify(&step).unwrap();
    }
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(0).unwrap());
    fails_remotely(&mut a, &mut b, SendWr::write(10, &sge, to), S::REM_INV_REQ_ERR);
}

/// A local failure leaves the peer alone.
#[test]
fn q07_a_bad_local_piece() {
    let Some((mut first, _)) = pair() else { return };
    let sge = first.region.sge(0, 8).unwrap();
    let behind_the_end = Sge { addr: sge.addr + first.region.len() as u64 - 4, ..sge };
    for bad in [Sge { lkey: !sge.lkey, ..sge }, behind_the_end] {
        let Some((mut a, mut b)) = pair() else { return };
        let bad = Sge { addr: bad.addr - first.region.addr() + a.region.addr(), ..bad };
        let lkey = if bad.lkey == sge.lkey { a.region.lkey() } else { !a.region.lkey() };
        b.recv(1, 0, 64);
        a.qp.post_send(&[SendWr::send(10, &[Sge { lkey, ..bad }]).unsignaled()]).unwrap();
        let got = common::settle(&mut a.cq, 1);
        let failed = got[0].result().unwrap_err();
        assert_eq!((failed.wr_id(), failed.qp_num()), (10, a.qp.number()));
        assert_eq!(a.qp.state().unwrap(), QpState::ERR);
        assert_eq!(b.qp.state().unwrap(), QpState::RTS);
        b.expect_nothing();
    }
    first.expect_nothing();
}

#[test]
fn q07_a_receive_too_small_breaks_both_ends() {
    let Some((mut a, mut b)) = pair() else { return };
    b.recv(1, 0, 4);
    a.send(10, 0, 8);
    let failed = [&mut a.cq, &mut b.cq].map(|cq| common::settle(cq, 1)[0].result().unwrap_err());
    assert_eq!(failed.map(|failed| failed.wr_id()), [10, 1]);
    assert_eq!([&a.qp, &b.qp].map(|qp| qp.state().unwrap()), [QpState::ERR; 2]);
}

#[test]
fn q07_no_receive() {
    let Some((mut a, mut b)) = pair() else { return };
    a.send(10, 0, 8);
    a.send(11, 0, 8);
    a.expect(&[(10, S::RNR_RETRY_EXC_ERR), (11, S::WR_FLUSH_ERR)]);
    b.expect_nothing();
    assert_eq!([&a.qp, &b.qp].map(|qp| qp.state().unwrap()), [QpState::ERR, QpState::RTS]);
}

#[test]
fn q07_a_peer_that_is_gone() {
    let Some((mut a, b)) = pair() else { return };
    b.qp.destroy();
    a.send(10, 0, 8);
    a.expect(&[(10, S::RETRY_EXC_ERR)]);
    assert_eq!(a.qp.state().unwrap(), QpState::ERR);
}
