//! The rules of the [contract](cq_core::contract) as checks, for a transport, a software queue or an entry of your own. Each
//! list of checks is an iterator, and [`run`] runs them:
//!
//! | list | for | which is | rules |
//! |---|---|---|---|
//! | [`polling`] | a transport that is polled | a [`Fixture`] | [P1](cq_core::contract#p1)–[P7](cq_core::contract#p7) |
//! | [`all`] | a transport that can also raise events | an [`EventFixture`] | and [N1](cq_core::contract#n1)–[N8](cq_core::contract#n8) |
//! | [`software`] | a software queue, with its producer | [`Software`] | and its capacity, overrun and end: [O1](cq_core::contract#o1), [O3](cq_core::contract#o3), [O5](cq_core::contract#o5), [O7](cq_core::contract#o7), [S1](cq_core::contract#s1)–[S4](cq_core::contract#s4), [S8](cq_core::contract#s8) |
//! | [`in_place`] | a software queue whose entries are taken in place | [`Software`], its consumer [`InPlace`] | and [S7](cq_core::contract#s7) |
//! | `entry`, feature `std` | an entry of the engine's own queues | [`Numbered`] | all of these |
//!
//! The whole of a transport that is polled, and its check. [A guide](crate::guide::your_transport) has one with events:
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};
//!
//! use cq_core::transport::{PollCq, PollError};
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_testing::rules::{self, Fixture, Kind};
//!
//! /// What a DMA engine writes: 0 until a transfer is done, then how it went.
//! type Ring = [AtomicU32; 4];
//! const DONE: u32 = 1;
//!
//! /// The transport under test. The number of a completion is its position.
//! struct Driver {
//!     ring: Arc<Ring>,
//!     next: u64,
//! }
//!
//! impl PollCq for Driver {
//!     type Entry = Wc;
//!
//!     fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
//!         let mut count = 0;
//!         while count < out.len() {
//!             let status = match self.ring[self.next as usize % 4].swap(0, Acquire) {
//!                 0 => break,
//!                 DONE => WcStatus::SUCCESS,
//!                 _ => WcStatus::GENERAL_ERR,
//!             };
//!             out[count] = Wc::new(self.next, status, 0);
//!             (count, self.next) = (count + 1, self.next + 1);
//!         }
//!         Ok(count)
//!     }
//! }
//!
//! /// The transport and its device.
//! struct Bench(Driver);
//!
//! impl Fixture for Bench {
//!     type Queue = Driver;
//!     const CAPACITY: usize = 4;
//!     // No completion is solicited.
//!     const KINDS: &'static [Kind] = &[Kind::Send, Kind::Failure];
//!
//!     fn new() -> Self {
//!         Self(Driver { ring: Arc::default(), next: 0 })
//!     }
//!     fn queue(&mut self) -> &mut Driver {
//!         &mut self.0
//!     }
//!     fn complete(&mut self, kind: Kind, number: u64) {
//!         let word = if kind == Kind::Failure { 2 } else { DONE };
//!         self.0.ring[number as usize % 4].store(word, Release);
//!     }
//!     fn expected(&self, kind: Kind, number: u64) -> Wc {
//!         let status = if kind == Kind::Failure { WcStatus::GENERAL_ERR } else { WcStatus::SUCCESS };
//!         Wc::new(number, status, 0)
//!     }
//! }
//!
//! fn main() -> Result<(), rules::RuleError> {
//!     let ran = rules::run(rules::polling::<Bench>())?;
//!     assert_eq!(ran.to_string(), "7 checks passed, 0 not applicable");
//!     Ok(())
//! }
//! ```
//!
//! A check that needs a [kind](Fixture::KINDS) of completion that the device does not have is not applicable. It is counted as
//! such, and its [`Check::run`] is `None`. A single check is picked by its [name](Check::name):
//! `rules::polling::<Bench>().filter(|check| check.name == "p01_order")`.
//!
//! The checks run on one thread. Use a model checker to find races between threads. The checks can't see system calls,
//! allocations and locks of a poll ([P5](cq_core::contract#p5)), only that a poll returns.

mod arming;
#[cfg(feature = "std")]
mod entry;
mod in_place;
mod numbered;
mod polling;
mod software;
mod storing;
mod tested;

use core::fmt;

use bytemuck::Pod;
use cq_core::transport::{Arm, CqKey, Events, PollCq};

pub use self::arming::all;
#[cfg(feature = "std")]
pub use self::entry::entry;
pub use self::in_place::{InPlace, Taken, in_place};
pub use self::numbered::{Kind, Numbered};
pub use self::polling::polling;
pub use self::software::{Consume, Produce, Software};
pub use self::storing::software;
use self::tested::Tested;

/// A transport under test: one queue, and the device behind it.
pub trait Fixture {
    /// The queue. Its entries are [`Wc`](cq_core::wc::Wc)s, or any others that can be compared.
    type Queue: PollCq<Entry: PartialEq>;
    /// How many completions the queue holds without being polled; at least 2.
    const CAPACITY: usize;
    /// The kinds of completion that the device has. At least one must not be [urgent](Kind::is_urgent): a device whose
    /// completions are all alike has [`Send`](Kind::Send).
    const KINDS: &'static [Kind] = &Kind::ALL;

    /// A new queue, empty and not armed.
    fn new() -> Self;

    /// The queue.
    fn queue(&mut self) -> &mut Self::Queue;

