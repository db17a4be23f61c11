//! The numbers of `<infiniband/verbs.h>`, name by name, and each field's way into the bytes (C1, C2).
#![cfg(not(loom))]

use cq_core::setup::inc_rkey;
use cq_core::soft::SoftCq;
use cq_core::transport::Poll;
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_core::wr::{Placement, RemoteAddr, Selectivity, SendFlags, SendOp, SendWr};

#[test]
fn c02_statuses_by_name() {
    let table = [
        (WcStatus::SUCCESS, 0, "SUCCESS"),
        (WcStatus::LOC_LEN_ERR, 1, "LOC_LEN_ERR"),
        (WcStatus::LOC_QP_OP_ERR, 2, "LOC_QP_OP_ERR"),
        (WcStatus::LOC_EEC_OP_ERR, 3, "LOC_EEC_OP_ERR"),
        (WcStatus::LOC_PROT_ERR, 4, "LOC_PROT_ERR"),
        (WcStatus::WR_FLUSH_ERR, 5, "WR_FLUSH_ERR"),
        (WcStatus::MW_BIND_ERR, 6, "MW_BIND_ERR"),
        (WcStatus::BAD_RESP_ERR, 7, "BAD_RESP_ERR"),
        (WcStatus::LOC_ACCESS_ERR, 8, "LOC_ACCESS_ERR"),
        (WcStatus::REM_INV_REQ_ERR, 9, "REM_INV_REQ_ERR"),
        (WcStatus::REM_ACCESS_ERR, 10, "REM_ACCESS_ERR"),
        (WcStatus::REM_OP_ERR, 11, "REM_OP_ERR"),
        (WcStatus::RETRY_EXC_ERR, 12, "RETRY_EXC_ERR"),
        (WcStatus::RNR_RETRY_EXC_ERR, 13, "RNR_RETRY_EXC_ERR"),
        (WcStatus::LOC_RDD_VIOL_ERR, 14, "LOC_RDD_VIOL_ERR"),
        (WcStatus::REM_INV_RD_REQ_ERR, 15, "REM_INV_RD_REQ_ERR"),
        (WcStatus::REM_ABORT_ERR, 16, "REM_ABORT_ERR"),
        (WcStatus::INV_EECN_ERR, 17, "INV_EECN_ERR"),
        (WcStatus::INV_EEC_STATE_ERR, 18, "INV_EEC_STATE_ERR"),
        (WcStatus::FATAL_ERR, 19, "FATAL_ERR"),
        (WcStatus::RESP_TIMEOUT_ERR, 20, "RESP_TIMEOUT_ERR"),
        (WcStatus::GENERAL_ERR, 21, "GENERAL_ERR"),
        (WcStatus::TM_ERR, 22, "TM_ERR"),
        (WcStatus::TM_RNDV_INCOMPLETE, 23, "TM_RNDV_INCOMPLETE"),
    ];
    assert_eq!(table.len(), WcStatus::KNOWN.len());
    for (status, number, name) in table {
        assert_eq!((status.0, status.name()), (number, Some(name)));
    }
}

#[test]
fn c02_opcodes_by_name() {
    let table = [
        (WcOpcode::SEND, 0, "SEND"),
        (WcOpcode::RDMA_WRITE, 1, "RDMA_WRITE"),
        (WcOpcode::RDMA_READ, 2, "RDMA_READ"),
        (WcOpcode::COMP_SWAP, 3, "COMP_SWAP"),
        (WcOpcode::FETCH_ADD, 4, "FETCH_ADD"),
        (WcOpcode::BIND_MW, 5, "BIND_MW"),
        (WcOpcode::LOCAL_INV, 6, "LOCAL_INV"),
        (WcOpcode::TSO, 7, "TSO"),
        (WcOpcode::FLUSH, 8, "FLUSH"),
        (WcOpcode::ATOMIC_WRITE, 9, "ATOMIC_WRITE"),
        (WcOpcode::RECV, 128, "RECV"),
        (WcOpcode::RECV_RDMA_WITH_IMM, 129, "RECV_RDMA_WITH_IMM"),
        (WcOpcode::TM_ADD, 130, "TM_ADD"),
        (WcOpcode::TM_DEL, 131, "TM_DEL"),
        (WcOpcode::TM_SYNC, 132, "TM_SYNC"),
        (WcOpcode::TM_RECV, 133, "TM_RECV"),
        (WcOpcode::TM_NO_TAG, 134, "TM_NO_TAG"),
        (WcOpcode::DRIVER1, 135, "DRIVER1"),
        (WcOpcode::DRIVER2, 136, "DRIVER2"),
        (WcOpcode::DRIVER3, 137, "DRIVER3"),
    ];
    assert_eq!(table.len(), WcOpcode::KNOWN.len());
    for (opcode, number, name) in table {
        assert_eq!((opcode.0, opcode.name()), (number, Some(name)));
    }
}

