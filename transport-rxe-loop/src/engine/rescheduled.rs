//! Queue pairs to run once the send queue that a thread owns has been given back.

use super::{Engine, remote_requests};
use crate::protocol::number::QpIndex;

/// A few queue pairs of this process, by index.
#[derive(Debug, Default)]
pub struct Rescheduled {
    list: [QpIndex; 4],
    len: usize,
}

impl Rescheduled {
    /// Adds one, by its index. For one of another process, or where the list is full, a remote request is left.
    pub fn add(&mut self, engine: &'static Engine, qp: QpIndex) {
        if self.list[..self.len].contains(&qp) {
            return;
        }
        match self.list.get_mut(self.len) {
            Some(free) if engine.is_mine(qp) => {
                *free = qp;
                self.len += 1;
            }
            _ => remote_requests::submit(engine, qp),
        }
    }

    /// Whether there are any.
    #[inline]
    pub const fn is_any(&self) -> bool {
        self.len > 0
    }

    /// Takes one.
    #[inline]
    pub fn pop(&mut self) -> Option<QpIndex> {
        self.len = self.len.checked_sub(1)?;
        Some(self.list[self.len])
    }
}
