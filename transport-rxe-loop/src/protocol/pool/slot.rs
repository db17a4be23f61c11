//! The word of a slot of a pool, and a receive that was taken.
//!
//! | bits | what |
//! |---|---|
//! | 0–7 | the state: Free, Posted, Taken or Left |
//! | 8–23 | in Taken, the attachment that took it |
//! | 24–47 | in Taken, the number of the queue pair that it was taken for |
//! | 48–63 | the generation, which the tag of its completion bears |

use super::Queue;
use crate::protocol::lock::AttachmentId;
use crate::protocol::number::QpNumber;
use crate::protocol::tag;
use crate::sync;

pub const STATE: u64 = 0xff;
pub const FREE: u64 = 0;
pub const POSTED: u64 = 1;
pub const TAKEN: u64 = 2;
pub const LEFT: u64 = 3;
pub const ATTACHMENT_AT: u32 = 8;
pub const TARGET_AT: u32 = 24;
pub const TARGET: u32 = (1 << 24) - 1;
pub const GENERATION_AT: u32 = 48;

pub const fn in_generation(generation: u16, state: u64) -> u64 {
    (generation as u64) << GENERATION_AT | state
}

pub const fn generation(word: u64) -> u16 {
    (word >> GENERATION_AT) as u16
}

/// A receive that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its slot.
    pub slot: u32,
    pub(super) word: u64,
    /// Whether taking it reached the limit: the process that took it reports this after releasing the lock, and then
    /// [records](super::Pool::reported) that it has.
    pub reached_limit: bool,
}

impl Taken {
    /// The attachment that took it.
    pub const fn by(&self) -> AttachmentId {
        AttachmentId::new((self.word >> ATTACHMENT_AT) as u16)
    }

    /// The number of the queue pair that it was taken for.
    pub const fn target(&self) -> QpNumber {
        QpNumber::new((self.word >> TARGET_AT) as u32 & TARGET)
    }

    /// The tag of its completion.
    pub const fn tag(&self) -> u32 {
        tag::of_pool(self.slot, generation(self.word))
    }
}

impl Queue<'_> {
    /// The number of slots that are not free.
    ///
    /// # Staleness
    /// Completions free slots at any time.
    pub fn used(&self) -> u32 {
        self.slots.iter().map(|slot| u32::from(sync::load(slot) & STATE != FREE)).sum()
    }
}
