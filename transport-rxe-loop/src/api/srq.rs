//! Shared receive queues: several queue pairs take their receives from one queue (Q9).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cq_verbs::post::{PostError, WrError};
use cq_verbs::setup::{ArmLimitError, DeviceError, Errno, InUseError, SrqInit};
use cq_verbs::wr::RecvWr;

use super::cq::Queue as Cq;
use super::domain::Domain;
use crate::completion::channel::Source;
use crate::conditions::{FORKED, no_memory};
use crate::engine::entry::SrqSlot;
use crate::engine::ring::{MAX_QP_WR, Ring, RingLayout, put_all};
use crate::engine::{self, Engine, complete, identity, send_queue};
use crate::error::{CreateError, LimitKind};
use crate::lifecycle::deaths;
use crate::memory::sge::MAX_SGE;
use crate::protocol::number::{CqIndex, Position, QpNumber, SrqNumber};
use crate::protocol::pool::{MAX_SLOTS, Queue};
use crate::protocol::tag;
use crate::shm::arena::Extent;
use crate::shm::table::Entry as _;
use crate::{sync, trace};

/// The maximum number of receives of a shared receive queue.
pub const MAX_SRQ_WR: u32 = MAX_QP_WR;
const _: () = assert!(MAX_SRQ_WR as usize <= MAX_SLOTS);

fn check(init: &SrqInit) -> Result<(), CreateError> {
    if init.max_wr == 0 {
        return Err(CreateError::Zero(LimitKind::SrqWr));
    }
    let limits = [
        (LimitKind::SrqWr, init.max_wr, MAX_SRQ_WR),
        (LimitKind::SrqSge, init.max_sge, MAX_SGE as u32),
    ];
    match limits.into_iter().find(|&(_, asked, max)| asked > max) {
        Some((what, asked, max)) => Err(CreateError::TooMany { what, asked, max }),
        None => Ok(()),
    }
}

/// A shared receive queue's table entry and its memory. It is freed with its last user.
#[derive(Debug)]
pub struct Shared {
    engine: &'static Engine,
    slot: &'static SrqSlot,
    /// Its number.
    pub number: SrqNumber,
    /// The number by which posting finds its entry, and need not look at anything else; that of no entry if a slot is
    /// free only when its completion was polled.
    usual: SrqNumber,
    ring: Ring,
    max_wr: u32,
    queue: Queue<'static>,
    /// Where its receives complete, and for how many queue pairs.
    cqs: Mutex<BTreeMap<CqIndex, (Arc<Cq>, usize)>>,
    domain: Arc<Domain>,
    _extent: Extent,
}

impl Shared {
    fn new(domain: &Arc<Domain>, init: &SrqInit) -> Result<Self, CreateError> {
        let engine = domain.engine();
        let max_wr = engine.policy.imitation.capacity(init.max_wr, MAX_SRQ_WR);
        let shape = RingLayout::of_recvs(max_wr, init.max_sge);
        let bytes = shape.bytes() + engine::srq::bytes(max_wr);
        let extent = Extent::allocate(engine.shm, bytes)?;
        let (ring_at, slots_at) = (extent.offset(), extent.offset() + shape.bytes() as u32);
        let srqs = &engine.srqs;
        let full = CreateError::TableFull { what: LimitKind::SharedReceiveQueues, max: srqs.len() };
        let (index, generation) = srqs.claim(engine.shm.attachment()).ok_or(full)?;
        let number: SrqNumber = identity::number_of(srqs, index, generation);
        let (slot, none) = (srqs.at(index), no_memory(bytes));
        let ring = shape.ring(engine.shm, ring_at).ok_or(none)?;
        let queue = engine::srq::at(engine.shm, slot, slots_at, max_wr).ok_or(none)?;
        shape.record(&slot.ring, ring_at);
        sync::store(&slot.pd, domain.number);
        sync::store(&slot.slots_at, slots_at);
        sync::store(&slot.capacity, max_wr);
        slot.pool.begin();
        sync::release(&slot.number, number.get());
        domain.events.attach(Source::Srq(index));
        let is_late = engine.policy.frees_receives_late();
        let usual = if is_late { SrqNumber::NEVER } else { number };
        let (cqs, domain) = (Mutex::default(), Arc::clone(domain));
        trace::event!(DEBUG, srq = number.get(), capacity = max_wr, "shared receive queue created");
        Ok(Self { engine, slot, number, usual, ring, max_wr, queue, cqs, domain, _extent: extent })
    }

    /// The receives that it holds.
    pub const fn capacity(&self) -> u32 {
        self.max_wr
    }

    /// Whether it belongs to this fabric. A process can have several.
    pub fn is_of(&self, engine: &'static Engine) -> bool {
        std::ptr::eq(self.engine, engine)
    }

