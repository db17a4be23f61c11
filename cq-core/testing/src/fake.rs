//! A scripted transport, for tests of code that polls, arms, waits and posts.
//!
//! This tests a consumer loop against a race that can't be provoked on a real device: completions arrive between the
//! empty poll and the arm, so they raise no event.
//!
//! ```
//! use core::time::Duration;
//! use cq_core::cq::{CompletionQueue, WaitError};
//! use cq_core::transport::{Arm, Armed, Block, CqKey, Notify};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::polling::ArmWc;
//! use cq_testing::fake::{Call, Script};
//!
//! /// The code under test: polls until the deadline. Returns the number of completions.
//! fn serve<C: Block>(queue: impl ArmWc, channel: &mut C, end: C::Instant) -> Result<usize, WaitError> {
//!     let (mut cq, mut buffer, mut served) = (CompletionQueue::new(queue), [Wc::default(); 4], 0);
//!     loop {
//!         match cq.wait(&mut buffer, channel, Some(end))?.len() {
//!             0 => return Ok(served),
//!             count => served += count,
//!         }
//!     }
//! }
//!
//! let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5);
//! let script = Script::<16>::new(CqKey { index: 0, generation: 1 })
//!     .on_arm(Ok(Armed::MayHaveMissed)) // the race is lost:
//!     .on_poll(Ok(&[wc(1), wc(2)])); // these raise no event
//!
//! let second = Duration::from_secs(1);
//! assert_eq!(serve(&script, &mut &script, second), Ok(2));
//! script.done()?;
//! let arm = Call::Arm(Notify::Next);
//! assert_eq!(script.calls(), [
//!     Call::Poll(4), Call::Event, arm, Call::Poll(4), // both polled
//!     Call::Poll(4), Call::Event, arm, Call::Block(Some(second)), Call::Poll(4), // deadline passed
//! ]);
//! # Ok::<(), cq_testing::fake::UnfinishedError>(())
//! ```
//!
//! # How a script runs
//! A script is one timeline for the queue, its channel and its queue pair. The next step waits for the call that it
//! answers. Every other call finds an idle device:
//!
//! | call | answer if the next step is for another call, or no step is left |
//! |---|---|
//! | poll | no completions; after an overrun, the overrun again ([O3](cq_core::contract#o3)) |
//! | arm | `MayHaveMissed` after an overrun, or if the step is a poll with completions or an error; else `Armed` ([N2](cq_core::contract#n2)) |
//! | take an event of either kind | none |
//! | block | `Event` if the step is an event; else sleeps until the deadline; without a deadline, [`ASLEEP_FOR_EVER`] |
//! | post | every request is accepted |
//!
//! So a completion scripted after an arm can't be polled before the arm, and one after `on_send(Ok(2))` can't be polled
//! before two requests were posted. Code that sleeps without a deadline where it should poll gets an error instead of
//! hanging.
//!
//! The script's clock starts at zero and advances only while a block sleeps. Deadlines are times of this clock. A loop
//! that never blocks does not reach a deadline: end its script with an error.

mod answers;
mod call;

use core::cell::RefCell;
use core::time::Duration;

use cq_core::transport::{ArmError, Armed, CqKey, EventError, PollError};
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::post::WrError;
use heapless::{Deque, Vec};

pub use self::call::Call;

/// The error of a block without a deadline that no step ends: the code under test would sleep forever. The code is
/// EDEADLK.
pub const ASLEEP_FOR_EVER: EventError = EventError::Device(35);

/// A completion queue, its channel and a queue pair that follow a script of up to `N` steps and record up to `N` calls.
///
/// `&Script` implements the transport traits: use `CompletionQueue::new(&script)`, and `&mut &script` as the channel.
///
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::transport::CqKey;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::fake::{Call, Script};
///
/// let key = CqKey { index: 0, generation: 1 };
/// let script = Script::<4>::new(key).on_poll(Ok(&[Wc::new(7, WcStatus::SUCCESS, 5)]));
/// let mut cq = CompletionQueue::new(&script);
/// assert_eq!(cq.pop()?.map(|wc| wc.wr_id()), Some(7));
/// assert_eq!(script.calls(), [Call::Poll(1)]);
/// script.done()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
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
    /// The time on the script's clock.
    now: Duration,
}

