//! Memory regions: what a key stands for, and who may do what with it (Q10).

#![allow(unsafe_code)]

use std::sync::Arc;

use cq_core::wr::{RemoteAddr, Sge};

use crate::error::{RangeError, RegisterError};
use crate::layout::{Entry, MAX_MR};
use crate::pd::Domain;
use crate::region::Mapping;
use crate::sync::{self, AtomicU8, AtomicU64};
use crate::window;

bitflags::bitflags! {
    /// `enum ibv_access_flags`: what may be done with registered memory, or by a peer through a queue
    /// pair.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// The device may write it for requests of this side: receives.
        const LOCAL_WRITE = 1;
        /// Peers may write it.
        const REMOTE_WRITE = 1 << 1;
        /// Peers may read it.
        const REMOTE_READ = 1 << 2;
        /// Peers may use atomics on it.
        const REMOTE_ATOMIC = 1 << 3;
        /// Everything that peers may do.
        const REMOTE = Self::REMOTE_WRITE.bits() | Self::REMOTE_READ.bits() | Self::REMOTE_ATOMIC.bits();
        /// What a device may ignore if it does not know it.
        const OPTIONAL = 0x3ff << 20;
        const _ = !0;
    }
}

impl Access {
    const KNOWN: Self = Self::LOCAL_WRITE.union(Self::REMOTE).union(Self::OPTIONAL);

    /// Bits that the device does not know and must not ignore.
    pub(crate) const fn unknown_bits(self) -> u32 {
        self.difference(Self::KNOWN).bits()
    }

    fn check(self) -> Result<(), RegisterError> {
        if self.unknown_bits() != 0 {
            return Err(RegisterError::UnknownAccess { bits: self.unknown_bits() });
        }
        let by_peers = self.intersects(Self::REMOTE_WRITE.union(Self::REMOTE_ATOMIC));
        if by_peers && !self.contains(Self::LOCAL_WRITE) {
            return Err(RegisterError::NeedsLocalWrite);
        }
        Ok(())
    }
}

/// A key, from registering to deregistering.
#[derive(Debug)]
struct Registration {
    domain: Arc<Domain>,
    index: u32,
    key: u32,
    addr: u64,
    len: usize,
}

impl Registration {
    fn new(
        domain: &Arc<Domain>,
        addr: u64,
        len: usize,
        access: Access,
    ) -> Result<Self, RegisterError> {
        access.check()?;
        if len == 0 {
            return Err(RegisterError::Empty);
        }
        if addr.checked_add(len as u64).is_none() {
            return Err(RegisterError::OutOfRange { addr, len });
        }
        let fabric = domain.fabric();
        let (index, generation) =
            fabric.tables().mrs.claim().ok_or(RegisterError::TableFull { max: MAX_MR as u32 })?;
        // The low byte of a key tells it from the last ones of its place, and keeps it from being 0.
        let key = index << 8 | (1 + generation % 255);
        let slot = fabric.mr(index);
        sync::store(&slot.base, addr);
        sync::store(&slot.len, len as u64);
        sync::store_u32(&slot.access, access.bits());
        sync::store_u32(&slot.pd, domain.number());
        sync::release(&slot.key, key);
        Ok(Self { domain: Arc::clone(domain), index, key, addr, len })
    }

    fn piece(&self, offset: usize, len: usize) -> Result<u64, RangeError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.addr + offset as u64),
            _ => Err(RangeError { offset, len, available: self.len }),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let fabric = self.domain.fabric();
        let slot = fabric.mr(self.index);
        sync::store_u32(&slot.key, 0);
        sync::full_fence();
        for qp in fabric.tables().qps.all() {
            window::wait_for_copy(&qp.send.copying);
        }
        slot.life().end();
    }
}

/// Gives both kinds of region their common methods.
macro_rules! region {
    ($name:ident) => {
        impl $name {
            /// The key that requests of this side use.
            #[must_use]
            pub const fn lkey(&self) -> u32 {
                self.registration.key
            }

            /// The key that the peer uses.
            #[must_use]
            pub const fn rkey(&self) -> u32 {
                self.registration.key
            }

            /// The address of the first byte.
            #[must_use]
            pub const fn addr(&self) -> u64 {
                self.registration.addr
            }

            /// How many bytes it has; at least one.
            #[must_use]
            #[allow(clippy::len_without_is_empty)]
            pub const fn len(&self) -> usize {
                self.registration.len
            }

            /// A piece of it, for a request of this side.
            ///
            /// # Errors
            /// It is not inside, or longer than a piece can be.
            pub fn sge(&self, offset: usize, len: usize) -> Result<Sge, RangeError> {
                let addr = self.registration.piece(offset, len)?;
                let length = u32::try_from(len).map_err(|_| RangeError {
                    offset,
                    len,
                    available: u32::MAX as usize,
                })?;
                Ok(Sge { addr, length, lkey: self.lkey() })
            }

            /// A place in it, for a request of the peer.
            ///
            /// # Errors
            /// It is not inside.
            pub fn remote(&self, offset: usize) -> Result<RemoteAddr, RangeError> {
                let addr = self.registration.piece(offset, 0)?;
                Ok(RemoteAddr { addr, rkey: self.rkey() })
            }

            /// Ends the registration, as dropping does: when this returns the keys are dead, and nothing
            /// moves through them any more (Q10).
            pub fn deregister(self) {
                drop(self);
            }
        }
    };
}
region!(MemoryRegion);
region!(OwnedRegion);

