//! What READ, the atomics and FENCE do, and what every operation does with no bytes and with many pieces:
//! Q6.

use crate::common::{self, ALL, CAPS, End, S, open, pair, pair_with};
use cq_core::transport::{Post, Refused};
use cq_core::wc::WcOpcode;
use cq_core::wr::{Data, RecvWr, RemoteAddr, SendOp, SendWr, Sge};
use transport_rxe_loop::{AtomicCap, QpAttr, QpCaps, QpState};

/// The one completion of a request that succeeded: its opcode and its byte_len.
#[track_caller]
fn only(end: &mut End, wr_id: u64) -> (WcOpcode, u32) {
    let all = end.expect(&[(wr_id, S::SUCCESS)]);
    let done = all[0].result().unwrap();
    assert!(!done.is_recv());
    (done.opcode(), done.byte_len())
}

/// `count` pieces from `offset` on, with gaps between them; all but the last have `len` bytes.
fn scattered(end: &End, offset: usize, len: usize, count: usize, last: usize) -> Vec<Sge> {
    let piece = |i| {
        let len = if i + 1 == count { last } else { len };
        end.region.sge(offset + i * 256, len).unwrap()
    };
    (0..count).map(piece).collect()
}

fn gathered(end: &End, sges: &[Sge]) -> Vec<u8> {
    let start = |sge: &Sge| (sge.addr - end.region.addr()) as usize;
    sges.iter().flat_map(|sge| end.bytes(start(sge), sge.length as usize)).collect()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256 + 1) as u8).collect()
}

#[test]
fn q06_read() {
    let (mut a, mut b) = pair();
    for (len, from, to) in [(1, 3, 5), (8, 0, 0), (16, 1, 8), (300, 7, 7), (4097, 64, 1)] {
        let bytes = pattern(len);
        b.region.write(from, &bytes).unwrap();
        let sge = [a.region.sge(to, len).unwrap()];
        a.post(SendWr::read(1, &sge, b.region.remote(from).unwrap()));
        assert_eq!(only(&mut a, 1), (WcOpcode::RDMA_READ, len as u32));
        assert_eq!(a.bytes(to, len), bytes);
        assert_eq!(b.bytes(from, len), bytes);
    }
    b.expect_nothing();
}

#[test]
fn q06_fetch_add_wraps_and_brings_back_what_was_there() {
    let (mut a, mut b) = pair();
    b.set_word(16, u64::MAX - 1);
    let sge = [a.region.sge(800, 8).unwrap()];
    let remote = b.region.remote(16).unwrap();
    for (add, before, after) in
        [(1, u64::MAX - 1, u64::MAX), (3, u64::MAX, 2), (0, 2, 2), (1 << 63, 2, 1 << 63 | 2)]
    {
        a.post(SendWr::fetch_add(1, &sge, remote, add));
        assert_eq!(only(&mut a, 1), (WcOpcode::FETCH_ADD, 8));
        assert_eq!((a.word(800), b.word(16)), (before, after));
    }
    assert_eq!((b.word(8), b.word(24)), (0, 0));
    b.expect_nothing();
}

#[test]
fn q06_compare_swap_swaps_only_what_it_compares_with() {
    let (mut a, mut b) = pair();
    let sge = [a.region.sge(0, 8).unwrap()];
    let remote = b.region.remote(8).unwrap();
    b.set_word(8, 5);
    for (compare, swap, before, after) in [(4, 9, 5, 5), (5, 1 << 40 | 7, 5, 1 << 40 | 7)] {
        a.post(SendWr::compare_swap(1, &sge, remote, compare, swap));
        assert_eq!(only(&mut a, 1), (WcOpcode::COMP_SWAP, 8));
        assert_eq!((a.word(0), b.word(8)), (before, after));
    }
    b.expect_nothing();
}

#[test]
fn q06_what_an_atomic_brings_back_may_be_scattered() {
    let caps = QpCaps { max_send_sge: 16, ..CAPS };
    let (mut a, b) = pair_with(caps);
    let before = u64::from_le_bytes(*b"abcdefgh");
    let remote = b.region.remote(0).unwrap();
    for (len, count, last) in [(1, 8, 1), (3, 3, 2), (7, 2, 1), (8, 1, 8), (8, 2, 0)] {
        b.set_word(0, before);
        let sges = scattered(&a, 1, len, count, last);
        a.post(SendWr::fetch_add(1, &sges, remote, 1));
        assert_eq!(only(&mut a, 1), (WcOpcode::FETCH_ADD, 8));
        assert_eq!(gathered(&a, &sges), before.to_ne_bytes());
    }
    let mut sixteen = vec![Sge::default(); 8]; // pieces of no bytes are not looked at
    sixteen.extend(scattered(&a, 1, 1, 8, 1));
    a.post(SendWr::compare_swap(1, &sixteen, remote, before + 1, 77));
    assert_eq!(only(&mut a, 1), (WcOpcode::COMP_SWAP, 8));
    assert_eq!(b.word(0), 77);
}

