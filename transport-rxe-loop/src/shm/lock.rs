//! Waiting for a [lock](crate::protocol::lock), whose holder may be any process, and may die.

use std::time::{Duration, Instant};

use crate::error::Stuck;
use crate::protocol::lock::{AttachmentKey, Lock};

/// Spins for a moment, then yields.
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

/// A lock that is held.
#[derive(Debug)]
pub struct Guard<'a>(&'a Lock);

impl<'a> Guard<'a> {
    /// Waits for a lock. If its holder is dead, takes the lock over and calls `repair` before anything else.
    ///
    /// # Errors
    /// A live process holds it and does not release it.
    #[cold]
    pub fn take(
        lock: &'a Lock,
        me: AttachmentKey,
        is_dead: impl Fn(AttachmentKey) -> bool,
        repair: impl FnOnce(),
    ) -> Result<Self, Stuck> {
        let mut patience = Patience::default();
        while !lock.try_enter(me) {
            if !patience.snooze_check_due() {
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
    pub fn enter(lock: &'a Lock, me: AttachmentKey) -> Option<Self> {
        // `then`, not `then_some`: dropping a guard releases the lock.
        lock.try_enter(me).then(|| Self(lock))
    }

    /// Takes a lock that is free, or whose holder is dead.
    pub fn try_take(
        lock: &'a Lock,
        me: AttachmentKey,
        is_dead: impl Fn(AttachmentKey) -> bool,
    ) -> Option<Self> {
        let inherit =
            || lock.holder().is_some_and(|holder| is_dead(holder) && lock.inherit(holder, me));
        // `then`, not `then_some`: dropping a guard releases the lock.
        (lock.try_enter(me) || inherit()).then(|| Self(lock))
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// How long to wait for a lock.
#[derive(Debug, Default)]
pub struct Patience {
    backoff: Backoff,
    last: Option<Instant>,
    waited: Duration,
    looks: u32,
}

impl Patience {
    /// After this time the holder is checked, and then at this interval.
    const LOOK: Duration = Duration::from_millis(1);
    /// No live process holds a lock for so long.
    const END: Duration = Duration::from_millis(if cfg!(fuzzing) { 20 } else { 2000 });
    /// The most that one wait counts: if it took longer, this process was suspended, and the holder may have been,
    /// too.
    const STEP: Duration = Duration::from_millis(200);

    /// Waits a little; true if it is time to check whether the holder is alive.
    pub fn snooze_check_due(&mut self) -> bool {
        self.backoff.snooze();
        let now = Instant::now();
        let last = self.last.replace(now).unwrap_or(now);
        self.waited += now.duration_since(last).min(Self::STEP);
        let look = self.waited >= Self::LOOK * (self.looks + 1);
        self.looks += u32::from(look);
        look
    }

    /// Whether the wait is over.
    pub fn is_over(&self) -> bool {
        self.waited >= Self::END
    }
}

#[cfg(test)]
mod tests;
