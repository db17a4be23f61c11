//! Completion queues that were found to have overrun, while one was repaired or given up. The engine
//! [takes](Overran::take) them from here and fails their queue pairs.

use std::sync::Mutex;

use cq_core::transport::CqKey;

use crate::protocol::requests::Reminder;
use crate::sync;

/// The overrun queues that this process has found.
#[derive(Debug, Default)]
pub struct Overran {
    /// Whether there may be any, so that the usual check takes no lock.
    any: Reminder,
    queues: Mutex<Vec<CqKey>>,
}

impl Overran {
    /// Records an overrun queue. The process that overran it may have died before it failed its queue pairs.
    pub fn report(&self, queue: CqKey) {
        let mut queues = sync::lock(&self.queues);
        if !queues.contains(&queue) {
            queues.push(queue);
        }
        self.any.set();
    }

    /// Whether any were reported since the last call.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.take()
    }

    /// Takes one of them.
    #[cold]
    pub fn take(&self) -> Option<CqKey> {
        sync::lock(&self.queues).pop()
    }
}
