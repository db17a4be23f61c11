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
//!     fn key(&self) -> CqKey {
//!         KEY
//!     }
//!     fn raise(&self) {
//!         self.0.borrow_mut().push_back(KEY);
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
//!     device: Producer<'static, Wc, Channel>,
//!     queue: Consumer<'static, Wc, OnChannel<Channel>>,
//!     channel: Channel,
//! }
//!
//! impl Fixture for Mine {
//!     type Queue = Consumer<'static, Wc, OnChannel<Channel>>;
//!     type Channel = Channel;
//!     const CAPACITY: usize = 8;
//!
//!     fn new() -> Self {
//!         let channel = Channel::default();
//!         let (device, queue) = HeapCq::new(8).unwrap().split_with(channel.clone());
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

use cq_core::transport::{Arm, CqKey, Events, PollCq};

pub use self::arming::{
    n01_one_event_for_an_arm, n02_arming_raises_nothing, n03_solicited, n04_never_weakens,
    n05_an_event_may_find_nothing, n06_no_wake_up_is_lost,
};
#[cfg(feature = "std")]
pub use self::entry::{entry, of_an_entry};
pub use self::in_place::{InPlace, Taken, s07_in_place};
pub use self::numbered::{Kind, Numbered};
pub use self::polling::{
    p01_order, p02_polled_is_gone, p03_empty_is_no_error, p04_the_rest_stays, p05_returns,
    p06_empty_buffer, p07_no_more_than_asked,
};
pub use self::software::{Consume, Produce, Software, software};
pub use self::storing::{
    o01_the_capacity_is_kept, o03_the_overrun_comes_last, o05_an_overrun_wakes,
    o07_polled_slots_are_free, s01_full_is_no_overrun, s02_closed_by_the_producer,
    s03_nobody_polls, s04_failed_by_the_consumer, s08_as_pushed,
};

/// A transport under test: one queue, its channel, and the device behind them.
pub trait Fixture {
    /// The queue. Its entries are [`Wc`](cq_core::wc::Wc)s, or others that have numbers.
    type Queue: Arm<Entry: Numbered>;
    /// The channel that its events are raised on.
    type Channel: Events;
    /// How many completions the queue holds without being polled; at least 2.
    const CAPACITY: usize;

    /// A new queue, empty and not armed.
    fn new() -> Self;

    /// The queue.
    fn queue(&mut self) -> &mut Self::Queue;

    /// The channel.
    fn channel(&mut self) -> &mut Self::Channel;

    /// The device completes a request. When this returns, the completion can be polled, and its event, if any, can be
    /// taken.
    fn complete(&mut self, kind: Kind, number: u64);

    /// The entry that a poll must return for it. Override this if the device fills in more than [`Kind::wc`].
    fn expected(&self, kind: Kind, number: u64) -> EntryOf<Self> {
        EntryOf::<Self>::polled(kind, number)
    }
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

/// A check, with its name: `p01_order`.
pub type Check = (&'static str, fn() -> Result<(), Broken>);

/// A list of checks, each with its name.
macro_rules! checks {
    ($($check:ident $(::<$of:ty>)? ($($argument:expr),*),)+) => {
        [$((stringify!($check), (|| $check$(::<$of>)?($($argument),*)) as fn() -> _)),+].into_iter()
    };
}
use checks;

/// Checks all rules, each on a new queue.
///
/// # Errors
/// The first rule that is broken.
pub fn all<F: Fixture>() -> Result<(), Broken> {
    of_a_transport::<F>().try_for_each(|(_, check)| check())
}

/// The checks of a transport.
fn of_a_transport<F: Fixture>() -> impl Iterator<Item = Check> {
    const { assert!(F::CAPACITY >= 2, "the checks need a queue of at least 2") };
    checks![
        p03_empty_is_no_error(&mut F::new()),
        p06_empty_buffer(&mut F::new()),
        p07_no_more_than_asked(&mut F::new()),
        p01_order(&mut F::new()),
        p02_polled_is_gone(&mut F::new()),
        p04_the_rest_stays(&mut F::new()),
        p05_returns(&mut F::new()),
        n01_one_event_for_an_arm(&mut F::new()),
        n02_arming_raises_nothing(&mut F::new()),
        n03_solicited(&mut F::new(), Kind::Solicited),
        n03_solicited(&mut F::new(), Kind::Failure),
        n03_solicited(&mut F::new(), Kind::FailedReceive),
        n04_never_weakens(&mut F::new()),
        n05_an_event_may_find_nothing(&mut F::new()),
        n06_no_wake_up_is_lost(F::new),
    ]
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
fn events<F: Fixture>(fixture: &mut F) -> Result<usize, Broken> {
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
fn buffer<E: Numbered, const N: usize>() -> [E; N] {
    [E::polled(Kind::Send, 0); N]
}

fn named(of: CqKey, key: CqKey) -> Result<(), Broken> {
    holds(of == key, "N8", "an event names another queue")
}
