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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn q11_acknowledging_too_many_is_harmless() {
        let acks = Acks::default();
        acks.acknowledge(3);
        acks.take();
        acks.acknowledge(7);
        acks.wait();
    }

    #[test]
    fn n7_the_last_acknowledgement_ends_the_wait() {
        let acks = Acks::default();
        acks.take();
        acks.take();
        let (over, is_over) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                acks.wait();
                over.send(()).unwrap();
            });
            acks.acknowledge(1);
            assert!(is_over.try_recv().is_err());
            acks.acknowledge(1);
            is_over.recv_timeout(Duration::from_secs(20)).unwrap();
        });
    }
}
