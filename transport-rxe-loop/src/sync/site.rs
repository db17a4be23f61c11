//! The steps of the protocols that a loom model can weaken, by name.

/// A step that a protocol of the device needs.
///
/// A loom model that claims to check a protocol is run again with each of the protocol's sites weakened, and must
/// then fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Taking a lock is Relaxed.
    Lock,
    /// Releasing a lock is Relaxed.
    Unlock,
    /// No fence after setting an in-flight marker.
    OpenFence,
    /// No fence after clearing it.
    CloseFence,
    /// No fence after a change that keeps new copies out.
    ChangeFence,
    /// No fence after releasing the lock of a queue pair's datagrams.
    LeaveFence,
    /// No fence after posting receives.
    PostFence,
    /// No fence after setting the starved mark.
    StarveFence,
    /// A store that is followed by a fence is Relaxed.
    #[cfg(any(loom, not(target_arch = "x86_64")))]
    StoreFenced,
    /// Reading an in-flight marker is Relaxed.
    SeeClosed,
    /// Reading the posted position is Relaxed.
    SeePosted,
    /// Reading the completed position is Relaxed.
    SeeCompleted,
    /// Advancing the completed position is Relaxed.
    Settle,
    /// The taker does not read the posted position again.
    LookAgain,
    /// Reading whether a slot of a pool is free is Relaxed.
    SeeFree,
    /// Counting polled completions is Relaxed.
    CountPolled,
    /// Reading their count is Relaxed.
    SeePolled,
    /// Freeing a granule of the arena is Relaxed.
    GiveGranule,
    /// Reading whether a granule is free is Relaxed.
    SeeGranule,
    /// Taking from a pool does not skip what a dead process was taking.
    StepOver,
    /// A tag settles a slot of a pool in any generation.
    RightLife,
    /// A thread that finds a send queue owned does not reschedule its owner.
    Reschedule,
    /// No fence between delaying an event and reading the alarm.
    HoldFence,
    /// No fence between clearing the alarm and reading what is delayed, without the lock.
    AlarmFence,
    /// Setting an in-flight marker in shared memory before the private one is Relaxed.
    OpenFirst,
    /// Clearing an in-flight marker in shared memory before the private one is Relaxed.
    CloseFirst,
    /// A queue switches to a new ring before the completions are moved.
    MoveLast,
    /// The new ring of a queue does not take over what the old one was armed for.
    AdoptArm,
}

cq_core::weakened_sites!(Site);
