//! Memory for a device: pages of the system's own, which the device may read and write at any time.

#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use cq_verbs::setup::MemoryOptions;
use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::fork::Process;

const WORD: usize = size_of::<u64>();

/// Memory, zeroed, aligned to a page, unmapped when this is dropped. It is reached by atomic words only,
/// which all threads may use at once, and of which the device may change any meanwhile.
///
/// A forked child does not inherit it. Otherwise a page would be copied for the process that first writes it, and that
/// may be the parent: the device would go on with a page that nobody else has.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<AtomicU64>,
    len: usize,
    process: Process,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Memory {}
// SAFETY: `&Memory` reaches it by atomic accesses, all of one size.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `len` bytes.
    ///
    /// # Errors
    /// What the system says; `len` 0 is one.
    pub fn new(len: usize) -> Result<Self, Errno> {
        let process = Process::this()?;
        // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
        let base = unsafe {
            mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let memory = Self { base: NonNull::new(base.cast()).ok_or(Errno::NOMEM)?, len, process };
        memory.advise(Advice::LinuxDontFork)?;
        Ok(memory)
    }

    /// Maps `len` bytes, with huge pages if wanted and possible, and all present if wanted.
    ///
    /// # Errors
    /// What the system says; nothing stays mapped.
    pub fn with(len: usize, options: &MemoryOptions) -> Result<Self, Errno> {
        let memory = Self::new(len)?;
        if options.huge_pages {
            // Refused by a system without huge pages.
            let _ = memory.advise(Advice::LinuxHugepage);
        }
        if options.prefault {
            memory.prefault()?;
        }
        Ok(memory)
    }

    /// Makes all pages of new memory present and writable.
    fn prefault(&self) -> Result<(), Errno> {
        match retry_on_intr(|| self.advise(Advice::LinuxPopulateWrite)) {
            // Linux before 5.14 does not know it.
            Err(Errno::INVAL) => self.touch(),
            populated => populated?,
        }
        Ok(())
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        debug_assert!(matches!(
            advice,
            Advice::LinuxDontFork | Advice::LinuxHugepage | Advice::LinuxPopulateWrite
        ));
        // SAFETY: the mapping is ours, and none of these changes what is in it.
        unsafe { madvise(self.ptr().cast(), self.len, advice) }
    }

    /// Writes a zero to each page of new memory, which has zeros.
    fn touch(&self) {
        /// The smallest page of any system, in words.
        const PAGE: usize = 4096 / WORD;
        self.words().iter().step_by(PAGE).for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Where it starts.
    pub const fn ptr(&self) -> *mut u8 {
        self.base.as_ptr().cast()
    }

    /// How many bytes this process can reach: a forked child none.
    pub fn len(&self) -> usize {
        if self.process.is_this() { self.len } else { 0 }
    }

    /// All of it, to the end of the last word.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: pages are mapped whole, so the last word is inside; any bytes are an atomic number; the
        // mapping is aligned to a page, and lives in this process as long as `self`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len().div_ceil(WORD)) }
    }

    /// Copies bytes out, if they are all inside. What is read later is no older than they are.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Option<()> {
        let range = self.range(offset, to.len())?;
        let (head, rest) = to.split_at_mut(range.head.len());
        let (middle, tail) = rest.split_at_mut(range.middle.len() * WORD);
        for word in range.first {
            head.copy_from_slice(&load(word)[range.head.clone()]);
        }
        for (to, word) in middle.chunks_exact_mut(WORD).zip(range.middle) {
            to.copy_from_slice(&load(word));
        }
        for word in range.last {
            tail.copy_from_slice(&load(word)[..tail.len()]);
        }
        fence(Ordering::Acquire);
        Some(())
    }

    /// Copies bytes in, if they are all inside. Of a word that they fill in part the other bytes stay what
    /// they are, also where somebody writes them meanwhile.
    pub fn write(&self, offset: usize, from: &[u8]) -> Option<()> {
        let range = self.range(offset, from.len())?;
        let (head, rest) = from.split_at(range.head.len());
        let (middle, tail) = rest.split_at(range.middle.len() * WORD);
        for word in range.first {
            merge(word, range.head.start, head);
        }
        for (from, word) in middle.chunks_exact(WORD).zip(range.middle) {
            let mut bytes = [0; WORD];
            bytes.copy_from_slice(from);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        for word in range.last {
            merge(word, 0, tail);
        }
        Some(())
    }

    fn range(&self, offset: usize, len: usize) -> Option<Words<'_>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len())?;
        let start = offset % WORD;
        let head = if start == 0 { 0..0 } else { start..(start + len).min(WORD) };
        let (before, words) = (offset.div_ceil(WORD), self.words());
        let first = &words[offset / WORD..before];
        let whole = (end / WORD).max(before);
        let last = if end > whole * WORD { whole + 1 } else { whole };
        Some(Words { first, head, middle: &words[before..whole], last: &words[whole..last] })
    }
}

/// A range of bytes: those of `head` in the first word if they don't begin it, whole words, and the
/// beginning of the last if they don't fill it.
struct Words<'a> {
    first: &'a [AtomicU64],
    head: Range<usize>,
    middle: &'a [AtomicU64],
    last: &'a [AtomicU64],
}

