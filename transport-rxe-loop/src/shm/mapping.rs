//! Mapped memory, and typed views of it by checked offset. One of the rooms where `unsafe` lives.

#![allow(unsafe_code)]

use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::protocol::lock::Lock;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64};

/// Memory of the system's own, zeroed, aligned to a page, unmapped when this is dropped.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` gives out its address and views of atomics, nothing that races.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes. A forked child gets a copy, and can't disturb its parent through it.
    ///
    /// # Errors
    /// What the system says; `len` 0 is one.
    pub fn new(len: usize) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
        let base = unsafe {
            mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len })
    }

    /// Maps the first `len` bytes of a file, which it has, so that everybody who maps it sees the same.
    ///
    /// # Errors
    /// What the system says; `len` 0 is one.
    pub fn of_file(file: BorrowedFd<'_>, len: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
        let base = unsafe { mmap(null_mut(), len, access, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len })
    }

    /// Maps a copy of the first `len` bytes of a file, which it has, for this process alone: a forked child has
    /// nothing there. If `addr` is not 0, it lies there, at the start of a page.
    ///
    /// # Errors
    /// What the system says; something else lies there.
    pub fn guard(file: BorrowedFd<'_>, len: usize, addr: usize) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let there = if addr == 0 { MapFlags::empty() } else { MapFlags::FIXED_NOREPLACE };
        let at = with_exposed_provenance_mut(addr);
        // SAFETY: a new mapping, which takes nobody's place: the system refuses an address that is taken, or, where
        // it does not know that flag, chooses another one.
        let base = unsafe { mmap(at, len, access, MapFlags::PRIVATE | there, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        let page = Self { base, len };
        // SAFETY: the mapping is ours, and nobody has seen it.
        unsafe { madvise(page.base.as_ptr().cast(), len, Advice::LinuxDontFork)? };
        Ok(page)
    }

    /// Gives the bytes of the file that is mapped back to the system, whoever else maps it. They read as
    /// zeros then.
    pub fn give_back(&self) {
        // SAFETY: the mapping is ours; what it holds may change at any time, as others may write it.
        let given = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxRemove) };
        // Else it is given back when nobody maps the file any more.
        let _ = given;
    }

    /// Where it starts.
    pub fn addr(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// How many bytes it has.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The `len` things at `offset`; `None` if they are not aligned, or not all inside. Nothing is
    /// anywhere.
    #[inline]
    pub fn slice<T: Shared>(&self, offset: usize, len: usize) -> Option<&[T]> {
        if len == 0 {
            return Some(&[]);
        }
        let bytes = len.checked_mul(size_of::<T>())?;
        let inside = offset.checked_add(bytes)? <= self.len;
        if !inside || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: the range is inside the mapping, which lives as long as `self`; it is aligned, since
        // the mapping is to a page and the offset to `T`; any bytes are a `T`, all atomics (`Shared`).
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), len) })
    }

    /// Where `offset` is, and how many bytes there are from there on; `None` if it is not inside.
    #[inline]
    pub fn from(&self, offset: usize) -> Option<(NonNull<u8>, usize)> {
        let left = self.len.checked_sub(offset)?;
        // SAFETY: `offset` is inside the mapping.
        Some((unsafe { self.base.add(offset) }, left))
    }

    /// The thing at `offset`.
    #[inline]
    pub fn at<T: Shared>(&self, offset: usize) -> Option<&T> {
        self.slice(offset, 1)?.first()
    }
}

/// Has the cache line of something that will be written soon brought here meanwhile, with the right to write
/// it, from whichever core has it.
#[inline(always)]
pub fn expect_write<T>(what: &T) {
    prefetch::<true, T>(what);
}

/// The same, for something that will be read.
#[inline(always)]
pub fn expect_read<T>(what: &T) {
    prefetch::<false, T>(what);
}

#[inline(always)]
fn prefetch<const WRITE: bool, T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::from_ref(what).cast();
        // SAFETY: a hint, which reads and writes nothing.
        unsafe {
            if WRITE {
                _mm_prefetch::<_MM_HINT_ET0>(line)
            } else {
                _mm_prefetch::<_MM_HINT_T0>(line)
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; borrows of it ended with `self`. Registered memory
        // is deregistered before, which waits for copies under way.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

/// What may lie in memory that others write at any time.
///
/// # Safety
/// Any bytes are a valid value, it consists of atomics alone, its layout is fixed (`repr(C)` or
/// `repr(transparent)`), it needs no drop, and its alignment is at most a page's.
pub unsafe trait Shared: Sync {}

// SAFETY: an atomic integer, `repr(transparent)`.
unsafe impl Shared for Lock {}
// SAFETY: an atomic integer.
unsafe impl Shared for AtomicU8 {}
// SAFETY: an atomic integer.
unsafe impl Shared for AtomicU32 {}
// SAFETY: an atomic integer.
unsafe impl Shared for AtomicU64 {}

#[cfg(test)]
mod tests;
