//! A software queue under test, and what its sides have in common.

use core::convert::identity;

use cq_core::queue::{self, BatchError, DroppedError, End, OnChannel, PushError, raw};
use cq_core::transport::{Arm, Capacity, Events, Signal};

use super::{EventFixture, Fixture, Kind, Numbered};

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
    /// The entry was not stored.
    fn push(&mut self, entry: &T) -> Result<(), PushError>;

    /// As [`push_batch`](queue::Producer::push_batch).
    ///
    /// # Errors
    /// The last entries were not stored.
    fn push_batch(&mut self, batch: &[T]) -> Result<(), BatchError>;

    /// As [`push_or_overrun`](queue::Producer::push_or_overrun).
    ///
    /// # Errors
    /// The entry was dropped.
    fn push_or_overrun(&mut self, entry: &T) -> Result<(), DroppedError>;

    /// As [`push_batch_or_overrun`](queue::Producer::push_batch_or_overrun).
    ///
    /// # Errors
    /// The last entries were dropped.
    fn push_batch_or_overrun(&mut self, batch: &[T]) -> Result<(), DroppedError>;

    /// How the queue has ended, if it has.
    fn end(&self) -> Option<End>;
}

/// The consumer of a software queue. Those of [`cq_core::queue`] are.
pub trait Consume: Arm + Capacity {
    /// Marks the queue failed.
    fn fail(&mut self);
}

macro_rules! produce {
    ([$($generics:tt)*] $producer:ty, $pushed:ty, $why:expr, $dropped:expr) => {
        impl<$($generics)*> Produce<$pushed> for $producer {
            fn push(&mut self, entry: &$pushed) -> Result<(), PushError> {
                <$producer>::push(self, entry).map_err($why)
            }

            fn push_batch(&mut self, batch: &[$pushed]) -> Result<(), BatchError> {
                <$producer>::push_batch(self, batch)
                    .map_err(|BatchError { stored, why }| BatchError { stored, why: $why(why) })
            }

            fn push_or_overrun(&mut self, entry: &$pushed) -> Result<(), DroppedError> {
                <$producer>::push_or_overrun(self, entry).map_err($dropped)
            }

            fn push_batch_or_overrun(&mut self, batch: &[$pushed]) -> Result<(), DroppedError> {
                <$producer>::push_batch_or_overrun(self, batch).map_err($dropped)
            }

            fn end(&self) -> Option<End> {
                <$producer>::end(self)
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

produce!([E: Numbered, S: Signal] queue::Producer<'_, E, S>, E::Pushed, identity, identity);
consume!([E: Numbered, S: Signal] queue::Consumer<'_, E, OnChannel<S>>);
produce!([S: Signal] raw::RawProducer<'_, S>, queue::Tagged, identity, identity);
consume!([S: Signal] raw::RawConsumer<'_, OnChannel<S>>);

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod shared {
    use cq_core::queue::mpsc::{self, OverrunError, SharedConsumer, SharedProducer};

    use super::*;

    fn why(error: mpsc::PushError) -> PushError {
        match error {
            mpsc::PushError::Full => PushError::Full,
            mpsc::PushError::Ended(end) => PushError::Ended(end),
            error => panic!("{error}"),
        }
    }

    fn dropped(error: OverrunError) -> DroppedError {
        match error {
            OverrunError::Dropped(dropped) => dropped,
            error => panic!("{error}"),
        }
    }

    produce!([E: Numbered, S: Signal] SharedProducer<'_, E, S>, E::Pushed, why, dropped);
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
    const CAPACITY: usize = S::CAPACITY;

    fn new() -> Self {
        let (producer, consumer, channel) = S::new();
        Self { producer, consumer, channel }
    }

    fn queue(&mut self) -> &mut S::Consumer {
        &mut self.consumer
    }

    fn complete(&mut self, kind: Kind, number: u64) {
        let pushed = self.producer.push(&S::Entry::pushed(kind, number));
        assert!(pushed.is_ok(), "a queue overran within its capacity");
    }

    fn expected(&self, kind: Kind, number: u64) -> S::Entry {
        S::Entry::polled(kind, number)
    }
}

impl<S: Software> EventFixture for Sides<S> {
    type Channel = S::Channel;

    fn channel(&mut self) -> &mut S::Channel {
        &mut self.channel
    }
}