// Relaxed, here and in storing: what pairs with the device's accesses is in libibverbs, a barrier before a
// request is handed over, and one after a completion was found.
fn load(word: &AtomicU64) -> [u8; WORD] {
    word.load(Ordering::Relaxed).to_ne_bytes()
}

fn merge(word: &AtomicU64, start: usize, from: &[u8]) {
    let merged = |old: u64| {
        let mut bytes = old.to_ne_bytes();
        bytes[start..start + from.len()].copy_from_slice(from);
        Some(u64::from_ne_bytes(bytes))
    };
    let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, merged);
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.process.is_this() {
            // Something else may be mapped there by now.
            return;
        }
        // Refused where it would leave more pieces of address space than a process may have: leaked then.
        // SAFETY: mapped by `new` with this length; borrows of it ended with `self`.
        let _ = unsafe { munmap(self.ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every range of a few words, written and read, against a slice.
    #[test]
    fn what_is_written_is_read_and_nothing_else_changes() {
        const LEN: usize = 29;
        for offset in 0..=LEN {
            for len in 0..=LEN - offset {
                let memory = Memory::new(LEN).unwrap();
                let mut model = [0xee; LEN];
                memory.write(0, &model).unwrap();
                let bytes: Vec<u8> = (1..=len as u8).collect();
                memory.write(offset, &bytes).unwrap();
                model[offset..offset + len].copy_from_slice(&bytes);
                let (mut all, mut piece) = ([0; LEN], vec![0; len]);
                memory.read(0, &mut all).unwrap();
                memory.read(offset, &mut piece).unwrap();
                assert_eq!(all, model, "{len} bytes at {offset}");
                assert_eq!(piece, bytes, "{len} bytes at {offset}");
            }
        }
    }

    #[test]
    fn what_is_not_inside_is_not_touched() {
        let memory = Memory::new(20).unwrap();
        for (offset, len) in [(0, 21), (20, 1), (21, 0), (usize::MAX, 1), (usize::MAX, 0)] {
            assert!(memory.write(offset, &vec![1; len]).is_none());
            assert!(memory.read(offset, &mut vec![0; len]).is_none());
        }
        let mut all = [1; 20];
        memory.read(0, &mut all).unwrap();
        assert_eq!(all, [0; 20]);
        assert_eq!(Memory::new(0).unwrap_err(), Errno::INVAL);
    }

    /// The page faults of this thread so far that needed no disk: `minflt` of `proc_pid_stat(5)`.
    fn page_faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
    }

    /// So few of 1,024 pages may fault: stacks and code do, too.
    const FEW: u64 = 32;

    /// How many page faults the first write to each page of memory takes.
    fn faults_of_first_use(memory: &Memory) -> u64 {
        let before = page_faults();
        (0..memory.len).step_by(4096).for_each(|page| memory.write(page, &[1]).unwrap());
        page_faults() - before
    }

    #[test]
    fn prefaulted_memory_is_zeroed_and_takes_no_page_faults() {
        const LEN: usize = (4 << 20) + 4096 + 5;
        let by_default = MemoryOptions::new();
        for options in [by_default.prefault(), by_default.huge_pages().prefault()] {
            let memory = Memory::with(LEN, &options).unwrap();
            assert!(memory.words().iter().all(|word| load(word) == [0; WORD]), "{options:?}");
            assert!(faults_of_first_use(&memory) < FEW, "{options:?}");
        }
        assert_eq!(Memory::with(0, &by_default.huge_pages()).unwrap_err(), Errno::INVAL);
    }

    #[test]
    fn without_the_system_call_pages_are_touched() {
        let memory = Memory::new((4 << 20) + 5).unwrap();
        memory.touch();
        assert!(memory.words().iter().all(|word| load(word) == [0; WORD]));
        assert!(faults_of_first_use(&memory) < FEW);
    }

    #[test]
    fn a_page_that_can_not_be_had_is_an_error_and_no_signal() {
        use rustix::fs::{MemfdFlags, memfd_create};
        let (file, len) = (memfd_create("empty", MemfdFlags::CLOEXEC).unwrap(), 2 << 12);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the system's choice touches nobody's memory.
        let base = unsafe {
            rustix::mm::mmap(null_mut(), len, access, MapFlags::SHARED, &file, 0).unwrap()
        };
        let process = Process::this().unwrap();
        let memory = Memory { base: NonNull::new(base.cast()).unwrap(), len, process };
        // Linux before 5.14 can't say it.
        if memory.advise(Advice::LinuxPopulateWrite) != Err(Errno::INVAL) {
            assert_eq!(memory.prefault(), Err(Errno::FAULT));
        }
    }

    #[test]
    fn threads_may_write_the_bytes_of_one_word() {
        let memory = Memory::new(8).unwrap();
        std::thread::scope(|scope| {
            for nth in 0..4usize {
                let memory = &memory;
                scope.spawn(move || {
                    for round in 0..=200 {
                        memory.write(nth * 2, &[round; 2]).unwrap();
                    }
                });
            }
        });
        let mut all = [0; 8];
        memory.read(0, &mut all).unwrap();
        assert_eq!(all, [200; 8]);
    }
}
