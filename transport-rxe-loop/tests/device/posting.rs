//! Posting in batches, telling that sends are done, slots, and what bytes and operands are moved, beyond what Q4, Q5
//! and Q6 ask of every device; and what the fields of a failure hold (C4).

use crate::common::*;
use cq_verbs::wr::{Data, SendOp};

#[test]
fn sends_are_done_once_they_are_carried_out_flushed_or_dropped() {
    let is_drained = |end: &End| end.qp.sends_done() == end.qp.sends_posted();
    for (to, completes) in [
        (QpState::RTS, Some(S::SUCCESS)),
        (QpState::ERR, Some(S::WR_FLUSH_ERR)),
        (QpState::RESET, None),
    ] {
        let (mut a, mut b) = pair();
        assert!(is_drained(&a));
        b.recv(1, 0, 64);
        a.to(QpState::SQD);
        a.post(SendWr::send(1, &[]));
        assert!(!is_drained(&a));
        a.to(to);
        a.expect(&completes.map(|status| (1, status)).into_iter().collect::<Vec<_>>());
        assert!(is_drained(&a));
    }
}

#[test]
fn q04_a_batch_is_posted_whole_or_not_at_all() {
    let (mut a, mut b) = pair();
    (0..8).for_each(|wr_id| b.recv(wr_id, 0, 64));
    let good = |wr_id| SendWr::send_inline(wr_id, b"good");

    {
        let mut batch = a.qp.batch();
        (10..18).for_each(|wr_id| batch.put(&good(wr_id)).unwrap());
        assert_eq!(batch.put(&good(18)), Err(WrError::QueueFull));
    }
    a.expect_nothing();
    b.expect_nothing();

    // Nor did what was forgotten cost a slot; and what is refused is left out of what is posted.
    let mut batch = a.qp.batch();
    batch.put(&good(20)).unwrap();
    let refused = batch.put(&SendWr::send_inline(21, &[0; 65]));
    assert_eq!(refused, Err(WrError::InlineTooLong { max: 64 }));
    batch.post();
    (22..29).for_each(|wr_id| batch.put(&good(wr_id)).unwrap());
    batch.post();
    a.expect(&all([20].into_iter().chain(22..29), S::SUCCESS));
}

/// What posting answers, and what it would if no request were outstanding.
#[track_caller]
fn is_judged_alike(mut qp: impl Post, wr: SendWr<'_>, why: Result<(), WrError>) {
    assert_eq!(qp.check_send(&wr), why, "{wr:?}");
    let posted = qp.post_send(&[wr]);
    let why = why.err().unwrap_or(WrError::QueueFull);
    assert_eq!(posted, Err(PostError { posted: 0, why }), "{wr:?}");
}

/// Fills a send queue.
fn fill(end: &mut End, peer: u32) {
    end.to(QpState::SQD);
    (0..8).for_each(|wr_id| end.post_to(peer, &[SendWr::send(wr_id, &[])]));
}

#[test]
fn q04_what_can_never_be_posted_is_refused_without_posting_it() {
    let (mut a, b) = pair();
    fill(&mut a, 0);
    let sge = a.region.sge(..8).unwrap();
    let (two_gib, remote) = (Sge { length: 1 << 31, ..sge }, b.region.remote(0).unwrap());
    let inline_read = SendWr::new(1, SendOp::Read { remote }, Data::Inline(b""));
    let nowhere = SendWr::flush(1, remote, 8, Placement::empty(), Selectivity::Range);
    let many = WrError::TooManySges { max: 4 };
    for (wr, why) in [
        (SendWr::send(1, &[sge; 4]), Ok(())),
        (SendWr::send_inline(1, &[0; 64]), Ok(())),
        (SendWr::read(1, &[two_gib], remote), Ok(())),
        (SendWr::local_invalidate(1, 0), Ok(())),
        (SendWr::write(1, &[sge; 5], remote), Err(many)),
        (SendWr::send_inline(1, &[0; 65]), Err(WrError::InlineTooLong { max: 64 })),
        (SendWr::send(1, &[two_gib, sge]), Err(WrError::TooLong { max: 1 << 31 })),
        (inline_read, Err(WrError::InlineResult)),
        (nowhere, Err(WrError::BadPlacement)),
    ] {
        is_judged_alike(&mut a.qp, wr, why);
    }
    let (mut a, b) = (End::new(), End::new());
    connect_by(&mut a.qp, &rtr(&b.qp), &patient().max_rd_atomic(0));
    fill(&mut a, 0);
    is_judged_alike(&mut a.qp, SendWr::read(1, &[], remote), Err(WrError::NoReadAtomic));
    let mut uc = End::of(QpType::UC, CAPS);
    uc.qp.connect_to(uc.qp.number()).unwrap();
    fill(&mut uc, 0);
    is_judged_alike(&mut uc.qp, SendWr::read(1, &[], remote), Err(WrError::Unsupported));
}

