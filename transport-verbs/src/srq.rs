//! Shared receive queues: receives that several queue pairs take from (Q9).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cq_core::setup::{InUse, SrqInit};
use cq_core::transport::PostError;
use cq_core::wr::RecvWr;

use crate::error::{Attempt, DeviceError};
use crate::pd::ProtectionDomain;
use crate::refusal;
use crate::sys::srq::Srq;

/// A shared receive queue. Its receives complete on the queue pairs that take them.
///
/// ```no_run
/// use cq_core::wr::RecvWr;
/// use transport_verbs::{Access, Context, QpInit, SrqInit};
///
/// let context = Context::open_first()?;
/// let (pd, cq) = (context.alloc_pd()?, context.create_cq(64, None)?);
/// let mut srq = pd.create_srq(&SrqInit { max_wr: 64, max_sge: 1 })?;
/// let first = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) })?;
/// let second = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) })?;
///
/// let region = pd.allocate(4096, Access::LOCAL_WRITE)?;
/// srq.post_recv(&[RecvWr::new(1, &[region.sge(0, 2048)?]), RecvWr::new(2, &[region.sge(2048, 2048)?])])?;
/// srq.arm_limit(1)?; // an asynchronous event says when none is left
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Destroying it twice does not compile:
/// ```compile_fail,E0382
/// # fn twice(srq: transport_verbs::SharedReceiveQueue) {
/// let _ = srq.destroy();
/// let _ = srq.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct SharedReceiveQueue {
    raw: Arc<Srq>,
    number: u32,
    caps: SrqInit,
}

impl SharedReceiveQueue {
    pub(crate) const fn raw(&self) -> &Arc<Srq> {
        &self.raw
    }

    /// Its number, which its asynchronous events carry.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// What it takes: at least what was asked for.
    #[must_use]
    pub const fn caps(&self) -> SrqInit {
        self.caps
    }

    /// Posts a list of receives, in order.
    ///
    /// # Errors
    /// Stops at the first that is refused, and says which; those before it are posted (Q4).
    #[inline]
    pub fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let max_sge = self.caps.max_sge;
        self.raw.post_recv(list).map_err(|failure| refusal::of_recv(&failure, list, max_sge))
    }

    /// Asks for one SRQ_LIMIT_REACHED once fewer than `limit` receives are left; 0 asks for none.
    ///
    /// # Errors
    /// The limit is more than the queue takes, or the device has none.
    pub fn arm_limit(&mut self, limit: u32) -> Result<(), DeviceError> {
        self.raw.arm_limit(limit).attempt("set the limit of the shared receive queue")
    }

    /// The limit in force: 0 once its event was raised, or if none was asked for.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn limit(&self) -> Result<u32, DeviceError> {
        self.raw.limit().attempt("query the shared receive queue")
    }

    /// Destroys it. Dropping does, too, once the last queue pair of it is gone.
    ///
    /// # Errors
    /// A queue pair takes from it; the handle comes back (EBUSY, Q11).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        let Self { raw, number, caps } = self;
        Arc::try_unwrap(raw).map(drop).map_err(|raw| {
            InUse::new(Self { raw, number, caps }, "shared receive queue", "its queue pairs")
        })
    }
}

impl ProtectionDomain {
    /// A shared receive queue.
    ///
    /// # Errors
    /// Capacities past the device's limits, too many of them, or the device has none.
    pub fn create_srq(&self, init: &SrqInit) -> Result<SharedReceiveQueue, DeviceError> {
        // Numbers are not used again, so a dead queue's event names no other.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let most = self.raw().context().attributes();
        let attempt = match init.max_wr > most.max_srq_wr || init.max_sge > most.max_srq_sge {
            true => {
                "create so large a shared receive queue (the most is in the device's attributes: max_srq_wr, max_srq_sge)"
            }
            false => "create a shared receive queue",
        };
        let (raw, granted) =
            Srq::new(self.raw(), number, init.max_wr, init.max_sge).attempt(attempt)?;
        let caps = SrqInit { max_wr: granted.max_wr, max_sge: granted.max_sge };
        Ok(SharedReceiveQueue { raw: Arc::new(raw), number, caps })
    }
}
