//! Waiting for a [lock](crate::protocol::lock), which any process may hold, and be killed meanwhile. No poller takes one.

use std::time::{Duration, Instant};

use crate::error::Stuck;
use crate::protocol::lock::{Lock, Owner};

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

/// The lock is taken.
#[derive(Debug)]
pub struct Guard<'a>(&'a Lock);

impl<'a> Guard<'a> {
    /// Waits for a lock. From a holder that died it is taken over, and what that one left undone is
    /// `repair`ed before anything else.
    ///
    /// # Errors
    /// Somebody who lives holds it, and does not give it back.
    #[cold]
    pub fn take(
        lock: &'a Lock,
        me: Owner,
        is_dead: impl Fn(Owner) -> bool,
        repair: impl FnOnce(),
    ) -> Result<Self, Stuck> {
        let mut patience = Patience::default();
        while !lock.try_enter(me) {
            if !patience.is_over_for_now() {
                continue;
            }
            if let Some(dead) = lock.holder().filter(|&holder| is_dead(holder)) {
                if lock.inherit(dead, me) {
                    repair();
                    break;
                }
            }
            if patience.is_over() {
                return Err(Stuck);
            }
        }
        Ok(Self(lock))
    }

    /// Takes a lock that is free.
    #[inline]
    pub fn enter(lock: &'a Lock, me: Owner) -> Option<Self> {
        // Not before it is taken: dropping it gives the lock back.
        lock.try_enter(me).then(|| Self(lock))
    }

    /// Takes a lock that is free, or whose holder died.
    pub fn try_take(lock: &'a Lock, me: Owner, is_dead: impl Fn(Owner) -> bool) -> Option<Self> {
        let inherit =
            || lock.holder().is_some_and(|holder| is_dead(holder) && lock.inherit(holder, me));
        // Not before it is taken: dropping it gives the lock back.
        (lock.try_enter(me) || inherit()).then(|| Self(lock))
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// How long a lock is waited for.
#[derive(Debug, Default)]
pub struct Patience {
    backoff: Backoff,
    last: Option<Instant>,
    waited: Duration,
    looks: u32,
}

impl Patience {
    /// After this the holder is looked at, and then each time as long again.
    const LOOK: Duration = Duration::from_millis(1);
    /// Nobody who lives holds a lock for so long.
    const END: Duration = Duration::from_secs(2);
    /// What a little is at most: where it took longer, this process was suspended, and the holder may have been,
    /// too.
    const STEP: Duration = Duration::from_millis(200);

    /// Waits a little; true if it is time to see whether the holder lives.
    pub fn is_over_for_now(&mut self) -> bool {
        self.backoff.snooze();
        let now = Instant::now();
        let last = self.last.replace(now).unwrap_or(now);
        self.waited += now.duration_since(last).min(Self::STEP);
        let look = self.waited >= Self::LOOK * (self.looks + 1);
        self.looks += u32::from(look);
        look
    }

    /// Whether it has been long enough.
    pub fn is_over(&self) -> bool {
        self.waited >= Self::END
    }
}

#[cfg(test)]
mod tests;
