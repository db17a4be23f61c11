//! Datagrams: sends of UD queue pairs, each with its destination.

use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::setup::QpType;
use cq_verbs::wr::{RecvWr, SendOp, SendWr};

use crate::ah::AddressHandle;
use crate::qp::QueuePair;
use crate::sys::qp::Target;

/// The destination of a datagram.
pub type Destination<'a> = cq_verbs::setup::Destination<'a, AddressHandle>;

/// A queue pair whose datagrams go to one destination, returned by [`QueuePair::to`].
///
/// ```no_run
/// use transport_verbs::{AddressVector, Context, Destination, Endpoint, Gid, QpType, SendWr};
///
/// # let peer = Endpoint::new(17);
/// let context = Context::open_first()?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let cq = context.cq(16).create()?;
/// let mut qp = pd.qp(&cq).qp_type(QpType::UD).create()?;
/// qp.activate(&port, 0x1111)?;
///
/// let ah = pd.create_ah(&AddressVector::new(&port, peer.gid, peer.lid))?;
/// let there = Destination::new(&ah, peer.qp_num, 0x1111);
/// qp.to(&there).post_send(&[SendWr::send_inline(1, b"hello")])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Directed<'a> {
    qp: &'a mut QueuePair,
    destination: Destination<'a>,
}

impl QueuePair {
    /// Sets the destination: requests posted through the result are sent there.
    ///
    /// The result does not outlive the address handle:
    /// ```compile_fail,E0505
    /// # use transport_verbs::{AddressHandle, Destination, QueuePair};
    /// # fn outlive(qp: &mut QueuePair, ah: AddressHandle) {
    /// let mut directed = qp.to(&Destination::new(&ah, 1, 2));
    /// ah.destroy();
    /// directed.post_send(&[]);
    /// # }
    /// ```
    #[inline]
    pub const fn to<'a>(&'a mut self, destination: &Destination<'a>) -> Directed<'a> {
        Directed { qp: self, destination: *destination }
    }
}

impl Directed<'_> {
    fn judge(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        let sends = matches!(wr.op, SendOp::Send { .. });
        if !sends || self.qp.qp_type() != QpType::UD {
            return Err(WrError::Unsupported);
        }
        Ok(())
    }

    fn judge_now(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.judge(wr)?;
        self.qp.judge_now(wr)
    }

    const fn target(&self) -> Target<'_> {
        let Destination { ah, qp_num, qkey, .. } = self.destination;
        Target { ah: &ah.raw, qp_num, qkey }
    }
}

impl Post for Directed<'_> {
    /// Datagrams carry SEND, with or without immediate data; everything else is refused.
    #[inline]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.qp
            .raw
            .post_send(list, |wr| self.judge_now(wr), Some(self.target()))
            .map_err(|failure| self.qp.explain(&failure, list))
    }

    #[inline]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.qp.post_recv(list)
    }

    fn quiesce(&mut self) -> bool {
        self.qp.quiesce()
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.judge(wr)?;
        self.qp.check(wr, Some(self.target()))
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        self.qp.check_recv(wr)
    }
}
