//! The steps of the protocols that a loom model can take out, each by its name.

/// A step that some protocol of the device cannot do without.
///
/// A loom model that claims to check a protocol is run once more with each of the protocol's sites
/// weakened, and must then fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// Taking a lock as Relaxed.
    Lock,
    /// Giving it back as Relaxed.
    Unlock,
    /// No fence after opening a window.
    OpenFence,
    /// No fence after closing it.
    CloseFence,
    /// No fence after a change that shuts out who has no window open.
    ChangeFence,
    /// No fence after giving the lock of a queue pair's datagrams back.
    LeaveFence,
    /// No fence after posting receives.
    PostFence,
    /// No fence after the mark that says that there is none.
    StarveFence,
    /// A store that is followed by a fence as Relaxed.
    StoreFenced,
    /// The look at the copying counter as Relaxed.
    SeeClosed,
    /// The look at the posted position as Relaxed.
    SeePosted,
    /// The look at the completed position as Relaxed.
    SeeCompleted,
    /// Advancing the completed position as Relaxed.
    Settle,
    /// The taker's second look at the posted position.
    LookAgain,
    /// The look at whether a slot of a pool is free as Relaxed.
    SeeFree,
    /// Giving a granule of the arena back as Relaxed.
    GiveGranule,
    /// The look at whether a granule is free as Relaxed.
    SeeGranule,
    /// That who takes from a pool steps over what a dead one was taking.
    StepOver,
    /// That a tag settles a slot of a pool in its own generation only.
    RightLife,
    /// No fence between marking a source at its channel and the look at whether the descriptor was written.
    RaiseFence,
    /// No fence between emptying the descriptor of a channel and the last look at the marks.
    EmptyFence,
    /// That the descriptor of a channel is emptied before its next round begins.
    EmptyFirst,
    /// The last look at the marks, after the descriptor was emptied.
    CollectAgain,
    /// That who finds a send queue owned has its owner look again.
    Reschedule,
    /// No fence between holding an event back and the look at the alarm.
    HoldFence,
    /// No fence between taking the alarm back and the look at what is held back, without the lock.
    AlarmFence,
    /// No fence after a visitor has counted itself.
    VisitFence,
    /// No fence after something was taken out of its place.
    RetireFence,
    /// That a visitor is not counted any more as Relaxed.
    LeaveVisit,
    /// The look at the visitors' counts as Relaxed.
    SeeVisits,
    /// That a ring becomes the queue's once it holds what the old one held.
    MoveLast,
    /// That the new ring of a queue takes over what the old one was armed for.
    AdoptArm,
}

#[cfg(loom)]
std::thread_local! {
    static WEAKENED: std::cell::Cell<Option<Site>> = const { std::cell::Cell::new(None) };
}

/// Whether `site` does its work; false only inside `weaken`, under loom.
#[cfg(loom)]
pub fn intact(site: Site) -> bool {
    WEAKENED.get() != Some(site)
}

/// Always true: sites are weakened under loom only.
#[cfg(not(loom))]
#[inline(always)]
#[must_use]
pub const fn intact(_site: Site) -> bool {
    true
}

/// Runs `model` with one site of the protocols taken out.
#[cfg(loom)]
pub fn weaken<R>(site: Site, model: impl FnOnce() -> R) -> R {
    cq_core::sync::weaken_in(&WEAKENED, site, model)
}
