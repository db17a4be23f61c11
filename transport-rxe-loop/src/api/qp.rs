//! Queue pairs: creating, posting, modifying, destroying.

mod batch;
mod change;
mod counted;
mod post;
mod recv_slots;
mod validate;

use std::sync::Arc;

use cq_verbs::device::QpBuilder;
use cq_verbs::setup::{
    CreateError, DeviceError, Errno, ModifyError, QpAttr, QpAttrMask, QpCaps, QpState, QpType,
};

use self::counted::Counted;
use crate::api::cq::Queue;
use crate::api::domain::Domain;
use crate::api::pd::ProtectionDomain;
use crate::conditions::{FORKED, PEER_SUSPENDED};
use crate::engine::connection::Connection;
use crate::engine::identity;
use crate::engine::queue_pair::{ClaimedQp, Setup};
use crate::engine::ring::MAX_QP_WR;
use crate::lifecycle::deaths;
use crate::policy::imitation::QpBehavior;
use crate::protocol::number::{Position, SrqNumber};
use crate::protocol::send_slots::FreeSlots;
use crate::{sync, trace};

pub use self::batch::Batch;

/// A queue pair. Posting takes `&mut self`. Other threads may poll its completions meanwhile, and threads of the peer
/// work on its queues.
///
/// A queue pair whose sends alone complete in `send_cq` pushes there without a lock, which is faster. Creating another
/// one for the queue, whatever for, ends that for good, and waits for a message that the first is carrying out; resizing
/// and [moderating](crate::Cq::moderate) the queue do so, too.
///
/// ```
/// use transport_rxe_loop::{Access, Context, RecvWr, SendWr, Wc};
///
/// let context = Context::open("loop0")?;
/// let pd = context.alloc_pd()?;
/// let (mut cq, mut peer_cq) = (context.cq(16).create()?, context.cq(16).create()?);
/// let mut qp = pd.qp(&cq).create()?;
/// let mut peer = pd.qp(&peer_cq).create()?;
/// let port = context.port(1)?;
/// qp.connect(&port, &peer.endpoint(&port))?;
/// peer.connect(&port, &qp.endpoint(&port))?;
///
/// let region = pd.allocate(64, Access::LOCAL_WRITE)?;
/// peer.post_recv(&[RecvWr::new(1, &[region.sge(..64)?])])?;
/// qp.post_send(&[SendWr::send_inline(2, b"hello")])?;
///
/// let mut wcs = [Wc::default(); 4];
/// while peer_cq.poll(&mut wcs)?.is_empty() {}
/// assert_eq!(wcs[0].result()?.byte_len(), 5);
/// while cq.poll(&mut wcs)?.is_empty() {}
/// assert_eq!(wcs[0].wr_id(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How long a request waits
/// A request of a reliable connection waits for a receive for [`rnr_retry`](crate::QpAttr::rnr_retry) times the peer's
/// [`min_rnr_timer`](crate::QpAttr::min_rnr_timer), and for an answer for [`retry_cnt`](crate::QpAttr::retry_cnt) + 1 times the local
/// [`timeout`](crate::QpAttr::timeout), as `ibv_modify_qp(3)` says. Then it fails with RNR_RETRY_EXC or RETRY_EXC.
///
/// No packet is ever lost. A peer does not answer only while it is in RESET, INIT or ERR, connected to another queue
/// pair, or of another type; or while its process is [suspended](crate::manual#suspended-processes) and has to act. It
/// may answer again in time. Where the specification leaves a choice:
///
/// - A peer that was destroyed, whose process died, or that never existed, does not answer either. With `timeout` 0 the
///   request then fails at once.
/// - A request that waits for a receive has the full time for an answer once its peer stops answering, and the other
///   way round.
/// - A request that waits has begun, so it continues in SQD. Time in which the process was suspended counts. Attributes
///   that are changed meanwhile do not.
///
/// # Unreliable transports
/// An unreliable connection ([`QpType::UC`]) sends and writes, and waits for no receive and no answer. A message that
/// its peer does not take is lost without a report: because there is no receive, a key is wrong, a right is missing, or
/// the peer is not ready or [suspended](crate::manual#suspended-processes). [Datagrams](Self::to) ([`QpType::UD`]) go to the queue pair with the number and the queue key.
///
/// - A receive that can't hold a message fails with its queue pair; the sender succeeds. An error of the sender's own
///   side fails its request, and its queue pair goes to [SQE](QpState::SQE), where receives continue.
/// - Between two queue pairs messages arrive in order, and are lost for no other reason, with one exception: while a
///   process is stopped in the middle of a datagram, others to the same queue pair are lost, after each sending process
///   has waited for two seconds, once.
/// - On an unreliable connection READs, atomics, atomic writes and FLUSH are refused when posted. A datagram can only be
///   a SEND.
///
/// # FLUSH
/// The bytes that a request moves are visible to all once it has completed. So a FLUSH checks the rights FLUSH_GLOBAL
/// and FLUSH_PERSISTENT of queue pair and region, acts as a fence, and completes. Memory is as persistent as what it
/// lies in: the device writes nothing back.
///
/// # Misuse
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(qp: transport_rxe_loop::QueuePair) {
/// qp.destroy();
/// qp.destroy();
/// # }
/// ```
#[doc(alias("ibv_qp", "ibv_post_send", "ibv_post_recv", "ibv_destroy_qp"))]
#[derive(Debug)]
pub struct QueuePair {
    pub(crate) claimed: ClaimedQp,
    qp_type: QpType,
    caps: QpCaps,
    /// What policy decided when it was created.
    behavior: QpBehavior,
    sq_sig_all: bool,
    pub(crate) has_srq: bool,
    /// The attributes that were set since RESET.
    given: QpAttr,
    /// The queue of the completions of its sends.
    send_cq: Arc<Queue>,
    /// The queue of the completions of its receives.
    recv_cq: Arc<Queue>,
    /// The send slots that were free when last looked at.
    free_slots: FreeSlots,
    /// What is known of the connection, if it has sent.
    connection: Option<Connection>,
    /// The position up to which [slots of receives](recv_slots) were free when last looked at: seldom, since another
    /// core writes that.
    received: Position,
    /// The position at which the receive queue began, or was last emptied.
    emptied: Position,
}

impl QueuePair {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        init: &QpBuilder<'_, ProtectionDomain>,
    ) -> Result<Self, CreateError> {
        let QpBuilder { qp_type, mut caps, sq_sig_all, srq, .. } = *init;
        let (engine, has_srq) = (domain.engine(), srq.is_some());
        if !QpType::KNOWN.contains(&qp_type) {
            return Err(CreateError::UnknownType(qp_type));
        }
        if has_srq {
            (caps.max_recv_wr, caps.max_recv_sge) = (0, 0);
        }
        let asked = [caps.max_send_wr, caps.max_recv_wr];
        let behavior = engine.policy.queue_pair(qp_type, asked, MAX_QP_WR);
        if has_srq && !behavior.may_share_receives {
            return Err(CreateError::OwnReceives);
        }
        validate::check(&caps)?;
        let [max_send_wr, max_recv_wr] = behavior.capacities;
        let rounded = caps.max_send_wr(max_send_wr).max_recv_wr(max_recv_wr);
        let setup = || setup(domain, &init.caps(rounded));
        let claimed =
            deaths::retry_after_recovery(domain.device, || ClaimedQp::new(engine, setup()?))?;
        let free_slots = FreeSlots::all(claimed.queue.slot.send.posted());
        let received = claimed.queue.slot.recv.completed_acquire();
        let given = QpAttr::new();
        Ok(Self {
            claimed,
            qp_type,
            caps,
            behavior,
            sq_sig_all,
            has_srq,
            given,
            send_cq: Arc::clone(&init.send_cq.queue),
            recv_cq: Arc::clone(&init.recv_cq.queue),
            free_slots,
            connection: None,
            received,
            emptied: received,
        })
    }

    /// The queue pair number, by which a peer connects to it.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.claimed.number.get()
    }

    /// The type.
    #[must_use]
    pub const fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// Queries the state. A failure may change it at any time.
    ///
    /// # Errors
    /// This is a forked child.
    pub fn state(&self) -> Result<QpState, DeviceError> {
        match self.claimed.queue.engine.shm.is_ours() {
            true => Ok(self.current_state()),
            false => Err(DeviceError::cannot("query the queue pair", Errno::ENODEV)),
        }
    }

    #[inline]
    fn current_state(&self) -> QpState {
        identity::read(&self.claimed.queue.slot.identity).state()
    }

    /// The capacities, as requested. Those of receives are 0 with a shared receive queue.
    #[must_use]
    pub const fn caps(&self) -> QpCaps {
        self.caps
    }

    /// The state and the attributes that were set since RESET, as `ibv_query_qp(3)` returns them. The
    /// [mask](QpAttr::mask) has those that were set.
    ///
    /// # Errors
    /// This is a forked child.
    #[doc(alias = "ibv_query_qp")]
    pub fn attributes(&self) -> Result<QpAttr, DeviceError> {
        Ok(self.given.state(self.state()?))
    }

    /// The position after the last posted send, which the next one gets. Positions count up in the order of
    /// posting.
    #[inline]
    #[must_use]
    pub fn sends_posted(&self) -> u64 {
        self.claimed.queue.slot.send.posted().get()
    }

    /// The position up to which sends were carried out, flushed or dropped. The local effects of all sends before it
    /// are visible.
    #[must_use]
    pub fn sends_done(&self) -> u64 {
        // Pairs with the release by the send queue's owner: what it wrote before is visible.
        sync::acquire(&self.claimed.queue.slot.send.done)
    }

    /// Whether a [memory window](crate::MemoryWindow) is bound to the queue pair. Resetting or destroying it
    /// invalidates the keys of its windows.
    ///
    /// # Staleness
    /// Its sends bind windows, and its peer invalidates them, at any time.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        let engine = self.claimed.queue.engine;
        engine.shm.is_ours() && engine.memory.windows.any_of(engine.memory, self.claimed.number)
    }

    /// Changes state and attributes, as `ibv_modify_qp(3)` lists them ([Q1](cq_core::contract#q1)). RESET drops
    /// outstanding requests; ERR flushes them ([Q2](cq_core::contract#q2)). Both wait until no message of the peer is
    /// arriving, and until this process' service thread copies nothing for the queue pair, without limit if the
    /// [pages of that memory](crate::MemoryRegion#access-by-other-processes) do not come.
    ///
    /// # Errors
    /// The transition does not exist, attributes are missing or not allowed, a value is out of range, or this is a
    /// forked child: nothing was changed. [`PEER_SUSPENDED`]: the queue pair is in ERR.
    #[doc(alias = "ibv_modify_qp")]
    pub fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        if !self.claimed.queue.engine.shm.is_ours() {
            return Err(FORKED.into());
        }
        let (from, to) = self.change(attr)?;
        if from != to {
            trace::event!(
                DEBUG, qp_num = self.number(), from = ?from, state = ?to,
                "queue pair changed its state"
            );
        }
        if to == QpState::RESET {
            self.claimed.reset().map_err(|_| PEER_SUSPENDED)?;
            self.emptied = self.claimed.queue.slot.recv.posted();
            self.received = self.emptied;
            self.given = QpAttr::new();
            return Ok(());
        }
        self.given = attr.without(QpAttrMask::ONCE).or(self.given);
        self.changed(attr, from, to)
    }

    /// Destroys the queue pair, as dropping does. Outstanding requests are dropped; completions stay in the completion
    /// queues. It waits as [`modify`](Self::modify) to RESET does. Where that would fail with [`PEER_SUSPENDED`], the
    /// memory of its receives may be written to until it is deregistered.
    pub fn destroy(self) {
        drop(self);
    }
}

