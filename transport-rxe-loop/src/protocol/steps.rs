//! The instants at which a process that is killed leaves something half done. A test hooks in here, to be
//! killed at one of them; without debug assertions there is nothing here at all. Models need none of this:
//! there, threads die at any store.
//!
//! ```
//! use transport_rxe_loop::protocol::lock::{Lock, Owner};
//! use transport_rxe_loop::protocol::steps::{self, Step};
//!
//! # #[cfg(debug_assertions)]
//! steps::hook(|step| assert_eq!(step, Step::Entered));
//! assert!(Lock::new().try_enter(Owner::new(0, 1)));
//! ```

#[cfg(debug_assertions)]
use std::sync::OnceLock;

/// What was done last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A free lock was taken.
    Entered,
    /// A dead holder's lock was taken.
    Inherited,
    /// A lock was given back; its holder may still have something to tell others.
    Left,
    /// Entries were published, and the arm was looked at.
    Published,
    /// What an entry covers was settled.
    Settled,
    /// The tail was kept.
    Kept,
    /// Some of what waits in a queue was copied to its new ring.
    Copied,
    /// The new ring has the arm of the old one.
    Adopted,
    /// Producers will find the new ring.
    Moved,
    /// An event was held back; who is to raise it in time was not called.
    Held,
    /// An event was counted; its source may not be marked.
    Counted,
    /// A source is marked at its channel, whose descriptor may not be readable.
    Listed,
    /// The descriptor of a channel was written; the channel's word does not say so.
    Written,
    /// A receive of a pool is marked as taken; the next one is still this one.
    Taken,
    /// The next receive of a pool is one that is still marked as taken; or one was left that nobody knows of.
    SetBack,
    /// A window was opened.
    Opened,
    /// A window was closed.
    Closed,
    /// A queue pair has another state, or number.
    Changed,
    /// The byte of an owner is locked by a descriptor that is about to be closed.
    Locked,
    /// A place among the processes was taken.
    Attached,
    /// An entry of a table was claimed.
    Claimed,
    /// Some of the granules that are wanted are marked.
    Marked,
    /// A file was made beside the fabric.
    Made,
    /// A queue pair was noted; its process was not called.
    Noted,
    /// Something of a dead process was put in order, or freed.
    Swept,
    /// Another process was asked for memory of its own; it was not called.
    Asked,
    /// What another process had asked for is about to be carried out.
    Serving,
    /// It was carried out, and not answered.
    Served,
    /// It was answered; who had asked was not woken.
    Answered,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::Entered,
        Self::Inherited,
        Self::Left,
        Self::Published,
        Self::Settled,
        Self::Kept,
        Self::Copied,
        Self::Adopted,
        Self::Moved,
        Self::Held,
        Self::Counted,
        Self::Listed,
        Self::Written,
        Self::Taken,
        Self::SetBack,
        Self::Opened,
        Self::Closed,
        Self::Changed,
        Self::Locked,
        Self::Attached,
        Self::Claimed,
        Self::Marked,
        Self::Made,
        Self::Noted,
        Self::Swept,
        Self::Asked,
        Self::Serving,
        Self::Served,
        Self::Answered,
    ];
}

#[cfg(debug_assertions)]
static HOOK: OnceLock<fn(Step)> = OnceLock::new();

/// Calls `hook` at every step of this process from now on. The first one stays.
#[cfg(debug_assertions)]
pub fn hook(hook: fn(Step)) {
    let _another_is_in_place = HOOK.set(hook);
}

/// A step was done.
#[inline(always)]
pub(crate) fn done(step: Step) {
    #[cfg(debug_assertions)]
    if let Some(hook) = HOOK.get() {
        hook(step);
    }
    #[cfg(not(debug_assertions))]
    let _ = step;
}
