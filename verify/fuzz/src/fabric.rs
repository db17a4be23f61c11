//! A small fabric of this fuzzer, and a process that writes into its file.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use arbitrary::Arbitrary;
use transport_rxe_loop::Limits;
use transport_rxe_loop::fuzzing::BEFORE_LOAD;

/// Small, so that most words mean something.
pub const LIMITS: Limits = Limits::USUAL
    .queue_pairs(8)
    .completion_queues(8)
    .memory_regions(16)
    .shared_receive_queues(2)
    .channels(8)
    .processes(4)
    .bytes(1 << 20);

/// The fabric of the fuzzer with this process number.
pub fn name(fuzzer: u32) -> String {
    format!("fuzz-{fuzzer}")
}

/// Its file.
pub fn file(fabric: &str) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    PathBuf::from(format!("/dev/shm/rxe-loop.{user}.{fabric}"))
}

/// A word that is written.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Write {
    /// Of the words that are in use; or of all.
    at: u16,
    how: u8,
    value: u32,
}

/// Another process' view of a fabric.
pub struct Hostile {
    file: File,
    /// The words that were not 0.
    used: Vec<u32>,
    words: u32,
    /// Where this process, which is a victim, has mapped it.
    mapped: Range<usize>,
}

impl Hostile {
    /// Opens a fabric's file.
    pub fn open(fabric: &str) -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open(file(fabric)).ok()?;
        let mapped = mapped(&file).unwrap_or_default();
        let mut it = Self { file, used: Vec::new(), words: 0, mapped };
        it.look();
        Some(it)
    }

    /// Finds out anew which words are in use.
    pub fn look(&mut self) {
        self.words = self.file.metadata().map_or(0, |it| it.len() as u32 / 4);
        self.used.clear();
        // A new page costs more than the words in it.
        let mut bytes = [[[0; 4]; 16]; 256];
        for at in (0..self.words).step_by(16 * bytes.len()) {
            let read =
                self.file.read_at(bytes.as_flattened_mut().as_flattened_mut(), u64::from(at) * 4);
            let lines = bytes.iter().take(read.unwrap_or(0) / 64).zip((at..).step_by(16));
            for (line, at) in lines.filter(|(line, _)| **line != [[0; 4]; 16]) {
                let used = |(nth, word): (u32, &[u8; 4])| (*word != [0; 4]).then_some(at + nth);
                self.used.extend((0..).zip(line).filter_map(used));
            }
        }
    }

    /// Writes a word, unless `how` says that nothing is written. It says which: one in use, one behind it, or any; and what: a
    /// number, one near that which is there, or the content of another word.
    pub fn write(&self, Write { at, how, value }: Write) {
        if how & 0x40 == 0 {
            return;
        }
        let word = |at: u32| match self.used.len() as u32 {
            used if used != 0 && how & 0x80 == 0 => self.used[(at % used) as usize],
            _ => at.wrapping_mul(1 + self.words / 0x1_0000),
        };
        let to = word(at.into()) + u32::from(how >> 3 & 3);
        let seen = self.read(to);
        let value = match how & 7 {
            // Offsets lead to bytes: some to the last ones.
            0 if value & 1 == 0 => (self.words * 4).wrapping_sub(value & 0x3ff8),
            0 => value,
            1 => value & 7,
            2 => u32::MAX - (value & 1),
            3 => 1 << (value & 31),
            4 => seen.wrapping_add(1),
            5 => seen.wrapping_sub(1),
            6 => seen ^ 1 << (value & 31),
            _ => self.read(word(value)),
        };
        let _ = self.file.write_all_at(&value.to_ne_bytes(), self.offset(to));
    }

    fn offset(&self, word: u32) -> u64 {
        u64::from(word % self.words.max(1)) * 4
    }

    fn read(&self, word: u32) -> u32 {
        let mut bytes = [0; 4];
        let _ = self.file.read_exact_at(&mut bytes, self.offset(word));
        u32::from_ne_bytes(bytes)
    }
}

/// Where this process has mapped a file.
fn mapped(file: &File) -> Option<Range<usize>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let number = file.metadata().ok()?.ino().to_string();
    // A guard page has a private mapping of it.
    let is_it = |line: &&str| line.contains(" rw-s ") && line.contains(&format!(" {number} "));
    let line = maps.lines().find(is_it)?;
    let (first, end) = line.split_once(' ')?.0.split_once('-')?;
    let [first, end] = [first, end].map(|it| usize::from_str_radix(it, 16));
    Some(first.ok()?..end.ok()?)
}

