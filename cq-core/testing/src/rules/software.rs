//! A software queue under test, and what its sides have in common.

use cq_core::queue::{self, Dropped, OnChannel, TryPushError, raw};
use cq_core::transport::{Arm, Capacity, Events, Signal};

#[cfg(doc)]
use super::all;
use super::{
    Broken, Check, Fixture, Kind, Numbered, checks, o01_the_capacity_is_kept,
    o03_the_overrun_comes_last, o05_an_overrun_wakes, o07_polled_slots_are_free, of_a_transport,
    s01_full_is_no_overrun, s02_closed_by_the_producer, s03_nobody_polls,
    s04_failed_by_the_consumer, s08_as_pushed,
};

/// A software queue under test, with both sides in hand.
pub trait Software {
    /// What it holds.
    type Entry: Numbered;
    /// Its only producer.
    type Producer: Produce<<Self::Entry as Numbered>::Pushed>;
    /// Its consumer.
    type Consumer: Consume<Entry = Self::Entry>;
    /// The channel that its events are raised on.
    type Channel: Events;
    /// The capacity that [`new`](Self::new) asks for, 2 to 16. There may be more slots.
    const CAPACITY: usize;

    /// A new queue, empty and not armed, and its channel.
    fn new() -> (Self::Producer, Self::Consumer, Self::Channel);
}

/// The producer of a software queue, which pushes `T`. Those of [`cq_core::queue`] are.
pub trait Produce<T> {
    /// As [`push`](queue::Producer::push).
    ///
    /// # Errors
    /// The entry was dropped.
    fn push(&mut self, entry: &T) -> Result<(), Dropped>;

    /// As [`push_batch`](queue::Producer::push_batch).
    ///
    /// # Errors
    /// The last entries were dropped.
    fn push_batch(&mut self, batch: &[T]) -> Result<(), Dropped>;

    /// As [`try_push`](queue::Producer::try_push).
    ///
    /// # Errors
    /// The entry was not stored.
    fn try_push(&mut self, entry: &T) -> Result<(), TryPushError>;

    /// As [`try_push_batch`](queue::Producer::try_push_batch).
    ///
    /// # Errors
    /// Nothing was stored.
    fn try_push_batch(&mut self, batch: &[T]) -> Result<usize, TryPushError>;

    /// Whether the consumer is gone.
    fn is_abandoned(&self) -> bool;
}

/// The consumer of a software queue. Those of [`cq_core::queue`] are.
pub trait Consume: Arm + Capacity {
    /// Marks the queue failed.
    fn fail(&mut self);
}

macro_rules! produce {
    ([$($generics:tt)*] $producer:ty, $pushed:ty, $dropped:expr) => {
        impl<$($generics)*> Produce<$pushed> for $producer {
            fn push(&mut self, entry: &$pushed) -> Result<(), Dropped> {
                <$producer>::push(self, entry).map_err($dropped)
            }

            fn push_batch(&mut self, batch: &[$pushed]) -> Result<(), Dropped> {
                <$producer>::push_batch(self, batch).map_err($dropped)
            }

            fn try_push(&mut self, entry: &$pushed) -> Result<(), TryPushError> {
                <$producer>::try_push(self, entry)
            }

            fn try_push_batch(&mut self, batch: &[$pushed]) -> Result<usize, TryPushError> {
                <$producer>::try_push_batch(self, batch)
            }

            fn is_abandoned(&self) -> bool {
                <$producer>::is_abandoned(self)
            }
        }
    };
}

macro_rules! consume {
    ([$($generics:tt)*] $consumer:ty) => {
        impl<$($generics)*> Consume for $consumer {
            fn fail(&mut self) {
                <$consumer>::fail(self);
            }
        }
    };
}

produce!([E: Numbered, S: Signal] queue::Producer<'_, E, S>, E::Pushed, |dropped| dropped);
consume!([E: Numbered, S: Signal] queue::Consumer<'_, E, OnChannel<S>>);
produce!([S: Signal] raw::RawProducer<'_, S>, queue::Tagged, |dropped| dropped);
consume!([S: Signal] raw::RawConsumer<'_, OnChannel<S>>);

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod shared {
    use cq_core::queue::mpsc::{PushError, SharedConsumer, SharedProducer};

    use super::*;

    fn dropped(error: PushError) -> Dropped {
        match error {
            PushError::Dropped(dropped) => dropped,
            error => panic!("{error}"),
        }
    }

    produce!([E: Numbered, S: Signal] SharedProducer<'_, E, S>, E::Pushed, dropped);
    consume!([E: Numbered, S: Signal] SharedConsumer<'_, E, OnChannel<S>>);
}

/// The parts of a new queue.
pub(super) struct Sides<S: Software> {
    pub producer: S::Producer,
    pub consumer: S::Consumer,
    pub channel: S::Channel,
}

impl<S: Software> Fixture for Sides<S> {
    type Queue = S::Consumer;
    type Channel = S::Channel;
    const CAPACITY: usize = S::CAPACITY;

    fn new() -> Self {
        let (producer, consumer, channel) = S::new();
        Self { producer, consumer, channel }
    }

    fn queue(&mut self) -> &mut S::Consumer {
        &mut self.consumer
    }

    fn channel(&mut self) -> &mut S::Channel {
        &mut self.channel
    }

    fn complete(&mut self, kind: Kind, number: u64) {
        let pushed = self.producer.push(&S::Entry::pushed(kind, number));
        assert!(pushed.is_ok(), "a queue overran within its capacity");
    }
}

/// Checks [all] rules of a software queue: besides those of a transport [O1](cq_core::contract#o1),
/// [O3](cq_core::contract#o3), [O5](cq_core::contract#o5), [O7](cq_core::contract#o7),
/// [S1](cq_core::contract#s1)–[S4](cq_core::contract#s4) and [S8](cq_core::contract#s8), each on a new queue.
///
/// # Errors
/// The first rule that is broken.
pub fn software<S: Software>() -> Result<(), Broken> {
    of_a_software_queue::<S>().try_for_each(|(_, check)| check())
}

/// The checks of a software queue, in an order in which a fault is found by the rule that it breaks.
pub(super) fn of_a_software_queue<S: Software>() -> impl Iterator<Item = Check> {
    const { assert!(S::CAPACITY >= 2 && S::CAPACITY <= 16, "the checks need a queue of 2 to 16") };
    let capacity = checks![o01_the_capacity_is_kept::<S>(), o07_polled_slots_are_free::<S>(),];
    let end = checks![
        s01_full_is_no_overrun::<S>(),
        o03_the_overrun_comes_last::<S>(),
        o05_an_overrun_wakes::<S>(),
        s02_closed_by_the_producer::<S>(),
        s03_nobody_polls::<S>(),
        s04_failed_by_the_consumer::<S>(),
        s08_as_pushed::<S>(),
    ];
    capacity.chain(of_a_transport::<Sides<S>>()).chain(end)
}
