//! FLUSH: earlier WRITEs are globally visible or persistent (Q6, Q7).

use super::line::*;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/flushes.rs"));

const RIGHTS: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);

/// The placements of a FLUSH, and the access flag that each requires.
const PLACEMENTS: [(Placement, Access); 3] = [
    (Placement::GLOBAL, Access::FLUSH_GLOBAL),
    (Placement::PERSISTENT, Access::FLUSH_PERSISTENT),
    (Placement::all(), RIGHTS),
];

/// The plan of an end with all access flags.
fn flushable() -> Plan {
    let every = Access::EVERY.union(RIGHTS);
    Plan { region: every, access: every, ..Plan::default() }
}

fn flushing<D: Device>() -> (End<D>, End<D>) {
    // A device without the operation may lack the access flags, too.
    let (mut a, b) = pair::<D>();
    a.post(eight(1, b.remote(0), Placement::GLOBAL));
    pair_with(&flushable(), &flushable())
}

/// A FLUSH of eight bytes.
const fn eight(wr_id: u64, at: RemoteAddr, placement: Placement) -> SendWr<'static> {
    SendWr::flush(wr_id, at, 8, placement, Selectivity::Range)
}

fn c06_a_flush_is_told_by_its_opcode<D: Device>() {
    let (mut a, b) = flushing::<D>();
    a.post(eight(1, b.remote(0), Placement::GLOBAL));
    let done = a.expect_sent(&[(1, S::SUCCESS)])[0];
    assert_eq!(done.result().unwrap().opcode(), WcOpcode::FLUSH);
    assert!(!done.result().unwrap().is_recv());
}