    /// Receives complete in this queue, of one more queue pair.
    pub fn completes_in(&self, cq: &Arc<Cq>) {
        sync::lock(&self.cqs).entry(cq.index).or_insert_with(|| (Arc::clone(cq), 0)).1 += 1;
    }

    /// Of one queue pair that [did](Self::completes_in), none complete there any more.
    pub fn no_longer_completes_in(&self, cq: &Arc<Cq>) {
        let mut cqs = sync::lock(&self.cqs);
        let takers = cqs.get_mut(&cq.index).map_or(0, |(_, takers)| {
            *takers -= 1;
            *takers
        });
        if takers == 0 {
            cqs.remove(&cq.index);
        }
    }

    /// Whether another receive may be posted where that is not the [usual](Self::usual) case.
    #[cold]
    fn check_takes_another(&self) -> Result<(), WrError> {
        if !self.is_there() {
            return Err(WrError::WrongState);
        }
        // First: what is pushed meanwhile is then missed, and not counted twice.
        let unpolled = self.unpolled();
        let is_full = unpolled + self.queue.used() >= self.max_wr;
        if is_full { Err(WrError::QueueFull) } else { Ok(()) }
    }

    /// The receives whose completions were pushed and not polled.
    fn unpolled(&self) -> u32 {
        let mut unpolled = 0;
        for (cq, _) in sync::lock(&self.cqs).values() {
            // Where a suspended process pushes, what has completed does not count, as on the ordinary device.
            let _suspended = cq.look_through(|wc, tag| {
                let whose = || self.engine.qp(QpNumber::new(wc.qp_num())).srq();
                unpolled += u32::from(tag::is_pool(tag) && whose() == self.number);
            });
        }
        unpolled
    }

    /// Whether its entry is mapped: it is not in a forked child.
    fn is_there(&self) -> bool {
        self.slot.number() == self.number
    }

