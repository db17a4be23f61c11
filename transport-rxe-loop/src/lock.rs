//! Who may go on: the lock that several producers of a queue take, and the turn of a queue pair, which
//! nobody waits for but to empty its queues. No poller takes either.
//!
//! # The turn
//! Work on a queue pair's queues is done by one thread at a time: whoever finds the turn free.
//!
//! | word | state | left by |
//! |---|---|---|
//! | 0 | Free | whoever [enters](Turn::enter), to Held |
//! | 1 | Held | the holder as it [leaves](Turn::leave), to Free; anybody else who enters, to Kicked |
//! | 2, and any other | Kicked | the holder as it leaves, to Held: it goes round once more |
//!
//! Each change is a read-modify-write of the one word, so a holder that finds itself kicked sees what
//! the kicker had done, and a kicker that finds the turn free does the work itself: no kick is lost.

use crate::sync::{self, AtomicU32};

/// Spins for a moment, then lets others run.
#[derive(Debug, Default)]
pub struct Backoff(u32);

impl Backoff {
    const SPINS: u32 = 100;

    /// Waits a little.
    pub fn snooze(&mut self) {
        if self.0 < Self::SPINS {
            self.0 += 1;
            std::hint::spin_loop();
        } else {
            rustix::thread::sched_yield();
        }
    }
}

/// Held for a few dozen instructions, or a short system call; never while bytes are moved.
#[derive(Debug)]
#[repr(transparent)]
pub struct Lock(AtomicU32);

impl Lock {
    /// Waits for the lock; it is given back when the guard goes.
    #[inline]
    pub fn lock(&self) -> Guard<'_> {
        if !sync::try_lock(&self.0) {
            self.wait();
        }
        Guard(&self.0)
    }

    #[cold]
    fn wait(&self) {
        let mut backoff = Backoff::default();
        while !sync::try_lock(&self.0) {
            backoff.snooze();
        }
    }
}

/// The lock is taken.
#[derive(Debug)]
pub struct Guard<'a>(&'a AtomicU32);

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        sync::unlock(self.0);
    }
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const KICKED: u32 = 2;

/// Who works on a queue pair's queues.
#[derive(Debug)]
#[repr(transparent)]
pub struct Turn(AtomicU32);

impl Turn {
    /// Takes the turn; false if another thread has it, which will then look at everything again.
    #[inline]
    #[must_use]
    pub fn enter(&self) -> bool {
        let mut seen = FREE;
        loop {
            let to = if seen == FREE { HELD } else { KICKED };
            match sync::swap_if(&self.0, seen, to) {
                Ok(()) => return seen == FREE,
                Err(now) => seen = now,
            }
        }
    }

    /// Gives the turn back; false if somebody kicked, so that it is still held and there is more to do.
    #[inline]
    #[must_use]
    pub fn leave(&self) -> bool {
        match sync::swap_if(&self.0, HELD, FREE) {
            Ok(()) => true,
            Err(kicked) => {
                // The holder alone changes Kicked to another state, so this can't fail.
                let _ = sync::swap_if(&self.0, kicked, HELD);
                false
            }
        }
    }

    /// Waits until the turn is one's own: to end what the queues hold, not to work on it. Does not kick,
    /// which would keep the holder at it.
    pub fn seize(&self) {
        let mut backoff = Backoff::default();
        while sync::swap_if(&self.0, FREE, HELD).is_err() {
            backoff.snooze();
        }
    }

    /// Gives a seized turn back: whoever kicked meanwhile wanted work done that is gone.
    pub fn abandon(&self) {
        while !self.leave() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kick_makes_the_holder_look_again() {
        let turn = Turn(AtomicU32::new(FREE));
        assert!(turn.enter());
        assert!(!turn.enter(), "the holder will look again");
        assert!(!turn.enter());
        assert!(!turn.leave(), "kicked: still held");
        assert!(!turn.enter());
        assert!(!turn.leave());
        assert!(turn.leave());
        assert!(turn.enter());
    }

    #[test]
    fn a_seized_turn_is_given_back_whoever_kicked() {
        let turn = Turn(AtomicU32::new(FREE));
        turn.seize();
        assert!(!turn.enter());
        turn.abandon();
        assert!(turn.enter());
    }

    #[test]
    fn any_number_is_a_state() {
        let turn = Turn(AtomicU32::new(0xdead));
        assert!(!turn.enter());
        assert!(!turn.leave());
        assert!(turn.leave());
    }
}
