//! The orderings that loom models can weaken, by name.

/// A memory ordering or a fence that a protocol of the engine needs.
///
/// A loom model of a protocol is run again with each of the protocol's sites weakened, and must then fail. Other steps
/// that a protocol needs are listed in `verify/controls.toml`, each with a wrong replacement that models must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a target without compare-and-swap has fewer")]
pub enum Site {
    /// `publish` as Relaxed.
    Publish,
    /// `observe` as Relaxed.
    Observe,
    /// `release_head` as Relaxed.
    ReleaseHead,
    /// `acquire_head` as Relaxed.
    AcquireHead,
    /// `latch` and `latch_more` as Relaxed.
    Latch,
    /// `read_latch` as Relaxed.
    ReadLatch,
    /// `refuse` as Relaxed.
    Refuse,
    /// `see_refusal` as Relaxed.
    SeeRefusal,
    /// No `push_fence`.
    PushFence,
    /// No `arm_fence`.
    ArmFence,
    /// `try_lock` as Relaxed.
    Lock,
    /// `unlock` as Relaxed.
    Unlock,
    /// `reserve` as Relaxed.
    Reserve,
    /// `acquire_tail`, and the load of a failed `reserve`, as Relaxed.
    AcquireTail,
    /// `count_event` as Relaxed.
    CountEvent,
    /// `see_events` as Relaxed.
    SeeEvents,
    /// `leave` as Relaxed.
    Leave,
}

crate::weakened_sites!(Site);

/// The site of a crate that is weakened.
#[cfg(loom)]
pub type Weakened<S> = std::thread::LocalKey<core::cell::Cell<Option<S>>>;

/// Runs `model` with a site of any crate weakened. Loom runs all threads of a model on the thread that called it,
/// so models that run at the same time on other threads are not affected.
#[cfg(loom)]
pub fn weaken_in<S: 'static, R>(
    weakened: &'static Weakened<S>,
    site: S,
    model: impl FnOnce() -> R,
) -> R {
    struct Restore<S: 'static>(&'static Weakened<S>);
    impl<S> Drop for Restore<S> {
        fn drop(&mut self) {
            self.0.set(None);
        }
    }
    weakened.set(Some(site));
    let _restore = Restore(weakened);
    model()
}
