//! What goes wrong with a request that reaches for memory of the peer, a WRITE, READ or atomic of any kind; how both
//! sides see it, in which states that leaves them, and that no memory has changed: Q7, beyond what the conformance
//! suite tries.

use crate::common::failing::{expect_failure, good, run_on};
use crate::common::{self, ALL, End, S, impatient, pair, patient, unanswered};
use cq_core::setup::{Endpoint, Port};
use cq_core::wr::{RemoteAddr, SendWr, Sge};
use transport_rxe_loop::{Access, OwnedRegion, ProtectionDomain, QpAttr, QpState};

/// An operation, and the right that it needs of the target's queue pair and region.
struct Op {
    wr: for<'a> fn(&'a [Sge], RemoteAddr) -> SendWr<'a>,
    right: Access,
    atomic: bool,
}

impl Op {
    /// Whether data comes back; if not, its own pieces are read.
    fn is_answered(&self) -> bool {
        self.right != Access::REMOTE_WRITE
    }

    /// Whether memory of the target's is changed before it is known where the answer goes.
    fn changes_before_it_is_answered(&self) -> bool {
        self.right == Access::REMOTE_ATOMIC
    }
}

const WRITE: Op =
    Op { wr: |sges, at| SendWr::write(1, sges, at), right: Access::REMOTE_WRITE, atomic: false };
const READ: Op =
    Op { wr: |sges, at| SendWr::read(1, sges, at), right: Access::REMOTE_READ, atomic: false };
const ATOMIC_WRITE: Op = Op {
    wr: |sges, at| SendWr::atomic_write(1, sges, at),
    right: Access::REMOTE_WRITE,
    atomic: true,
};
const COMPARE_SWAP: Op = Op {
    wr: |sges, at| SendWr::compare_swap(1, sges, at, u64::from_ne_bytes([THEIRS; 8]), 1),
    right: Access::REMOTE_ATOMIC,
    atomic: true,
};
const FETCH_ADD: Op = Op {
    wr: |sges, at| SendWr::fetch_add(1, sges, at, 1),
    right: Access::REMOTE_ATOMIC,
    atomic: true,
};
const ALL_OPS: [Op; 5] = [WRITE, READ, COMPARE_SWAP, FETCH_ADD, ATOMIC_WRITE];

/// What the regions of both ends hold before.
const OURS: u8 = 0x11;
const THEIRS: u8 = 0x22;

/// What a target that has failed, or has noticed nothing, has to show.
const REFUSED: (Option<S>, QpState) = (None, QpState::ERR);
const UNAWARE: (Option<S>, QpState) = (None, QpState::RTS);

/// The operation on `ends` fails so, and changes no memory, but for an atomic whose answer has no place.
#[track_caller]
fn check_on(
    ends: (End, End),
    op: &Op,
    sges: impl FnOnce(&End) -> Vec<Sge>,
    remote: impl FnOnce(&End) -> RemoteAddr,
    ours: S,
    theirs: (Option<S>, QpState),
) {
    let (mut a, mut b) = run_on(ends, good, |a, b| {
        a.region.write(0, &[OURS; 8192]).unwrap();
        b.region.write(0, &[THEIRS; 8192]).unwrap();
        a.post((op.wr)(&sges(a), remote(b)));
    });
    expect_failure((&mut a, &mut b), (ours, QpState::ERR), theirs);
    if ours == S::LOC_PROT_ERR && op.changes_before_it_is_answered() {
        // It was carried out, and is at 64.
        let word = u64::from_ne_bytes([THEIRS; 8]);
        assert!([1, word + 1].contains(&b.word(64)), "{:#x}", b.word(64));
        b.set_word(64, word);
    }
    assert_eq!((a.bytes(0, 8192), b.bytes(0, 8192)), (vec![OURS; 8192], vec![THEIRS; 8192]));
}

/// Eight bytes of one's own that nothing is wrong with.
fn fine(a: &End) -> Vec<Sge> {
    vec![a.region.sge(64, 8).unwrap()]
}

fn fine_remote(b: &End) -> RemoteAddr {
    b.region.remote(64).unwrap()
}

/// Every way in which eight bytes can be none of one's own: by the key, by the range, or both.
const BAD_PIECES: [fn(&End) -> Sge; 5] = [
    |a| Sge { lkey: 0, ..fine(a)[0] },
    |a| Sge { lkey: a.region.lkey() ^ 1, ..fine(a)[0] },
    |a| Sge { addr: a.region.addr() - 1, ..fine(a)[0] },
    |a| Sge { addr: a.region.addr() + 8192 - 7, ..fine(a)[0] },
    |a| Sge { addr: u64::MAX - 3, ..fine(a)[0] },
];

#[test]
fn q07_a_bad_remote_key_or_range() {
    let pd = common::open().alloc_pd().unwrap();
    let elsewhere = pd.allocate(64, ALL).unwrap();
    // Aligned, so that they are wrong for atomics in this way only.
    let bad: [fn(&End) -> RemoteAddr; 2] = [
        |b| RemoteAddr { rkey: u32::MAX, ..fine_remote(b) },
        |b| RemoteAddr { addr: u64::MAX - 7, rkey: b.region.rkey() },
    ];
    for op in &ALL_OPS {
        for remote in bad {
            check_on(pair(), op, fine, remote, S::REM_ACCESS_ERR, REFUSED);
        }
        let kept = std::cell::OnceCell::new();
        let short = |b: &End| kept.get_or_init(|| b.pd.allocate(12, ALL).unwrap()).remote(8);
        check_on(pair(), op, fine, |b| short(b).unwrap(), S::REM_ACCESS_ERR, REFUSED);
    }
    let past = |b: &End| b.region.remote(8192 - 7).unwrap();
    check_on(pair(), &READ, fine, past, S::REM_ACCESS_ERR, REFUSED);
    let foreign = |_: &End| elsewhere.remote(0).unwrap();
    check_on(pair(), &ATOMIC_WRITE, fine, foreign, S::REM_ACCESS_ERR, REFUSED);
}