fn q04_a_flush_to_nowhere_is_refused<D: Device>() {
    let (mut a, b) = flushing::<D>();
    let at = b.remote(0);
    a.post(eight(1, at, Placement::GLOBAL));
    for selectivity in [Selectivity::Range, Selectivity::Region] {
        let list = [
            SendWr::write_inline(2, b"x", at),
            SendWr::flush(3, at, 8, Placement::empty(), selectivity),
        ];
        let error = a.qp.post_send(&list).unwrap_err();
        assert_eq!((error.posted, error.why), (1, WrError::BadPlacement));
    }
    a.expect_sent(&[(1, S::SUCCESS), (2, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(a.qp.state(), QpState::RTS);
}

fn q06_a_flush_of_any_kind_succeeds_and_changes_nothing<D: Device>() {
    let (mut a, mut b) = flushing::<D>();
    b.mr.write(0, &[7; REGION]);
    b.recv(1, 0, 8);
    for (placement, _) in PLACEMENTS {
        for selectivity in [Selectivity::Range, Selectivity::Region] {
            for (offset, length) in [(0, REGION as u32), (REGION as u64 - 1, 1), (17, 100)] {
                a.post(SendWr::flush(2, b.remote(offset), length, placement, selectivity));
                a.expect_sent(&[(2, S::SUCCESS)]);
            }
        }
    }
    assert!(b.bytes(0, REGION) == [7; REGION], "the memory is unchanged");
    b.expect_nothing();
}

fn q06_a_flush_completes_behind_what_it_is_about<D: Device>() {
    let (mut a, b) = flushing::<D>();
    for round in 1..=50u8 {
        a.mr.write(0, &[round; 4096]);
        let bytes = [a.sge(0, 4096)];
        let list = [
            SendWr::write(1, &bytes, b.remote(0)).unsignaled(),
            SendWr::flush(2, b.remote(0), 4096, Placement::GLOBAL, Selectivity::Range),
        ];
        a.qp.post_send(&list).unwrap();
        a.expect_sent(&[(2, S::SUCCESS)]);
        assert!(b.bytes(0, 4096) == [round; 4096], "round {round} was flushed before it was there");
    }
}

fn q06_a_flush_of_a_region_looks_at_the_key_only<D: Device>() {
    let (mut a, b) = flushing::<D>();
    for (addr, length) in [(0, 8), (u64::MAX, u32::MAX), (b.mr.addr(), 0)] {
        let at = RemoteAddr { addr, ..b.remote(0) };
        a.post(SendWr::flush(1, at, length, Placement::GLOBAL, Selectivity::Region));
        a.expect_sent(&[(1, S::SUCCESS)]);
    }
}

fn q06_a_flush_of_no_bytes_needs_no_key<D: Device>() {
    let (mut a, _b) = flushing::<D>();
    let nowhere = RemoteAddr { addr: u64::MAX, rkey: NO_KEY };
    a.post(SendWr::flush(1, nowhere, 0, Placement::GLOBAL, Selectivity::Range));
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q06_a_flush_looks_at_no_sge<D: Device>() {
    let (mut a, b) = flushing::<D>();
    let garbage = [Sge { addr: u64::MAX, length: 64, lkey: 0xdead_beef }; 2];
    let flush = eight(1, b.remote(0), Placement::GLOBAL);
    a.post(SendWr { data: Data::Sges(&garbage), ..flush });
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q06_memory_that_is_only_read_can_be_flushed<D: Device>() {
    let (mut a, b) = flushing::<D>();
    let region = b.device.register(&b.pd, 64, Access::REMOTE_READ | RIGHTS).unwrap();
    a.post(eight(1, region.remote(0), Placement::all()));
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q06_a_flush_is_no_read_or_atomic<D: Device>() {
    drop(flushing::<D>());
    let none = attr::rts().max_rd_atomic(0);
    let takes_none = attr::rtr(0).max_dest_rd_atomic(0);
    let (mut a, b) = pair_with::<D>(
        &Plan { rts: none, ..flushable() },
        &Plan { rtr: takes_none, ..flushable() },
    );
    a.post(eight(1, b.remote(0), Placement::all()));
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q07_a_flush_of_memory_that_may_not_be_flushed<D: Device>() {
    for (placement, right) in PLACEMENTS {
        for case in 0..5 {
            let (mut a, mut b) = flushing::<D>();
            let others = (Access::EVERY | RIGHTS).difference(right);
            let lacking = b.device.register(&b.pd, 64, others).unwrap();
            let dead = b.device.register(&b.pd, 64, Access::EVERY | RIGHTS).unwrap().remote(0);
            let at = [
                RemoteAddr { rkey: NO_KEY, ..b.remote(0) },
                b.remote(REGION as u64 - 7),
                b.remote(0u64.wrapping_sub(8)),
                lacking.remote(0),
                dead,
            ][case];
            fails(&mut a, &mut b, eight(1, at, placement), ACCESS);
        }
        for right in right {
            // One of the two access flags is not enough.
            let (mut a, mut b) = flushing::<D>();
            let others = (Access::EVERY | RIGHTS).difference(right);
            let lacking = b.device.register(&b.pd, 64, others).unwrap();
            let of_region = |at| SendWr::flush(1, at, 0, placement, Selectivity::Region);
            fails(&mut a, &mut b, of_region(lacking.remote(0)), ACCESS);
        }
    }
}

fn q07_a_flush_of_a_wrong_key_or_range<D: Device>() {
    for selectivity in [Selectivity::Range, Selectivity::Region] {
        for case in 0..4 {
            let (mut a, mut b) = flushing::<D>();
            let dead = b.device.register(&b.pd, 64, Access::EVERY | RIGHTS).unwrap().remote(0);
            let other = b.device.alloc_pd();
            let foreign = b.device.register(&other, 64, Access::EVERY | RIGHTS).unwrap();
            let at = [
                RemoteAddr { rkey: NO_KEY, ..b.remote(0) },
                RemoteAddr { rkey: b.mr.rkey() ^ 0x55, ..b.remote(0) },
                dead,
                foreign.remote(0),
            ][case];
            let flush = SendWr::flush(1, at, 8, Placement::GLOBAL, selectivity);
            fails(&mut a, &mut b, flush, ACCESS);
        }
    }
    // One byte too many; past the end; before the beginning; an address that wraps around; longer than the region.
    for case in 0..5 {
        let (mut a, mut b) = flushing::<D>();
        let (at, length) = [
            (b.remote(1), REGION as u32),
            (b.remote(REGION as u64), 1),
            (b.remote(0u64.wrapping_sub(1)), 1),
            (RemoteAddr { addr: u64::MAX - 3, ..b.remote(0) }, 8),
            (b.remote(0), u32::MAX),
        ][case];
        let flush = SendWr::flush(1, at, length, Placement::GLOBAL, Selectivity::Range);
        fails(&mut a, &mut b, flush, ACCESS);
    }
}

/// A pair whose second end lacks these access flags.
fn strict<D: Device>(lacks: Access) -> (End<D>, End<D>) {
    drop(flushing::<D>());
    let access = (Access::EVERY | RIGHTS).difference(lacks);
    pair_with(&flushable(), &Plan { access, ..flushable() })
}

fn q07_a_flush_without_the_queue_pairs_right<D: Device>() {
    for (placement, rights) in PLACEMENTS {
        for right in rights {
            // The queue pair's flag is checked before the key, and also for a length of 0.
            for (rkey, length) in [(None, 8), (Some(NO_KEY), 8), (Some(NO_KEY), 0)] {
                let (mut a, mut b) = strict::<D>(right);
                let at = b.remote(0);
                let at = RemoteAddr { rkey: rkey.unwrap_or(at.rkey), ..at };
                let flush = SendWr::flush(1, at, length, placement, Selectivity::Range);
                fails(&mut a, &mut b, flush, INVALID);
            }
        }
    }
}

fn q07_the_target_is_told_of_a_flush_that_it_refused<D: Device>() {
    let (mut a, mut b) = flushing::<D>();
    a.post(eight(1, RemoteAddr { rkey: NO_KEY, ..b.remote(0) }, Placement::GLOBAL));
    a.expect_sent(&[(1, S::REM_ACCESS_ERR)]);
    b.expect_async(&[(AsyncEventType::QP_ACCESS_ERR, b.element())]);
    let (mut a, mut b) = strict::<D>(RIGHTS);
    a.post(eight(1, b.remote(0), Placement::GLOBAL));
    a.expect_sent(&[(1, S::REM_INV_REQ_ERR)]);
    b.expect_async(&[(AsyncEventType::QP_REQ_ERR, b.element())]);
}
