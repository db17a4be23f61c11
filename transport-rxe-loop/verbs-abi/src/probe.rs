//! Whether memory that a program registers is there. The device trusts who registers, and a program that is
//! wrong is to hear EFAULT and not to crash when something arrives.
//!
//! `MADV_POPULATE_WRITE` of `madvise(2)`, or `_READ` where the device is to read only, answers for a range of any
//! size in one call: the system makes each page ready as the first access to it would, and changes no byte,
//! whatever other threads write meanwhile. That finds holes, guards, memory without the right to write, and mappings
//! that go past the end of their file. It costs what pinning does, which registering for hardware is: for a page
//! that was used before, about a quarter of a microsecond.
//!
//! The other ways say less, or cost more. `mincore(2)` knows holes, but no rights; `process_vm_readv(2)` knows
//! the right to read, page by page; nothing that writes can be used; and `/proc/self/maps` is to be read whole,
//! however little is registered. Linux before 5.14, and sandboxes that refuse the advice, are left with
//! `mincore`.

use std::ffi::c_void;
use std::sync::LazyLock;

use cq_verbs::setup::Access;

use crate::errno::Errno;
use crate::raw::system::{self, page_size, populate};

/// Pages that `mincore` is asked about at once: a byte for each.
const AT_ONCE: usize = 4096;

/// Whether `len` bytes at `addr` are memory that may be used with these rights.
///
/// # Errors
/// EFAULT: they are not.
pub fn check(addr: *mut c_void, len: usize, access: Access) -> Result<(), Errno> {
    let before = addr.addr() % page_size();
    let len = len.checked_add(before).ok_or(Errno::FAULT)?;
    let start = addr.wrapping_byte_sub(before);
    let is_there = match *CAN_POPULATE {
        true => populate(start, len, access.contains(Access::LOCAL_WRITE)),
        false => is_mapped(start, len),
    };
    if is_there { Ok(()) } else { Err(Errno::FAULT) }
}

/// Whether the system knows the advice and lets us give it: asked of memory that is there for certain.
static CAN_POPULATE: LazyLock<bool> = LazyLock::new(|| {
    let here = 0_u8;
    let addr = (&raw const here).cast_mut().cast::<c_void>();
    populate(addr.wrapping_byte_sub(addr.addr() % page_size()), 1, false)
});

/// Asks that, if nobody has: who is forked in the middle of asking waits for ever.
pub fn prepare() {
    LazyLock::force(&CAN_POPULATE);
}

/// Whether whole pages from here on are mapped, whatever may be done with them.
fn is_mapped(start: *mut c_void, len: usize) -> bool {
    let mut answers = [0; AT_ONCE];
    let step = AT_ONCE * page_size();
    (0..len).step_by(step).all(|at| {
        let addr = start.wrapping_byte_add(at);
        system::is_mapped(addr, step.min(len - at), &mut answers)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

    use super::*;
    use crate::test::*;

    const PAGES: usize = 4;
    const READ: Access = Access::empty();
    const WRITE: Access = Access::LOCAL_WRITE;
    const BOTH: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Some pages, for ever, without the third once `remove` has seen it.
    fn pages(remove: impl FnOnce(*mut c_void)) -> *mut c_void {
        let len = PAGES * page_size();
        // SAFETY: new memory, where the system likes.
        let pages =
            unsafe { mmap_anonymous(ptr::null_mut(), len, BOTH, MapFlags::PRIVATE).unwrap() };
        remove(pages.wrapping_byte_add(2 * page_size()));
        pages
    }

    fn protect(page: *mut c_void, flags: MprotectFlags) {
        // SAFETY: nobody uses it.
        unsafe { mprotect(page, page_size(), flags).unwrap() };
    }

    #[test]
    fn memory_that_is_there_is_found_and_left_as_it_is() {
        let pages = pages(|_| ());
        // SAFETY: memory of this test's.
        unsafe { pages.cast::<u8>().add(100).write(42) };
        for (at, len) in [(0, PAGES * page_size()), (1, 1), (page_size() - 1, 2)] {
            assert_eq!(check(pages.wrapping_byte_add(at), len, WRITE), Ok(()));
            assert_eq!(check(pages.wrapping_byte_add(at), len, READ), Ok(()));
        }
        // SAFETY: as above.
        assert_eq!(unsafe { pages.cast::<u8>().add(100).read() }, 42);
    }

    #[test]
    fn what_is_not_there_or_can_not_be_used_is_found() {
        let fault = Err(Errno::FAULT);
        // SAFETY: nobody uses it.
        let hole = pages(|third| unsafe { munmap(third, page_size()).unwrap() });
        let file = File::from(memfd_create("probe", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, 2 * page_size() as u64).unwrap();
        let (len, shared) = (PAGES * page_size(), MapFlags::SHARED);
        // SAFETY: new memory, where the system likes; nobody reads past the file's end.
        let short = unsafe { mmap(ptr::null_mut(), len, BOTH, shared, &file, 0).unwrap() };
        let guard = pages(|third| protect(third, MprotectFlags::empty()));
        let constant = pages(|third| protect(third, MprotectFlags::READ));
        for (pages, read, needs_advice) in [
            (hole, fault, false),
            (short, fault, true),
            (guard, fault, true),
            (constant, Ok(()), true),
        ] {
            if needs_advice && !*CAN_POPULATE {
                continue;
            }
            let before = 2 * page_size();
            assert_eq!([check(pages, len, READ), check(pages, len, WRITE)], [read, fault]);
            assert_eq!([READ, WRITE].map(|access| check(pages, before, access)), [Ok(()); 2]);
            assert_eq!((is_mapped(pages, len), is_mapped(pages, before)), (needs_advice, true));
        }
        let last = ptr::without_provenance_mut(usize::MAX);
        assert_eq!([check(ptr::null_mut(), 1, READ), check(last, usize::MAX, READ)], [fault; 2]);
    }
}
