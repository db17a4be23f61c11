//! Unreliable connections: what they carry, and what is lost on them (Q6, Q7).

use crate::common::{self, ALL, BAD, CAPS, End, S, pair_of};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wc::WcOpcode;
use cq_core::wr::{Placement, RecvWr, RemoteAddr, Selectivity, SendWr};
use transport_rxe_loop::{Access, Context, QpAttr, QpState, QpType};

fn pair() -> (End, End) {
    pair_of(QpType::Uc)
}

/// The peer has nothing to say, and is as it was.
#[track_caller]
fn untouched(end: &mut End) {
    end.expect_nothing();
    assert_eq!(end.qp.state(), QpState::Rts);
    assert_eq!(end.bytes(4096, 64), [0; 64]);
}

#[test]
fn q06_an_unreliable_connection_sends_and_writes() {
    let (mut a, mut b) = pair();
    a.region.write(0, b"12345678").unwrap();
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(4096).unwrap());
    b.recv(1, 0, 64);
    b.recv(2, 64, 64);
    b.recv(3, 128, 64);
    let list = [
        SendWr::write(10, &sge, to),
        SendWr::send(11, &sge),
        SendWr::send(12, &sge).with_imm([1, 2, 3, 4]),
        SendWr::write(13, &sge, RemoteAddr { addr: to.addr + 8, ..to }).with_imm([5; 4]),
    ];
    a.qp.post_send(&list).unwrap();
    let sent = a.expect(&[10, 11, 12, 13].map(|wr_id| (wr_id, S::SUCCESS)));
    assert_eq!(sent[0].result().unwrap().opcode(), WcOpcode::RDMA_WRITE);
    let got = b.expect(&[1, 2, 3].map(|wr_id| (wr_id, S::SUCCESS)));
    let seen = got.iter().map(|wc| {
        let done = wc.result().unwrap();
        (done.opcode(), done.byte_len(), done.imm())
    });
    assert!(seen.eq([
        (WcOpcode::RECV, 8, None),
        (WcOpcode::RECV, 8, Some([1, 2, 3, 4])),
        (WcOpcode::RECV_RDMA_WITH_IMM, 8, Some([5; 4])),
    ]));
    assert_eq!(b.bytes(4096, 16), *b"1234567812345678");
}

#[test]
fn q06_connecting_takes_the_attributes_that_there_are() {
    let [mut a, mut b] = [(); 2].map(|()| End::of(QpType::Uc, CAPS));
    assert_eq!(a.qp.qp_type(), QpType::Uc);
    common::connect(&mut a, &mut b);
    b.recv(1, 0, 8);
    a.send(2, 0, 8);
    b.expect(&[(1, S::SUCCESS)]);
    let mut datagrams = End::of(QpType::Ud, CAPS);
    datagrams.qp.connect(b.qp.number()).unwrap_err();
    b.qp.activate(1).unwrap_err();
}

#[test]
fn q06_what_asks_for_an_answer_is_refused() {
    let (mut a, b) = pair();
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(0).unwrap());
    for wr in [
        SendWr::read(1, &sge, to),
        SendWr::fetch_add(1, &sge, to, 1),
        SendWr::compare_swap(1, &sge, to, 1, 1),
        SendWr::atomic_write(1, &sge, to),
        SendWr::flush(1, to, 8, Placement::GLOBAL, Selectivity::Range),
    ] {
        let error = PostError { posted: 0, why: Refused::Unsupported };
        assert_eq!(a.qp.post_send(&[wr]), Err(error));
    }
    a.expect_nothing();
}

#[test]
fn q07_a_message_without_a_receive_is_lost() {
    let (mut a, mut b) = pair();
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(4096).unwrap());
    a.set_word(0, 1);
    a.qp.post_send(&[SendWr::send(1, &sge), SendWr::write(2, &sge, to).with_imm([0; 4])]).unwrap();
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    untouched(&mut b);
    b.recv(3, 0, 8);
    b.expect_nothing();
    a.set_word(0, 7);
    a.send(4, 0, 8);
    b.expect(&[(3, S::SUCCESS)]);
    assert_eq!(b.word(0), 7);
}

