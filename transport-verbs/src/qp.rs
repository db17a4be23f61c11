//! Queue pairs, as their owner sees them: posting, changing state, destroying.

use std::sync::Arc;

use cq_core::setup::{QpAttrMask, QpCaps, QpState, QpType};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wr::{Data, RecvWr, SendWr};
use rdma_sys::{ibv_qp_attr, ibv_qp_cap};

use crate::attr::QpAttr;
use crate::attributes::DeviceAttr;
use crate::cq::Cq;
use crate::endpoint;
use crate::error::{Attempt, DeviceError, ModifyError};
use crate::pd::ProtectionDomain;
use crate::refusal;
use crate::srq::SharedReceiveQueue;
use crate::sys::port;
use crate::sys::post::Failure;
use crate::sys::qp::{Parts, Qp};

/// `struct ibv_qp_init_attr`: what a queue pair is made of.
#[derive(Clone, Copy, Debug)]
pub struct QpInit<'a> {
    /// What it can do.
    pub qp_type: QpType,
    /// Where sends complete.
    pub send_cq: &'a Cq,
    /// Where receives complete; may be the same.
    pub recv_cq: &'a Cq,
    /// Where its receives are taken from, if it has none of its own.
    pub srq: Option<&'a SharedReceiveQueue>,
    /// How much it takes.
    pub caps: QpCaps,
    /// Whether every send is signaled, whatever its flags say.
    pub sq_sig_all: bool,
}

impl<'a> QpInit<'a> {
    /// A reliable connection with both directions on one completion queue, and usual capacities: 128
    /// requests each way, of one piece, or of 64 inline bytes.
    #[must_use]
    pub const fn new(cq: &'a Cq) -> Self {
        let (qp_type, caps) = (QpType::Rc, QpCaps::USUAL);
        Self { qp_type, send_cq: cq, recv_cq: cq, srq: None, caps, sq_sig_all: false }
    }
}

/// A queue pair. Posting takes it by `&mut`; completions may be polled elsewhere meanwhile.
///
/// ```no_run
/// use cq_core::cq::CompletionQueue;
/// use cq_core::transport::Post;
/// use cq_core::wc::Wc;
/// use cq_core::wr::{RecvWr, SendWr};
/// use transport_verbs::{Access, Context, QpInit};
///
/// let context = Context::open_first()?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let (cq, peer_cq) = (context.create_cq(16, None)?, context.create_cq(16, None)?);
/// let mut qp = pd.create_qp(&QpInit::new(&cq))?;
/// let mut peer = pd.create_qp(&QpInit::new(&peer_cq))?;
/// qp.connect(&port, &peer.endpoint(&port))?;
/// peer.connect(&port, &qp.endpoint(&port))?;
///
/// let region = pd.allocate(64, Access::LOCAL_WRITE)?;
/// peer.post_recv(&[RecvWr::new(1, &[region.sge(0, 64)?])])?;
/// qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
///
/// let (mut peer_cq, mut room) = (CompletionQueue::new(peer_cq), [Wc::default(); 4]);
/// while peer_cq.poll(&mut room)?.is_empty() {}
/// assert_eq!(room[0].result()?.byte_len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Destroying it twice does not compile:
/// ```compile_fail,E0382
/// # fn twice(qp: transport_verbs::QueuePair) {
/// qp.destroy();
/// qp.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct QueuePair {
    raw: Qp,
    qp_type: QpType,
    caps: QpCaps,
    psn: u32,
    /// The last state that it was brought to from here. By itself the device brings it to ERR, which takes every
    /// request, and to SQE, where it refuses sends itself.
    state: QpState,
    /// As it was set last: going to RTS always sets it.
    max_rd_atomic: u8,
    /// Bytes of a message at most at the port that it was given to, if the device tells. Kept, so that a
    /// queue that is full says so without a system call.
    longest: Option<u64>,
}

