//! The driver of a channel of the DMA engine: one side posts descriptors, the other one polls them.

use core::mem::offset_of;
use core::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use bytemuck::{Pod, Zeroable};
use cq_core::entry::{Entry, InEntry};
use cq_core::transport::{PollCq, PollError};

use crate::engine::{Channel, DONE, FAILED, FREE, MOVED, POSTED};

/// A transfer that is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Done {
    /// What [`Sender::post`] has returned for it.
    pub transfer: u32,
    /// How many bytes have moved.
    pub bytes: u16,
    pub status: Status,
    /// The number of the channel, of four bits.
    pub channel: u8,
}

impl Entry for Done {
    /// The bits that no number of a channel has, so that a queue needs 8 bytes for each entry and no more.
    type Generation = InEntry<u8, { offset_of!(Done, channel) }, 0xf0>;
}

/// How a transfer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Status(u8);

impl Status {
    pub const SUCCESS: Self = Self(0);
    /// The engine does not reach an address.
    pub const BAD_ADDRESS: Self = Self(1);
}

/// The side that posts.
pub struct Sender {
    channel: &'static Channel,
    next: u32,
}

impl Sender {
    pub const fn new(channel: &'static Channel) -> Self {
        Self { channel, next: 0 }
    }

    /// Whether a descriptor is free.
    pub fn is_free(&self, nth: u32) -> bool {
        self.channel.descriptor(nth).state.load(Relaxed) == FREE
    }

    /// Posts a transfer between two addresses, and returns its number, which is one more than that of the transfer
    /// before. `None` if every descriptor is in use.
    pub fn post(&mut self, source: u32, target: u32) -> Option<u32> {
        let descriptor = self.channel.descriptor(self.next);
        if descriptor.state.load(Relaxed) != FREE {
            return None;
        }
        descriptor.source.store(source, Relaxed);
        descriptor.target.store(target, Relaxed);
        // Release: the engine reads the descriptor and the data after it has seen this.
        descriptor.state.store(POSTED, Release);
        let transfer = self.next;
        self.next = transfer.wrapping_add(1);
        Some(transfer)
    }
}

/// The side that polls: a transport.
pub struct Finished {
    channel: &'static Channel,
    next: u32,
}

impl Finished {
    pub const fn new(channel: &'static Channel) -> Self {
        Self { channel, next: 0 }
    }
}

impl PollCq for Finished {
    type Entry = Done;

    fn poll_into(&mut self, out: &mut [Done]) -> Result<usize, PollError> {
        let mut count = 0;
        for done in out {
            let state = &self.channel.descriptor(self.next).state;
            // Acquire: the caller reads the moved data after this load.
            let (status, bytes) = match state.load(Acquire) {
                DONE => (Status::SUCCESS, MOVED),
                FAILED => (Status::BAD_ADDRESS, 0),
                _ => break,
            };
            *done = Done { transfer: self.next, bytes, status, channel: self.channel.number };
            state.store(FREE, Relaxed);
            (count, self.next) = (count + 1, self.next.wrapping_add(1));
        }
        Ok(count)
    }
}
