//! Processes push to one completion queue, and some are killed, each at some store: every receive completes
//! exactly once, those that have completed are settled, and whoever sleeps is woken.

use cq_core::cq::CompletionQueue;
use cq_core::sync::Site as Engine;
use cq_core::transport::Notify;
use cq_core::wc::Wc;
use transport_rxe_loop::sync::Site;
use verify_loom::channel::{Channel, LOST, take_some};
use verify_loom::fanin::{Plan, SILENT, Taken, WRONG, World, entry};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::mortal::at_every_step;
use verify_loom::threads::spawn;

/// Processes: the first one is killed, the others are not, unless the model says so.
const VICTIM: usize = 0;
const HEIR: usize = 1;
const OTHER: usize = 2;

/// Steps of a push of one: the lock, the tag and five words, of which nobody knows before the entry is
/// published, and which are all as one here; then publishing, and so on.
const UNSEEN: std::ops::Range<u32> = 2..7;
/// Two are published: the first is written, then the second written and published, then the first published.
const BOTH_PUBLISHED: u32 = 15;
/// Three in a ring of two: two were published, settled and kept.
const LATCHED: u32 = 19;
/// If the consumer was armed, so that the push disarms.
const LEFT_ARMED: u32 = 14;

/// The victim completes a receive of queue pair 0, another process one of queue pair 1, and then sweeps up
/// after the victim and completes what that has left. The consumer sleeps for both. Says whether the victim
/// lived, as all of these.
fn sleep(plan: Plan) -> bool {
    let (world, mut channel) = (World::new(&[4], plan), Channel::new(1));
    let victim = spawn((&world, &channel), move |(world, channel)| {
        world.live(VICTIM, plan.death, || {
            world.push(VICTIM, &[entry(0, 0)], &channel);
        })
    });
    let heir = spawn((&world, &channel), move |(world, channel)| {
        world.push(HEIR, &[entry(1, 0)], &channel);
        let lived = victim.join().unwrap();
        if !lived {
            world.recover(HEIR, &channel);
            world.flush(HEIR, 0, 1, &channel);
        }
        channel.hang_up();
        lived
    });
    let mut cq = CompletionQueue::new(world.consumer(0));
    let (mut taken, mut buffer) = (Taken::default(), [Wc::default(); 2]);
    while taken.count() < 2 {
        let count = take_some(&mut cq, &mut channel, Notify::Next, &mut buffer).unwrap();
        taken.add(&buffer[..count]);
    }
    let lived = heir.join().unwrap();
    taken.expect(&world, [1, 1]);
    lived
}

#[test]
fn n06_who_sleeps_is_woken_whoever_dies() {
    at_every_step("wait for a push", UNSEEN, |step| sleep(Plan::dying_at(step)));
}

#[test]
fn n06_a_queue_that_needs_no_repair_is_rung_too() {
    let plan = Plan::dying_at(LEFT_ARMED);
    model("wait for a push, killed before the event", move || sleep(plan))
        .must_fail_as("ringing all", LOST, move || sleep(Plan { rings_all: false, ..plan }))
        .must_fail_without([Engine::PushFence, Engine::ArmFence], LOST);
}

/// The victim completes two receives of queue pair 0 under one lock, another process one of queue pair 1. The
/// consumer polls now and then; at last it sweeps up after the victim and completes what that has left.
fn fan_in(plan: Plan) -> bool {
    let world = World::new(&[8], plan);
    let victim = spawn(&world, move |world| {
        world.live(VICTIM, plan.death, || {
            world.push(VICTIM, &[entry(0, 0), entry(0, 1)], SILENT);
        })
    });
    let other = spawn(&world, move |world| world.push(OTHER, &[entry(1, 0)], SILENT));
    let (mut consumer, mut taken) = (world.consumer(0), Taken::default());
    taken.poll(&mut consumer);
    let lived = victim.join().unwrap();
    other.join().unwrap();
    world.recover(HEIR, SILENT);
    world.flush(HEIR, 0, 2, SILENT);
    taken.poll(&mut consumer);
    taken.expect(&world, [2, 1]);
    lived
}

#[test]
fn c08_each_receive_completes_once_whoever_dies() {
    at_every_step("fan-in", UNSEEN, |step| fan_in(Plan::dying_at(step)));
}

