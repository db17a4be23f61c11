//! Receives that several queue pairs share: each is taken once, a sender that waits for one is rescheduled, and what a
//! killed taker had is taken again, or has completed (Q9, X3).

use std::sync::Arc;

use cq_core::transport::Signal;
use cq_verbs::setup::QpState;
use transport_rxe_loop::protocol::identity;
use transport_rxe_loop::protocol::in_flight::{ChangeFence, InFlight};
use transport_rxe_loop::protocol::lock::AttachmentKey;
use transport_rxe_loop::protocol::pool::Taken;
use transport_rxe_loop::sync::{AtomicU64, Site};
use verify_loom::channel::{Channel, LOST};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::mortal::{VICTIM, at_every_step};
use verify_loom::pool::{TARGET, WRONG, World};
use verify_loom::threads::{Watched, spawn};

const ONE: AttachmentKey = AttachmentKey::new(1, 1);
const OTHER: AttachmentKey = AttachmentKey::new(2, 1);

/// Takes one, and sleeps as long as there is none.
fn wait(world: &World, me: AttachmentKey, wakes: &mut Channel) -> Taken {
    loop {
        if let Some(taken) = world.take(me) {
            return taken;
        }
        wakes.sleep();
    }
}

/// One takes and completes until it has `all`, while the owner posts each of `batches` at once. A batch that
/// finds no room is given up.
fn hand_over(all: u64, batches: &'static [u64]) {
    let (world, mut wakes) = (World::with(0), Channel::new(1));
    let owner = spawn((&world, &wakes), move |(world, wakes)| {
        for &batch in batches {
            if world.post_up_to(batch) {
                wakes.raise();
            }
        }
        wakes.hang_up();
    });
    for next in 0..all {
        let taken = wait(&world, ONE, &mut wakes);
        assert_eq!(world.read(&taken), next, "{WRONG}");
        world.complete(&taken);
    }
    owner.join().unwrap();
}

#[test]
fn q09_who_waits_for_a_shared_receive_is_kicked() {
    model("one shared receive each time", || hand_over(2, &[1, 2]))
        .must_fail_without([Site::PostFence, Site::StarveFence, Site::LookAgain], LOST)
        .must_fail_without([Site::StoreFenced, Site::SeePosted], UNORDERED);
}

/// The owner fills the pool as often as it finds room, while what is in it is taken.
fn reuse() {
    let world = World::with(2);
    let owner = spawn(&world, |world| assert!(!world.post_up_to(3), "nobody starves"));
    for next in 0..2 {
        let taken = world.take(ONE).expect(WRONG);
        assert_eq!(world.read(&taken), next, "{WRONG}");
        world.complete(&taken);
    }
    owner.join().unwrap();
    let posted = world.queue().posted();
    world.drain(ONE, posted.get());
}

#[test]
fn q09_a_shared_receive_is_overwritten_only_once_it_was_read() {
    model("a full pool", reuse).must_fail_without([Site::SeeFree], UNORDERED);
}

/// Two wait for one each, and both are posted at once.
fn two_takers() {
    let (world, wakes) = (World::with(0), [Channel::new(1), Channel::new(1)]);
    let takers = [(ONE, 0), (OTHER, 1)].map(|(me, which)| {
        spawn((&world, &wakes[which]), move |(world, mut mine)| {
            world.complete(&wait(&world, me, &mut mine))
        })
    });
    if world.post_up_to(2) {
        wakes.iter().for_each(|it| it.raise());
    }
    wakes.iter().for_each(Channel::hang_up);
    takers.into_iter().for_each(|taker| taker.join().unwrap());
    world.drain(ONE, 2);
}

/// One takes the last receive, and gives it back; another waits for it.
fn give_back(kicks_then: bool) {
    let (world, mut wakes) = (World::with(1), Channel::new(1));
    let other = spawn((&world, &wakes), move |(world, wakes)| {
        let starved = world.take(OTHER).is_some_and(|taken| world.give_back(OTHER, &taken));
        if starved && kicks_then {
            wakes.raise();
        }
        wakes.hang_up();
    });
    let taken = wait(&world, ONE, &mut wakes);
    world.complete(&taken);
    other.join().unwrap();
    world.drain(ONE, 1);
}

