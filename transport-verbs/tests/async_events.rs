//! Asynchronous events, on the device that VERBS_DEVICE names.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{ALL, DEADLINE, device, wait_for};
use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::transport::{Arm, Armed, AsyncEvents, Events, Notify, PollCq, PollError, Post};
use cq_core::wc::Wc;
use cq_core::wr::SendWr;
use transport_verbs::{
    CompletionChannel, Context, Cq, OwnedRegion, QpCaps, QpInit, QpState, QueuePair,
};

/// More completions than a queue stores that was asked for three.
const PLENTY: u64 = 40;

/// A queue pair that is connected to itself, with a small completion queue.
struct Small {
    qp: QueuePair,
    cq: Cq,
    channel: CompletionChannel,
    region: OwnedRegion,
}

impl Small {
    fn new(context: &Context) -> Self {
        let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
        let channel = context.create_channel().unwrap();
        let cq = context.create_cq(3, Some(&channel)).unwrap();
        let caps = QpCaps { max_send_wr: 63, ..common::CAPS };
        let mut qp = pd.create_qp(&QpInit { caps, ..QpInit::new(&cq) }).unwrap();
        qp.connect(&port, &qp.endpoint(&port)).unwrap();
        Self { qp, cq, channel, region: pd.allocate(8, ALL).unwrap() }
    }

    fn post(&mut self, wr_ids: impl IntoIterator<Item = u64>) {
        for wr_id in wr_ids {
            let (sge, to) = (self.region.sge(0, 8).unwrap(), self.region.remote(0).unwrap());
            self.qp.post_send(&[SendWr::write(wr_id, &[sge], to)]).unwrap();
        }
    }

    /// Completes one request after the other until one finds no room, which the device tells; says which.
    fn overrun(&mut self, context: &mut Context) -> u64 {
        (0..PLENTY).find(|&wr_id| !self.stores(wr_id, context)).expect("a queue that overruns")
    }

    /// Completes a request, and says whether there was room for that. Nothing is polled.
    fn stores(&mut self, wr_id: u64, context: &mut Context) -> bool {
        assert_eq!(self.cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        self.post([wr_id]);
        let mut has_overrun = false;
        wait_for(|| {
            has_overrun =
                context.take_async_event().unwrap().is_some_and(|event| self.has_overrun(event));
            has_overrun || self.channel.take_event().unwrap().is_some()
        });
        !has_overrun
    }

    fn has_overrun(&self, event: AsyncEvent) -> bool {
        let element = Element::Cq(self.cq.key());
        event == AsyncEvent { event_type: AsyncEventType::CQ_ERR, element }
    }
}

#[test]
fn o02_o03_an_overrun_names_the_queue_which_is_drained_and_then_fails_for_ever() {
    let Some(mut context) = device() else { return };
    let mut small = Small::new(&context);
    let dropped = small.overrun(&mut context);

    let mut room = [Wc::default(); 2];
    let mut got = Vec::new();
    let error = loop {
        match small.cq.poll(&mut room) {
            Ok(count) => got.extend(room[..count].iter().map(Wc::wr_id)),
            Err(error) => break error,
        }
    };
    assert!(got.iter().copied().eq(0..dropped), "{got:?}");
    assert!(dropped >= small.cq.capacity().into());
    for _ in 0..3 {
        assert_eq!(error, PollError::Overrun { dropped: None });
        assert_eq!(small.cq.poll(&mut room), Err(error));
    }
    // Soft-RoCE's queue pair does not fail (O4): the queue has room again, and what completes now is stored.
    if small.qp.state().unwrap() != QpState::ERR {
        small.post(0..=dropped);
        let event = context.wait_async(Some(Instant::now() + DEADLINE)).unwrap();
        assert!(event.is_some_and(|event| small.has_overrun(event)), "{event:?}");
    }
    assert_eq!(small.cq.poll(&mut room), Err(error));
}

#[test]
fn o06_an_overrun_queue_is_destroyed_and_its_events_with_it() {
    let Some(mut context) = device() else { return };
    let mut small = Small::new(&context);
    small.overrun(&mut context);
    small.post(0..4);
    let Small { qp, cq, .. } = small;
    drop(qp);
    cq.destroy().unwrap();
    assert_eq!(context.take_async_event(), Ok(None));
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
                let event =
                    reader.wait_async(Some(Instant::now() + Duration::from_millis(1))).unwrap();
                match event.map(|event| event.event_type) {
                    Some(AsyncEventType::CQ_ERR) => drop(taken.fetch_add(1, Ordering::Relaxed)),
                    other => assert!(matches!(other, None | Some(AsyncEventType::QP_FATAL))),
                }
            }
        });
        let mut rounds = 0;
        wait_for(|| {
            Small::new(&context).post(0..PLENTY);
            rounds += 1;
            rounds >= 100 && taken.load(Ordering::Relaxed) > 0
        });
        over.store(true, Ordering::Relaxed);
    });
}
