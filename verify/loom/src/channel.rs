//! Where events go: a count of them, a channel to sleep on, and the sleeper.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::transport::{Arm, Block, CqKey, EventError, Events, Notify, PollError, Signal, Woken};

use crate::queue::{KEY, Modelled, expect};
use crate::threads::Monitor;

/// What the assertions about sleepers say.
pub const LOST: &str = "lost wake-up";

/// Counts events, beside the protocol: loom does not see the count. Clones are the same one.
#[derive(Clone, Default)]
pub struct EventCount(Arc<AtomicU32>);

impl EventCount {
    /// How many events there were.
    pub fn raised(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

impl Signal for EventCount {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A channel; clones are the same one.
#[derive(Clone)]
pub struct Channel(Arc<Monitor<Pending>>);

struct Pending {
    events: VecDeque<CqKey>,
    producers: u32,
}

impl Channel {
    /// For this many producers.
    pub fn new(producers: u32) -> Self {
        Self(Arc::new(Monitor::new(Pending { events: VecDeque::new(), producers })))
    }

    /// One producer will raise no more events. Whoever sleeps when the last one says so was forgotten.
    pub fn hang_up(&self) {
        self.0.update(|pending| pending.producers -= 1);
    }

    /// How many events nobody has taken.
    pub fn unread(&self) -> usize {
        self.0.wait(|pending| Some(pending.events.len()))
    }

    /// Raises an event of this queue.
    pub fn raise_for(&self, key: CqKey) {
        self.0.update(|pending| pending.events.push_back(key));
    }

    /// Sleeps until there is an event of the queue [`KEY`], and takes it.
    ///
    /// # Panics
    /// None will come any more, or it is another queue's.
    pub fn sleep(&mut self) {
        let event = loop {
            match self.take_event().unwrap() {
                Some(event) => break event,
                None => _ = self.block(None).unwrap(),
            }
        };
        assert_eq!(event, KEY);
    }
}

impl Signal for Channel {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        self.raise_for(KEY);
    }
}

impl Events for Channel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.0.wait(|pending| Some(pending.events.pop_front())))
    }
}

impl Block for Channel {
    /// Models have no clock.
    type Instant = Infallible;

    fn block(&mut self, _: Option<Infallible>) -> Result<Woken, EventError> {
        self.0.wait(|pending| {
            let is_there = !pending.events.is_empty();
            assert!(is_there || pending.producers > 0, "{LOST}: asleep, and no event will come");
            is_there.then_some(())
        });
        Ok(Woken::Event)
    }
}

/// Takes numbered entries until `pushes` have come, or the queue says that it overran; sleeps while
/// there are none. Says how many came.
///
/// # Panics
/// They come in another order, torn, or after a lost wake-up.
pub fn take_all<T: Arm<Entry: Modelled>>(
    transport: T,
    channel: &mut Channel,
    on: Notify,
    buffer: &mut [T::Entry],
    pushes: u64,
) -> u64 {
    let mut cq = CompletionQueue::new(transport);
    let mut taken = 0;
    while taken < pushes {
        match take_some(&mut cq, channel, on, buffer) {
            Ok(count) => {
                assert_ne!(count, 0, "woke with nothing");
                for entry in &buffer[..count] {
                    taken += 1;
                    expect(entry, taken);
                }
            }
            Err(WaitError::Poll(PollError::Overrun { .. } | PollError::Closed)) => break,
            Err(other) => panic!("{other:?}"),
        }
    }
    taken
}

/// Takes what there is, after sleeping for it if there is nothing. Any completion is what
/// [`CompletionQueue::wait`] waits for; for solicited ones, this is its loop.
///
/// # Errors
/// The queue or the channel failed.
pub fn take_some<T: Arm>(
    cq: &mut CompletionQueue<T>,
    channel: &mut Channel,
    on: Notify,
    buffer: &mut [T::Entry],
) -> Result<usize, WaitError> {
    if on == Notify::Next {
        return Ok(cq.wait(buffer, channel, None)?.len());
    }
    loop {
        let count = cq.poll_or_arm(buffer, on)?.len();
        if count > 0 {
            return Ok(count);
        }
        channel.sleep();
    }
}
