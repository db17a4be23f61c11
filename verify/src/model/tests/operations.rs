//! WRITE with immediate data, ATOMIC_WRITE, FLUSH.

use cq_core::transport::{Post, Refused};
use cq_core::wc::{WcOpcode, WcStatus as S};
use cq_core::wr::{Placement, RecvWr, RemoteAddr, Selectivity, SendWr};

use super::{EVERY, Pair, all, connect, taken};
use crate::device::{Access, Device, Mr, Qp, QpAttr, QpState, attr};

fn pair() -> Pair {
    Pair::new(16, attr::rts().rnr_retry(0))
}

/// A key that never was.
const NOWHERE: RemoteAddr = RemoteAddr { addr: 0, rkey: 0 };

#[test]
fn q06_a_write_with_immediate_takes_a_receive_and_leaves_its_sges_alone() {
    let mut pair = pair();
    let bad = [cq_core::wr::Sge { addr: 1, length: 2, lkey: 3 }];
    pair.b.post_recv(&[RecvWr::new(1, &bad)]).unwrap();
    let write = SendWr::write_inline(2, b"abc", pair.memory.remote(8)).with_imm([0, 0, 0, 9]);
    pair.a.post_send(&[write]).unwrap();
    let done = all(&mut pair.at_b)[0];
    let done = done.result().unwrap();
    assert_eq!((done.opcode(), done.byte_len()), (WcOpcode::RECV_RDMA_WITH_IMM, 3));
    assert_eq!(done.imm(), Some([0, 0, 0, 9]));
    assert_eq!(all(&mut pair.at_a)[0].result().unwrap().opcode(), WcOpcode::RDMA_WRITE);
    assert_eq!(&pair.bytes::<4>(8), b"abc\0");
}

#[test]
fn q07_a_write_with_immediate_that_finds_no_receive_writes_nothing_whatever_its_key() {
    for remote in [None, Some(NOWHERE)] {
        let mut pair = pair();
        let remote = remote.unwrap_or(pair.memory.remote(0));
        let write = SendWr::write_inline(1, b"abc", remote).with_imm([0; 4]);
        pair.a.post_send(&[write]).unwrap();
        assert_eq!(taken(&mut pair.at_a), [(1, S::RNR_RETRY_EXC_ERR)]);
        assert_eq!((pair.bytes::<3>(0), pair.b.state()), ([0; 3], QpState::RTR));
    }
}

#[test]
fn q07_a_write_with_immediate_and_a_bad_key_is_told_by_both_completions() {
    let mut pair = pair();
    pair.recv(1, 0, 8);
    pair.recv(2, 0, 8);
    pair.a.post_send(&[SendWr::write_inline(3, b"abc", NOWHERE).with_imm([0; 4])]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(3, S::REM_ACCESS_ERR)]);
    assert_eq!(taken(&mut pair.at_b), [(1, S::LOC_ACCESS_ERR), (2, S::WR_FLUSH_ERR)]);
    assert_eq!(pair.reports(), []);
    assert_eq!((pair.a.state(), pair.b.state()), (QpState::ERR, QpState::ERR));
}

#[test]
fn q07_an_atomic_write_is_judged_by_length_then_source_then_address_then_key() {
    let (here, word) = (8, [0x55; 8]);
    for (length, offset, status) in [
        (7, 9, S::LOC_LEN_ERR),
        (8, 0, S::SUCCESS),
        (8, 4, S::REM_INV_REQ_ERR),
        (8, 256, S::REM_ACCESS_ERR),
    ] {
        let mut pair = pair();
        pair.memory.write(here, &word);
        let sges = [pair.memory.sge(here as u64, 4), pair.memory.sge(here as u64, length - 4)];
        let remote = pair.memory.remote(offset);
        pair.a.post_send(&[SendWr::atomic_write(1, &sges, remote)]).unwrap();
        assert_eq!(taken(&mut pair.at_a), [(1, status)]);
        let expected = if status == S::SUCCESS { word } else { [0; 8] };
        assert_eq!(pair.bytes::<8>(0), expected);
    }
    let mut pair = pair();
    let outside = [pair.memory.sge(252, 8)];
    pair.a.post_send(&[SendWr::atomic_write(1, &outside, pair.memory.remote(1))]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::LOC_PROT_ERR)]);
}

#[test]
fn q06_an_atomic_write_needs_no_max_rd_atomic() {
    let mut pair = Pair::new(16, attr::rts().max_rd_atomic(0));
    let write = SendWr::atomic_write_inline(1, b"abcdefgh", pair.memory.remote(0));
    pair.a.post_send(&[write]).unwrap();
    assert_eq!(all(&mut pair.at_a)[0].result().unwrap().opcode(), WcOpcode::ATOMIC_WRITE);
    assert_eq!(&pair.bytes::<8>(0), b"abcdefgh");
}

#[test]
fn q06_a_flush_judges_as_much_of_the_memory_as_it_is_about() {
    const ALL: Placement = Placement::GLOBAL.union(Placement::PERSISTENT);
    use Selectivity::{Range, Region};
    let outside = |pair: &Pair| pair.memory.remote(200);
    for (length, selectivity, remote, status) in [
        (56, Range, None, S::SUCCESS),
        (57, Range, None, S::REM_ACCESS_ERR),
        (57, Region, None, S::SUCCESS),
        (0, Range, Some(NOWHERE), S::SUCCESS),
        (0, Region, Some(NOWHERE), S::REM_ACCESS_ERR),
    ] {
        let mut pair = pair();
        let remote = remote.unwrap_or(outside(&pair));
        pair.a.post_send(&[SendWr::flush(1, remote, length, ALL, selectivity)]).unwrap();
        assert_eq!(taken(&mut pair.at_a), [(1, status)], "{length} {selectivity:?}");
    }
}

#[test]
fn q07_a_flush_needs_its_placement_of_the_region_and_of_the_queue_pair() {
    let global = EVERY.difference(Access::FLUSH_PERSISTENT);
    for (region, qp, placement, status) in [
        (EVERY, global, Placement::GLOBAL, S::SUCCESS),
        (EVERY, global, Placement::PERSISTENT, S::REM_INV_REQ_ERR),
        (global, EVERY, Placement::all(), S::REM_ACCESS_ERR),
    ] {
        let mut pair = pair();
        let memory = pair.device.register(&pair.pd, 64, region).unwrap();
        pair.b.modify(&QpAttr::to(QpState::RESET)).unwrap();
        connect(&mut pair.b, pair.a.number(), &QpAttr::to(QpState::RTR));
        pair.b.modify(&attr::rts().access(qp)).unwrap();
        let flush = SendWr::flush(1, memory.remote(0), 8, placement, Selectivity::Range);
        pair.a.post_send(&[flush]).unwrap();
        assert_eq!(taken(&mut pair.at_a), [(1, status)]);
    }
}

#[test]
fn q04_a_flush_without_a_placement_is_refused() {
    let mut pair = pair();
    for placement in [Placement::empty(), Placement::from_bits_retain(5)] {
        let flush = SendWr::flush(1, NOWHERE, 8, placement, Selectivity::Range);
        assert_eq!(pair.a.post_send(&[flush]).unwrap_err().why, Refused::BadPlacement);
    }
}