/// The setup of a queue pair, if all its objects belong to one fabric.
pub(crate) fn setup(
    domain: &Arc<Domain>,
    init: &QpBuilder<'_, ProtectionDomain>,
) -> Result<Setup, CreateError> {
    let (engine, srq) = (domain.engine(), init.srq.map(|srq| &srq.shared));
    let cqs = [init.send_cq, init.recv_cq].map(|cq| &cq.queue);
    let is_near = srq.is_none_or(|srq| srq.is_of(engine));
    if !is_near || !cqs.iter().all(|cq| cq.is_of(engine)) {
        return Err(CreateError::OtherContext);
    }
    let counted = Counted::new(cqs, srq, init.caps);
    Ok(Setup {
        qp_type: init.qp_type,
        caps: init.caps,
        domain: domain.number,
        cqs: cqs.map(|cq| cq.index),
        srq: srq.map_or(SrqNumber::NONE, |srq| srq.number),
        events: Arc::clone(&domain.events),
        _uses: Box::new((Arc::clone(domain), counted)),
    })
}

#[cfg(test)]
impl QueuePair {
    /// Its number, of its own type.
    pub(crate) const fn qpn(&self) -> crate::protocol::number::QpNumber {
        self.claimed.number
    }

    /// The index of its table entry.
    pub(crate) const fn index(&self) -> crate::protocol::number::QpIndex {
        self.claimed.queue.index
    }
}

#[cfg(test)]
mod tests;
