//! Asynchronous events, on the device that VERBS_DEVICE names.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use common::{ALL, device, settle, take, wait_for};
use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::transport::{Arm, AsyncEvents, CqKey, Poll, PollError, Post};
use cq_core::wc::Wc;
use cq_core::wr::SendWr;
use transport_verbs::{Context, Cq, OwnedRegion, QpCaps, QpInit, QueuePair};

/// A queue pair that is connected to itself, with a small completion queue.
struct Small {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
}

impl Small {
    fn new(context: &Context) -> Self {
        let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
        let cq = context.create_cq(3, None).unwrap();
        let caps = QpCaps { max_send_wr: cq.capacity() + 8, ..common::CAPS };
        let mut qp = pd.create_qp(&QpInit { caps, ..QpInit::new(&cq) }).unwrap();
        qp.connect(&port, &qp.endpoint(&port)).unwrap();
        Self { qp, cq, region: pd.allocate(8, ALL).unwrap() }
    }

    /// Completes `more` requests than the queue holds.
    fn overrun(&mut self, more: u32) {
        for wr_id in 0..(self.cq.capacity() + more).into() {
            let (sge, to) = (self.region.sge(0, 8).unwrap(), self.region.remote(0).unwrap());
            self.qp.post_send(&[SendWr::write(wr_id, &[sge], to)]).unwrap();
        }
    }
}

/// The next event, which must come.
fn next(context: &mut Context) -> AsyncEvent {
    context.wait_async(Some(Duration::from_secs(60))).unwrap().expect("an asynchronous event")
}

fn is_overrun_of(event: AsyncEvent, key: CqKey) -> bool {
    event == AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(key) }
}

#[test]
fn o02_o03_an_overrun_names_the_queue_which_is_drained_and_then_fails_for_ever() {
    let Some(mut context) = device() else { return };
    let (mut small, other) = (Small::new(&context), Small::new(&context));
    small.overrun(1);
    assert!(is_overrun_of(next(&mut context), small.cq.key()));

    let stored = u64::from(small.cq.capacity());
    let mut room = [Wc::default(); 2];
    let mut got = Vec::new();
    let error = loop {
        match small.cq.poll(&mut room) {
            Ok(count) => got.extend(room[..count].iter().map(Wc::wr_id)),
            Err(error) => break error,
        }
    };
    assert!(got.iter().copied().eq(0..stored), "{got:?}");
    for _ in 0..3 {
        assert_eq!(error, PollError::Overrun { dropped: None });
        assert_eq!(small.cq.poll(&mut room), Err(error));
    }
    // Soft-RoCE goes on: the queue has room again, and what completes now is stored.
    let (sge, to) = (small.region.sge(0, 8).unwrap(), small.region.remote(0).unwrap());
    small.qp.post_send(&[SendWr::write(99, &[sge], to)]).unwrap();
    small.overrun(1);
    assert!(is_overrun_of(next(&mut context), small.cq.key()));
    assert_eq!(small.cq.poll(&mut room), Err(error));
    let mut other = other;
    assert_eq!(other.cq.poll(&mut room), Ok(0));
}

#[test]
fn o07_a_queue_that_is_large_enough_does_not_overrun() {
    let Some(mut context) = device() else { return };
    let mut small = Small::new(&context);
    let full = small.cq.capacity() as usize;
    small.overrun(0);
    assert_eq!(settle(&mut small.cq, full).len(), full);
    assert_eq!(context.next_async(), Ok(None));
    assert_eq!(take(&mut small.cq), []);
}

#[test]
fn o06_an_overrun_queue_is_destroyed_and_its_events_with_it() {
    let Some(mut context) = device() else { return };
    let mut small = Small::new(&context);
    small.overrun(4);
    assert!(is_overrun_of(next(&mut context), small.cq.key()));
    let Small { qp, cq, .. } = small;
    drop(qp);
    cq.destroy().unwrap();
    assert_eq!(context.next_async(), Ok(None));
}

#[test]
fn n07_queues_are_destroyed_while_another_thread_takes_their_events() {
    let Some(context) = device() else { return };
    let (over, taken) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let mut reader = context.clone();
        let (over, taken) = (&over, &taken);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let event = reader.wait_async(Some(Duration::from_millis(1))).unwrap();
                if let Some(event) = event {
                    assert_eq!(event.event_type, AsyncEventType::CQ_ERR);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let mut rounds = 0;
        wait_for(|| {
            Small::new(&context).overrun(8);
            rounds += 1;
            rounds >= 100 && taken.load(Ordering::Relaxed) > 0
        });
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn events_of_what_was_made_through_one_opening_do_not_come_to_another() {
    let Some(mut context) = device() else { return };
    let mut elsewhere = Context::open(context.name()).unwrap();
    let mut small = Small::new(&context);
    small.overrun(1);
    assert!(is_overrun_of(next(&mut context), small.cq.key()));
    assert_eq!(elsewhere.next_async(), Ok(None));
}
