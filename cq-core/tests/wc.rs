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

#[test]
fn c04_poison_fills_all_that_is_undefined_and_nothing_else() {
    let wc = Wc::poisoned(0x0102_0304_0506_0708, WcStatus::REM_OP_ERR, 0x0a0b_0c0d);
    let mut bytes = [0xa5; 48];
    bytes[..8].copy_from_slice(&wc.wr_id().to_ne_bytes());
    bytes[8..12].copy_from_slice(&WcStatus::REM_OP_ERR.0.to_ne_bytes());
    bytes[16..20].fill(0);
    bytes[28..32].copy_from_slice(&wc.qp_num().to_ne_bytes());
    // The invalidated key is said to be there.
    bytes[36..40].copy_from_slice(&(0xa5a5_a5a5 | WcFlags::WITH_INV.bits()).to_ne_bytes());
    bytes[46..].fill(0);
    assert_eq!(wc.to_bytes(), bytes);
    let failed = wc.result().unwrap_err();
    assert_eq!((failed.wr_id(), failed.qp_num()), (0x0102_0304_0506_0708, 0x0a0b_0c0d));
    assert_eq!((failed.status(), failed.vendor_err()), (WcStatus::REM_OP_ERR, 0));
}

#[test]
fn flags_are_added_and_taken_away_and_what_they_are_about_stays() {
    let recv = Wc::new(1, WcStatus::SUCCESS, 2).with_opcode(WcOpcode::RECV).with_imm([1, 2, 3, 4]);
    let flags = |wc: Wc| wc.result().unwrap().flags();
    let more = recv.with_flags(WcFlags::GRH).with_flags(WcFlags::IP_CSUM_OK);
    assert_eq!(flags(more), WcFlags::GRH | WcFlags::IP_CSUM_OK | WcFlags::WITH_IMM);
    assert_eq!(flags(more.with_imm([9; 4])), flags(more), "other flags stay");
    let key = WcFlags::GRH | WcFlags::IP_CSUM_OK | WcFlags::WITH_INV;
    assert_eq!(flags(more.with_invalidated_rkey(9)), key, "other flags stay");
    let less = more.without_flags(WcFlags::GRH | WcFlags::WITH_IMM | WcFlags::TM_MATCH);
    assert_eq!(flags(less), WcFlags::IP_CSUM_OK);
    assert_eq!(less.result().unwrap().imm(), None);
    assert_eq!(less.to_bytes()[24..28], [1, 2, 3, 4]);
    assert_eq!(less.with_flags(WcFlags::WITH_IMM).result().unwrap().imm(), Some([1, 2, 3, 4]));
}

#[test]
fn c01_a_new_completion_is_zero_but_for_what_is_always_valid() {
    let mut bytes = [0; 48];
    assert_eq!(Wc::default().to_bytes(), bytes);
    bytes[..8].copy_from_slice(&1_u64.to_ne_bytes());
    bytes[8..12].copy_from_slice(&2_u32.to_ne_bytes());
    bytes[28..32].copy_from_slice(&3_u32.to_ne_bytes());
    assert_eq!(Wc::new(1, WcStatus(2), 3).to_bytes(), bytes);
}

#[test]
fn c05_every_kind_of_receive_may_carry_immediate_data_and_no_other_may() {
    for number in 0..256 {
        let opcode = WcOpcode(number);
        let wc = Wc::new(1, WcStatus::SUCCESS, 2).with_opcode(opcode);
        let (imm, key) = (wc.with_imm([1, 2, 3, 4]), wc.with_invalidated_rkey(5));
        let (imm, key) = (imm.result().unwrap().imm(), key.result().unwrap().invalidated_rkey());
        assert_eq!(
            (imm, key),
            (opcode.is_recv().then_some([1, 2, 3, 4]), opcode.is_recv().then_some(5))
        );
        assert_eq!(wc.result().unwrap().invalidated_rkey(), None, "no flag, no key");
    }
}