/// Memory of the caller's, registered by [`register`](crate::ProtectionDomain::register).
///
/// Deregistering twice does not compile:
/// ```compile_fail
/// # fn twice(region: transport_rxe_loop::MemoryRegion) {
/// region.deregister();
/// region.deregister();
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryRegion {
    registration: Registration,
}

impl MemoryRegion {
    /// # Safety
    /// As for [`register`](crate::ProtectionDomain::register).
    pub(crate) unsafe fn new(
        domain: &Arc<Domain>,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<Self, RegisterError> {
        let registration = Registration::new(domain, ptr.expose_provenance() as u64, len, access)?;
        Ok(Self { registration })
    }
}

/// Memory that comes with its registration. It is never lent as a slice, because peers may write it at any
/// time: bytes are copied in and out.
///
/// ```
/// use transport_rxe_loop::{Access, Context};
///
/// let region = Context::open("loop0")?.alloc_pd().allocate(4096, Access::LOCAL_WRITE)?;
/// region.write(8, b"hello")?;
/// let mut back = [0; 5];
/// region.read(8, &mut back)?;
/// assert_eq!(&back, b"hello");
/// assert!(region.write(4095, b"hello").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OwnedRegion {
    // Before the memory: it is deregistered before it is unmapped.
    registration: Registration,
    memory: Mapping,
}

impl OwnedRegion {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        len: usize,
        access: Access,
    ) -> Result<Self, RegisterError> {
        if len == 0 {
            return Err(RegisterError::Empty);
        }
        let memory = Mapping::new(len)
            .map_err(|errno| RegisterError::NoMemory { len, errno: errno.raw_os_error() })?;
        let registration = Registration::new(domain, memory.addr() as u64, len, access)?;
        Ok(Self { registration, memory })
    }

    /// Copies bytes out. Of a WRITE that is under way, any part may have arrived.
    ///
    /// # Errors
    /// They are not inside; nothing was copied.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RangeError> {
        let (head, words, tail) = self.split(offset, to.len())?;
        let (start, rest) = to.split_at_mut(head.len());
        let (middle, end) = rest.split_at_mut(words.len() * 8);
        let bytes = start.iter_mut().zip(head).chain(end.iter_mut().zip(tail));
        bytes.for_each(|(to, from)| *to = sync::load_u8(from));
        for (to, from) in middle.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&sync::load(from).to_ne_bytes());
        }
        sync::read_fence();
        Ok(())
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// They are not inside; nothing was copied.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), RangeError> {
        let (head, words, tail) = self.split(offset, from.len())?;
        let (start, rest) = from.split_at(head.len());
        let (middle, end) = rest.split_at(words.len() * 8);
        let bytes = start.iter().zip(head).chain(end.iter().zip(tail));
        bytes.for_each(|(from, to)| sync::store_u8(to, *from));
        for (from, to) in middle.chunks_exact(8).zip(words) {
            let mut word = [0; 8];
            word.copy_from_slice(from);
            sync::store(to, u64::from_ne_bytes(word));
        }
        Ok(())
    }

    /// A range as the bytes before the first whole word, the whole words, and the bytes after them.
    #[allow(clippy::type_complexity)]
    fn split(
        &self,
        offset: usize,
        len: usize,
    ) -> Result<(&[AtomicU8], &[AtomicU64], &[AtomicU8]), RangeError> {
        self.registration.piece(offset, len)?;
        let head = (offset.next_multiple_of(8) - offset).min(len);
        let words = (len - head) / 8;
        let tail = head + words * 8;
        let outside = RangeError { offset, len, available: self.memory.len() };
        Ok((
            self.memory.slice(offset, head).ok_or(outside)?,
            self.memory.slice(offset + head, words).ok_or(outside)?,
            self.memory.slice(offset + tail, len - tail).ok_or(outside)?,
        ))
    }
}
