//! The owner of a completion queue resizes it while a process pushes, and one of the two is killed at some
//! store. If that is the producer, every receive completes exactly once; if it is the owner, the producer
//! still finds a queue to push to.

use std::sync::Arc;

use cq_core::transport::{Arm, Armed, Notify};
use transport_rxe_loop::sync::Site;
use verify_loom::channel::{EventCount, LOST};
use verify_loom::fanin::{Plan, SILENT, Taken, WRONG, World, entry};
use verify_loom::harness::model;
use verify_loom::mortal::at_every_step;
use verify_loom::threads::spawn;

const OWNER: usize = 0;
const PRODUCER: usize = 1;
const SWEEPER: usize = 2;

/// The producer, who is killed, completes two receives, one by one. The owner polls, resizes, polls, sweeps up
/// and completes what was left.
fn producer_killed(plan: Plan) -> bool {
    let world = World::new(&[4, 4], plan);
    let producer = spawn(&world, move |world| {
        world.live(PRODUCER, plan.death, || {
            world.push(PRODUCER, &[entry(0, 0)], SILENT);
            world.push(PRODUCER, &[entry(0, 1)], SILENT);
        })
    });
    let (mut consumer, mut taken) = (world.consumer(0), Taken::default());
    taken.poll(&mut consumer);
    consumer = world.resize(OWNER, &mut consumer, 1);
    taken.poll(&mut consumer);
    let lived = producer.join().unwrap();
    world.recover(OWNER, SILENT);
    world.flush(OWNER, 0, 2, SILENT);
    taken.poll(&mut consumer);
    taken.expect(&world, [2, 0]);
    lived
}

#[test]
fn q12_resizing_keeps_everything_whoever_pushes_and_dies() {
    at_every_step("resize against a push", 0..0, |step| producer_killed(Plan::dying_at(step)));
}

/// The owner, who is killed, has polled one completion of two, and resizes. The producer completes two more
/// receives meanwhile. What nobody will poll any more is all there.
fn owner_killed(death: u32) -> bool {
    let world = World::new(&[4, 8], Plan::dying_at(u32::MAX));
    let mut taken = Taken::default();
    world.push(SWEEPER, &[entry(0, 0)], SILENT);
    let mut consumer = world.consumer(0);
    taken.poll(&mut consumer);
    world.push(SWEEPER, &[entry(0, 1)], SILENT);
    let producer = spawn(&world, move |world| {
        world.push(PRODUCER, &[entry(1, 0)], SILENT);
        world.push(PRODUCER, &[entry(1, 1)], SILENT);
    });
    let lived = world.live(OWNER, death, || {
        let _consumer = world.resize(OWNER, &mut consumer, 1);
    });
    producer.join().unwrap();
    world.recover(SWEEPER, SILENT);
    taken.poll(&mut world.consumer(1));
    taken.expect(&world, [2, 2]);
    lived
}

#[test]
fn x03_a_queue_whose_owner_died_resizing_is_a_queue() {
    at_every_step("resize", 0..0, owner_killed);
}

#[test]
fn x03_a_ring_is_the_queues_once_it_is_whole() {
    model("resize, killed while it moves", || owner_killed(4))
        .must_fail_without([Site::MoveLast], WRONG);
}

/// The consumer arms, and resizes. It looks at nothing after that, so if it was told that it is safe to
/// sleep, an event must come.
fn armed() {
    let world = World::new(&[4, 4], Plan::dying_at(u32::MAX));
    let events = Arc::new(EventCount::default());
    let producer = spawn((&world, &events), move |(world, events)| {
        world.push(PRODUCER, &[entry(0, 0)], &*events)
    });
    let mut consumer = world.consumer(0);
    let asleep = consumer.arm(Notify::Next).unwrap() == Armed::Armed;
    let _consumer = world.resize(OWNER, &mut consumer, 1);
    producer.join().unwrap();
    assert!(!asleep || events.raised() > 0, "{LOST}");
}

#[test]
fn n06_an_arm_moves_with_the_queue() {
    model("armed, resized under the lock", armed).must_fail_without([Site::AdoptArm], LOST);
}
