//! Words that are copied plainly, and what lets loom check that this does not race.
#![allow(unsafe_code)]

use super::{Word, const_unless_loom};

/// Reads words by a plain, non-atomic copy.
///
/// # Safety
/// So many words lie at `from`, and no thread writes them meanwhile. One that does so later has acquired what this thread
/// releases after the copy.
#[inline(always)]
pub unsafe fn copy_out(from: *const Word, to: &mut [Word]) {
    // SAFETY: guaranteed by the caller; `to` is borrowed, so it is elsewhere.
    unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
}

/// Writes words by a plain, non-atomic copy, two at a time and in order. A copy of all at once compiles to moves that
/// start with the last word; measured, another core then reads them 15 % later.
///
/// # Safety
/// There is space for so many words at `to`, and no other thread reads or writes it meanwhile. One that did so before has
/// released it to this thread, and one that does so later acquires what this thread releases after the copy.
#[inline(always)]
pub unsafe fn copy_in_order(from: &[Word], to: *mut Word) {
    let mut copied = 0;
    while copied < from.len() {
        let pair = (from.len() - copied).min(2);
        // SAFETY: guaranteed by the caller; these words are within `from`, which is borrowed, so they are elsewhere.
        unsafe { to.add(copied).copy_from_nonoverlapping(from.as_ptr().add(copied), pair) };
        copied += pair;
    }
}

/// Whether [`hold_loads`] holds any, as the [module above](super#loads-that-are-held) says. In loom and Miri it is as if it did, so
/// that they check what surrounds it.
pub const LOADS_AHEAD: bool = cfg!(any(target_arch = "x86_64", loom, miri));

/// Holds the loads that follow until those before are done. It changes what is fast, not what is seen: an Acquire load orders
/// already what is seen.
#[inline(always)]
pub fn hold_loads() {
    // SAFETY: every processor of this architecture has the instruction, which accesses nothing.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
}

/// Lets loom detect a missing Release or Acquire, which the words of a slot cannot show, because they are atomic. Empty
/// outside loom.
#[derive(Debug, Default)]
pub struct Tracked {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
}

impl Tracked {
    const_unless_loom! {
        pub const fn new() -> Self {
            Self {
                #[cfg(loom)]
                cell: loom::cell::UnsafeCell::new(()),
            }
        }
    }

    #[inline(always)]
    pub fn write(&self) {
        #[cfg(loom)]
        self.cell.with_mut(|_| ());
    }

    #[inline(always)]
    pub fn read(&self) {
        #[cfg(loom)]
        self.cell.with(|_| ());
    }
}

// SAFETY: the cell holds `()`, and no reference to its content leaves `write` or `read`.
#[cfg(loom)]
unsafe impl Sync for Tracked {}
