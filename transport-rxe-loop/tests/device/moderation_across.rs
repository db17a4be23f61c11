//! Events that are held back because of what another process completes: N12 between two, X3. Each test has a
//! fabric of its own, since a death rings every queue of one.

use std::time::{Duration, Instant};

use crate::common::process::{Actor, order, say};
use crate::common::{CAPS, End, FABRIC, S, take};
use cq_core::transport::{Arm, Block, Events, Notify, Post, Woken};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Cq, OpenOptions, QpInit, QueuePair};

/// Sends as many empty messages as it is told, again and again.
#[test]
#[ignore = "a process of the other tests"]
fn sender() {
    let mut end = End::new();
    say(end.qp.number());
    end.qp.connect_to(order().parse().unwrap()).unwrap();
    say("connected");
    while let Ok(count) = order().parse() {
        for wr_id in 0..count {
            end.post(SendWr::send(wr_id, &[]));
            end.expect(&[(wr_id, S::SUCCESS)]);
        }
        say("sent");
    }
}

/// What another process sends to.
struct Sleeper {
    sender: Actor,
    qp: QueuePair,
    cq: Cq,
    channel: CompletionChannel,
}

impl Sleeper {
    fn new(name: &str, count: u16, period: u16) -> Self {
        let fabric = format!("test-{}-{name}", std::process::id());
        let context = OpenOptions::new().fabric(&fabric).open("loop0").unwrap();
        let channel = context.create_channel().unwrap();
        let mut cq = context.create_cq(16, Some(&channel)).unwrap();
        cq.moderate(count, period).unwrap();
        let mut qp = context
            .alloc_pd()
            .unwrap()
            .create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) })
            .unwrap();
        let mut sender = Actor::start("moderation_across::sender", &[(FABRIC, &fabric)]);
        qp.connect_to(sender.number() as u32).unwrap();
        sender.order(qp.number());
        assert_eq!(sender.hear(), "connected");
        Self { sender, qp, cq, channel }
    }

    /// Has so many messages sent, armed.
    fn ask_for(&mut self, count: usize) {
        for wr_id in 0..count as u64 {
            self.qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
        }
        let _ = self.cq.arm(Notify::Next);
        self.sender.order(count);
    }

    fn sleep(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        assert_eq!(self.channel.block(Some(deadline)), Ok(Woken::Event), "slept for ever");
        assert_eq!(self.channel.take_event(), Ok(Some(self.cq.key())));
    }
}

#[test]
fn n12_another_process_counts_too_and_the_time_runs_here() {
    let mut here = Sleeper::new("counts", 3, 20_000);
    for count in [3, 1, 2, 3, 1] {
        here.ask_for(count);
        here.sleep();
        assert_eq!(here.sender.hear(), "sent");
        let came = take(&mut here.cq).len();
        assert_eq!(came, count);
        // The time may have been over between two of them: not armed any more then.
        assert_eq!(here.channel.take_event(), Ok(None));
    }
    here.sender.order("end");
    assert!(here.sender.ended().success());
}

#[test]
fn x03_what_a_killed_process_left_to_be_raised_is_raised() {
    let mut here = Sleeper::new("killed", u16::MAX, u16::MAX);
    here.ask_for(1);
    assert_eq!(here.sender.hear(), "sent");
    here.sender.kill();
    here.sleep();
    assert_eq!(take(&mut here.cq).len(), 1);
}
