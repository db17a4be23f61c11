//! Events that are held back, beyond what the conformance suite asks: N7 and N12, also because of what another process
//! completes (X3). Each test of two processes has a fabric of its own, since a death rings every queue of one.

use std::time::{Duration, Instant};

use crate::common::events::{expect_event, expect_no_event};
use crate::common::process::{Actor, order, say};
use crate::common::{CAPS, End, FABRIC, S, connect, open, take, wait_for};
use cq_core::transport::{Arm, Block, Events, Notify, Post, Woken};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Context, OpenOptions, QpType};

/// The longest period, in microseconds.
const LONG: u16 = u16::MAX;

/// An end with a channel, and a completion queue that is moderated.
fn on(context: &Context, count: u16, period: u16) -> (End, CompletionChannel) {
    let channel = context.create_channel().unwrap();
    let mut cq = context.create_cq(64, Some(&channel)).unwrap();
    cq.moderate(count, period).unwrap();
    (End::completing_in(context, cq, QpType::Rc, CAPS), channel)
}

#[test]
fn n12_what_is_posted_together_counts_together() {
    let (mut a, (mut b, mut channel)) = (End::new(), on(&open(), 4, LONG));
    connect(&mut a, &mut b);
    (0..6).for_each(|wr_id| b.recv(wr_id, 0, 8));
    let _ = b.cq.arm(Notify::Next);
    let list: Vec<_> = (0..6).map(|wr_id| SendWr::send_inline(wr_id, b"x")).collect();
    a.qp.post_send(&list).unwrap();
    expect_event(&mut channel, &b);
    expect_no_event(&mut channel);
    assert_eq!(take(&mut b.cq).len(), 6);
}

#[test]
fn n07_an_event_that_is_held_back_goes_with_its_queue() {
    let context = open();
    let (mut gone, mut channel) = on(&context, u16::MAX, 1_000);
    let mut later = End::with_channel(&channel);
    later.cq.moderate(u16::MAX, 5_000).unwrap();
    let complete = |end: &mut End| {
        end.qp.connect_to(end.qp.number()).unwrap();
        let _ = end.cq.arm(Notify::Next);
        let to = end.region.remote(0).unwrap();
        end.post(SendWr::write_inline(1, b"", to));
    };
    complete(&mut gone);
    gone.qp.destroy();
    gone.cq.destroy().unwrap();
    // This one is due after the other one would have been. It takes the same place, if there is no other.
    complete(&mut later);
    // The first event was due before it went, if the machine was slow.
    wait_for(|| channel.take_event().unwrap() == Some(later.cq.key()));
    expect_no_event(&mut channel);
}

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
    end: End,
    channel: CompletionChannel,
}

impl Sleeper {
    fn new(name: &str, count: u16, period: u16) -> Self {
        let fabric = format!("test-{}-{name}", std::process::id());
        let context = OpenOptions::new().fabric(&fabric).open("loop0").unwrap();
        let (mut end, channel) = on(&context, count, period);
        let mut sender = Actor::start("moderation::sender", &[(FABRIC, &fabric)]);
        end.qp.connect_to(sender.number() as u32).unwrap();
        sender.order(end.qp.number());
        assert_eq!(sender.hear(), "connected");
        Self { sender, end, channel }
    }

    /// Has so many messages sent, armed.
    fn ask_for(&mut self, count: u64) {
        for wr_id in 0..count {
            self.end.qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
        }
        let _ = self.end.cq.arm(Notify::Next);
        self.sender.order(count);
        assert_eq!(self.sender.hear(), "sent");
    }

    /// Sleeps for the event of so many messages.
    fn sleep(&mut self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(30);
        assert_eq!(self.channel.block(Some(deadline)), Ok(Woken::Event), "slept for ever");
        expect_event(&mut self.channel, &self.end);
        assert_eq!(take(&mut self.end.cq).len(), count);
        // The time may have been over between two of them: not armed any more then.
        expect_no_event(&mut self.channel);
    }
}

#[test]
fn n12_another_process_counts_too_and_the_time_runs_here() {
    let mut here = Sleeper::new("counts", 3, 20_000);
    for count in [3, 1, 2, 3, 1] {
        here.ask_for(count);
        here.sleep(count as usize);
    }
    here.sender.order("end");
    assert!(here.sender.ended().success());
}

#[test]
fn x03_what_a_killed_process_left_to_be_raised_is_raised() {
    let mut here = Sleeper::new("killed", u16::MAX, u16::MAX);
    here.ask_for(1);
    here.sender.kill();
    here.sleep(1);
}
