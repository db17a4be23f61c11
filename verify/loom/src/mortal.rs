//! A process that may be killed, and locks that outlive their holders. Who waits for one sleeps, instead of
//! spinning, so that loom need not count the turns.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use transport_rxe_loop::protocol::lock::{AttachmentKey, Lock};
use transport_rxe_loop::sync::death;

use crate::harness::model;
use crate::threads::Monitor;

/// Who may be killed.
pub const VICTIM: AttachmentKey = AttachmentKey::new(0, 1);

/// Whether the victim is dead, as the system tells, and what others wait for.
#[derive(Debug, Default)]
pub struct Mortal(Monitor<News>);

#[derive(Clone, Copy, Debug, Default)]
struct News {
    is_dead: bool,
    /// How often a lock was given back, or somebody died.
    count: u32,
}

impl Mortal {
    /// Lives `life` as the victim, which is killed at a step of it, or dies after it; whether it came to its
    /// end.
    pub fn live(&self, step: u32, life: impl FnOnce()) -> bool {
        let lived = death::killed_at(step, life).is_some();
        self.tell(true);
        lived
    }

    /// Whether the victim is dead. If so, everything that it did can be seen.
    pub fn is_dead(&self) -> bool {
        self.news().is_dead
    }

    /// Waits for the lock; true if it was inherited, so that there is something to repair.
    ///
    /// # Panics
    /// Not in a model.
    pub fn enter(&self, lock: &Lock, me: AttachmentKey) -> bool {
        // Who is killed as it takes the lock must not hold the mutex.
        while !lock.try_enter(me) {
            let old = self.news();
            if lock.try_enter(me) {
                return false;
            }
            if old.is_dead && lock.inherit(VICTIM, me) {
                return true;
            }
            self.0.wait(|news| (news.count != old.count).then_some(()));
        }
        false
    }

    /// Gives the lock back.
    pub fn leave(&self, lock: &Lock) {
        lock.leave();
        self.tell(false);
    }

    fn news(&self) -> News {
        self.0.wait(|news| Some(*news))
    }

    fn tell(&self, died: bool) {
        self.0.update(|news| {
            news.is_dead |= died;
            news.count += 1;
        });
    }
}

/// Runs a model for each step at which its victim can be killed, but for these, until it always lives: `run` says whether it
/// did.
///
/// # Panics
/// One of them does not hold, or the victim is killed at no step behind these.
pub fn at_every_step(
    name: &str,
    but: Range<u32>,
    run: impl Fn(u32) -> bool + Copy + Send + Sync + 'static,
) {
    for step in (0..).filter(|step| !but.contains(step)) {
        let died = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&died);
        model(format!("{name}, killed at step {step}"), move || {
            seen.fetch_or(!run(step), Relaxed);
        });
        if !died.load(Relaxed) {
            assert!(step > but.end, "killed nowhere");
            return;
        }
    }
}
