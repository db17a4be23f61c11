//! Fault injection for any transport of completions ([`Wc`](cq_core::wc::Wc)). The same seed gives the same faults.
//!
//! This tests a consumer loop with late and reordered completions, and with spurious and duplicate events:
//!
//! ```
//! use core::time::Duration;
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::transport::{Arm, Block, CqKey};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::polling::ArmWc;
//! use cq_testing::fake::Script;
//! use cq_testing::fault::{FaultInjector, Faults, When};
//!
//! /// The code under test: polls until the deadline. Returns the number of completions.
//! fn serve<T, C>(cq: &mut CompletionQueue<T>, channel: &mut C, end: C::Instant) -> Result<usize, WaitError>
//! where
//!     T: ArmWc,
//!     C: Block,
//! {
//!     let (mut buffer, mut served) = ([Wc::default(); 4], 0);
//!     loop {
//!         match cq.wait(&mut buffer, channel, Some(end))?.len() {
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
//!     assert_eq!(served, Ok(4), "{}; {}", cq.get_mut().injected(), channel.injected());
//! }
//! ```
//!
//! # Faults
//!
//! | trait | faults |
//! |---|---|
//! | [`PollCq`], [`Arm`] | [`fail`](Faults::fail), [`delay`](Faults::delay), [`reorder`](Faults::reorder), [`overrun_after`](Faults::overrun_after) |
//! | [`Events`], [`Block`] | [`spurious`](Faults::spurious), [`duplicate`](Faults::duplicate) |
//! | [`Post`] | [`refuse_send`](Faults::refuse_send), [`refuse_recv`](Faults::refuse_recv) |
//! | [`AsyncEvents`] | [`spurious_async`](Faults::spurious_async), [`duplicate_async`](Faults::duplicate_async) |
//!
//! Wrap each half of a transport in its own injector. All of them can use the same plan: an injector applies only the
//! faults of the traits that it is used through. Faults inside the device, such as a late read of a request's bytes,
//! must be offered by the device.
//!
//! # Guarantees
//! Each completion is returned once ([C8](cq_core::contract#c8)), and the completions of one queue pair stay in order
//! ([C10](cq_core::contract#c10)). After an injected failure the queue pair counts as failed: its later completions are
//! returned as WR_FLUSH ([Q2](cq_core::contract#q2)) until [`recover`](FaultInjector::recover), unless the plan is
//! [`failing_alone`](Faults::failing_alone). The code under test thus sees only sequences that a device can produce.
//!
//! Below the injector nothing has failed. The data was transferred, the peer does not know of a failure, and the queue
//! pair is still in RTS and accepts posts. An unsignaled request without a completion can't be made to fail.
//!
//! No wake-up is lost ([N6](cq_core::contract#n6)). A completion that is held back raises no event, so arming ends every
//! delay. A consumer that arms, polls until the queue is empty and sleeps has got every earlier completion.
//!
//! An injector with [`delay`](Faults::delay), [`reorder`](Faults::reorder) or [`overrun_after`](Faults::overrun_after)
//! polls up to `N` completions ahead of the consumer. The transport's queue then overruns later, and send-queue slots
//! come back earlier.
//!
//! [`PollCq`]: cq_core::transport::PollCq
//! [`Arm`]: cq_core::transport::Arm
//! [`Events`]: cq_core::transport::Events
//! [`Block`]: cq_core::transport::Block
//! [`Post`]: cq_verbs::post::Post
//! [`AsyncEvents`]: cq_verbs::async_event::AsyncEvents

mod events;
mod hold;
mod injected;
mod plan;
mod poll;
mod posts;

use cq_core::transport::{CqKey, PollError};
use cq_verbs::async_event::AsyncEvent;
pub use cq_verbs::fault::{Dice, Occasion, When, Which};
use heapless::Vec;

use self::hold::Hold;
pub use self::injected::Injected;
use self::plan::Fault;
pub use self::plan::Faults;

/// The `vendor_err` of injected failures, flushed completions included.
pub const VENDOR_ERR: u32 = 0xfa17_0000;

/// One half of a transport, with faults. It implements the traits of the [module's table](self#faults) that the
/// transport implements.
///
/// At most `N` completions are held back at a time, and at most `N` queue pairs count as failed. Faults beyond that are
/// not injected. Around a channel or a queue pair, `N` can be 0.
///
/// ```
/// use cq_core::transport::{CqKey, PollCq, PollError};
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::fake::Script;
/// use cq_testing::fault::{FaultInjector, Faults, When};
///
/// let key = CqKey { index: 0, generation: 1 };
/// let script = Script::<4>::new(key).on_poll(Ok(&[Wc::new(7, WcStatus::SUCCESS, 5)]));
/// let mut queue = FaultInjector::<_, 4>::new(&script, &Faults::seeded(7).delay(When::nth(1), 1));
/// assert_eq!(queue.pop()?, None); // the completion is held back for one poll
/// assert_eq!(queue.pop()?.map(|wc| wc.wr_id()), Some(7));
/// # Ok::<(), PollError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultInjector<T, const N: usize> {
    transport: T,
    faults: Faults,
    dice: Dice,
    injected: Injected,
    hold: Hold<N>,
    /// Queue pairs whose completions are returned as flushed.
    failed: Vec<u32, N>,
    /// How often the queue was polled.
    polls: u64,
    /// Completions that were returned.
    given: u64,
    /// The queue was armed and not yet seen empty since: nothing may be held back.
    settling: bool,
    /// An error of the queue, to be returned after the completions that are held back.
    error: Option<PollError>,
    /// An event to return again.
    again: Option<CqKey>,
    async_again: Option<AsyncEvent>,
}

impl<T, const N: usize> FaultInjector<T, N> {
    /// Wraps `transport` with these faults.
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

    /// The faults injected so far, for a failing test to print.
    #[must_use]
    pub const fn injected(&self) -> Injected {
        self.injected
    }

    /// Call this when a queue pair was reset: it no longer counts as failed. Completions still held back keep their
    /// status.
    pub fn recover(&mut self, qp_num: u32) {
        self.failed.retain(|&failed| failed != qp_num);
    }

    /// The inner transport.
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Returns the inner transport. Completions that are held back are lost.
    pub fn into_inner(self) -> T {
        self.transport
    }

    /// Counts an occasion of `qp` for faults that are `of` these. Returns the fault that is due.
    fn roll(&mut self, qp: Option<u32>, of: impl Fn(&Fault) -> bool) -> Option<Fault> {
        self.faults.roll(&mut self.dice, qp, of)
    }
}
