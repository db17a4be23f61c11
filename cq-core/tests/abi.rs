//! The numbers of `<infiniband/verbs.h>`, name by name, and each field's way into the bytes (C1, C2).
#![cfg(not(loom))]

use cq_core::async_event::AsyncEventType;
use cq_core::queue::SoftCq;
use cq_core::setup::{Access, QpAttrMask, QpCaps, QpType, inc_rkey};
use cq_core::transport::PollCq;
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

#[test]
fn c02_texts_of_opcodes() {
    let texts = [
        "send",
        "RDMA write",
        "RDMA read",
        "compare and swap",
        "fetch and add",
        "bind memory window",
        "local invalidate",
        "TSO",
        "flush",
        "atomic write",
        "receive",
        "receive of RDMA write with immediate",
        "TM add",
        "TM delete",
        "TM sync",
        "TM receive",
        "TM receive without tag",
        "driver 1",
        "driver 2",
        "driver 3",
    ];
    assert!(WcOpcode::KNOWN.iter().map(WcOpcode::to_string).eq(texts));
    assert_eq!(WcOpcode(10).to_string(), "unknown");
}

#[test]
fn o02_asynchronous_events_by_number_name_and_text() {
    let table = [
        (AsyncEventType::CQ_ERR, "CQ_ERR", "CQ error"),
        (AsyncEventType::QP_FATAL, "QP_FATAL", "local work queue catastrophic error"),
        (AsyncEventType::QP_REQ_ERR, "QP_REQ_ERR", "invalid request local work queue error"),
        (AsyncEventType::QP_ACCESS_ERR, "QP_ACCESS_ERR", "local access violation work queue error"),
        (AsyncEventType::COMM_EST, "COMM_EST", "communication established"),
        (AsyncEventType::SQ_DRAINED, "SQ_DRAINED", "send queue drained"),
        (AsyncEventType::PATH_MIG, "PATH_MIG", "path migrated"),
        (AsyncEventType::PATH_MIG_ERR, "PATH_MIG_ERR", "path migration request error"),
        (AsyncEventType::DEVICE_FATAL, "DEVICE_FATAL", "local catastrophic error"),
        (AsyncEventType::PORT_ACTIVE, "PORT_ACTIVE", "port active"),
        (AsyncEventType::PORT_ERR, "PORT_ERR", "port error"),
        (AsyncEventType::LID_CHANGE, "LID_CHANGE", "LID change"),
        (AsyncEventType::PKEY_CHANGE, "PKEY_CHANGE", "P_Key change"),
        (AsyncEventType::SM_CHANGE, "SM_CHANGE", "SM change"),
        (AsyncEventType::SRQ_ERR, "SRQ_ERR", "SRQ catastrophic error"),
        (AsyncEventType::SRQ_LIMIT_REACHED, "SRQ_LIMIT_REACHED", "SRQ limit reached"),
        (AsyncEventType::QP_LAST_WQE_REACHED, "QP_LAST_WQE_REACHED", "last WQE reached"),
        (AsyncEventType::CLIENT_REREGISTER, "CLIENT_REREGISTER", "client reregistration"),
        (AsyncEventType::GID_CHANGE, "GID_CHANGE", "GID table change"),
        (AsyncEventType::WQ_FATAL, "WQ_FATAL", "WQ fatal"),
    ];
    for ((event, name, text), number) in table.into_iter().zip(0..) {
        assert_eq!((event.0, event.name(), event.to_string().as_str()), (number, Some(name), text));
        assert_eq!(format!("{event:?}"), name);
    }
    assert!(AsyncEventType::KNOWN.iter().eq(table.iter().map(|(event, ..)| event)));
    let unknown = AsyncEventType(20);
    assert_eq!((unknown.name(), unknown.to_string().as_str()), (None, "unknown"));
    assert_eq!(format!("{unknown:?}"), "AsyncEventType(20)");
}

#[test]
fn c03_a_number_without_a_name_has_none() {
    for number in [24, 25, 127, u32::MAX] {
        let status = WcStatus(number);
        assert_eq!((status.name(), status.to_string().as_str()), (None, "unknown"));
        assert!(!WcStatus::KNOWN.contains(&status));
    }
    assert!(WcStatus::KNOWN.is_sorted() && WcOpcode::KNOWN.is_sorted());
    assert!([10, 127, 138, u32::MAX].iter().all(|number| WcOpcode(*number).name().is_none()));
}

#[test]
fn rights_by_name() {
    let rights = [
        (Access::LOCAL_WRITE, 1),
        (Access::REMOTE_WRITE, 2),
        (Access::REMOTE_READ, 4),
        (Access::REMOTE_ATOMIC, 8),
        (Access::MW_BIND, 16),
        (Access::ZERO_BASED, 32),
        (Access::FLUSH_GLOBAL, 256),
        (Access::FLUSH_PERSISTENT, 512),
        (Access::OPTIONAL, 0x3ff0_0000),
        (Access::REMOTE, 14),
        (Access::EVERY, 15),
    ];
    for (right, number) in rights {
        assert_eq!(right.bits(), number, "{right:?}");
    }
    assert_eq!(Access::from_bits_truncate(u32::MAX).bits(), u32::MAX, "none is dropped (C3)");
    assert_eq!(WcFlags::from_bits_truncate(u32::MAX).bits(), u32::MAX, "none is dropped (C3)");
}

#[test]
fn attributes_of_a_queue_pair_by_name() {
    let attributes = [
        QpAttrMask::STATE,
        QpAttrMask::CUR_STATE,
        QpAttrMask::EN_SQD_ASYNC_NOTIFY,
        QpAttrMask::ACCESS_FLAGS,
        QpAttrMask::PKEY_INDEX,
        QpAttrMask::PORT,
        QpAttrMask::QKEY,
        QpAttrMask::AV,
        QpAttrMask::PATH_MTU,
        QpAttrMask::TIMEOUT,
        QpAttrMask::RETRY_CNT,
        QpAttrMask::RNR_RETRY,
        QpAttrMask::RQ_PSN,
        QpAttrMask::MAX_QP_RD_ATOMIC,
        QpAttrMask::ALT_PATH,
        QpAttrMask::MIN_RNR_TIMER,
        QpAttrMask::SQ_PSN,
        QpAttrMask::MAX_DEST_RD_ATOMIC,
        QpAttrMask::PATH_MIG_STATE,
        QpAttrMask::CAP,
        QpAttrMask::DEST_QPN,
    ];
    for (nth, attribute) in attributes.into_iter().enumerate() {
        assert_eq!(attribute.bits(), 1 << nth);
    }
    assert_eq!(QpAttrMask::RATE_LIMIT.bits(), 1 << 25);
    assert_eq!(QpAttrMask::all().bits(), ((1 << 21) - 1) | (1 << 25));
}

#[test]
fn types_placements_and_capacities_by_name() {
    assert_eq!([QpType::Rc, QpType::Uc, QpType::Ud].map(|kind| kind as u32), [2, 3, 4]);
    assert_eq!([Selectivity::Range, Selectivity::Region].map(|level| level as u32), [0, 1]);
    assert_eq!((Placement::GLOBAL.bits(), Placement::PERSISTENT.bits()), (1, 2));
    let QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } = QpCaps::USUAL;
    assert_eq!((max_send_wr, max_recv_wr), (128, 128));
    assert_eq!((max_send_sge, max_recv_sge, max_inline), (1, 1, 64));
}
