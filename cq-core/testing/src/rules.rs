//! The rules of the [contract](cq_core::contract) as checks: [`all`] checks a custom transport against those of polling and
//! arming, [P1](cq_core::contract#p1)–[P7](cq_core::contract#p7) and [N1](cq_core::contract#n1)–[N6](cq_core::contract#n6).
//!
//! ```
//! use std::cell::RefCell;
//! use std::collections::VecDeque;
//! use std::rc::Rc;
//!
//! use cq_core::queue::{Consumer, HeapCq, OnChannel, Producer};
//! use cq_core::transport::{CqKey, EventError, Events, Signal};
//! use cq_core::wc::Wc;
//! use cq_testing::rules::{self, Fixture, Kind};
//!
//! const KEY: CqKey = CqKey { index: 0, generation: 1 };
//!
//! #[derive(Clone, Default)]
//! struct Channel(Rc<RefCell<VecDeque<CqKey>>>);
//! impl Signal for Channel {
//!     fn raise(&self, cq: CqKey) {
//!         self.0.borrow_mut().push_back(cq);
//!     }
//! }
//! impl Events for Channel {
//!     fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
//!         Ok(self.0.borrow_mut().pop_front())
//!     }
//! }
//!
//! /// The transport under test. Here it is the engine's own queue.
//! struct Mine {
//!     device: Producer<'static, Wc, OnChannel<Channel>>,
//!     queue: Consumer<'static, Wc, OnChannel<Option<Channel>>>,
//!     channel: Channel,
//! }
//!
//! impl Fixture for Mine {
//!     type Queue = Consumer<'static, Wc, OnChannel<Option<Channel>>>;
//!     type Channel = Channel;
//!     const CAPACITY: usize = 8;
//!
//!     fn new() -> Self {
//!         let channel = Channel::default();
//!         let (device, queue) = HeapCq::new(8).unwrap().split_with(KEY, channel.clone());
//!         Self { device, queue, channel }
//!     }
//!     fn queue(&mut self) -> &mut Self::Queue {
//!         &mut self.queue
//!     }
//!     fn channel(&mut self) -> &mut Channel {
//!         &mut self.channel
//!     }
//!     fn complete(&mut self, kind: Kind, wr_id: u64) {
//!         self.device.push(&kind.entry(wr_id)).unwrap();
//!     }
//! }
//!
//! rules::all::<Mine>()?;
//! # Ok::<(), rules::Broken>(())
//! ```
//!
//! Overrun and the end of the queue are checked by [`software`], of a queue whose producer is software. `entry`, feature `std`,
//! checks the engine's own queues with an [entry](cq_core::entry) of yours.
//!
//! The checks run on one thread. Use a model checker to find races between threads. The checks can't see system calls,
//! allocations and locks of a poll ([P5](cq_core::contract#p5)): [`p05_returns`] checks that a poll returns.

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
    /// The kinds of completion that the device has. At least one must not be [urgent](Kind::is_urgent). What there is one kind
    /// of has any name: the transfers of a DMA engine are [sends](Kind::Send), say.
    const KINDS: &'static [Kind] = &Kind::ALL;

    /// A new queue, empty and not armed.
    fn new() -> Self;

    /// The queue.
    fn queue(&mut self) -> &mut Self::Queue;

    /// The device completes a request of one of its [kinds](Self::KINDS). When this returns, the completion can be polled,
    /// and its event, if any, can be taken. The number is that of completions so far: a device that numbers them on its own
    /// need not be told.
    fn complete(&mut self, kind: Kind, number: u64);

    /// The entry that a poll must return for it. For a [`Wc`](cq_core::wc::Wc) whose `wr_id` is the number, start from
    /// [`Kind::wc`].
    fn expected(&self, kind: Kind, number: u64) -> EntryOf<Self>;
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transport breaks {rule}: {how}")]
pub struct Broken {
    /// The rule's number.
    pub rule: &'static str,
    /// How the transport breaks it.
    pub how: &'static str,
}

/// A check of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The rule, and what is checked: `p01_order`.
    pub name: &'static str,
    /// Runs the check, on fixtures of its own. `None` if it does not apply: the device has no completions of the
    /// [kind](Fixture::KINDS) that it needs.
    pub run: Option<fn() -> Result<(), Broken>>,
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

/// How many checks [ran](run).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "not all checks apply to each transport"]
pub struct Ran {
    /// Those that passed.
    pub passed: usize,
    /// Those that did not run, since they don't apply.
    pub not_applicable: usize,
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checks passed, {} do not apply", self.passed, self.not_applicable)
    }
}

/// Runs checks, those that apply.
///
/// # Errors
/// The first rule that is broken.
pub fn run(checks: impl IntoIterator<Item = Check>) -> Result<Ran, Broken> {
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
fn holds(is: bool, rule: &'static str, how: &'static str) -> Result<(), Broken> {
    if is { Ok(()) } else { Err(Broken { rule, how }) }
}

/// Polls. An error, or a count above the buffer's length, breaks a rule.
fn poll<Q: PollCq>(queue: &mut Q, out: &mut [Q::Entry]) -> Result<usize, Broken> {
    let asked = out.len();
    let count = queue.poll(out);
    let count =
        count.map_err(|_| Broken { rule: "P3", how: "a poll of a queue that works failed" })?;
    holds(count <= asked, "P7", "a poll claimed more completions than it was asked for")?;
    Ok(count)
}

/// Takes all events, and returns how many there were. Each must name the queue.
fn events<F: EventFixture>(fixture: &mut F) -> Result<usize, Broken> {
    let key = fixture.queue().key();
    events_of(fixture.channel(), key)
}

/// Takes all events of a channel. Each must have this key.
fn events_of(channel: &mut impl Events, key: CqKey) -> Result<usize, Broken> {
    /// More events than any check raises.
    const MANY: usize = 64;
    for count in 0..MANY {
        match channel.take_event() {
            Ok(None) => return Ok(count),
            Ok(Some(of)) => named(of, key)?,
            Err(_) => {
                return Err(Broken { rule: "N7", how: "the channel can't be read" });
            }
        }
    }
    Err(Broken {
        rule: "N7",
        how: "taking an event does not acknowledge it: it comes again and again",
    })
}

/// A buffer to poll into.
fn buffer<E: Pod, const N: usize>() -> [E; N] {
    [E::zeroed(); N]
}

fn named(of: CqKey, key: CqKey) -> Result<(), Broken> {
    holds(of == key, "N8", "an event names another queue")
}
