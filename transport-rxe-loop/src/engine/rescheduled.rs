//! Queue pairs that turn up while another one's turn is held, and are run when it has been given back.

use crate::engine::remote_requests;
use crate::fabric::Fabric;

/// Queue pairs that there may be work for, by number: a few of this process.
#[derive(Debug, Default)]
pub struct Kicks {
    list: [u32; 4],
    len: usize,
}

impl Kicks {
    /// Adds one, by its number. Where that is another process' or one too many, it is noted.
    pub fn add(&mut self, fabric: &'static Fabric, number: u32) {
        if self.list[..self.len].contains(&number) {
            return;
        }
        match self.list.get_mut(self.len) {
            Some(place) if fabric.is_mine(number) => {
                *place = number;
                self.len += 1;
            }
            _ => remote_requests::leave(fabric, number),
        }
    }

    /// Takes one.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        Some(self.list[self.len])
    }
}
