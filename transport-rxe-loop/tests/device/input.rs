//! Input at the edges and past them: lists of none, inline bytes of every length, flags that nobody knows,
//! attributes at both ends of their ranges, each with its error: Q1, Q4, Q10, X7.

use crate::common::*;
use cq_verbs::setup::Gid;
use cq_verbs::wr::{SendFlags, SendOp};
use transport_rxe_loop::conditions::shared_memory_full;
use transport_rxe_loop::{ModifyError, QpAttrMask, RegisterError};

const FLUSH: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);

#[test]
fn q04_a_list_of_none_is_posted_to_queues_that_are_full() {
    let (mut a, _b) = pair_with(CAPS.max_send_wr(0).max_recv_wr(0));
    assert_eq!((a.qp.post_send(&[]), a.qp.post_recv(&[])), (Ok(()), Ok(())));
}

#[test]
fn q04_as_many_inline_bytes_as_were_asked_for_and_no_more() {
    let bytes: Vec<_> = (1..=255).chain([0, 7]).collect();
    for max in [0, 1, 7, 8, 9, 31, 32, 33, 255, 256] {
        let (mut a, mut b) = pair_with(CAPS.max_inline(max).max_send_sge(0));
        let (len, remote) = (max as usize, b.region.remote(0).unwrap());
        let of = |nth, bytes| match nth {
            0 => SendWr::send_inline(1, bytes),
            1 => SendWr::write_inline(1, bytes, remote),
            _ => SendWr::write_inline(1, bytes, remote).with_imm([1; 4]),
        };
        for nth in 0..3 {
            b.region.write(0, &[0; 512]).unwrap();
            b.recv(10, 0, 256);
            a.post(of(nth, &bytes[..len]));
            a.expect(&[(1, S::SUCCESS)]);
            assert_eq!(b.bytes(0, len), bytes[..len]);
            assert_eq!(b.bytes(len, 256), [0; 256]);
            let refused = PostError { posted: 0, why: WrError::InlineTooLong { max } };
            assert_eq!(a.qp.post_send(&[of(nth, &bytes[..=len])]), Err(refused));
        }
        a.expect_nothing();
    }
}

#[test]
fn q04_flags_that_nobody_knows_change_nothing_of_any_operation() {
    let (mut a, mut b) = (End::new(), End::new());
    b.qp.modify(&QpAttr::init(&Port::new(1), Access::REMOTE | FLUSH)).unwrap();
    b.qp.modify(&rtr(&a.qp)).unwrap();
    a.qp.connect_to(b.qp.number()).unwrap();
    let region = b.pd.allocate(64, ALL | FLUSH).unwrap();
    let (sges, at) = ([a.region.sge(64..72).unwrap()], region.remote(0).unwrap());
    let all = [
        SendWr::send(1, &sges),
        SendWr::write(1, &sges, at),
        SendWr::write(1, &sges, at).with_imm([1; 4]),
        SendWr::read(1, &sges, at),
        SendWr::compare_swap(1, &sges, at, 0, 0),
        SendWr::fetch_add(1, &sges, at, 0),
        SendWr::atomic_write(1, &sges, at),
        SendWr::flush(1, at, 8, Placement::GLOBAL, Selectivity::Range),
    ];
    let known = SendFlags::all().bits();
    for flag in (0..32).map(|bit| 1 << bit).filter(|flag| flag & known == 0) {
        for wr in &all {
            let flags = wr.flags | SendFlags::from_bits_retain(flag);
            if matches!(wr.op, SendOp::Send { .. } | SendOp::Write { imm: Some(_), .. }) {
                b.recv(10, 0, 8);
                b.recv(11, 0, 8);
            }
            a.post(SendWr { flags, ..*wr });
            a.expect(&[(1, S::SUCCESS)]);
            a.post(SendWr { flags, ..*wr }.unsignaled());
            a.expect_nothing();
            assert!(take(&mut b.cq).iter().all(|wc| wc.status() == S::SUCCESS));
        }
    }
}

#[test]
fn q04_a_flush_with_a_strange_placement_is_refused() {
    let (mut a, b) = pair();
    let remote = b.region.remote(0).unwrap();
    let strange = Placement::from_bits_retain(1 << 2);
    for placement in [strange, strange | Placement::GLOBAL] {
        let refused = PostError { posted: 0, why: WrError::BadPlacement };
        let flush = SendWr::flush(1, remote, 8, placement, Selectivity::Range);
        assert_eq!(a.qp.post_send(&[flush]), Err(refused));
    }
    a.expect_nothing();
}

#[test]
fn x07_queues_of_one_work_and_queues_of_the_maximum_do() {
    // They would take the memory away from others.
    let fabric = format!("input-{}", std::process::id());
    let context = OpenOptions::new().fabric(&fabric).open("loop0").unwrap();
    for wr in [1, context.attributes().max_qp_wr] {
        let caps = CAPS.max_send_wr(wr).max_recv_wr(wr);
        let [mut a, mut b] = [(); 2].map(|()| {
            let cq = context.cq(wr).create().unwrap();
            End::completing_in(&context, cq, QpType::RC, caps)
        });
        connect(&mut a.qp, &mut b.qp);
        let full = Err(PostError { posted: wr as usize, why: WrError::QueueFull });
        let receives: Vec<_> = (0..=u64::from(wr)).map(|id| RecvWr::new(id, &[])).collect();
        let sends: Vec<_> = (0..=u64::from(wr)).map(|id| SendWr::send(id, &[])).collect();
        for _ in 0..2 {
            assert_eq!(b.qp.post_recv(&receives), full);
            assert_eq!(a.qp.post_send(&sends), full);
            b.expect(&all(0..wr.into(), S::SUCCESS));
            a.expect(&all(0..wr.into(), S::SUCCESS));
        }
    }
}

