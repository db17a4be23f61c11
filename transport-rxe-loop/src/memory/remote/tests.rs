use std::ptr::null_mut;
use std::sync::LazyLock;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

use super::*;
use crate::inside::fixture::{values, words};
use crate::inside::prelude::*;

const PAGE: usize = 4096;
const FAR: Far =
    Far { attachment: AttachmentId::new(1), whose: KeyUser::local(0), needs: Access::empty() };

fn far(addresses: impl IntoIterator<Item = (usize, usize)>) -> Spans<'static> {
    let mut spans = Spans::new();
    for (addr, len) in addresses {
        assert!(spans.push_far(FAR, addr, len as u32, Key::new(1)));
    }
    spans
}

fn target(spans: Spans<'_>) -> Target<'_> {
    let mut target = Target::new();
    // SAFETY: atomics, or memory that is not touched from here.
    *unsafe { target.spans_mut() } = spans;
    target
}

/// This process, as if it were another.
static THIS: LazyLock<Process> = LazyLock::new(|| {
    let Device { memory, shm, .. } = *Fixture::new().device;
    Process::of(memory, shm.attachment(), std::process::id() as i32).unwrap()
});

#[test]
fn bytes_of_a_process_are_moved_across_spans() {
    let (a, b) = (words::<4>(1), words::<4>(0));
    let (at, len) = (a.as_ptr() as usize, 32);
    let there = || far([(at, 3), (at + 3, 11), (at + 14, 18)]);
    let to = target(Spans::of_words(&b, len));
    for late in [0, 3, 14, 24, 32] {
        b.iter().for_each(|word| sync::store(word, 0));
        copy(*THIS, &there(), &to, 0..32, late).unwrap();
        assert_eq!(values(&b), [1, 2, 3, 4]);
    }
    let from = words::<4>(7);
    copy(*THIS, &Spans::of_words(&from, len), &target(there()), 8..24, 16).unwrap();
    assert_eq!(values(&a), [1, 8, 9, 4]);
}

#[test]
fn memory_that_is_not_there_is_a_fault() {
    let a = words::<2>(1);
    let there = far([(a.as_ptr() as usize, 8), (64, 8)]);
    let from = words::<2>(5);
    let outcome = copy(*THIS, &Spans::of_words(&from, 16), &target(there), 0..16, 16);
    assert_eq!(outcome, Err(Errno::FAULT.into()));
    assert_eq!(values(&a), [5, 2], "what comes before is moved");
}

#[test]
fn whose_memory_is_not_there_is_told() {
    // A page of this process that it may only read, and none behind it.
    // SAFETY: new memory, where the system likes; what is protected is that alone.
    let page = unsafe {
        let page =
            mmap_anonymous(null_mut(), 2 * PAGE, ProtFlags::READ, MapFlags::PRIVATE).unwrap();
        mprotect(page.wrapping_byte_add(PAGE), PAGE, MprotectFlags::empty()).unwrap();
        page as usize
    };
    let span = |at, len: usize| {
        let mut spans = Spans::new();
        // SAFETY: only the system accesses it, which may fail.
        unsafe { spans.push(at, len as u32) };
        spans
    };
    let (a, len) = (words::<4>(1), 32);
    let (here, there) = (|| Spans::of_words(&a, len), || far([(a.as_ptr() as usize, len)]));
    let outcome = |from: &Spans<'_>, to: Spans<'_>| copy(*THIS, from, &target(to), 0..len, len);
    let gone = page + PAGE;
    // Of its own, what is to be read, or written, or is there in part.
    assert_eq!(outcome(&span(page, len), there()), Ok(()));
    a.iter().zip(1..).for_each(|(word, value)| sync::store(word, value));
    for own in [gone, gone - 8] {
        assert_eq!(outcome(&span(own, len), there()), Err(Failure::Here));
    }
    for own in [page, gone, gone - 8] {
        assert_eq!(outcome(&there(), span(own, len)), Err(Failure::Here));
    }
    // Of the other process.
    a.iter().zip(1..).for_each(|(word, value)| sync::store(word, value));
    let fault = Err(Errno::FAULT.into());
    for other in [page, gone] {
        assert_eq!(outcome(&here(), far([(other, len)])), fault);
    }
    assert_eq!(outcome(&far([(gone, len)]), here()), fault);
    assert_eq!(values(&a), [1, 2, 3, 4]);
}

#[test]
fn bytes_that_are_all_here_or_all_far_are_not_touched() {
    let (a, b) = (words::<1>(1), words::<1>(2));
    let (at, bt) = (a.as_ptr() as usize, b.as_ptr() as usize);
    let (from, to) = (Spans::of_words(&a, 8), target(Spans::of_words(&b, 8)));
    assert_eq!(copy(*THIS, &from, &to, 0..8, 8), Err(Errno::FAULT.into()));
    let (from, to) = (far([(at, 8)]), target(far([(bt, 8)])));
    assert_eq!(copy(*THIS, &from, &to, 0..8, 8), Err(Errno::FAULT.into()));
    assert_eq!(values(&b), [2]);
    // Some of them here and some far is what nobody asks for.
    let mut mixed = Spans::of_words(&a, 8);
    assert!(mixed.push_far(FAR, at, 8, Key::new(1)));
    let b = words::<2>(2);
    let to = target(Spans::of_words(&b, 16));
    assert_eq!(copy(*THIS, &mixed, &to, 0..16, 16), Err(Errno::FAULT.into()));
    assert_eq!(values(&b), [2, 3]);
}

#[test]
fn x03_where_there_is_no_guard_page_nothing_is_moved_and_nobody_is_there() {
    let (a, b) = (words::<2>(1), words::<2>(5));
    let at = a.as_ptr() as usize;
    let gone = Process { guard: 64, ..*THIS };
    let to = || target(far([(at, 16)]));
    assert_eq!(copy(gone, &Spans::of_words(&b, 16), &to(), 0..16, 16), Err(Errno::SRCH.into()));
    let from = far([(at, 16)]);
    assert_eq!(copy(gone, &from, &Target::of_words(&b, 16), 0..16, 16), Err(Errno::SRCH.into()));
    assert_eq!((values(&a), values(&b)), (vec![1, 2], vec![5, 6]));
}

#[test]
fn x07_a_program_that_changes_between_two_parts_is_not_there_any_more() {
    for next in [Ok(0), Err(Errno::FAULT)] {
        let [mut here, mut there] = [1, 2].map(|at| Vectors::new(with_exposed_provenance_mut(at)));
        here.extend([Span::far(1000, 10, Key::new(1))].into_iter(), true).unwrap();
        there.extend([Span::far(3000, 10, Key::new(1))].into_iter(), true).unwrap();
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
    let spans = [(1000, 10), (2000, 20)].map(|(addr, len)| Span::far(addr, len, Key::new(1)));
    here.extend(spans.into_iter(), true).unwrap();
    there.extend([Span::far(3000, 30, Key::new(1))].into_iter(), true).unwrap();
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
    let other = Actor::start("memory::remote::tests::opens", &[]);
    assert_eq!(other.hear(), "opens");
    assert_eq!(other.ended().signal(), Some(libc::SIGSYS));
}

#[test]
#[ignore = "a process of another test"]
fn opens() {
    die_with_parent();
    die_where_all_are_allowed();
    say("opens");
    let _its = OpenOptions::new().alone();
}
