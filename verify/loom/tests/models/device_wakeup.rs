//! A sender delivers a message, stores its own completion, and then wakes the receiver, which answers: the answer is behind
//! that completion (N13). If the sender is killed in between, the receiver is woken all the same (N6).

use std::cell::Cell;
use std::sync::Arc;

use cq_core::transport::{Arm, Armed, Notify, PollCq, Signal};
use cq_core::wc::Wc;
use transport_rxe_loop::sync::death;
use verify_loom::channel::{Channel, LOST};
use verify_loom::fanin::{Plan, SILENT, World, entry};
use verify_loom::harness::model;
use verify_loom::mortal::at_every_step;
use verify_loom::queue::KEY;
use verify_loom::threads::spawn;

const SENDER: usize = 0;
const RECEIVER: usize = 1;
const HEIR: usize = 2;

/// What the assertion about the answer says.
const EARLY: &str = "the answer is before the completion of its request";

/// When the sender wakes the receiver.
#[derive(Clone, Copy)]
enum Wakes {
    /// Once its own completion is stored.
    Last,
    /// As soon as the message is delivered.
    AtOnce,
}

/// The completion queues of both, and the receiver's channel.
#[derive(Clone)]
struct Ends {
    sender: Arc<World>,
    receiver: Arc<World>,
    channel: Channel,
}

impl Ends {
    fn send(&self, wakes: Wakes) {
        let due = Cell::new(false);
        let disarmed = (KEY, || match wakes {
            Wakes::Last => due.set(true),
            Wakes::AtOnce => self.channel.raise(),
        });
        self.receiver.push(SENDER, &[entry(0, 0)], &disarmed);
        self.sender.push(SENDER, &[entry(0, 0)], SILENT);
        if due.get() && death::step() {
            self.channel.raise();
        }
    }
}

/// The sender may be killed at a step; the receiver sleeps for its message, and answers. Whether the sender lived.
fn answer(plan: Plan, wakes: Wakes) -> bool {
    let [sender, receiver] = [(); 2].map(|()| World::new(&[2], plan));
    let ends = Ends { sender, receiver, channel: Channel::new(1) };
    let mut channel = ends.channel.clone();
    let mut consumer = ends.receiver.consumer(0);
    assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
    let sender = spawn(&ends, move |ends| {
        let lived = ends.receiver.live(SENDER, plan.death, || ends.send(wakes));
        if !lived {
            ends.receiver.recover(HEIR, &ends.channel);
        }
        ends.channel.hang_up();
        lived
    });
    channel.sleep();
    let came = consumer.poll_into(&mut [Wc::default()]).unwrap();
    if came > 0 && plan.death == u32::MAX {
        ends.sender.push(RECEIVER, &[entry(1, 0)], SILENT);
        let mut completions = [Wc::default(); 2];
        assert_eq!(ends.sender.consumer(0).poll_into(&mut completions), Ok(2), "{EARLY}");
        assert_eq!(completions.map(|wc| wc.qp_num()), [0, 1], "{EARLY}");
    }
    sender.join().unwrap()
}

#[test]
fn n13_an_answer_is_behind_the_completion_of_its_request() {
    let alive = Plan::dying_at(u32::MAX);
    model("a receiver that is woken answers", move || answer(alive, Wakes::Last)).must_fail_as(
        "storing before waking",
        EARLY,
        move || answer(alive, Wakes::AtOnce),
    );
}

/// The receiver's queue is disarmed, the sender's own completion is stored.
const STORED: u32 = 26;

#[test]
fn n06_a_receiver_is_woken_though_its_sender_dies_before_it_wakes_it() {
    at_every_step("a receiver sleeps", 0..0, |step| answer(Plan::dying_at(step), Wakes::Last));
    let plan = Plan::dying_at(STORED);
    model("a receiver sleeps, its sender is killed before it wakes it", move || {
        answer(plan, Wakes::Last)
    })
    .must_fail_as("ringing all", LOST, move || {
        answer(Plan { rings_all: false, ..plan }, Wakes::Last)
    });
}
