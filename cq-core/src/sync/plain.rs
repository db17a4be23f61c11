//! Words that are copied plainly, and what lets loom check that this does not race.
#![allow(unsafe_code)]

use bytemuck::Pod;

use super::{Word, const_unless_loom};

/// How many words are copied at a time: those for which a compiler that optimizes for size still makes moves, and no call of
/// `memcpy`.
const AT_A_TIME: usize = if cfg!(target_arch = "arm") { 64 } else { 16 } / size_of::<Word>();

/// The largest number of bytes that [`copy_in_order`] copies.
pub const MOST_COPIED: usize = 8 * AT_A_TIME * size_of::<Word>();

/// Copies words plainly, some at a time and in order: on x86-64, a copy of all at once compiles to moves that start with the last
/// word, and another core then reads them 15 % later. No loop is left where their number is a constant, since that would become
/// a call.
///
/// # Safety
/// So many words, of at most [`MOST_COPIED`] bytes, lie at `from`, and there is space for them at `to`, elsewhere. No other
/// thread writes those nor accesses these meanwhile. One that did so before has released it to this thread, and one that does so
/// later acquires what this thread releases after the copy.
#[inline(always)]
pub unsafe fn copy_in_order(from: *const Word, to: *mut Word, count: usize) {
    macro_rules! copy {
        ($($nth:literal)*) => {
            $({
                let first = $nth * AT_A_TIME;
                if count > first {
                    // SAFETY: guaranteed by the caller, for these words among them.
                    unsafe { to.add(first).copy_from_nonoverlapping(from.add(first), (count - first).min(AT_A_TIME)) };
                }
            })*
        };
    }
    copy!(0 1 2 3 4 5 6 7);
}

/// Copies an entry plainly: [by words](copy_in_order), if it consists of them. The alignment does not say that, as on 32-bit x86,
/// where a word of 64 bits is aligned to 4 bytes.
///
/// # Safety
/// An entry lies at `from`, and there is space for one at `to`, elsewhere. As of [`copy_in_order`].
#[inline(always)]
pub unsafe fn copy_entry<E: Pod>(from: *const E, to: *mut E) {
    let is_words =
        size_of::<E>().is_multiple_of(size_of::<Word>()) && align_of::<E>() >= align_of::<Word>();
    // SAFETY: guaranteed by the caller; so many words are an entry.
    unsafe {
        if is_words {
            copy_in_order(from.cast(), to.cast(), size_of::<E>() / size_of::<Word>());
        } else {
            to.copy_from_nonoverlapping(from, 1);
        }
    }
}

/// The same value. On a microcontroller the compiler does not know its address then: of a static that it knows, such as an
/// interrupt handler's, it would make a static of each field, and each access would load the address of one.
#[inline(always)]
pub fn by_its_address<T>(value: &mut T) -> &mut T {
    cfg_if::cfg_if! {
        if #[cfg(all(any(target_arch = "arm", target_arch = "riscv32"), not(target_has_atomic = "64"), not(miri)))] {
            let mut address: *mut T = value;
            // SAFETY: it has no instruction, so the pointer is the same, and that of a reference which is not used meanwhile.
            unsafe {
                core::arch::asm!("/* {0} */", inout(reg) address, options(pure, nomem, nostack, preserves_flags));
                &mut *address
            }
        } else {
            value
        }
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
