//! Slots of a send queue: when each can be used again (Q5).
//!
//! A slot comes back when a completion that covers it is polled. Who pushes a completion records its position in the
//! completion queue; who polls counts, once a poll; and the thread that posts compares the two, when its queue seems
//! full. So a poll looks at no queue pair.
//!
//! | word of a slot | its request | written by |
//! |---|---|---|
//! | 2^64 - 1 | has no completion yet | the thread that posts |
//! | 2^64 - 2 | was carried out, and has no completion: a later one covers it | the owner of the send queue |
//! | a position | has its completion there | the owner of the send queue, as the producer of the completion queue |
//!
//! A word is written before a completion that covers its slot is published, and read after that was
//! [counted](Polled::count). Another process that corrupts the words gives the queue pair slots or takes them, as it could
//! by corrupting its requests.

use std::fmt;

use super::number::Position;
use crate::sync::{self, AtomicU64, Site};

const PENDING: u64 = u64::MAX;
const UNSIGNALED: u64 = u64::MAX - 1;

/// The words of the slots, as many as the ring has, a power of two.
#[derive(Clone, Copy)]
pub struct SendSlots<'a>(pub &'a [AtomicU64]);

impl SendSlots<'_> {
    #[inline(always)]
    fn at(&self, position: Position) -> Option<&AtomicU64> {
        self.0.get(position.get() as usize & self.0.len().wrapping_sub(1))
    }

    fn get(&self, position: Position) -> u64 {
        self.at(position).map_or(PENDING, sync::load)
    }

    #[inline(always)]
    fn set(&self, position: Position, value: u64) {
        if let Some(word) = self.at(position) {
            sync::store(word, value);
        }
    }

    /// A request is put in the slot, or its completion was not stored.
    #[inline(always)]
    pub fn pending(&self, position: Position) {
        self.set(position, PENDING);
    }

    /// The request was carried out, and has no completion.
    #[inline(always)]
    pub fn unsignaled(&self, position: Position) {
        self.set(position, UNSIGNALED);
    }

    /// Its completion will be at this position of the completion queue.
    #[inline(always)]
    pub fn completes_at(&self, position: Position, in_cq: u64) {
        self.set(position, in_cq);
    }
}

impl fmt::Debug for SendSlots<'_> {
    /// Without the slots: there may be thousands.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} send slots", self.0.len())
    }
}

/// The number of completions of a queue that were polled. In private memory.
#[derive(Debug, Default)]
pub struct Polled(AtomicU64);

impl Polled {
    /// The completions before a position were polled. For the consumer.
    #[inline(always)]
    pub fn count(&self, position: u64) {
        sync::release_at(&self.0, position, Site::CountPolled);
    }

    /// The position before which completions were polled. What was done before they were published can be seen.
    pub fn seen(&self) -> u64 {
        sync::acquire_at(&self.0, Site::SeePolled)
    }
}

/// The slots that are known to be free. For the thread that posts.
#[derive(Clone, Copy, Debug)]
pub struct FreeSlots {
    /// The slots of requests before this position are free.
    free: Position,
    /// The next request to look at: those before it, from `free` on, have no completion of their own.
    next: Position,
}

impl FreeSlots {
    /// Those of an empty queue, whose next request gets this position.
    pub const fn all(posted: Position) -> Self {
        Self { free: posted, next: posted }
    }

    /// Whether there is a slot for the request at a position, in a queue of so many.
    #[inline(always)]
    pub const fn has_one(&self, position: Position, capacity: u32) -> bool {
        position.since(self.free) < capacity as u64
    }

    /// The slots before a position are free, whatever was polled. A position behind `posted` is corrupted.
    pub fn free_up_to(&mut self, end: Position, posted: Position) {
        if end.is_after(self.free) && !end.is_after(posted) {
            self.free = end;
        }
        if self.free.is_after(self.next) {
            self.next = self.free;
        }
    }

    /// Looks which of the requests before `posted` have a completion that was polled: [`Polled::seen`], loaded before.
    /// Looks once at each slot at most, also if another process corrupted `posted`.
    pub fn look(&mut self, slots: &SendSlots<'_>, posted: Position, polled: u64) {
        for _ in slots.0 {
            if self.next == posted {
                break;
            }
            let is_free = match slots.get(self.next) {
                PENDING => break,
                UNSIGNALED => false,
                in_cq if Position::new(polled).is_after(Position::new(in_cq)) => true,
                _ => break,
            };
            self.next = self.next.next();
            if is_free {
                self.free = self.next;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
