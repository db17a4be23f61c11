//! Records of other processes' regions are used without a lock while they are replaced: no copy uses a mapping that was
//! unmapped, and each is, once no copy can use it any more (Q10).

use std::sync::Arc;

use transport_rxe_loop::protocol::ownership::Ownership;
use transport_rxe_loop::protocol::retired::Retired;
use transport_rxe_loop::sync::{self, AtomicU32, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::initiator::Initiator;
use verify_loom::threads::{Watched, spawn};

const LEFT: &str = "something is left that no copy uses";

/// Two mappings: the first is known at the beginning.
#[derive(Default)]
struct Known {
    initiators: [Initiator; 2],
    place: AtomicU32,
    mappings: [Watched; 2],
}

impl Known {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Copies to or from what is there, for a queue pair.
    fn copy(&self, number: usize) {
        let copy = || {
            let found = sync::acquire(&self.place);
            self.mappings[found as usize].read();
        };
        assert!(self.initiators[number].run(copy, || ()));
    }

    /// Maps the second, and takes the first out of its place.
    fn replace(&self, retired: &mut Retired<usize>) {
        self.mappings[1].write();
        sync::release(&self.place, 1);
        retired.add(0);
    }

    /// Unmaps what no copy uses any more; true if something is left.
    fn tidy(&self, retired: &mut Retired<usize>) -> bool {
        let markers = self.initiators.each_ref().map(|initiator| &initiator.ownership);
        retired.free(&markers, |mapping| self.mappings[mapping].write())
    }
}

/// A mapping is replaced that these queue pairs use, each for so many copies, while the one who does so looks at the markers
/// so often; if never, it is unmapped at once.
fn replace_during(numbers: &'static [usize], copies: usize, looks: usize) {
    let known = Known::new();
    let copying: Vec<_> = numbers
        .iter()
        .map(|&number| spawn(&known, move |known| (0..copies).for_each(|_| known.copy(number))))
        .collect();
    let mut retired = Retired::default();
    known.replace(&mut retired);
    (0..looks).for_each(|_| _ = known.tidy(&mut retired));
    if looks == 0 {
        let nobody: [&Ownership; 0] = [];
        retired.free(&nobody, |mapping| known.mappings[mapping].write());
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
        let name = format!("a mapping is replaced during {what}");
        model(name, move || replace_during(numbers, copies, looks))
            .must_fail_without([Site::OpenFence, Site::ChangeFence, Site::SeeClosed], UNORDERED)
            .must_fail_as("the markers", UNORDERED, move || replace_during(numbers, copies, 0));
    }
}
