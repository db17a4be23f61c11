//! Queue pairs that turn up while another one's turn is held, and are run when it has been given back.

use super::{Engine, remote_requests};

/// Queue pairs that there may be work for, by number: a few of this process.
#[derive(Debug, Default)]
pub struct Rescheduled {
    list: [u32; 4],
    len: usize,
}

impl Rescheduled {
    /// Adds one, by its number. Where that is another process' or one too many, it is noted.
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
