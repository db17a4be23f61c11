//! The engine's queues, with any entry.

use core::cell::Cell;
use core::marker::PhantomData;
use std::boxed::Box;
use std::rc::Rc;
use std::vec::Vec;

use cq_core::queue::{self, Consumer, OnChannel, Producer};
use cq_core::transport::{CqKey, EventError, Events, Signal};

use super::software::of_a_software_queue;
use super::{Broken, Check, Numbered, Software, checks, s07_in_place};

const KEY: CqKey = CqKey { index: 3, generation: 9 };

/// Events that were not taken yet.
#[derive(Clone, Default)]
struct Count(Rc<Cell<u32>>);

impl Signal for Count {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        self.0.set(self.0.get() + 1);
    }
}

impl Events for Count {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let left = self.0.get().checked_sub(1);
        self.0.set(left.unwrap_or(0));
        Ok(left.map(|_| KEY))
    }
}

/// Kinds of queue. One on the heap has more slots than its capacity. Inline storage is leaked, since sides borrow it.
macro_rules! queues {
    ($($name:ident: $producer:ident, $consumer:ident, $capacity:literal, $queue:expr;)+) => {$(
        struct $name<E>(PhantomData<E>);

        impl<E: Numbered> Software for $name<E> {
            type Entry = E;
            type Producer = $producer<'static, E, Count>;
            type Consumer = $consumer<'static, E, OnChannel<Count>>;
            type Channel = Count;
            const CAPACITY: usize = $capacity;

            fn new() -> (Self::Producer, Self::Consumer, Count) {
                let channel = Count::default();
                let (producer, consumer) = $queue.split_with(channel.clone());
                (producer, consumer, channel)
            }
        }
    )+};
}

queues! {
    Inline: Producer, Consumer, 4, Box::leak(Box::new(queue::SoftCq::<4, E>::of_entries()));
    Heap: Producer, Consumer, 6, queue::HeapCq::<E>::of_entries(6).expect("a valid capacity");
}

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod shared {
    use cq_core::queue::mpsc::{HeapCq, SharedConsumer, SharedProducer, SoftCq};

    use super::*;

    queues! {
        Inline: SharedProducer, SharedConsumer, 4, Box::leak(Box::new(SoftCq::<4, E>::of_entries()));
        Heap: SharedProducer, SharedConsumer, 6, HeapCq::<E>::of_entries(6).expect("a valid capacity");
    }

    pub fn checks_of<E: Numbered>() -> impl Iterator<Item = Check> {
        of_a_software_queue::<Inline<E>>().chain(of_a_software_queue::<Heap<E>>())
    }
}

/// Checks an entry: every kind of queue in [`cq_core::queue`] but raw ones keeps the rules with it.
///
/// ```
/// use cq_testing::entries::Bytes16;
///
/// cq_testing::rules::entry::<Bytes16>()?;
/// # Ok::<(), cq_testing::rules::Broken>(())
/// ```
///
/// # Errors
/// The first rule that is broken.
pub fn entry<E: Numbered>() -> Result<(), Broken> {
    of_an_entry::<E>().into_iter().try_for_each(|(_, check)| check())
}

/// The checks of [`entry()`]. There is one of each name for each kind of queue.
#[must_use]
pub fn of_an_entry<E: Numbered>() -> Vec<Check> {
    let in_place = checks![s07_in_place::<Inline<E>>(), s07_in_place::<Heap<E>>(),];
    let lone = of_a_software_queue::<Inline<E>>().chain(of_a_software_queue::<Heap<E>>());
    let checks = lone.chain(in_place);
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    let checks = checks.chain(shared::checks_of::<E>());
    checks.collect()
}