#[test]
fn c02_flags_by_name() {
    let flags = [
        (WcFlags::GRH, 1),
        (WcFlags::WITH_IMM, 2),
        (WcFlags::IP_CSUM_OK, 4),
        (WcFlags::WITH_INV, 8),
        (WcFlags::TM_SYNC_REQ, 16),
        (WcFlags::TM_MATCH, 32),
        (WcFlags::TM_DATA_VALID, 64),
    ];
    assert!(flags.iter().all(|(flag, number)| flag.bits() == *number));
    let flags = [(SendFlags::FENCE, 1), (SendFlags::SIGNALED, 2), (SendFlags::SOLICITED, 4)];
    assert!(flags.iter().all(|(flag, number)| flag.bits() == *number));
}

/// A completion in which no two fields have a byte in common, and its bytes in C.
#[cfg(target_endian = "little")]
fn distinct() -> (Wc, [u8; 48]) {
    let wc = Wc::new(0x0807_0605_0403_0201, WcStatus(0x0c0b_0a09), 0x201f_1e1d)
        .with_opcode(WcOpcode(0x100f_0e0d))
        .with_vendor_err(0x1413_1211)
        .with_byte_len(0x1817_1615)
        .with_src_qp(0x2423_2221)
        .with_imm([0x19, 0x1a, 0x1b, 0x1c])
        .with_flags(WcFlags::from_bits_retain(0x2827_2624))
        .with_path(0x2a29, 0x2c2b, 0x2d, 0x2e);
    let mut bytes = core::array::from_fn(|at| at as u8 + 1);
    bytes[36] = 0x26; // with the flag that came with the immediate
    bytes[46..].fill(0);
    (wc, bytes)
}

#[test]
#[cfg(target_endian = "little")]
fn c01_each_setter_writes_its_own_bytes() {
    let (wc, bytes) = distinct();
    assert_eq!(wc.to_bytes(), bytes);
}

#[test]
#[cfg(target_endian = "little")]
fn c01_what_comes_out_of_a_queue_has_every_byte_and_clean_padding() {
    let (wc, bytes) = distinct();
    let mut storage = SoftCq::<1>::new();
    let (mut producer, mut consumer) = storage.split();
    producer.push(&wc).unwrap();
    let mut out = [Wc::default()];
    assert_eq!(consumer.poll(&mut out), Ok(1));
    // SAFETY: a completion is 48 bytes without padding; C would read them just so.
    let raw: [u8; 48] = unsafe { core::mem::transmute(out[0]) };
    assert_eq!(raw, bytes);
}

#[test]
fn requests_say_what_their_builders_are_called() {
    let remote = RemoteAddr { addr: 1, rkey: 2 };
    let write = SendWr::write_inline(1, b"x", remote);
    assert_eq!(write.op, SendOp::Write { remote, imm: None });
    assert_eq!(write.with_imm([7; 4]).op, SendOp::Write { remote, imm: Some([7; 4]) });
    let send = SendWr::send(1, &[]);
    assert_eq!((send.op, send.flags), (SendOp::Send { imm: None }, SendFlags::SIGNALED));
    assert_eq!(send.with_imm([7; 4]).op, SendOp::Send { imm: Some([7; 4]) });
    let urgent = send.solicited().unsignaled();
    assert_eq!(urgent.flags, SendFlags::SOLICITED);
    assert_eq!(SendWr::send_with_inv(1, &[], 9).op, SendOp::SendInvalidate { rkey: 9 });
    assert_eq!(
        SendWr::send_with_inv(1, &[], 9).with_imm([7; 4]).op,
        SendOp::SendInvalidate { rkey: 9 }
    );
    assert_eq!(SendWr::atomic_write_inline(1, &[3; 8], remote).data.len(), 8);
    let (placement, selectivity) = (Placement::GLOBAL, Selectivity::Region);
    let flush = SendWr::flush(1, remote, 64, placement, selectivity);
    assert_eq!(flush.op, SendOp::Flush { remote, length: 64, placement, selectivity });
    assert!(!flush.op.carries_data() && flush.data.is_empty());
    assert!(!SendWr::local_invalidate(1, 9).op.carries_data());
    assert!(SendWr::atomic_write(1, &[], remote).op.carries_data());
}

#[test]
fn q06_the_next_key_of_a_window_differs_in_its_low_byte() {
    assert_eq!(inc_rkey(0x1234_5678), 0x1234_5679);
    assert_eq!(inc_rkey(0x1234_56ff), 0x1234_5600);
    assert_eq!(inc_rkey(u32::MAX), 0xffff_ff00);
}
