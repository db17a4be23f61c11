//! The events of queues that are destroyed while another thread takes them, on the device that VERBS_DEVICE names.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use common::*;
use cq_core::async_event::AsyncEventType;

/// A queue pair that is connected to itself, with a queue that raises events.
struct Looped {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
}

impl Looped {
    fn new(context: &Context, capacity: u32, channel: Option<&CompletionChannel>) -> Self {
        let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
        let cq = context.create_cq(capacity, channel).unwrap();
        let mut qp = pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
        qp.connect(&port, &qp.endpoint(&port)).unwrap();
        Self { qp, cq, region: pd.allocate(8, ALL).unwrap() }
    }

    fn post(&mut self) {
        let (sge, to) = (self.region.sge(0, 8).unwrap(), self.region.remote(0).unwrap());
        self.qp.post_send(&[SendWr::write(1, &[sge], to)]).unwrap();
    }

    /// Arms, and completes one request, which raises an event.
    fn raise(&mut self) {
        assert_eq!(self.cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        self.post();
        assert_eq!(settle(&mut self.cq, 1).len(), 1);
    }
}

#[test]
fn n07_queues_are_destroyed_while_another_thread_takes_their_events() {
    let Some(context) = device() else { return };
    let mut channel = context.create_channel().unwrap();
    let mut last = Looped::new(&context, 64, Some(&channel));
    let last_key = last.cq.key();
    std::thread::scope(|scope| {
        let mut all: Vec<_> = (0..40).map(|_| Looped::new(&context, 64, Some(&channel))).collect();
        scope.spawn(move || {
            loop {
                assert_eq!(channel.block(Some(Instant::now() + DEADLINE)), Ok(Woken::Event));
                while let Some(key) = channel.take_event().unwrap() {
                    if key == last_key {
                        return;
                    }
                }
            }
        });
        // Some get more events than are acknowledged at once.
        for (nth, looped) in all.iter_mut().enumerate() {
            (0..if nth % 10 == 0 { 70 } else { 3 }).for_each(|_| looped.raise());
        }
        drop(all);
        last.raise();
    });
}

#[test]
fn n07_queues_are_destroyed_while_another_thread_takes_their_asynchronous_events() {
    let Some(context) = device() else { return };
    let (over, taken) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let mut reader = context.clone();
        let (over, taken) = (&over, &taken);
        scope.spawn(move || {
            while !over.load(Relaxed) {
                let event = reader.wait_async(Some(Instant::now() + Duration::from_millis(1)));
                match event.unwrap().map(|event| event.event_type) {
                    Some(AsyncEventType::CQ_ERR) => drop(taken.fetch_add(1, Relaxed)),
                    other => assert!(matches!(other, None | Some(AsyncEventType::QP_FATAL))),
                }
            }
        });
        let mut rounds = 0;
        wait_for(|| {
            // More completions than a queue stores that was asked for three.
            let mut small = Looped::new(&context, 3, None);
            (0..40).for_each(|_| small.post());
            rounds += 1;
            rounds >= 100 && taken.load(Relaxed) > 0
        });
        over.store(true, Relaxed);
    });
}
