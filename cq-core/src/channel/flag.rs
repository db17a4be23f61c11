//! A channel of one word, for firmware: an interrupt handler pushes, and the main loop takes the event when it wakes.
//!
//! ```
//! use cq_core::channel::flag::Flag;
//! use cq_core::transport::{CqKey, Events, Signal};
//!
//! const KEY: CqKey = CqKey { index: 0, generation: 1 };
//! let mut flag = Flag::new();
//! let (raiser, mut events) = flag.split();
//! raiser.raise(KEY);
//! raiser.raise(KEY);
//! assert_eq!(events.take_event(), Ok(Some(KEY))); // the two are merged
//! assert_eq!(events.take_event(), Ok(None));
//! ```
//!
//! # How it works
//! The word counts raised events, and the receiver remembers how many it has taken. After a merge, the consumer sees
//! the writes before every raise, because each one is a Release of the word. The count is exact up to 2³² unread
//! events; a queue that is armed again after each event leaves at most two.
//!
//! On targets with compare-and-swap a [`Raiser`] can be cloned. On others there is one, which loads and stores.
//!
//! # Sleeping
//! The flag does not put the core to sleep. On Arm, use `WFE`, which the interrupt ends; with `WFI`, check the flag
//! with interrupts masked first.

use core::cell::Cell;
use core::marker::PhantomData;

use crate::sync::{self, AtomicU32, const_unless_loom};
use crate::transport::{CqKey, EventError, Events, Signal};

/// The channel of one queue.
#[derive(Debug, Default)]
pub struct Flag {
    raised: AtomicU32,
    /// The key of the queue whose events these are, since the first of them.
    index: AtomicU32,
    generation: AtomicU32,
}

impl Flag {
    const_unless_loom! {
        /// A channel without an event.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                raised: AtomicU32::new(0),
                index: AtomicU32::new(0),
                generation: AtomicU32::new(0),
            }
        }
    }

    /// The two sides. Unread events are discarded.
    pub fn split(&mut self) -> (Raiser<'_>, Receiver<'_>) {
        let (flag, taken) = (&*self, self.count());
        (Raiser { flag, one_thread: PhantomData }, Receiver { flag, taken })
    }

    /// How many events were raised, wrapping.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        sync::see_events(&self.raised)
    }

    #[inline]
    pub(super) fn raise(&self, cq: CqKey) {
        sync::store_u32(&self.index, cq.index);
        sync::store_u32(&self.generation, cq.generation);
        sync::count_event(&self.raised);
    }

    /// Takes all events that came since there were `taken`.
    #[inline]
    pub(super) fn take(&self, taken: &mut u32) -> Option<CqKey> {
        let before = core::mem::replace(taken, self.count());
        (*taken != before).then(|| CqKey {
            index: sync::load_u32(&self.index),
            generation: sync::load_u32(&self.generation),
        })
    }
}

/// The producer's side, for one thread or one interrupt handler. It is not `Sync`:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::channel::flag::Raiser<'_>>();
/// ```
#[derive(Debug)]
#[cfg_attr(target_has_atomic = "32", derive(Clone))]
pub struct Raiser<'a> {
    flag: &'a Flag,
    one_thread: PhantomData<Cell<()>>,
}

impl Signal for Raiser<'_> {
    #[inline]
    fn raise(&self, cq: CqKey) {
        self.flag.raise(cq);
    }
}

/// The consumer's side.
#[derive(Debug)]
pub struct Receiver<'a> {
    flag: &'a Flag,
    /// The count when an event was last taken.
    taken: u32,
}

impl Events for Receiver<'_> {
    #[inline]
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.flag.take(&mut self.taken))
    }
}
