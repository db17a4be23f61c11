//! What a process knows of others' memory is looked at without a lock while it is taken away: nobody looks at what is
//! unmapped, and everything is, once nobody looks any more (Q10).

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::visits::{COUNTS, Retired, Visits};
use transport_rxe_loop::sync::{self, AtomicU32, Site};
use verify_loom::harness::{UNORDERED, model};

const LEFT: &str = "something is left that nobody looks at";

/// Two mappings: the first is known at the beginning.
struct Known {
    visits: Visits,
    place: AtomicU32,
    mappings: [UnsafeCell<()>; 2],
}

// SAFETY: the cells hold nothing.
unsafe impl Sync for Known {}

impl Known {
    fn new() -> Arc<Self> {
        let mappings = std::array::from_fn(|_| UnsafeCell::new(()));
        Arc::new(Self { visits: Visits::new(), place: AtomicU32::new(0), mappings })
    }

    /// Copies to or from what is there.
    fn copy(&self, number: usize) {
        let _visit = self.visits.enter(number);
        let found = sync::acquire(&self.place);
        self.mappings[found as usize].with(|_| ());
    }

    /// Maps the second, and takes the first out of its place.
    fn replace(&self, retired: &mut Retired<usize>) {
        self.mappings[1].with_mut(|_| ());
        sync::release(&self.place, 1);
        retired.add(0);
    }

    /// Unmaps what nobody looks at any more; true if something is left.
    fn tidy(&self, retired: &mut Retired<usize>) -> bool {
        retired.free(&self.visits, |mapping| self.mappings[mapping].with_mut(|_| ()))
    }
}

/// What the one does who takes away.
#[derive(Clone, Copy)]
enum How {
    /// Looks at the counts so often.
    Looks(usize),
    /// Takes it out of its place when it has looked at the counts.
    TooLate,
    /// Does not look.
    Never,
}

/// Somebody takes away what visitors with these numbers find.
fn take_away(numbers: &'static [usize], how: How) {
    let known = Known::new();
    let visitors: Vec<_> = numbers
        .iter()
        .map(|&number| {
            let known = Arc::clone(&known);
            thread::spawn(move || known.copy(number))
        })
        .collect();
    let mut retired = Retired::new();
    match how {
        How::Looks(times) => {
            known.replace(&mut retired);
            for _ in 0..times {
                known.tidy(&mut retired);
            }
        }
        How::TooLate => {
            retired.add(0);
            known.tidy(&mut retired);
            sync::release(&known.place, 1);
        }
        How::Never => {
            known.replace(&mut retired);
            known.mappings[0].with_mut(|_| ());
        }
    }
    visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
    assert!(!known.tidy(&mut retired), "{LEFT}");
}

/// Two numbers of different counts: the models of two visitors are of both.
const APART: [usize; 2] = [0, 1];

#[test]
fn q10_nobody_looks_at_what_is_unmapped() {
    assert_eq!(COUNTS, 2);
    model("a mapping is taken away while somebody copies", || {
        take_away(&APART[..1], How::Looks(1))
    })
    .must_fail_without(Site::VisitFence, UNORDERED)
    .must_fail_without(Site::RetireFence, UNORDERED)
    .must_fail_without(Site::LeaveVisit, UNORDERED)
    .must_fail_without(Site::SeeVisits, UNORDERED)
    .must_fail_as("taking it out of its place first", UNORDERED, || {
        take_away(&APART[..1], How::TooLate);
    })
    .must_fail_as("the counts", UNORDERED, || take_away(&APART[..1], How::Never));
}

#[test]
fn q10_nor_at_what_is_unmapped_when_each_count_was_0_at_another_time() {
    for numbers in [&APART, &[0, 0]] {
        model("a mapping is taken away while two copy", || take_away(numbers, How::Looks(2)))
            .must_fail_without(Site::VisitFence, UNORDERED)
            .must_fail_without(Site::LeaveVisit, UNORDERED);
    }
}