#[test]
fn q06_a_full_queue_of_atomics_has_room_for_all_operands_and_pieces() {
    for max in 1..=open().attributes().max_sge {
        let caps = QpCaps { max_send_sge: max, max_inline: 0, ..CAPS };
        let (mut a, b) = pair_with(caps);
        let mut pieces = vec![Sge { addr: 1, length: 0, lkey: 2 }; max as usize];
        a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
        for slot in 0..8 {
            pieces[max as usize - 1] = a.region.sge(slot * 8, 8).unwrap();
            b.set_word(slot * 8, slot as u64);
            let remote = b.region.remote(slot * 8).unwrap();
            let swap = 1 << 60 | slot as u64;
            a.post(SendWr::compare_swap(slot as u64, &pieces, remote, slot as u64, swap));
        }
        a.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
        let all: Vec<_> = (0..8).map(|wr_id| (wr_id, S::SUCCESS)).collect();
        a.expect(&all);
        for slot in 0..8 {
            let words = (a.word(slot * 8), b.word(slot * 8));
            assert_eq!(words, (slot as u64, 1 << 60 | slot as u64));
        }
    }
}

#[test]
fn q06_fence_holds_a_request_until_what_was_read_is_there() {
    let (mut a, mut b) = pair();
    b.region.write(0, b"read").unwrap();
    b.set_word(8, 41);
    let (read, held) = ([a.region.sge(0, 4).unwrap()], [a.region.sge(8, 8).unwrap()]);
    let both = [a.region.sge(0, 16).unwrap()];
    b.recv(10, 1024, 64);
    a.qp.post_send(&[
        SendWr::read(1, &read, b.region.remote(0).unwrap()).unsignaled(),
        SendWr::fetch_add(2, &held, b.region.remote(8).unwrap(), 1).unsignaled(),
        SendWr::write(3, &both, b.region.remote(2048).unwrap()).fenced().unsignaled(),
        SendWr::send(4, &both).fenced(),
    ])
    .unwrap();
    a.expect(&[(4, S::SUCCESS)]);
    b.expect(&[(10, S::SUCCESS)]);
    for offset in [1024, 2048] {
        assert_eq!(b.bytes(offset, 4), b"read");
        assert_eq!(b.word(offset + 8), 41);
    }
}

#[test]
fn q06_no_bytes_no_keys() {
    let (mut a, mut b) = pair();
    let nothing = [Sge { addr: 1, length: 0, lkey: 0xdead }; 2];
    let nowhere = RemoteAddr { addr: u64::MAX, rkey: 0xdead };
    for pieces in [&nothing[..], &[]] {
        b.qp.post_recv(&[RecvWr::new(10, pieces)]).unwrap();
        for (wr, opcode) in [
            (SendWr::send(1, pieces), WcOpcode::SEND),
            (SendWr::write(1, pieces, nowhere), WcOpcode::RDMA_WRITE),
            (SendWr::write_inline(1, &[], nowhere), WcOpcode::RDMA_WRITE),
            (SendWr::read(1, pieces, nowhere), WcOpcode::RDMA_READ),
        ] {
            a.post(wr);
            assert_eq!(only(&mut a, 1), (opcode, 0));
        }
        let received = b.expect(&[(10, S::SUCCESS)]);
        assert_eq!(received[0].result().unwrap().byte_len(), 0);
    }
    assert_eq!((a.qp.state(), b.qp.state()), (QpState::Rts, QpState::Rts));
}

