//! Asynchronous events: which come, of what, to whom, and when (O2, Q1, Q7). Those of an overrun are among
//! the tests of the overrun.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::events::is_readable;
use crate::common::{ALL, CAPS, S, bring_to, open, settle, take, wait_for};
use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::setup::{Endpoint, Port};
use cq_core::transport::{AsyncEvents, Post};
use cq_core::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use transport_rxe_loop::{Access, Context, Cq, OwnedRegion, QpAttr, QpInit, QpState, QueuePair};

/// What hears of one end's events, and that end.
struct Side {
    context: Context,
    cq: Cq,
    qp: QueuePair,
    region: OwnedRegion,
}

impl Side {
    fn new() -> Self {
        let context = open();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
        let qp = pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
        let region = pd.allocate(64, ALL).unwrap();
        Self { context, cq, qp, region }
    }

    fn pair() -> (Self, Self) {
        let (mut a, mut b) = (Self::new(), Self::new());
        a.qp.connect_to(b.qp.number()).unwrap();
        b.qp.connect_to(a.qp.number()).unwrap();
        (a, b)
    }

    fn has(&self, event_type: AsyncEventType) -> AsyncEvent {
        AsyncEvent { event_type, element: Element::Qp(self.qp.number()) }
    }

    /// These are the events that there are, and the descriptor knows.
    #[track_caller]
    fn expect(&mut self, wanted: &[AsyncEventType]) {
        for &event_type in wanted {
            assert!(is_readable(&self.context));
            assert_eq!(self.context.take_async_event(), Ok(Some(self.has(event_type))));
        }
        assert!(!is_readable(&self.context));
        assert_eq!(self.context.take_async_event(), Ok(None));
    }

    fn drain(&mut self) {
        let attr = QpAttr::to(QpState::SQD).en_sqd_async_notify(true);
        self.qp.modify(&attr).unwrap();
    }

    #[track_caller]
    fn completes(&mut self, wanted: &[(u64, S)]) {
        let got = settle(&mut self.cq, wanted.len());
        assert!(got.iter().map(|wc| (wc.wr_id(), wc.status())).eq(wanted.iter().copied()));
    }
}

/// One request of each kind for this place; the answers go to `here`.
fn one_sided(here: &[Sge], remote: RemoteAddr) -> [SendWr<'_>; 5] {
    [
        SendWr::write(1, here, remote),
        SendWr::read(1, here, remote),
        SendWr::compare_swap(1, here, remote, 0, 1),
        SendWr::fetch_add(1, here, remote, 1),
        SendWr::atomic_write(1, here, remote),
    ]
}

#[test]
fn q07_a_read_or_atomic_that_is_not_taken_is_a_request_error_at_the_target() {
    // Which kinds; how many READs and atomics the target takes, and where in its region.
    for (kinds, max_dest_rd_atomic, offset) in [(1..4, 0, 0), (2..5, 16, 4)] {
        for kind in kinds {
            let (mut a, mut b) = (Side::new(), Side::new());
            a.qp.connect_to(b.qp.number()).unwrap();
            b.qp.modify(&QpAttr::init(&Port::new(1), Access::REMOTE)).unwrap();
            let rtr = QpAttr::rtr(&Port::new(1), &Endpoint::new(a.qp.number()))
                .max_dest_rd_atomic(max_dest_rd_atomic);
            b.qp.modify(&rtr).unwrap();
            let here = [a.region.sge(0, 8).unwrap()];
            let target = b.region.remote(offset).unwrap();
            a.qp.post_send(&[one_sided(&here, target)[kind]]).unwrap();
            a.completes(&[(1, S::REM_INV_REQ_ERR)]);
            b.expect(&[AsyncEventType::QP_REQ_ERR]);
            a.expect(&[]);
        }
    }
}

#[test]
fn each_context_has_the_events_of_what_was_made_through_it_and_clones_share_them() {
    let (a, mut b) = Side::pair();
    let mut stranger = open();
    let mut clone = b.context.clone();
    b.drain();
    assert!(is_readable(&clone));
    assert_eq!(stranger.take_async_event(), Ok(None));
    assert_eq!(clone.take_async_event(), Ok(Some(b.has(AsyncEventType::SQ_DRAINED))));
    b.expect(&[]);
    drop(a);
}

