//! The events of queues that are destroyed while another thread takes them, and of queues that are waited for together,
//! on the device that VERBS_DEVICE names.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use common::*;
use cq_core::cq::CompletionQueue;
use cq_verbs::async_event::{
    AsyncEvent, AsyncEventType, AsyncEvents as _, BlockAsync as _, Element,
};
use cq_verbs::wait_set::{Ready, WaitSet};

/// A queue pair that is connected to itself, with a queue that raises events.
struct Looped {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
}

impl Looped {
    fn new(context: &Context, capacity: u32, channel: Option<&CompletionChannel>) -> Self {
        let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
        let cq = context.cq(capacity).channel(channel).create().unwrap();
        let mut qp = pd.qp(&cq).caps(CAPS).create().unwrap();
        qp.connect(&port, &qp.endpoint(&port)).unwrap();
        Self { qp, cq, region: pd.allocate(8, ALL).unwrap() }
    }

    fn post(&mut self) {
        let (sge, to) = (self.region.sge(..8).unwrap(), self.region.remote(0).unwrap());
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
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn n07_queues_are_destroyed_while_another_thread_takes_their_events() {
    let context = device();
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
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn n07_queues_are_destroyed_while_another_thread_takes_their_asynchronous_events() {
    let context = device();
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

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn n07_the_unread_asynchronous_events_of_what_is_destroyed_are_discarded() {
    let mut context = device();
    let mut small = Looped::new(&context, 3, None);
    (0..40).for_each(|_| small.post());
    assert_eq!(context.block_async(Some(Instant::now() + DEADLINE)), Ok(Woken::Event));
    drop(small);
    assert_eq!(context.take_async_event(), Ok(None));
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn n08_a_wait_set_sleeps_on_several_queues_and_descriptors() {
    let context = device();
    let late = || Some(Instant::now() + DEADLINE);
    let mut set = WaitSet::new().unwrap();
    let channel = set.add_channel(context.create_channel().unwrap()).unwrap();
    let raw = set.channel(channel).unwrap();
    assert_eq!(raw.as_raw_fd(), raw.as_fd().as_raw_fd());
    assert_eq!(context.as_raw_fd(), context.as_fd().as_raw_fd());
    set.add_descriptor(&context).unwrap();
    let mut ends = [(); 3].map(|()| {
        let Looped { qp, cq, region } = Looped::new(&context, 64, set.channel(channel));
        (qp, region, set.add_queue(CompletionQueue::new(cq)))
    });
    let mut buffer = [Wc::default(); 4];
    for round in 0..60 {
        let (qp, region, queue) = &mut ends[round % 3];
        let (sge, to) = (region.sge(..8).unwrap(), region.remote(0).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                qp.post_send(&[SendWr::write(round as u64, &[sge], to)]).unwrap();
            });
            match set.wait(&mut buffer, late()).unwrap() {
                Ready::Completions(of, [wc]) => {
                    assert_eq!((of, wc.wr_id(), wc.status()), (*queue, round as u64, S::SUCCESS));
                }
                other => panic!("{other:?}"),
            }
        });
    }
    assert_eq!(set.wait(&mut buffer, Some(Instant::now())), Ok(Ready::DeadlinePassed));
    let (far, mut near) = UnixStream::pair().unwrap();
    let socket = set.add_descriptor(far).unwrap();
    near.write_all(b"x").unwrap();
    assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Descriptor(socket)));
    assert!(set.remove_descriptor(socket));
    set.stop_handle().stop();
    assert_eq!(set.wait(&mut buffer, late()), Ok(Ready::Stopped));
}

/// Polls until that fails.
fn poll_to_the_end(cq: &mut Cq) -> PollError {
    let deadline = Instant::now() + DEADLINE;
    loop {
        assert!(Instant::now() < deadline, "polling goes on");
        if let Err(error) = cq.poll_into(&mut [Wc::default(); 4]) {
            return error;
        }
    }
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn o03_an_overrun_is_told_as_one_whichever_of_poll_and_event_comes_first() {
    const OVERRUN: PollError = PollError::Overrun { dropped: None };
    let mut context = device();
    // Others may need the event.
    let is_loopback = context.name() == "loop0";
    for round in 0..60 {
        let mut looped = Looped::new(&context, 3, None);
        (0..40).for_each(|_| looped.post());
        let cq_err = AsyncEvent {
            event_type: AsyncEventType::CQ_ERR,
            element: Element::Cq(looped.cq.key()),
        };
        let mut take_cq_err = || {
            let deadline = Some(Instant::now() + DEADLINE);
            while context.wait_async(deadline).unwrap().expect("it is reported") != cq_err {}
        };
        std::thread::scope(|scope| match round % 3 {
            0 => {
                take_cq_err();
                assert_eq!(poll_to_the_end(&mut looped.cq), OVERRUN);
            }
            1 => {
                let poller = scope.spawn(|| poll_to_the_end(&mut looped.cq));
                take_cq_err();
                assert_eq!(poller.join().unwrap(), OVERRUN);
            }
            _ if is_loopback => {
                assert_eq!(poll_to_the_end(&mut looped.cq), OVERRUN);
                take_cq_err();
            }
            _ => take_cq_err(),
        });
        assert_eq!(poll_to_the_end(&mut looped.cq), OVERRUN);
    }
}