    /// Finds a free slot. A slot that seems taken may be free: a completion can be polled a moment before its receive
    /// counts as completed.
    fn find_free(&self, first: u32) -> Option<u32> {
        self.queue.find_free(first).or_else(|| {
            for taken in self.queue.taken() {
                let cq = self.engine.qp(taken.target()).recv_cq();
                if !complete::wait_for_push(self.engine, cq) {
                    // The others are not waited for: all of them may be corrupted by another process.
                    return None;
                }
                let slot = self.queue.find_free(taken.slot);
                if slot.is_some() {
                    return slot;
                }
            }
            // Slots that became free while the taken ones were collected.
            self.queue.find_free(first)
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.engine.shm.is_ours() {
            return;
        }
        // Before its number is cleared: an event that is being taken reads it.
        self.domain.events.detach(Source::Srq(self.engine.srqs.index(self.number)));
        sync::release(&self.slot.number, 0);
        self.slot.life().end(self.engine.shm.attachment());
        trace::event!(DEBUG, srq = self.number.get(), "shared receive queue destroyed");
    }
}

/// A shared receive queue. A receive completes on the queue pair that takes it; a queue pair completes its receives in
/// the order in which it took them. Their lkeys are those of this queue's protection domain, not of the queue pair's.
///
/// ```
/// use transport_rxe_loop::verbs::async_event::{AsyncEventType, Element};
/// use transport_rxe_loop::verbs::async_event::AsyncEvents;
/// use transport_rxe_loop::{Access, Context, RecvWr, SendWr, SrqInit, Wc};
///
/// let mut context = Context::open("loop0")?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let mut cq = context.cq(64).create()?;
/// let mut srq = pd.create_srq(&SrqInit::new(64))?;
/// let of_srq = pd.qp(&cq).srq(&srq);
/// let (mut first, mut second) = (of_srq.create()?, of_srq.create()?);
/// first.connect(&port, &second.endpoint(&port))?;
/// second.connect(&port, &first.endpoint(&port))?;
///
/// let region = pd.allocate(4096, Access::LOCAL_WRITE)?;
/// srq.post_recv(&[RecvWr::new(1, &[region.sge(..2048)?]), RecvWr::new(2, &[region.sge(2048..4096)?])])?;
/// srq.arm_limit(1)?;
/// first.post_send(&[SendWr::send_inline(3, b"hello").unsignaled()])?;
/// second.post_send(&[SendWr::send_inline(4, b"world").unsignaled()])?;
///
/// let (mut wcs, mut polled) = ([Wc::default(); 2], 0);
/// while polled < wcs.len() {
///     polled += cq.poll(&mut wcs[polled..])?.len();
/// }
/// // Which of the two messages comes first is open.
/// let mut takers = wcs.map(|wc| wc.qp_num());
/// takers.sort();
/// assert_eq!(takers, [first.number(), second.number()]);
/// let event = context.take_async_event()?.expect("fewer than 1 are left");
/// assert_eq!(event.event_type, AsyncEventType::SRQ_LIMIT_REACHED);
/// assert_eq!(event.element, Element::Srq(srq.number()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A queue pair that fails or is reset does not flush the queue: the receives that it has taken complete, the others
/// stay for other queue pairs. If a receive is taken for a message that does not arrive, since a process died or does
/// not answer, it is the next to be taken again.
///
/// # Who gets a receive
/// While there are receives, each message takes the oldest. Where there were none and several senders wait for one, a post
/// has them run, each time another one first. That is no promise of fairness: a sender whose process runs already is faster
/// than one whose process is to be woken, and one that does not wait is faster than both. Where it matters, give each sender
/// [credits](cq_verbs::guide::sizing#receive-queues).
///
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(srq: transport_rxe_loop::SharedReceiveQueue) {
/// srq.destroy();
/// srq.destroy();
/// # }
/// ```
#[doc(alias("ibv_srq", "ibv_post_srq_recv", "ibv_modify_srq", "ibv_destroy_srq"))]
#[derive(Debug)]
pub struct SharedReceiveQueue {
    pub(crate) shared: Arc<Shared>,
    caps: SrqInit,
    /// The slot where the search for a free one begins.
    next: u32,
}

impl SharedReceiveQueue {
    pub(crate) fn new(domain: &Arc<Domain>, init: &SrqInit) -> Result<Self, CreateError> {
        check(init)?;
        let shared = deaths::retry_after_recovery(domain.device, || Shared::new(domain, init))?;
        Ok(Self { shared: Arc::new(shared), caps: *init, next: 0 })
    }

    /// The queue's number, which its asynchronous events carry.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.shared.number.get()
    }

    /// The capacities, as requested.
    #[must_use]
    pub const fn caps(&self) -> SrqInit {
        self.caps
    }

    /// Posts receives, in order.
    ///
    /// # Errors
    /// A receive is refused: the error has its index. Those before it are posted, it and those after it are not
    /// ([Q4](cq_core::contract#q4)).
    pub fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let first = self.shared.queue.posted();
        let (end, result) = put_all(first, list, |position, wr| self.put(position, wr));
        if end != first && self.shared.queue.post(end) {
            send_queue::reschedule_takers_of(self.shared.engine, self.shared.number);
        }
        result
    }

    fn put(&mut self, position: Position, wr: &RecvWr<'_>) -> Result<(), WrError> {
        if wr.sges.len() > self.caps.max_sge as usize {
            return Err(WrError::TooManySges { max: self.caps.max_sge });
        }
        if self.shared.slot.number() != self.shared.usual {
            self.shared.check_takes_another()?;
        }
        let slot = self.shared.find_free(self.next).ok_or(WrError::QueueFull)?;
        self.shared.ring.write_recv(Position::new(slot.into()), wr);
        self.shared.queue.put(slot, position);
        self.next = slot + 1;
        Ok(())
    }

    /// Requests one SRQ_LIMIT_REACHED, reported when a receive is taken and fewer than `limit` are left; 0 requests
    /// none. If fewer are left already, it is reported when the next one is taken.
    ///
    /// # Errors
    /// The limit exceeds the queue's capacity, this is a forked child, or a process that holds the queue's lock is
    /// suspended.
    #[doc(alias = "ibv_modify_srq")]
    pub fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
        let (shared, max) = (&self.shared, self.caps.max_wr);
        if limit > max {
            return Err(ArmLimitError::TooMany { asked: limit, max });
        }
        if !shared.is_there() {
            return Err(FORKED.into());
        }
        let pool = &shared.slot.pool;
        let _guard = shared.engine.memory.lock(pool.lock(), || {}).map_err(DeviceError::from)?;
        pool.arm(limit);
        Ok(())
    }

    /// The armed limit: 0 once it was reached, or if none was requested.
    ///
    /// # Errors
    /// This is a forked child.
    #[doc(alias = "ibv_query_srq")]
    pub fn limit(&self) -> Result<u32, DeviceError> {
        match self.shared.is_there() {
            true => Ok(self.shared.slot.pool.limit()),
            false => {
                let attempt = "query the shared receive queue";
                Err(DeviceError::cannot(attempt, Errno::ENODEV))
            }
        }
    }

    /// The number of posted receives that are not taken.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> u64 {
        self.shared.queue.len()
    }

    /// Destroys the queue. Dropping destroys it once its last queue pair is destroyed.
    ///
    /// # Errors
    /// A queue pair uses it; the handle is returned (EBUSY, [Q11](cq_core::contract#q11)).
    pub fn destroy(self) -> Result<(), InUseError<Self>> {
        let Self { shared, caps, next } = self;
        Arc::try_unwrap(shared).map(drop).map_err(|shared| {
            InUseError::new(Self { shared, caps, next }, "shared receive queue", "its queue pairs")
        })
    }
}

#[cfg(test)]
mod tests;