#[test]
fn x07_memory_of_no_bytes_or_past_the_end_of_all_addresses_is_not_registered() {
    let pd = open().alloc_pd().unwrap();
    let at = |addr: usize| std::ptr::without_provenance_mut(addr);
    for (addr, len) in [(1, usize::MAX), (usize::MAX, 1), (usize::MAX - 7, 8), (1 << 63, 1 << 63)] {
        // SAFETY: it is refused.
        let error = unsafe { pd.register(at(addr), len, ALL) }.unwrap_err();
        assert_eq!(error, RegisterError::OutOfRange { addr: addr as u64, len });
    }
    for addr in [0, 4096, usize::MAX] {
        // SAFETY: it is refused.
        let error = unsafe { pd.register(at(addr), 0, ALL) }.unwrap_err();
        assert_eq!(error, RegisterError::Empty);
    }
    assert_eq!(pd.allocate(0, ALL).unwrap_err(), RegisterError::Empty);
    for len in [1 << 47, isize::MAX as usize, usize::MAX] {
        let error = pd.allocate(len, ALL).unwrap_err();
        assert_eq!(error, shared_memory_full(len).into());
    }
    let one = pd.allocate(1, ALL).unwrap();
    assert_eq!((one.len(), one.sge(..1).unwrap().length), (1, 1));
    // The places in the table were given back.
    let (len, max) = (1 << 46, open().attributes().max_mr);
    let error = RegisterError::from(shared_memory_full(len));
    assert!(error.to_string().contains("/dev/shm"));
    assert!((0..max).all(|_| pd.allocate(len, ALL).unwrap_err() == error));
}

#[test]
fn q10_every_access_flag_is_known_optional_or_refused() {
    let pd = open().alloc_pd().unwrap();
    let init = |access| End::new().qp.modify(&QpAttr::init(&Port::new(1), access));
    let known = ALL | FLUSH | Access::MW_BIND | Access::ZERO_BASED | Access::OPTIONAL;
    let bits = (0..32).map(|bit| Access::from_bits_retain(1 << bit));
    for bit in bits.filter(|bit| !known.contains(*bit)) {
        let bits = bit.bits();
        let refused = RegisterError::UnknownAccess { bits };
        assert_eq!(pd.allocate(64, ALL | bit).unwrap_err(), refused);
        let refused = init(Access::REMOTE | bit).unwrap_err();
        let (attr, allowed) = (QpAttrMask::ACCESS_FLAGS, "these bits are unknown");
        assert_eq!(refused, ModifyError::BadValue { attr, value: bits, allowed });
    }
    for flush in [Access::FLUSH_GLOBAL, Access::FLUSH_PERSISTENT] {
        pd.allocate(64, flush).unwrap();
        init(flush).unwrap();
    }
    // What goes without the right to write locally, and what does not.
    pd.allocate(1, Access::empty()).unwrap();
    for access in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC | Access::REMOTE_READ] {
        let mut own = [0u64; 8];
        // SAFETY: nothing is registered: the rights are judged before the memory is looked at.
        let registered = unsafe { pd.register(own.as_mut_ptr().cast(), 64, access) };
        assert_eq!(registered.unwrap_err(), RegisterError::NeedsLocalWrite);
        assert_eq!(pd.allocate(64, access).unwrap_err(), RegisterError::NeedsLocalWrite);
    }
}

#[test]
fn q01_each_attribute_of_the_device_at_both_ends_of_its_range_and_past_them() {
    use QpAttrMask as M;
    /// With the good values and the bad ones of it.
    type Set<'a> = (&'a [u32], &'a [u32], fn(QpAttr, u32) -> QpAttr);
    let reads = u32::from(open().attributes().max_qp_rd_atom);
    let way = [
        QpAttr::init(&Port::new(1), Access::empty()),
        QpAttr::rtr(&Port::new(1), &Endpoint::new(1)),
        QpAttr::rts(),
    ];
    // With the step on the way that it belongs to.
    let all: [(M, usize, Set<'_>); 5] = [
        (M::PORT, 0, (&[1], &[0, 2, 255], |attr, n| attr.port(n as u8))),
        (M::PKEY_INDEX, 0, (&[0], &[1, 0xffff], |attr, n| attr.pkey_index(n as u16))),
        (
            M::AV,
            1,
            (&[1], &[0, 2, 255], |attr, n| {
                attr.av(AddressVector::new(&Port::new(n as u8), Gid::default(), 0))
            }),
        ),
        (
            M::MAX_DEST_RD_ATOMIC,
            1,
            (&[0, reads], &[reads + 1, 255], |attr, n| attr.max_dest_rd_atomic(n as u8)),
        ),
        (
            M::MAX_QP_RD_ATOMIC,
            2,
            (&[0, reads], &[reads + 1, 255], |attr, n| attr.max_rd_atomic(n as u8)),
        ),
    ];
    for (what, step, (good, bad, set)) in all {
        for &value in good.iter().chain(bad) {
            let mut end = End::new();
            way[..step].iter().for_each(|attr| end.qp.modify(attr).unwrap());
            let before = end.state();
            let said = end.qp.modify(&set(way[step], value));
            match said {
                Ok(()) => assert!(good.contains(&value), "{what} {value}"),
                Err(ModifyError::BadValue { attr, value: named, .. }) => {
                    assert!(bad.contains(&value), "{what} {value}");
                    assert_eq!((attr, named, end.state()), (what, value, before));
                }
                other => panic!("{what} {value}: {other:?}"),
            }
        }
    }
}
