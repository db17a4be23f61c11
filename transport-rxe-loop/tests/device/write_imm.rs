//! WRITE with immediate, which takes a receive and leaves its buffers: what it does (Q6, Q8), in which order
//! with others (C10), and what goes wrong with it (Q7).

use crate::common::failing::{expect_failure, good, run, run_on};
use crate::common::{
    self, ALL, CAPS, End, S, connect_by, impatient, open, pair, pair_with, reports,
};
use cq_core::async_event::AsyncEventType;
use cq_core::transport::Post;
use cq_core::wc::WcOpcode;
use cq_core::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use transport_rxe_loop::{Access, Context, QpAttr, QpCaps, QpInit, QpState};

use QpState::{Err as Failed, Rts};

const IMM: [u8; 4] = [1, 2, 3, 4];

/// The receive that a WRITE of so many bytes took.
#[track_caller]
fn expect_told(end: &mut End, wr_id: u64, len: u32) {
    let all = end.expect(&[(wr_id, S::SUCCESS)]);
    let done = all[0].result().unwrap();
    assert_eq!((done.opcode(), done.imm()), (WcOpcode::RECV_RDMA_WITH_IMM, Some(IMM)));
    assert!(done.is_recv());
    assert_eq!(done.byte_len(), len);
}

/// An end whose asynchronous events can be seen.
fn watched(context: &Context) -> End {
    let (pd, cq) = (context.alloc_pd(), context.create_cq(64, None).unwrap());
    let qp = pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
    let region = pd.allocate(8192, ALL).unwrap();
    End { qp, cq, region, pd, at: common::address(context) }
}

#[test]
fn q06_a_write_with_immediate_takes_a_receive_and_leaves_its_buffers() {
    let (mut a, mut b) = pair();
    a.region.write(0, &[7; 300]).unwrap();
    let from = [a.region.sge(0, 300).unwrap()];
    let nothing = [Sge { addr: 1, length: 0, lkey: 0xdead }];
    let bad = [Sge { addr: 1, length: 64, lkey: 0xdead }; 4];
    let fine = [b.region.sge(4096, 64).unwrap()];
    for pieces in [&fine[..], &[], &nothing, &bad] {
        b.region.write(0, &[0; 8192]).unwrap();
        b.qp.post_recv(&[RecvWr::new(10, pieces)]).unwrap();
        a.post(SendWr::write(1, &from, b.region.remote(100).unwrap()).with_imm(IMM));
        let sent = a.expect(&[(1, S::SUCCESS)])[0];
        assert_eq!(sent.result().unwrap().opcode(), WcOpcode::RDMA_WRITE);
        expect_told(&mut b, 10, 300);
        assert_eq!(b.bytes(100, 300), [7; 300]);
        assert_eq!((b.bytes(0, 100), b.bytes(400, 7792)), (vec![0; 100], vec![0; 7792]));
    }
    let inline = SendWr::write_inline(1, b"inlined", b.region.remote(0).unwrap());
    b.recv(10, 4096, 1);
    a.post(inline.with_imm(IMM));
    a.expect(&[(1, S::SUCCESS)]);
    expect_told(&mut b, 10, 7);
    assert_eq!(b.bytes(0, 7), b"inlined");
}

#[test]
fn q06_a_write_with_immediate_of_no_bytes_takes_a_receive_too() {
    let (mut a, mut b) = pair();
    let nowhere = RemoteAddr { addr: u64::MAX, rkey: 0xdead };
    let nothing = [Sge { addr: 1, length: 0, lkey: 0xdead }; 2];
    for pieces in [&nothing[..], &[]] {
        b.recv(10, 0, 8);
        a.post(SendWr::write(1, pieces, nowhere).with_imm(IMM));
        a.expect(&[(1, S::SUCCESS)]);
        expect_told(&mut b, 10, 0);
    }
}

#[test]
fn q06_a_write_with_immediate_may_be_scattered_and_long() {
    const LEN: usize = 1 << 20;
    let caps = QpCaps { max_send_sge: 16, ..CAPS };
    let (mut a, mut b) = pair_with(caps);
    let (source, target) = (a.pd.allocate(LEN, ALL).unwrap(), b.pd.allocate(LEN, ALL).unwrap());
    let bytes: Vec<_> = (0..LEN).map(|i| (i * 7 + i / 251) as u8).collect();
    source.write(0, &bytes).unwrap();
    let piece = LEN / 16;
    let from: Vec<_> = (0..16).map(|i| source.sge(i * piece, piece).unwrap()).collect();
    b.recv(10, 0, 8);
    a.post(SendWr::write(1, &from, target.remote(0).unwrap()).with_imm(IMM));
    a.expect(&[(1, S::SUCCESS)]);
    expect_told(&mut b, 10, LEN as u32);
    let mut arrived = vec![0; LEN];
    target.read(0, &mut arrived).unwrap();
    assert!(arrived == bytes);
}