#[test]
fn events_come_in_order_of_arrival() {
    let mut context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
    let mut qps: Vec<_> = (0..5).map(|_| pd.create_qp(&QpInit::new(&cq)).unwrap()).collect();
    for qp in &mut qps {
        let itself = qp.number();
        qp.connect_to(itself).unwrap();
    }
    for index in [3, 0, 4, 1, 2] {
        let attr = QpAttr::to(QpState::SQD).en_sqd_async_notify(true);
        qps[index].modify(&attr).unwrap();
    }
    let nowhere = RemoteAddr { addr: 1, rkey: 1 };
    qps[0].modify(&QpAttr::to(QpState::RTS)).unwrap();
    qps[0].post_send(&[SendWr::write_inline(1, b"x", nowhere)]).unwrap();
    for index in [3, 0, 4, 1, 2, 0] {
        let event = context.take_async_event().unwrap().unwrap();
        assert_eq!(event.element, Element::Qp(qps[index].number()));
    }
    assert_eq!(context.take_async_event(), Ok(None));
}

#[test]
fn a_destroyed_queue_pair_is_never_named_and_waits_for_no_reader() {
    let mut context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
    let drained = |peer: u32| {
        let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        qp.connect_to(peer).unwrap();
        qp.modify(&QpAttr::to(QpState::SQD).en_sqd_async_notify(true)).unwrap();
        qp
    };
    let (first, dead, last) = (drained(0), drained(0), drained(0));
    dead.destroy();
    for qp in [&first, &last] {
        let event = context.take_async_event().unwrap().unwrap();
        assert_eq!(event.element, Element::Qp(qp.number()));
    }
    first.destroy();
    assert_eq!(context.take_async_event(), Ok(None));
    let again = drained(0);
    again.destroy();
    assert!(!is_readable(&context));
    drop(last);
}

/// Connects a queue pair to each of these, and makes them fail.
fn fail_each(mut a: Side, peers: mpsc::Receiver<u32>) {
    let nowhere = RemoteAddr { addr: 1, rkey: 1 };
    for peer in peers {
        a.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        a.qp.connect_to(peer).unwrap();
        a.qp.post_send(&[SendWr::write_inline(1, b"x", nowhere)]).unwrap();
        take(&mut a.cq);
    }
}

/// Reads events until there are none and will be none; says how many there were.
fn read_all(mut reader: Context, dead: &Mutex<HashSet<u32>>, done: &AtomicBool) -> usize {
    let mut named = 0;
    loop {
        let was_done = done.load(Ordering::Acquire);
        let gone = dead.lock().unwrap(); // none dies meanwhile
        match reader.take_async_event().unwrap().map(|event| event.element) {
            Some(Element::Qp(number)) => {
                assert!(!gone.contains(&number), "{number} is dead");
                named += 1;
            }
            None if was_done => return named,
            _ => drop(gone),
        }
    }
}

#[test]
fn no_event_names_a_queue_pair_that_was_destroyed_before_it_was_taken() {
    const ROUNDS: usize = 1_000;
    let context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4096, None).unwrap());
    let (dead, done) = (Mutex::new(HashSet::new()), AtomicBool::new(false));
    let (to_fail, failing) = mpsc::sync_channel(0);
    let a = Side::new();
    let number_of_a = a.qp.number();
    // While one thread makes a queue pair fail, its owner destroys it, and a third one reads.
    let named = thread::scope(|scope| {
        scope.spawn(|| fail_each(a, failing));
        let reading = scope.spawn(|| read_all(context.clone(), &dead, &done));
        for round in 0..ROUNDS {
            let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
            let number = qp.number();
            qp.connect_to(number_of_a).unwrap();
            if round % 3 == 0 {
                qp.modify(&QpAttr::to(QpState::SQD).en_sqd_async_notify(true)).unwrap();
            }
            to_fail.send(number).unwrap();
            qp.destroy();
            dead.lock().unwrap().insert(number);
        }
        drop(to_fail);
        done.store(true, Ordering::Release);
        reading.join().unwrap()
    });
    assert!(named > 0);
}

#[test]
fn n09_unread_events_block_nobody_and_none_is_lost() {
    const EVENTS: usize = 20_000;
    let (mut a, _b) = Side::pair();
    for _ in 0..EVENTS {
        a.drain();
        a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
    }
    a.expect(&[AsyncEventType::SQ_DRAINED; EVENTS]);
}

