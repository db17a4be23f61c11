//! The state of a completion queue that reading its events needs: its key, the function that polls it, and the number of
//! its unacknowledged events.
//!
//! # Acknowledging
//! Destroying a queue waits until every event taken from it is acknowledged, and each acknowledgement takes a lock of the
//! queue. So the reader of the channel counts, and acknowledges full batches; the thread that destroys the queue
//! acknowledges the rest. An event that is taken after that is acknowledged and discarded at once (N7).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cq_core::transport::CqKey;

use super::polling::Polling;

/// How many events are acknowledged at a time.
const BATCH: u32 = 64;

/// The reports of a queue, by which [its context](super::context::Context) knows it.
#[derive(Debug)]
pub struct Reports {
    /// The queue's name in events.
    pub key: CqKey,
    /// How the queue is polled, which the report of an overrun changes.
    pub(super) polling: Polling,
    acks: Mutex<Acks>,
}

/// Events that were taken and not acknowledged.
#[derive(Debug, Default)]
struct Acks {
    pending: u32,
    /// The queue is being destroyed: the reader acknowledges events itself.
    closing: bool,
}

impl Reports {
    /// Those of a new queue.
    pub fn new(polling: Polling) -> Self {
        // Numbers are never used again, so a dead queue's key names no other.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let key = CqKey { index: number as u32, generation: (number >> 32) as u32 };
        Self { key, polling, acks: Mutex::default() }
    }

    /// An event of the queue was taken. Counts it, or has all that are counted acknowledged. `None` if the
    /// queue is being destroyed: the event was acknowledged, and is discarded.
    pub fn taken(&self, acknowledge: impl FnOnce(u32)) -> Option<CqKey> {
        let mut acks = self.acks();
        if acks.closing {
            drop(acks);
            acknowledge(1);
            return None;
        }
        acks.pending += 1;
        if acks.pending == BATCH {
            acks.pending = 0;
            drop(acks);
            // The queue can't go before: these are not acknowledged yet.
            acknowledge(BATCH);
        }
        Some(self.key)
    }

    /// The queue is going to be destroyed. Returns the number of events to acknowledge before.
    pub fn close(&self) -> u32 {
        let mut acks = self.acks();
        acks.closing = true;
        std::mem::take(&mut acks.pending)
    }

    fn acks(&self) -> MutexGuard<'_, Acks> {
        self.acks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports() -> Reports {
        Reports::new(Polling::nothing())
    }

    #[test]
    fn n07_events_are_acknowledged_in_batches() {
        let reports = reports();
        let mut calls = vec![];
        for _ in 0..2 * BATCH + 3 {
            assert_eq!(reports.taken(|count| calls.push(count)), Some(reports.key));
        }
        assert_eq!(calls, [BATCH; 2]);
        assert_eq!(reports.close(), 3);
    }

    #[test]
    fn n07_an_event_that_comes_late_names_nobody_and_is_acknowledged() {
        let reports = reports();
        assert!(reports.taken(|_| panic!("a batch of one")).is_some());
        assert_eq!(reports.close(), 1);
        let mut calls = vec![];
        assert_eq!(reports.taken(|count| calls.push(count)), None);
        assert_eq!(reports.taken(|count| calls.push(count)), None);
        assert_eq!(calls, [1, 1]);
    }

    #[test]
    fn n07_a_key_is_never_used_again() {
        let keys: Vec<CqKey> = (0..100).map(|_| reports().key).collect();
        assert!(keys.iter().enumerate().all(|(nth, key)| !keys[..nth].contains(key)));
    }
}
