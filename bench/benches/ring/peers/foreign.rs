//! Queues of C and C++: DPDK's `rte_ring`, by bursts, and rigtorp's `SPSCQueue` as it is published. They are called for each
//! batch, not inlined, which is a nanosecond or two.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::NonNull;
#[cfg(feature = "dpdk")]
use std::slice;

use cq_core::wc::Wc;

#[cfg(feature = "dpdk")]
use crate::peer::Reader;
use crate::peer::{Peer, Receiver, Sender};

/// A queue of C.
#[repr(C)]
pub struct Opaque([u8; 0]);

/// The functions of a queue of C, of entries of 48 bytes: it is one from `new` to `free`; `send` reads and `receive` writes at
/// most `count` entries, those that were sent.
#[repr(C)]
pub struct Functions {
    new: unsafe extern "C" fn(capacity: u32) -> Option<NonNull<Opaque>>,
    free: unsafe extern "C" fn(NonNull<Opaque>),
    send: unsafe extern "C" fn(NonNull<Opaque>, *const Wc, count: u32) -> u32,
    receive: unsafe extern "C" fn(NonNull<Opaque>, *mut Wc, count: u32) -> u32,
}

/// Which of them.
pub trait Which: 'static {
    /// What the reports call it.
    const NAME: &'static str;
    /// How to use it.
    const FUNCTIONS: fn() -> &'static Functions;
}

/// Declares queues of C, each with its name and its functions.
macro_rules! queues {
    ($($(#[$meta:meta])+ $queue:ident = $name:literal, $functions:ident;)+) => {
        $(
            $(#[$meta])+
            pub enum $queue {}

            $(#[$meta])+
            impl Which for $queue {
                const NAME: &'static str = $name;
                const FUNCTIONS: fn() -> &'static Functions = || &$functions;
            }

            unsafe extern "C" {
                $(#[$meta])+
                safe static $functions: Functions;
            }
        )+
    };
}

queues! {
    /// `rigtorp::SPSCQueue`, one entry at a time.
    #[cfg(feature = "rigtorp")]
    RigtorpCpp = "rigtorp (C++)", cq_bench_rigtorp;
    /// DPDK's `rte_ring` for one thread on each side. It holds one entry less than it has slots.
    #[cfg(feature = "dpdk")]
    RteRing = "rte_ring", cq_bench_rte_ring_one;
    /// The same by its zero-copy functions.
    #[cfg(feature = "dpdk")]
    RteRingZc = "rte_ring zero-copy", cq_bench_rte_ring_zc;
    /// DPDK's `rte_ring` for several threads.
    #[cfg(feature = "dpdk")]
    RteRingMp = "rte_ring mp", cq_bench_rte_ring_many;
}

/// A queue of C.
pub struct Foreign<W>(PhantomData<W>);

/// Owns one.
#[derive(Default)]
pub struct Memory(Option<(NonNull<Opaque>, &'static Functions)>);

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some((queue, functions)) = self.0 {
            // SAFETY: `open` got it, nobody else frees it, and the sides that borrow it are gone.
            unsafe { (functions.free)(queue) }
        }
    }
}

/// One side; there are two of either kind only if it is for many.
pub struct Side<'a, W>(NonNull<Opaque>, &'static Functions, PhantomData<(&'a Memory, W)>);

// SAFETY: the queue is memory of the process, which any thread may use, and there are as many sides as it was made for.
unsafe impl<W> Send for Side<'_, W> {}

#[cfg(feature = "dpdk")]
impl Clone for Side<'_, RteRingMp> {
    fn clone(&self) -> Self {
        Self(self.0, self.1, PhantomData)
    }
}

impl<W: Which> Peer for Foreign<W> {
    const NAME: &'static str = W::NAME;
    type Memory = Memory;
    type Sender<'a> = Side<'a, W>;
    type Receiver<'a> = Side<'a, W>;

    fn open(memory: &mut Memory, capacity: usize) -> (Side<'_, W>, Side<'_, W>) {
        let functions = (W::FUNCTIONS)();
        // SAFETY: the function takes any number.
        let queue = unsafe { (functions.new)(capacity as u32) }.expect("memory for it");
        *memory = Memory(Some((queue, functions)));
        (Side(queue, functions, PhantomData), Side(queue, functions, PhantomData))
    }
}

impl<W> Sender for Side<'_, W> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        // SAFETY: the queue lives while it is borrowed, and reads at most as many.
        unsafe { (self.1.send)(self.0, batch.as_ptr(), batch.len() as u32) as usize }
    }
}

impl<W> Receiver for Side<'_, W> {
    #[inline(always)]
    fn receive(&mut self, buffer: &mut [Wc]) -> usize {
        // SAFETY: the queue lives while it is borrowed, and writes at most as many, all of which were sent.
        unsafe { (self.1.receive)(self.0, buffer.as_mut_ptr(), buffer.len() as u32) as usize }
    }
}

/// Entries where they lie, in two slices where the memory wraps.
#[cfg(feature = "dpdk")]
#[repr(C)]
struct Slices {
    starts: [*const Wc; 2],
    counts: [u32; 2],
}

#[cfg(feature = "dpdk")]
unsafe extern "C" {
    fn cq_bench_rte_ring_look(ring: NonNull<Opaque>, most: u32) -> Slices;
    fn cq_bench_rte_ring_take(ring: NonNull<Opaque>, count: u32);
}

#[cfg(feature = "dpdk")]
impl Reader for Side<'_, RteRingZc> {
    #[inline(always)]
    fn read(&mut self, most: usize, mut see: impl FnMut(&[Wc])) -> usize {
        // SAFETY: the queue lives while it is borrowed, and is a `RteRingZc`.
        let Slices { starts, counts } = unsafe { cq_bench_rte_ring_look(self.0, most as u32) };
        let [first, second] = counts;
        if first == 0 {
            return 0;
        }
        for (start, count) in starts.into_iter().zip(counts).filter(|&(_, count)| count > 0) {
            // SAFETY: so many entries lie there, which were sent, and they are taken only below.
            see(unsafe { slice::from_raw_parts(start, count as usize) });
        }
        // SAFETY: so many were shown.
        unsafe { cq_bench_rte_ring_take(self.0, first + second) };
        (first + second) as usize
    }
}
