//! Points at which a process that dies leaves something half done. A test installs a hook here to be killed
//! or stopped at one of them. Outside of tests, and without debug assertions, the module does nothing. The loom models do not need
//! it: their threads can die at any store.

#[cfg(all(test, debug_assertions))]
use std::sync::OnceLock;

/// A step, named by what was just done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A free lock was taken.
    Entered,
    /// A dead holder's lock was taken.
    Inherited,
    /// A lock was released; its former holder may still have to notify others.
    Left,
    /// Entries were published, and the queue's arm was checked.
    Published,
    /// The position that an entry covers was settled.
    Settled,
    /// The tail was stored.
    Kept,
    /// Some of the completions were copied to a resized queue's new ring.
    Copied,
    /// The new ring has taken over the arm of the old one.
    Adopted,
    /// Producers use the new ring from now on.
    Moved,
    /// An event was delayed; the service thread that is to raise it was not called.
    Held,
    /// An event is due; it was not raised.
    Due,
    /// An event was counted; its token was not written.
    Counted,
    /// A receive of a pool was marked as taken; the position was not advanced.
    Taken,
    /// The position of a pool was set back to a receive that is still marked as taken; or a receive was left
    /// and the pool does not record it.
    SetBack,
    /// An in-flight marker in shared memory was set; the private one was not.
    Announced,
    /// An in-flight marker was set.
    Opened,
    /// An in-flight marker in shared memory was cleared; the private one was not.
    Withdrawn,
    /// An in-flight marker was cleared.
    Closed,
    /// The state or number of a queue pair changed.
    Changed,
    /// The byte of an owner is locked through a descriptor that is about to be closed.
    Locked,
    /// A process claimed its attachment.
    Attached,
    /// A table entry was claimed.
    Claimed,
    /// Some of the granules of an allocation were marked.
    Marked,
    /// A file was created beside the fabric.
    Made,
    /// A remote request was marked; the process was not called.
    Requested,
    /// Something of a dead process was repaired or freed.
    Recovered,
    /// Another process was asked to move bytes; it was not called.
    Asked,
    /// A request of another process is about to be carried out.
    Serving,
    /// It was carried out, and not answered.
    Served,
    /// It was answered; the asking process was not woken.
    Answered,
    /// A port was taken.
    Bound,
    /// A listener's socket has its path; no request is sent to it yet.
    Named,
    /// A message of the connection manager was sent; the state was not changed.
    Sent,
    /// A message of the connection manager was taken; its event was not queued.
    Received,
}

#[cfg(all(test, debug_assertions))]
static HOOK: OnceLock<fn(Step)> = OnceLock::new();

/// Calls `hook` at every step of this process from now on. Only the first hook is installed.
#[cfg(all(test, debug_assertions))]
pub fn hook(hook: fn(Step)) {
    let _another_is_in_place = HOOK.set(hook);
}

/// Calls the hook, if there is one.
#[inline(always)]
pub(crate) fn done(step: Step) {
    #[cfg(all(test, debug_assertions))]
    if let Some(hook) = HOOK.get() {
        hook(step);
    }
    #[cfg(not(all(test, debug_assertions)))]
    let _ = step;
}
