//! The events of completion queues, on the device that VERBS_DEVICE names.

mod common;

use std::time::{Duration, Instant};

use common::{ALL, device, settle, wait_for};
use cq_core::transport::{Arm, Armed, Block, Events, Notify, Post, Woken};
use cq_core::wr::SendWr;
use transport_verbs::{CompletionChannel, Context, Cq, OwnedRegion, QpInit, QueuePair};

/// A queue pair that is connected to itself, with a queue that raises events.
struct Looped {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
}

impl Looped {
    fn new(context: &Context, channel: &CompletionChannel) -> Self {
        let (pd, port) = (context.alloc_pd().unwrap(), context.port(1).unwrap());
        let cq = context.create_cq(64, Some(channel)).unwrap();
        let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        qp.connect(&port, &qp.endpoint(&port)).unwrap();
        Self { qp, cq, region: pd.allocate(8, ALL).unwrap() }
    }

    /// Arms, and completes one request, which raises an event.
    fn raise(&mut self) {
        assert_eq!(self.cq.arm(Notify::Next), Ok(Armed::MayHaveMissed));
        let (sge, to) = (self.region.sge(0, 8).unwrap(), self.region.remote(0).unwrap());
        self.qp.post_send(&[SendWr::write(1, &[sge], to)]).unwrap();
    }

    fn drain(&mut self) {
        assert_eq!(settle(&mut self.cq, 1).len(), 1);
    }
}

fn in_a_minute() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(60))
}

#[test]
fn n07_a_queue_is_destroyed_however_many_of_its_events_are_acknowledged() {
    let Some(context) = device() else { return };
    let mut channel = context.create_channel().unwrap();
    // Fewer than a batch, exactly one, and more.
    for count in [1, 63, 64, 65, 130] {
        let mut looped = Looped::new(&context, &channel);
        for _ in 0..count {
            looped.raise();
            looped.drain();
            wait_for(|| channel.take_event().unwrap() == Some(looped.cq.key()));
        }
        let Looped { qp, cq, .. } = looped;
        drop(qp);
        cq.destroy().unwrap();
    }
    channel.destroy().unwrap();
}

#[test]
fn n07_queues_are_destroyed_while_another_thread_takes_their_events() {
    let Some(context) = device() else { return };
    let mut channel = context.create_channel().unwrap();
    let mut last = Looped::new(&context, &channel);
    let last_key = last.cq.key();
    std::thread::scope(|scope| {
        let mut all: Vec<Looped> = (0..40).map(|_| Looped::new(&context, &channel)).collect();
        let reader = scope.spawn(move || {
            let mut taken = 0;
            loop {
                assert_eq!(channel.block(in_a_minute()), Ok(Woken::Event));
                while let Some(key) = channel.take_event().unwrap() {
                    taken += 1;
                    if key == last_key {
                        return taken;
                    }
                }
            }
        });
        for looped in &mut all {
            for _ in 0..3 {
                looped.raise();
                looped.drain();
            }
        }
        drop(all);
        last.raise();
        assert!(reader.join().unwrap() > 0);
    });
}
