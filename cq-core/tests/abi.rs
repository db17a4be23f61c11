//! Numbers and texts of `<infiniband/verbs.h>`, and each field's way into the bytes (C1, C2). The tests of transport-verbs
//! compare all that has a name with the header.
#![cfg(not(loom))]

use cq_core::async_event::AsyncEventType;
use cq_core::queue::SoftCq;
use cq_core::setup::{Access, QpAttrMask, QpCaps, inc_rkey};
use cq_core::transport::PollCq;
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_core::wr::{Placement, Selectivity};

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
fn c03_a_number_without_a_name_has_none() {
    for number in [24, 25, 127, u32::MAX] {
        let status = WcStatus(number);
        assert_eq!((status.name(), status.to_string().as_str()), (None, "unknown"));
        assert!(!WcStatus::KNOWN.contains(&status));
    }
    assert!(WcStatus::KNOWN.is_sorted() && WcOpcode::KNOWN.is_sorted());
    assert!([10, 127, 138, u32::MAX].iter().all(|number| WcOpcode(*number).name().is_none()));
}

/// Those that the headers of transport-verbs' tests, which compare all others, may not have.
#[test]
fn c02_newer_numbers_and_those_that_are_not_in_the_header() {
    assert_eq!([WcOpcode::FLUSH.0, WcOpcode::ATOMIC_WRITE.0], [8, 9]);
    assert_eq!([Access::FLUSH_GLOBAL.bits(), Access::FLUSH_PERSISTENT.bits()], [256, 512]);
    assert_eq!((Access::REMOTE.bits(), Access::EVERY.bits()), (14, 15));
    assert_eq!(Access::OPTIONAL.bits(), 0x3ff0_0000);
    assert_eq!(Access::from_bits_truncate(u32::MAX).bits(), u32::MAX, "none is dropped (C3)");
    assert_eq!(WcFlags::from_bits_truncate(u32::MAX).bits(), u32::MAX, "none is dropped (C3)");
    assert_eq!(QpAttrMask::all().bits(), ((1 << 21) - 1) | (1 << 25));
    assert_eq!([Selectivity::Range, Selectivity::Region].map(|level| level as u32), [0, 1]);
    assert_eq!((Placement::GLOBAL.bits(), Placement::PERSISTENT.bits()), (1, 2));
    let QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } = QpCaps::USUAL;
    assert_eq!((max_send_wr, max_recv_wr), (128, 128));
    assert_eq!((max_send_sge, max_recv_sge, max_inline), (1, 1, 64));
}

#[test]
fn c02_texts_of_asynchronous_events() {
    let texts = [
        "CQ error",
        "local work queue catastrophic error",
        "invalid request local work queue error",
        "local access violation work queue error",
        "communication established",
        "send queue drained",
        "path migrated",
        "path migration request error",
        "local catastrophic error",
        "port active",
        "port error",
        "LID change",
        "P_Key change",
        "SM change",
        "SRQ catastrophic error",
        "SRQ limit reached",
        "last WQE reached",
        "client reregistration",
        "GID table change",
        "WQ fatal",
    ];
    assert!(AsyncEventType::KNOWN.iter().map(AsyncEventType::to_string).eq(texts));
    assert_eq!(AsyncEventType(20).to_string(), "unknown");
}
