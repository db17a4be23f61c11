//! A ring as rigtorp's SPSCQueue is built, of which there is no Rust version that is kept: two indices, each in a cache
//! line of its own beside the copy of the other one, one entry at a time, and a slot more than entries.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicUsize, Ordering};

use cq_core::wc::Wc;

use crate::peer::{Peer, receive_each, send_each, sides};

/// The ring.
pub struct Rigtorp;

/// What the sides share.
#[derive(Default)]
pub struct Memory {
    slots: Box<[UnsafeCell<Wc>]>,
    write: Line<AtomicUsize>,
    read_seen: Line<Cell<usize>>,
    read: Line<AtomicUsize>,
    write_seen: Line<Cell<usize>>,
}

#[derive(Default)]
#[repr(align(128))]
struct Line<T>(T);

// SAFETY: a slot between the indices is the consumer's, any other one the producer's; the stores of the indices hand them
// over. Each copy is one side's own.
unsafe impl Sync for Memory {}

/// The producer's side.
pub struct Producer<'a>(&'a Memory);

/// The consumer's side.
pub struct Consumer<'a>(&'a Memory);

impl Memory {
    fn next(&self, index: usize) -> usize {
        if index + 1 == self.slots.len() { 0 } else { index + 1 }
    }
}

impl Peer for Rigtorp {
    const NAME: &'static str = "rigtorp's way";
    type Memory = Memory;
    type Sender<'a> = Producer<'a>;
    type Receiver<'a> = Consumer<'a>;

    fn open(memory: &mut Memory, capacity: usize) -> (Producer<'_>, Consumer<'_>) {
        memory.slots = (0..=capacity).map(|_| UnsafeCell::new(Wc::default())).collect();
        (Producer(memory), Consumer(memory))
    }
}

sides! { Wc:
    Producer<'_>: |queue, batch| {
        let ring = queue.0;
        send_each(batch, |wc| {
            let index = ring.write.0.load(Ordering::Relaxed);
            let next = ring.next(index);
            if next == ring.read_seen.0.get() {
                ring.read_seen.0.set(ring.read.0.load(Ordering::Acquire));
                if next == ring.read_seen.0.get() {
                    return false;
                }
            }
            // SAFETY: the slot is not between the indices, so it is this side's.
            unsafe { *ring.slots[index].get() = *wc };
            ring.write.0.store(next, Ordering::Release);
            true
        })
    },
    Consumer<'_>: |queue, buffer| {
        let ring = queue.0;
        receive_each(buffer, || {
            let index = ring.read.0.load(Ordering::Relaxed);
            if index == ring.write_seen.0.get() {
                ring.write_seen.0.set(ring.write.0.load(Ordering::Acquire));
                if index == ring.write_seen.0.get() {
                    return None;
                }
            }
            // SAFETY: the slot is between the indices, so it is this side's.
            let wc = unsafe { *ring.slots[index].get() };
            ring.read.0.store(ring.next(index), Ordering::Release);
            Some(wc)
        })
    },
}
