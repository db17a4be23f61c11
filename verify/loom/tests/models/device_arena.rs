//! The arena: memory that one process gives back is another's, with all that was done to it (X3), and nobody takes
//! what somebody has.

use std::sync::Arc;

use transport_rxe_loop::protocol::arena::Granules;
use transport_rxe_loop::protocol::lock::{AttachmentKey, Lock};
use transport_rxe_loop::sync::{AtomicU8, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::mortal::{Mortal, VICTIM, at_every_step};
use verify_loom::threads::{Watched, spawn};

const HEIR: AttachmentKey = AttachmentKey::new(1, 1);
const OTHER: AttachmentKey = AttachmentKey::new(2, 1);
const TWICE: &str = "somebody has it";
const LOST: &str = "a dead process keeps it";

/// What is left out, in a control.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    Lock,
    Sweep,
}

/// Memory of two granules, under its lock.
struct World {
    lock: Lock,
    owners: [AtomicU8; 2],
    /// What is done with the memory itself: reaching one without a happens-before is what fails.
    memory: [Watched<u8>; 2],
    victim: Mortal,
    without: Without,
}

impl World {
    fn new(without: Without) -> Arc<Self> {
        Arc::new(Self {
            lock: Lock::default(),
            owners: [0; 2].map(AtomicU8::new),
            memory: Default::default(),
            victim: Mortal::default(),
            without,
        })
    }

    fn granules(&self) -> Granules<'_> {
        Granules::new(&self.owners)
    }

    /// As [`AttachmentKey`]s are written down there.
    fn byte(owner: AttachmentKey) -> u8 {
        owner.attachment().get() as u8 + 1
    }

    fn take(&self, me: AttachmentKey, count: usize) -> Option<usize> {
        if self.without != Without::Lock {
            // Nothing under it needs repair.
            let _inherited = self.victim.enter(&self.lock, me);
        }
        let first = self.granules().take(0, count, Self::byte(me));
        if self.without != Without::Lock {
            self.victim.leave(&self.lock);
        }
        first
    }

    /// Takes so many, zeroes and uses them, and gives them back; whether there were so many.
    fn work(&self, me: AttachmentKey, count: usize) -> bool {
        let Some(first) = self.take(me, count) else { return false };
        let memory = &self.memory[first..first + count];
        memory.iter().for_each(|cell| cell.set(Self::byte(me)));
        assert!(memory.iter().all(|cell| cell.get() == Self::byte(me)), "{TWICE}");
        self.granules().give_back(first, count);
        true
    }
}

fn hand_over(without: Without) {
    let world = World::new(without);
    let other = spawn(&world, |world| world.work(OTHER, 2));
    let one = world.work(HEIR, 2);
    let other = other.join().unwrap();
    assert!(one || other, "the first finds both free");
    assert!(world.work(HEIR, 2), "all were given back");
}

#[test]
fn x03_who_takes_memory_comes_after_who_gave_it_back() {
    model("arena hand-over", || hand_over(Without::Nothing))
        .must_fail_without([Site::GiveGranule, Site::SeeGranule], UNORDERED)
        .must_fail_as("the lock", UNORDERED, || hand_over(Without::Lock));
}

/// The victim works, and is killed at a step of it; the other takes what is free meanwhile, sweeps once it is dead,
/// and then takes all. Says whether the victim came to its end.
fn die(step: u32, without: Without) -> bool {
    let world = World::new(without);
    let victim = spawn(&world, move |world| world.victim.live(step, || _ = world.work(VICTIM, 2)));
    let _found_one = world.work(HEIR, 1);
    let lived = victim.join().unwrap();
    assert!(world.victim.is_dead());
    if without != Without::Sweep {
        world.granules().recover(World::byte(VICTIM));
    }
    assert!(world.work(HEIR, 2), "{LOST}");
    assert_eq!(world.granules().owners().count(), 0);
    lived
}

/// The lock is taken, and both granules are marked.
const MARKED: u32 = 3;

#[test]
fn x03_what_a_dead_process_had_is_free_whenever_it_was_killed() {
    at_every_step("who has memory", 0..0, |step| die(step, Without::Nothing));
    model("who has memory, killed when it is marked", || die(MARKED, Without::Nothing))
        .must_fail_as("the sweep", LOST, || die(MARKED, Without::Sweep));
}

/// One sweeps up after a process that died using memory, whose death has ordered all that it did before this; nobody but
/// the other one takes some meanwhile, so there is no need of the lock.
fn sweep_meanwhile() {
    let world = World::new(Without::Lock);
    let first = world.take(VICTIM, 2).unwrap();
    let other = spawn(&world, |world| _ = world.work(HEIR, 1));
    world.memory[first].set(World::byte(VICTIM));
    world.granules().recover(World::byte(VICTIM));
    other.join().unwrap();
}

#[test]
fn x03_who_takes_memory_comes_after_who_swept_it() {
    model("swept while another takes", sweep_meanwhile)
        .must_fail_without([Site::GiveGranule, Site::SeeGranule], UNORDERED);
}