#[test]
fn q07_what_the_target_does_not_allow_is_lost_and_leaves_it_alone() {
    let (mut a, mut b) = pair();
    let mut context = common::open();
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(4096).unwrap());
    let read_only = b.pd.allocate(64, Access::REMOTE_READ).unwrap();
    a.set_word(0, u64::MAX);
    b.recv(1, 0, 64);
    let targets = [
        RemoteAddr { rkey: to.rkey ^ 1, ..to },
        RemoteAddr { addr: to.addr + 4096 - 7, ..to },
        RemoteAddr { addr: u64::MAX, ..to },
        read_only.remote(0).unwrap(),
        RemoteAddr { rkey: 0, ..to },
    ];
    for wrong in targets {
        let list = [SendWr::write(2, &sge, wrong), SendWr::write(3, &sge, wrong).with_imm([1; 4])];
        a.qp.post_send(&list).unwrap();
        a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
        untouched(&mut b);
    }
    b.qp.modify(&QpAttr::new().access(Access::empty())).unwrap();
    a.qp.post_send(&[SendWr::write(4, &sge, to), SendWr::write(5, &sge, to).with_imm([1; 4])])
        .unwrap();
    a.expect(&[(4, S::SUCCESS), (5, S::SUCCESS)]);
    untouched(&mut b);
    assert_eq!(common::reports(&mut context), []);
    // Its receive is still there.
    a.send(6, 0, 8);
    b.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_a_peer_that_does_not_listen_hears_nothing() {
    for state in [QpState::Reset, QpState::Init, QpState::Err] {
        let [mut a, mut b] = [(); 2].map(|()| End::of(QpType::Uc, CAPS));
        a.bring_to(b.qp.number(), QpState::Rts);
        b.bring_to(a.qp.number(), state);
        if state == QpState::Init {
            b.recv(1, 0, 64);
        }
        let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(4096).unwrap());
        a.set_word(0, 1);
        a.qp.post_send(&[SendWr::send(2, &sge), SendWr::write(3, &sge, to)]).unwrap();
        a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
        b.expect_nothing();
        assert_eq!(b.bytes(4096, 8), [0; 8]);
        if state == QpState::Init {
            b.qp.modify(&common::way(QpType::Uc, a.qp.number())[1]).unwrap();
            a.send(4, 0, 8);
            b.expect(&[(1, S::SUCCESS)]);
        }
    }
}

#[test]
fn q07_nobody_else_hears_what_is_sent_to_a_peer() {
    // It is connected elsewhere, is of another type, or gone.
    let (mut a, mut b) = pair();
    let mut c = End::of(QpType::Uc, CAPS);
    c.bring_to(b.qp.number(), QpState::Rts);
    b.recv(1, 0, 64);
    c.send(2, 0, 8);
    c.expect(&[(2, S::SUCCESS)]);
    untouched(&mut b);

    let mut reliable = End::new();
    reliable.bring_to(c.qp.number(), QpState::Rts);
    reliable.recv(3, 0, 64);
    c.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    c.bring_to(reliable.qp.number(), QpState::Rts);
    c.send(4, 0, 8);
    c.expect(&[(4, S::SUCCESS)]);
    untouched(&mut reliable);

    drop(b);
    a.send(5, 0, 8);
    a.expect(&[(5, S::SUCCESS)]);
    assert_eq!(a.qp.state(), QpState::Rts);
}

#[test]
fn q07_a_reliable_connection_to_an_unreliable_one_gets_no_answer() {
    let (mut a, mut b) = (End::new(), End::of(QpType::Uc, CAPS));
    b.bring_to(a.qp.number(), QpState::Rts);
    common::connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &common::impatient());
    b.recv(1, 0, 64);
    a.send(2, 0, 8);
    a.expect(&[(2, S::RETRY_EXC_ERR)]);
    untouched(&mut b);
}

#[test]
fn q07_a_receive_that_cannot_take_a_message_fails_alone() {
    for (len, bad, status) in [(7, false, S::LOC_LEN_ERR), (8, true, S::LOC_PROT_ERR)] {
        let (mut a, mut b) = pair();
        let pieces = if bad { [BAD] } else { [b.region.sge(0, len).unwrap()] };
        b.qp.post_recv(&[RecvWr::new(1, &pieces)]).unwrap();
        b.recv(2, 0, 64);
        a.send(3, 0, 8);
        a.send(4, 0, 8);
        a.expect(&[(3, S::SUCCESS), (4, S::SUCCESS)]);
        b.expect(&[(1, status), (2, S::WR_FLUSH_ERR)]);
        assert_eq!((a.qp.state(), b.qp.state()), (QpState::Rts, QpState::Err));
    }
}

#[test]
fn q07_an_unreliable_connection_waits_for_nothing() {
    // No timer, and no thread that would watch one.
    let context: Context = common::open();
    let (mut a, mut b) = pair();
    for wr_id in 0..100 {
        a.send(wr_id, 0, 8);
        a.expect(&[(wr_id, S::SUCCESS)]);
    }
    b.recv(1, 0, 64);
    b.expect_nothing();
    a.send(200, 0, 8);
    b.expect(&[(1, S::SUCCESS)]);
    drop(context);
}

#[test]
fn q08_a_long_message_arrives_whole() {
    const LEN: usize = 1 << 20;
    let (mut a, mut b) = pair();
    let [from, to] = [&a, &b].map(|end| end.pd.allocate(LEN, ALL).unwrap());
    let bytes: Vec<u8> = (0..LEN).map(|i| (i * 31 + i / 977) as u8).collect();
    from.write(0, &bytes).unwrap();
    b.qp.post_recv(&[RecvWr::new(1, &[to.sge(0, LEN).unwrap()])]).unwrap();
    a.qp.post_send(&[SendWr::send(2, &[from.sge(0, LEN).unwrap()])]).unwrap();
    b.expect(&[(1, S::SUCCESS)]);
    let mut got = vec![0; LEN];
    to.read(0, &mut got).unwrap();
    assert!(got == bytes);
}
