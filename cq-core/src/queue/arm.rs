//! The arm word: whether the consumer wants an event, and for what.
//!
//! # States
//!
//! | word | state | written by | from |
//! |---|---|---|---|
//! | 0 | Idle | a producer, when it fires | Solicited, Next |
//! | 1 | Solicited | the consumer, when it arms | Idle |
//! | 2 or any other value | Next | the consumer, when it arms | Idle, Solicited |
//!
//! `adopt` and `reset` set the state of a queue that has no sides.
//!
//! With one producer, both sides use loads and stores only, so this works on targets without compare-and-swap. If the
//! consumer arms while the producer fires, the producer's store of Idle may overwrite the arm. This loses no wake-up,
//! because the producer disarms **first and then** raises: an overwritten arm is always followed by an event, at worst
//! a spurious one ([N5](crate::contract#n5)).
//!
//! A producer may also [hold an event back](ArmWord::fire_unless) so that it stands for several completions. The queue
//! then stays armed, and the event must be raised later, by count or by time.
//!
//! Several producers use [`fire_shared`](ArmWord::fire_shared), which disarms by a compare-and-swap with the value that
//! was loaded. With stores, two producers would raise two events for one arm. With a swap, a producer that loaded Next
//! could erase a later Solicited, for which it raises nothing. The consumer arms as with one producer: its store races
//! with a disarm only when it replaces Solicited by Next, and then no event is lost in either order.
//!
//! The fences described in [`queue`](super) order arming against publishing.

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

    /// Called after the producer has published: if the consumer armed for it, disarms and then calls `raise`. `urgent`:
    /// whether a solicited receive, a failure, or the overrun was published ([N3](crate::contract#n3),
    /// [O5](crate::contract#o5)).
    #[inline]
    pub(super) fn fire(&self, urgent: bool, raise: impl FnOnce()) {
        self.fire_unless(urgent, |_| false, raise);
    }

    /// [`fire`](Self::fire), unless `holds`, called with what the consumer armed for, returns `true`: then the event is
    /// held back and the queue stays armed.
    #[inline]
    pub(super) fn fire_unless(
        &self,
        urgent: bool,
        holds: impl FnOnce(Notify) -> bool,
        raise: impl FnOnce(),
    ) {
        match fires(sync::load_u32(&self.0), || urgent) {
            Some(armed) if !holds(armed) => {}
            _ => return,
        }
        sync::store_u32(&self.0, IDLE);
        raise();
    }

    /// [`fire`](Self::fire) with several producers. `urgent` is called only while the word is Solicited.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    #[inline]
    pub(super) fn fire_shared(&self, urgent: impl Fn() -> bool, raise: impl FnOnce()) {
        let mut seen = sync::load_u32(&self.0);
        while fires(seen, &urgent).is_some() {
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