    /// The device completes a request of one of its [kinds](Self::KINDS). When this returns, the completion can be polled,
    /// and its event, if any, can be taken. The numbers of a fixture count from 0, so a device that numbers its completions
    /// itself can ignore them.
    fn complete(&mut self, kind: Kind, number: u64);

    /// The entry that a poll must return for it. For a [`Wc`](cq_core::wc::Wc) whose `wr_id` is the number, start from
    /// [`Kind::wc`].
    fn expected(&self, kind: Kind, number: u64) -> EntryOf<Self>;

    /// Whether `entry` is the entry for it. By default it equals the [expected](Self::expected) one. Override this for a device
    /// that leaves fields undefined ([C4](cq_core::contract#c4)), and compare what is defined: of a
    /// [`Wc`](cq_core::wc::Wc) the [`result`](cq_core::wc::Wc::result).
    fn is_expected(&self, entry: &EntryOf<Self>, kind: Kind, number: u64) -> bool {
        *entry == self.expected(kind, number)
    }
}

/// A transport under test that can raise events.
pub trait EventFixture: Fixture<Queue: Arm> {
    /// The channel that they are raised on.
    type Channel: Events;

    /// The channel.
    fn channel(&mut self) -> &mut Self::Channel;
}

/// What the queue of a fixture holds.
pub type EntryOf<F> = <<F as Fixture>::Queue as PollCq>::Entry;

/// A rule that the transport breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the transport breaks {rule}: {how}")]
pub struct RuleError {
    /// The rule's number.
    pub rule: &'static str,
    /// How the transport breaks it.
    pub how: &'static str,
}

/// A check of a rule.
///
/// ```
/// use cq_testing::entries::Bytes4;
/// use cq_testing::rules;
///
/// let check = rules::entry::<Bytes4>().find(|check| check.name == "p01_order").unwrap();
/// let run = check.run.expect("the entry has all kinds of completion");
/// run()?;
/// # Ok::<(), rules::RuleError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The rule, and what is checked: `p01_order`.
    pub name: &'static str,
    /// The check itself, which makes its fixtures. `None` if it is not applicable: the device has no completions of the
    /// [kind](Fixture::KINDS) that it needs.
    pub run: Option<fn() -> Result<(), RuleError>>,
}

/// Checks on these types, each with the kind of completion that it needs.
macro_rules! checks {
    ($($check:ident::<$of:ty> $(needs $kind:ident)?),+ $(,)?) => {
        [$($crate::rules::Check {
            name: stringify!($check),
            run: (true $(&& <$of>::KINDS.contains(&Kind::$kind))?).then_some($check::<$of> as _),
        }),+].into_iter()
    };
}
use checks;

/// How many checks [`run`] has run.
///
/// ```
/// use cq_testing::entries::Bytes4;
/// use cq_testing::rules;
///
/// let of_events = rules::entry::<Bytes4>().filter(|check| check.name.starts_with('n'));
/// let ran = rules::run(of_events)?;
/// assert!(ran.passed > 0 && ran.not_applicable == 0, "{ran}");
/// # Ok::<(), rules::RuleError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "some checks may not have run"]
pub struct Ran {
    /// How many ran, and passed.
    pub passed: usize,
    /// How many did not run, since they are not applicable.
    pub not_applicable: usize,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checks passed, {} not applicable", self.passed, self.not_applicable)
    }
}

/// Runs checks, one after another.
///
/// # Errors
/// The first rule that is broken.
pub fn run(checks: impl IntoIterator<Item = Check>) -> Result<Ran, RuleError> {
    let mut ran = Ran::default();
    for check in checks {
        match check.run {
            Some(run) => {
                run()?;
                ran.passed += 1;
            }
            None => ran.not_applicable += 1,
        }
    }
    Ok(ran)
}

/// Fails with the broken rule if `is` is false.
fn holds(is: bool, rule: &'static str, how: &'static str) -> Result<(), RuleError> {
    if is { Ok(()) } else { Err(RuleError { rule, how }) }
}

/// Polls. An error, or a count above the buffer's length, breaks a rule.
fn poll<Q: PollCq>(queue: &mut Q, out: &mut [Q::Entry]) -> Result<usize, RuleError> {
    let asked = out.len();
    let how = "a poll of a queue that works failed";
    let count = queue.poll_into(out).map_err(|_| RuleError { rule: "P3", how })?;
    holds(count <= asked, "P7", "a poll claimed more completions than it was asked for")?;
    Ok(count)
}

/// Takes all events, and returns how many there were. Each must name the queue.
fn events<F: EventFixture>(fixture: &mut F) -> Result<usize, RuleError> {
    let key = fixture.queue().key();
    events_of(fixture.channel(), key)
}

/// Takes all events of a channel. Each must have this key.
fn events_of(channel: &mut impl Events, key: CqKey) -> Result<usize, RuleError> {
    /// More events than any check raises.
    const MANY: usize = 64;
    holds(channel.serves(key), "N8", "the channel says that it does not serve its queue")?;
    for count in 0..MANY {
        match channel.take_event() {
            Ok(None) => return Ok(count),
            Ok(Some(of)) => holds(of == key, "N8", "an event names another queue")?,
            Err(_) => {
                return Err(RuleError { rule: "N7", how: "the channel can't be read" });
            }
        }
    }
    let how = "taking an event does not acknowledge it: it comes again and again";
    Err(RuleError { rule: "N7", how })
}

/// A buffer to poll into.
fn buffer<E: Pod, const N: usize>() -> [E; N] {
    [E::zeroed(); N]
}
