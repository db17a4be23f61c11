//! Entries of a table: one process has each, and comes after whoever had it before, also where that one died (X3).

use std::sync::Arc;

use loom::cell::UnsafeCell;
use transport_rxe_loop::protocol::life::Life;
use transport_rxe_loop::protocol::lock::AttachmentId;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::threads::spawn;

const ONE: AttachmentId = AttachmentId::new(0);
const OTHER: AttachmentId = AttachmentId::new(254 - 1);

/// When an entry is given back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Once its owner is through with it.
    Last,
    /// Before.
    First,
}

/// An entry, and what its owner does with it: doing that without a happens-before is what fails.
#[derive(Default)]
struct World {
    life: Life,
    entry: UnsafeCell<u32>,
}

// SAFETY: loom looks after the cell.
unsafe impl Sync for World {}

impl World {
    fn with(place: Option<AttachmentId>) -> Arc<Self> {
        let world = Arc::<Self>::default();
        assert!(place.is_none_or(|place| world.life.claim(place) == Some(0)));
        world
    }

    fn work(&self) {
        // SAFETY: loom has looked whether somebody else is at it.
        self.entry.with_mut(|entry| unsafe { *entry += 1 });
    }

    /// What its owner does, or who sweeps up after that one, which has seen all that it did.
    fn end(&self, place: AttachmentId, ends: Ends) {
        if ends == Ends::First {
            self.life.end(place);
        }
        self.work();
        if ends == Ends::Last {
            self.life.end(place);
        }
    }

    /// Claims it, if it is free; which generation that is.
    fn claim(&self, place: AttachmentId) -> Option<u32> {
        let generation = self.life.claim(place);
        if generation.is_some() {
            assert_eq!(self.life.attachment(), Some(place), "another has it");
            self.work();
        }
        generation
    }
}

#[test]
fn x03_of_two_that_claim_an_entry_one_has_it() {
    model("two claim an entry", || {
        let world = World::with(None);
        let other = spawn(&world, |world| world.claim(OTHER));
        let claimed = [world.claim(ONE), other.join().unwrap()];
        assert_eq!(
            claimed.iter().flatten().collect::<Vec<_>>(),
            [&0],
            "one has it, and is the first"
        );
    });
}

fn hand_over(ends: Ends) {
    let world = World::with(Some(ONE));
    let other = spawn(&world, |world| world.claim(OTHER));
    world.end(ONE, ends);
    assert!(other.join().unwrap().is_none_or(|generation| generation == 1), "another life");
    assert_ne!(world.life.attachment(), Some(ONE));
}

#[test]
fn x03_who_claims_an_entry_comes_after_who_had_it() {
    model("an entry is handed over", || hand_over(Ends::Last)).must_fail_as(
        "ending last",
        UNORDERED,
        || hand_over(Ends::First),
    );
}
