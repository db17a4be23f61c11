//! Completion queues whose polls are counted: see [`OpenOptions::count_polls`](crate::OpenOptions::count_polls).
//!
//! A poll of other queues must not pay for that, not even by a branch. So the usual poll of a counted queue looks at a
//! ring that stays empty. Then it does what any poll does that finds nothing: it reads the queue's mode, which says that
//! there is more to it, and polls the queue itself, counting.

use cq_core::queue::OnChannel;
use cq_core::queue::raw::{Layout, RawConsumer};
use cq_core::transport::{CqKey, PollCq, PollError};
use cq_core::wc::Wc;

use super::Queue;
use crate::completion::Completions;
use crate::completion::counters::PollCounters;
use crate::completion::queue::{self, ring};
use crate::conditions::no_memory;
use crate::error::CreateError;
use crate::protocol::mode::CqFlag;
use crate::shm::arena::Extent;

/// The consumer of a queue whose polls are counted.
#[derive(Debug)]
pub struct Counted {
    pub consumer: RawConsumer<'static, OnChannel>,
    pub counters: &'static PollCounters,
    /// The ring that stays empty.
    _empty: Extent,
}

/// A consumer of a ring that stays empty.
fn nothing(
    completions: &'static Completions,
    key: CqKey,
) -> Result<(RawConsumer<'static, OnChannel>, Extent), CreateError> {
    let (location, extent) = queue::allocate(completions, 1, false)?;
    let none = no_memory(Layout::SLOTS_AT);
    let empty = ring(completions, location).ok_or(none)?;
    Ok((empty.into_consumer(0, OnChannel::named(key)), extent))
}

impl Counted {
    /// Has the polls of a new queue counted. Returns the consumer for the usual poll.
    ///
    /// # Errors
    /// There is no memory.
    pub fn begin(
        consumer: RawConsumer<'static, OnChannel>,
        queue: &Queue,
        key: CqKey,
    ) -> Result<(RawConsumer<'static, OnChannel>, Box<Self>), CreateError> {
        let completions = queue.engine.completions;
        let (front, empty) = nothing(completions, key)?;
        let counters = completions.counters(queue.index);
        counters.begin();
        completions.cq(queue.index).mode.set(CqFlag::Counted, true);
        Ok((front, Box::new(Self { consumer, counters, _empty: empty })))
    }

    /// A poll of the queue itself.
    pub fn poll(&mut self, queue: &Queue, out: &mut [Wc]) -> Result<usize, PollError> {
        let fanin = &queue.engine.completions.cq(queue.index).fanin;
        let most = 1 << fanin.location().log2;
        let found = fanin.unpolled(&self.consumer).min(most);
        let polled = self.consumer.poll_into(out);
        let count = polled.unwrap_or(0);
        if count > 0 {
            queue.polled.count(self.consumer.position());
        }
        // A completion may have been published whose tail was not stored yet.
        self.counters.poll(found.max(count as u64), count == 0, self.consumer.position());
        polled
    }
}
