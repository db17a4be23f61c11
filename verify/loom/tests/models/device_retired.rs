//! Records of other processes' regions are used without a lock while they are replaced: no copy uses a mapping that was
//! unmapped, and each is, once no copy can use it any more (Q10).

use std::sync::Arc;

use loom::cell::UnsafeCell;
use transport_rxe_loop::protocol::retired::Retired;
use transport_rxe_loop::sync::{self, AtomicU32, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::initiator::Initiator;
use verify_loom::threads::spawn;

const LEFT: &str = "something is left that no copy uses";

/// Two mappings: the first is known at the beginning.
struct Known {
    initiators: [Initiator; 2],
    place: AtomicU32,
    mappings: [UnsafeCell<()>; 2],
}

// SAFETY: the cells hold nothing.
unsafe impl Sync for Known {}

impl Known {
    fn new() -> Arc<Self> {
        let mappings = std::array::from_fn(|_| UnsafeCell::new(()));
        let (initiators, place) = Default::default();
        Arc::new(Self { initiators, place, mappings })
    }

    /// Copies to or from what is there, for a queue pair.
    fn copy(&self, number: usize) {
        let copy = || {
            let found = sync::acquire(&self.place);
            self.mappings[found as usize].with(|_| ());
        };
        assert!(self.initiators[number].run(copy, || ()));
    }

    /// Maps the second, and takes the first out of its place.
    fn replace(&self, retired: &mut Retired<usize>) {
        self.mappings[1].with_mut(|_| ());
        sync::release(&self.place, 1);
        retired.add(0);
    }

    /// Unmaps what no copy uses any more; true if something is left.
    fn tidy(&self, retired: &mut Retired<usize>) -> bool {
        let markers = self.initiators.each_ref().map(|initiator| &initiator.ownership);
        retired.free(&markers, |mapping| self.mappings[mapping].with_mut(|_| ()))
    }
}

/// What the one does who replaces it.
#[derive(Clone, Copy)]
enum How {
    /// Looks at the markers so often.
    Looks(usize),
    /// Takes it out of its place when it has looked at the markers.
    TooLate,
    /// Does not look.
    Never,
}

/// A mapping is replaced that these queue pairs use, each for so many copies.
fn replace_during(numbers: &'static [usize], copies: usize, how: How) {
    let known = Known::new();
    let copying: Vec<_> = numbers
        .iter()
        .map(|&number| spawn(&known, move |known| (0..copies).for_each(|_| known.copy(number))))
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
    copying.into_iter().for_each(|copies| copies.join().unwrap());
    assert!(!known.tidy(&mut retired), "{LEFT}");
}

#[test]
fn q10_no_copy_uses_what_is_unmapped() {
    let numbers: [(&str, &'static [usize], usize, usize); 3] = [
        ("a copy", &[0], 1, 1),
        ("two copies", &[0], 2, 2),
        // Each of their markers is cleared at another time.
        ("copies of two queue pairs", &[0, 1], 1, 2),
    ];
    for (what, numbers, copies, looks) in numbers {
        let run = move |how| replace_during(numbers, copies, how);
        model(format!("a mapping is replaced during {what}"), move || run(How::Looks(looks)))
            .must_fail_without([Site::OpenFence, Site::ChangeFence, Site::SeeClosed], UNORDERED)
            .must_fail_as("taking it out of its place first", UNORDERED, move || run(How::TooLate))
            .must_fail_as("the markers", UNORDERED, move || run(How::Never));
    }
}
