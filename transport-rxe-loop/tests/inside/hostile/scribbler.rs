//! A process that writes all over a fabric's file. It is not attached: it maps the file.

use std::fs::OpenOptions;
use std::ops::Range;

use super::{LIMITS, ROUND, SEED, fabric, number};
use crate::inside::prelude::*;
use crate::lifecycle::device::FORMAT;
use crate::shm::mapping::Mapping;
use crate::shm::name::FabricPath;
use crate::shm::plan::Plan;

/// A corrupted number: any, a small one, the highest, or one close to `seen`.
fn number_near(chance: &mut Chance, seen: u32) -> u32 {
    match chance.below(6) {
        0 => chance.next() as u32,
        1 => chance.below(4) as u32,
        2 => u32::MAX - chance.below(2) as u32,
        3 => 1 << chance.below(32),
        4 => seen.wrapping_add(1),
        _ => seen.wrapping_sub(1),
    }
}

/// The indices of words that were not 0, as found some time ago.
struct Used {
    /// In the header and the tables.
    tables: Vec<usize>,
    /// In the rings after them.
    rings: Vec<usize>,
}

impl Used {
    fn of(words: &[AtomicU32]) -> Self {
        let end = Plan::measure(&LIMITS.shape(), &FORMAT).end() / 4;
        let used =
            |range: Range<usize>| range.filter(|&index| sync::load(&words[index]) != 0).collect();
        Self { tables: used(0..end), rings: used(end..words.len()) }
    }

    fn pick(&self, chance: &mut Chance, words: usize) -> usize {
        let part = if chance.one_in(4) { &self.rings } else { &self.tables };
        if part.is_empty() || chance.one_in(16) {
            return chance.below(words);
        }
        // A neighbouring word may be 0 now, and not later.
        (part[chance.below(part.len())] + chance.below(4)) % words
    }
}

fn scribble(words: &[AtomicU32], used: &Used, chance: &mut Chance) {
    let to = used.pick(chance, words.len());
    match chance.below(8) {
        // Copies words of another part.
        0 => {
            let from = used.pick(chance, words.len());
            let most = 1 + chance.below(128);
            for (to, from) in words[to..].iter().zip(&words[from..]).take(most) {
                sync::store(to, sync::load(from));
            }
        }
        // Changes a word for a moment.
        1..=4 => {
            let seen = sync::load(&words[to]);
            sync::store(&words[to], number_near(chance, seen));
            (0..chance.below(200)).for_each(|_| std::hint::spin_loop());
            sync::store(&words[to], seen);
        }
        _ => sync::store(&words[to], number_near(chance, sync::load(&words[to]))),
    }
}

#[test]
#[ignore = "a process of another test"]
fn scribbles() {
    die_with_parent();
    let mut chance = Chance::new(number(SEED, 0));
    let file = FabricPath::new(&fabric().parse().unwrap()).file();
    let mut opened = None;
    until("there is a fabric", || {
        opened = OpenOptions::new().read(true).write(true).open(&file).ok();
        opened.is_some()
    });
    let file = opened.unwrap();
    let memory = Mapping::of_file(file.as_fd(), file.metadata().unwrap().len() as usize).unwrap();
    let words = memory.slice::<AtomicU32>(0, memory.len() / 4).unwrap();
    let end = Instant::now() + ROUND;
    while Instant::now() < end {
        let used = Used::of(words);
        for _ in 0..chance.below(40_000) {
            scribble(words, &used, &mut chance);
        }
    }
}
