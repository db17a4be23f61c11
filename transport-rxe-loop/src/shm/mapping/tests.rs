use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

/// Shared memory that is not reserved, of a file of `has` bytes.
fn mapped(has: usize, len: usize) -> Mapping {
    let file = memfd_create("mapping", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, has as u64).unwrap();
    Mapping::of_region(file.as_fd(), len).unwrap()
}

/// The page faults of this thread so far that needed no disk: `minflt` of `proc_pid_stat(5)`.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
}

/// How many page faults a write to each page takes. The pages must have been zero.
fn faults_of_first_use(memory: &Mapping) -> u64 {
    let words = memory.slice::<AtomicU64>(0, memory.len() / 8).unwrap();
    let before = page_faults();
    let first = words.iter().step_by(512).map(sync::load).max();
    words.iter().step_by(512).for_each(|word| sync::store(word, 1));
    let faults = page_faults() - before;
    assert_eq!(first, Some(0));
    faults
}

#[test]
fn x04_what_is_not_aligned_or_not_all_inside_is_not_there() {
    let memory = Mapping::new(4096).unwrap();
    for (offset, len, is_there) in [
        (8, 511, true),
        (8, 512, false),
        (4, 1, false),
        (4095, 1, false),
        (4096, 1, false),
        (usize::MAX, 1, false),
        (0, usize::MAX, false),
    ] {
        let found = memory.slice::<AtomicU64>(offset, len);
        assert_eq!(found.map(<[_]>::len), is_there.then_some(len), "{len} at {offset}");
    }
}

#[test]
fn pages_of_prefaulted_memory_are_present() {
    const LEN: usize = 4 << 20;
    /// Of 1,024: stacks and code have some, too.
    const FEW: u64 = 32;
    for by_the_system in [true, false] {
        let memory = mapped(LEN, LEN);
        match by_the_system {
            true => memory.prefault().unwrap(),
            false => memory.touch(),
        }
        assert!(faults_of_first_use(&memory) < FEW, "by the system: {by_the_system}");
    }
}

#[test]
fn x07_a_page_that_can_not_be_had_is_an_error_and_no_signal() {
    let memory = mapped(0, 2 << 12);
    // SAFETY: the mapping is ours.
    let known = unsafe { madvise(memory.base.as_ptr().cast(), 0, Advice::LinuxPopulateWrite) };
    // Linux before 5.14 can't say it.
    if known.is_ok() {
        assert_eq!(memory.prefault(), Err(Errno::FAULT));
    }
}

#[test]
fn regions_of_a_huge_page_and_more_begin_at_one() {
    for len in [HUGE_PAGE, HUGE_PAGE + 5, 3 * HUGE_PAGE] {
        assert!(mapped(len, len).addr().is_multiple_of(HUGE_PAGE), "{len}");
    }
    assert!(aligned_to_huge_page(HUGE_PAGE - 1).is_null());
    assert!(aligned_to_huge_page(usize::MAX).is_null(), "the system chooses, and refuses");
    assert!(aligned_to_huge_page(usize::MAX - HUGE_PAGE).is_null());
}

#[test]
fn gathering_huge_pages_changes_no_byte() {
    const LEN: usize = 2 * HUGE_PAGE + 4096 + 8;
    let memory = mapped(LEN, LEN);
    let words = memory.slice::<AtomicU64>(0, LEN / 8).unwrap();
    (0..).zip(words).for_each(|(nth, word)| sync::store(word, nth));
    memory.gather_huge_pages();
    assert!((0..).zip(words).all(|(nth, word)| sync::load(word) == nth));
}
