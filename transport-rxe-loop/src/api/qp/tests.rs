//! What a day of traffic leads to, in miniature: positions that wrap. Those of send queues are told to the
//! poller in 31 bits, kept in 64, and reduced to a slot.

use std::collections::VecDeque;

use super::*;
use crate::inside::prelude::*;

/// Not powers of two, so that slots of the ring and slots of the queue are told apart.
const CAPS: QpCaps =
    QpCaps { max_send_wr: 7, max_recv_wr: 5, max_send_sge: 1, max_recv_sge: 1, max_inline: 8 };

/// A little before each place where a position, or what is left of it in a tag, wraps. From `(1 << 63) - 7` on,
/// the receive queue is full once while its positions lie on both sides.
const STARTS: [u64; 6] =
    [(1 << 31) - 9, (1 << 32) - 9, (3 << 31) - 9, (1 << 63) - 9, (1 << 63) - 7, u64::MAX - 8];

/// A queue pair whose positions start at `start`, as if it had worked for long, and what it has to say.
struct End {
    qp: QueuePair,
    cq: Cq,
    /// Posted and not polled, and whether each is signaled.
    sends: VecDeque<(u64, bool)>,
    recvs: VecDeque<u64>,
    next: u64,
}

impl End {
    fn new(domain: &crate::ProtectionDomain, start: u64) -> Self {
        let cq = Context::open("loop0").unwrap().create_cq(64, None).unwrap();
        let mut qp = domain.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
        let slot = qp.claimed.queue.slot;
        let positions = [&slot.send.posted, &slot.send.done, &slot.send.freed].into_iter();
        for position in positions.chain(slot.recv.positions()) {
            sync::store(position, start);
        }
        qp.free_slots = FreeSlots::all(slot.send.posted());
        Self { qp, cq, sends: VecDeque::new(), recvs: VecDeque::new(), next: 0 }
    }

    /// Posts sends until the queue is full, which it is with as many as it takes and no fewer. Every third
    /// is signaled, and the last.
    fn fill_sends(&mut self) {
        let capacity = CAPS.max_send_wr as usize;
        while self.sends.len() < capacity {
            let signaled = self.next.is_multiple_of(3) || self.sends.len() + 1 == capacity;
            let wr = SendWr::send_inline(self.next, b"message");
            self.qp.post_send(&[if signaled { wr } else { wr.unsignaled() }]).unwrap();
            self.sends.push_back((self.next, signaled));
            self.next += 1;
        }
        let refused = self.qp.post_send(&[SendWr::send_inline(0, &[])]).unwrap_err();
        assert_eq!(refused.why, Refused::QueueFull);
    }

    fn fill_recvs(&mut self, region: &OwnedRegion) {
        let sge = [region.sge(0, 8).unwrap()];
        while self.recvs.len() < CAPS.max_recv_wr as usize {
            self.qp.post_recv(&[RecvWr::new(self.next, &sge)]).unwrap();
            self.recvs.push_back(self.next);
            self.next += 1;
        }
    }

    /// To RESET, if need be by way of ERR: what is posted is flushed, or dropped.
    fn empty(&mut self, flush: bool) {
        if flush {
            self.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
            while self.poll(WcStatus::WR_FLUSH_ERR) {}
            assert!(self.sends.is_empty() && self.recvs.is_empty());
        }
        self.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        assert!(!self.poll(WcStatus::SUCCESS));
        self.sends.clear();
        self.recvs.clear();
    }

    /// Polls one completion, which is the one that is due; false if there is none.
    fn poll(&mut self, status: WcStatus) -> bool {
        let mut wcs = [Wc::default()];
        if self.cq.poll(&mut wcs).unwrap() == 0 {
            return false;
        }
        assert_eq!(wcs[0].status(), status);
        let wr_id = wcs[0].wr_id();
        if self.recvs.front() == Some(&wr_id) {
            self.recvs.pop_front();
            return true;
        }
        while let Some((next, signaled)) = self.sends.pop_front() {
            if next == wr_id {
                return true;
            }
            assert!(!signaled && status == WcStatus::SUCCESS, "{next} has no completion");
        }
        panic!("{wr_id} was not due");
    }
}

/// A sender and a receiver whose positions start there, connected, and memory.
fn pair(start: u64) -> (End, End, OwnedRegion) {
    let domain = Context::open("loop0").unwrap().alloc_pd().unwrap();
    let (mut a, mut b) = (End::new(&domain, start), End::new(&domain, start));
    connect(&mut a, &mut b);
    (a, b, domain.allocate(64, Access::LOCAL_WRITE).unwrap())
}

fn connect(a: &mut End, b: &mut End) {
    a.qp.connect_to(b.qp.number()).unwrap();
    b.qp.connect_to(a.qp.number()).unwrap();
}

#[test]
fn q05_slots_come_back_exactly_while_positions_wrap() {
    for start in STARTS {
        let (mut a, mut b, region) = pair(start);
        for _ in 0..20 {
            a.fill_sends();
            b.fill_recvs(&region);
            while a.poll(WcStatus::SUCCESS) {
                assert!(a.sends.len() < CAPS.max_send_wr as usize);
                a.fill_sends();
            }
            while b.poll(WcStatus::SUCCESS) {}
        }
        let done = sync::load(&a.qp.claimed.queue.slot.send.done).wrapping_sub(start);
        assert!(done > 50, "{start:#x} was not passed: {done}");
    }
}

#[test]
fn q02_flush_and_reset_while_positions_wrap() {
    for start in STARTS {
        let (mut a, mut b, region) = pair(start);
        for round in 0..12 {
            a.fill_sends();
            a.empty(round % 2 == 0);
            b.fill_recvs(&region);
            let refused = b.qp.post_recv(&[RecvWr::new(0, &[])]).unwrap_err();
            assert_eq!(refused.why, Refused::QueueFull);
            b.empty(round % 2 == 0);
            connect(&mut a, &mut b);
        }
        assert!(a.qp.claimed.queue.slot.send.posted().get().wrapping_sub(start) > 50);
        assert!(b.qp.claimed.queue.slot.recv.posted().get().wrapping_sub(start) > 50);
    }
}

#[test]
fn q01_draining_is_told_once_also_where_nobody_asked_for_it() {
    let mut fixture = Fixture::of(OpenOptions::new().imitate_rxe());
    let mut qp = fixture.own_peer();
    for told in [true, false, false] {
        qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
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
    let mut qp = fixture.create(&QpInit { caps: CAPS, ..fixture.init(QpType::Rc) });
    let slot = fixture.slot(&qp);
    let mut fill = |qp: &mut QueuePair| {
        qp.connect_to(qp.number()).unwrap();
        let wr = SendWr::write_inline(1, &[], RemoteAddr { addr: 0, rkey: 0 });
        let posted = (0..20).take_while(|_| qp.post_send(&[wr.unsignaled()]).is_ok()).count();
        assert_eq!(fixture.polled(), []);
        qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        posted
    };
    for corrupted in [&slot.send.freed, &slot.send.posted] {
        for beyond in [1 << 40, 1_u64.wrapping_neg()] {
            sync::store(corrupted, slot.send.posted().get().wrapping_add(beyond));
            fill(&mut qp);
            assert_eq!(fill(&mut qp), CAPS.max_send_wr as usize);
        }
    }
}
