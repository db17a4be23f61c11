//! The sides of a queue, whatever kind it is of, and whatever it holds.

use cq_testing::rules::{Consume, Numbered, Produce};

use super::*;

/// What every producer has, besides what the checks know.
pub trait Device<T>: Produce<T> {
    /// What is not given back, and what is free; what follows from them is compared.
    fn lengths(&self) -> (usize, usize);
}

macro_rules! device {
    ([$($generics:tt)*] $producer:ty, $pushed:ty) => {
        impl<$($generics)*> Device<$pushed> for $producer {
            fn lengths(&self) -> (usize, usize) {
                let (len, free) = (self.len(), self.available());
                assert_eq!((self.is_empty(), self.is_full()), (len == 0, free == 0));
                (len, free)
            }
        }
    };
}

/// What every consumer has.
pub trait App: Consume {
    fn end(&self) -> Option<End>;
}

macro_rules! app {
    ([$($generics:tt)*] $consumer:ty) => {
        impl<$($generics)*> App for $consumer {
            fn end(&self) -> Option<End> {
                <$consumer>::end(self)
            }
        }
    };
}

type Raises<'a> = &'a EventCount;
type Waits<'a> = OnChannel<&'a EventCount>;

device!(['a, E: Numbered] Producer<'a, E, Raises<'a>>, E::Pushed);
app!(['a, E: Numbered] Consumer<'a, E, Waits<'a>>);
device!(['a] raw::RawProducer<'a, Raises<'a>>, Tagged);
app!(['a] raw::RawConsumer<'a, Waits<'a>>);

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod shared {
    use cq_core::queue::mpsc::{HeapCq, SharedConsumer, SharedProducer, SoftCq};

    use super::*;

    device!(['a, E: Numbered] SharedProducer<'a, E, Raises<'a>>, E::Pushed);
    app!(['a, E: Numbered] SharedConsumer<'a, E, Waits<'a>>);

    pub fn with_each<E: Numbered>(event_count: &EventCount, test: impl Fn(Sides<'_, E>)) {
        let (mut soft, mut late) =
            (SoftCq::<4, E>::of_entries(), SoftCq::<4, E>::at((1 << 62) - 5));
        test(Sides::new("shared, in the value", soft.split_with(event_count), event_count));
        let heap = HeapCq::<E>::of_entries(4).unwrap();
        test(Sides::new("shared, on the heap", heap.split_with(event_count), event_count));
        let (producer, consumer) = late.split_with(event_count);
        let producers = Turns([producer.clone(), producer], false);
        test(Sides::new("shared, by turns, positions wrap", (producers, consumer), event_count));
    }

    /// Producers that take turns.
    struct Turns<D>([D; 2], bool);

    impl<D> Turns<D> {
        fn next(&mut self) -> &mut D {
            self.1 = !self.1;
            &mut self.0[usize::from(self.1)]
        }
    }

    impl<T, D: Produce<T>> Produce<T> for Turns<D> {
        fn push(&mut self, entry: &T) -> Result<(), PushError> {
            self.next().push(entry)
        }

        fn push_batch(&mut self, batch: &[T]) -> Result<(), BatchError> {
            self.next().push_batch(batch)
        }

        fn push_or_overrun(&mut self, entry: &T) -> Result<(), DroppedError> {
            self.next().push_or_overrun(entry)
        }

        fn push_batch_or_overrun(&mut self, batch: &[T]) -> Result<(), DroppedError> {
            self.next().push_batch_or_overrun(batch)
        }

        fn end(&self) -> Option<End> {
            let [one, other] = self.0.each_ref().map(Produce::end);
            assert_eq!(one, other);
            one
        }
    }

    impl<T, D: Device<T>> Device<T> for Turns<D> {
        fn lengths(&self) -> (usize, usize) {
            let [one, other] = self.0.each_ref().map(Device::lengths);
            assert_eq!(one, other);
            one
        }
    }
}

/// The two sides of a queue of four with events.
pub struct Sides<'a, E: Numbered = Wc> {
    pub kind: &'static str,
    pub device: Box<dyn Device<E::Pushed> + 'a>,
    pub app: Box<dyn App<Entry = E> + 'a>,
    pub event_count: &'a EventCount,
}

impl<'a, E: Numbered> Sides<'a, E> {
    fn new(
        kind: &'static str,
        (device, app): (impl Device<E::Pushed> + 'a, impl App<Entry = E> + 'a),
        event_count: &'a EventCount,
    ) -> Self {
        event_count.take();
        Self { kind, device: Box::new(device), app: Box::new(app), event_count }
    }
}

/// Runs a test with a new queue of each kind, of completions.
pub fn with_each(test: impl Fn(Sides<'_>)) {
    let event_count = &EventCount::default();
    let parts = [(); 2].map(|()| Parts::new(4));
    test(Sides::new("raw", parts[0].sides_with(event_count), event_count));
    test(Sides::new(
        "raw, positions wrap",
        parts[1].sides_from(Position::MAX - 5, event_count),
        event_count,
    ));
    with_each_of(test);
}

/// Runs a test with a new queue of each kind that holds any entry.
pub fn with_each_of<E: Numbered>(test: impl Fn(Sides<'_, E>)) {
    let event_count = &EventCount::default();
    let mut soft = SoftCq::<4, E>::of_entries();
    test(Sides::new("in the value", soft.split_with(event_count), event_count));
    let heap = HeapCq::<E>::of_entries(4).unwrap();
    test(Sides::new("on the heap", heap.split_with(event_count), event_count));
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    shared::with_each(event_count, test);
}
