//! Queue pairs, as their owner sees them: posting, changing state, destroying.

use std::io;
use std::sync::Arc;

use cq_verbs::device::QpBuilder;
use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::setup::{
    CreateError, DeviceError, Errno, LimitKind, ModifyError, QpAttr, QpAttrMask, QpCaps, QpState,
    QpType,
};
use cq_verbs::wr::{Data, RecvWr, SendWr};
use rdma_sys::{ibv_qp_attr, ibv_qp_cap};

use crate::error::{self, Attempt};
use crate::pd::ProtectionDomain;
use crate::sys::port;
use crate::sys::post::Failure;
use crate::sys::qp::{Parts, Qp, Target};
use crate::{attr, psn, refusal, trace};
use cq_verbs::setup::DeviceAttr;

/// A queue pair. Posting takes `&mut self`; other threads may poll its completions meanwhile.
///
/// ```no_run
/// use transport_verbs::{Access, CompletionQueue, Context, RecvWr, SendWr, Wc};
///
/// let context = Context::open_first()?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let (cq, peer_cq) = (context.cq(16).create()?, context.cq(16).create()?);
/// let mut qp = pd.qp(&cq).create()?;
/// let mut peer = pd.qp(&peer_cq).create()?;
/// qp.connect(&port, &peer.endpoint(&port))?;
/// peer.connect(&port, &qp.endpoint(&port))?;
///
/// let region = pd.allocate(64, Access::LOCAL_WRITE)?;
/// peer.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?;
/// qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
///
/// let (mut peer_cq, mut wcs) = (CompletionQueue::new(peer_cq), [Wc::default(); 4]);
/// while peer_cq.poll(&mut wcs)?.is_empty() {}
/// assert_eq!(wcs[0].result()?.byte_len(), 5);
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
#[doc(alias("ibv_qp", "ibv_post_send", "ibv_post_recv", "ibv_destroy_qp"))]
#[derive(Debug)]
pub struct QueuePair {
    pub(crate) raw: Qp,
    qp_type: QpType,
    caps: QpCaps,
    psn: u32,
    /// The last state that it was brought to from here. By itself the device brings it to ERR, which takes every
    /// request, and to SQE, where it refuses sends itself.
    state: QpState,
    /// The attributes that were set since RESET.
    given: QpAttrMask,
    /// As it was set last: going to RTS always sets it.
    max_rd_atomic: u8,
    /// Bytes of a message at most at the port that it was given to, if the device tells. Kept, so that a
    /// queue that is full says so without a system call.
    longest: Option<u64>,
}

