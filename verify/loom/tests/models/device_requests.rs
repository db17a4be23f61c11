//! Requests that are left for another process: each is run by the process that has the queue pair, whoever dies and
//! whosever the queue pair's place is by then.

use std::sync::Arc;

use loom::thread;
use transport_rxe_loop::protocol::requests::{Reminder, RequestBits};
use transport_rxe_loop::sync::{self, AtomicU32, AtomicU64, death};
use verify_loom::harness::model;
use verify_loom::threads::{Monitor, spawn};

const LEFT: &str = "a request is left";
const QP: u32 = 3;

/// The calls of a process, on which its service thread sleeps, and whether there will be no more.
#[derive(Default)]
struct Calls {
    count: AtomicU32,
    is_over: Monitor<bool>,
}

impl Calls {
    fn call(&self) {
        if death::step() {
            sync::count(&self.count);
            // The system looks at the word and puts to sleep in one step.
            self.is_over.update(|_| ());
        }
    }

    fn end(&self) {
        self.is_over.update(|is_over| *is_over = true);
    }

    /// False if nobody will call any more.
    fn sleep(&self, seen: u32) -> bool {
        self.is_over.wait(|is_over| {
            let is_called = sync::acquire(&self.count) != seen;
            (is_called || *is_over).then_some(is_called)
        })
    }
}

#[derive(Default)]
struct World {
    words: [AtomicU64; 1],
    /// Which process has the queue pair.
    place: AtomicU32,
    calls: [Calls; 2],
    /// What was asked for, and how much of it each process has done.
    asked: AtomicU32,
    done: [AtomicU32; 2],
}

/// What of the protocol is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    CallsFirst,
    LooksLate,
    KeepsThose,
}

impl World {
    fn requests(&self) -> RequestBits<'_> {
        RequestBits::new(&self.words)
    }

    fn leave(&self, fault: Fault) {
        let place = sync::acquire(&self.place) as usize;
        if fault == Fault::CallsFirst {
            self.calls[place].call();
        }
        self.requests().leave(QP);
        if fault != Fault::CallsFirst {
            self.calls[place].call();
        }
    }

    /// The service thread of the process at a place.
    fn serve(&self, me: usize, fault: Fault) {
        let is_mine = || sync::acquire(&self.place) as usize == me;
        loop {
            let seen = sync::acquire(&self.calls[me].count);
            self.requests().take(
                |_| is_mine(),
                |_| {
                    if is_mine() {
                        sync::release(&self.done[me], sync::acquire(&self.asked));
                    } else if fault != Fault::KeepsThose {
                        self.leave(Fault::None);
                    }
                },
            );
            let seen = match fault {
                Fault::LooksLate => sync::acquire(&self.calls[me].count),
                _ => seen,
            };
            if !self.calls[me].sleep(seen) {
                return;
            }
        }
    }

    fn service(self: &Arc<Self>, me: usize, fault: Fault) -> thread::JoinHandle<()> {
        spawn(self, move |world| world.serve(me, fault))
    }
}

/// Somebody asks twice, and is killed at a step of that; then somebody sweeps up.
fn ask(fault: Fault, step: u32, sweeps: bool) {
    let world = Arc::new(World::default());
    let service = world.service(0, fault);
    let _lived = death::killed_at(step, || {
        for asks in 1..=2 {
            sync::release(&world.asked, asks);
            world.leave(fault);
        }
    });
    if sweeps {
        world.requests().leave(QP);
        world.calls[0].call();
    }
    world.calls[0].end();
    service.join().unwrap();
    assert_eq!(sync::acquire(&world.done[0]), sync::acquire(&world.asked), "{LEFT}");
}

#[test]
fn c08_what_is_asked_of_another_process_is_done() {
    model("two requests", || ask(Fault::None, u32::MAX, false))
        .must_fail_as("marking first", LEFT, || ask(Fault::CallsFirst, u32::MAX, false))
        .must_fail_as("seeing the calls first", LEFT, || ask(Fault::LooksLate, u32::MAX, false));
}

/// It is asked for, marked and called for, twice.
const STEPS: u32 = 6;

#[test]
fn x03_what_a_dead_process_asked_for_is_done() {
    for step in 0..STEPS {
        let model = model(format!("killed at step {step} of two requests"), move || {
            ask(Fault::None, step, true)
        });
        if step == 2 {
            model.must_fail_as("sweeping", LEFT, move || ask(Fault::None, step, false));
        }
    }
}

/// The queue pair goes, and the next one in its place is another process', which is asked for something.
fn replace(fault: Fault) {
    let world = Arc::new(World::default());
    let services = [world.service(0, fault), world.service(1, Fault::None)];
    // Of the one that goes.
    world.leave(Fault::None);
    sync::release(&world.place, 1);
    sync::release(&world.asked, 1);
    world.leave(Fault::None);
    let [first, next] = services;
    world.calls[0].end();
    first.join().unwrap();
    world.calls[1].end();
    next.join().unwrap();
    assert_eq!(sync::acquire(&world.done[1]), 1, "{LEFT}");
}

#[test]
fn x03_a_request_that_is_another_process_by_now_is_left_to_that_one() {
    model("a queue pair's place is another process'", || replace(Fault::None)).must_fail_as(
        "leaving it again",
        LEFT,
        || replace(Fault::KeepsThose),
    );
}

/// A thread leaves requests for its own process, and another one looks as it comes by.
fn remind(sets_last: bool) {
    let world = Arc::new((World::default(), Reminder::default()));
    let looks = |(world, reminder): &(World, Reminder)| {
        if reminder.take() {
            world.requests().take(|_| true, |_| sync::release(&world.done[0], 1));
        }
    };
    let other = spawn(&world, move |world| looks(&world));
    if !sets_last {
        world.1.set();
    }
    world.0.requests().leave(QP);
    if sets_last {
        world.1.set();
    }
    looks(&world);
    other.join().unwrap();
    assert_eq!(sync::acquire(&world.0.done[0]), 1, "{LEFT}");
}

#[test]
fn c08_what_a_process_asks_of_itself_is_done() {
    model("a reminder", || remind(true)).must_fail_as("reminding last", LEFT, || remind(false));
}
