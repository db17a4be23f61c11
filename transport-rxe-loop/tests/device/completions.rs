//! What completes, how often, and in which order: C4–C11.

use crate::common::{ALL, CAPS, End, S, connect, open, pair, settle, take};
use cq_core::transport::{PollCq, Post};
use cq_core::wc::{Wc, WcOpcode};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{QpAttr, QpInit, QpState};

#[test]
fn q06_a_send_carries_its_bytes() {
    let (mut a, mut b) = pair();
    a.region.write(3, b"sixteen bytes ok").unwrap();
    b.recv(1, 100, 64);
    a.send(2, 3, 16);
    let wc = b.expect(&[(1, S::SUCCESS)])[0];
    let done = wc.result().unwrap();
    assert_eq!((done.opcode(), done.byte_len(), done.imm()), (WcOpcode::RECV, 16, None));
    assert_eq!(b.bytes(100, 16), b"sixteen bytes ok");
    let wc = a.expect(&[(2, S::SUCCESS)])[0];
    assert_eq!(wc.result().unwrap().opcode(), WcOpcode::SEND);
}

#[test]
fn q06_pieces_are_gathered_and_scattered_at_any_alignment() {
    let (mut a, mut b) = pair();
    let bytes: Vec<u8> = (0..200).collect();
    a.region.write(0, &bytes).unwrap();
    let cut = |end: &End, cuts: &[(usize, usize)]| -> Vec<_> {
        cuts.iter().map(|&(offset, len)| end.region.sge(offset, len).unwrap()).collect()
    };
    let from = cut(&a, &[(0, 7), (7, 0), (7, 93), (100, 100)]);
    let to = cut(&b, &[(1001, 50), (2000, 1), (3003, 500)]);
    b.qp.post_recv(&[RecvWr::new(1, &to)]).unwrap();
    a.qp.post_send(&[SendWr::send(2, &from)]).unwrap();
    b.expect(&[(1, S::SUCCESS)]);
    let got = [b.bytes(1001, 50), b.bytes(2000, 1), b.bytes(3003, 149)].concat();
    assert_eq!(got, bytes);
    assert_eq!(b.bytes(3003 + 149, 8), [0; 8]);
}

#[test]
fn q06_inline_bytes_are_free_when_posting_returns() {
    let (mut a, mut b) = pair();
    let mut bytes = *b"inline";
    a.qp.post_send(&[SendWr::send_inline(2, &bytes)]).unwrap(); // waits for a receive
    bytes.fill(0);
    b.recv(1, 0, 64);
    b.expect(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 6), b"inline");
    a.expect(&[(2, S::SUCCESS)]);
}

#[test]
fn q06_zero_bytes_need_no_keys() {
    let (mut a, mut b) = pair();
    let nothing = cq_core::wr::Sge { addr: 1, length: 0, lkey: 0xdead };
    b.qp.post_recv(&[RecvWr::new(1, &[nothing]), RecvWr::new(2, &[])]).unwrap();
    a.qp.post_send(&[SendWr::send(3, &[nothing]), SendWr::send(4, &[])]).unwrap();
    let got = b.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(got[0].result().unwrap().byte_len(), 0);
    let remote = cq_core::wr::RemoteAddr { addr: 0, rkey: 0xdead };
    a.qp.post_send(&[SendWr::write(5, &[], remote)]).unwrap();
    a.expect(&[(3, S::SUCCESS), (4, S::SUCCESS), (5, S::SUCCESS)]);
}

#[test]
fn q06_a_write_arrives_and_its_target_is_not_told() {
    let (mut a, mut b) = pair();
    for len in [1, 7, 8, 9, 64, 100, 4096, 5000] {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8 + 1).collect();
        a.region.write(5, &bytes).unwrap();
        let sge = a.region.sge(5, len).unwrap();
        a.qp.post_send(&[SendWr::write(7, &[sge], b.region.remote(11).unwrap())]).unwrap();
        let wc = a.expect(&[(7, S::SUCCESS)])[0];
        assert_eq!(wc.result().unwrap().opcode(), WcOpcode::RDMA_WRITE);
        assert_eq!(b.bytes(11, len), bytes);
        assert_eq!(b.bytes(11 + len, 4), [0; 4]);
    }
    b.expect_nothing();
}

#[test]
fn c05_immediate_data_arrives_in_network_order() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 64);
    a.qp.post_send(&[SendWr::send_inline(2, b"x").with_imm([1, 2, 3, 4])]).unwrap();
    let wc = b.expect(&[(1, S::SUCCESS)])[0];
    assert_eq!(wc.result().unwrap().imm(), Some([1, 2, 3, 4]));
    assert_eq!(wc.result().unwrap().byte_len(), 1);
}

