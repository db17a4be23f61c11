//! Places for objects that are refused when a test wants that.

use std::cell::Cell;

use crate::test::*;

thread_local! {
    /// How many this thread gets before one is refused.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Each place asks.
///
/// # Errors
/// ENOMEM: it is refused.
pub fn pass() -> Result<(), Errno> {
    match LEFT.get() {
        Some(0) => {
            LEFT.set(None);
            Err(Errno::NOMEM)
        }
        left => {
            LEFT.set(left.map(|left| left - 1));
            Ok(())
        }
    }
}

/// Does something, first without its first place, then without its second, until it gets all: only then it succeeds.
pub fn each(work: impl Fn() -> Result<(), Errno>) {
    for left in 0.. {
        LEFT.set(Some(left));
        let done = work();
        if LEFT.take().is_some() {
            assert_eq!(done, Ok(()));
            assert!(left > 5, "it asks for places");
            return;
        }
        assert_eq!(done, Err(Errno::NOMEM), "without the place {left}");
    }
}
