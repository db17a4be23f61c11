//! What is to be moved between this process and another, and why it may fail.

use std::ops::Range;

use super::Memory;
use super::sge::{self, Far, Spans, Target};

/// Why bytes did not get to where they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The memory is not there, or its owner does not let it be used so.
    Fault,
    /// Its owner does not answer: it is suspended, or it died.
    NoAnswer,
}

/// In which order they get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In any.
    Any,
    /// Of up to 4 KiB, the last eight come last (Q8).
    LastWordLast,
}

/// A copy, one side of which has pieces of another process' memory.
pub struct Transfer<'a> {
    pub memory: &'static Memory,
    pub far: Far,
    pub from: &'a Spans<'a>,
    pub to: &'a Target<'a>,
    pub order: Order,
}

impl Transfer<'_> {
    /// The side that has pieces of another process.
    pub fn there(&self) -> &Spans<'_> {
        if self.from.far().is_some() { self.from } else { self.to.pieces() }
    }

    pub fn is_far(&self, range: Range<usize>) -> bool {
        self.there().range(range).next().is_some_and(|piece| piece.is_far())
    }

    /// Up to where all pieces from `at` on are mapped here, or none.
    pub fn end_of_run(&self, at: usize, len: usize) -> usize {
        let is_far = self.is_far(at..len);
        let run = self.there().range(at..len).take_while(|piece| piece.is_far() == is_far);
        at + run.map(|piece| piece.len()).sum::<usize>()
    }

    /// From where on the bytes of a range come last; its end if none do.
    pub fn late(&self, range: Range<usize>, len: usize) -> usize {
        match self.order {
            Order::LastWordLast if sge::is_late(len) => (len - 8).clamp(range.start, range.end),
            _ => range.end,
        }
    }
}
