//! Shared receive queues: receives that several queue pairs take from (Q9).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cq_verbs::post::PostError;
use cq_verbs::setup::{ArmLimitError, CreateError, DeviceError, InUseError, LimitKind, SrqInit};
use cq_verbs::wr::RecvWr;

use crate::error::{Attempt, beyond};
use crate::pd::ProtectionDomain;
use crate::sys::srq::Srq;
use crate::{refusal, trace};

/// A shared receive queue. Its receives complete on the queue pairs that take them.
///
/// ```no_run
/// use transport_verbs::{Access, Context, RecvWr, SrqInit};
///
/// let context = Context::open_first()?;
/// let (pd, cq) = (context.alloc_pd()?, context.cq(64).create()?);
/// let mut srq = pd.create_srq(&SrqInit::new(64))?;
/// let first = pd.qp(&cq).srq(&srq).create()?;
/// let second = pd.qp(&cq).srq(&srq).create()?;
///
/// let region = pd.allocate(4096, Access::LOCAL_WRITE)?;
/// srq.post_recv(&[RecvWr::new(1, &[region.sge(..2048)?]), RecvWr::new(2, &[region.sge(2048..4096)?])])?;
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
#[doc(alias("ibv_srq", "ibv_post_srq_recv", "ibv_modify_srq", "ibv_destroy_srq"))]
#[derive(Debug)]
pub struct SharedReceiveQueue {
    pub(crate) raw: Arc<Srq>,
    number: u32,
    caps: SrqInit,
}

impl SharedReceiveQueue {
    /// The queue's number, which its asynchronous events carry.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The capacities: at least those that were requested.
    #[must_use]
    pub const fn caps(&self) -> SrqInit {
        self.caps
    }

    /// Posts receives, in order.
    ///
    /// # Errors
    /// A receive is refused: the error has its index. Those before it are posted, it and those after it are not
    /// ([Q4](cq_core::contract#q4)).
    #[inline]
    pub fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let max_sge = self.caps.max_sge;
        self.raw.post_recv(list).map_err(|failure| refusal::of_recv(&failure, list, max_sge))
    }

    /// Requests one SRQ_LIMIT_REACHED for when fewer than `limit` receives are left; 0 requests none.
    ///
    /// # Errors
    /// The limit exceeds the queue's capacity, or the device refused.
    #[doc(alias = "ibv_modify_srq")]
    pub fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
        let max = self.caps.max_wr;
        let armed = self.raw.arm_limit(limit).attempt("set the limit of the shared receive queue");
        armed.map_err(|refused| match limit > max {
            true => ArmLimitError::TooMany { asked: limit, max },
            false => ArmLimitError::Refused(refused),
        })
    }

    /// The armed limit: 0 once it was reached, or if none was requested.
    ///
    /// # Errors
    /// The device could not be queried.
    #[doc(alias = "ibv_query_srq")]
    pub fn limit(&self) -> Result<u32, DeviceError> {
        self.raw.limit().attempt("query the shared receive queue")
    }

    /// Destroys the queue. Dropping destroys it once its last queue pair is destroyed.
    ///
    /// # Errors
    /// A queue pair uses it; the handle is returned (EBUSY, [Q11](cq_core::contract#q11)).
    pub fn destroy(self) -> Result<(), InUseError<Self>> {
        let Self { raw, number, caps } = self;
        Arc::try_unwrap(raw).map(drop).map_err(|raw| {
            InUseError::new(Self { raw, number, caps }, "shared receive queue", "its queue pairs")
        })
    }
}

impl ProtectionDomain {
    /// Creates a shared receive queue ([Q9](cq_core::contract#q9)).
    ///
    /// # Errors
    /// A capacity exceeds the device's limits, there are too many, or the device does not support them.
    #[doc(alias = "ibv_create_srq")]
    pub fn create_srq(&self, init: &SrqInit) -> Result<SharedReceiveQueue, CreateError> {
        // Numbers are not used again, so a dead queue's event names no other.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let most = self.raw.context().attributes;
        let limits = [
            (LimitKind::SrqWr, init.max_wr, most.max_srq_wr),
            (LimitKind::SrqSge, init.max_sge, most.max_srq_sge),
        ];
        let made = Srq::new(&self.raw, number, init.max_wr, init.max_sge);
        let made = made.attempt("create a shared receive queue");
        let (raw, granted) = made.map_err(|refused| beyond(&limits, refused))?;
        let caps = SrqInit::new(granted.max_wr).max_sge(granted.max_sge);
        trace::event!(DEBUG, srq = number, capacity = caps.max_wr, "shared receive queue created");
        Ok(SharedReceiveQueue { raw: Arc::new(raw), number, caps })
    }
}
