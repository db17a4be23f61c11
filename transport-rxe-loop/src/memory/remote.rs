//! Access to another process' memory by the system. One of the modules with `unsafe`.
//!
//! A process is named by its pid. By the time of a call the process may have ended and the pid be in use again, or it
//! may run another program. So each call begins with a byte of the process' [guard page](crate::shm::guard_page): if
//! that is not mapped, the call fails before it moves anything else, and one call accesses the memory of one program,
//! even if the process executes another meanwhile. There remains the case that a program has mapped an address which
//! was drawn out of 2^28.

#![allow(unsafe_code)]

use crate::protocol::lock::AttachmentId;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

use heapless::Vec;
use rustix::io::Errno;
use rustix::process::{PTracer, getpid, set_ptracer};

use crate::memory::Memory;
use crate::memory::sge::{MAX_SGE, Span, Spans, Target};
use crate::shm::guard_page::{TITLE_AT, Title, title};

/// Why bytes were not moved; some of them may have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This process' own memory is not mapped, or may not be used so.
    Here,
    /// The error of the system. FAULT if the other process' memory is not mapped; SRCH if the pid is no longer that
    /// process.
    System(Errno),
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug)]
enum Way {
    Read,
    Write,
}

/// Lets processes of this user access the memory of this one, where the system requires that.
pub fn allow() {
    // It fails where the system does not require it, which is no error.
    let _ = set_ptracer(PTracer::Any);
}

/// A process whose memory is accessed by its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its pid, which may have been reused.
    pub pid: i32,
    /// The address of its guard page.
    pub guard: u64,
}

impl Process {
    /// The process with this attachment index and pid; `None` if its guard page is not found there.
    pub fn of(memory: &Memory, attachment: AttachmentId, pid: i32) -> Option<Self> {
        Self::meet(
            pid,
            memory.shm.owner_at(attachment)?.to_word(),
            memory.shm.guard_of(attachment)?,
        )
    }

    /// The process with this pid, if it is this owner, whose guard page is said to be at an address. Any address is
    /// harmless.
    pub fn meet(pid: i32, owner: u32, guard: u64) -> Option<Self> {
        let mut found: Title = [0; 3];
        let len = size_of_val(&found);
        let at = guard.checked_add(TITLE_AT as u64)? as usize;
        let mine = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: len };
        let theirs = libc::iovec { iov_base: with_exposed_provenance_mut(at), iov_len: len };
        // SAFETY: one range each; the first is a local array that may be written, and the system checks the other.
        let moved =
            unsafe { libc::process_vm_readv(pid, &raw const mine, 1, &raw const theirs, 1, 0) };
        (moved == len as isize && found == title(owner, guard)).then_some(Self { pid, guard })
    }
}

/// Ranges for one system call. The remaining ones always follow one byte of the guard page. The capacity is one more
/// than a copy has spans, as the last span may be split.
struct Vectors {
    list: Vec<libc::iovec, { MAX_SGE + 2 }>,
    next: usize,
}

/// The bytes of the guard page that are moved.
const GUARD: usize = 1;

impl Vectors {
    /// Only the byte at this address.
    fn new(guard: *mut u8) -> Self {
        let mut list = Vec::new();
        // The capacity is more than one.
        let _ = list.push(libc::iovec { iov_base: guard.cast(), iov_len: GUARD });
        Self { list, next: 1 }
    }

    /// Adds the ranges of these spans, all of which must be far, or none.
    fn extend(&mut self, spans: impl Iterator<Item = Span>, far: bool) -> Result<(), Errno> {
        for span in spans {
            if span.is_far() != far {
                return Err(Errno::FAULT);
            }
            let iov_base = with_exposed_provenance_mut(span.addr);
            // The capacity suffices for the spans of a copy.
            let _ = self.list.push(libc::iovec { iov_base, iov_len: span.len() });
        }
        Ok(())
    }

    /// Where the remaining ranges begin.
    fn at(&self) -> Option<*mut c_void> {
        self.list.get(self.next).map(|range| range.iov_base)
    }

    /// The remaining ranges, after the guard byte.
    fn left(&self) -> &[libc::iovec] {
        &self.list[self.next - 1..]
    }