#[test]
fn c08_an_unsignaled_send_completes_only_if_it_fails() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 64);
    b.recv(2, 0, 4);
    a.qp.post_send(&[SendWr::send_inline(10, b"fits").unsignaled()]).unwrap();
    b.expect(&[(1, S::SUCCESS)]);
    a.expect_nothing();
    a.qp.post_send(&[SendWr::send_inline(11, b"too long").unsignaled()]).unwrap();
    a.expect(&[(11, S::REM_INV_REQ_ERR)]);
    b.expect(&[(2, S::LOC_LEN_ERR)]);
}

#[test]
fn c08_sq_sig_all_signals_every_send() {
    let (mut a, mut b) = (End::new(), End::new());
    let init = QpInit { sq_sig_all: true, caps: CAPS, ..QpInit::new(&a.cq) };
    a.qp = a.pd.create_qp(&init).unwrap();
    connect(&mut a, &mut b);
    b.recv(1, 0, 8);
    a.qp.post_send(&[SendWr::send_inline(2, b"x").unsignaled()]).unwrap();
    a.expect(&[(2, S::SUCCESS)]);
}

#[test]
fn c09_a_signaled_completion_covers_what_was_posted_before() {
    let (mut a, mut b) = pair();
    for wr_id in 0..4 {
        b.recv(wr_id, 8 * wr_id as usize, 8);
    }
    let wrs: Vec<_> = (0..4)
        .map(|wr_id| SendWr::send_inline(wr_id, b"12345678"))
        .map(|wr| if wr.wr_id == 3 { wr } else { wr.unsignaled() })
        .collect();
    a.qp.post_send(&wrs).unwrap();
    a.expect(&[(3, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 32), b"12345678".repeat(4));
}

#[test]
fn c10_each_queue_completes_in_the_order_posted() {
    let (mut a, mut b) = pair();
    let ids: Vec<_> = (0..8).map(|wr_id| (wr_id, S::SUCCESS)).collect();
    for round in 0..5 {
        for wr_id in 0..8 {
            if round % 2 == 0 { b.recv(wr_id, 0, 64) } else { a.send(wr_id, 0, 9) }
        }
        for wr_id in 0..8 {
            if round % 2 == 0 { a.send(wr_id, 0, 9) } else { b.recv(wr_id, 0, 64) }
        }
        a.expect(&ids);
        b.expect(&ids);
    }
}

#[test]
fn c10_a_flush_comes_after_what_completed() {
    let (mut a, mut b) = pair();
    for wr_id in 0..3 {
        b.recv(wr_id, 0, 8);
    }
    a.send(0, 0, 8);
    a.send(1, 0, 9);
    b.expect(&[(0, S::SUCCESS), (1, S::LOC_LEN_ERR), (2, S::WR_FLUSH_ERR)]);
    a.expect(&[(0, S::SUCCESS), (1, S::REM_INV_REQ_ERR)]);
}

#[test]
fn c11_an_error_breaks_its_queue_pair_and_not_the_completion_queue() {
    let context = open();
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(64, None).unwrap());
    let region = pd.allocate(64, ALL).unwrap();
    let sge = [region.sge(0, 8).unwrap()];
    let mut qps: Vec<_> = (0..4).map(|_| pd.create_qp(&QpInit::new(&cq)).unwrap()).collect();
    for (one, other) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        let peer = qps[other].number();
        qps[one].connect(peer).unwrap();
    }
    qps[1].post_recv(&[RecvWr::new(1, &[])]).unwrap();
    qps[3].post_recv(&[RecvWr::new(3, &sge)]).unwrap();
    qps[0].post_send(&[SendWr::send(0, &sge)]).unwrap();
    qps[2].post_send(&[SendWr::send(2, &sge)]).unwrap();
    let got: Vec<_> = settle(&mut cq, 4).iter().map(|wc| (wc.wr_id(), wc.status())).collect();
    let wanted = [(1, S::LOC_LEN_ERR), (0, S::REM_INV_REQ_ERR), (3, S::SUCCESS), (2, S::SUCCESS)];
    assert_eq!(got, wanted);
    let states: Vec<_> = qps.iter().map(|qp| qp.state()).collect();
    assert_eq!(states, [QpState::Err, QpState::Err, QpState::Rts, QpState::Rts]);
}

