//! Mapped memory, and typed views of it at checked offsets. One of the modules with `unsafe` code.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::protocol::lock::Lock;
use crate::sync::{self, AtomicU8, AtomicU32, AtomicU64};

/// The size of a huge page where pages have 4 KiB, in bytes.
const HUGE_PAGE: usize = 2 << 20;

/// Memory from the system, zeroed, aligned to a page, unmapped when it is dropped.
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
    /// Maps `len` bytes. A forked child gets a copy, and cannot write to its parent's.
    ///
    /// # Errors
    /// The system's error; `len` is 0.
    pub fn new(len: usize) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
        let base = unsafe {
            mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len })
    }

    /// Maps the first `len` bytes of a file that is so long, shared by all processes that map it.
    ///
    /// # Errors
    /// The system's error; `len` is 0.
    pub fn of_file(file: BorrowedFd<'_>, len: usize) -> Result<Self, Errno> {
        Self::shared(file, len, null_mut())
    }

    /// The same, for a file that may have huge pages: the mapping begins at a multiple of one, if it has as many bytes.
    /// Elsewhere they are mapped as ordinary pages.
    pub fn of_region(file: BorrowedFd<'_>, len: usize) -> Result<Self, Errno> {
        Self::shared(file, len, aligned_to_huge_page(len))
    }

    /// Maps it at `hint`, or elsewhere if that is null or in use.
    fn shared(file: BorrowedFd<'_>, len: usize, hint: *mut c_void) -> Result<Self, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping touches nobody's memory: where something is mapped, the system chooses another address.
        let base = unsafe { mmap(hint, len, access, MapFlags::SHARED, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len })
    }

    /// Asks the system to gather the pages into huge ones, as far as whole ones are inside. The contents stay. Where it
    /// can't, the pages stay as they are.
    pub fn gather_huge_pages(&self) {
        /// `MADV_COLLAPSE`, since Linux 6.1: gathers now, even if nothing else allows huge pages in shared memory.
        const COLLAPSE: c_int = 25;
        if self.len < HUGE_PAGE {
            return;
        }
        for advice in [libc::MADV_HUGEPAGE, COLLAPSE] {
            // SAFETY: the mapping is ours; the contents stay, also for accesses meanwhile.
            let advised = unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, advice) };
            // A hint.
            let _ = advised;
        }
    }

    /// Makes all pages of new memory present and writable.
    ///
    /// # Errors
    /// The system has no page: ENOMEM, or EFAULT where an access would raise SIGBUS.
    pub fn prefault(&self) -> Result<(), Errno> {
        let populate = || {
            // SAFETY: the mapping is ours; the contents stay.
            unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxPopulateWrite) }
        };
        match retry_on_intr(populate) {
            // Linux before 5.14 does not know it.
            Err(Errno::INVAL) => self.touch(),
            populated => populated?,
        }
        Ok(())
    }

    /// Writes a zero to each page of new memory, which has zeros.
    fn touch(&self) {
        /// The smallest page of any system, in bytes.
        const PAGE: usize = 4096;
        let firsts = (0..self.len).step_by(PAGE).filter_map(|page| self.at::<AtomicU8>(page));
        firsts.for_each(|byte| sync::store(byte, 0));
    }

    /// Maps a private copy of the first `len` bytes of a file that is so long; a forked child has no mapping. If
    /// `addr` is not 0, the mapping lies there, at the start of a page.
    ///
    /// # Errors
    /// The call that failed, and the system's error; something else is mapped there.
    pub fn guard(
        file: BorrowedFd<'_>,
        len: usize,
        addr: usize,
    ) -> Result<Self, (&'static str, Errno)> {
        let failed = |call| move |errno| (call, errno);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let there = if addr == 0 { MapFlags::empty() } else { MapFlags::FIXED_NOREPLACE };
        let at = with_exposed_provenance_mut(addr);
        // SAFETY: a new mapping that replaces nothing: the system refuses an address that is in use, or, if it does not
        // know that flag, chooses another one.
        let base = unsafe { mmap(at, len, access, MapFlags::PRIVATE | there, file, 0) };
        let base = base.and_then(|base| NonNull::new(base.cast()).ok_or(Errno::NOMEM));
        let page = Self { base: base.map_err(failed("mmap"))?, len };
        // SAFETY: the mapping is ours, and nobody has seen it.
        unsafe { madvise(page.base.as_ptr().cast(), len, Advice::LinuxDontFork) }
            .map_err(failed("madvise"))?;
        Ok(page)
    }

    /// Frees the bytes of the mapped file, also for others that map it. They read as zeros afterwards.
    pub fn give_back(&self) {
        // SAFETY: the mapping is ours; what it holds may change at any time, as others may write it.
        let given = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxRemove) };
        // If that failed, it is freed when nobody maps the file any more.
        let _ = given;
    }

    /// The address of the mapping.
    pub fn addr(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// The length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The `len` values at `offset`; `None` if they are not aligned or not all inside. An empty slice exists at any
    /// offset.
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

    /// The address of `offset`, and the number of bytes from there on; `None` if it is outside.
    #[inline]
    pub fn from(&self, offset: usize) -> Option<(NonNull<u8>, usize)> {
        let left = self.len.checked_sub(offset)?;
        // SAFETY: `offset` is inside the mapping.
        Some((unsafe { self.base.add(offset) }, left))
    }

    /// The value at `offset`.
    #[inline]
    pub fn at<T: Shared>(&self, offset: usize) -> Option<&T> {
        self.slice(offset, 1)?.first()
    }
}

/// A free address that is a multiple of a huge page; null if `len` bytes are less than one, or there is none.
fn aligned_to_huge_page(len: usize) -> *mut c_void {
    let Some(all) = len.checked_add(HUGE_PAGE).filter(|_| len >= HUGE_PAGE) else {
        return null_mut();
    };
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
    let Ok(base) = (unsafe { mmap_anonymous(null_mut(), all, ProtFlags::empty(), flags) }) else {
        return null_mut();
    };
    // SAFETY: mapped here with this length, and nobody has seen it.
    let _ = unsafe { munmap(base, all) };
    base.map_addr(|addr| addr.next_multiple_of(HUGE_PAGE))
}

/// Prefetches the cache line of a value that will be written soon, with the right to write it.
#[inline(always)]
pub fn prefetch_write<T>(what: &T) {
    prefetch::<true, T>(what);
}

/// The same, for a value that will be read.
#[inline(always)]
pub fn prefetch_read<T>(what: &T) {
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
        // SAFETY: mapped with this length by the constructor; borrows of it ended with `self`. Registered memory is
        // deregistered before, which waits for copies in flight.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok());
    }
}

/// A type that may lie in memory that other processes write at any time.
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
// SAFETY: such values one after the other.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {}

#[cfg(test)]
mod tests;
