//! A scripted transport, for tests of code that polls, arms, waits and posts. Feature `test-util`.
//!
//! A serving loop is tested against a race that no real device could be made to lose at will: completions
//! come between the empty poll and the arm, so that no event will tell of them.
//!
//! ```
//! use core::time::Duration;
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::testing::fake::{Call, Script};
//! use cq_core::transport::{Arm, Armed, Block, CqKey, Notify};
//! use cq_core::wc::{Wc, WcStatus};
//!
//! /// The code under test: serves until the deadline; says how many came.
//! fn serve<C: Block>(queue: impl Arm, channel: &mut C, end: C::Instant) -> Result<usize, WaitError> {
//!     let (mut cq, mut room, mut served) = (CompletionQueue::new(queue), [Wc::default(); 4], 0);
//!     loop {
//!         match cq.wait(&mut room, channel, Some(end))?.len() {
//!             0 => return Ok(served),
//!             count => served += count,
//!         }
//!     }
//! }
//!
//! let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5);
//! let script = Script::<16>::new(CqKey { index: 0, generation: 1 })
//!     .on_arm(Ok(Armed::MayHaveMissed)) // the race is lost,
//!     .on_poll(Ok(&[wc(1), wc(2)])); //    and these raise no event
//!
//! let second = Duration::from_secs(1);
//! assert_eq!(serve(&script, &mut &script, second), Ok(2));
//! script.done()?;
//! let arm = Call::Arm(Notify::Next);
//! assert_eq!(script.calls(), [
//!     Call::Poll(4), Call::Event, arm, Call::Poll(4), // both served
//!     Call::Poll(4), Call::Event, arm, Call::Block(Some(second)), Call::Poll(4), // none came
//! ]);
//! # Ok::<(), cq_core::testing::fake::Unfinished>(())
//! ```
//!
//! # How a script is read
//! It is one line of time for the queue, its channel and its queue pair. The first step left waits for the
//! call that it answers; every other call finds a device where nothing goes on:
//!
//! | call | what it gets when the step is not its own, or none is left |
//! |---|---|
//! | poll | nothing; after an overrun, the overrun, for ever (O3) |
//! | arm | `MayHaveMissed` if the step is a poll that finds something or fails, else `Armed` (N2) |
//! | taking an event, of either kind | none |
//! | block | `Event` if the step is an event; else the deadline passes; without one, [`ASLEEP_FOR_EVER`] |
//! | post | every request is taken |
//!
//! So what stands behind an arm is not there before the arm, what stands behind `on_send(Ok(2))` not before
//! two requests were posted, and code that sleeps where it should have polled is told so instead of
//! hanging. Its clock says how long blocks have slept so far, from zero on, and a deadline is a time of that clock.
//! A loop that only polls ends by what it finds: let its script end with an error.

mod answers;
mod call;

pub use self::call::Call;

use core::cell::RefCell;
use core::fmt;
use core::time::Duration;

use heapless::{Deque, Vec};

use crate::async_event::AsyncEvent;
use crate::transport::{ArmError, Armed, CqKey, EventError, PollError, Refused};
use crate::wc::Wc;

/// What a block gets that has no deadline and that nothing in the script ends: the code under test would
/// sleep for ever. The code is EDEADLK.
pub const ASLEEP_FOR_EVER: EventError = EventError::Device(35);

/// A completion queue, its channel and a queue pair that answer by a script of up to `N` steps, and note
/// the first `N` calls.
///
/// References to it are the transport: `CompletionQueue::new(&script)`, and `&mut &script` for the channel.
#[derive(Debug)]
pub struct Script<const N: usize> {
    key: CqKey,
    state: RefCell<State<N>>,
}

#[derive(Debug)]
struct State<const N: usize> {
    steps: Deque<Step, N>,
    calls: Vec<Call, N>,
    overrun: Option<PollError>,
    /// How long blocks have slept so far.
    now: Duration,
}

/// What the device does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A completion is found, and none behind it if it is the last of its poll.
    Found(Wc, bool),
    /// A poll claims so many, and writes none.
    Poll(Result<usize, PollError>),
    Arm(Result<Armed, ArmError>),
    Event(Result<CqKey, EventError>),
    Async(Result<AsyncEvent, EventError>),
    Block(Result<Duration, EventError>),
    Interrupt,
    Post(Side, Result<u32, Refused>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Send,
    Recv,
}

/// What is scripted. Each method adds a step behind those that there are.
///
/// # Panics
/// All of them, when the script has no room: there are `N` steps already. A poll that finds completions
/// takes one step for each.
impl<const N: usize> Script<N> {
    /// A device where nothing goes on, with one queue of this name.
    #[must_use]
    pub const fn new(key: CqKey) -> Self {
        let state =
            State { steps: Deque::new(), calls: Vec::new(), overrun: None, now: Duration::ZERO };
        Self { key, state: RefCell::new(state) }
    }

