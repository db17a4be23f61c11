//! Exclusive use of an object over several C calls, which no guard can span: between `ibv_wr_start` and
//! `ibv_wr_complete`, and between `ibv_start_poll` and `ibv_end_poll`.

use std::sync::{Condvar, Mutex, PoisonError};

/// Lets one in at a time.
#[derive(Debug, Default)]
pub struct Gate {
    taken: Mutex<bool>,
    free: Condvar,
}

impl Gate {
    /// Waits until nobody is in, and goes in.
    pub fn enter(&self) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken =
            self.free.wait_while(taken, |taken| *taken).unwrap_or_else(PoisonError::into_inner);
        *taken = true;
    }

    /// Goes out. Harmless where nobody is in.
    pub fn leave(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn one_is_in_at_a_time() {
        let (gate, inside) = (Gate::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        gate.enter();
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::Relaxed);
                        gate.leave();
                    }
                });
            }
        });
    }
}