impl QueuePair {
    /// The queue pair's number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.raw.number()
    }

    /// The type.
    #[must_use]
    pub const fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// The capacities: at least those that were requested.
    #[must_use]
    pub const fn caps(&self) -> QpCaps {
        self.caps
    }

    /// The first packet sequence number that it sends when it is [connected](Self::connect). It is random, so that
    /// stray packets of earlier connections are not accepted.
    #[must_use]
    pub const fn psn(&self) -> u32 {
        self.psn
    }

    /// Queries the state. A failure may change it at any time.
    ///
    /// # Errors
    /// The device could not be queried.
    pub fn state(&self) -> Result<QpState, DeviceError> {
        let attr = self.raw.query(QpAttrMask::STATE.bits()).attempt("query the queue pair")?;
        Ok(QpState(attr.qp_state))
    }

    /// The state and the attributes that were set since RESET, as `ibv_query_qp(3)` returns them. The
    /// [mask](QpAttr::mask) has those that were set.
    ///
    /// # Errors
    /// The device could not be queried.
    #[doc(alias = "ibv_query_qp")]
    pub fn attributes(&self) -> Result<QpAttr, DeviceError> {
        let mask = self.given | QpAttrMask::STATE;
        let attr = self.raw.query(mask.bits()).attempt("query the queue pair")?;
        Ok(attr::told(&attr, mask))
    }

    /// Changes state and attributes, as `ibv_modify_qp(3)` lists them ([Q1](cq_core::contract#q1)). To RESET drops what
    /// is outstanding; to ERR flushes it ([Q2](cq_core::contract#q2)).
    ///
    /// # Errors
    /// The device refuses: there is no such transition, or attributes are missing, not allowed or out of range.
    /// Nothing was changed.
    #[doc(alias = "ibv_modify_qp")]
    pub fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        self.modify_raw(&mut attr::raw(attr), attr.mask()).map_err(|refused| match refused {
            // What the specification does not allow has a reason; the device knows the others.
            ModifyError::Refused { from, errno: Errno::EINVAL, .. } => {
                attr.check(from, self.qp_type).err().unwrap_or(refused)
            }
            _ => refused,
        })
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
            let errno = error::errno(&error);
            return Err(ModifyError::Refused { from, to: to.unwrap_or(from), mask, errno });
        }
        if let Some(to) = to.filter(|to| *to != self.state) {
            trace::event!(
                DEBUG, qp_num = self.number(), from = ?self.state, state = ?to,
                "queue pair changed its state"
            );
            self.state = to;
        }
        self.given = if self.state == QpState::RESET {
            QpAttrMask::empty()
        } else {
            self.given | (mask - QpAttrMask::ONCE)
        };
        if mask.contains(QpAttrMask::MAX_QP_RD_ATOMIC) {
            self.max_rd_atomic = max_rd_atomic;
        }
        if mask.contains(QpAttrMask::PORT) {
            let port = port::query(self.raw.pd().context(), port_num);
            self.longest = port.ok().map(|port| port.max_msg_size);
        }
        Ok(())
    }

    /// Destroys the queue pair, as dropping does. Outstanding requests are dropped.
    pub fn destroy(self) {
        drop(self);
    }

    /// Whether it uses a shared receive queue.
    pub(crate) const fn has_srq(&self) -> bool {
        self.raw.has_srq()
    }

    /// The name of its device.
    pub(crate) fn device_name(&self) -> &str {
        self.raw.pd().context().name()
    }

    /// The attributes of its device.
    pub(crate) fn limits(&self) -> &DeviceAttr {
        &self.raw.pd().context().attributes
    }

    /// What the device is not asked about a request that is posted: some devices hang on it, carry it out later, or
    /// overlook that they can't take it.
    #[inline]
    pub(crate) fn judge_now(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        if !self.state.takes_sends() && !self.has_failed() {
            return Err(WrError::WrongState);
        }
        self.judge(wr)
    }

    /// The part of it that does not depend on the state.
    #[inline]
    fn judge(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        let returns_data = wr.op.returns_data();
        match wr.data {
            Data::Inline(_) if returns_data => Err(WrError::InlineResult),
            Data::Inline(bytes) => refusal::of_inline(bytes.len(), &self.caps),
            Data::Sges(_) if !returns_data => Ok(()),
            Data::Sges(_) if self.qp_type != QpType::RC => Err(WrError::Unsupported),
            Data::Sges(_) if self.max_rd_atomic == 0 => Err(WrError::NoReadAtomic),
            Data::Sges(_) => Ok(()),
        }
    }

    /// Judges a send without the device: with what is known of it before it is posted.
    pub(crate) fn check(&self, wr: &SendWr<'_>, to: Option<Target<'_>>) -> Result<(), WrError> {
        self.judge(wr)?;
        self.raw.check_send(wr, to)?;
        refusal::of_send_limits(wr, &self.caps, self.longest)
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
            WrError::Device(_) if self.state().is_ok_and(|state| !state.takes_sends()) => {
                PostError { why: WrError::WrongState, ..error }
            }
            _ => error,
        }
    }
}

