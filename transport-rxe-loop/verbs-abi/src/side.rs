//! What of an object is reached without its lock: events that are not acknowledged, and exclusive use.

use rustix_futex_sync::{Condvar, Mutex};

/// Of an object of any kind.
#[derive(Debug, Default)]
pub struct Side {
    /// The completion events of a completion queue.
    pub completions: Acks,
    /// The asynchronous events that name it.
    pub reports: Acks,
    /// Whose turn it is to use its functions, of a completion queue or a queue pair.
    pub gate: Gate,
}

impl Side {
    /// The object has ended: waits until its events are acknowledged (N7). Whoever was in the middle of using its functions
    /// will never be done with it.
    pub fn end(&self) {
        self.completions.wait();
        self.reports.wait();
        self.gate.leave();
    }
}

/// Events of one object that a program has taken and not yet acknowledged: it waits for them before it goes (N7).
#[derive(Debug, Default)]
pub struct Acks {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// How many were taken and not acknowledged.
    open: u32,
    /// How many were acknowledged.
    done: u64,
    /// How many threads wait: waking nobody is a system call, too.
    waiting: u32,
}

impl Acks {
    /// One was taken.
    pub fn take(&self) {
        self.counts.lock().open += 1;
    }

    /// How many were taken, ever.
    pub fn taken(&self) -> u64 {
        let counts = self.counts.lock();
        counts.done + u64::from(counts.open)
    }

    /// So many were acknowledged; more than were taken do no harm (Q11).
    pub fn acknowledge(&self, count: u32) {
        let mut counts = self.counts.lock();
        let count = count.min(counts.open);
        counts.open -= count;
        counts.done += u64::from(count);
        if counts.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Waits until all are acknowledged, as `ibv_destroy_cq(3)` does.
    pub fn wait(&self) {
        self.wait_while(|counts| counts.open > 0);
    }

    /// Waits until as many are acknowledged as [had been taken](Self::taken) at some time.
    pub fn wait_for(&self, taken: u64) {
        self.wait_while(|counts| counts.done < taken);
    }

    fn wait_while(&self, is_early: impl Fn(&Counts) -> bool) {
        let mut counts = self.counts.lock();
        counts.waiting += 1;
        counts = self.changed.wait_while(counts, |counts| is_early(counts));
        counts.waiting -= 1;
    }
}

/// Exclusive use of an object over several C calls, which no guard can span: between `ibv_wr_start` and
/// `ibv_wr_complete`, and between `ibv_start_poll` and `ibv_end_poll`. No system call, unless somebody has to wait.
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
    /// Waits until nobody is in, and goes in.
    #[inline]
    pub fn enter(&self) {
        let mut state = self.state.lock();
        if state.taken {
            state.waiting += 1;
            state = self.free.wait_while(state, |state| state.taken);
            state.waiting -= 1;
        }
        state.taken = true;
    }

    /// Goes out. Harmless where nobody is in.
    #[inline]
    pub fn leave(&self) {
        let mut state = self.state.lock();
        state.taken = false;
        if state.waiting > 0 {
            self.free.notify_one();
        }
    }
}
