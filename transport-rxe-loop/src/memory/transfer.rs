//! A copy between this process and another, and why it may fail.

use std::ops::Range;

use super::sge::{Far, Spans, Target};
use super::{Memory, bytes};

/// Why a copy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The memory of the other process is not mapped, or its owner refuses the access.
    Fault,
    /// The memory of this process is not mapped.
    Own,
    /// Its owner does not answer: it is suspended or dead.
    NoAnswer,
}

/// The order in which bytes become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Any order.
    Any,
    /// Of up to 4 KiB, the last eight bytes come last (Q8).
    LastWordLast,
    /// Of up to 4 KiB, the last eight bytes come first, and the others after a moment, where both sides are mapped
    /// here.
    LastWordFirst,
}

/// A copy, one side of which has spans of another process' memory.
pub struct Transfer<'a> {
    pub memory: &'static Memory,
    pub far: Far,
    pub from: &'a Spans<'a>,
    pub to: &'a Target<'a>,
    pub order: Order,
}

impl Transfer<'_> {
    /// The side that has spans of another process.
    pub fn there(&self) -> &Spans<'_> {
        if self.from.far().is_some() { self.from } else { self.to.spans() }
    }

    pub fn is_far(&self, range: Range<usize>) -> bool {
        self.there().range(range).next().is_some_and(|span| span.is_far())
    }

    /// The end of the run from `at` on whose spans all are mapped here, or all are not.
    pub fn end_of_run(&self, at: usize, len: usize) -> usize {
        let is_far = self.is_far(at..len);
        let run = self.there().range(at..len).take_while(|span| span.is_far() == is_far);
        at + run.map(|span| span.len()).sum::<usize>()
    }

    /// Where the bytes of a range begin that come last; the end of the range if there are none.
    pub fn late(&self, range: Range<usize>, len: usize) -> usize {
        match self.order {
            Order::LastWordLast if bytes::is_late(len) => (len - 8).clamp(range.start, range.end),
            _ => range.end,
        }
    }
}
