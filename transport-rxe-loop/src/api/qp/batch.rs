//! Batches: sends that are posted together, or not at all.

use cq_verbs::post::WrError;
use cq_verbs::setup::QpType;
use cq_verbs::wr::SendWr;

use crate::api::ah::Destination;
use crate::api::qp::QueuePair;
use crate::engine::ud_address::UdAddress;
use crate::protocol::number::Position;
use crate::sync;

/// Sends to be posted together, like those between `ibv_wr_start(3)` and `ibv_wr_complete(3)`. Made by
/// [`QueuePair::batch`]. None is carried out before [`post`](Self::post); dropping the batch discards those not posted.
///
/// ```
/// use transport_rxe_loop::verbs::post::WrError;
/// use transport_rxe_loop::{Access, Context, SendWr, Wc};
///
/// let context = Context::open("loop0")?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let mut cq = context.cq(16).create()?;
/// let mut qp = pd.qp(&cq).create()?;
/// qp.connect(&port, &qp.endpoint(&port))?;
/// let region = pd.allocate(64, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
///
/// let mut batch = qp.batch();
/// batch.put(&SendWr::write_inline(1, b"hello", region.remote(0)?).unsignaled())?;
/// assert_eq!(batch.put(&SendWr::send_inline(2, &[0; 65])), Err(WrError::InlineTooLong { max: 64 }));
///
/// // Nothing was posted. This is another batch.
/// let mut batch = qp.batch();
/// batch.put(&SendWr::write_inline(3, b"hello", region.remote(0)?).unsignaled())?;
/// batch.put(&SendWr::write_inline(4, b"world", region.remote(8)?))?;
/// batch.post();
///
/// let mut wcs = [Wc::default(); 4];
/// while cq.poll(&mut wcs)?.is_empty() {}
/// assert_eq!(wcs[0].result()?.wr_id(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Batch<'q> {
    qp: &'q mut QueuePair,
    /// The position of the first send that is not posted, and the one after the last.
    first: Position,
    end: Position,
}

impl QueuePair {
    /// Begins a batch of sends.
    #[doc(alias("ibv_wr_start", "ibv_wr_complete", "ibv_wr_abort", "ibv_qp_to_qp_ex"))]
    #[inline]
    #[must_use]
    pub fn batch(&mut self) -> Batch<'_> {
        let first = self.claimed.queue.slot.send.posted();
        Batch { qp: self, first, end: first }
    }

    /// Validates a datagram and its destination.
    pub(in crate::api) fn validate_send_to(
        &self,
        wr: &SendWr<'_>,
        to: &Destination<'_>,
    ) -> Result<(), WrError> {
        let way = self.validate_destination(to)?;
        self.validate_send(wr, Some(&way)).map(drop)
    }

    /// Validates the destination. The request itself is validated when it is added.
    fn validate_destination(&self, to: &Destination<'_>) -> Result<UdAddress, WrError> {
        if self.qp_type != QpType::UD {
            return Err(WrError::Unsupported);
        }
        if to.ah.domain() != sync::load(&self.claimed.queue.slot.pd) {
            return Err(WrError::NoDestination);
        }
        Ok(to.ah.ud_address(to.qp_num, to.qkey))
    }
}

impl Batch<'_> {
    /// The queue pair, for queries.
    #[must_use]
    pub const fn queue_pair(&self) -> &QueuePair {
        self.qp
    }

    /// Adds a send.
    ///
    /// # Errors
    /// The send is refused, as when it is posted ([Q4](cq_core::contract#q4)). The batch is unchanged.
    #[inline]
    pub fn put(&mut self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.put_along(wr, None)
    }

    /// Adds a datagram.
    ///
    /// # Errors
    /// The datagram is refused, as when it is posted [to](QueuePair::to) this destination. The batch is unchanged.
    pub fn put_to(&mut self, wr: &SendWr<'_>, to: &Destination<'_>) -> Result<(), WrError> {
        let way = self.qp.validate_destination(to)?;
        self.put_along(wr, Some(&way))
    }

    #[inline]
    fn put_along(&mut self, wr: &SendWr<'_>, way: Option<&UdAddress>) -> Result<(), WrError> {
        self.qp.check_takes_sends()?;
        self.qp.put_send(self.end, wr, way)?;
        self.end = self.end.next();
        Ok(())
    }

    /// Posts the sends that were added, in order. More can be added afterwards.
    #[inline]
    pub fn post(&mut self) {
        if self.end != self.first {
            self.qp.publish_sends(self.end);
            self.first = self.end;
        }
    }
}