#[test]
fn objects_outlive_the_context_that_they_were_made_through() {
    let (mut a, b) = Side::pair();
    let Side { context, qp, cq: _cq, .. } = b;
    drop(context);
    let nowhere = RemoteAddr { addr: 1, rkey: 1 };
    a.qp.post_send(&[SendWr::write_inline(1, b"x", nowhere)]).unwrap();
    assert_eq!(qp.state().unwrap(), QpState::ERR);
}

#[test]
fn a_sleeper_of_another_thread_is_woken_and_waiting_ends_in_time() {
    let (mut a, b) = Side::pair();
    let (wanted, mut context) = (b.has(AsyncEventType::QP_ACCESS_ERR), b.context.clone());
    assert_eq!(context.wait_async(Some(Instant::now() + Duration::from_millis(2))), Ok(None));
    let sleeper = thread::spawn(move || context.wait_async(None));
    let nowhere = RemoteAddr { addr: 1, rkey: 1 };
    a.qp.post_send(&[SendWr::write_inline(1, b"x", nowhere)]).unwrap();
    assert_eq!(sleeper.join().unwrap(), Ok(Some(wanted)));
    drop(b);
}

#[test]
fn q01_an_idle_send_queue_is_drained_at_once_and_once_if_that_was_asked_for() {
    let (mut a, _b) = Side::pair();
    a.qp.modify(&QpAttr::to(QpState::SQD).en_sqd_async_notify(false)).unwrap();
    a.expect(&[]);
    a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
    a.drain();
    a.expect(&[AsyncEventType::SQ_DRAINED]);
    a.qp.modify(&QpAttr::new().rnr_retry(3)).unwrap(); // still in SQD
    a.qp.post_send(&[SendWr::send_inline(1, b"x")]).unwrap();
    a.expect(&[]);
}

#[test]
fn q01_what_fails_or_is_reset_in_sqd_is_not_drained() {
    for to in [QpState::ERR, QpState::RESET] {
        let (mut a, mut b) = Side::pair();
        a.qp.post_send(&[1, 2].map(|wr_id| SendWr::send_inline(wr_id, b"x"))).unwrap();
        a.drain();
        a.qp.modify(&QpAttr::to(to)).unwrap();
        match to {
            QpState::ERR => a.completes(&[(1, S::WR_FLUSH_ERR), (2, S::WR_FLUSH_ERR)]),
            _ => assert_eq!(take(&mut a.cq), []),
        }
        a.expect(&[]);
        a.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        let (mine, peer) = (a.qp.number(), b.qp.number());
        bring_to(&mut b.qp, mine, QpState::RTS);
        bring_to(&mut a.qp, peer, QpState::SQD); // without asking for a report
        a.expect(&[]);
    }
}

#[test]
fn q01_nothing_is_carried_out_between_the_report_and_rts() {
    const ROUNDS: u64 = 2_000;
    let (mut a, b) = Side::pair();
    let here = [b.region.sge(0, 8).unwrap()];
    let (mut qp, mut cq) = (b.qp, b.cq);
    // Receives come from another thread, which so often is the one that carries the sends out.
    let receiver = thread::spawn(move || {
        let mut posted = 0;
        let mut got = 0;
        wait_for(|| {
            if posted < ROUNDS && qp.post_recv(&[RecvWr::new(posted, &here)]).is_ok() {
                posted += 1;
            }
            got += take(&mut cq).len() as u64;
            got == ROUNDS
        });
        qp
    });
    for wr_id in 0..ROUNDS {
        a.qp.post_send(&[SendWr::send_inline(wr_id, b"x")]).unwrap();
        a.drain();
        let event = a.context.wait_async(Some(Instant::now() + Duration::from_secs(60))).unwrap();
        assert_eq!(event, Some(a.has(AsyncEventType::SQ_DRAINED)));
        // Whether it was begun before SQD is up to who had the turn.
        let before = take(&mut a.cq).len();
        thread::yield_now();
        assert_eq!(take(&mut a.cq), []);
        a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
        assert_eq!(settle(&mut a.cq, 1 - before).len(), 1 - before);
    }
    receiver.join().unwrap();
    a.expect(&[]);
}
