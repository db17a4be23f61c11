//! Memory of the program's own, from its heap, registered with a device. The room where `unsafe` lives.
//!
//! ```
//! use bench::transport::loopback::Loopback;
//! use bench::transport::{Memory, MemoryKind, Needs, Transport};
//!
//! let needs = Needs { sends: 1, receives: 1, bytes: 64, ..Needs::default() };
//! let mut end = Loopback::open()?.end(&Needs { memory: MemoryKind::Heap, ..needs })?;
//! end.memory.write(3, b"hello");
//! let mut back = [0; 5];
//! end.memory.read(3, &mut back);
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(unsafe_code)]

use std::iter;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

use cq_core::device::{Device, ProtectionDomain, Region};
use cq_core::setup::{Access, RegisterError};
use cq_core::wr::{RemoteAddr, Sge};

use super::Memory;

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
    len: usize,
}

impl<R> Heap<R> {
    /// Allocates `len` bytes and registers them in this domain.
    ///
    /// # Errors
    /// What registering says.
    pub fn register<P>(domain: &P, len: usize, access: Access) -> Result<Self, RegisterError>
    where
        P: ProtectionDomain<Device: Device<Region = R>>,
    {
        Self::new(len, |ptr, len| {
            // SAFETY: the memory is the heap's that `Heap` keeps: it stays where it is until its registration is
            // dropped, and is reached by atomic accesses only.
            unsafe { domain.register(ptr, len, access) }
        })
    }

    /// Allocates `len` bytes and registers them. They stay where they are until `R` was dropped, and are
    /// reached by atomic accesses only.
    ///
    /// # Errors
    /// What registering says.
    fn new<E>(
        len: usize,
        register: impl FnOnce(*mut u8, usize) -> Result<R, E>,
    ) -> Result<Self, E> {
        let zero = || Line([const { AtomicU8::new(0) }; LINE]);
        let lines: Box<[Line]> = iter::repeat_with(zero).take(len.div_ceil(LINE)).collect();
        // The lines are atomics, so they may be written through a shared borrow.
        let registration = register(lines.as_ptr().cast_mut().cast(), len)?;
        Ok(Self { registration, lines, len })
    }

    /// A range as the bytes before the first whole word, the whole words, and the bytes after them.
    #[inline]
    fn split(&self, at: usize, len: usize) -> (&[AtomicU8], &[AtomicU64], &[AtomicU8]) {
        let lines = ptr::from_ref::<[Line]>(&self.lines).cast::<AtomicU8>();
        // SAFETY: the lines, whole, are `len` bytes at least, and atomics all.
        let bytes = unsafe { slice::from_raw_parts(lines, self.len) };
        let bytes = &bytes[at..][..len];
        // SAFETY: any eight bytes are an atomic word, and all who reach them do so atomically.
        unsafe { bytes.align_to::<AtomicU64>() }
    }
}

impl<R: Region> Memory for Heap<R> {
    #[inline]
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let (head, words, tail) = self.split(at, bytes.len());
        let (start, rest) = bytes.split_at(head.len());
        let (middle, end) = rest.split_at(words.len() * WORD);
        let outer = start.iter().zip(head).chain(end.iter().zip(tail));
        // Posting the request that names them publishes them.
        outer.for_each(|(from, to)| to.store(*from, Ordering::Relaxed));
        for (from, to) in middle.chunks_exact(WORD).zip(words) {
            let mut word = [0; WORD];
            word.copy_from_slice(from);
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    #[inline]
    fn read(&self, at: usize, bytes: &mut [u8]) {
        let (head, words, tail) = self.split(at, bytes.len());
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
    }

    #[inline]
    fn sge(&self, at: usize, len: u32) -> Sge {
        self.registration.sge(at, len as usize).expect("it is inside")
    }

    #[inline]
    fn remote(&self, at: usize) -> RemoteAddr {
        self.registration.remote(at).expect("it is inside")
    }
}

/// Where messages lie: in a transport's memory, or in the heap's.
#[derive(Debug)]
pub enum Messages<O, R> {
    /// The transport's, which comes registered.
    Fabric(O),
    /// The program's own.
    Heap(Heap<R>),
}

/// Forwards a method to whichever it is.
macro_rules! either {
    ($self:ident, $memory:ident => $call:expr) => {
        match $self {
            Self::Fabric($memory) => $call,
            Self::Heap($memory) => $call,
        }
    };
}

impl<O: Memory, R: Region> Memory for Messages<O, R> {
    #[inline]
    fn write(&mut self, at: usize, bytes: &[u8]) {
        either!(self, memory => memory.write(at, bytes));
    }

    #[inline]
    fn read(&self, at: usize, bytes: &mut [u8]) {
        either!(self, memory => memory.read(at, bytes));
    }

    #[inline]
    fn sge(&self, at: usize, len: u32) -> Sge {
        either!(self, memory => memory.sge(at, len))
    }

    #[inline]
    fn remote(&self, at: usize) -> RemoteAddr {
        either!(self, memory => memory.remote(at))
    }
}

#[cfg(test)]
mod tests {
    use cq_core::setup::RangeError;

    use super::*;

    struct Nowhere;

    impl Region for Nowhere {
        fn len(&self) -> usize {
            usize::MAX
        }

        fn sge(&self, at: usize, len: usize) -> Result<Sge, RangeError> {
            Ok(Sge { addr: at as u64, length: len as u32, lkey: 0 })
        }

        fn remote(&self, at: usize) -> Result<RemoteAddr, RangeError> {
            Ok(RemoteAddr { addr: at as u64, rkey: 0 })
        }
    }

    fn heap(len: usize) -> Heap<Nowhere> {
        Heap::new(len, |_, _| Ok::<_, ()>(Nowhere)).unwrap()
    }

    #[test]
    fn what_is_written_is_read_at_every_offset_and_length_and_nothing_else() {
        for at in 0..20 {
            for len in 0..20 {
                let mut memory = heap(40);
                let bytes: Vec<u8> = (1..=len).collect();
                memory.write(at, &bytes);
                let mut all = [0; 40];
                memory.read(0, &mut all);
                let mut expected = [0; 40];
                expected[at..][..bytes.len()].copy_from_slice(&bytes);
                assert_eq!(all, expected, "{len} bytes at {at}");
            }
        }
    }

    #[test]
    fn what_is_registered_is_what_is_read() {
        let mut seen = (0, 0);
        let register = |ptr: *mut u8, len| {
            seen = (ptr as usize, len);
            Ok::<_, ()>(Nowhere)
        };
        let memory = Heap::new(100, register).unwrap();
        let (_, words, _) = memory.split(0, 8);
        assert_eq!(seen, (words.as_ptr() as usize, 100));
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn outside_it_panics() {
        heap(65).read(60, &mut [0; 6]);
    }
}
