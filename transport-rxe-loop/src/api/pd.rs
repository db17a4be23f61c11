//! Protection domains: they create regions, windows, queue pairs, shared receive queues and address handles.

use std::sync::Arc;

use cq_core::wc::Wc;
use cq_verbs::device::QpBuilder;
use cq_verbs::setup::{
    Access, AddressError, AddressVector, InUseError, MemoryOptions, Port, SrqInit,
};

use crate::api::ah::{self, AddressHandle};
use crate::api::domain::Domain;
use crate::api::mr::{MemoryRegion, OwnedRegion};
use crate::api::mw::MemoryWindow;
use crate::api::qp::QueuePair;
use crate::api::srq::SharedReceiveQueue;
use crate::engine::requester::grh;
use crate::error::{CreateError, RegisterError};

/// A protection domain.
///
/// ```
/// use transport_rxe_loop::{Access, Context};
///
/// let pd = Context::open("loop0")?.alloc_pd()?;
/// let region = pd.allocate(64, Access::LOCAL_WRITE)?;
///
/// // In use: the handle is returned (Q11).
/// let pd = pd.destroy().unwrap_err().handle;
/// region.deregister();
/// pd.destroy()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(pd: transport_rxe_loop::ProtectionDomain) {
/// pd.destroy();
/// pd.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct ProtectionDomain {
    pub(crate) domain: Arc<Domain>,
}

impl ProtectionDomain {
    /// Allocates and registers memory of the device, zeroed. This is safe, and other processes copy it fastest. All of
    /// it is reserved in shared memory at once.
    ///
    /// # Errors
    /// The length is 0, there is no memory or no shared memory, the rights are invalid ([Q10](cq_core::contract#q10)),
    /// or there are too many regions.
    pub fn allocate(&self, len: usize, access: Access) -> Result<OwnedRegion, RegisterError> {
        self.allocate_with(len, access, &MemoryOptions::new())
    }

    /// Allocates and registers memory, as [`allocate`](Self::allocate) does, with huge pages or prefaulted.
    ///
    /// - **Huge pages.** Linux 6.1 or later gathers the reserved pages into huge ones, also where `/dev/shm` has the usual
    ///   `huge=never`; `shmem_enabled` = `deny` forbids it. What is gathered is present in this process. Where `/dev/shm` is
    ///   mounted with `huge=within_size` or `huge=always`, all memory of 2 MiB and more has huge pages, allocated with this
    ///   option or without, and there is nothing to gather. Before Linux 6.1 only that gives huge pages.
    /// - **Prefault.** All pages are present in this process. Another process faults once for each page that it uses, or,
    ///   of huge ones, for each 2 MiB.
    ///
    /// ```
    /// use transport_rxe_loop::{Access, Context, MemoryOptions};
    ///
    /// let pd = Context::open("loop0")?.alloc_pd()?;
    /// let options = MemoryOptions::new().huge_pages().prefault();
    /// let region = pd.allocate_with(4 << 20, Access::LOCAL_WRITE, &options)?;
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
        OwnedRegion::new(&self.domain, len, access, options)
    }

    /// Registers memory of the caller. Other processes copy it by [system
    /// calls](MemoryRegion#access-by-other-processes) ([X5](cq_core::contract#x5)).
    ///
    /// # Errors
    /// The length is 0, the range exceeds the address space, the rights are invalid ([Q10](cq_core::contract#q10)), or
    /// there are too many regions.
    ///
    /// # Safety
    /// What [`ProtectionDomain::register`](cq_verbs::device::DevicePd::register) of the traits demands. This device
    /// never fails to deregister a region. The threads of other processes read and write the bytes, too.
    /// [Unmapping memory](MemoryRegion#unmapped-memory) before that is the program's mistake.
    #[allow(unsafe_code)]
    #[doc(alias = "ibv_reg_mr")]
    pub unsafe fn register(
        &self,
        ptr: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion, RegisterError> {
        // SAFETY: the caller upholds the same contract.
        unsafe { MemoryRegion::new(&self.domain, ptr, len, access) }
    }

    /// Allocates a memory window of type 2, not bound.
    ///
    /// # Errors
    /// There are too many regions and windows.
    #[doc(alias("ibv_alloc_mw", "ibv_dealloc_mw"))]
    pub fn alloc_mw(&self) -> Result<MemoryWindow, RegisterError> {
        MemoryWindow::new(&self.domain)
    }

    /// Creates a queue pair, in RESET.
    ///
    /// # Errors
    /// A capacity exceeds the device's limits, there are too many queue pairs, there is no memory, a queue belongs to
    /// another fabric, or the type can't use a shared receive queue.
    pub fn create_qp(&self, init: &QpBuilder<'_, Self>) -> Result<QueuePair, CreateError> {
        QueuePair::new(&self.domain, init)
    }

    /// Creates a shared receive queue ([Q9](cq_core::contract#q9)).
    ///
    /// # Errors
    /// A capacity is 0 or exceeds the device's limits, there are too many shared receive queues, or there is no memory.
    #[doc(alias = "ibv_create_srq")]
    pub fn create_srq(&self, init: &SrqInit) -> Result<SharedReceiveQueue, CreateError> {
        SharedReceiveQueue::new(&self.domain, init)
    }

    /// Creates an address handle.
    ///
    /// # Errors
    /// The address is not that of the device's only port: its LID, or one of its [GIDs](crate::Context::gid_table).
    /// On Ethernet it needs a global route.
    #[doc(alias = "ibv_create_ah")]
    pub fn create_ah(&self, to: &AddressVector) -> Result<AddressHandle, AddressError> {
        AddressHandle::new(&self.domain, to)
    }

    /// Creates a handle of the source of a datagram that this port received, for replies, as `ibv_create_ah_from_wc(3)`
    /// does. `wc` is the receive completion and `grh` the first 40 bytes of the receive buffer, which are read only if
    /// the completion has the GRH flag.
    ///
    /// # Errors
    /// The completion is not a successful one of a receive ([C4](cq_core::contract#c4)), or `grh` is not the GRH that
    /// came with it.
    pub fn ah_from_wc(
        &self,
        port: &Port,
        wc: &Wc,
        grh: &[u8; grh::BYTES],
    ) -> Result<AddressHandle, AddressError> {
        self.create_ah(&ah::source(port.number, wc, grh, self.domain.engine().current_port()?)?)
    }

    /// Destroys the domain. Dropping destroys it once its last region, window, queue pair, shared receive queue and
    /// address handle is destroyed.
    ///
    /// # Errors
    /// An object in it exists; the handle is returned (EBUSY, [Q11](cq_core::contract#q11)).
    pub fn destroy(self) -> Result<(), InUseError<Self>> {
        Arc::try_unwrap(self.domain).map(drop).map_err(|domain| {
            InUseError::new(
                Self { domain },
                "protection domain",
                "its memory regions, windows, queue pairs, shared receive queues and address handles",
            )
        })
    }
}
