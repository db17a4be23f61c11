//! The sides of a queue, whatever kind it is of.

use cq_core::queue::{Channel, raw};
use cq_core::queue::{Dropped, Entry, HeapCq, Producer, SoftCq, TryPushError};
use cq_core::transport::{Arm, Notify};

use super::{Bell, KEY, Parts, drain};

/// What every producer has.
pub trait Device {
    fn push(&mut self, entry: &Entry) -> Result<(), Dropped>;
    fn push_batch(&mut self, batch: &[Entry]) -> Result<(), Dropped>;
    fn try_push(&mut self, entry: &Entry) -> Result<(), TryPushError>;
    fn try_push_batch(&mut self, batch: &[Entry]) -> Result<usize, TryPushError>;
    /// What is not given back, and what is free; what follows from them is compared.
    fn room(&self) -> (usize, usize);
    fn is_abandoned(&self) -> bool;
}

macro_rules! device {
    ($($producer:path, $dropped:expr;)+) => {$(
        const _: () = {
            use $producer as Lone;
            impl<C: Channel> Device for Lone<'_, C> {
                fn push(&mut self, entry: &Entry) -> Result<(), Dropped> {
                    Lone::push(self, entry).map_err($dropped)
                }

                fn push_batch(&mut self, batch: &[Entry]) -> Result<(), Dropped> {
                    Lone::push_batch(self, batch).map_err($dropped)
                }

                fn try_push(&mut self, entry: &Entry) -> Result<(), TryPushError> {
                    Lone::try_push(self, entry)
                }

                fn try_push_batch(&mut self, batch: &[Entry]) -> Result<usize, TryPushError> {
                    Lone::try_push_batch(self, batch)
                }

                fn room(&self) -> (usize, usize) {
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

device! {
    Producer, |dropped| dropped;
    raw::Producer, |dropped| dropped;
}

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
mod shared {
    use cq_core::queue::mpsc::{self, PushError};

    use super::*;

    device! {
        mpsc::Producer, |error| match error {
            PushError::Dropped(dropped) => dropped,
            error => panic!("{error}"),
        };
    }
}

/// The two sides of a queue of four with events.
pub struct Sides<'a> {
    pub kind: &'static str,
    pub device: Box<dyn Device + 'a>,
    pub app: Box<dyn Arm + 'a>,
    pub bell: &'a Bell,
}

impl<'a> Sides<'a> {
    fn new(
        kind: &'static str,
        (device, app): (impl Device + 'a, impl Arm + 'a),
        bell: &'a Bell,
    ) -> Self {
        Self { kind, device: Box::new(device), app: Box::new(app), bell }
    }

    pub fn arm(&mut self, on: Notify) {
        let _ = self.app.arm(on).unwrap();
    }

    /// Polls everything.
    pub fn drain(&mut self) -> Vec<u64> {
        drain(&mut *self.app).unwrap()
    }
}

/// Runs a test with a new queue of each kind.
pub fn with_each(test: impl Fn(Sides<'_>)) {
    let bell = &Bell::default();
    let (mut soft, parts) = (SoftCq::<4>::new(), Parts::new(4));
    test(Sides::new("in the value", soft.split_with(KEY, bell), bell));
    bell.take();
    test(Sides::new("on the heap", HeapCq::new(4).unwrap().split_with(KEY, bell), bell));
    bell.take();
    test(Sides::new("raw", parts.sides_with(bell), bell));
    #[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
    {
        use cq_core::queue::mpsc;
        let mut soft = mpsc::SoftCq::<4>::new();
        bell.take();
        test(Sides::new("shared, in the value", soft.split_with(KEY, bell), bell));
        bell.take();
        let heap = mpsc::HeapCq::new(4).unwrap();
        test(Sides::new("shared, on the heap", heap.split_with(KEY, bell), bell));
    }
}
