//! Exclusive use of an object over several C calls, which no guard can span: between `ibv_wr_start` and
//! `ibv_wr_complete`, and between `ibv_start_poll` and `ibv_end_poll`.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Lets one in at a time. No system call, unless somebody has to wait.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: bool,
    /// How many wait to go in: waking nobody is a system call, too.
    waiting: u32,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody is in, and goes in.
    #[inline]
    pub fn enter(&self) {
        let mut state = self.lock();
        if state.taken {
            state.waiting += 1;
            state = self
                .free
                .wait_while(state, |state| state.taken)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.taken = true;
    }

    /// Goes out. Harmless where nobody is in.
    #[inline]
    pub fn leave(&self) {
        let mut state = self.lock();
        state.taken = false;
        if state.waiting > 0 {
            self.free.notify_one();
        }
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
