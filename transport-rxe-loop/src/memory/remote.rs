//! Bytes of another process, moved by the system. One of the rooms where `unsafe` lives.
//!
//! A process is named by its number, which another program may have by the time of a call: the process has ended and
//! the number is in use again, or it runs another program now. So each call begins with a byte of the process'
//! [guard page](crate::shm::guard_page). Where that is not, the call fails before anything else is moved; and one
//! call reaches the memory of one program, whatever becomes of its process meanwhile. What is left is a program that has
//! something of its own at an address which was drawn out of 2^28.

#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

use heapless::Vec;
use rustix::io::Errno;
use rustix::process::{PTracer, set_ptracer};

use crate::memory::Memory;
use crate::memory::sge::{MAX_SGE, Span, Spans, Target};
use crate::shm::guard_page::{TITLE_AT, Title, title};

/// Whether bytes come or go.
#[derive(Clone, Copy, Debug)]
enum Way {
    Read,
    Write,
}

/// Lets processes of this user move bytes of this one, where the system asks for that.
pub fn allow() {
    // It fails where the system does not ask, which is no error.
    let _ = set_ptracer(PTracer::Any);
}

/// A process whose memory is reached by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number, or that of another one by now.
    pub pid: i32,
    /// Where its guard page is.
    pub guard: u64,
}

impl Process {
    /// The process at a place, which has this number; `None` if it is not to be found by that.
    pub fn of(memory: &Memory, place: u16, pid: i32) -> Option<Self> {
        Self::meet(pid, memory.shm.owner_at(place)?.to_word(), memory.shm.guard_of(place)?)
    }

    /// The process with this number, if it is this owner, whose guard page is said to be at an address. Any is
    /// harmless.
    pub fn meet(pid: i32, owner: u32, guard: u64) -> Option<Self> {
        let mut found: Title = [0; 3];
        let len = size_of_val(&found);
        let at = guard.checked_add(TITLE_AT as u64)? as usize;
        let mine = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: len };
        let theirs = libc::iovec { iov_base: with_exposed_provenance_mut(at), iov_len: len };
        // SAFETY: one range each, the first of numbers that may be written; the system checks the other.
        let moved =
            unsafe { libc::process_vm_readv(pid, &raw const mine, 1, &raw const theirs, 1, 0) };
        (moved == len as isize && found == title(owner, guard)).then_some(Self { pid, guard })
    }
}

/// Ranges of memory as the system wants them. Before those that are left there is always one of a byte, the guard's;
/// and there is one more than pieces, as the last one may come in two parts.
struct Vectors {
    list: Vec<libc::iovec, { MAX_SGE + 2 }>,
    next: usize,
}

/// Bytes of the guard page that are moved.
const GUARD: usize = 1;

impl Vectors {
    /// No ranges but a byte at this address.
    fn new(guard: *mut u8) -> Self {
        let mut list = Vec::new();
        // There is room for all.
        let _ = list.push(libc::iovec { iov_base: guard.cast(), iov_len: GUARD });
        Self { list, next: 1 }
    }

    /// Adds the ranges of these pieces, which all are far or none.
    fn extend(&mut self, pieces: impl Iterator<Item = Span>, far: bool) -> Result<(), Errno> {
        for piece in pieces {
            if piece.is_far() != far {
                return Err(Errno::FAULT);
            }
            let iov_base = with_exposed_provenance_mut(piece.addr);
            // There is room for the pieces of a copy.
            let _ = self.list.push(libc::iovec { iov_base, iov_len: piece.len() });
        }
        Ok(())
    }

    /// Whether all of them have been moved.
    fn are_done(&self) -> bool {
        self.next == self.list.len()
    }

    /// What is left, behind the guard.
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

/// Copies some of the bytes, which all are of this process in one of the two lists, and of another one in the other.
/// Those from `late` on come last.
///
/// # Errors
/// What the system says; some of the bytes may have been moved. FAULT if the memory is not there; SRCH if it is not that
/// process any more which has the number.
pub fn copy(
    process: Process,
    from: &Spans<'_>,
    to: &Target<'_>,
    range: Range<usize>,
    late: usize,
) -> Result<(), Errno> {
    let (here, there, way) = match (from.far(), to.pieces().far()) {
        (Some(_), None) => (to.pieces(), from, Way::Read),
        (None, Some(_)) => (from, to.pieces(), Way::Write),
        _ => return Err(Errno::FAULT),
    };
    // What the guard says is nobody's, and what it is told means nothing.
    let mut byte = 0;
    let mut mine = Vectors::new(&raw mut byte);
    let mut theirs = Vectors::new(with_exposed_provenance_mut(process.guard as usize));
    mine.extend(here.range(range.clone()), false)?;
    theirs.extend(there.range(range.start..late), true)?;
    theirs.extend(there.range(late..range.end), true)?;
    // SAFETY: pieces that are not far may be read (`Spans::push`), and a target's written (`Target::pieces_mut`).
    // Before them is the byte of this function.
    unsafe { transfer(process.pid, way, &mut mine, &mut theirs) }
}

/// Moves the bytes between ranges of this process and of another.
///
/// # Safety
/// The ranges `here` may be read, or written to if the bytes come, as a device's memory.
unsafe fn transfer(
    pid: i32,
    way: Way,
    here: &mut Vectors,
    there: &mut Vectors,
) -> Result<(), Errno> {
    in_parts(here, there, |mine, theirs| {
        let (local, locals) = (mine.as_ptr(), mine.len() as libc::c_ulong);
        let (remote, remotes) = (theirs.as_ptr(), theirs.len() as libc::c_ulong);
        // SAFETY: the lists are borrowed, with their lengths; ranges `here` may be used so, by this function's
        // contract, and the system checks those of the other process.
        let moved = unsafe {
            match way {
                Way::Read => libc::process_vm_readv(pid, local, locals, remote, remotes, 0),
                Way::Write => libc::process_vm_writev(pid, local, locals, remote, remotes, 0),
            }
        };
        let errno = |_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO);
        usize::try_from(moved).map_err(errno)
    })
}

/// Does all of it by calls that say how many bytes they moved, with the guard's: the system moves 2 GiB at most, and
/// what comes before memory that is not there.
fn in_parts(
    here: &mut Vectors,
    there: &mut Vectors,
    mut part: impl FnMut(&[libc::iovec], &[libc::iovec]) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    while !here.are_done() {
        match part(here.left(), there.left()) {
            // The guard is not there.
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
