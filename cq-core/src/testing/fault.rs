//! Faults on demand: a wrapper around any transport that lets go wrong what could go wrong there, by a seed, so
//! that it goes wrong in the same way again. Feature `test-util`.
//!
//! A serving loop is tried with completions that come late and out of order, and with events for nothing:
//!
//! ```
//! use core::time::Duration;
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::testing::fake::Script;
//! use cq_core::testing::fault::{FaultInjector, Faults, When};
//! use cq_core::transport::{Arm, Block, CqKey};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! /// The code under test: serves until the deadline; says how many came.
//! fn serve<T, C>(cq: &mut CompletionQueue<T>, channel: &mut C, end: C::Instant) -> Result<usize, WaitError>
//! where
//!     T: Arm,
//!     C: Block,
//! {
//!     let (mut room, mut served) = ([Wc::default(); 4], 0);
//!     loop {
//!         match cq.wait(&mut room, channel, Some(end))?.len() {
//!             0 => return Ok(served),
//!             count => served += count,
//!         }
//!     }
//! }
//!
//! const KEY: CqKey = CqKey { index: 0, generation: 1 };
//! let wc = |wr_id, qp| Wc::new(wr_id, WcStatus::SUCCESS, qp);
//! for seed in 0..100 {
//!     let faults = Faults::seeded(seed)
//!         .delay(When::chance(0.5), 3)
//!         .reorder(When::chance(0.5))
//!         .spurious(When::chance(0.2), KEY)
//!         .duplicate(When::chance(0.5));
//!     let script = Script::<16>::new(KEY)
//!         .on_poll(Ok(&[wc(1, 5), wc(2, 6), wc(3, 5)]))
//!         .on_event(Ok(KEY))
//!         .on_poll(Ok(&[wc(4, 6)]));
//!     let mut cq = CompletionQueue::new(FaultInjector::<_, 8>::new(&script, &faults));
//!     let mut channel = FaultInjector::<_, 0>::new(&script, &faults);
//!
//!     let served = serve(&mut cq, &mut channel, Duration::from_secs(1));
//!     assert_eq!(served, Ok(4), "{}; {}", cq.transport().injected(), channel.injected());
//! }
//! ```
//!
//! # What it can do
//!
//! | around | faults |
//! |---|---|
//! | [`PollCq`], [`Arm`] | [`fail`](Faults::fail), [`delay`](Faults::delay), [`reorder`](Faults::reorder), [`overrun_after`](Faults::overrun_after) |
//! | [`Events`], [`Block`] | [`spurious`](Faults::spurious), [`duplicate`](Faults::duplicate) |
//! | [`Post`] | [`refuse_send`](Faults::refuse_send), [`refuse_recv`](Faults::refuse_recv) |
//! | [`AsyncEvents`] | [`spurious_async`](Faults::spurious_async), [`duplicate_async`](Faults::duplicate_async) |
//!
//! Each half of a transport has an injector of its own. One and the same plan may do for all: an injector goes by
//! what concerns it. Faults that change what the device does, such as bytes that are read late, are the device's
//! to offer.
//!
//! # What holds all the same
//! Each completion comes once (C8), and those of a queue pair in their order (C10). A queue pair whose
//! completion came as a failure counts as failed: what it still completes comes as WR_FLUSH (Q2), up to
//! [`recover`](FaultInjector::recover). So code under test sees no sequence that a device would never show. But that
//! is what the *code* sees. Underneath nothing failed: bytes have moved, the peer knows nothing of it, the queue
//! pair is in RTS and posts are taken; and a request that was not signaled and completes nowhere can't fail.
//!
//! No wake-up is lost (N6). Arming ends every delay, because no event will tell of a completion that is held
//! back: who arms, polls until nothing is left and sleeps, has got everything that came before.
//!
//! Delays and another order need completions to choose from: an injector with such faults takes up to `N` before
//! it is asked for them. So a queue overruns later, and a send queue's slots come back earlier, than without.
//!
//! [`PollCq`]: crate::transport::PollCq
//! [`Arm`]: crate::transport::Arm
//! [`Events`]: crate::transport::Events
//! [`Block`]: crate::transport::Block
//! [`Post`]: crate::transport::Post
//! [`AsyncEvents`]: crate::transport::AsyncEvents

mod events;
mod hold;
mod injected;
mod plan;
mod poll;
mod posts;
mod when;

pub use self::injected::Injected;
pub use self::plan::Faults;
pub use self::when::{Dice, Occasion, When, Which};

use heapless::Vec;

use self::hold::Hold;
use self::plan::Fault;
use crate::async_event::AsyncEvent;
use crate::transport::{CqKey, PollError};

/// The `vendor_err` of a completion that came as a failure, by which a test knows one.
pub const VENDOR_ERR: u32 = 0xfa17_0000;

/// A half of a transport, and what is to go wrong with it. It has each seam that the transport has.
///
/// `N` is how many completions can be held back at a time, and how many queue pairs can count as failed; a fault
/// that would be one too many does not come. Around a channel or a queue pair, 0 will do.
#[derive(Clone, Debug)]
pub struct FaultInjector<T, const N: usize> {
    transport: T,
    faults: Faults,
    dice: Dice,
    injected: Injected,
    hold: Hold<N>,
    /// Queue pairs of which everything comes flushed.
    failed: Vec<u32, N>,
    /// How often the queue was polled.
    polls: u64,
    /// Completions that were handed out.
    given: u64,
    /// Since the queue was armed it has not been seen empty: nothing may be held back.
    settling: bool,
    /// What the queue said, to be passed on behind what is held back.
    error: Option<PollError>,
    /// An event that is to come again.
    again: Option<CqKey>,
    async_again: Option<AsyncEvent>,
}

impl<T, const N: usize> FaultInjector<T, N> {
    /// The transport with these faults.
    #[must_use]
    pub fn new(transport: T, faults: &Faults) -> Self {
        let seed = faults.seed();
        Self {
            transport,
            faults: faults.clone(),
            dice: Dice::new(seed),
            injected: Injected { seed, ..Injected::default() },
            hold: Hold::new(),
            failed: Vec::new(),
            polls: 0,
            given: 0,
            settling: false,
            error: None,
            again: None,
            async_again: None,
        }
    }

    /// What was injected so far: to be printed by a test that fails.
    #[must_use]
    pub const fn injected(&self) -> Injected {
        self.injected
    }

    /// A queue pair was reset: it completes as ever from now on. What of it is still held back stays as it is.
    pub fn recover(&mut self, qp_num: u32) {
        self.failed.retain(|&failed| failed != qp_num);
    }

    /// The transport, for what is its own.
    pub const fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Gives the transport back. What was held back is lost.
    pub fn into_transport(self) -> T {
        self.transport
    }

    /// Something of `qp` happens: what goes wrong with it.
    fn roll<V>(&mut self, qp: Option<u32>, of: impl Fn(Fault) -> Option<V>) -> Option<V> {
        self.faults.roll(&mut self.dice, qp, of)
    }
}
