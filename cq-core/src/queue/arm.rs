//! The arm word: whether the consumer wants an event, and for what. [`Control`](super::Control) documents its states.

use core::mem;

use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::Notify;

const IDLE: u32 = 0;
const SOLICITED: u32 = 1;
const NEXT: u32 = 2;

/// What the word is armed for, if a completion fires it. `urgent` is called only if it is Solicited.
#[inline(always)]
fn fires(word: u32, urgent: impl FnOnce() -> bool) -> Option<Notify> {
    match word {
        IDLE => None,
        SOLICITED => urgent().then_some(Notify::Solicited),
        _ => Some(Notify::Next),
    }
}

/// The word. Any value is a state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(super) struct ArmWord(AtomicU32);

impl ArmWord {
    const_unless_loom! {
        /// Not armed.
        pub(super) const fn new() -> Self {
            Self(AtomicU32::new(IDLE))
        }
    }

    /// Arms for an event. Never weakens what is armed already ([N4](crate::contract#n4)).
    pub(super) fn arm(&self, on: Notify) {
        let wanted = match on {
            Notify::Solicited => SOLICITED,
            Notify::Next => NEXT,
        };
        // No store if this much is armed already: it could undo a disarm that this load did not see, and so arm for
        // more than was asked (N3). The event of that disarm is still to be taken, so no wake-up is lost.
        if sync::load_u32(&self.0) < wanted {
            sync::store_u32(&self.0, wanted);
        }
    }

    /// What the consumer has armed for, and no producer has disarmed since.
    pub(super) fn armed(&self) -> Option<Notify> {
        fires(sync::load_u32(&self.0), || true)
    }

    /// Called after the producer has published: if the consumer armed for it, disarms and then calls `raise`. `urgent`:
    /// whether a solicited receive, a failure, or the overrun was published ([N3](crate::contract#n3),
    /// [O5](crate::contract#o5)); it is called only if the word is Solicited.
    #[inline]
    pub(super) fn fire(&self, urgent: impl FnOnce() -> bool, raise: impl Fn()) {
        self.fire_unless(|| self.asks(urgent, &raise), |_| false, &raise);
    }

    /// [`fire`](Self::fire), unless `holds`, called with what the consumer armed for, returns `true`: then the event is
    /// held back and the queue stays armed.
    #[inline]
    pub(super) fn fire_unless(
        &self,
        urgent: impl FnOnce() -> bool,
        holds: impl FnOnce(Notify) -> bool,
        raise: impl FnOnce(),
    ) {
        match fires(sync::load_u32(&self.0), urgent) {
            Some(armed) if !holds(armed) => {}
            _ => return,
        }
        sync::store_u32(&self.0, IDLE);
        self.raise(raise);
    }

    /// [`fire`](Self::fire) with several producers.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[inline]
    pub(super) fn fire_shared(&self, urgent: impl Fn() -> bool, raise: impl Fn()) {
        let mut seen = sync::load_u32(&self.0);
        while fires(seen, || self.asks(&urgent, &raise)).is_some() {
            match sync::disarm(&self.0, seen, IDLE) {
                Ok(_) => return self.raise(raise),
                Err(now) => seen = now,
            }
        }
    }

    /// Asks an entry's type whether it is urgent. If that panics, it may be: the event is raised.
    #[inline]
    fn asks(&self, urgent: impl FnOnce() -> bool, raise: &impl Fn()) -> bool {
        struct Raise<'a, R: Fn()>(&'a ArmWord, &'a R);
        impl<R: Fn()> Drop for Raise<'_, R> {
            fn drop(&mut self) {
                sync::store_u32(&self.0.0, IDLE);
                self.0.raise(self.1);
            }
        }
        let raise = Raise(self, raise);
        let urgent = urgent();
        mem::forget(raise);
        urgent
    }

    /// Raises the event of an arm that was disarmed. If `raise` panics, the next completion raises it: it may not be.
    #[inline]
    fn raise(&self, raise: impl FnOnce()) {
        struct Rearm<'a>(&'a AtomicU32);
        impl Drop for Rearm<'_> {
            fn drop(&mut self) {
                // The most that the consumer can have armed for, also meanwhile.
                sync::store_u32(self.0, NEXT);
            }
        }
        let rearm = Rearm(&self.0);
        raise();
        mem::forget(rearm);
    }

    pub(super) fn adopt(&self, old: &Self) {
        sync::store_u32(&self.0, sync::load_u32(&old.0));
    }
}
