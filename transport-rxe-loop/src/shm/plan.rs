//! Where tables lie in the file: one behind the other after the header, in the order in which they are placed.
//!
//! ```text
//! 0        header: see `header`
//! 4096     what `shm` has itself: see `Own`; then the tables of the device, as its `Format` places them
//! ...      the arena: memory that is allocated in granules
//! bytes
//! ```
//!
//! The same code measures tables before there is a file, and finds them in one: so both agree.

use super::Own;
use super::hash::{mix, mixed};
use super::mapping::{Mapping, Shared};
use super::shape::Shape;

/// Bytes of the [header](super::header). Tables start here.
pub const HEADER: usize = 4096;
/// The strictest alignment of what lies in a table.
const ALIGN: usize = 128;

/// What a device puts into its fabric.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What the kinds of entries are called whose numbers the [shape](Shape) says.
    pub kinds: &'static [&'static str],
    /// Places each table.
    pub tables: fn(&Shape, &mut Plan),
}

/// Places tables.
#[derive(Debug)]
pub struct Plan {
    /// None while tables are only measured.
    memory: Option<&'static Mapping>,
    end: usize,
    mixed: u64,
}

impl Plan {
    /// Begins to place tables in memory that is as long as they need.
    pub const fn of(memory: &'static Mapping) -> Self {
        Self { memory: Some(memory), end: HEADER, mixed: mixed(&[]) }
    }

    /// Places all tables of a fabric without any memory.
    pub fn measure(shape: &Shape, format: &Format) -> Self {
        let mut plan = Self { memory: None, end: HEADER, mixed: mixed(&[]) };
        // Measuring needs no memory that could be too small.
        let _ = Own::place(shape, &mut plan);
        (format.tables)(shape, &mut plan);
        plan
    }

    /// A table of so many entries. While it is only measured it has none.
    ///
    /// `None` if the memory is too small.
    pub fn table<T: Shared>(&mut self, entries: usize) -> Option<&'static [T]> {
        self.note(size_of::<T>());
        let at = self.end.next_multiple_of(ALIGN);
        self.end = at.saturating_add(entries.saturating_mul(size_of::<T>()));
        match self.memory {
            Some(memory) => memory.slice(at, entries),
            None => Some(&[]),
        }
    }

    /// Something that there is once.
    pub fn one<T: Shared>(&mut self) -> Option<&'static T> {
        self.table(1)?.first()
    }

    /// A number that builds have to agree on, as they do on the sizes of entries.
    pub const fn note(&mut self, number: usize) {
        self.mixed = mix(self.mixed, number);
    }

    /// How many bytes the tables take after the header.
    pub const fn bytes(&self) -> usize {
        self.end() - HEADER
    }

    /// Where the arena begins.
    pub const fn end(&self) -> usize {
        self.end.next_multiple_of(HEADER)
    }

    /// Tells formats from each other.
    pub const fn layout(&self) -> u64 {
        self.mixed
    }
}

#[cfg(test)]
mod tests;