#[test]
fn q07_a_queue_pair_that_takes_reads_once_it_says_so_in_sqd() {
    let (mut a, mut b) = (End::new(), End::new());
    let none = QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number())).max_dest_rd_atomic(0);
    for attr in [QpAttr::init(&Port::new(1), Access::REMOTE), none, QpAttr::rts()] {
        b.qp.modify(&attr).unwrap();
    }
    a.qp.connect_to(b.qp.number()).unwrap();
    b.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
    b.qp.modify(&QpAttr::new().max_dest_rd_atomic(1)).unwrap();
    a.post(SendWr::read(1, &fine(&a), fine_remote(&b)));
    a.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_a_misaligned_atomic_of_a_bad_local_key() {
    // What is sent is looked at before it is sent, where answers go once they come.
    let bad = |a: &End| vec![BAD_PIECES[0](a)];
    let remotes: [fn(&End) -> RemoteAddr; 2] =
        [|b| b.region.remote(65).unwrap(), |_| RemoteAddr { addr: u64::MAX, rkey: 0xdead }];
    for op in ALL_OPS.iter().filter(|op| op.atomic) {
        for remote in remotes {
            let (ours, theirs) = match op.is_answered() {
                true => (S::REM_INV_REQ_ERR, REFUSED),
                false => (S::LOC_PROT_ERR, UNAWARE),
            };
            check_on(pair(), op, bad, remote, ours, theirs);
        }
    }
}

#[test]
fn q07_a_bad_local_key_or_range_fails_here_only() {
    for op in &ALL_OPS {
        for piece in BAD_PIECES {
            check_on(pair(), op, |a| vec![piece(a)], fine_remote, S::LOC_PROT_ERR, UNAWARE);
        }
        // A bad piece behind a good one.
        let pieces = |a: &End| {
            let [mut first, mut second] = [fine(a)[0], BAD_PIECES[2](a)];
            (first.length, second.length) = (4, 4);
            vec![first, second]
        };
        check_on(pair(), op, pieces, fine_remote, S::LOC_PROT_ERR, UNAWARE);
    }
}

#[test]
fn q07_what_comes_back_needs_local_write() {
    for op in &ALL_OPS {
        let kept: std::cell::OnceCell<(ProtectionDomain, OwnedRegion)> = Default::default();
        let piece = |a: &End| {
            let region =
                || (common::open().alloc_pd().unwrap(), a.pd.allocate(8, Access::empty()).unwrap());
            vec![kept.get_or_init(region).1.sge(0, 8).unwrap()]
        };
        if !op.is_answered() {
            let (mut a, mut b) = pair();
            a.post((op.wr)(&piece(&a), fine_remote(&b)));
            a.expect(&[(1, S::SUCCESS)]);
            b.expect_nothing();
        } else {
            check_on(pair(), op, piece, fine_remote, S::LOC_PROT_ERR, UNAWARE);
        }
    }
}

#[test]
fn q07_an_atomic_whose_pieces_are_not_eight_bytes() {
    for op in ALL_OPS.iter().filter(|op| op.atomic) {
        for lengths in [&[][..], &[4096], &[8, 1], &[4, 3]] {
            let pieces = |a: &End| {
                let piece = |len: &usize| a.region.sge(0, *len).unwrap();
                lengths.iter().map(piece).collect()
            };
            check_on(pair(), op, pieces, fine_remote, S::LOC_LEN_ERR, UNAWARE);
        }
    }
}

#[test]
fn q07_a_peer_that_is_gone_or_does_not_answer_in_time() {
    for op in &ALL_OPS {
        let (mut gone, b) = pair();
        let remote = fine_remote(&b);
        b.qp.destroy();
        let (mut silent, c) = unanswered(&impatient());
        for (a, remote) in [(&mut gone, remote), (&mut silent, fine_remote(&c))] {
            a.post((op.wr)(&fine(a), remote));
            a.send(2, 0, 8);
            a.expect(&[(1, S::RETRY_EXC_ERR), (2, S::WR_FLUSH_ERR)]);
            assert_eq!(a.qp.state().unwrap(), QpState::ERR);
        }
        assert_eq!((c.qp.state().unwrap(), c.bytes(0, 8192)), (QpState::RESET, vec![0; 8192]));
    }
}

#[test]
fn q07_a_peer_that_answers_late_is_asked_once() {
    let after: [fn(u64) -> u64; 5] = [|_| 0, |word| word, |_| 1, |word| word + 1, |_| 0];
    for (op, after) in ALL_OPS.iter().zip(after) {
        let (mut a, mut b) = unanswered(&patient());
        b.region.write(0, &[THEIRS; 8192]).unwrap();
        a.post((op.wr)(&fine(&a), fine_remote(&b)));
        a.expect_nothing();
        b.qp.connect_to(a.qp.number()).unwrap();
        a.expect(&[(1, S::SUCCESS)]);
        let before = u64::from_ne_bytes([THEIRS; 8]);
        assert_eq!(b.word(64), after(before));
    }
}