/// Why the device refused to create a queue pair, as far as that can be told from here.
fn diagnose(
    pd: &ProtectionDomain,
    init: &QpBuilder<'_, ProtectionDomain>,
    error: &io::Error,
) -> CreateError {
    let context = pd.raw.context();
    let cqs = [init.send_cq, init.recv_cq].map(|cq| cq.queue.context());
    let srq = init.srq.map(|srq| srq.raw.pd().context());
    if cqs.into_iter().chain(srq).any(|of| !Arc::ptr_eq(of, context)) {
        return CreateError::OtherContext;
    }
    let (caps, most) = (init.caps, context.attributes);
    let (recv_wr, recv_sge) =
        if init.srq.is_none() { (caps.max_recv_wr, caps.max_recv_sge) } else { (0, 0) };
    let limits = [
        (LimitKind::SendWr, caps.max_send_wr, most.max_qp_wr),
        (LimitKind::RecvWr, recv_wr, most.max_qp_wr),
        (LimitKind::SendSge, caps.max_send_sge, most.max_sge),
        (LimitKind::RecvSge, recv_sge, most.max_sge),
    ];
    error::beyond(&limits, error::refused("create a queue pair", error))
}

impl Post for QueuePair {
    /// A datagram needs a destination: it is posted through [`to`](QueuePair::to), and refused here.
    #[inline]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.raw
            .post_send(list, |wr| self.judge_now(wr), None)
            .map_err(|failure| self.explain(&failure, list))
    }

    #[inline]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        if !list.is_empty() && !self.state.takes_recvs() {
            return Err(PostError { posted: 0, why: WrError::WrongState });
        }
        // Some drivers look for a receive queue that is not there.
        if !list.is_empty() && self.has_srq() {
            return Err(PostError { posted: 0, why: WrError::SharedReceives });
        }
        let max_sge = self.caps.max_recv_sge;
        self.raw.post_recv(list).map_err(|failure| refusal::of_recv(&failure, list, max_sge))
    }

    /// Goes to RESET.
    fn quiesce(&mut self) -> bool {
        self.modify(&QpAttr::new().state(QpState::RESET)).is_ok()
    }

    /// A datagram is judged with its destination, through [`to`](QueuePair::to).
    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.check(wr, None)
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        if self.has_srq() {
            return Err(WrError::SharedReceives);
        }
        refusal::of_recv_limits(wr, self.caps.max_recv_sge)
    }
}

impl ProtectionDomain {
    /// Creates a queue pair, in RESET. Its completion queues and its shared receive queue must be created from the
    /// same context.
    ///
    /// # Errors
    /// A capacity exceeds the device's limits, there are too many queue pairs, there is no memory, or a queue was
    /// created from another context.
    pub fn create_qp(
        &self,
        init: &QpBuilder<'_, ProtectionDomain>,
    ) -> Result<QueuePair, CreateError> {
        // A driver has others too, whose requests have other layouts.
        if !QpType::KNOWN.contains(&init.qp_type) {
            return Err(CreateError::UnknownType(init.qp_type));
        }
        let QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline, .. } =
            init.caps;
        let cap = ibv_qp_cap {
            max_send_wr,
            max_recv_wr,
            // Inline data counts as an SGE.
            max_send_sge: max_send_sge.max((max_inline > 0).into()),
            max_recv_sge,
            max_inline_data: max_inline,
        };
        let parts = Parts {
            qp_type: init.qp_type,
            send_cq: &init.send_cq.queue,
            recv_cq: &init.recv_cq.queue,
            srq: init.srq.map(|srq| &srq.raw),
            cap,
            sq_sig_all: init.sq_sig_all,
        };
        let made = Qp::new(&self.raw, &parts);
        let (raw, granted) = made.map_err(|error| diagnose(self, init, &error))?;
        let caps = QpCaps::USUAL
            .max_send_wr(granted.max_send_wr)
            .max_recv_wr(granted.max_recv_wr)
            .max_send_sge(granted.max_send_sge)
            .max_recv_sge(granted.max_recv_sge)
            .max_inline(granted.max_inline_data);
        let (state, given, psn) = (QpState::RESET, QpAttrMask::empty(), psn::random());
        let qp_type = init.qp_type;
        let cqs = [init.send_cq, init.recv_cq].map(|cq| cq.queue.reports().key);
        trace::event!(
            DEBUG, qp_num = raw.number(), qp_type = ?qp_type, pd = self.raw.number(),
            send_cq = %cqs[0], recv_cq = %cqs[1], "queue pair created"
        );
        Ok(QueuePair { raw, qp_type, caps, psn, state, given, max_rd_atomic: 0, longest: None })
    }
}
