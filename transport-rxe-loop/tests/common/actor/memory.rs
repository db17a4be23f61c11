//! Memory of an actor.

use std::ops::RangeBounds;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cq_verbs::wr::{RemoteAddr, Sge};
use transport_rxe_loop::{Access, MemoryRegion, OwnedRegion, ProtectionDomain, RangeError};

use super::LEN;

/// Registered memory of either kind.
pub enum Memory {
    Fabric(OwnedRegion),
    Heap(MemoryRegion, &'static [AtomicU64]),
}

impl Memory {
    pub fn new(pd: &ProtectionDomain, is_fabric: bool, access: Access) -> Self {
        if is_fabric {
            return Self::Fabric(pd.allocate(LEN, access).unwrap());
        }
        let words: Vec<_> = (0..LEN / 8).map(|_| AtomicU64::new(0)).collect();
        let words = Box::leak(words.into_boxed_slice());
        // SAFETY: the memory stays, and is atomics.
        let region = unsafe { pd.register(words.as_mut_ptr().cast(), LEN, access) }.unwrap();
        Self::Heap(region, words)
    }

    pub fn sge(&self, range: impl RangeBounds<usize>) -> Result<Sge, RangeError> {
        match self {
            Self::Fabric(region) => region.sge(range),
            Self::Heap(region, _) => region.sge(range),
        }
    }

    pub fn remote(&self) -> RemoteAddr {
        match self {
            Self::Fabric(region) => region.remote(0).unwrap(),
            Self::Heap(region, _) => region.remote(0).unwrap(),
        }
    }

    pub fn write(&self, at: usize, bytes: &[u8]) {
        match self {
            Self::Fabric(region) => region.write(at, bytes).unwrap(),
            Self::Heap(_, words) => {
                for (i, byte) in (at..).zip(bytes) {
                    let shift = i % 8 * 8;
                    let (word, byte) = (&words[i / 8], u64::from(*byte));
                    word.store(word.load(Relaxed) & !(0xff << shift) | byte << shift, Relaxed);
                }
            }
        }
    }

    pub fn read(&self, at: usize, len: usize) -> Vec<u8> {
        match self {
            Self::Fabric(region) => {
                let mut bytes = vec![0; len];
                region.read(at, &mut bytes).unwrap();
                bytes
            }
            Self::Heap(_, words) => {
                (at..at + len).map(|i| (words[i / 8].load(Relaxed) >> (i % 8 * 8)) as u8).collect()
            }
        }
    }
}

/// Bytes that differ by their places and by `seed`.
pub fn pattern(seed: usize, len: usize) -> impl Iterator<Item = u8> {
    (0..len).map(move |i| (i * 7 + i / 251 + seed * 31 + 1) as u8)
}
