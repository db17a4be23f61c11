//! Events that a program has taken and not yet acknowledged: an object waits for them before it goes (N7).

use std::sync::{Condvar, Mutex, PoisonError};

/// The events of one object.
#[derive(Debug, Default)]
pub struct Acks {
    /// How many were taken and not acknowledged.
    open: Mutex<u32>,
    none: Condvar,
}

impl Acks {
    /// One was taken.
    pub fn take(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    /// So many were acknowledged; more than were taken do no harm (Q11).
    pub fn acknowledge(&self, count: u32) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open = open.saturating_sub(count);
        if *open == 0 {
            self.none.notify_all();
        }
    }

    /// Waits until all are acknowledged, as `ibv_destroy_cq(3)` does.
    pub fn wait(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.none.wait_while(open, |open| *open > 0));
    }
}