#[test]
fn q04_a_datagram_is_judged_with_its_destination() {
    let mut a = End::of(QpType::UD, CAPS);
    a.activate();
    let number = a.qp.number();
    let send = SendWr::send(1, &[]);
    fill(&mut a, number);
    is_judged_alike(&mut a.qp, send, Err(WrError::NoDestination));
    let other = a.context.alloc_pd().unwrap();
    let [ah, foreign] = [&a.pd, &other].map(|pd| pd.create_ah(&address(&a.context)).unwrap());
    let to = |ah| Destination::new(ah, number, QKEY);
    is_judged_alike(a.qp.to(&to(&ah)), send, Ok(()));
    is_judged_alike(a.qp.to(&to(&foreign)), send, Err(WrError::NoDestination));
    is_judged_alike(a.qp.to(&to(&ah)), SendWr::probe(1), Err(WrError::Unsupported));
    assert!(a.qp.to(&to(&ah)).quiesce());
    assert_eq!(a.state(), QpState::RESET);
    let mut connected = End::to_itself();
    let refused = Err(WrError::Unsupported);
    is_judged_alike(connected.qp.to(&to(&ah)), send, refused);
}

#[test]
fn q04_a_receive_that_can_never_be_posted_is_refused_without_posting_it() {
    let mut end = End::to_itself();
    (0..8).for_each(|wr_id| end.recv(wr_id, 0, 8));
    let sges = [end.region.sge(..8).unwrap(); 5];
    let srq = end.pd.create_srq(&SrqInit::new(8).max_sge(4)).unwrap();
    let mut shares = end.pd.qp(&end.cq).srq(&srq).create().unwrap();
    shares.connect_to(end.qp.number()).unwrap();
    let is_judged_alike = |qp: &mut QueuePair, count, why: Result<(), WrError>| {
        let wr = RecvWr::new(9, &sges[..count]);
        assert_eq!(qp.check_recv(&wr), why);
        let why = why.err().unwrap_or(WrError::QueueFull);
        assert_eq!(qp.post_recv(&[wr]), Err(PostError { posted: 0, why }));
    };
    is_judged_alike(&mut end.qp, 4, Ok(()));
    is_judged_alike(&mut end.qp, 5, Err(WrError::TooManySges { max: 4 }));
    is_judged_alike(&mut shares, 4, Err(WrError::SharedReceives));
}

#[test]
fn a_receives_slot_comes_back_when_it_is_taken() {
    let (mut a, mut b) = pair();
    (0..8).for_each(|wr_id| b.recv(wr_id, 0, 8));
    let full = Err(PostError { posted: 0, why: WrError::QueueFull });
    assert_eq!(b.qp.post_recv(&[RecvWr::new(8, &[])]), full);
    a.send(1, 0, 8);
    b.recv(8, 0, 8); // nobody has polled
    assert_eq!(b.qp.post_recv(&[RecvWr::new(9, &[])]), full);
}

#[test]
fn q06_a_full_queue_of_atomics_has_room_for_all_operands_and_pieces() {
    for max in 1..=open().attributes().max_sge {
        let caps = CAPS.max_send_sge(max).max_inline(0);
        let (mut a, b) = pair_with(caps);
        let mut sges = vec![Sge { addr: 1, length: 0, lkey: 2 }; max as usize];
        a.to(QpState::SQD);
        for slot in 0..8 {
            let (offset, compare) = (slot as usize * 8, slot);
            sges[max as usize - 1] = a.region.sge(offset..offset + 8).unwrap();
            b.set_word(offset, compare);
            let remote = b.region.remote(offset).unwrap();
            a.post(SendWr::compare_swap(slot, &sges, remote, compare, 1 << 60 | slot));
        }
        a.to(QpState::RTS);
        a.expect(&all(0..8, S::SUCCESS));
        for slot in 0..8 {
            let offset = slot as usize * 8;
            assert_eq!((a.word(offset), b.word(offset)), (slot, 1 << 60 | slot));
        }
    }
}

#[test]
fn c04_undefined_fields_of_a_failure_are_poisoned() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 4);
    a.send(2, 0, 8);
    a.send(3, 0, 8);
    let failures = [
        a.expect(&[(2, S::REM_INV_REQ_ERR), (3, S::WR_FLUSH_ERR)]),
        b.expect(&[(1, S::LOC_LEN_ERR)]),
    ];
    for wc in failures.concat() {
        let bytes = wc.to_bytes();
        assert_eq!(bytes[12..16], [0xa5; 4], "opcode");
        assert_eq!(bytes[16..20], [0; 4], "vendor_err is defined");
        assert_eq!(bytes[20..28], [0xa5; 8], "byte_len and imm_data");
        assert_eq!(bytes[32..36], [0xa5; 4], "src_qp");
        assert_eq!(bytes[40..46], [0xa5; 6], "path");
        assert!(wc.result().is_err());
    }
}

