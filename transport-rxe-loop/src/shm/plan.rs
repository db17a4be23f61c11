//! The layout of the file: tables follow the header one after another, in the order in which they are placed.
//!
//! ```text
//! 0        header: see `header`
//! 4096     the tables of `shm` itself: see `Own`; then those of the device, as its `Format` places them
//! ...      the arena: memory that is allocated in granules
//! bytes
//! ```
//!
//! The same code measures tables before there is a file, and finds them in one, so both agree.

use super::Own;
use super::hash::{mix, mixed};
use super::mapping::{Mapping, Shared};
use super::shape::Shape;

/// The size of the [header](super::header). Tables start here.
pub const HEADER: usize = 4096;
/// The strictest alignment of a table.
const ALIGN: usize = 128;

/// The tables that a device puts into its fabric.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The names of the kinds of entries that the [shape](Shape) counts.
    pub kinds: &'static [&'static str],
    /// Places the tables.
    pub tables: fn(&Shape, &mut Plan<'_>),
}

/// A layout in progress, of tables in memory that lives for `'m`.
#[derive(Debug)]
pub struct Plan<'m> {
    /// `None` while tables are only measured.
    memory: Option<&'m Mapping>,
    end: usize,
    mixed: u64,
}

impl<'m> Plan<'m> {
    /// Begins to place tables in memory.
    pub const fn of(memory: &'m Mapping) -> Self {
        Self { memory: Some(memory), end: HEADER, mixed: mixed(&[]) }
    }

    /// Measures all tables of a fabric.
    pub fn measure(shape: &Shape, format: &Format) -> Self {
        let mut plan = Self { memory: None, end: HEADER, mixed: mixed(&[]) };
        // Measuring needs no memory that could be too small.
        let _ = Own::place(shape, &mut plan);
        (format.tables)(shape, &mut plan);
        plan
    }

    /// Places a table of `entries` entries; `None` if the memory is too small. While tables are only measured, it has
    /// no entries.
    pub fn table<T: Shared>(&mut self, entries: usize) -> Option<&'m [T]> {
        self.note(size_of::<T>());
        let at = self.end.next_multiple_of(ALIGN);
        self.end = at.saturating_add(entries.saturating_mul(size_of::<T>()));
        match self.memory {
            Some(memory) => memory.slice(at, entries),
            None => Some(&[]),
        }
    }

    /// Places a table of one entry.
    pub fn one<T: Shared>(&mut self) -> Option<&'m T> {
        self.table(1)?.first()
    }

    /// Adds a number to the layout on which builds have to agree, as on the sizes of entries.
    pub const fn note(&mut self, number: usize) {
        self.mixed = mix(self.mixed, number);
    }

    /// The size of the tables.
    pub const fn bytes(&self) -> usize {
        self.end() - HEADER
    }

    /// The offset of the arena.
    pub const fn end(&self) -> usize {
        self.end.next_multiple_of(HEADER)
    }

    /// A number that identifies the layout.
    pub const fn layout(&self) -> u64 {
        self.mixed
    }
}

#[cfg(test)]
mod tests;