#[test]
fn q09_all_who_wait_for_shared_receives_are_kicked() {
    model("two takers", two_takers);
    model("one gives back", || give_back(true))
        .must_fail_as("kicking then", LOST, || give_back(false));
}

/// One has taken the only receive, and leaves it, as it can't have the lock; another waits for it.
fn leave(kicks_last: bool) {
    let (world, mut wakes) = (World::with(1), Channel::new(1));
    let taken = world.take(OTHER).expect(WRONG);
    let other = spawn((&world, &wakes), move |(world, wakes)| {
        if !kicks_last {
            wakes.raise();
        }
        assert!(world.queue().leave(&taken), "{WRONG}");
        if kicks_last {
            wakes.raise();
        }
        wakes.hang_up();
    });
    let taken = wait(&world, ONE, &mut wakes);
    assert_eq!(world.read(&taken), 0, "{WRONG}");
    world.complete(&taken);
    other.join().unwrap();
    world.drain(ONE, 1);
}

#[test]
fn q09_who_waits_gets_what_was_given_back_without_the_lock() {
    model("one leaves", || leave(true)).must_fail_as("kicking last", LOST, || leave(false));
}

/// The victim has taken one of two, and leaves it; then it takes the other one, and is killed at a step of all that.
/// A survivor takes one meanwhile, if there is one; somebody sweeps up.
fn leave_and_die(step: u32, looks: bool) {
    let world = World::with(2);
    let taken = world.take(VICTIM).expect(WRONG);
    let victim = spawn(&world, move |world| {
        world.victim.live(step, || {
            let _left = world.queue().leave(&taken);
            let _taken = world.take(VICTIM);
        })
    });
    if let Some(taken) = world.take(ONE) {
        world.complete(&taken);
    }
    victim.join().unwrap();
    world.recover(ONE, VICTIM);
    let _found = looks && world.queue().find_left();
    world.drain(ONE, 2);
}

/// Of leaving, which says so last, and of taking what was left in.
const LEAVES: std::ops::Range<u32> = 0..8;

#[test]
fn x03_what_was_left_is_taken_whoever_dies_over_it() {
    for step in LEAVES {
        let name = format!("killed at step {step} of leaving a receive and taking it in");
        let model = model(name, move || leave_and_die(step, true));
        if step == 1 || step == 4 {
            model.must_fail_as("looking for it", WRONG, move || leave_and_die(step, false));
        }
    }
}

/// The victim leaves the only one, and is killed before it has said so; somebody finds it, and a survivor takes one
/// meanwhile, if it knows of one.
fn find_what_was_left() {
    let world = World::with(1);
    let taken = world.take(VICTIM).expect(WRONG);
    // What the next one does with the receive comes after that.
    let memory = Arc::new(Watched::default());
    let dies = spawn((&world, &memory), move |(world, memory)| {
        memory.write();
        world.victim.live(1, || _ = world.queue().leave(&taken))
    });
    let finds = spawn(&world, |world| world.queue().find_left());
    let taken = world.take(ONE);
    if taken.is_some() {
        memory.write();
    }
    let found = finds.join().unwrap();
    dies.join().unwrap();
    let taken = taken.or_else(|| world.take(ONE));
    assert!(taken.is_some() || !found, "{LOST}");
}

#[test]
fn x03_what_is_said_to_be_left_is_taken() {
    model("one finds what was left, and another takes it", find_what_was_left);
}

/// What survivors do about what the dead had taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// As the protocol has it: one of them.
    Whole,
    /// Two of them.
    Twice,
    /// Gives back before it has repaired what the dead has pushed to.
    GivesBackFirst,
}

