//! The orderings that loom models take out, each by its name.

use core::sync::atomic::Ordering::{self, Relaxed};

/// A memory ordering or a fence that some protocol of the engine cannot do without.
///
/// A loom model that claims to check a protocol is run once more with each of the protocol's sites
/// weakened, and must then fail. What else a protocol cannot do without stands in `verify/controls.toml`, with a wrong
/// text that models must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// `publish` as Relaxed.
    Publish,
    /// `observe` as Relaxed.
    Observe,
    /// `release_head` as Relaxed.
    ReleaseHead,
    /// `acquire_head` as Relaxed.
    AcquireHead,
    /// `latch` as Relaxed.
    Latch,
    /// `read_latch` as Relaxed.
    ReadLatch,
    /// No `push_fence`.
    PushFence,
    /// No `arm_fence`.
    ArmFence,
    /// `try_lock` as Relaxed.
    #[cfg(target_has_atomic = "32")]
    Lock,
    /// `unlock` as Relaxed.
    #[cfg(target_has_atomic = "32")]
    Unlock,
    /// `reserve` as Relaxed.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    Reserve,
    /// `acquire_tail`, also of a `reserve` that failed, as Relaxed.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    AcquireTail,
    /// `count_event` as Relaxed.
    CountEvent,
    /// `see_events` as Relaxed.
    SeeEvents,
    /// `leave` as Relaxed.
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    Leave,
}

/// The ordering, unless a model takes it out.
#[inline(always)]
pub fn at(site: Site, ordering: Ordering) -> Ordering {
    if intact(site) { ordering } else { Relaxed }
}

cfg_if::cfg_if! {
    if #[cfg(loom)] {
        /// Which of a crate's sites is weakened.
        pub type Weakened<S> = std::thread::LocalKey<core::cell::Cell<Option<S>>>;

        std::thread_local! {
            static WEAKENED: core::cell::Cell<Option<Site>> = const { core::cell::Cell::new(None) };
        }

        /// Whether `site` does its work; false only inside [`weaken`].
        pub fn intact(site: Site) -> bool {
            WEAKENED.get() != Some(site)
        }

        /// Runs `model` with one site of the protocols weakened.
        pub fn weaken<R>(site: Site, model: impl FnOnce() -> R) -> R {
            weaken_in(&WEAKENED, site, model)
        }

        /// [`weaken`], for the sites of any crate. Loom runs all threads of a model on the thread that
        /// called it, so other models running at the same time do not notice.
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
    } else {
        /// Always true: sites are weakened under loom only.
        #[inline(always)]
        pub const fn intact(_site: Site) -> bool {
            true
        }
    }
}