impl QueuePair {
    pub(crate) fn new(pd: &ProtectionDomain, init: &QpInit<'_>) -> Result<Self, DeviceError> {
        let QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline } = init.caps;
        let cap = ibv_qp_cap {
            max_send_wr,
            max_recv_wr,
            // Inline bytes are a piece.
            max_send_sge: max_send_sge.max((max_inline > 0).into()),
            max_recv_sge,
            max_inline_data: max_inline,
        };
        let parts = Parts {
            qp_type: init.qp_type,
            send_cq: init.send_cq.raw(),
            recv_cq: init.recv_cq.raw(),
            srq: init.srq.map(SharedReceiveQueue::raw),
            cap,
            sq_sig_all: init.sq_sig_all,
        };
        let made = Qp::new(pd.raw(), &parts);
        let (raw, granted) = made.map_err(|error| DeviceError::new(diagnose(pd, init), error))?;
        let caps = QpCaps {
            max_send_wr: granted.max_send_wr,
            max_recv_wr: granted.max_recv_wr,
            max_send_sge: granted.max_send_sge,
            max_recv_sge: granted.max_recv_sge,
            max_inline: granted.max_inline_data,
        };
        let (state, psn) = (QpState::RESET, endpoint::random_psn());
        Ok(Self { raw, qp_type: init.qp_type, caps, psn, state, max_rd_atomic: 0, longest: None })
    }

    /// Its number, by which the peer connects to it.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.raw.number()
    }

    /// What it can do.
    #[must_use]
    pub const fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// What it takes: at least what was asked for.
    #[must_use]
    pub const fn caps(&self) -> QpCaps {
        self.caps
    }

    /// Number of the first packet that it sends when it is [connected](Self::connect): random, so that
    /// stray packets of earlier connections do not fit.
    #[must_use]
    pub const fn psn(&self) -> u32 {
        self.psn
    }

    /// Its state. A failure may change it at any time.
    ///
    /// # Errors
    /// The device does not tell.
    pub fn state(&self) -> Result<QpState, DeviceError> {
        let attr = self.raw.query(QpAttrMask::STATE.bits()).attempt("query the queue pair")?;
        Ok(QpState(attr.qp_state))
    }

    /// Changes state and attributes, as `ibv_modify_qp(3)` lists them (Q1). To RESET drops what is
    /// outstanding; to ERR flushes it (Q2).
    ///
    /// # Errors
    /// The device refuses: no such change, attributes missing or too many, values out of range. Nothing was
    /// changed.
    pub fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        self.modify_raw(&mut attr.raw(), attr.mask())
    }

    /// As [`modify`](Self::modify), with attributes that libibverbs or librdmacm filled in.
    pub(crate) fn modify_raw(
        &mut self,
        attr: &mut ibv_qp_attr,
        mask: QpAttrMask,
    ) -> Result<(), ModifyError> {
        let to = if mask.contains(QpAttrMask::STATE) { Some(QpState(attr.qp_state)) } else { None };
        let ibv_qp_attr { max_rd_atomic, port_num, .. } = *attr;
        if let Err(error) = self.raw.modify(attr, mask.bits()) {
            let from = self.state().unwrap_or(self.state);
            return Err(ModifyError { from, to: to.unwrap_or(from), mask, error });
        }
        self.state = to.unwrap_or(self.state);
        if mask.contains(QpAttrMask::MAX_QP_RD_ATOMIC) {
            self.max_rd_atomic = max_rd_atomic;
        }
        if mask.contains(QpAttrMask::PORT) {
            let port = port::query(self.raw.pd().context(), port_num);
            self.longest = port.ok().map(|port| port.max_msg_size);
        }
        Ok(())
    }

    /// Destroys it, as dropping does. What is outstanding is dropped.
    pub fn destroy(self) {
        drop(self);
    }

    /// Whether its receives are taken from a shared queue.
    pub(crate) const fn has_srq(&self) -> bool {
        self.raw.has_srq()
    }

    /// The name of its device.
    pub(crate) fn device_name(&self) -> &str {
        self.raw.pd().context().name()
    }

    pub(crate) const fn raw(&self) -> &Qp {
        &self.raw
    }

    /// What its device can do at most.
    pub(crate) fn limits(&self) -> &DeviceAttr {
        self.raw.pd().context().attributes()
    }

    /// What the device is not asked about a request: some devices hang on it, carry it out later, or
    /// overlook that they can't take it.
    #[inline]
    pub(crate) fn judge(&self, wr: &SendWr<'_>) -> Result<(), Refused> {
        if !self.state.takes_sends() && !self.has_failed() {
            return Err(Refused::WrongState);
        }
        let returns_data = wr.op.returns_data();
        match wr.data {
            Data::Inline(_) if returns_data => Err(Refused::InlineResult),
            Data::Inline(bytes) => refusal::of_inline(bytes.len(), &self.caps),
            Data::Sges(_) if !returns_data => Ok(()),
            Data::Sges(_) if self.qp_type != QpType::Rc => Err(Refused::Unsupported),
            Data::Sges(_) if self.max_rd_atomic == 0 => Err(Refused::NoReadAtomic),
            Data::Sges(_) => Ok(()),
        }
    }

    /// Whether it is in ERR, where sends are flushed (Q2): a request of its peer can bring it there from RTR.
    #[cold]
    fn has_failed(&self) -> bool {
        self.state().is_ok_and(|state| state == QpState::ERR)
    }

    /// Why the device refused it: where nothing else is wrong, that may be the state to which a failure brought
    /// the queue pair (Q3).
    #[cold]
    pub(crate) fn explain(&self, failure: &Failure, list: &[SendWr<'_>]) -> PostError {
        let error = refusal::of_send(failure, list, &self.caps, self.longest);
        match error.why {
            Refused::Device(_) if self.state().is_ok_and(|state| !state.takes_sends()) => {
                PostError { why: Refused::WrongState, ..error }
            }
            _ => error,
        }
    }
}

