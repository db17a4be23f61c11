//! Completion queues that count, by the traits of the device: they are created, polled, waited for, resized and destroyed
//! as those that don't.

use std::sync::Arc;
use std::time::Instant;

use cq_core::observe::Observed;
use cq_verbs::counters::{Counters, Counts, Recorder};
use cq_verbs::device::{self, Destroy, Device, DevicePd as _, DeviceQp as _};
use cq_verbs::setup::CreateError;

use crate::common::*;

type Counted<Cq> = CompletionQueue<Observed<Cq, Recorder<Arc<Counters>>>>;
type Made<D> = (Counted<<D as Device>::Cq>, Arc<Counters>, <D as Device>::Qp);

/// A queue that counts, and a queue pair for it that is its own peer, on any device.
fn counted<D: Device>(
    device: &D,
    pd: &D::Pd,
    channel: Option<&D::Channel>,
) -> Result<Made<D>, CreateError> {
    let (recorder, counters) = Counters::shared();
    let cq =
        CompletionQueue::new(Observed::new(device.cq(64).channel(channel).create()?, recorder));
    let mut qp = pd.qp(&cq).create()?;
    let port = device.port(1).expect("the loopback has one");
    qp.connect(&port, &qp.endpoint(&port)).expect("it is in RESET");
    Ok((cq, counters, qp))
}

/// Posts this many receives, and as many sends that need them.
fn exchange(qp: &mut impl device::DeviceQp, memory: &impl device::Region, count: u64) {
    let sge = [memory.sge(..8).unwrap()];
    for wr_id in 0..count {
        qp.post_recv(&[RecvWr::new(wr_id, &sge)]).unwrap();
        qp.post_send(&[SendWr::send(wr_id, &sge)]).unwrap();
    }
}

#[test]
fn completions_are_counted_by_status_and_the_mark_is_what_the_queue_held() {
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let (mut cq, counters, mut qp) = counted(&context, &pd, None).unwrap();
    let memory = pd.allocate(64, ALL).unwrap();
    exchange(&mut qp, &memory, 8);
    let mut buffer = [Wc::default(); 4];
    while !cq.poll(&mut buffer).unwrap().is_empty() {}
    let counts = counters.snapshot();
    assert_eq!((counts.polls, counts.empty_polls), (5, 1));
    assert_eq!(counts.completions.count(S::SUCCESS), 16);
    assert_eq!(counts.high_water, 12, "16, less those that the first poll took");

    // No receive for the last one: it fails, and the others are flushed.
    let sge = [memory.sge(..8).unwrap()];
    qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
    qp.post_send(&[SendWr::send(1, &sge)]).unwrap();
    qp.post_recv(&[RecvWr::new(2, &sge)]).unwrap();
    while !cq.poll(&mut buffer).unwrap().is_empty() {}
    let completions = counters.snapshot().completions;
    assert_eq!((completions.count(S::WR_FLUSH_ERR), completions.total()), (2, 18));
}

#[test]
fn n05_waits_count_arms_and_events() {
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let mut channel = context.create_channel().unwrap();
    let (mut cq, counters, mut qp) = counted(&context, &pd, Some(&channel)).unwrap();
    let memory = pd.allocate(64, ALL).unwrap();
    let mut buffer = [Wc::default(); 8];
    for nth in 1..4 {
        assert!(cq.poll_or_arm(&mut buffer, Notify::Next).unwrap().is_empty());
        exchange(&mut qp, &memory, 1);
        while channel.take_event().unwrap().is_some() {
            cq.get_mut().took_events(1);
        }
        let end = Some(Instant::now() + DEADLINE);
        assert_eq!(cq.wait(&mut buffer, &mut channel, end).unwrap().len(), 2);
        let counts = counters.snapshot();
        assert_eq!((counts.arms, counts.events, counts.spurious_events), (nth, nth, 0));
    }
    // A wait that ends with its deadline has armed once more.
    assert!(cq.wait(&mut buffer, &mut channel, Some(Instant::now())).unwrap().is_empty());
    assert_eq!(counters.snapshot().arms, 4);
}

#[test]
fn o03_an_overrun_is_counted_once() {
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let (mut cq, counters, mut qp) = counted(&context, &pd, None).unwrap();
    assert_eq!(device::DeviceCq::resize(cq.get_mut(), 2), Ok(2));
    assert_eq!(cq.capacity(), 2);
    let memory = pd.allocate(64, ALL).unwrap();
    exchange(&mut qp, &memory, 3);
    let mut buffer = [Wc::default(); 8];
    while cq.poll(&mut buffer).is_ok() {}
    assert!(cq.poll(&mut buffer).is_err());
    let Counts { overruns, failed_polls, .. } = counters.snapshot();
    assert_eq!((overruns, failed_polls), (1, 2));
}

#[test]
fn q11_a_queue_in_use_comes_back_with_its_recorder() {
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let (cq, counters, qp) = counted(&context, &pd, None).unwrap();
    let refused = cq.into_inner().destroy().unwrap_err();
    let reason = "the completion queue is still in use: destroy its queue pairs and handles first";
    assert_eq!(refused.to_string(), reason);
    let mut queue = refused.handle;
    assert_eq!(queue.poll_into(&mut [Wc::default()]), Ok(0));
    assert_eq!(counters.snapshot().empty_polls, 1);
    let handle = device::DeviceCq::handle(&queue);
    drop(qp);
    let another = pd.qp(&handle).create().unwrap();
    drop((another, handle));
    assert!(device::DeviceCq::moderate(&mut queue, 2, 10).is_ok());
    queue.destroy().unwrap();
}