#[test]
fn q06_as_many_pieces_as_the_device_allows() {
    let max = open().attributes().max_sge as usize;
    let caps = QpCaps { max_send_sge: max as u32, max_recv_sge: max as u32, max_inline: 0, ..CAPS };
    let (mut a, mut b) = pair_with(caps);
    let len = (max - 1) * 9 + 4;
    let bytes = pattern(len);
    let (from, to) = (scattered(&a, 1, 9, max, 4), scattered(&b, 4098, 9, max, 100));
    for (sge, bytes) in from.iter().zip(bytes.chunks(9)) {
        a.region.write((sge.addr - a.region.addr()) as usize, bytes).unwrap();
    }
    b.qp.post_recv(&[RecvWr::new(10, &to)]).unwrap();
    a.post(SendWr::send(1, &from));
    assert_eq!(only(&mut a, 1).0, WcOpcode::SEND);
    b.expect(&[(10, S::SUCCESS)]);
    assert_eq!(gathered(&b, &to)[..len], bytes);

    a.post(SendWr::write(1, &from, b.region.remote(3).unwrap()));
    assert_eq!(only(&mut a, 1).0, WcOpcode::RDMA_WRITE);
    assert_eq!(b.bytes(3, len), bytes);

    for sge in &from {
        a.region.write((sge.addr - a.region.addr()) as usize, &[0; 9]).unwrap();
    }
    a.post(SendWr::read(1, &from, b.region.remote(3).unwrap()));
    assert_eq!(only(&mut a, 1), (WcOpcode::RDMA_READ, len as u32));
    assert_eq!(gathered(&a, &from), bytes);
}

#[test]
fn q07_data_that_comes_back_can_not_be_inline() {
    let (mut a, b) = pair();
    let remote = b.region.remote(0).unwrap();
    for op in [
        SendOp::Read { remote },
        SendOp::CompareSwap { remote, compare: 0, swap: 1 },
        SendOp::FetchAdd { remote, add: 1 },
    ] {
        for bytes in [&[0; 8][..], &[], &[0; 65]] {
            let wr = SendWr::new(1, op, Data::Inline(bytes));
            assert_eq!(a.qp.post_send(&[wr]).unwrap_err().why, Refused::InlineResult);
        }
    }
    a.expect_nothing();
    assert_eq!(b.word(0), 0);
}

#[test]
fn q07_max_rd_atomic_0_refuses_at_posting_until_it_is_raised() {
    let (mut a, mut b) = (End::new(), End::new());
    b.qp.connect(a.qp.number()).unwrap();
    common::bring_to(&mut a.qp, b.qp.number(), QpState::Rtr);
    a.qp.modify(&QpAttr::rts().max_rd_atomic(0)).unwrap();
    let sge = [a.region.sge(0, 8).unwrap()];
    let remote = b.region.remote(0).unwrap();
    let all = [
        SendWr::read(1, &sge, remote),
        SendWr::compare_swap(1, &sge, remote, 0, 0),
        SendWr::fetch_add(1, &sge, remote, 0),
    ];
    for wr in all {
        assert_eq!(a.qp.post_send(&[wr]).unwrap_err().why, Refused::NoReadAtomic);
    }
    a.post(SendWr::write(2, &sge, remote));
    a.expect(&[(2, S::SUCCESS)]);
    a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
    a.qp.modify(&QpAttr::new().max_rd_atomic(1)).unwrap();
    a.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
    a.qp.post_send(&all).unwrap();
    a.expect(&[(1, S::SUCCESS); 3]);
}

#[test]
fn q07_max_rd_atomic_is_0_before_it_is_given_and_after_reset() {
    let (mut a, b) = pair();
    let sge = [a.region.sge(0, 8).unwrap()];
    let read = SendWr::read(1, &sge, b.region.remote(0).unwrap());
    a.post(read);
    a.expect(&[(1, S::SUCCESS)]);
    for state in [QpState::Reset, QpState::Init, QpState::Err] {
        let attr = if state == QpState::Init { QpAttr::init(ALL) } else { QpAttr::to(state) };
        a.qp.modify(&attr).unwrap();
    }
    assert_eq!(a.qp.post_send(&[read]).unwrap_err().why, Refused::NoReadAtomic);
    a.post(SendWr::send(2, &sge));
    a.expect(&[(2, S::WR_FLUSH_ERR)]);
}

#[test]
fn the_device_says_how_many_reads_and_atomics_it_takes() {
    let attributes = open().attributes();
    assert_eq!((attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom), (16, 16));
    assert_eq!(attributes.atomic_cap, AtomicCap::Hca);
    let mut a = End::new();
    common::bring_to(&mut a.qp, 1, QpState::Init);
    for attr in [QpAttr::rtr(1).max_dest_rd_atomic(17), QpAttr::rtr(1).max_dest_rd_atomic(255)] {
        a.qp.modify(&attr).unwrap_err();
    }
    a.qp.modify(&QpAttr::rtr(1).max_dest_rd_atomic(16)).unwrap();
    a.qp.modify(&QpAttr::rts().max_rd_atomic(17)).unwrap_err();
    a.qp.modify(&QpAttr::rts().max_rd_atomic(16)).unwrap();
}