/// The victim takes one, and completes it or gives it back, and is killed at a step of that. A survivor takes
/// one meanwhile; another one sweeps up. Says whether the victim came to its end.
fn die(step: u32, gives_back: bool, care: Care) -> bool {
    let world = World::with(2);
    let recover = move |world: &World, me: AttachmentKey| {
        if care != Care::GivesBackFirst {
            world.repair();
        }
        world.recover(me, VICTIM);
        world.repair();
    };
    let victim = spawn(&world, move |world| {
        world.victim.live(step, || {
            let taken = world.take(VICTIM).expect(WRONG);
            if gives_back {
                world.give_back(VICTIM, &taken);
            } else {
                world.complete(&taken);
            }
        })
    });
    let survivor = spawn(&world, move |world| {
        let taken = world.take(ONE).expect(WRONG);
        world.complete(&taken);
        if care == Care::Twice && world.victim.is_dead() {
            recover(&world, ONE);
        }
    });
    let lived = victim.join().unwrap();
    recover(&world, OTHER);
    survivor.join().unwrap();
    world.drain(OTHER, 2);
    lived
}

#[test]
fn x03_a_shared_receive_completes_once_whenever_its_taker_is_killed() {
    at_every_step("take and complete", 0..0, |step| die(step, false, Care::Whole));
}

#[test]
fn x03_a_shared_receive_is_not_lost_whenever_it_is_given_back() {
    at_every_step("take and give back", 0..TAKEN, |step| die(step, true, Care::Whole));
}

/// The lock is taken and the slot is marked, and the next one is still this one.
const MARKED: u32 = 2;
/// It is taken, and the lock left.
const TAKEN: u32 = 4;
/// Its completion is published, but the slot is still marked.
const PUBLISHED: u32 = 5;

#[test]
fn x03_what_a_killed_taker_left_is_put_in_order() {
    let killed_at = |step, care| move || die(step, false, care);
    model("take, killed when the slot is marked", killed_at(MARKED, Care::Whole))
        .must_fail_without([Site::StepOver], WRONG);
    model("take, killed when it has, two recover it", killed_at(TAKEN, Care::Twice));
    model("take, killed when it is published", killed_at(PUBLISHED, Care::Whole)).must_fail_as(
        "repairing first",
        WRONG,
        killed_at(PUBLISHED, Care::GivesBackFirst),
    );
}

/// A completion is settled again, by an heir, while its slot is used again.
fn settle_again() {
    let world = World::with(2);
    let first = world.take(ONE).expect(WRONG);
    world.complete(&first);
    let heir = spawn(&world, move |world| world.queue().settle(first.tag(), TARGET));
    assert!(!world.post_up_to(3), "nobody starves");
    let taken = [1, 2].map(|_| world.take(ONE).expect(WRONG));
    heir.join().unwrap();
    assert_eq!(world.queue().taken().count(), taken.len(), "{WRONG}");
    taken.iter().for_each(|taken| world.complete(taken));
    world.drain(OTHER, 3);
}

#[test]
fn q09_a_completion_settles_its_own_receive_alone() {
    model("a completion is settled again", settle_again)
        .must_fail_without([Site::RightLife], WRONG);
}

/// A queue pair fails while its peer takes and completes; one of the two sees that nothing is taken any more.
fn last_receive() {
    let (world, identity) = (World::with(1), Arc::new(AtomicU64::new(0)));
    identity::enter(&identity, TARGET);
    assert!(identity::change(&identity, identity::read(&identity), QpState::RTS));
    let peer = spawn((&world, &identity), |(world, identity)| {
        let in_flight = InFlight::default();
        in_flight.open();
        let taken = world.take_if(ONE, || identity::read(&identity).state() == QpState::RTS);
        if let Some(taken) = &taken {
            world.complete(taken);
        }
        in_flight.close();
        let wakes = identity::read(&identity).state() == QpState::ERR;
        (taken.is_some(), wakes)
    });
    assert!(identity::fail(&identity, TARGET));
    world.pass(OTHER);
    let _shut = ChangeFence::after_change();
    let is_taken = world.queue().taken().next().is_some();
    let before = world.completed();
    let (took, wakes) = peer.join().unwrap();
    if is_taken {
        assert!(wakes, "{LOST}");
    } else {
        assert_eq!(world.completed(), before, "{WRONG}");
    }
    assert_eq!(world.completed(), took.into(), "{WRONG}");
}

#[test]
fn q09_that_the_last_receive_was_taken_is_seen() {
    model("a peer with a pool fails", last_receive)
        .must_fail_without([Site::CloseFence, Site::ChangeFence], LOST);
}