#[test]
fn c04_the_owner_of_a_queue_decides_about_the_opcodes_of_failures() {
    let (mut a, mut b) = pair();
    b.cq.store_known_opcodes();
    b.recv(1, 0, 4);
    b.recv(2, 0, 4);
    a.send(3, 0, 8);
    let failed = b.expect(&[(1, S::LOC_LEN_ERR), (2, S::WR_FLUSH_ERR)]);
    for wc in failed {
        let poisoned = Wc::poisoned(wc.result().unwrap_err());
        assert_eq!(wc, poisoned.with_opcode(WcOpcode::SEND));
    }
    let failed = a.expect(&[(3, S::REM_INV_REQ_ERR)]);
    assert_eq!(
        failed,
        [Wc::poisoned(Failed::new(3, S::REM_INV_REQ_ERR, a.qp.number(), 0).unwrap())]
    );
    // What succeeds is not changed.
    let mut a = End::to_itself();
    a.cq.store_known_opcodes();
    let remote = a.region.remote(0).unwrap();
    a.post(SendWr::write_inline(1, b"x", remote));
    assert_eq!(a.expect(&[(1, S::SUCCESS)])[0].result().unwrap().opcode(), WcOpcode::RDMA_WRITE);
}

#[test]
fn a_queue_pair_that_is_its_own_peer_fails_on_both_sides() {
    let mut a = End::to_itself();
    a.recv(3, 0, 4);
    a.recv(4, 0, 4);
    a.send(5, 0, 9);
    a.expect(&[(3, S::LOC_LEN_ERR), (5, S::REM_INV_REQ_ERR), (4, S::WR_FLUSH_ERR)]);
    assert_eq!(a.state(), QpState::ERR);
}

/// Where it starts, and how many bytes it has.
type Piece = (usize, usize);

const LEN: usize = 8192;

/// Has bytes of a region moved to others of it by each operation that can, and looks what it holds then: all bytes from
/// before the copy.
#[track_caller]
fn check_overlap(a: &mut End, from: &[Piece], to: &[Piece]) {
    let before: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8 ^ (i / 251) as u8).collect();
    let mut after = before.clone();
    let mut bytes = from.iter().flat_map(|&(at, len)| &before[at..at + len]);
    for &(at, len) in to {
        after[at..at + len].iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = *from);
    }
    let [source, target] = [from, to].map(|sges| -> Vec<_> {
        sges.iter().map(|&(at, len)| a.region.sge(at..at + len).unwrap()).collect()
    });
    let remote = |at: Piece| a.region.remote(at.0).unwrap();
    let mut all = vec![SendWr::send(1, &source)];
    all.extend((to.len() == 1).then(|| SendWr::write(1, &source, remote(to[0]))));
    all.extend((from.len() == 1).then(|| SendWr::read(1, &target, remote(from[0]))));
    for (nth, wr) in all.into_iter().enumerate() {
        a.region.write(0, &before).unwrap();
        let mut wanted = vec![(1, S::SUCCESS)];
        if nth == 0 {
            a.qp.post_recv(&[RecvWr::new(2, &target)]).unwrap();
            wanted.insert(0, (2, S::SUCCESS));
        }
        a.post(wr);
        a.expect(&wanted);
        assert!(a.bytes(0, LEN) == after, "{:?}: {from:?} to {to:?}", wr.op);
    }
}

#[test]
fn q06_pieces_that_overlap_others_or_change_places() {
    let caps = CAPS.max_send_sge(16).max_recv_sge(16);
    let mut a = End::with(caps);
    a.qp.connect_to(a.qp.number()).unwrap();
    for len in [2, 8, 9, 64, 255, 256, 257, 4095, 4096, 4097] {
        for shift in [0, 1, 7, 8, 16, 248, 256, 3000] {
            check_overlap(&mut a, &[(64, len)], &[(64 + shift, len)]);
            check_overlap(&mut a, &[(64 + shift, len)], &[(64, len)]);
        }
    }
    for len in [1, 8, 100, 256, 2048] {
        let (halves, swapped) = ([(0, len), (len, len)], [(len, len), (0, len)]);
        let whole = [(0, 2 * len)];
        check_overlap(&mut a, &swapped, &halves);
        check_overlap(&mut a, &swapped, &whole);
        check_overlap(&mut a, &whole, &swapped);
    }
    let forwards: Vec<_> = (0..16).map(|i| (i * 256, 256)).collect();
    let backwards: Vec<_> = forwards.iter().rev().copied().collect();
    check_overlap(&mut a, &forwards, &backwards);
    check_overlap(&mut a, &[(0, 16 * 256)], &backwards);
    // Beyond 4 KiB too, if each has room of its own, long or short.
    let len = |i| if i % 2 == 0 { 1016 } else { 200 };
    let shifted: Vec<_> = (0..7).map(|i| (i * 1024 + 8, len(i))).collect();
    let sges: Vec<_> = (0..7).map(|i| (i * 1024, len(i))).collect();
    check_overlap(&mut a, &sges, &shifted);
    check_overlap(&mut a, &shifted, &sges);
}
