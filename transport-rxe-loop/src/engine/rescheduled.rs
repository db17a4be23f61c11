//! Queue pairs to run once the send queue that a thread owns has been given back.

use super::{Engine, remote_requests};

/// A few queue pairs of this process, by number.
#[derive(Debug, Default)]
pub struct Rescheduled {
    list: [u32; 4],
    len: usize,
}

impl Rescheduled {
    /// Adds one, by its number. For one of another process, or where the list is full, a remote request is left.
    pub fn add(&mut self, engine: &'static Engine, number: u32) {
        if self.list[..self.len].contains(&number) {
            return;
        }
        match self.list.get_mut(self.len) {
            Some(place) if engine.is_mine(number) => {
                *place = number;
                self.len += 1;
            }
            _ => remote_requests::leave(engine, number),
        }
    }

    /// Takes one.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        Some(self.list[self.len])
    }
}
