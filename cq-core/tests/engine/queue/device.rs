//! The sides of a queue, whatever kind it is of.

use super::*;

/// What every producer has.
pub trait Device {
    fn push(&mut self, entry: &Tagged) -> Result<(), Dropped>;
    fn push_batch(&mut self, batch: &[Tagged]) -> Result<(), Dropped>;
    fn try_push(&mut self, entry: &Tagged) -> Result<(), TryPushError>;
    fn try_push_batch(&mut self, batch: &[Tagged]) -> Result<usize, TryPushError>;
    /// What is not given back, and what is free; what follows from them is compared.
    fn lengths(&self) -> (usize, usize);
    fn is_abandoned(&self) -> bool;
}

macro_rules! device {
    ($($producer:path, $dropped:expr;)+) => {$(
        const _: () = {
            use $producer as Lone;
            impl<C: Channel> Device for Lone<'_, C> {
                fn push(&mut self, entry: &Tagged) -> Result<(), Dropped> {
                    Lone::push(self, entry).map_err($dropped)
                }

                fn push_batch(&mut self, batch: &[Tagged]) -> Result<(), Dropped> {
                    Lone::push_batch(self, batch).map_err($dropped)
                }

                fn try_push(&mut self, entry: &Tagged) -> Result<(), TryPushError> {
                    Lone::try_push(self, entry)
                }

                fn try_push_batch(&mut self, batch: &[Tagged]) -> Result<usize, TryPushError> {
                    Lone::try_push_batch(self, batch)
                }

                fn lengths(&self) -> (usize, usize) {
                    let (len, free) = (self.len(), self.free_slots());
                    assert_eq!((self.is_empty(), self.is_full()), (len == 0, free == 0));
                    (len, free)
                }

                fn is_abandoned(&self) -> bool {
                    Lone::is_abandoned(self)
                }
            }
        };
    )+};
}

/// What every consumer has.
pub trait App: Arm<Entry = Wc> {
    fn fail(&mut self);
    fn state(&self) -> State;
}

macro_rules! app {
    ($consumer:path) => {
        const _: () = {
            use $consumer as Lone;
            impl<'a> App for Lone<'a, OnChannel<Option<&'a EventCount>>> {
                fn fail(&mut self) {
                    Lone::fail(self);
                }

                fn state(&self) -> State {
                    Lone::state(self)
                }
            }
        };
    };
}

type OwnConsumer<'a, C> = Consumer<'a, Wc, C>;
type OwnProducer<'a, C> = Producer<'a, Wc, C>;

app!(OwnConsumer);
app!(raw::RawConsumer);

device! {
    OwnProducer, |dropped| dropped;
    raw::RawProducer, |dropped| dropped;
}

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod shared {
    use cq_core::queue::mpsc::{self, PushError};

    use super::*;

    type SharedConsumer<'a, C> = mpsc::SharedConsumer<'a, Wc, C>;
    type SharedProducer<'a, C> = mpsc::SharedProducer<'a, Wc, C>;

    app!(SharedConsumer);

    device! {
        SharedProducer, |error| match error {
            PushError::Dropped(dropped) => dropped,
            error => panic!("{error}"),
        };
    }

    pub fn with_each(event_count: &EventCount, test: impl Fn(Sides<'_>)) {
        let (mut soft, mut late) = (mpsc::SoftCq::<4>::new(), mpsc::SoftCq::<4>::at((1 << 62) - 5));
        test(Sides::new("shared, in the value", soft.split_with(KEY, event_count), event_count));
        let heap = mpsc::HeapCq::new(4).unwrap();
        test(Sides::new("shared, on the heap", heap.split_with(KEY, event_count), event_count));
        let (producer, consumer) = late.split_with(KEY, event_count);
        let producers = Turns([producer.clone(), producer], false);
        test(Sides::new("shared, by turns, positions wrap", (producers, consumer), event_count));
    }

    /// Producers that take turns.
    struct Turns<D>([D; 2], bool);

    impl<D: Device> Turns<D> {
        fn next(&mut self) -> &mut D {
            self.1 = !self.1;
            &mut self.0[usize::from(self.1)]
        }
    }

    impl<D: Device> Device for Turns<D> {
        fn push(&mut self, entry: &Tagged) -> Result<(), Dropped> {
            self.next().push(entry)
        }

        fn push_batch(&mut self, batch: &[Tagged]) -> Result<(), Dropped> {
            self.next().push_batch(batch)
        }

        fn try_push(&mut self, entry: &Tagged) -> Result<(), TryPushError> {
            self.next().try_push(entry)
        }

        fn try_push_batch(&mut self, batch: &[Tagged]) -> Result<usize, TryPushError> {
            self.next().try_push_batch(batch)
        }

        fn lengths(&self) -> (usize, usize) {
            let [one, other] = self.0.each_ref().map(Device::lengths);
            assert_eq!(one, other);
            one
        }

        fn is_abandoned(&self) -> bool {
            self.0.iter().all(Device::is_abandoned)
        }
    }
}

/// The two sides of a queue of four with events.
pub struct Sides<'a> {
    pub kind: &'static str,
    pub device: Box<dyn Device + 'a>,
    pub app: Box<dyn App + 'a>,
    pub event_count: &'a EventCount,
}

impl<'a> Sides<'a> {
    fn new(
        kind: &'static str,
        (device, app): (impl Device + 'a, impl App + 'a),
        event_count: &'a EventCount,
    ) -> Self {
        Self { kind, device: Box::new(device), app: Box::new(app), event_count }
    }
}

/// Runs a test with a new queue of each kind.
pub fn with_each(test: impl Fn(Sides<'_>)) {
    let event_count = &EventCount::default();
    let test = |sides: Sides<'_>| {
        event_count.take();
        test(sides);
    };
    let (mut soft, parts) = (SoftCq::<4>::new(), [(); 2].map(|()| Parts::new(4)));
    test(Sides::new("in the value", soft.split_with(KEY, event_count), event_count));
    test(Sides::new(
        "on the heap",
        HeapCq::new(4).unwrap().split_with(KEY, event_count),
        event_count,
    ));
    test(Sides::new("raw", parts[0].sides_with(event_count), event_count));
    test(Sides::new(
        "raw, positions wrap",
        parts[1].sides_from(Position::MAX - 5, event_count),
        event_count,
    ));
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    shared::with_each(event_count, test);
}
