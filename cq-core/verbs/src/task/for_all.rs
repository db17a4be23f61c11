//! Calls that may panic, of which none is left out.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// Calls `each` for all items, also if it panics for some: a waker may, or a buffer that is dropped. Then panics as it did
/// first.
pub fn for_all<T>(items: impl IntoIterator<Item = T>, mut each: impl FnMut(T)) {
    let mut first = None;
    for item in items {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| each(item))) {
            first.get_or_insert(panic);
        }
    }
    if let Some(panic) = first.filter(|_| !thread::panicking()) {
        resume_unwind(panic);
    }
}
