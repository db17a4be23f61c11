//! What a day of traffic leads to, in miniature: positions that wrap. Those of send queues are told to the
//! poller in 31 bits, kept in 64, and reduced to a slot.

use super::*;
use crate::inside::dying::ends::{DEPTH, End, Memory};
use crate::inside::prelude::*;

/// A little before each place where a position, or what is left of it in a tag, wraps. The queues are full once while
/// their positions lie on both sides.
const STARTS: [u64; 5] = [(1 << 31) - 9, (1 << 32) - 9, (3 << 31) - 9, (1 << 63) - 9, u64::MAX - 8];

/// Two connected ends whose positions start at `start`, as if they had worked for long, and their queues.
fn pair(fixture: &Fixture, start: u64) -> [(End, Cq); 2] {
    let mut pair = [(); 2].map(|()| {
        let cq = fixture.another_cq();
        let mut end = End::new(&fixture.pd, &cq, Memory::Fabric).unwrap();
        let slot = end.qp.claimed.queue.slot;
        let positions = [&slot.send.posted, &slot.send.done, &slot.send.freed].into_iter();
        for position in positions.chain(slot.recv.positions()) {
            sync::store(position, start);
        }
        end.qp.free_slots = FreeSlots::all(slot.send.posted());
        (end, cq)
    });
    connect(&mut pair);
    pair
}

fn connect(pair: &mut [(End, Cq); 2]) {
    let addresses = [1, 0].map(|other: usize| pair[other].0.address());
    for ((end, _), peer) in pair.iter_mut().zip(addresses) {
        end.connect_to(peer).unwrap();
    }
}

/// How far an end has got with its sends and receives.
fn posted(end: &End, start: u64) -> [u64; 2] {
    let slot = end.qp.claimed.queue.slot;
    [slot.send.posted(), slot.recv.posted()].map(|position| position.get().wrapping_sub(start))
}

/// Posts sends until the queue is full, which it is with as many as it takes and no fewer. Every third is signaled,
/// and the last.
fn fill_sends(end: &mut End) {
    for _ in 0..DEPTH {
        let signaled = posted(end, 0)[0].is_multiple_of(3);
        end.post_send(signaled, false).unwrap();
    }
    let refused = end.qp.post_send(&[SendWr::send(0, &[])]).unwrap_err();
    assert_eq!(refused.why, WrError::QueueFull);
}

/// Polls one completion, which is the one that is due; false if there is none.
fn poll(end: &mut End, cq: &mut Cq) -> bool {
    let mut wcs = [Wc::default()];
    let count = cq.poll_into(&mut wcs).unwrap();
    wcs[..count].iter().for_each(|wc| end.completed(wc));
    count == 1
}

/// To RESET, if need be by way of ERR: what is posted is flushed, or dropped.
fn empty(end: &mut End, cq: &mut Cq, flush: bool) {
    if flush {
        end.qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
        while poll(end, cq) {}
        assert!(end.is_done() && end.arrived == 0 && end.received() == 0, "{end:?}");
    }
    end.qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    assert!(!poll(end, cq));
}

#[test]
fn q05_slots_come_back_exactly_while_positions_wrap() {
    let fixture = Fixture::new();
    for start in STARTS {
        let [(mut a, mut sends), (mut b, mut recvs)] = pair(&fixture, start);
        for _ in 0..20 {
            fill_sends(&mut a);
            b.post_recvs(DEPTH).unwrap();
            while poll(&mut a, &mut sends) {
                fill_sends(&mut a);
            }
            while poll(&mut b, &mut recvs) {}
        }
        assert_eq!(a.failure, None);
        let done = sync::load(&a.qp.claimed.queue.slot.send.done).wrapping_sub(start);
        assert!(done > 50, "{start:#x} was not passed: {done}");
    }
}

#[test]
fn q02_flush_and_reset_while_positions_wrap() {
    let fixture = Fixture::new();
    for start in STARTS {
        let mut pair = pair(&fixture, start);
        for round in 0..12 {
            let [(a, sends), (b, recvs)] = &mut pair;
            fill_sends(a);
            empty(a, sends, round % 2 == 0);
            b.post_recvs(DEPTH).unwrap();
            let refused = b.qp.post_recv(&[RecvWr::new(0, &[])]).unwrap_err();
            assert_eq!(refused.why, WrError::QueueFull);
            empty(b, recvs, round % 2 == 0);
            connect(&mut pair);
        }
        assert!(posted(&pair[0].0, start)[0] > 50 && posted(&pair[1].0, start)[1] > 50);
    }
}

#[test]
fn q01_draining_is_told_once_also_where_nobody_asked_for_it() {
    let mut fixture = Fixture::of(OpenOptions::new().imitate_rxe());
    let mut qp = fixture.own_peer();
    for told in [true, false, false] {
        qp.modify(&QpAttr::new().state(QpState::SQD)).unwrap();
        assert_eq!(fixture.told(), told.then_some(AsyncEventType::SQ_DRAINED));
    }
}

#[test]
fn q06_what_a_failed_request_had_begun_is_not_the_next_one_s() {
    let mut fixture = Fixture::new();
    let mut qp = fixture.own_peer();
    // Of a stage that there is not.
    let begun = &fixture.device.engine.own(qp.index()).begun;
    sync::store(&begun[0], u64::MAX);
    qp.post_send(&[SendWr::write_inline(1, &[0; 8], RemoteAddr { addr: 0, rkey: 0 })]).unwrap();
    assert_eq!(fixture.polled(), [(1, WcStatus::REM_ACCESS_ERR)]);
    assert_eq!(sync::load(&begun[0]), 0);
}

#[test]
fn x04_slots_that_a_corrupted_position_took_come_back_in_reset() {
    let mut fixture = Fixture::new();
    let mut qp = fixture.qp();
    let most = fixture.init(QpType::RC).caps.max_send_wr as usize;
    let slot = fixture.slot(&qp);
    let mut fill = |qp: &mut QueuePair| {
        qp.connect_to(qp.number()).unwrap();
        let wr = SendWr::write_inline(1, &[], RemoteAddr { addr: 0, rkey: 0 });
        let posted = (0..2 * most).take_while(|_| qp.post_send(&[wr.unsignaled()]).is_ok()).count();
        assert_eq!(fixture.polled(), []);
        qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
        posted
    };
    for corrupted in [&slot.send.freed, &slot.send.posted] {
        for beyond in [1 << 40, 1_u64.wrapping_neg()] {
            sync::store(corrupted, slot.send.posted().get().wrapping_add(beyond));
            fill(&mut qp);
            assert_eq!(fill(&mut qp), most);
        }
    }
}