#[test]
fn c08_a_lock_orders_those_who_have_it() {
    model("fan-in, nobody killed", || fan_in(Plan::dying_at(u32::MAX)))
        .must_fail_without([Site::Lock], UNORDERED)
        .must_fail_without([Site::Unlock], WRONG);
}

/// The victim, dead already, had published two, and settled none. Two others want the lock, and the first of them is
/// killed too.
fn heirs(plan: Plan) -> bool {
    let world = World::new(&[8], plan);
    world.live(VICTIM, BOTH_PUBLISHED, || {
        world.push(VICTIM, &[entry(0, 0), entry(0, 1)], SILENT);
    });
    let (mut consumer, mut taken) = (world.consumer(0), Taken::default());
    taken.poll(&mut consumer);
    let heir = spawn(&world, move |world| {
        world.live(HEIR, plan.death, || world.push(HEIR, &[entry(1, 0)], SILENT))
    });
    world.flush(OTHER, 0, 2, SILENT);
    let lived = heir.join().unwrap();
    world.recover(OTHER, SILENT);
    world.flush(OTHER, 1, 1, SILENT);
    taken.poll(&mut consumer);
    taken.expect(&world, [2, 1]);
    lived
}

#[test]
fn c08_an_heir_may_die_too() {
    at_every_step("two heirs", 0..0, |step| heirs(Plan::dying_at(step)));
}

/// No two at once: the victim is killed while it pushes two, then its heir, at every step, while that
/// repairs and pushes one; and the next goes on.
fn one_after_the_other(plan: Plan) -> bool {
    for death in 0.. {
        let world = World::new(&[4], plan);
        let lived = world.live(VICTIM, plan.death, || {
            world.push(VICTIM, &[entry(0, 0), entry(0, 1)], SILENT);
        });
        let heir_lived = world.live(HEIR, death, || world.push(HEIR, &[entry(1, 0)], SILENT));
        world.recover(OTHER, SILENT);
        world.flush(OTHER, 0, 2, SILENT);
        world.flush(OTHER, 1, 1, SILENT);
        let mut taken = Taken::default();
        taken.poll(&mut world.consumer(0));
        taken.expect(&world, [2, 1]);
        if heir_lived {
            return lived;
        }
    }
    unreachable!("a push has an end")
}

#[test]
fn c08_every_death_of_two() {
    at_every_step("two in turn", 0..0, |step| one_after_the_other(Plan::dying_at(step)));
}

/// The victim pushes one more than the queue holds, and another process one more. The consumer takes what
/// there is, until it is told of the overrun, and then nothing more ever comes.
fn overrun(plan: Plan) -> bool {
    let world = World::new(&[2], plan);
    let victim = spawn(&world, move |world| {
        world.live(VICTIM, plan.death, || {
            let batch = [0, 1, 2].map(|nth| entry(0, nth));
            let _may_overrun = world.push_or_overrun(VICTIM, &batch, SILENT);
        })
    });
    let (mut consumer, mut taken) = (world.consumer(0), Taken::default());
    let mut is_over = !taken.poll_until_overrun(&mut consumer);
    let lived = victim.join().unwrap();
    for nth in 0..2 {
        is_over |= !taken.poll_until_overrun(&mut consumer);
        let pushed = world.push_or_overrun(OTHER, &[entry(1, nth)], SILENT);
        let before = taken.count();
        let came = taken.poll_until_overrun(&mut consumer);
        assert!(!is_over || !came && pushed.is_err(), "{AFTER}");
        assert_eq!(pushed.is_ok(), taken.count() > before, "{WRONG}");
    }
    lived
}

const AFTER: &str = "something came after the overrun";

#[test]
fn o03_an_overrun_is_for_ever_whoever_dies() {
    at_every_step("overrun", UNSEEN, |step| overrun(Plan::dying_at(step)));
    let plan = Plan::dying_at(LATCHED);
    // Who comes next finds it, repairing or not.
    for repairs in [true, false] {
        model(format!("overrun, killed when it is latched, repairs: {repairs}"), move || {
            overrun(Plan { repairs, ..plan })
        });
    }
}
