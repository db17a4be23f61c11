//! The driver of a channel of the DMA engine: one side posts descriptors, the other one polls them.

use core::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use cq_core::transport::{PollCq, PollError};
use cq_core::wc::{Wc, WcOpcode, WcStatus};

use crate::engine::{Channel, DONE, FAILED, FREE, POSTED};

/// The side that posts.
pub struct Sender {
    channel: &'static Channel,
    next: u64,
}

impl Sender {
    pub const fn new(channel: &'static Channel) -> Self {
        Self { channel, next: 0 }
    }

    /// Posts a transfer between two addresses. Its completion has the returned `wr_id`, which is one more than that of
    /// the transfer before. `None` if every descriptor is in use.
    pub fn post(&mut self, source: u32, target: u32) -> Option<u64> {
        let descriptor = self.channel.descriptor(self.next);
        if descriptor.state.load(Relaxed) != FREE {
            return None;
        }
        descriptor.source.store(source, Relaxed);
        descriptor.target.store(target, Relaxed);
        // Release: the engine reads the descriptor and the data after it has seen this.
        descriptor.state.store(POSTED, Release);
        self.next += 1;
        Some(self.next - 1)
    }
}

/// The side that polls: a transport.
pub struct Finished {
    channel: &'static Channel,
    next: u64,
}

impl Finished {
    pub const fn new(channel: &'static Channel) -> Self {
        Self { channel, next: 0 }
    }
}

impl PollCq for Finished {
    type Entry = Wc;

    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let mut count = 0;
        for wc in out {
            let state = &self.channel.descriptor(self.next).state;
            // Acquire: the caller reads the moved data after this load.
            let status = match state.load(Acquire) {
                DONE => WcStatus::SUCCESS,
                FAILED => WcStatus::LOC_PROT_ERR,
                _ => break,
            };
            *wc = Wc::new(self.next, status, 0).with_opcode(WcOpcode::RDMA_WRITE);
            state.store(FREE, Relaxed);
            (count, self.next) = (count + 1, self.next + 1);
        }
        Ok(count)
    }
}