    fn advance(&mut self, mut len: usize) {
        while let Some(vector) = self.list.get_mut(self.next) {
            if len < vector.iov_len {
                vector.iov_base = vector.iov_base.wrapping_byte_add(len);
                vector.iov_len -= len;
                return;
            }
            len -= vector.iov_len;
            self.list[self.next] = self.list[self.next - 1];
            self.next += 1;
        }
    }
}

/// Copies a range of bytes, which in `from` or `to` all belong to another process, and in the other to this one. The
/// bytes from `late` on are copied last.
///
/// # Errors
/// Whose memory is not mapped; or the system fails, or the process is gone.
pub fn copy(
    process: Process,
    from: &Spans<'_>,
    to: &Target<'_>,
    range: Range<usize>,
    late: usize,
) -> Result<(), Failure> {
    let (here, there, way) = match (from.far(), to.spans().far()) {
        (Some(_), None) => (to.spans(), from, Way::Read),
        (None, Some(_)) => (from, to.spans(), Way::Write),
        _ => return Err(Errno::FAULT.into()),
    };
    // The content of the guard byte does not matter, in either direction.
    let mut byte = 0;
    let mut mine = Vectors::new(&raw mut byte);
    let mut theirs = Vectors::new(with_exposed_provenance_mut(process.guard as usize));
    mine.extend(here.range(range.clone()), false)?;
    theirs.extend(there.range(range.start..late), true)?;
    theirs.extend(there.range(late..range.end), true)?;
    // SAFETY: spans that are not far may be read (`Spans::push`), and a target's written (`Target::spans_mut`). They
    // follow the local byte.
    unsafe { transfer(process.pid, way, &mut mine, &mut theirs) }
}

/// Moves bytes between ranges of this process and of another.
///
/// # Safety
/// The ranges `here` may be read, or for a read from the other process written, as a device's memory.
unsafe fn transfer(
    pid: i32,
    way: Way,
    here: &mut Vectors,
    there: &mut Vectors,
) -> Result<(), Failure> {
    let moved = in_parts(here, there, |mine, theirs| {
        let (local, locals) = (mine.as_ptr(), mine.len() as libc::c_ulong);
        let (remote, remotes) = (theirs.as_ptr(), theirs.len() as libc::c_ulong);
        // SAFETY: the lists are borrowed, with their lengths. The ranges `here` may be used so by this function's
        // contract, and the system checks those of the other process.
        let moved = unsafe {
            match way {
                Way::Read => libc::process_vm_readv(pid, local, locals, remote, remotes, 0),
                Way::Write => libc::process_vm_writev(pid, local, locals, remote, remotes, 0),
            }
        };
        let errno = |_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
        usize::try_from(moved).map_err(errno)
    });
    match (moved, here.at()) {
        (Err(Errno::FAULT), Some(at)) if !is_usable(way, at) => Err(Failure::Here),
        (moved, _) => Ok(moved?),
    }
}

/// Whether a byte of this process can be used for a transfer. It is not changed, unless the program does so meanwhile.
#[cold]
fn is_usable(way: Way, at: *mut c_void) -> bool {
    let (this, mut byte) = (getpid().as_raw_nonzero().get(), 0_u8);
    let mine = libc::iovec { iov_base: at, iov_len: 1 };
    let aside = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: one range each, of one byte; one is a local variable. The other is the program's, where a transfer that has
    // failed was about to read, or to write; the system checks it.
    unsafe {
        let is_read =
            libc::process_vm_writev(this, &raw const mine, 1, &raw const aside, 1, 0) == 1;
        is_read
            && match way {
                Way::Write => true,
                Way::Read => {
                    libc::process_vm_readv(this, &raw const mine, 1, &raw const aside, 1, 0) == 1
                }
            }
    }
}

/// Repeats a call that returns how many bytes it moved, with the guard byte, until all are moved: the system moves at
/// most 2 GiB, and stops before memory that is not mapped.
fn in_parts(
    here: &mut Vectors,
    there: &mut Vectors,
    mut part: impl FnMut(&[libc::iovec], &[libc::iovec]) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    while here.next != here.list.len() {
        match part(here.left(), there.left()) {
            // The guard page is not mapped.
            Ok(0) | Err(Errno::FAULT) => return Err(Errno::SRCH),
            Ok(GUARD) => return Err(Errno::FAULT),
            Ok(moved) => {
                here.advance(moved - GUARD);
                there.advance(moved - GUARD);
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
