//! What goes wrong with a SEND, and with a peer; how both sides see it, and in which states that leaves
//! them: Q7.

use crate::common::failing::{expect_failure, good, run};
use crate::common::{self, ALL, End, S, connect, connect_by, impatient, pair, patient};
use cq_core::transport::Post;
use cq_core::wr::{SendWr, Sge};
use transport_rxe_loop::{Access, OwnedRegion, ProtectionDomain, QpAttr, QpState};

use QpState::{Err as Failed, Rts};

fn send_into(sge: impl Fn(&End) -> Sge) -> (End, End) {
    run(sge, |a, _| {
        a.region.write(0, &[0xee; 16]).unwrap();
        a.send(1, 0, 16);
    })
}

fn send_from(sge: Sge) -> (End, End) {
    run(good, |a, _| a.qp.post_send(&[SendWr::send(1, &[sge])]).unwrap())
}

#[test]
fn q07_a_receive_that_is_too_small() {
    let (mut a, mut b) = send_into(|b| b.region.sge(0, 15).unwrap());
    let ends = (&mut a, &mut b);
    expect_failure(ends, (S::REM_INV_REQ_ERR, Failed), (Some(S::LOC_LEN_ERR), Failed));
    assert_eq!(b.bytes(0, 8192), [0; 8192]);
}

#[test]
fn q07_a_bad_receive_buffer() {
    let bad: [fn(&End) -> Sge; 5] = [
        |b| Sge { lkey: b.region.lkey() ^ 1, ..good(b) },
        // Though the message would fit.
        |b| Sge { addr: b.region.addr() + 8192 - 16, length: 17, ..good(b) },
        |b| Sge { addr: b.region.addr() + 8192 - 15, ..good(b) },
        |b| Sge { addr: b.region.addr() - 1, ..good(b) },
        |b| Sge { addr: u64::MAX - 3, ..good(b) },
    ];
    for sge in bad {
        let (mut a, mut b) = send_into(sge);
        let ends = (&mut a, &mut b);
        expect_failure(ends, (S::REM_OP_ERR, Failed), (Some(S::LOC_PROT_ERR), Failed));
        assert_eq!(b.bytes(0, 8192), [0; 8192]);
    }
}

#[test]
fn q07_a_receive_buffer_without_local_write_or_of_another_domain() {
    type Kept = (ProtectionDomain, OwnedRegion);
    let regions: [fn(&End) -> Kept; 2] = [
        |b| {
            let read_only = b.pd.allocate(64, Access::REMOTE_READ).unwrap();
            (common::open().alloc_pd(), read_only)
        },
        |_| {
            let pd = common::open().alloc_pd();
            let elsewhere = pd.allocate(64, ALL).unwrap();
            (pd, elsewhere)
        },
    ];
    for region in regions {
        let kept = std::cell::OnceCell::new();
        let (mut a, mut b) = send_into(|b| kept.get_or_init(|| region(b)).1.sge(0, 64).unwrap());
        let ends = (&mut a, &mut b);
        expect_failure(ends, (S::REM_OP_ERR, Failed), (Some(S::LOC_PROT_ERR), Failed));
        let mut bytes = [1; 64];
        kept.get().unwrap().1.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 64]);
    }
}

#[test]
fn q07_a_bad_local_key_or_range_fails_here_only() {
    let own = common::open().alloc_pd();
    let elsewhere = own.allocate(64, ALL).unwrap();
    let bad = [
        Sge { lkey: 0, ..elsewhere.sge(0, 8).unwrap() },
        elsewhere.sge(0, 8).unwrap(), // of another domain
        Sge { addr: u64::MAX, length: 2, lkey: elsewhere.lkey() },
    ];
    for sge in bad {
        let (mut a, mut b) = send_from(sge);
        expect_failure((&mut a, &mut b), (S::LOC_PROT_ERR, Failed), (None, Rts));
    }
    let (mut a, mut b) = run(good, |a, _| {
        let past = Sge { length: 17, ..a.region.sge(8192 - 16, 16).unwrap() };
        a.qp.post_send(&[SendWr::send(1, &[past])]).unwrap();
    });
    expect_failure((&mut a, &mut b), (S::LOC_PROT_ERR, Failed), (None, Rts));
}

#[test]
fn q07_no_receive_with_rnr_retry_0() {
    let (mut a, mut b) = (End::new(), End::new());
    b.qp.connect(a.qp.number()).unwrap();
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &QpAttr::rts().rnr_retry(0));
    a.send(1, 0, 8);
    a.expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
    assert_eq!((a.qp.state(), b.qp.state()), (Failed, Rts));
}

#[test]
fn q07_no_receive_with_rnr_retry_7_waits_for_one() {
    let (mut a, mut b) = pair();
    for wr_id in 0..4 {
        a.send(wr_id, 0, 8);
    }
    a.expect_nothing();
    b.recv(10, 0, 8);
    a.expect(&[(0, S::SUCCESS)]);
    b.recv(11, 0, 8);
    a.expect(&[(1, S::SUCCESS)]);
    b.expect(&[(10, S::SUCCESS), (11, S::SUCCESS)]);
}

#[test]
fn q07_a_peer_that_is_gone() {
    let (mut a, b) = pair();
    b.qp.destroy();
    a.send(1, 0, 8);
    a.send(2, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
    assert_eq!(a.qp.state(), Failed);
}

#[test]
fn q07_a_peer_that_goes_while_a_request_waits() {
    let (mut a, b) = pair();
    a.send(1, 0, 8);
    a.expect_nothing();
    b.qp.destroy();
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_goes_before_it_was_connected() {
    let (mut a, b) = (End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &patient());
    a.send(1, 0, 8);
    a.expect_nothing();
    b.qp.destroy();
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_connects_to_another() {
    let (mut a, mut b, c) = (End::new(), End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &impatient());
    b.qp.connect(c.qp.number()).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_peer_that_has_failed() {
    let (mut a, mut b) = (End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &impatient());
    b.qp.connect(a.qp.number()).unwrap();
    b.qp.modify(&QpAttr::to(Failed)).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
    assert_eq!(a.qp.state(), Failed);
}

#[test]
fn q07_a_peer_that_is_connected_to_another() {
    let (mut a, mut b) = pair();
    let mut stranger = End::new();
    connect_by(&mut stranger.qp, &QpAttr::rtr(b.qp.number()), &impatient());
    b.recv(1, 0, 8);
    stranger.send(2, 0, 8);
    stranger.expect(&[(2, S::RETRY_EXC_ERR)]);
    a.send(3, 0, 8);
    b.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_a_number_that_nobody_has() {
    let mut a = End::new();
    a.qp.connect(0).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

#[test]
fn q07_a_pair_works_again_after_a_failure() {
    let (mut a, mut b) = send_into(|b| b.region.sge(0, 15).unwrap());
    common::settle(&mut a.cq, 2);
    common::settle(&mut b.cq, 3);
    for end in [&mut a, &mut b] {
        end.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    }
    connect(&mut a, &mut b);
    b.recv(1, 0, 16);
    a.send(2, 0, 16);
    a.expect(&[(2, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
}
