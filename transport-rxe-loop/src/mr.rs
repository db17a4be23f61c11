//! Memory regions: what a key stands for, and who may do what with it (Q10).

#![allow(unsafe_code)]

use std::sync::Arc;

use cq_core::region_methods;
use cq_core::setup::{Access, RangeError, Registered};

use crate::error::RegisterError;
use crate::layout::Entry;
use crate::pd::Domain;
use crate::protocol::window::Shut;
use crate::region::Mapping;
use crate::sync::{self, AtomicU8, AtomicU64};
use crate::window;

const KNOWN: Access = Access::EVERY.union(Access::OPTIONAL);

/// Bits that the device does not know and must not ignore.
pub const fn unknown_bits(access: Access) -> u32 {
    access.difference(KNOWN).bits()
}

fn check(access: Access) -> Result<(), RegisterError> {
    match unknown_bits(access) {
        0 if access.lacks_local_write() => Err(RegisterError::NeedsLocalWrite),
        0 => Ok(()),
        bits => Err(RegisterError::UnknownAccess { bits }),
    }
}

/// A key, from registering to deregistering.
#[derive(Debug)]
struct Registration {
    domain: Arc<Domain>,
    index: u32,
    region: Registered,
}

impl Registration {
    fn new(
        domain: &Arc<Domain>,
        addr: u64,
        len: usize,
        access: Access,
    ) -> Result<Self, RegisterError> {
        check(access)?;
        if len == 0 {
            return Err(RegisterError::Empty);
        }
        if addr.checked_add(len as u64).is_none() {
            return Err(RegisterError::OutOfRange { addr, len });
        }
        let fabric = domain.fabric();
        let mrs = &fabric.tables().mrs;
        let full = RegisterError::TableFull { max: mrs.len() };
        let (index, generation) = mrs.claim(fabric.place()).ok_or(full)?;
        // The low byte of a key tells it from the last ones of its place, and keeps it from being 0.
        let key = index << 8 | (1 + generation % 255);
        let slot = fabric.mr(index);
        sync::store(&slot.base, addr);
        sync::store(&slot.len, len as u64);
        sync::store_u32(&slot.access, access.bits());
        sync::store_u32(&slot.pd, domain.number());
        sync::release(&slot.key, key);
        let region = Registered { addr, len, lkey: key, rkey: key };
        Ok(Self { domain: Arc::clone(domain), index, region })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let fabric = self.domain.fabric();
        let slot = fabric.mr(self.index);
        sync::store_u32(&slot.key, 0);
        let shut = Shut::after_change();
        for qp in fabric.tables().qps.all() {
            window::outwait(fabric, &shut, qp);
        }
        slot.life().end(fabric.place());
    }
}

region_methods!(MemoryRegion);
region_methods!(OwnedRegion);

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
        self.registration.region.address(offset, len)?;
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
