//! Memory regions: their keys, bytes and access rights (Q10).

#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;

use cq_verbs::region_methods;
use cq_verbs::setup::{
    Access, DeviceError, Errno, MemoryOptions, RangeError, RegisterError, Registered,
};

use crate::pd::ProtectionDomain;
use crate::sys::memory::Memory;
use crate::sys::mr::Mr;
use crate::sys::pd::Pd;
use crate::{error, trace};

/// A registration, and its memory.
#[derive(Debug)]
struct Registration {
    raw: Mr,
    region: Registered,
}

impl Registration {
    /// # Safety
    /// As for [`register`](crate::ProtectionDomain::register).
    unsafe fn new(
        pd: &Arc<Pd>,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<Self, RegisterError> {
        if access.lacks_local_write() {
            return Err(RegisterError::NeedsLocalWrite);
        }
        if len == 0 {
            return Err(RegisterError::Empty);
        }
        let addr = ptr.addr() as u64;
        if addr.checked_add(len as u64).is_none() {
            return Err(RegisterError::OutOfRange { addr, len });
        }
        // SAFETY: the caller ensures the same.
        let raw = unsafe { Mr::new(pd, ptr, len, access.bits()) }.map_err(refused)?;
        let region = Registered { addr, len, lkey: raw.lkey(), rkey: raw.rkey() };
        trace::event!(
            DEBUG, pd = pd.number(), rkey = region.rkey, len = len, access = ?access,
            "memory region registered"
        );
        Ok(Self { raw, region })
    }
}

fn refused(error: io::Error) -> DeviceError {
    let attempt = match error::errno(&error) == Errno::ENOMEM {
        true => "lock that much memory for the device (`ulimit -l` says how much there may be)",
        false => "register memory",
    };
    error::refused(attempt, &error)
}

region_methods!(MemoryRegion);
region_methods!(OwnedRegion);

/// Memory of the caller's, registered by [`register`](crate::ProtectionDomain::register).
///
/// Deregistering twice does not compile:
/// ```compile_fail,E0382
/// # fn twice(region: transport_verbs::MemoryRegion) {
/// region.deregister();
/// region.deregister();
/// # }
/// ```
#[doc(alias("ibv_mr", "ibv_dereg_mr"))]
#[derive(Debug)]
pub struct MemoryRegion {
    registration: Registration,
}

/// Memory that comes with its registration, zeroed, aligned to a page. It is never lent as a slice, because
/// peers may write it at any time: bytes are copied in and out.
///
/// Dropping it is safe at any time. Requests that still need it [fail](cq_verbs::device::Region), so drop it after the
/// queue pairs that use it.
///
/// ```no_run
/// use transport_verbs::{Access, Context};
///
/// let pd = Context::open_first()?.alloc_pd()?;
/// let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE_READ)?;
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
    memory: Arc<Memory>,
}

impl OwnedRegion {
    /// Copies bytes out of the region. Any part of a WRITE in progress may have arrived.
    ///
    /// # Errors
    /// They are not inside; nothing was copied.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RangeError> {
        let outside = RangeError { offset, len: to.len(), available: self.memory.len() };
        self.memory.read(offset, to).ok_or(outside)
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// They are not inside; nothing was copied.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), RangeError> {
        let outside = RangeError { offset, len: from.len(), available: self.memory.len() };
        self.memory.write(offset, from).ok_or(outside)
    }
}

impl ProtectionDomain {
    /// Allocates and registers memory, zeroed. This is safe. The memory is leaked if the device fails to deregister it.
    ///
    /// # Errors
    /// The length is 0, there is no memory, the rights are invalid ([Q10](cq_core::contract#q10)), or the device
    /// refused.
    pub fn allocate(&self, len: usize, access: Access) -> Result<OwnedRegion, RegisterError> {
        self.allocate_with(len, access, &MemoryOptions::new())
    }

    /// Allocates and registers memory, as [`allocate`](Self::allocate) does, with huge pages or prefaulted.
    ///
    /// - **Huge pages.** The memory is marked by `madvise(2)` (MADV_HUGEPAGE). The system gives it transparent huge pages
    ///   unless `/sys/kernel/mm/transparent_hugepage/enabled` says `never`. Registering is faster, and a card that
    ///   merges adjacent pages has fewer entries to look up.
    /// - **Prefault.** A device that pins memory, as cards do, makes all pages present when it registers them. So
    ///   prefaulting moves that cost and saves nothing, except on a device that does not pin.
    ///
    /// ```no_run
    /// use transport_verbs::{Access, Context, MemoryOptions};
    ///
    /// let pd = Context::open_first()?.alloc_pd()?;
    /// let region = pd.allocate_with(64 << 20, Access::LOCAL_WRITE, &MemoryOptions::new().huge_pages())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`allocate`](Self::allocate), or the system has no page to prefault; nothing is left allocated.
    pub fn allocate_with(
        &self,
        len: usize,
        access: Access,
        options: &MemoryOptions,
    ) -> Result<OwnedRegion, RegisterError> {
        if len == 0 {
            return Err(RegisterError::Empty);
        }
        let memory = Memory::with(len, options)
            .map_err(|errno| RegisterError::NoMemory { len, errno: Errno(errno.raw_os_error()) })?;
        let memory = Arc::new(memory);
        // SAFETY: the pages belong to the region and its registration, and are unmapped once they are
        // deregistered; they are writable, and reached by atomic accesses only.
        let mut registration = unsafe { Registration::new(&self.raw, memory.ptr(), len, access)? };
        registration.raw.keep(&memory);
        Ok(OwnedRegion { registration, memory })
    }

    /// Registers memory of the caller.
    ///
    /// # Errors
    /// The length is 0, the rights are invalid ([Q10](cq_core::contract#q10)), or the device refused.
    ///
    /// # Safety
    /// What [`ProtectionDomain::register`](cq_verbs::device::DevicePd::register) of the traits demands. Where the device
    /// fails to deregister the region, [`tracing`](crate::manual#events-for-tracing) has "object not destroyed".
    #[doc(alias = "ibv_reg_mr")]
    pub unsafe fn register(
        &self,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion, RegisterError> {
        // SAFETY: the caller's word, which is the same.
        let registration = unsafe { Registration::new(&self.raw, ptr, len, access)? };
        Ok(MemoryRegion { registration })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_memory_can_not_be_locked_the_limit_is_named() {
        let said = |errno: Errno| refused(io::Error::from_raw_os_error(errno.0)).to_string();
        assert!(said(Errno::ENOMEM).contains("ulimit -l"));
        assert!(!said(Errno::EINVAL).contains("ulimit"));
    }

    #[test]
    #[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
    fn memory_is_kept_by_its_registration_and_given_back_with_it() {
        let context = crate::Context::of_tests();
        let region = context.alloc_pd().unwrap().allocate(4096, Access::LOCAL_WRITE).unwrap();
        let memory = Arc::downgrade(&region.memory);
        assert_eq!(
            memory.strong_count(),
            2,
            "the device may still write it when deregistering fails"
        );
        drop(region);
        assert_eq!(memory.strong_count(), 0);
    }
}
