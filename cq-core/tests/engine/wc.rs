//! Completions: layout, foreign numbers, and what may be read of them (C1–C7). The tests of transport-verbs compare all
//! that has a name with the header of libibverbs.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::*;

/// These bytes, with the fields where C has them.
fn in_c(mut bytes: [u8; 48], fields: &[(usize, &[u8])]) -> [u8; 48] {
    fields.iter().for_each(|(at, field)| bytes[*at..at + field.len()].copy_from_slice(field));
    bytes
}

proptest! {
    #[test]
    fn c01_every_field_is_where_c_has_it(
        wr_id in any::<u64>(),
        status in prop_oneof![Just(0), any::<u32>()],
        [opcode, vendor_err, byte_len, qp, src_qp, flags] in any::<[u32; 6]>(),
        imm in any::<[u8; 4]>(),
        (pkey_index, slid, sl, dlid_path_bits) in any::<(u16, u16, u8, u8)>(),
        padding in any::<[u8; 2]>(),
    ) {
        let flags = WcFlags::from_bits_retain(flags).difference(WcFlags::WITH_INV).union(WcFlags::WITH_IMM);
        let failed = Failed::new(wr_id, WcStatus(status), qp, vendor_err);
        prop_assert_eq!(failed.is_none(), status == 0);
        let vendor_err = if status == 0 { 0 } else { vendor_err };
        let wc = failed.map_or(Wc::new(wr_id, WcStatus(status), qp), Wc::failed)
            .with_opcode(WcOpcode(opcode))
            .with_byte_len(byte_len)
            .with_src_qp(src_qp)
            .with_flags(flags)
            .with_imm(imm)
            .with_path(pkey_index, slid, sl, dlid_path_bits);
        let valid: [(usize, &[u8]); 3] =
            [(0, &wr_id.to_ne_bytes()), (8, &status.to_ne_bytes()), (28, &qp.to_ne_bytes())];
        prop_assert_eq!(Wc::new(wr_id, WcStatus(status), qp).to_bytes(), in_c([0; 48], &valid));
        let bytes = in_c(in_c([0; 48], &valid), &[
            (12, &opcode.to_ne_bytes()),
            (16, &vendor_err.to_ne_bytes()),
            (20, &byte_len.to_ne_bytes()),
            (24, &imm),
            (32, &src_qp.to_ne_bytes()),
            (36, &flags.bits().to_ne_bytes()),
            (40, &pkey_index.to_ne_bytes()),
            (42, &slid.to_ne_bytes()),
            (44, &[sl, dlid_path_bits]),
        ]);
        prop_assert_eq!(wc.to_bytes(), bytes);
        prop_assert_eq!((wc.wr_id(), wc.status(), wc.qp_num()), (wr_id, WcStatus(status), qp));
        match wc.result() {
            Ok(done) => {
                prop_assert_eq!((status, done.wr_id(), done.qp_num()), (0, wr_id, qp));
                prop_assert_eq!((done.opcode().0, done.byte_len()), (opcode, byte_len));
                prop_assert_eq!((done.src_qp(), done.flags()), (src_qp, flags));
                prop_assert_eq!((done.pkey_index(), done.slid()), (pkey_index, slid));
                prop_assert_eq!((done.sl(), done.dlid_path_bits()), (sl, dlid_path_bits));
            }
            Err(failed) => {
                prop_assert_eq!((failed.wr_id(), failed.qp_num()), (wr_id, qp));
                prop_assert_eq!((failed.status().0, failed.vendor_err()), (status, vendor_err));
            }
        }
        // The padding is never read, and written as zero, also by a queue, which uses it.
        let foreign = Wc::from_bytes(in_c(bytes, &[(46, &padding)]));
        prop_assert_eq!((foreign, foreign.to_bytes()), (wc, bytes));
        let (mut storage, mut out) = (SoftCq::<1>::new(), [Wc::default()]);
        let (mut producer, mut consumer) = storage.split();
        producer.push(&foreign).unwrap();
        prop_assert_eq!(consumer.poll_into(&mut out), Ok(1));
        // SAFETY: a completion is 48 bytes without padding; C would read them just so.
        let raw: [u8; 48] = unsafe { core::mem::transmute(out[0]) };
        prop_assert_eq!(raw, bytes);
    }
}

