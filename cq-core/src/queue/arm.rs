//! The arm word: whether the consumer wants an event, and for what.
//!
//! # States
//!
//! | word | state | who writes it | from |
//! |---|---|---|---|
//! | 0 | Idle | a producer, as it fires | Solicited, Next |
//! | 1 | Solicited | the consumer, as it arms | Idle |
//! | 2, and any other | Next | the consumer, as it arms | Idle, Solicited |
//!
//! With one producer, both sides use loads and stores only, so this works on targets without
//! compare-and-swap. They race when the consumer arms while the producer fires, and the producer's Idle may then erase the arm. No
//! wake-up is lost by that, because the producer disarms **first and then** raises: an arm that is erased
//! is always followed by an event, at worst by one that finds nothing (N5).
//!
//! An event may also be [held back](ArmWord::fire_unless) to stand for several completions; the queue then
//! stays armed. Whoever holds one back fires in the end, by count or by time.
//!
//! Several producers fire by [`fire_shared`](ArmWord::fire_shared), a compare-and-swap that takes back
//! only what was looked at. By stores, two of them would raise two events for one arm; by a swap, one that
//! looked at Next could erase a later Solicited, for which it raises nothing. The consumer's side is the
//! same: its store races with a disarming only when it turns Solicited into Next, and then either comes
//! first with nothing lost.
//!
//! The races against publishing are settled by the fences that [`queue`](super) describes.

use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::Notify;

const IDLE: u32 = 0;
const SOLICITED: u32 = 1;
const NEXT: u32 = 2;

/// The word. Any number in it is a state.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct ArmWord(AtomicU32);

impl ArmWord {
    const_unless_loom! {
        /// Not armed.
        pub(super) const fn new() -> Self {
            Self(AtomicU32::new(IDLE))
        }
    }

    /// The consumer asks for an event; what is armed already is never weakened (N4).
    pub(super) fn arm(&self, on: Notify) {
        let wanted = match on {
            Notify::Solicited => SOLICITED,
            Notify::Next => NEXT,
        };
        // No store where it is armed already: it could undo a disarming that this load did not see, and
        // so turn an arm for less into one for more (N3). The event of that disarming is still to be taken.
        if sync::load_u32(&self.0) < wanted {
            sync::store_u32(&self.0, wanted);
        }
    }

    /// The producer has published something: calls `raise` if it is what the consumer waits for, after
    /// disarming. `urgent` is a solicited receive, a failure, or the overrun (N3, O5).
    #[inline]
    pub(super) fn fire(&self, urgent: bool, raise: impl FnOnce()) {
        self.fire_unless(urgent, |_| false, raise);
    }

    /// [`fire`](Self::fire), unless the producer `holds` the event back, knowing for what the consumer has
    /// armed: then that stays armed.
    #[inline]
    pub(super) fn fire_unless(
        &self,
        urgent: bool,
        holds: impl FnOnce(Notify) -> bool,
        raise: impl FnOnce(),
    ) {
        let armed = match sync::load_u32(&self.0) {
            IDLE => return,
            SOLICITED if !urgent => return,
            SOLICITED => Notify::Solicited,
            _ => Notify::Next,
        };
        if holds(armed) {
            return;
        }
        sync::store_u32(&self.0, IDLE);
        raise();
    }

    /// [`fire`](Self::fire) of one producer among several. Here `urgent` is asked only while the consumer is
    /// armed for solicited completions.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[inline]
    pub(super) fn fire_shared(&self, urgent: impl Fn() -> bool, raise: impl FnOnce()) {
        let mut seen = sync::load_u32(&self.0);
        while seen != IDLE && (seen != SOLICITED || urgent()) {
            match sync::disarm(&self.0, seen, IDLE) {
                Ok(_) => return raise(),
                Err(now) => seen = now,
            }
        }
    }

    pub(super) fn adopt(&self, old: &Self) {
        sync::store_u32(&self.0, sync::load_u32(&old.0));
    }

    pub(super) fn reset(&mut self) {
        sync::store_u32(&self.0, IDLE);
    }
}
