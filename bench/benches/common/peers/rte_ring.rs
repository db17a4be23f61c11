//! DPDK's `rte_ring`, by bursts. It holds one entry less than it has slots. Being C, it is called, not
//! inlined: a nanosecond or two a batch.

use std::marker::PhantomData;
use std::ptr::NonNull;

use cq_core::wc::Wc;

use crate::common::peer::{Peer, Receiver, Sender};

/// `rte_ring`; for one thread on each side, or for `MANY`.
pub struct RteRing<const MANY: bool>;

/// The C structure.
#[repr(C)]
struct Opaque([u8; 0]);

unsafe extern "C" {
    fn cq_bench_rte_ring_new(count: u32, multi: i32) -> Option<NonNull<Opaque>>;
    fn cq_bench_rte_ring_free(ring: NonNull<Opaque>);
    fn cq_bench_rte_ring_send(ring: NonNull<Opaque>, entries: *const Wc, count: u32) -> u32;
    fn cq_bench_rte_ring_receive(ring: NonNull<Opaque>, entries: *mut Wc, count: u32) -> u32;
}

/// Owns a ring.
#[derive(Default)]
pub struct Memory(Option<NonNull<Opaque>>);

/// One side of a ring; there are two of either kind only if it is for many.
pub struct Side<'a, const MANY: bool>(NonNull<Opaque>, PhantomData<&'a Memory>);

// SAFETY: the ring is memory of the process, which any thread may use, and `open` makes as many sides as the
// ring was made for.
unsafe impl<const MANY: bool> Send for Side<'_, MANY> {}

impl Clone for Side<'_, true> {
    fn clone(&self) -> Self {
        Self(self.0, PhantomData)
    }
}

impl<const MANY: bool> Peer for RteRing<MANY> {
    const NAME: &'static str = if MANY { "rte_ring mp" } else { "rte_ring sp/sc" };
    type Memory = Memory;
    type Sender<'a> = Side<'a, MANY>;
    type Receiver<'a> = Side<'a, MANY>;

    fn open(memory: &mut Memory, capacity: usize) -> (Self::Sender<'_>, Self::Receiver<'_>) {
        // SAFETY: the function takes any numbers.
        *memory = Memory(unsafe { cq_bench_rte_ring_new(capacity as u32, MANY.into()) });
        let ring = memory.0.expect("a power of two, and memory for it");
        (Side(ring, PhantomData), Side(ring, PhantomData))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(ring) = self.0 {
            // SAFETY: `open` got it, nobody else frees it, and the sides that borrow it are gone.
            unsafe { cq_bench_rte_ring_free(ring) }
        }
    }
}

impl<const MANY: bool> Sender for Side<'_, MANY> {
    #[inline(always)]
    fn send(&mut self, batch: &[Wc]) -> usize {
        // SAFETY: the ring lives while it is borrowed, and reads at most so many entries of 48 bytes.
        unsafe { cq_bench_rte_ring_send(self.0, batch.as_ptr(), batch.len() as u32) as usize }
    }
}

impl<const MANY: bool> Receiver for Side<'_, MANY> {
    #[inline(always)]
    fn receive(&mut self, buffer: &mut [Wc]) -> usize {
        // SAFETY: the ring lives while it is borrowed, and writes at most so many entries of 48 bytes, which
        // are ones that were sent.
        unsafe {
            cq_bench_rte_ring_receive(self.0, buffer.as_mut_ptr(), buffer.len() as u32) as usize
        }
    }
}
