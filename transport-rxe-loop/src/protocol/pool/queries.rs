//! What the words of a pool say to those who neither post nor take.

use super::slot::{STATE, TAKEN, Taken};
use super::{Position, Queue};
use crate::sync;

impl<'a> Queue<'a> {
    /// The receives that are taken. Processes that are alive take and complete more at any time.
    pub fn taken(&self) -> impl Iterator<Item = Taken> + use<'a> {
        let words = (0..).zip(self.slots).map(|(slot, word)| (slot, sync::acquire(word)));
        words.filter(|(_, word)| word & STATE == TAKEN).map(|(slot, word)| Taken {
            slot,
            word,
            reached_limit: false,
        })
    }

    /// The number of waiting receives.
    #[cfg(test)]
    pub fn len(&self) -> u64 {
        sync::load(&self.pool.owner.posted).wrapping_sub(sync::load(&self.pool.takers.taken))
    }

    /// The position of the next receive to take.
    ///
    /// # Staleness
    /// Without the lock it may be out of date.
    pub fn front(&self) -> Position {
        Position::new(sync::load(&self.pool.takers.taken))
    }

    /// Whether a sender found no receive since the last one was posted or given back.
    ///
    /// # Staleness
    /// Without the lock it may be out of date.
    pub fn is_starved(&self) -> bool {
        sync::load(&self.pool.owner.starved) != 0
    }
}
