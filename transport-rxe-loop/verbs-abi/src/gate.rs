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
