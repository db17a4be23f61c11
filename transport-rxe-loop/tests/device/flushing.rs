//! FLUSH and the atomic write: what they do (Q6), and what is wrong with a FLUSH (Q7). What is wrong with an
//! atomic write is with what is wrong with atomics.

use crate::common::failing::{expect_failure, good, run_on};
use crate::common::{self, ALL, End, S, connect_by, impatient, pair};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wc::WcOpcode;
use cq_core::wr::{Data, Placement, RemoteAddr, Selectivity, SendOp, SendWr, Sge};
use transport_rxe_loop::{Access, OwnedRegion, QpAttr, QpState};

use QpState::{Err as Failed, Rts};

const BOTH: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);
const PLACEMENTS: [(Placement, Access); 3] = [
    (Placement::GLOBAL, Access::FLUSH_GLOBAL),
    (Placement::PERSISTENT, Access::FLUSH_PERSISTENT),
    (Placement::all(), BOTH),
];
const LEN: u32 = 4096;

/// Two ends, of which the target lets its peer do this, and memory of its that can be flushed in every way.
fn flushable(rights: Access) -> (End, End, OwnedRegion) {
    let (mut a, mut b) = (End::new(), End::new());
    b.qp.modify(&QpAttr::init(rights)).unwrap();
    b.qp.modify(&QpAttr::rtr(a.qp.number())).unwrap();
    b.qp.modify(&QpAttr::rts()).unwrap();
    a.qp.connect(b.qp.number()).unwrap();
    let region = b.pd.allocate(LEN as usize, BOTH).unwrap();
    (a, b, region)
}

fn flush(remote: RemoteAddr, length: u32, placement: Placement) -> SendWr<'static> {
    SendWr::flush(1, remote, length, placement, Selectivity::Range)
}

/// A FLUSH of a target with these rights fails, and leaves it so.
#[track_caller]
fn check(
    rights: Access,
    wr: impl FnOnce(&End, &OwnedRegion) -> SendWr<'static>,
    ours: S,
    theirs: QpState,
) {
    let (a, b, region) = flushable(rights);
    let (mut a, mut b) = run_on((a, b), good, |a, b| a.post(wr(b, &region)));
    expect_failure((&mut a, &mut b), (ours, Failed), (None, theirs));
}

#[test]
fn q06_a_flush_completes_after_what_was_written() {
    let (mut a, mut b, region) = flushable(Access::REMOTE | BOTH);
    let remote = region.remote(0).unwrap();
    let target = b.region.remote(0).unwrap();
    for (placement, _) in PLACEMENTS {
        for length in [0, 1, LEN] {
            a.qp.post_send(&[
                SendWr::write_inline(0, b"written", target).unsignaled(),
                flush(remote, length, placement),
            ])
            .unwrap();
            let done = a.expect(&[(1, S::SUCCESS)])[0];
            assert_eq!(done.result().unwrap().opcode(), WcOpcode::FLUSH);
            assert_eq!(b.bytes(0, 7), b"written");
        }
    }
    b.expect_nothing();
}

#[test]
fn q06_a_flush_of_a_region_goes_by_the_key_alone() {
    let (mut a, _b, region) = flushable(BOTH);
    let rkey = region.rkey();
    for (addr, length) in [(0, 0), (u64::MAX, u32::MAX), (region.addr(), LEN + 1)] {
        let (remote, all) = (RemoteAddr { addr, rkey }, Selectivity::Region);
        a.post(SendWr::flush(1, remote, length, Placement::GLOBAL, all));
        a.expect(&[(1, S::SUCCESS)]);
    }
}

