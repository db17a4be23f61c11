//! Memory of the program's own, from its heap, registered with a device. Contains `unsafe` code.
//!
//! ```
//! use bench::transport::loopback::Loopback;
//! use bench::transport::{MemoryKind, Needs, Transport};
//!
//! let needs = Needs { sends: 1, receives: 1, bytes: 64, ..Needs::default() };
//! let end = Loopback::open()?.end(&Needs { memory: MemoryKind::Heap, ..needs })?;
//! end.memory.write(3, b"hello")?;
//! let mut back = [0; 5];
//! end.memory.read(3, &mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(unsafe_code)]

use std::iter;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

use cq_verbs::device::{Device, DevicePd, Memory, Region};
use cq_verbs::setup::{Access, RangeError, RegisterError, Registered};

/// A cache line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line([AtomicU8; LINE]);

const LINE: usize = 64;
const WORD: usize = size_of::<u64>();

/// Memory of the heap, zeroed, and its registration.
#[derive(Debug)]
pub struct Heap<R> {
    // Before the memory: it is deregistered before it is freed.
    registration: R,
    lines: Box<[Line]>,
}

/// The bytes before the first whole word, the whole words, and the bytes after them.
type Parts<'a> = (&'a [AtomicU8], &'a [AtomicU64], &'a [AtomicU8]);

impl<R: Region> Heap<R> {
    /// Allocates `len` bytes and registers them in this domain.
    ///
    /// # Errors
    /// What registering says.
    pub fn register<P>(domain: &P, len: usize, access: Access) -> Result<Self, RegisterError>
    where
        P: DevicePd<Device: Device<Region = R>>,
    {
        let zero = || Line([const { AtomicU8::new(0) }; LINE]);
        let lines: Box<[Line]> = iter::repeat_with(zero).take(len.div_ceil(LINE)).collect();
        // The lines are atomics, so they may be written through a shared borrow.
        let start = lines.as_ptr().cast_mut().cast();
        // SAFETY: the memory is the heap's that `Heap` keeps: it stays where it is until its registration is
        // dropped, and is reached by atomic accesses only.
        let registration = unsafe { domain.register(start, len, access)? };
        Ok(Self { registration, lines })
    }

    /// A range, in its parts.
    #[inline]
    fn split(&self, at: usize, len: usize) -> Result<Parts<'_>, RangeError> {
        let available = self.registration.len();
        let lines = ptr::from_ref::<[Line]>(&self.lines).cast::<AtomicU8>();
        // SAFETY: the lines, whole, are as many bytes at least, and atomics all.
        let bytes = unsafe { slice::from_raw_parts(lines, available) };
        let range = bytes.get(at..).and_then(|bytes| bytes.get(..len));
        let range = range.ok_or(RangeError { offset: at, len, available })?;
        // SAFETY: any eight bytes are an atomic word, and all who reach them do so atomically.
        Ok(unsafe { range.align_to::<AtomicU64>() })
    }
}

impl<R: Region> Memory for Heap<R> {
    #[inline]
    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), RangeError> {
        let (head, words, tail) = self.split(at, bytes.len())?;
        let (start, rest) = bytes.split_at(head.len());
        let (middle, end) = rest.split_at(words.len() * WORD);
        let outer = start.iter().zip(head).chain(end.iter().zip(tail));
        // Posting the request that names them publishes them.
        outer.for_each(|(from, to)| to.store(*from, Ordering::Relaxed));
        for (from, to) in middle.chunks_exact(WORD).zip(words) {
            let word = from.try_into().expect("a chunk is a word");
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        Ok(())
    }

    #[inline]
    fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), RangeError> {
        let (head, words, tail) = self.split(at, bytes.len())?;
        let (start, rest) = bytes.split_at_mut(head.len());
        let (middle, end) = rest.split_at_mut(words.len() * WORD);
        let outer = start.iter_mut().zip(head).chain(end.iter_mut().zip(tail));
        outer.for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
        for (to, from) in middle.chunks_exact_mut(WORD).zip(words) {
            to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
        }
        // Pairs with what the device has between a message and its last word: who has read that here
        // reads the rest of it afterwards.
        fence(Ordering::Acquire);
        Ok(())
    }
}

impl<R: Region> Region for Heap<R> {
    fn registered(&self) -> Registered {
        self.registration.registered()
    }
}

#[cfg(test)]
mod tests {
    use transport_rxe_loop::Context;

    use super::*;

    #[test]
    fn what_is_registered_is_what_is_written_and_read_and_nothing_else() {
        let pd = Context::open("loop0").unwrap().alloc_pd().unwrap();
        for (at, len) in (0..20).flat_map(|at| (0..20).map(move |len| (at, len))) {
            let memory = Heap::register(&pd, 40, Access::LOCAL_WRITE).unwrap();
            assert_eq!(memory.sge(..40).unwrap().addr, memory.lines.as_ptr() as u64);
            let bytes: Vec<u8> = (1..=len).collect();
            memory.write(at, &bytes).unwrap();
            let (mut all, mut expected) = ([0; 40], [0; 40]);
            memory.read(0, &mut all).unwrap();
            expected[at..][..bytes.len()].copy_from_slice(&bytes);
            assert_eq!(all, expected, "{len} bytes at {at}");
            let outside = RangeError { offset: 35, len: 6, available: 40 };
            assert_eq!(memory.read(35, &mut [0; 6]), Err(outside));
        }
    }
}
