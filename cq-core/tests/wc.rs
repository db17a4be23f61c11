//! Completions: layout, foreign numbers, and what may be read of them (C1–C7, C12).
#![cfg(not(loom))]

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};

/// A completion whose 48 bytes are all different, as C would lay it out on this machine.
fn distinct_bytes() -> [u8; 48] {
    core::array::from_fn(|i| i as u8 + 1)
}

fn word(bytes: &[u8; 48], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn half(bytes: &[u8; 48], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap())
}

/// [`distinct_bytes`] with the status of a success.
fn success_bytes() -> [u8; 48] {
    let mut bytes = distinct_bytes();
    bytes[8..12].fill(0);
    bytes
}

#[test]
fn c01_every_field_is_where_c_has_it() {
    let bytes = success_bytes();
    let wc = Wc::from_bytes(bytes);
    let done = wc.result().unwrap();
    assert_eq!(wc.wr_id(), u64::from_ne_bytes(bytes[..8].try_into().unwrap()));
    assert_eq!(wc.status(), WcStatus::SUCCESS);
    assert_eq!(done.opcode().0, word(&bytes, 12));
    assert_eq!(done.byte_len(), word(&bytes, 20));
    assert_eq!(done.qp_num(), word(&bytes, 28));
    assert_eq!(done.src_qp(), word(&bytes, 32));
    assert_eq!(done.flags().bits(), word(&bytes, 36));
    assert_eq!(done.pkey_index(), half(&bytes, 40));
    assert_eq!(done.slid(), half(&bytes, 42));
    assert_eq!((done.sl(), done.dlid_path_bits()), (bytes[44], bytes[45]));
}

#[test]
fn c01_the_padding_is_never_read_and_written_as_zero() {
    let bytes = success_bytes();
    let mut other = bytes;
    other[46..].fill(0xEE);
    let (a, b) = (Wc::from_bytes(bytes), Wc::from_bytes(other));
    assert_eq!(a, b);
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
    assert_eq!(HashSet::from([a, b]).len(), 1);
    let hash = |wc: Wc| BuildHasherDefault::<DefaultHasher>::default().hash_one(wc);
    assert_ne!(hash(a), hash(Wc::default()));
    assert_eq!(b.to_bytes()[46..], [0, 0]);
    assert_eq!(b.to_bytes()[..46], bytes[..46]);
}

#[test]
fn c01_every_other_byte_counts_for_equality() {
    let wc = Wc::from_bytes(distinct_bytes());
    for at in 0..46 {
        let mut bytes = distinct_bytes();
        bytes[at] ^= 0x80;
        assert_ne!(Wc::from_bytes(bytes), wc, "byte {at}");
    }
}

#[test]
fn c03_unknown_numbers_are_kept_printed_and_compared() {
    let wc = Wc::new(1, WcStatus(4000), 2);
    assert_eq!(wc.result().unwrap_err().status(), WcStatus(4000));
    assert_eq!(format!("{:?}", WcStatus(4000)), "WcStatus(4000)");
    assert_ne!(WcStatus(4000), WcStatus(4001));
    let odd = Wc::new(1, WcStatus::SUCCESS, 2)
        .with_opcode(WcOpcode(77))
        .with_flags(WcFlags::from_bits_retain(1 << 31));
    let done = odd.result().unwrap();
    assert_eq!((done.opcode().0, done.flags().bits()), (77, 1 << 31));
    assert_eq!(format!("{:?} {}", done.opcode(), done.opcode()), "WcOpcode(77) unknown");
}

#[test]
fn c04_a_failure_shows_four_fields_and_prints_no_other() {
    let mut bytes = distinct_bytes();
    bytes[8..12].copy_from_slice(&WcStatus::WR_FLUSH_ERR.0.to_ne_bytes());
    let wc = Wc::from_bytes(bytes);
    let failed = wc.result().err().unwrap();
    assert_eq!((failed.wr_id(), failed.status()), (wc.wr_id(), WcStatus::WR_FLUSH_ERR));
    assert_eq!((failed.qp_num(), failed.vendor_err()), (word(&bytes, 28), word(&bytes, 16)));
    assert_eq!(
        format!("{wc:?}"),
        format!(
            "Failed {{ wr_id: {}, status: WR_FLUSH_ERR, qp_num: {}, vendor_err: {} }}",
            wc.wr_id(),
            wc.qp_num(),
            failed.vendor_err()
        )
    );
}

#[test]
fn c05_immediate_data_keeps_its_bytes_and_excludes_invalidation() {
    let recv = Wc::new(1, WcStatus::SUCCESS, 2).with_opcode(WcOpcode::RECV);
    let imm = recv.with_imm([1, 2, 3, 4]);
    assert_eq!(imm.result().unwrap().imm(), Some([1, 2, 3, 4]));
    assert_eq!(imm.to_bytes()[24..28], [1, 2, 3, 4]);
    let inv = imm.with_invalidated_rkey(9);
    assert_eq!(inv.result().unwrap().imm(), None);
    assert_eq!(inv.result().unwrap().invalidated_rkey(), Some(9));
    assert_eq!(recv.result().unwrap().imm(), None);
    let back = inv.with_imm([1, 2, 3, 4]).result().unwrap().flags();
    assert_eq!(back, WcFlags::WITH_IMM);
    let both = inv.with_flags(WcFlags::WITH_IMM);
    assert_eq!(both.result().unwrap().invalidated_rkey(), None);
}

#[test]
fn c05_a_requesters_flag_means_nothing() {
    let send = Wc::new(1, WcStatus::SUCCESS, 2).with_opcode(WcOpcode::SEND).with_imm([1, 2, 3, 4]);
    assert_eq!(send.result().unwrap().imm(), None);
    let send = send.with_invalidated_rkey(9);
    assert_eq!(send.result().unwrap().invalidated_rkey(), None);
}

#[test]
fn c06_receives_are_told_by_the_set_not_by_the_bit() {
    let receives: Vec<_> = (0..256).map(WcOpcode).filter(|opcode| opcode.is_recv()).collect();
    let expected =
        [WcOpcode::RECV, WcOpcode::RECV_RDMA_WITH_IMM, WcOpcode::TM_RECV, WcOpcode::TM_NO_TAG];
    assert_eq!(receives, expected);
}

#[test]
fn c12_texts_are_those_of_ibv_wc_status_str() {
    let texts = [
        "success",
        "local length error",
        "local QP operation error",
        "local EE context operation error",
        "local protection error",
        "Work Request Flushed Error",
        "memory management operation error",
        "bad response error",
        "local access error",
        "remote invalid request error",
        "remote access error",
        "remote operation error",
        "transport retry counter exceeded",
        "RNR retry counter exceeded",
        "local RDD violation error",
        "remote invalid RD request",
        "aborted error",
        "invalid EE context number",
        "invalid EE context state",
        "fatal error",
        "response timeout error",
        "general error",
        "TM error",
        "TM software rendezvous",
        "unknown",
        "unknown",
    ];
    for (number, text) in (0..).zip(texts) {
        assert_eq!(WcStatus(number).to_string(), text, "status {number}");
    }
}
