//! Asynchronous events: which come, of what, to whom, and when (O2, Q1, Q7). Those of an overrun are among
//! the tests of the overrun.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::*;

impl End {
    fn has(&self, event_type: AsyncEventType) -> AsyncEvent {
        AsyncEvent { event_type, element: Element::Qp(self.qp.number()) }
    }

    /// These are the events that there are, and the descriptor knows.
    #[track_caller]
    fn expect_events(&mut self, wanted: &[AsyncEventType]) {
        for &event_type in wanted {
            assert!(is_readable(&self.context));
            assert_eq!(self.context.take_async_event(), Ok(Some(self.has(event_type))));
        }
        assert!(!is_readable(&self.context));
        assert_eq!(self.context.take_async_event(), Ok(None));
    }

    fn drain(&mut self) {
        self.qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
    }
}

#[test]
fn each_context_has_the_events_of_what_was_made_through_it_and_clones_share_them() {
    let (mut a, mut b) = pair();
    let mut clone = b.context.clone();
    b.drain();
    assert!(is_readable(&clone));
    a.expect_events(&[]);
    assert_eq!(clone.take_async_event(), Ok(Some(b.has(AsyncEventType::SQ_DRAINED))));
    b.expect_events(&[]);
}

#[test]
fn events_come_in_order_of_arrival_and_name_nothing_that_was_destroyed() {
    let mut context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(64).create().unwrap());
    let mut qps: Vec<_> = (0..6).map(|_| pd.qp(&cq).create().unwrap()).collect();
    for index in [3, 0, 5, 4, 1, 2] {
        let qp = &mut qps[index];
        qp.connect_to(qp.number()).unwrap();
        qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
    }
    qps[0].modify(&QpAttr::new().state(QpState::RTS)).unwrap();
    qps[0].post_send(&[SendWr::write_inline(1, b"x", NOWHERE)]).unwrap();
    qps.remove(5).destroy();
    let named = std::iter::from_fn(|| context.take_async_event().unwrap());
    let wanted = [3, 0, 4, 1, 2, 0].map(|index: usize| Element::Qp(qps[index].number()));
    assert!(named.map(|event| event.element).eq(wanted));
    qps[1].modify(&QpAttr::new().state(QpState::RTS)).unwrap();
    qps[1].modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
    assert!(is_readable(&context));
    qps.remove(1).destroy();
    assert!(!is_readable(&context));
}

/// Connects a queue pair to each of these, and makes them fail.
fn fail_each(mut a: End, peers: mpsc::Receiver<u32>) {
    for peer in peers {
        a.to(QpState::RESET);
        a.qp.connect_to(peer).unwrap();
        a.post(SendWr::write_inline(1, b"x", NOWHERE));
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
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(4096).create().unwrap());
    let (dead, done) = (Mutex::new(HashSet::new()), AtomicBool::new(false));
    let (to_fail, failing) = mpsc::sync_channel(0);
    let a = End::new();
    let number_of_a = a.qp.number();
    // While one thread makes a queue pair fail, its owner destroys it, and a third one reads.
    let named = thread::scope(|scope| {
        scope.spawn(|| fail_each(a, failing));
        let reading = scope.spawn(|| read_all(context.clone(), &dead, &done));
        for round in 0..ROUNDS {
            let mut qp = pd.qp(&cq).create().unwrap();
            let number = qp.number();
            qp.connect_to(number_of_a).unwrap();
            if round % 3 == 0 {
                qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
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
    let (mut a, _b) = pair();
    for _ in 0..EVENTS {
        a.drain();
        a.to(QpState::RTS);
    }
    a.expect_events(&[AsyncEventType::SQ_DRAINED; EVENTS]);
}

#[test]
fn objects_outlive_the_context_that_they_were_made_through() {
    let (mut a, b) = pair();
    let End { context, qp, cq: _cq, .. } = b;
    drop(context);
    a.post(SendWr::write_inline(1, b"x", NOWHERE));
    assert_eq!(qp.state().unwrap(), QpState::ERR);
}

#[test]
fn a_sleeper_of_another_thread_is_woken_and_waiting_ends_in_time() {
    let (mut a, b) = pair();
    let (wanted, mut context) = (b.has(AsyncEventType::QP_ACCESS_ERR), b.context.clone());
    assert_eq!(context.wait_async(Some(Instant::now() + Duration::from_millis(2))), Ok(None));
    let sleeper = thread::spawn(move || context.wait_async(None));
    a.post(SendWr::write_inline(1, b"x", NOWHERE));
    assert_eq!(sleeper.join().unwrap(), Ok(Some(wanted)));
    drop(b);
}

#[test]
fn q01_what_fails_or_is_reset_in_sqd_is_not_drained() {
    for (to, flushed) in [(QpState::ERR, 1..3), (QpState::RESET, 1..1)] {
        let (mut a, mut b) = pair();
        a.qp.post_send(&[1, 2].map(|wr_id| SendWr::send_inline(wr_id, b"x"))).unwrap();
        a.drain();
        a.to(to);
        a.expect(&all(flushed.clone(), S::WR_FLUSH_ERR));
        a.expect_events(&[]);
        a.to(QpState::RESET);
        b.to(QpState::RESET);
        connect(&mut a.qp, &mut b.qp);
        a.to(QpState::SQD); // without asking for a report
        a.expect_events(&[]);
    }
}

#[test]
fn q01_nothing_is_carried_out_between_the_report_and_rts() {
    const ROUNDS: u64 = 2_000;
    let (mut a, mut b) = pair();
    let here = [b.region.sge(..8).unwrap()];
    // Receives come from another thread, which so often is the one that carries the sends out.
    let receiver = thread::spawn(move || {
        let (mut posted, mut got) = (0, 0);
        wait_for(|| {
            if posted < ROUNDS && b.qp.post_recv(&[RecvWr::new(posted, &here)]).is_ok() {
                posted += 1;
            }
            got += take(&mut b.cq).len() as u64;
            got == ROUNDS
        });
        b
    });
    for wr_id in 0..ROUNDS {
        a.post(SendWr::send_inline(wr_id, b"x"));
        a.drain();
        let event = a.context.wait_async(Some(Instant::now() + Duration::from_secs(60))).unwrap();
        assert_eq!(event, Some(a.has(AsyncEventType::SQ_DRAINED)));
        // Whether it was begun before SQD is up to who had the turn.
        let before = take(&mut a.cq).len();
        thread::yield_now();
        a.expect_nothing();
        a.to(QpState::RTS);
        assert_eq!(settle(&mut a.cq, 1 - before).len(), 1 - before);
    }
    receiver.join().unwrap();
    a.expect_events(&[]);
}
