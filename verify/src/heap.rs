//! Memory of a process' own, from its heap, registered with the loopback. Contains `unsafe` code.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

use cq_verbs::wr::{RemoteAddr, Sge};
use transport_rxe_loop::{Access, MemoryRegion, ProtectionDomain};

/// Words of the heap, zeroed, and their registration.
#[derive(Debug)]
pub struct Heap {
    // Before the memory: it is deregistered before it is freed.
    region: MemoryRegion,
    words: Box<[AtomicU64]>,
}

impl Heap {
    /// So many words.
    pub fn new(pd: &ProtectionDomain, words: usize, access: Access) -> Self {
        let words: Box<[_]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (first, len) = (words.as_ptr().cast_mut().cast(), size_of_val(&*words));
        // SAFETY: the words stay where they are until the region was dropped, and are atomics.
        let region = unsafe { pd.register(first, len, access) }.expect("there are regions left");
        Self { region, words }
    }

    /// What is in this word.
    pub fn get(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// Puts something into this word.
    pub fn set(&self, index: usize, value: u64) {
        self.words[index].store(value, Ordering::Relaxed);
    }

    /// So many words from this one on, for requests of this side.
    pub fn sge(&self, index: usize, words: usize) -> Sge {
        self.region.sge(index * 8..(index + words) * 8).expect("they are inside")
    }

    /// The place of a word, for requests of the peer.
    pub fn remote(&self, index: usize) -> RemoteAddr {
        self.region.remote(index * 8).expect("it is inside")
    }
}
