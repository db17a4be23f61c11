//! Completion queues that were found to have overrun, by who repaired what a dead producer left, or gave one up: their queue
//! pairs are still to fail, and who does that, [takes](Overran::take) them from here.

use std::sync::{Mutex, PoisonError};

use cq_core::transport::CqKey;

use crate::protocol::requests::Reminder;

/// Those of which this process has found it.
#[derive(Debug, Default)]
pub struct Overran {
    /// Whether there are any: all that who finds none looks at.
    any: Reminder,
    queues: Mutex<Vec<CqKey>>,
}

impl Overran {
    /// A queue has overrun, and who was first to find that may have died before it told anybody.
    pub fn report(&self, queue: CqKey) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if !queues.contains(&queue) {
            queues.push(queue);
        }
        self.any.set();
    }

    /// Whether any were reported since this was asked last.
    #[inline]
    pub fn any(&self) -> bool {
        self.any.take()
    }

    /// Takes one of them.
    #[cold]
    pub fn take(&self) -> Option<CqKey> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}
