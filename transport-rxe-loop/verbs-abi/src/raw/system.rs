//! Calls of the C library that no crate makes safe.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use transport_rxe_loop::sanitizer;

use super::arg::Argument;
use crate::errno::Errno;

/// A copy of a list, with null behind it, in memory of the C library's; `None` if there is none.
pub fn to_c<T>(list: &[*mut T]) -> Option<*mut *mut T> {
    // It finds out the size by itself when it is freed. SAFETY: any size may be asked for.
    let buffer = unsafe { libc::calloc(list.len() + 1, size_of::<*mut T>()) }.cast::<*mut T>();
    if buffer.is_null() {
        return None;
    }
    // SAFETY: it holds the list, and the null that is there already.
    unsafe { buffer.copy_from_nonoverlapping(list.as_ptr(), list.len()) };
    Some(buffer)
}

/// A list that C gives back.
pub struct Returned<T>(*mut *mut T);

impl<T> Argument<*mut *mut T> for Returned<T> {
    unsafe fn of_c(raw: *mut *mut T) -> Self {
        Self(raw)
    }
}

impl<T> Returned<T> {
    /// `ibv_free_device_list(3)`: frees it, if it is one. The devices stay.
    pub fn free(self) {
        // SAFETY: null or a list of `to_c`, which the program passes back once, as the manual page requires.
        unsafe { libc::free(self.0.cast()) };
    }
}

/// Memory of its own, of whole pages, zeroed.
pub struct Pages {
    start: usize,
    size: usize,
}

impl Pages {
    /// At least so many bytes, of which there are some.
    ///
    /// # Errors
    /// EINVAL: none. ENOMEM.
    pub fn new(size: usize) -> Result<Self, Errno> {
        let (rights, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: the system chooses where, so that it replaces nothing.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), size, rights, private) }?;
        Ok(Self { start: start.expose_provenance(), size })
    }

    /// Where it begins.
    pub fn start(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.start)
    }

    /// How many bytes were asked for.
    pub const fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this mapping, which the program uses no more, as the manual page requires.
        let _ = unsafe { munmap(self.start(), self.size) };
    }
}

/// Bytes of a page.
pub fn page_size() -> usize {
    // SAFETY: asks for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Has the system make whole pages from here on ready to be read, or written; false if one of them can't be.
pub fn populate(start: *mut c_void, len: usize, is_written: bool) -> bool {
    let advice = if is_written { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
    // SAFETY: no byte changes by this, and no mapping; where there is no memory it fails.
    unsafe { madvise(start, len, advice) }.is_ok()
}

/// Whether whole pages from here on are mapped, with any protection. `answers` has a byte for each page.
pub fn is_mapped(start: *mut c_void, len: usize, answers: &mut [u8]) -> bool {
    assert!(len.div_ceil(page_size()) <= answers.len());
    // SAFETY: the memory is not accessed; `answers` has a byte for each page.
    unsafe { libc::mincore(start, len, answers.as_mut_ptr()) == 0 }
}

unsafe extern "C-unwind" {
    /// `tee(2)`. The C library unwinds a thread out of it that is cancelled.
    fn tee(from: c_int, to: c_int, len: usize, flags: c_uint) -> isize;
}

/// Copies a byte from one FIFO to another, once there is one: 1, or 0 if there can't be one, or -1 with `errno`. The first
/// is a number, since the program may close it.
pub fn tee_byte(from: RawFd, to: BorrowedFd<'_>) -> isize {
    // SAFETY: any numbers will do, and it has no pointers.
    unsafe { tee(from, to.as_raw_fd(), 1, 0) }
}

unsafe extern "C" {
    /// `pthread_setcancelstate(3)`.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Does something during which this thread is not cancelled. The C library would do that at any `close(2)`, and unwind the
/// thread out of what has locks, or has taken an event. ThreadSanitizer does not look at it.
pub fn uncancelled<T>(work: impl FnOnce() -> T) -> T {
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    let (mut before, mut disabled) = (0, 0);
    // SAFETY: buffers for what was set. It cancels nobody by itself.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
    sanitizer::posted();
    let done = sanitizer::unseen(work);
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(before, &raw mut disabled) };
    done
}