#[test]
fn c01_every_byte_but_the_padding_counts_for_equality() {
    let wc = Wc::from_bytes(core::array::from_fn(|at| at as u8 + 1));
    let hash = |wc: Wc| BuildHasherDefault::<DefaultHasher>::default().hash_one(wc);
    for at in 0..48 {
        let mut bytes = wc.to_bytes();
        bytes[at] ^= 0x80;
        let other = Wc::from_bytes(bytes);
        assert_eq!((other == wc, hash(other) == hash(wc)), (at >= 46, at >= 46), "byte {at}");
        assert_eq!(HashSet::from([wc, other]).len(), if at >= 46 { 1 } else { 2 });
    }
    assert_eq!(Wc::default().to_bytes(), [0; 48]);
}

#[test]
fn c05_immediate_data_and_a_key_exclude_each_other() {
    let imm = recv(1).with_imm([1, 2, 3, 4]);
    let inv = imm.with_invalidated_rkey(9);
    assert_eq!(inv.result().unwrap().imm(), None);
    assert_eq!(inv.result().unwrap().invalidated_rkey(), Some(9));
    let back = inv.with_imm([1, 2, 3, 4]).result().unwrap().flags();
    assert_eq!(back, WcFlags::WITH_IMM);
    let both = inv.with_flags(WcFlags::WITH_IMM);
    assert_eq!(both.result().unwrap().invalidated_rkey(), None);
}

/// By the set, and not by the bit that they share.
#[test]
fn c05_c06_receives_may_carry_immediate_data_and_no_other_completion_may() {
    let receives =
        [WcOpcode::RECV, WcOpcode::RECV_RDMA_WITH_IMM, WcOpcode::TM_RECV, WcOpcode::TM_NO_TAG];
    for opcode in (0..256).map(WcOpcode) {
        let is_recv = receives.contains(&opcode);
        assert_eq!(opcode.is_recv(), is_recv, "{opcode:?}");
        let wc = recv(1).with_opcode(opcode);
        let [imm, key] = [wc.with_imm([1, 2, 3, 4]), wc.with_invalidated_rkey(5)];
        assert_eq!(imm.result().unwrap().imm(), is_recv.then_some([1, 2, 3, 4]));
        assert_eq!(key.result().unwrap().invalidated_rkey(), is_recv.then_some(5));
        let plain = wc.result().unwrap();
        assert_eq!((plain.is_recv(), plain.imm()), (is_recv, None), "no flag");
        assert_eq!(plain.invalidated_rkey(), None, "no flag, no key");
    }
}

#[test]
fn c04_poison_fills_all_that_is_undefined_and_nothing_else() {
    let (wr_id, qp) = (0x0102_0304_0506_0708_u64, 0x0a0b_0c0d_u32);
    let wc = Wc::poisoned(Failed::new(wr_id, WcStatus::REM_OP_ERR, qp, 0x1234).unwrap());
    // The invalidated key is said to be there.
    let flags = 0xa5a5_a5a5 | WcFlags::WITH_INV.bits();
    let defined: [(usize, &[u8]); 6] = [
        (0, &wr_id.to_ne_bytes()),
        (8, &WcStatus::REM_OP_ERR.0.to_ne_bytes()),
        (16, &0x1234_u32.to_ne_bytes()),
        (28, &qp.to_ne_bytes()),
        (36, &flags.to_ne_bytes()),
        (46, &[0; 2]),
    ];
    assert_eq!(wc.to_bytes(), in_c([0xa5; 48], &defined));
}

#[test]
fn flags_are_added_and_taken_away_and_what_they_are_about_stays() {
    let flags = |wc: Wc| wc.result().unwrap().flags();
    let both = WcFlags::GRH | WcFlags::IP_CSUM_OK;
    let more =
        recv(1).with_imm([1, 2, 3, 4]).with_flags(WcFlags::GRH).with_flags(WcFlags::IP_CSUM_OK);
    assert_eq!(flags(more), both | WcFlags::WITH_IMM);
    assert_eq!(flags(more.with_imm([9; 4])), flags(more), "other flags stay");
    assert_eq!(flags(more.with_invalidated_rkey(9)), both | WcFlags::WITH_INV, "other flags stay");
    let less = more.without_flags(WcFlags::GRH | WcFlags::WITH_IMM | WcFlags::TM_MATCH);
    assert_eq!((flags(less), less.result().unwrap().imm()), (WcFlags::IP_CSUM_OK, None));
    assert_eq!(less.with_flags(WcFlags::WITH_IMM).result().unwrap().imm(), Some([1, 2, 3, 4]));
    assert_eq!(WcFlags::from_bits_truncate(u32::MAX).bits(), u32::MAX, "none is dropped (C3)");
}
