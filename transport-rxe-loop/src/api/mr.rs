//! Memory regions: registering and deregistering memory, and the rights of a key (Q10). [Windows](crate::api::mw) have
//! entries in the same table.

#![allow(unsafe_code)]

use std::sync::Arc;

use cq_verbs::region_methods;
use cq_verbs::setup::{Access, MemoryOptions, RangeError, Registered};

use super::domain::Domain;
use crate::engine::in_flight;
use crate::error::{RegisterError, Stuck};
use crate::lifecycle::deaths;
use crate::memory::files;
use crate::memory::key::Key;
use crate::memory::owned_entry::OwnedEntry;
use crate::memory::region::{Kind, RegionEntry};
use crate::shm::mapping::Mapping;
use crate::sync::{self, AtomicU8, AtomicU64};
use crate::trace;

const FLUSH: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);
const KNOWN: Access = Access::EVERY.union(FLUSH).union(Access::MW_BIND).union(Access::OPTIONAL);

/// The access flags that the device does not know and must not ignore.
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

/// A registered key: its table entry and range.
#[derive(Debug)]
struct Registration {
    /// Kept in use.
    domain: Arc<Domain>,
    entry: OwnedEntry,
    region: Registered,
}

impl Registration {
    fn new(
        domain: &Arc<Domain>,
        owned: OwnedEntry,
        (addr, len): (u64, usize),
        access: Access,
        kind: Kind,
    ) -> Self {
        let (key, number, size) = (owned.key(), domain.number, len as u64);
        let entry =
            RegionEntry { key, access, domain: number, kind, base: addr, len: size, bound: None };
        owned.write(&entry);
        let region = Registered { addr, len, lkey: key.get(), rkey: key.get() };
        trace::event!(
            DEBUG, pd = number, rkey = key.get(), len = len, access = ?access,
            "memory region registered"
        );
        Self { domain: Arc::clone(domain), entry: owned, region }
    }
}

/// Claims a table entry for a region or a window.
pub fn claim(domain: &Domain) -> Result<OwnedEntry, RegisterError> {
    deaths::retry_after_recovery(domain.device, || OwnedEntry::claim(domain.device.memory))
}

/// Invalidates a key, and waits until no operation in flight uses it. Does nothing in a forked child.
///
/// # Errors
/// A process that may be using the key is suspended.
pub fn invalidate_key(domain: &Domain, entry: &OwnedEntry) -> Result<(), Stuck> {
    let engine = domain.engine();
    if !engine.shm.is_ours() {
        return Ok(());
    }
    entry.invalidate();
    in_flight::wait_for_all(engine)
}

fn deregistered(of: &Registration) {
    if of.domain.engine().shm.is_ours() {
        trace::event!(DEBUG, rkey = of.region.rkey, "memory region deregistered");
    }
}

region_methods!(MemoryRegion);
region_methods!(OwnedRegion);

macro_rules! window_methods {
    ($($name:ident),+) => {
        $(
            impl $name {
                /// Whether a [window](crate::MemoryWindow) is bound to the region. Deregistering the region
                /// invalidates the keys of its windows.
                ///
                /// # Staleness
                /// Queue pairs bind windows, and peers invalidate them, at any time.
                #[must_use]
                pub fn has_windows(&self) -> bool {
                    let memory = self.registration.entry.memory;
                    memory.shm.is_ours() && memory.windows.any_in(memory, Key::new(self.lkey()))
                }
            }
        )+
    };
}
window_methods!(MemoryRegion, OwnedRegion);

