//! Moving bytes while others may read and write them, between two spans that are mapped here. One of the modules with
//! `unsafe`.
//!
//! A few bytes of equal alignment are copied in atomic words, all others by a `memmove` that the compiler can't inline:
//! in neither case may it assume that the memory does not change. A concurrent reader sees any mixture of old and new
//! bytes, as with any device; for [`HereMut::write_last_word_late`] see there.

#![allow(unsafe_code)]

use std::marker::PhantomData;

use crate::shm::mapping;
use crate::sync::{self, AtomicU8, AtomicU64};

/// The most bytes that are copied in words: a call of `memmove` costs more than these.
const SMALL: usize = 256;

/// WRITEs of up to this many bytes show their last word last (Q8).
pub const LATE: usize = 4096;

/// One span that is mapped here and may be read for `'w`: what a usual message has on either side, without a list.
#[derive(Clone, Copy, Debug)]
pub struct Here<'w> {
    addr: usize,
    len: u32,
    granted: PhantomData<&'w ()>,
}

impl<'w> Here<'w> {
    /// The `len` bytes at an address.
    ///
    /// # Safety
    /// The bytes must stay mapped for `'w`, and all other accesses to them meanwhile must treat them as a device's memory.
    pub const unsafe fn new(addr: usize, len: u32) -> Self {
        Self { addr, len, granted: PhantomData }
    }

    /// The first `len` bytes of these words, or all of them.
    #[inline]
    pub fn of_words(words: &'w [AtomicU64], len: usize) -> Self {
        // SAFETY: the words are borrowed for `'w`, and atomic, so they may be read and written.
        unsafe { Self::new(words.as_ptr() as usize, len.min(size_of_val(words)) as u32) }
    }

    /// The number of bytes.
    pub const fn len(&self) -> u32 {
        self.len
    }
}

/// One span that is mapped here and may be written, too.
#[derive(Debug)]
pub struct HereMut<'w>(Here<'w>);

impl<'w> HereMut<'w> {
    /// The same span, to be written.
    ///
    /// # Safety
    /// It must be writable for `'w`.
    pub const unsafe fn new(here: Here<'w>) -> Self {
        Self(here)
    }

    /// Prefetches the line of its first byte.
    #[inline]
    pub fn prefetch(&self) {
        // SAFETY: the byte is mapped, and atomic accesses to it are allowed.
        mapping::prefetch_write(unsafe { AtomicU8::from_ptr(self.0.addr as *mut u8) });
    }

    /// Copies all of `from` to the beginning, or as much as fits.
    #[inline]
    pub fn write(&self, from: &Here<'_>) {
        let len = from.len.min(self.0.len) as usize;
        // SAFETY: both spans have `len` bytes; those of `from` may be read, these written.
        unsafe { move_bytes(self.0.addr as *mut u8, from.addr as *const u8, len) };
    }

    /// The same, but a reader that sees the last eight bytes of up to 4 KiB sees all of them (Q8); false if the spans overlap, and nothing was done.
    #[inline]
    pub fn write_last_word_late(&self, from: &Here<'_>) -> bool {
        let (to, from, len) = (self.0.addr, from.addr, from.len.min(self.0.len) as usize);
        if from.abs_diff(to) < len {
            return false;
        }
        let late = if is_late(len) { len - 8 } else { len };
        // SAFETY: as for `write`, for the two parts of the `len` bytes.
        unsafe {
            move_bytes(to as *mut u8, from as *const u8, late);
            if late < len {
                sync::write_fence();
                move_bytes((to + late) as *mut u8, (from + late) as *const u8, len - late);
            }
        }
        true
    }
}

/// Whether a WRITE of so many bytes shows the last eight of them last.
pub fn is_late(len: usize) -> bool {
    (8..=LATE).contains(&len)
}

/// Moves bytes, which may overlap.
///
/// # Safety
/// `len` bytes at `to` may be written, and as many at `from` read, by atomic accesses.
#[inline(always)]
pub unsafe fn move_bytes(to: *mut u8, from: *const u8, len: usize) {
    let aligned_alike = (to as usize ^ from as usize).is_multiple_of(8);
    // Words are copied upwards, which would overwrite bytes that are still to be read.
    let runs_into = (to as usize).wrapping_sub(from as usize) < len;
    if len <= SMALL && aligned_alike && !runs_into {
        // SAFETY: as for this function; the alignments are equal.
        unsafe { move_words(to, from, len) };
    } else {
        // SAFETY: as for this function.
        unsafe { move_opaquely(to, from, len) };
    }
}

/// Upwards, so that what overlaps is read before it is overwritten.
///
/// # Safety
/// As for [`move_bytes`]; the addresses are equal modulo 8.
#[inline(always)]
unsafe fn move_words(to: *mut u8, from: *const u8, len: usize) {
    debug_assert!((to as usize ^ from as usize).is_multiple_of(8));
    let head = to.align_offset(8).min(len);
    let words = (len - head) / 8;
    let tail = head + words * 8;
    if head > 0 {
        // SAFETY: as for this function, for the bytes before the words.
        unsafe { move_each(to, from, head) };
    }
    let mut at = head;
    while at + 32 <= tail {
        for word in 0..4 {
            // SAFETY: as below; there are four words.
            unsafe { move_word(to.add(at + 8 * word), from.add(at + 8 * word)) };
        }
        at += 32;
    }
    while at < tail {
        // SAFETY: `at + 8 <= len`, and `head` aligned both addresses to 8.
        unsafe { move_word(to.add(at), from.add(at)) };
        at += 8;
    }
    if tail < len {
        // SAFETY: as for this function, for the bytes behind the words.
        unsafe { move_each(to.add(tail), from.add(tail), len - tail) };
    }
}

/// # Safety
/// As for [`move_bytes`], for eight bytes that are aligned.
#[inline(always)]
unsafe fn move_word(to: *mut u8, from: *const u8) {
    // SAFETY: as for this function.
    let (to, from) =
        unsafe { (AtomicU64::from_ptr(to.cast()), AtomicU64::from_ptr(from.cast_mut().cast())) };
    sync::store(to, sync::load(from));
}

/// # Safety
/// As for [`move_bytes`].
unsafe fn move_each(to: *mut u8, from: *const u8, len: usize) {
    for at in 0..len {
        // SAFETY: `at < len`, and a byte has any alignment.
        let (to, from) = unsafe {
            (AtomicU8::from_ptr(to.add(at)), AtomicU8::from_ptr(from.cast_mut().add(at)))
        };
        sync::store(to, sync::load(from));
    }
}

/// # Safety
/// As for [`move_bytes`].
#[inline(never)]
unsafe fn move_opaquely(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the ranges may be used (this function's contract) and may overlap (`copy` is a memmove).
    unsafe { std::ptr::copy(from, to, len) };
}
