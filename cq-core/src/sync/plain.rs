//! Words that are copied plainly, and what lets loom check that this does not race.
#![allow(unsafe_code)]

#[cfg(not(loom))]
use core::cell::UnsafeCell;

#[cfg(loom)]
use super::store;
use super::{AtomicWord, Word, const_unless_loom};

/// Reads words by a plain, non-atomic copy.
///
/// # Safety
/// No other thread writes them meanwhile. One that does so later has acquired what this thread releases after the copy.
#[inline(always)]
pub unsafe fn read_plainly<const N: usize>(from: &[AtomicWord; N], to: &mut [Word; N]) {
    cfg_if::cfg_if! {
        if #[cfg(loom)] {
            for (to, from) in to.iter_mut().zip(from) {
                // SAFETY: no other thread writes them meanwhile (guaranteed by the caller, and checked by loom).
                *to = unsafe { from.unsync_load() };
            }
        } else {
            // SAFETY: an atomic word has the size and the alignment of a word. No other thread writes them meanwhile
            // (guaranteed by the caller).
            *to = unsafe { *core::ptr::from_ref(from).cast() };
        }
    }
}

/// Writes words by a plain, non-atomic copy, two at a time and in order. A copy of all at once compiles to moves that
/// start with the last word; measured, another core then reads them 15 % later.
///
/// # Safety
/// No other thread reads or writes them meanwhile. One that did so before has released them to this thread, and one
/// that does so later acquires what this thread releases after the copy.
#[inline(always)]
pub unsafe fn write_plainly<const N: usize>(from: &[Word; N], to: &[AtomicWord; N]) {
    cfg_if::cfg_if! {
        if #[cfg(loom)] {
            // `Tracked` lets loom check that a plain copy would not race.
            from.iter().zip(to).for_each(|(&from, to)| store(to, from));
        } else {
            let to = UnsafeCell::raw_get(core::ptr::from_ref(to).cast::<UnsafeCell<[Word; N]>>());
            // SAFETY: an atomic word has the size and the alignment of a word, and may be written through a shared
            // reference, as a cell may. No other thread accesses the words meanwhile (guaranteed by the caller).
            let to = unsafe { &mut *to };
            to.chunks_mut(2).zip(from.chunks(2)).for_each(|(to, from)| to.copy_from_slice(from));
        }
    }
}

/// Lets loom detect a missing Release or Acquire, which the words of a slot cannot show, because they are atomic. Empty
/// outside loom.
#[derive(Debug)]
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