#[test]
fn c04_undefined_fields_of_a_failure_are_poisoned() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 4);
    a.send(2, 0, 8);
    a.send(3, 0, 8);
    let failures = [
        a.expect(&[(2, S::REM_INV_REQ_ERR), (3, S::WR_FLUSH_ERR)]),
        b.expect(&[(1, S::LOC_LEN_ERR)]),
    ];
    for wc in failures.concat() {
        let bytes = wc.to_bytes();
        assert_eq!(bytes[12..16], [0xa5; 4], "opcode");
        assert_eq!(bytes[16..20], [0; 4], "vendor_err is defined");
        assert_eq!(bytes[20..28], [0xa5; 8], "byte_len and imm_data");
        assert_eq!(bytes[32..36], [0xa5; 4], "src_qp");
        assert_eq!(bytes[40..46], [0xa5; 6], "path");
        assert!(wc.result().is_err());
    }
}

#[test]
fn a_queue_pair_connected_to_itself_works() {
    let mut a = End::new();
    let number = a.qp.number();
    a.qp.connect(number).unwrap();
    a.region.write(0, b"to myself").unwrap();
    a.recv(1, 100, 64);
    a.send(2, 0, 9);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(a.bytes(100, 9), b"to myself");

    a.recv(3, 0, 4);
    a.recv(4, 0, 4);
    a.send(5, 0, 9);
    a.expect(&[(3, S::LOC_LEN_ERR), (5, S::REM_INV_REQ_ERR), (4, S::WR_FLUSH_ERR)]);
    assert_eq!(a.qp.state(), QpState::Err);
}

#[test]
fn one_queue_pair_on_two_completion_queues() {
    let (mut a, mut b) = (End::new(), End::new());
    let mut recvs = open().create_cq(64, None).unwrap();
    let init = QpInit { recv_cq: &recvs, caps: CAPS, ..QpInit::new(&a.cq) };
    a.qp = a.pd.create_qp(&init).unwrap();
    connect(&mut a, &mut b);
    b.recv(1, 0, 8);
    a.recv(2, 0, 8);
    a.send(3, 0, 8);
    b.send(4, 0, 8);
    a.recv(5, 0, 8);
    a.expect(&[(3, S::SUCCESS)]);
    a.qp.modify(&QpAttr::to(QpState::Err)).unwrap();
    let got: Vec<_> = take(&mut recvs).iter().map(|wc| (wc.wr_id(), wc.status())).collect();
    assert_eq!(got, [(2, S::SUCCESS), (5, S::WR_FLUSH_ERR)]);
    a.expect_nothing();
}

#[test]
fn q08_a_write_is_visible_before_a_later_send_completes() {
    let (mut a, mut b) = pair();
    b.recv(1, 4096, 8);
    a.region.write(0, &[7; 512]).unwrap();
    let write = [a.region.sge(0, 512).unwrap()];
    let remote = b.region.remote(0).unwrap();
    a.qp.post_send(&[
        SendWr::write(2, &write, remote).unsignaled(),
        SendWr::send_inline(3, b"done"),
    ])
    .unwrap();
    b.expect(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 512), [7; 512]);
}

#[test]
fn p04_room_past_the_count_stays_untouched() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 8);
    a.send(2, 0, 8);
    let mark = Wc::new(99, S::GENERAL_ERR, 1);
    let mut room = [mark; 3];
    assert_eq!(b.cq.poll(&mut room), Ok(1));
    assert_eq!(room[1..], [mark, mark]);
    assert_eq!(b.cq.poll(&mut []), Ok(0));
}

#[test]
fn two_opens_share_one_device() {
    let other = open();
    let mut a = End::new();
    let mut cq = other.create_cq(4, None).unwrap();
    let pd = other.alloc_pd();
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect(a.qp.number()).unwrap();
    a.qp.connect(qp.number()).unwrap();
    a.recv(1, 0, 8);
    qp.post_send(&[SendWr::send_inline(2, b"hi")]).unwrap();
    a.expect(&[(1, S::SUCCESS)]);
    assert_eq!(settle(&mut cq, 1)[0].wr_id(), 2);
}

#[test]
fn c07_byte_len_counts_what_arrived_without_the_immediate() {
    let (mut a, mut b) = pair();
    for len in [0, 1, 63, 64] {
        b.recv(1, 0, 64);
        let sge = a.region.sge(0, len).unwrap();
        a.qp.post_send(&[SendWr::send(2, &[sge]).with_imm([9; 4])]).unwrap();
        let wc = b.expect(&[(1, S::SUCCESS)])[0];
        assert_eq!(wc.result().unwrap().byte_len() as usize, len);
        a.expect(&[(2, S::SUCCESS)]);
    }
}