/// A step of a script.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A poll finds this completion. True if it is the last of its poll.
    Found(Wc, bool),
    /// A poll returns this, and writes no completion.
    Poll(Result<usize, PollError>),
    Arm(Result<Armed, ArmError>),
    Event(Result<CqKey, EventError>),
    Async(Result<AsyncEvent, EventError>),
    Block(Result<Duration, EventError>),
    Interrupt,
    Post(Side, Result<u32, WrError>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Send,
    Recv,
}

/// Writing a script. Each method appends a step.
///
/// # Panics
/// Each method that appends a step, if the script has `N` steps already. [`on_poll`](Script::on_poll) takes one step
/// for each completion.
impl<const N: usize> Script<N> {
    /// An empty script: an idle device with one queue of this key.
    pub const fn new(key: CqKey) -> Self {
        let state =
            State { steps: Deque::new(), calls: Vec::new(), overrun: None, now: Duration::ZERO };
        Self { key, state: RefCell::new(state) }
    }

    /// A poll finds these completions, and then the queue is empty ([P2](cq_core::contract#p2)). If the buffer is too
    /// small, the next polls find the rest. An empty list is one poll that finds nothing.
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

    /// A poll claims `count` completions and writes none. If the buffer is smaller, the transport misbehaves
    /// ([P7](cq_core::contract#p7)).
    #[track_caller]
    pub fn on_poll_claim(self, count: usize) -> Self {
        self.with(Step::Poll(Ok(count)))
    }

    /// An arm returns this.
    #[track_caller]
    pub fn on_arm(self, answer: Result<Armed, ArmError>) -> Self {
        self.with(Step::Arm(answer))
    }

    /// The channel has this event. A block ends at once.
    #[track_caller]
    pub fn on_event(self, event: Result<CqKey, EventError>) -> Self {
        self.with(Step::Event(event))
    }

    /// The device has this asynchronous event.
    #[track_caller]
    pub fn on_async(self, event: Result<AsyncEvent, EventError>) -> Self {
        self.with(Step::Async(event))
    }

    /// A block ends with a spurious wake-up after this time, or at its deadline if that is not later.
    #[track_caller]
    pub fn on_block(self, woken_after: Result<Duration, EventError>) -> Self {
        self.with(Step::Block(woken_after))
    }

    /// A block is interrupted at once.
    #[track_caller]
    pub fn on_interrupt(self) -> Self {
        self.with(Step::Interrupt)
    }

    /// The send queue accepts this many requests, in one list or several; or it refuses one.
    #[track_caller]
    pub fn on_send(self, taken: Result<u32, WrError>) -> Self {
        self.with_post(Side::Send, taken)
    }

    /// The receive queue accepts this many requests, in one list or several; or it refuses one.
    #[track_caller]
    pub fn on_recv(self, taken: Result<u32, WrError>) -> Self {
        self.with_post(Side::Recv, taken)
    }

    #[track_caller]
    fn with_post(self, side: Side, taken: Result<u32, WrError>) -> Self {
        if taken == Ok(0) { self } else { self.with(Step::Post(side, taken)) }
    }

    #[track_caller]
    fn with(mut self, step: Step) -> Self {
        let full = self.state.get_mut().steps.push_back(step).is_err();
        assert!(!full, "the script holds {N} steps: give it more, as `Script::<{}>`", 2 * N);
        self
    }
}

/// Checking what happened.
impl<const N: usize> Script<N> {
    /// Checks that every step was reached.
    ///
    /// # Errors
    /// Steps are left: the code under test ended early, or made other calls.
    pub fn done(&self) -> Result<(), UnfinishedError> {
        let state = self.state.borrow();
        match state.steps.front() {
            None => Ok(()),
            Some(step) => {
                Err(UnfinishedError { left: state.steps.len(), waits_for: step.awaits() })
            }
        }
    }

    /// The time on the script's clock: how long all blocks have slept.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.state.borrow().now
    }

    /// The calls of the code under test, in order. If there were more than `N`, the last entry is [`Call::Unrecorded`].
    #[must_use]
    pub fn calls(&self) -> Vec<Call, N> {
        self.state.borrow().calls.clone()
    }
}

/// Steps of a script that were not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{left} steps of the script were not reached: the next one waits for {waits_for}")]
pub struct UnfinishedError {
    /// How many steps.
    pub left: usize,
    /// The call that the first of them waits for.
    pub waits_for: &'static str,
}

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