/// A region of the caller's memory, registered by [`register`](crate::ProtectionDomain::register).
///
/// # Access by other processes
/// Other processes move its bytes by `process_vm_readv(2)` and `process_vm_writev(2)`. Opening the device permits
/// processes of the same user to trace this one, where the system requires that (`PR_SET_PTRACER`).
///
/// - Where the system refuses (a seccomp filter, a PID namespace, a program that can't be traced), the [service
///   thread](crate::manual#the-service-thread) of this process copies.
///   [`copying_by_service`](crate::OpenOptions::copying_by_service) always has it copied so.
/// - Nothing is written to a program that this process starts by `execve(2)`, nor to a process that gets its pid later:
///   each call first names a byte of a guard page, at a random address.
/// - Where a service thread copies to or from memory whose page nobody provides (`userfaultfd(2)`, a dead network file
///   system), RESET, ERR, destroying and deregistering wait for it without limit.
/// - Deregistering waits without limit for a process that was suspended while it may be copying.
///
/// # Unmapped memory
/// What a request may access is judged by keys. Registering does not pin memory, as it does on hardware: the program
/// keeps it mapped, with its protection and with its file, until the region is deregistered. What happens if it does
/// not:
///
/// | the program | requests for which this process copies | requests for which the system copies | on hardware |
/// |---|---|---|---|
/// | unmaps the memory, or takes its rights away (`munmap(2)`, `mprotect(2)`) | end this process by SIGSEGV | fail; see below | use the pinned pages, and succeed; the program does not see what they write |
/// | truncates its file (`ftruncate(2)`) | end this process by SIGBUS | fail; see below | the same |
/// | maps other memory there, or frees its pages (`MADV_DONTNEED`) | access what is there now | access what is there now | use the old pages: the program and the device see different bytes |
/// | deregisters the region first | fail, as for any wrong key | fail, as for any wrong key | fail, as for any wrong key |
///
/// This process copies for its own requests, if the other side is its own, too, or memory that the device
/// [allocated](crate::ProtectionDomain::allocate); and for all requests where the system does not copy. The system copies
/// for all others, and what fails by it fails so:
///
/// | request | whose memory is gone | requester | responder |
/// |---|---|---|---|
/// | any | the requester's | LOC_PROT | |
/// | WRITE, READ, atomic | the responder's | REM_ACCESS | QP_ACCESS_ERR |
/// | WRITE with immediate data | the responder's | REM_ACCESS | LOC_ACCESS |
/// | SEND | the responder's | REM_OP | LOC_PROT |
/// | datagram | the receiver's | SUCCESS | LOC_PROT |
///
/// Bytes before the first that is gone may have been moved. A process that ends by this ends like any that is
/// [killed](crate::manual#death): others lose their connections to it, and nothing else. A handler that leaves the
/// signal by `siglongjmp(3)` keeps what the device held at that moment, for which others may wait without limit.
///
/// Memory that the device allocated is mapped by each process for itself: what one does with its mapping concerns its own
/// requests alone.
///
/// # Misuse
/// Deregistering twice does not compile:
/// ```compile_fail
/// # fn twice(region: transport_rxe_loop::MemoryRegion) {
/// region.deregister();
/// region.deregister();
/// # }
/// ```
#[doc(alias("ibv_mr", "ibv_dereg_mr"))]
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
        check(access)?;
        let addr = ptr.expose_provenance() as u64;
        if len == 0 {
            return Err(RegisterError::Empty);
        }
        if addr.checked_add(len as u64).is_none() {
            return Err(RegisterError::OutOfRange { addr, len });
        }
        let registration =
            Registration::new(domain, claim(domain)?, (addr, len), access, Kind::Heap);
        Ok(Self { registration })
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // The caller may reuse the memory as soon as this returns, and a suspended process would resume its copy into
        // it. So this waits without limit.
        while invalidate_key(&self.registration.domain, &self.registration.entry).is_err() {}
        deregistered(&self.registration);
    }
}

/// A region of the device's memory, made by [`allocate`](crate::ProtectionDomain::allocate). Bytes are copied in and
/// out; there is no access as a slice, because peers may write the memory at any time. Other processes map it when they
/// first use it, and copy it like their own memory.
///
/// Dropping it is safe at any time. Requests that still need it [fail](cq_verbs::device::Region), so drop it after the
/// queue pairs that use it.
///
/// ```
/// use transport_rxe_loop::{Access, Context};
///
/// let region = Context::open("loop0")?.alloc_pd()?.allocate(4096, Access::LOCAL_WRITE)?;
/// region.write(8, b"hello")?;
/// let mut back = [0; 5];
/// region.read(8, &mut back)?;
/// assert_eq!(&back, b"hello");
/// assert!(region.write(4095, b"hello").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OwnedRegion {
    // Declared first: unmapped before the table entry is freed.
    memory: Mapping,
    registration: Registration,
}

impl OwnedRegion {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        len: usize,
        access: Access,
        options: &MemoryOptions,
    ) -> Result<Self, RegisterError> {
        check(access)?;
        if len == 0 {
            return Err(RegisterError::Empty);
        }
        let entry = claim(domain)?;
        let memory = files::make(&entry.path(), len, options)?;
        let range = (memory.addr() as u64, len);
        let registration = Registration::new(domain, entry, range, access, Kind::Fabric);
        Ok(Self { memory, registration })
    }

    /// Copies bytes from `offset` on into `to`. Any part of a WRITE in progress may be visible.
    ///
    /// # Errors
    /// The range is not inside the region; nothing was copied.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RangeError> {
        let (head, words, tail) = self.split(offset, to.len())?;
        let (start, rest) = to.split_at_mut(head.len());
        let (middle, end) = rest.split_at_mut(words.len() * 8);
        let bytes = start.iter_mut().zip(head).chain(end.iter_mut().zip(tail));
        bytes.for_each(|(to, from)| *to = sync::load(from));
        for (to, from) in middle.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&sync::load(from).to_ne_bytes());
        }
        sync::read_fence();
        Ok(())
    }

    /// Copies `from` into the region, at `offset`.
    ///
    /// # Errors
    /// The range is not inside the region; nothing was copied.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), RangeError> {
        let (head, words, tail) = self.split(offset, from.len())?;
        let (start, rest) = from.split_at(head.len());
        let (middle, end) = rest.split_at(words.len() * 8);
        let bytes = start.iter().zip(head).chain(end.iter().zip(tail));
        bytes.for_each(|(from, to)| sync::store(to, *from));
        for (from, to) in middle.chunks_exact(8).zip(words) {
            let mut word = [0; 8];
            word.copy_from_slice(from);
            sync::store(to, u64::from_ne_bytes(word));
        }
        Ok(())
    }

    /// Splits a range into the bytes before the first whole word, the whole words, and the bytes after them.
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

impl Drop for OwnedRegion {
    fn drop(&mut self) {
        let Registration { domain, entry, .. } = &self.registration;
        // Suspended processes may still write to the memory, through mappings of their own. Nothing reads it any more.
        let _suspended = invalidate_key(domain, entry);
        // A forked child has inherited the mapping; the file is its parent's.
        if domain.engine().shm.is_ours() {
            files::end(&entry.path(), &self.memory);
        }
        deregistered(&self.registration);
    }
}