/// What the `i`th of a row of requests is.
fn of_a_row<'a>(i: u64, from: &'a [Sge], to: RemoteAddr) -> SendWr<'a> {
    let write = SendWr::write(i, from, to);
    match i % 4 {
        0 => SendWr::send(i, from),
        1 => write.with_imm(IMM),
        2 => SendWr::send(i, from).with_imm(IMM),
        _ => write,
    }
}

#[test]
fn c10_receives_are_taken_in_the_order_of_sends_and_writes_with_immediate() {
    const COUNT: u64 = 120;
    let caps = QpCaps { max_send_wr: COUNT as u32, max_recv_wr: COUNT as u32, ..CAPS };
    let cq = open().create_cq(2 * COUNT as u32, None).unwrap();
    let (mut a, mut b) = (End::with(caps), End::with(caps));
    b.qp = b.pd.create_qp(&QpInit { caps, ..QpInit::new(&cq) }).unwrap();
    b.cq = cq;
    common::connect(&mut a, &mut b);
    let from = [a.region.sge(0, 8).unwrap()];
    let to = b.region.remote(0).unwrap();
    (0..COUNT).for_each(|wr_id| b.recv(wr_id, 4096, 64));
    a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
    (0..COUNT).for_each(|i| a.post(of_a_row(i, &from, to).unsignaled()));
    a.qp.modify(&QpAttr::to(Rts)).unwrap();
    let taken = COUNT / 4 * 3;
    let wanted: Vec<_> = (0..taken).map(|wr_id| (wr_id, S::SUCCESS)).collect();
    let all = b.expect(&wanted);
    for (i, wc) in (0..COUNT).filter(|i| i % 4 != 3).zip(&all) {
        let done = wc.result().unwrap();
        let told = done.opcode() == WcOpcode::RECV_RDMA_WITH_IMM;
        assert_eq!((told, done.imm().is_some()), (i % 4 == 1, i % 4 != 0), "request {i}");
    }
    a.expect_nothing();
}

#[test]
fn q07_without_a_receive_nothing_is_written_until_there_is_one() {
    let (mut a, mut b) = pair();
    a.post(SendWr::write_inline(1, b"waits", b.region.remote(0).unwrap()).with_imm(IMM));
    a.expect_nothing();
    assert_eq!(b.bytes(0, 5), [0; 5]);
    b.recv(10, 64, 8);
    a.expect(&[(1, S::SUCCESS)]);
    expect_told(&mut b, 10, 5);
    assert_eq!(b.bytes(0, 5), b"waits");
}