#[test]
fn q06_a_flush_of_no_bytes_looks_at_no_key() {
    let (mut a, _b, _region) = flushable(BOTH);
    a.post(flush(RemoteAddr { addr: u64::MAX, rkey: 0xdead }, 0, Placement::GLOBAL));
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q06_a_flush_looks_at_no_piece_of_its_own() {
    let (mut a, _b, region) = flushable(BOTH);
    let bad = [Sge { addr: u64::MAX, length: u32::MAX, lkey: 0xdead }; 64];
    let plain = flush(region.remote(0).unwrap(), LEN, Placement::GLOBAL);
    for data in [Data::Sges(&bad), Data::Inline(&[0; 1000])] {
        a.post(SendWr { data, ..plain });
        a.expect(&[(1, S::SUCCESS)]);
    }
}

#[test]
fn q07_reads_and_atomics_that_are_turned_off_concern_neither() {
    let (mut a, mut b) = (End::new(), End::new());
    let none = QpAttr::rtr(a.qp.number()).max_dest_rd_atomic(0);
    for attr in [QpAttr::init(Access::REMOTE | BOTH), none, QpAttr::rts()] {
        b.qp.modify(&attr).unwrap();
    }
    let none = QpAttr::rts().max_rd_atomic(0);
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &none);
    let region = b.pd.allocate(8, ALL | BOTH).unwrap();
    let remote = region.remote(0).unwrap();
    a.post(flush(remote, 8, Placement::GLOBAL));
    a.expect(&[(1, S::SUCCESS)]);
    a.post(SendWr::atomic_write_inline(1, &[7; 8], remote));
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q04_a_flush_without_a_placement_or_with_a_strange_one_is_refused() {
    let (mut a, _b, region) = flushable(BOTH);
    let remote = region.remote(0).unwrap();
    let strange = Placement::from_bits_retain(1 << 2);
    for placement in [Placement::empty(), strange, strange | Placement::GLOBAL] {
        let refused = PostError { posted: 0, why: Refused::BadPlacement };
        assert_eq!(a.qp.post_send(&[flush(remote, 8, placement)]), Err(refused));
    }
    a.expect_nothing();
}

#[test]
fn q07_a_flush_needs_the_right_of_the_queue_pair_for_each_placement() {
    for (placement, needs) in PLACEMENTS {
        for missing in needs.iter() {
            let rights = (Access::REMOTE | BOTH).difference(missing);
            let fine =
                |_: &End, region: &OwnedRegion| flush(region.remote(0).unwrap(), LEN, placement);
            check(rights, fine, S::REM_INV_REQ_ERR, Failed);
            // Judged before the key, and even if there is nothing to flush.
            let nothing =
                |_: &End, _: &OwnedRegion| flush(RemoteAddr { addr: 0, rkey: 0 }, 0, placement);
            check(rights, nothing, S::REM_INV_REQ_ERR, Failed);
        }
    }
}

#[test]
fn q07_a_flush_needs_the_right_of_the_region_for_each_placement() {
    for (placement, needs) in PLACEMENTS {
        for missing in needs.iter() {
            for selectivity in [Selectivity::Range, Selectivity::Region] {
                let kept = std::cell::OnceCell::new();
                let wr = |b: &End, _: &OwnedRegion| {
                    let rights = (ALL | BOTH).difference(missing);
                    let region = kept.get_or_init(|| b.pd.allocate(64, rights).unwrap());
                    SendWr::flush(1, region.remote(0).unwrap(), 64, placement, selectivity)
                };
                check(BOTH, wr, S::REM_ACCESS_ERR, Failed);
            }
        }
    }
}

#[test]
fn q07_a_flush_of_a_bad_key_or_range() {
    let placement = Placement::GLOBAL;
    type Range = fn(&OwnedRegion) -> (RemoteAddr, u32);
    let bad: [Range; 5] = [
        |region| (region.remote(1).unwrap(), LEN),
        |region| (region.remote(LEN as usize).unwrap(), 1),
        |region| (RemoteAddr { addr: region.addr() - 1, rkey: region.rkey() }, 1),
        |region| (RemoteAddr { addr: u64::MAX - 3, rkey: region.rkey() }, 8),
        |region| (region.remote(0).unwrap(), u32::MAX),
    ];
    for bad in bad {
        let wr = |_: &End, region: &OwnedRegion| {
            let (remote, length) = bad(region);
            flush(remote, length, placement)
        };
        check(BOTH, wr, S::REM_ACCESS_ERR, Failed);
    }
    for selectivity in [Selectivity::Range, Selectivity::Region] {
        let garbled: [fn(u32) -> u32; 3] = [|_| 0, |rkey| rkey ^ 1, |rkey| rkey ^ 1 << 8];
        for garbled in garbled {
            let wr = |_: &End, region: &OwnedRegion| {
                let remote = RemoteAddr { addr: region.addr(), rkey: garbled(region.rkey()) };
                SendWr::flush(1, remote, 8, placement, selectivity)
            };
            check(BOTH, wr, S::REM_ACCESS_ERR, Failed);
        }
        let kept = std::cell::OnceCell::new();
        let elsewhere = |_: &End, _: &OwnedRegion| {
            let pd = common::open().alloc_pd();
            let region: &OwnedRegion = kept.get_or_init(|| pd.allocate(8, BOTH).unwrap());
            SendWr::flush(1, region.remote(0).unwrap(), 8, placement, selectivity)
        };
        check(BOTH, elsewhere, S::REM_ACCESS_ERR, Failed);
    }
}

#[test]
fn q07_a_flush_waits_for_its_peer_like_any_other_and_is_flushed_like_any_other() {
    let (mut a, b) = (End::new(), End::new());
    connect_by(&mut a.qp, &QpAttr::rtr(b.qp.number()), &impatient());
    let wr = flush(b.region.remote(0).unwrap(), 8, Placement::GLOBAL);
    a.qp.post_send(&[wr.unsignaled(), wr]).unwrap();
    a.expect(&[(1, S::RETRY_EXC_ERR), (1, S::WR_FLUSH_ERR)]);
    assert_eq!((a.qp.state(), b.qp.state()), (Failed, QpState::Reset));
}

#[test]
fn q06_an_atomic_write_writes_eight_bytes_wherever_they_come_from() {
    let (mut a, mut b) = pair();
    a.region.write(0, b"abcdefghijkl").unwrap();
    let remote = b.region.remote(16).unwrap();
    let one = [a.region.sge(1, 8).unwrap()];
    let nothing = Sge { addr: 1, length: 0, lkey: 0xdead };
    let three = [a.region.sge(0, 3).unwrap(), nothing, a.region.sge(5, 5).unwrap()];
    for (wr, bytes) in [
        (SendWr::atomic_write(1, &one, remote), b"bcdefghi"),
        (SendWr::atomic_write(1, &three, remote), b"abcfghij"),
        (SendWr::atomic_write_inline(1, b"inlined!", remote), b"inlined!"),
    ] {
        a.post(wr);
        let done = a.expect(&[(1, S::SUCCESS)])[0];
        assert_eq!(done.result().unwrap().opcode(), WcOpcode::ATOMIC_WRITE);
        assert_eq!(b.bytes(16, 8), bytes);
        assert_eq!((b.word(8), b.word(24)), (0, 0));
    }
    b.expect_nothing();
    assert_eq!(b.qp.state(), Rts);
}

#[test]
fn q07_an_inline_atomic_write_of_another_length() {
    for len in [0, 7, 9, 64] {
        let (mut a, b) = pair();
        let op = SendOp::AtomicWrite { remote: b.region.remote(0).unwrap() };
        a.post(SendWr::new(1, op, Data::Inline(&[1; 64][..len])));
        a.expect(&[(1, S::LOC_LEN_ERR)]);
        assert_eq!((a.qp.state(), b.qp.state(), b.word(0)), (Failed, Rts, 0));
    }
}