/// What a device refused to make, with what is wrong with it as far as that can be told from here.
fn diagnose(pd: &ProtectionDomain, init: &QpInit<'_>) -> &'static str {
    let context = pd.raw().context();
    let cqs = [init.send_cq, init.recv_cq].map(|cq| cq.raw().context());
    let srq = init.srq.map(|srq| srq.raw().pd().context());
    if cqs.into_iter().chain(srq).any(|of| !Arc::ptr_eq(of, context)) {
        return "create a queue pair (its domain and its queues are not all of one opening of the device)";
    }
    let (caps, most) = (init.caps, context.attributes());
    let own_recvs = if init.srq.is_none() { (caps.max_recv_wr, caps.max_recv_sge) } else { (0, 0) };
    if caps.max_send_wr.max(own_recvs.0) > most.max_qp_wr {
        return "create a queue pair of so many requests (max_qp_wr of the device's attributes is the most)";
    }
    if caps.max_send_sge.max(own_recvs.1) > most.max_sge {
        return "create a queue pair for so many pieces (max_sge of the device's attributes is the most)";
    }
    "create a queue pair"
}

impl Post for QueuePair {
    /// A datagram needs a destination: it is posted through [`to`](QueuePair::to), and refused here.
    #[inline]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.raw
            .post_send(list, |wr| self.judge(wr), None)
            .map_err(|failure| self.explain(&failure, list))
    }

    #[inline]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        if !list.is_empty() && !self.state.takes_recvs() {
            return Err(PostError { posted: 0, why: Refused::WrongState });
        }
        // Some drivers look for a receive queue that is not there.
        if !list.is_empty() && self.has_srq() {
            return Err(PostError { posted: 0, why: Refused::SharedReceives });
        }
        let max_sge = self.caps.max_recv_sge;
        self.raw.post_recv(list).map_err(|failure| refusal::of_recv(&failure, list, max_sge))
    }
}

impl ProtectionDomain {
    /// A queue pair, in RESET. Its completion queues and its shared receive queue are of the same opening
    /// of the device.
    ///
    /// # Errors
    /// Capacities past the device's limits, too many queue pairs, no memory, queues of another opening.
    pub fn create_qp(&self, init: &QpInit<'_>) -> Result<QueuePair, DeviceError> {
        QueuePair::new(self, init)
    }
}
