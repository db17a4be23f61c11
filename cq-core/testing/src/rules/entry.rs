//! The engine's queues, with any entry.

use core::cell::Cell;
use core::marker::PhantomData;
use std::boxed::Box;
use std::rc::Rc;

use cq_core::queue::{self, Consumer, OnChannel, Producer};
use cq_core::transport::{CqKey, EventError, Events, Signal};

use super::{Check, Numbered, Software, in_place};

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
    use crate::rules;

    queues! {
        Inline: SharedProducer, SharedConsumer, 4, Box::leak(Box::new(SoftCq::<4, E>::of_entries()));
        Heap: SharedProducer, SharedConsumer, 6, HeapCq::<E>::of_entries(6).expect("a valid capacity");
    }

    pub fn checks<E: Numbered>() -> impl Iterator<Item = Check> {
        rules::software::<Inline<E>>().chain(rules::software::<Heap<E>>())
    }
}

/// The checks of an entry: those of every kind of queue in [`cq_core::queue`] but raw ones, with this entry. There is one of
/// each name for each kind of queue.
///
/// ```
/// use cq_testing::entries::Bytes16;
/// use cq_testing::rules;
///
/// println!("{}", rules::run(rules::entry::<Bytes16>())?);
/// # Ok::<(), rules::RuleError>(())
/// ```
pub fn entry<E: Numbered>() -> impl Iterator<Item = Check> {
    let checks = in_place::<Inline<E>>().chain(in_place::<Heap<E>>());
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    let checks = checks.chain(shared::checks::<E>());
    checks
}
