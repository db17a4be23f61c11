//! Bytes of another process, moved by the system. One of the rooms where `unsafe` lives.

#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

use heapless::Vec;
use rustix::io::Errno;
use rustix::process::{PTracer, set_ptracer};

use crate::memory::{MAX_SGE, Piece, Pieces, Target};

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

/// Ranges of memory as the system wants them: one more than pieces, as the last one may come in two parts.
struct Vectors {
    list: Vec<libc::iovec, { MAX_SGE + 1 }>,
    next: usize,
}

impl Vectors {
    /// No ranges.
    const fn new() -> Self {
        Self { list: Vec::new(), next: 0 }
    }

    /// Adds the ranges of these pieces, as many as there is room for, which all are far or none.
    fn extend(&mut self, pieces: impl Iterator<Item = Piece>, far: bool) -> Result<(), Errno> {
        for piece in pieces {
            if piece.is_far() != far {
                return Err(Errno::FAULT);
            }
            let iov_base = with_exposed_provenance_mut(piece.addr);
            let vector = libc::iovec { iov_base, iov_len: piece.len() };
            if self.list.push(vector).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn left(&self) -> &[libc::iovec] {
        &self.list[self.next..]
    }

    fn advance(&mut self, mut len: usize) {
        while let Some(vector) = self.list.get_mut(self.next) {
            if len < vector.iov_len {
                vector.iov_base = vector.iov_base.wrapping_byte_add(len);
                vector.iov_len -= len;
                return;
            }
            len -= vector.iov_len;
            self.next += 1;
        }
    }
}

/// Copies some of the bytes, which all are of the process with this number in one of the two lists, and of
/// this process in the other. Those from `late` on come last.
///
/// # Errors
/// What the system says; some of the bytes may have been moved. FAULT if the memory is not there.
pub fn copy(
    pid: i32,
    from: &Pieces<'_>,
    to: &Target<'_>,
    range: Range<usize>,
    late: usize,
) -> Result<(), Errno> {
    let (here, there, way) = match (from.far(), to.pieces().far()) {
        (Some(_), None) => (to.pieces(), from, Way::Read),
        (None, Some(_)) => (from, to.pieces(), Way::Write),
        _ => return Err(Errno::FAULT),
    };
    let (mut mine, mut theirs) = (Vectors::new(), Vectors::new());
    mine.extend(here.range(range.clone()), false)?;
    theirs.extend(there.range(range.start..late), true)?;
    theirs.extend(there.range(late..range.end), true)?;
    // SAFETY: pieces that are not far may be read (`Pieces::push`), and a target's written (`Target::pieces_mut`).
    unsafe { transfer(pid, way, &mut mine, &mut theirs) }
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
    while !here.left().is_empty() && !there.left().is_empty() {
        let (mine, theirs) = (here.left(), there.left());
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
        match usize::try_from(moved) {
            // The system moves 2 GiB at most, and what comes before memory that is not there.
            Ok(0) => return Err(Errno::FAULT),
            Ok(moved) => {
                here.advance(moved);
                there.advance(moved);
            }
            Err(_) => match Errno::from_io_error(&std::io::Error::last_os_error()) {
                Some(Errno::INTR) => {}
                errno => return Err(errno.unwrap_or(Errno::IO)),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use cq_core::setup::Access;

    use super::*;
    use crate::facts::Whose;
    use crate::memory::Far;
    use crate::sync::{self, AtomicU64};

    fn words<const N: usize>(from: u64) -> [AtomicU64; N] {
        std::array::from_fn(|i| AtomicU64::new(from + i as u64))
    }

    fn values(words: &[AtomicU64]) -> std::vec::Vec<u64> {
        black_box(words).iter().map(sync::load).collect()
    }

    fn far(addresses: impl IntoIterator<Item = (usize, usize)>) -> Pieces<'static> {
        let needs = Access::empty();
        let mut pieces = Pieces::new();
        for (addr, len) in addresses {
            assert!(pieces.push_far(
                Far { place: 1, whose: Whose::local(0), needs },
                addr,
                len as u32,
                1
            ));
        }
        pieces
    }

    fn target(pieces: Pieces<'_>) -> Target<'_> {
        let mut target = Target::new();
        // SAFETY: atomics, or memory that is not touched from here.
        *unsafe { target.pieces_mut() } = pieces;
        target
    }

    fn pid() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn bytes_of_a_process_are_moved_across_pieces() {
        let (a, b) = (words::<4>(1), words::<4>(0));
        let (at, len) = (a.as_ptr() as usize, 32);
        let there = || far([(at, 3), (at + 3, 11), (at + 14, 18)]);
        let to = target(Pieces::of_words(&b, len));
        for late in [0, 3, 14, 24, 32] {
            b.iter().for_each(|word| sync::store(word, 0));
            copy(pid(), &there(), &to, 0..32, late).unwrap();
            assert_eq!(values(&b), [1, 2, 3, 4]);
        }
        let from = words::<4>(7);
        copy(pid(), &Pieces::of_words(&from, len), &target(there()), 8..24, 16).unwrap();
        assert_eq!(values(&a), [1, 8, 9, 4]);
    }

    #[test]
    fn memory_that_is_not_there_is_a_fault() {
        let a = words::<2>(1);
        let there = far([(a.as_ptr() as usize, 8), (64, 8)]);
        let from = words::<2>(5);
        let outcome = copy(pid(), &Pieces::of_words(&from, 16), &target(there), 0..16, 16);
        assert_eq!(outcome, Err(Errno::FAULT));
        assert_eq!(values(&a), [5, 2], "what comes before is moved");
    }

    #[test]
    fn bytes_that_are_all_here_or_all_far_are_not_touched() {
        let (a, b) = (words::<1>(1), words::<1>(2));
        let (at, bt) = (a.as_ptr() as usize, b.as_ptr() as usize);
        let (from, to) = (Pieces::of_words(&a, 8), target(Pieces::of_words(&b, 8)));
        assert_eq!(copy(pid(), &from, &to, 0..8, 8), Err(Errno::FAULT));
        let (from, to) = (far([(at, 8)]), target(far([(bt, 8)])));
        assert_eq!(copy(pid(), &from, &to, 0..8, 8), Err(Errno::FAULT));
        assert_eq!(values(&b), [2]);
    }
}