#[test]
fn q07_without_a_receive_in_time_it_fails_whatever_its_key() {
    let fine: fn(&End) -> RemoteAddr = |b| b.region.remote(0).unwrap();
    for remote in [fine, |_| RemoteAddr { addr: 0, rkey: 0 }] {
        let (mut a, mut b) = (End::new(), End::new());
        connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &impatient());
        b.qp.connect(a.qp.number()).unwrap();
        a.post(SendWr::write_inline(1, b"never", remote(&b)).with_imm(IMM));
        a.send(2, 0, 8);
        a.expect(&[(1, S::RNR_RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
        b.expect_nothing();
        assert_eq!((a.qp.state(), b.qp.state()), (Failed, Rts));
        assert_eq!(b.bytes(0, 8192), [0; 8192]);
    }
}

#[test]
fn q07_a_bad_remote_key_or_range_fails_both_and_the_receive_says_so() {
    let bad: [fn(&End) -> RemoteAddr; 5] = [
        |b| RemoteAddr { rkey: b.region.rkey() ^ 1, ..b.region.remote(0).unwrap() },
        |b| RemoteAddr { rkey: 0, ..b.region.remote(0).unwrap() },
        |b| b.region.remote(8192 - 7).unwrap(),
        |b| RemoteAddr { addr: b.region.addr() - 1, rkey: b.region.rkey() },
        |b| RemoteAddr { addr: u64::MAX - 3, rkey: b.region.rkey() },
    ];
    for remote in bad {
        let mut context = open();
        let (mut a, mut b) = (End::new(), watched(&context));
        common::connect(&mut a, &mut b);
        let (mut a, mut b) = run_on((a, b), good, |a, b| {
            a.post(SendWr::write_inline(1, b"no place", remote(b)).with_imm(IMM));
        });
        let theirs = (Some(S::LOC_ACCESS_ERR), Failed);
        expect_failure((&mut a, &mut b), (S::REM_ACCESS_ERR, Failed), theirs);
        assert_eq!(b.bytes(0, 8192), [0; 8192]);
        // The receive tells.
        assert_eq!(reports(&mut context), []);
    }
}

#[test]
fn q07_a_region_without_the_right_fails_both_and_the_receive_says_so() {
    let kept = std::cell::OnceCell::new();
    let (mut a, mut b) = run(good, |a, b| {
        let others = Access::REMOTE.difference(Access::REMOTE_WRITE) | Access::LOCAL_WRITE;
        let region = kept.get_or_init(|| b.pd.allocate(64, others).unwrap());
        a.post(SendWr::write_inline(1, b"x", region.remote(0).unwrap()).with_imm(IMM));
    });
    let theirs = (Some(S::LOC_ACCESS_ERR), Failed);
    expect_failure((&mut a, &mut b), (S::REM_ACCESS_ERR, Failed), theirs);
}

#[test]
fn q07_a_queue_pair_without_the_right_refuses_it_before_a_receive_is_taken() {
    for receives in [0, 3] {
        let mut context = open();
        let (mut a, mut b) = (End::new(), watched(&context));
        let others = Access::REMOTE.difference(Access::REMOTE_WRITE);
        b.qp.modify(&QpAttr::init(others)).unwrap();
        b.qp.modify(&QpAttr::rtr(a.qp.number())).unwrap();
        a.qp.connect(b.qp.number()).unwrap();
        (0..receives).for_each(|wr_id| b.recv(wr_id, 0, 8));
        let remote = RemoteAddr { addr: 0, rkey: 0 };
        a.post(SendWr::write_inline(1, b"x", remote).with_imm(IMM));
        a.expect(&[(1, S::REM_INV_REQ_ERR)]);
        let flushed: Vec<_> = (0..receives).map(|wr_id| (wr_id, S::WR_FLUSH_ERR)).collect();
        b.expect(&flushed);
        assert_eq!((a.qp.state(), b.qp.state()), (Failed, Failed));
        let told: Vec<_> = reports(&mut context).iter().map(|event| event.event_type).collect();
        assert_eq!(told, [AsyncEventType::QP_REQ_ERR]);
    }
}

#[test]
fn q07_a_bad_local_key_fails_here_only_and_takes_no_receive() {
    let (mut a, mut b) = run(good, |a, b| {
        let bad = [Sge { addr: 0, length: 8, lkey: 0 }];
        // Judged before the remote one.
        let remote = RemoteAddr { rkey: 0, ..b.region.remote(0).unwrap() };
        a.post(SendWr::write(1, &bad, remote).with_imm(IMM));
    });
    expect_failure((&mut a, &mut b), (S::LOC_PROT_ERR, Failed), (None, Rts));
}

#[test]
fn c10_what_came_before_a_write_that_fails_is_told_first() {
    let (mut a, mut b) = pair();
    (10..14).for_each(|wr_id| b.recv(wr_id, 0, 8));
    let nowhere = RemoteAddr { addr: 0, rkey: 0 };
    a.qp.post_send(&[
        SendWr::send_inline(1, b"first").unsignaled(),
        SendWr::write_inline(2, b"then", b.region.remote(64).unwrap()).with_imm(IMM).unsignaled(),
        SendWr::write_inline(3, b"not", nowhere).with_imm(IMM).unsignaled(),
    ])
    .unwrap();
    a.expect(&[(3, S::REM_ACCESS_ERR)]);
    let flushed = (13, S::WR_FLUSH_ERR);
    b.expect(&[(10, S::SUCCESS), (11, S::SUCCESS), (12, S::LOC_ACCESS_ERR), flushed]);
    assert_eq!((b.bytes(0, 5), b.bytes(64, 4)), (b"first".to_vec(), b"then".to_vec()));
}