/// What is done to a word of the fabric that the victim is about to load.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Edit {
    /// Before which of the loads.
    at: u16,
    /// 0: nothing.
    how: u8,
    value: u16,
}

impl Edit {
    /// Whether anything is done.
    pub fn is_any(&self) -> bool {
        self.how != 0
    }

    /// What a word, or the half of it that `how` says, is replaced by: a number that may be a count, a length or an offset,
    /// something near what is there, or what another word has.
    fn of(self, seen: u64, size: usize, other: u64) -> u64 {
        let (shift, bits) = match (size, self.how >> 3 & 3) {
            (8, 0) => (0, 64),
            (8, 1) => (0, 32),
            (8, _) => (32, 32),
            _ => (0, 8 * size as u32),
        };
        let mask = u64::MAX >> (64 - bits) << shift;
        let value = u64::from(self.value);
        let bit = 1 << (self.value % bits as u16);
        let at = seen >> shift;
        let part = match self.how & 7 {
            0 => at ^ bit,
            1 => at.wrapping_add(value % 16 + 1),
            2 => at.wrapping_sub(value % 16 + 1),
            3 => at.wrapping_add(value),
            4 => value % 8,
            5 => u64::MAX - value % 2,
            6 => bit,
            _ => other >> shift,
        };
        seen & !mask | part << shift & mask
    }
}

/// While it exists, edits happen within the calls of this thread. Then each word is again what it was before, unless somebody
/// has written it since.
#[must_use]
pub struct Edits(());

/// The edits that are left, the next one last, and those that were made: where, what was there, and what was written.
struct Editing {
    file: File,
    mapped: Range<usize>,
    left: Vec<(usize, Edit)>,
    made: Vec<[u64; 3]>,
    /// How often a word of the fabric was loaded, and what was loaded lately.
    loads: usize,
    seen: [u64; 16],
}

thread_local! {
    static EDITING: RefCell<Option<Editing>> = const { RefCell::new(None) };
}

impl Edits {
    /// Begins with them. So many loads are expected.
    pub fn begin(hostile: &Hostile, edits: &[Edit], loads: usize) -> Self {
        let file = hostile.file.try_clone().expect("there are descriptors");
        let mapped = hostile.mapped.clone();
        let edits = edits.iter().filter(|it| it.is_any());
        let mut left: Vec<_> =
            edits.map(|it| (usize::from(it.at) * loads / 0x1_0000, *it)).collect();
        left.sort_by_key(|&(at, _)| Reverse(at));
        let editing = Editing { file, mapped, left, made: Vec::new(), loads: 0, seen: [0; 16] };
        EDITING.set(Some(editing));
        BEFORE_LOAD.get_or_init(|| before_load);
        Self(())
    }

    /// How many words of the fabric were loaded.
    pub fn loads(&self) -> usize {
        EDITING.with_borrow(|it| it.as_ref().map_or(0, |it| it.loads))
    }
}

impl Drop for Edits {
    fn drop(&mut self) {
        let Some(editing) = EDITING.take() else { return };
        for &[at, before, after] in editing.made.iter().rev() {
            if editing.read(at) == after {
                editing.write(at, before);
            }
        }
    }
}

fn before_load(addr: usize, size: usize) {
    // A thread that ends may load, too.
    let _ = EDITING.try_with(|it| {
        it.borrow_mut().as_mut().into_iter().for_each(|it| it.before(addr, size));
    });
}

impl Editing {
    fn before(&mut self, addr: usize, size: usize) {
        if !self.mapped.contains(&addr) {
            return;
        }
        // Words are aligned, so one of eight bytes has all of a smaller one.
        let (at, shift) = (((addr & !7) - self.mapped.start) as u64, 8 * (addr & 7));
        let before = self.read(at);
        let seen = before >> shift & u64::MAX >> (64 - 8 * size);
        while let Some((_, edit)) = self.left.pop_if(|it| it.0 <= self.loads) {
            let other = self.seen[usize::from(edit.value) % self.seen.len()];
            let after = before ^ (seen ^ edit.of(seen, size, other)) << shift;
            self.write(at, after);
            self.made.push([at, before, after]);
        }
        self.seen[self.loads % self.seen.len()] = seen;
        self.loads += 1;
    }

    fn read(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        let _ = self.file.read_exact_at(&mut bytes, at);
        u64::from_ne_bytes(bytes)
    }

    fn write(&self, at: u64, value: u64) {
        let _ = self.file.write_all_at(&value.to_ne_bytes(), at);
    }
}