    /// A poll finds these, and the queue is empty then (P2): one that has less room leaves the rest to the
    /// next. An empty list is one poll that finds nothing.
    #[must_use]
    #[track_caller]
    pub fn on_poll(self, found: Result<&[Wc], PollError>) -> Self {
        match found {
            Err(error) => self.with(Step::Poll(Err(error))),
            Ok([]) => self.with(Step::Poll(Ok(0))),
            Ok([before @ .., last]) => {
                let mut script = self;
                for &wc in before {
                    script = script.with(Step::Found(wc, false));
                }
                script.with(Step::Found(*last, true))
            }
        }
    }

    /// A poll claims so many, and writes none: a transport that misbehaves if there is less room (P7).
    #[must_use]
    #[track_caller]
    pub fn on_poll_claim(self, count: usize) -> Self {
        self.with(Step::Poll(Ok(count)))
    }

    /// An arm says this.
    #[must_use]
    #[track_caller]
    pub fn on_arm(self, answer: Result<Armed, ArmError>) -> Self {
        self.with(Step::Arm(answer))
    }

    /// The channel has this event, which ends a block at once.
    #[must_use]
    #[track_caller]
    pub fn on_event(self, event: Result<CqKey, EventError>) -> Self {
        self.with(Step::Event(event))
    }

    /// The device has this asynchronous event.
    #[must_use]
    #[track_caller]
    pub fn on_async(self, event: Result<AsyncEvent, EventError>) -> Self {
        self.with(Step::Async(event))
    }

    /// A block wakes up for nothing after this time, or by its deadline if that is not later.
    #[must_use]
    #[track_caller]
    pub fn on_block(self, woken_after: Result<Duration, EventError>) -> Self {
        self.with(Step::Block(woken_after))
    }

    /// A block is interrupted, at once.
    #[must_use]
    #[track_caller]
    pub fn on_interrupt(self) -> Self {
        self.with(Step::Interrupt)
    }

    /// So many requests are taken by the send queue, in one list or in several; or one is refused.
    #[must_use]
    #[track_caller]
    pub fn on_send(self, taken: Result<u32, Refused>) -> Self {
        self.with_post(Side::Send, taken)
    }

    /// So many requests are taken by the receive queue, in one list or in several; or one is refused.
    #[must_use]
    #[track_caller]
    pub fn on_recv(self, taken: Result<u32, Refused>) -> Self {
        self.with_post(Side::Recv, taken)
    }

    #[track_caller]
    fn with_post(self, side: Side, taken: Result<u32, Refused>) -> Self {
        if taken == Ok(0) { self } else { self.with(Step::Post(side, taken)) }
    }

    #[track_caller]
    fn with(mut self, step: Step) -> Self {
        let full = self.state.get_mut().steps.push_back(step).is_err();
        assert!(!full, "the script has room for {N} steps: give it more, as `Script::<{}>`", 2 * N);
        self
    }
}

/// What happened.
impl<const N: usize> Script<N> {
    /// Whether every step was reached.
    ///
    /// # Errors
    /// The code under test ended, or went another way, before.
    pub fn done(&self) -> Result<(), Unfinished> {
        let state = self.state.borrow();
        match state.steps.front() {
            None => Ok(()),
            Some(step) => Err(Unfinished { left: state.steps.len(), waits_for: step.awaits() }),
        }
    }

    /// The time on the script's clock: how long blocks have slept so far.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.state.borrow().now
    }

    /// What the code under test did, in order. When there were more than `N` calls, the last entry is
    /// [`Call::Unrecorded`].
    #[must_use]
    pub fn calls(&self) -> Vec<Call, N> {
        self.state.borrow().calls.clone()
    }
}

/// The script has steps that were not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// How many.
    pub left: usize,
    /// The call that the first of them waits for.
    pub waits_for: &'static str,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, waits_for } = self;
        write!(f, "{left} steps of the script were not reached: the next one waits for {waits_for}")
    }
}

impl core::error::Error for Unfinished {}

impl Step {
    const fn awaits(&self) -> &'static str {
        match self {
            Self::Found(..) | Self::Poll(_) => "a poll",
            Self::Arm(_) => "an arm",
            Self::Event(_) => "an event to be taken",
            Self::Async(_) => "an asynchronous event to be taken",
            Self::Block(_) | Self::Interrupt => "a block",
            Self::Post(Side::Send, _) => "a request to be posted to the send queue",
            Self::Post(Side::Recv, _) => "a request to be posted to the receive queue",
        }
    }
}
