//! Bytes of another process, moved by the system. One of the rooms where `unsafe` lives.
//!
//! A process is named by its number, which another program may have by the time of a call: the process has ended and
//! the number is in use again, or it runs another program now. So each call begins with a byte of the process'
//! [guard page](crate::fabric::guard_page). Where that is not, the call fails before anything else is moved; and one
//! call reaches the memory of one program, whatever becomes of its process meanwhile. What is left is a program that has
//! something of its own at an address which was drawn out of 2^28.

#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;

use heapless::Vec;
use rustix::io::Errno;
use rustix::process::{PTracer, set_ptracer};

use crate::fabric::guard_page::{TITLE_AT, Title, title};
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

/// A process whose memory is reached by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number, or that of another one by now.
    pub pid: i32,
    /// Where its guard page is.
    pub guard: u64,
}

impl Process {
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
    fn extend(&mut self, pieces: impl Iterator<Item = Piece>, far: bool) -> Result<(), Errno> {
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
    // What the guard says is nobody's, and what it is told means nothing.
    let mut byte = 0;
    let mut mine = Vectors::new(&raw mut byte);
    let mut theirs = Vectors::new(with_exposed_provenance_mut(process.guard as usize));
    mine.extend(here.range(range.clone()), false)?;
    theirs.extend(there.range(range.start..late), true)?;
    theirs.extend(there.range(late..range.end), true)?;
    // SAFETY: pieces that are not far may be read (`Pieces::push`), and a target's written (`Target::pieces_mut`).
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
mod tests {
    use std::hint::black_box;
    use std::os::unix::process::ExitStatusExt;

    use cq_core::setup::Access;

    use super::*;
    use crate::actor::{Actor, die_with_parent, say};
    use crate::fabric::Fabric;
    use crate::fabric::limits::Limits;
    use crate::facts::Whose;
    use crate::memory::Far;
    use crate::reach::Reach;
    use crate::sync::{self, AtomicU64};

    const FAR: Far = Far { place: 1, whose: Whose::local(0), needs: Access::empty() };

    fn words<const N: usize>(from: u64) -> [AtomicU64; N] {
        std::array::from_fn(|i| AtomicU64::new(from + i as u64))
    }

    fn values(words: &[AtomicU64]) -> std::vec::Vec<u64> {
        black_box(words).iter().map(sync::load).collect()
    }

    fn far(addresses: impl IntoIterator<Item = (usize, usize)>) -> Pieces<'static> {
        let mut pieces = Pieces::new();
        for (addr, len) in addresses {
            assert!(pieces.push_far(FAR, addr, len as u32, 1));
        }
        pieces
    }

    fn target(pieces: Pieces<'_>) -> Target<'_> {
        let mut target = Target::new();
        // SAFETY: atomics, or memory that is not touched from here.
        *unsafe { target.pieces_mut() } = pieces;
        target
    }

    /// This process, as if it were another.
    fn this() -> Process {
        let fabric = Fabric::of_tests();
        fabric.meet(fabric.place(), std::process::id() as i32).unwrap()
    }

    #[test]
    fn bytes_of_a_process_are_moved_across_pieces() {
        let (a, b) = (words::<4>(1), words::<4>(0));
        let (at, len) = (a.as_ptr() as usize, 32);
        let there = || far([(at, 3), (at + 3, 11), (at + 14, 18)]);
        let to = target(Pieces::of_words(&b, len));
        for late in [0, 3, 14, 24, 32] {
            b.iter().for_each(|word| sync::store(word, 0));
            copy(this(), &there(), &to, 0..32, late).unwrap();
            assert_eq!(values(&b), [1, 2, 3, 4]);
        }
        let from = words::<4>(7);
        copy(this(), &Pieces::of_words(&from, len), &target(there()), 8..24, 16).unwrap();
        assert_eq!(values(&a), [1, 8, 9, 4]);
    }

    #[test]
    fn memory_that_is_not_there_is_a_fault() {
        let a = words::<2>(1);
        let there = far([(a.as_ptr() as usize, 8), (64, 8)]);
        let from = words::<2>(5);
        let outcome = copy(this(), &Pieces::of_words(&from, 16), &target(there), 0..16, 16);
        assert_eq!(outcome, Err(Errno::FAULT));
        assert_eq!(values(&a), [5, 2], "what comes before is moved");
    }

    #[test]
    fn bytes_that_are_all_here_or_all_far_are_not_touched() {
        let (a, b) = (words::<1>(1), words::<1>(2));
        let (at, bt) = (a.as_ptr() as usize, b.as_ptr() as usize);
        let (from, to) = (Pieces::of_words(&a, 8), target(Pieces::of_words(&b, 8)));
        assert_eq!(copy(this(), &from, &to, 0..8, 8), Err(Errno::FAULT));
        let (from, to) = (far([(at, 8)]), target(far([(bt, 8)])));
        assert_eq!(copy(this(), &from, &to, 0..8, 8), Err(Errno::FAULT));
        assert_eq!(values(&b), [2]);
        // Some of them here and some far is what nobody asks for.
        let mut mixed = Pieces::of_words(&a, 8);
        assert!(mixed.push_far(FAR, at, 8, 1));
        let b = words::<2>(2);
        let to = target(Pieces::of_words(&b, 16));
        assert_eq!(copy(this(), &mixed, &to, 0..16, 16), Err(Errno::FAULT));
        assert_eq!(values(&b), [2, 3]);
    }

    #[test]
    fn x03_where_there_is_no_guard_page_nothing_is_moved_and_nobody_is_there() {
        let (a, b) = (words::<2>(1), words::<2>(5));
        let at = a.as_ptr() as usize;
        let gone = Process { guard: 64, ..this() };
        let to = || target(far([(at, 16)]));
        assert_eq!(copy(gone, &Pieces::of_words(&b, 16), &to(), 0..16, 16), Err(Errno::SRCH));
        let from = far([(at, 16)]);
        assert_eq!(copy(gone, &from, &Target::of_words(&b, 16), 0..16, 16), Err(Errno::SRCH));
        assert_eq!((values(&a), values(&b)), (vec![1, 2], vec![5, 6]));
    }

    #[test]
    fn x07_a_program_that_changes_between_two_parts_is_not_there_any_more() {
        for next in [Ok(0), Err(Errno::FAULT)] {
            let [mut here, mut there] =
                [1, 2].map(|at| Vectors::new(with_exposed_provenance_mut(at)));
            here.extend([Piece::far(1000, 10, 1)].into_iter(), true).unwrap();
            there.extend([Piece::far(3000, 10, 1)].into_iter(), true).unwrap();
            let mut moves = [Ok(5), next].into_iter();
            let outcome = in_parts(&mut here, &mut there, |_, _| moves.next().unwrap());
            assert_eq!(outcome, Err(Errno::SRCH));
        }
    }

    fn ranges(vectors: &[libc::iovec]) -> std::vec::Vec<(usize, usize)> {
        vectors.iter().map(|vector| (vector.iov_base as usize, vector.iov_len)).collect()
    }

    #[test]
    fn x07_what_the_system_moves_in_parts_goes_on_where_it_stopped() {
        let [mut here, mut there] = [1, 2].map(|at| Vectors::new(with_exposed_provenance_mut(at)));
        let pieces = [(1000, 10), (2000, 20)].map(|(addr, len)| Piece::far(addr, len, 1));
        here.extend(pieces.into_iter(), true).unwrap();
        there.extend([Piece::far(3000, 30, 1)].into_iter(), true).unwrap();
        let mut moves = [Ok(5), Err(Errno::INTR), Ok(12), Ok(16)].into_iter();
        let mut asked = std::vec::Vec::new();
        let outcome = in_parts(&mut here, &mut there, |mine, theirs| {
            asked.push((ranges(mine), ranges(theirs)));
            moves.next().unwrap_or(Err(Errno::IO))
        });
        assert_eq!(outcome, Ok(()));
        let both = |there| (vec![(1, 1), (1004, 6), (2000, 20)], there);
        assert_eq!(
            asked,
            [
                (vec![(1, 1), (1000, 10), (2000, 20)], vec![(2, 1), (3000, 30)]),
                both(vec![(2, 1), (3004, 26)]),
                both(vec![(2, 1), (3004, 26)]),
                (vec![(1, 1), (2005, 15)], vec![(2, 1), (3015, 15)]),
            ]
        );
    }

    /// Ends this process where it lets every other one of its user move its bytes.
    fn die_where_all_are_allowed() {
        const fn operation(code: u32, (jt, jf): (u8, u8), k: u32) -> libc::sock_filter {
            libc::sock_filter { code: code as u16, jt, jf, k }
        }
        const fn load(offset: u32) -> libc::sock_filter {
            operation(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), offset)
        }
        const fn skip_unless(value: u32, skip: u8) -> libc::sock_filter {
            operation(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, (0, skip), value)
        }
        const fn end(how: u32) -> libc::sock_filter {
            operation(libc::BPF_RET | libc::BPF_K, (0, 0), how)
        }
        const ARGUMENTS: u32 = std::mem::offset_of!(libc::seccomp_data, args) as u32;
        // Of numbers of 64 bits, the low half.
        const LOW: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };
        let mut filter = [
            load(std::mem::offset_of!(libc::seccomp_data, nr) as u32),
            skip_unless(libc::SYS_prctl as u32, 5),
            load(ARGUMENTS + LOW),
            skip_unless(libc::PR_SET_PTRACER as u32, 3),
            load(ARGUMENTS + 8 + LOW),
            skip_unless(libc::PR_SET_PTRACER_ANY as u32, 1),
            end(libc::SECCOMP_RET_KILL_PROCESS),
            end(libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: numbers, and a filter with its length, which is there meanwhile.
        unsafe {
            assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            let how = libc::SECCOMP_MODE_FILTER;
            assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, how, &raw const program), 0);
        }
    }

    #[test]
    fn x05_a_process_lets_others_of_its_user_move_its_bytes() {
        let other = Actor::start("reach::remote::tests::opens", &[]);
        assert_eq!(other.hear(), "opens");
        assert_eq!(other.ended().signal(), Some(libc::SIGSYS));
    }

    #[test]
    #[ignore = "a process of another test"]
    fn opens() {
        die_with_parent();
        die_where_all_are_allowed();
        say("opens");
        let _its = Reach::new(&Limits::default(), false);
    }
}
