//! Shared receive queues: receives that several queue pairs take from (Q9).
//!
//! ```
//! use cq_core::async_event::{AsyncEventType, Element};
//! use cq_core::transport::{AsyncEvents, PollCq, Post};
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RecvWr, SendWr};
//! use transport_rxe_loop::{Access, Context, QpInit, SrqInit};
//!
//! let mut context = Context::open("loop0")?;
//! let (pd, mut cq) = (context.alloc_pd(), context.create_cq(64, None)?);
//! let mut srq = pd.create_srq(&SrqInit { max_wr: 64, max_sge: 1 })?;
//! let of_srq = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
//! let (mut first, mut second) = (pd.create_qp(&of_srq)?, pd.create_qp(&of_srq)?);
//! first.connect(second.number())?;
//! second.connect(first.number())?;
//!
//! let region = pd.allocate(4096, Access::LOCAL_WRITE)?;
//! srq.post_recv(&[RecvWr::new(1, &[region.sge(0, 2048)?]), RecvWr::new(2, &[region.sge(2048, 2048)?])])?;
//! srq.arm_limit(1)?;
//! first.post_send(&[SendWr::send_inline(3, b"hello").unsignaled()])?;
//! second.post_send(&[SendWr::send_inline(4, b"world").unsignaled()])?;
//!
//! let mut room = [Wc::default(); 4];
//! assert_eq!(cq.poll(&mut room)?, 2);
//! assert_eq!((room[0].wr_id(), room[0].qp_num()), (1, second.number()));
//! assert_eq!((room[1].wr_id(), room[1].qp_num()), (2, first.number()));
//! let event = context.take_async_event()?.expect("fewer than 1 are left");
//! assert_eq!(event.event_type, AsyncEventType::SRQ_LIMIT_REACHED);
//! assert_eq!(event.element, Element::Srq(srq.number()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use cq_core::setup::{InUse, SrqInit};
use cq_core::transport::{PostError, Refused};
use cq_core::wr::RecvWr;

use crate::arena::Extent;
use crate::bell::Source;
use crate::cq;
use crate::device::MAX_QP_WR;
use crate::error::{ArmLimitError, CreateError, Limit};
use crate::fabric::Fabric;
use crate::identity;
use crate::imitate;
use crate::layout::{Entry, SrqSlot};
use crate::lock::Stuck;
use crate::memory::MAX_SGE;
use crate::pd::Domain;
use crate::pool;
use crate::protocol::pool::{MAX_SLOTS, Queue};
use crate::qp::put_all;
use crate::queue::{Ring, Shape};
use crate::sweep;
use crate::sync;

/// Receives of a shared receive queue at most.
pub const MAX_SRQ_WR: u32 = MAX_QP_WR;
const _: () = assert!(MAX_SRQ_WR as usize <= MAX_SLOTS);

fn check(init: &SrqInit) -> Result<(), CreateError> {
    if init.max_wr == 0 {
        return Err(CreateError::Zero(Limit::SrqWr));
    }
    let limits =
        [(Limit::SrqWr, init.max_wr, MAX_SRQ_WR), (Limit::SrqSge, init.max_sge, MAX_SGE as u32)];
    match limits.into_iter().find(|&(_, asked, max)| asked > max) {
        Some((what, asked, max)) => Err(CreateError::TooMany { what, asked, max }),
        None => Ok(()),
    }
}

/// A shared receive queue's place in the table and its memory; ends when its last user does.
#[derive(Debug)]
pub struct Shared {
    fabric: &'static Fabric,
    slot: &'static SrqSlot,
    number: u32,
    ring: Ring,
    queue: Queue<'static>,
    domain: Arc<Domain>,
    _extent: Extent,
}

impl Shared {
    fn new(domain: &Arc<Domain>, init: &SrqInit) -> Result<Self, CreateError> {
        let fabric = domain.fabric();
        let max_wr = imitate::capacity(fabric, init.max_wr, MAX_SRQ_WR);
        let shape = Shape::of_recvs(max_wr, init.max_sge);
        let bytes = shape.bytes() + pool::bytes(max_wr);
        let extent = Extent::allocate(fabric, bytes)?;
        let (ring_at, slots_at) = (extent.offset(), extent.offset() + shape.bytes() as u32);
        let srqs = &fabric.tables().srqs;
        let full = CreateError::TableFull { what: Limit::SharedReceiveQueues, max: srqs.len() };
        let (index, generation) = sweep::take(fabric, || srqs.claim(fabric.place())).ok_or(full)?;
        let number = identity::number_of(srqs, index, generation);
        let (slot, none) = (srqs.at(index), CreateError::NoMemory { bytes });
        let ring = shape.ring(fabric, ring_at).ok_or(none)?;
        let queue = pool::at(fabric, slot, slots_at, max_wr).ok_or(none)?;
        shape.record(&slot.ring, ring_at);
        sync::store(&slot.pd, domain.number());
        sync::store(&slot.slots_at, slots_at);
        sync::store(&slot.capacity, max_wr);
        slot.pool.begin();
        sync::release(&slot.number, number);
        domain.bell().attach(Source::Srq(index));
        Ok(Self { fabric, slot, number, ring, queue, domain: Arc::clone(domain), _extent: extent })
    }

    /// Its number.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether it lies in this fabric, and not in another one of this process.
    pub fn is_of(&self, fabric: &'static Fabric) -> bool {
        std::ptr::eq(self.fabric, fabric)
    }

    /// Whether it can be reached: not in a forked child.
    fn is_there(&self) -> bool {
        sync::load(&self.slot.number) == self.number
    }

    /// A slot that is free. One that seems taken may not be: a completion can be polled a moment before its
    /// receive counts as completed.
    fn find_free(&self, first: u32) -> Option<u32> {
        self.queue.find_free(first).or_else(|| {
            for taken in self.queue.taken() {
                let cq = sync::load(&self.fabric.qp(taken.target()).recv_cq);
                if !cq::outwait_push(self.fabric, cq) {
                    // Nor is the next one waited for: a stranger may say that of all.
                    return None;
                }
                let slot = self.queue.find_free(taken.slot());
                if slot.is_some() {
                    return slot;
                }
            }
            // What was free by the time that taken ones were looked for.
            self.queue.find_free(first)
        })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.fabric.is_ours() {
            return;
        }
        // While it has its number: an event that is being taken bears it.
        self.domain.bell().detach(Source::Srq(self.number));
        sync::release(&self.slot.number, 0);
        self.slot.life().end(self.fabric.place());
    }
}

/// A shared receive queue. Its receives complete on the queue pairs that take them, each in the order in
/// which it took them. Their memory is that of the protection domain of this queue, whatever that of the
/// queue pair.
///
/// No queue pair's failing or resetting flushes them: what it had taken completes, the rest is left for
/// others. A receive that is taken for a message which does not arrive after all, since a process died or does
/// not answer, is the next to be taken again.
///
/// Destroying it twice does not compile:
/// ```compile_fail
/// # fn twice(srq: transport_rxe_loop::SharedReceiveQueue) {
/// srq.destroy();
/// srq.destroy();
/// # }
/// ```
#[derive(Debug)]
pub struct SharedReceiveQueue {
    shared: Arc<Shared>,
    caps: SrqInit,
    /// Where to look for a free slot first.
    next: u32,
}

impl SharedReceiveQueue {
    pub(crate) fn new(domain: &Arc<Domain>, init: &SrqInit) -> Result<Self, CreateError> {
        check(init)?;
        Ok(Self { shared: Arc::new(Shared::new(domain, init)?), caps: *init, next: 0 })
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Its number, which its asynchronous events carry.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.shared.number
    }

    /// What it takes: what was asked for.
    #[must_use]
    pub const fn caps(&self) -> SrqInit {
        self.caps
    }

    /// Posts a list of receives, in order.
    ///
    /// # Errors
    /// Stops at the first that is refused, and says which; those before it are posted (Q4).
    pub fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let first = self.shared.queue.posted();
        let (end, result) = put_all(first, list, |position, wr| self.put(position, wr));
        if end != first && self.shared.queue.post(end) {
            pool::kick(self.shared.fabric, self.shared.number);
        }
        result
    }

    fn put(&mut self, position: u64, wr: &RecvWr<'_>) -> Result<(), Refused> {
        if wr.sges.len() > self.caps.max_sge as usize {
            return Err(Refused::TooManySges { max: self.caps.max_sge });
        }
        if !self.shared.is_there() {
            return Err(Refused::WrongState);
        }
        let slot = self.shared.find_free(self.next).ok_or(Refused::QueueFull)?;
        self.shared.ring.write_recv(slot.into(), wr);
        self.shared.queue.put(slot, position);
        self.next = slot + 1;
        Ok(())
    }

    /// Asks for one SRQ_LIMIT_REACHED once a receive is taken and fewer than `limit` are left; 0 asks for
    /// none. That fewer wait already is told when the next one is taken.
    ///
    /// # Errors
    /// The limit is more than the queue takes; the device is the parent process'; or a process that takes from
    /// the queue is suspended.
    pub fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
        let (shared, max) = (&self.shared, self.caps.max_wr);
        if limit > max {
            return Err(ArmLimitError::TooMany { asked: limit, max });
        }
        if !shared.is_there() {
            return Err(ArmLimitError::Forked);
        }
        let pool = &shared.slot.pool;
        let _guard =
            shared.fabric.lock(pool.lock(), || {}).map_err(|Stuck| ArmLimitError::Stuck)?;
        pool.arm(limit);
        Ok(())
    }

    /// The limit in force: 0 once it was reached, or if none was asked for.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.shared.slot.pool.limit()
    }

    /// How many receives wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> u64 {
        self.shared.queue.len()
    }

    /// Destroys it. Dropping does, too, once the last queue pair of it is gone.
    ///
    /// # Errors
    /// A queue pair takes from it; the handle comes back (EBUSY, Q11).
    pub fn destroy(self) -> Result<(), InUse<Self>> {
        let Self { shared, caps, next } = self;
        Arc::try_unwrap(shared).map(drop).map_err(|shared| {
            InUse::new(Self { shared, caps, next }, "shared receive queue", "its queue pairs")
        })
    }
}

#[cfg(test)]
mod tests {
    use cq_core::wc::WcStatus;

    use super::*;
    use crate::completion;
    use crate::fabric::limits::Limits;
    use crate::open::OpenOptions;
    use crate::protocol::lock::Owner;
    use crate::qp::QpInit;

    /// A place where nobody lives.
    const PLACE: u16 = 43;

    const ONE: &[RecvWr<'_>] = &[RecvWr::new(1, &[])];

    #[test]
    fn q09_a_new_queue_has_nothing_of_the_last_in_its_place() {
        let limits = Limits { shared_receive_queues: 1, ..Limits::default() };
        let (context, fabric) = OpenOptions::new().limits(limits).alone();
        let (pd, init) = (context.alloc_pd(), SrqInit { max_wr: 4, max_sge: 1 });
        let mut last = pd.create_srq(&init).unwrap();
        last.post_recv(ONE).unwrap();
        last.arm_limit(1).unwrap();
        last.destroy().unwrap();
        assert_eq!(sync::load(&fabric.srq(0).number), 0, "nobody finds it");
        let srq = pd.create_srq(&init).unwrap();
        assert_eq!((srq.waiting(), srq.limit()), (0, 0));
    }

    #[test]
    fn q09_each_queue_has_memory_of_its_own() {
        const MAX_WR: u32 = 512;
        let (context, fabric) = OpenOptions::new().alone();
        let pd = context.alloc_pd();
        let srqs =
            [(); 2].map(|()| pd.create_srq(&SrqInit { max_wr: MAX_WR, max_sge: 1 }).unwrap());
        let [first, second] = srqs.each_ref().map(|srq| {
            let slot = fabric.srq(srq.number());
            let slots_at = sync::load(&slot.slots_at);
            sync::load(&slot.ring.offset)..slots_at + pool::bytes(MAX_WR) as u32
        });
        assert!(first.end <= second.start || second.end <= first.start, "{first:?} {second:?}");
    }

    #[test]
    fn x03_a_slot_of_a_dead_process_is_free_though_who_completes_another_is_suspended() {
        let (context, fabric) = OpenOptions::new().alone();
        let (pd, cqs) = (context.alloc_pd(), [(); 2].map(|()| context.create_cq(4, None).unwrap()));
        let mut srq = pd.create_srq(&SrqInit { max_wr: 2, max_sge: 1 }).unwrap();
        let qps = cqs
            .each_ref()
            .map(|cq| pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(cq) }).unwrap());
        srq.post_recv(&[RecvWr::new(1, &[]); 2]).unwrap();
        let taken = qps.each_ref().map(|qp| {
            let _guard = fabric.lock(srq.shared.slot.pool.lock(), || {}).unwrap();
            srq.shared.queue.take(fabric.place(), qp.number()).unwrap()
        });
        let [completes, suspended] = cqs.each_ref().map(|cq| cq.queue().index());
        let wc = completion::failed(1, qps[0].number(), WcStatus::LOC_PROT_ERR);
        cq::die_pushing(fabric, completes, Owner::new(PLACE, 1), &wc, taken[0].tag());
        let _suspended = cq::lock(fabric, suspended).unwrap();
        assert_eq!(srq.post_recv(ONE), Ok(()), "it has completed");
        // Or destroying waits for it.
        srq.shared.queue.free(&taken[1]);
    }

    #[test]
    fn x03_who_sets_a_limit_inherits_the_lock_of_a_dead_process() {
        let (context, _fabric) = OpenOptions::new().alone();
        let mut srq = context.alloc_pd().create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
        let lock = srq.shared.slot.pool.lock();
        assert!(lock.try_enter(Owner::new(PLACE, 1)));
        assert_eq!((srq.arm_limit(1), srq.limit()), (Ok(()), 1));
        assert_eq!(lock.holder(), None);
    }

    #[test]
    fn x07_in_a_forked_child_nothing_is_posted_and_no_limit_is_set() {
        let (context, _fabric) = OpenOptions::new().alone();
        let mut srq = context.alloc_pd().create_srq(&SrqInit { max_wr: 1, max_sge: 1 }).unwrap();
        // There, zeros lie in its place.
        sync::release(&srq.shared.slot.number, 0);
        assert_eq!(srq.post_recv(ONE).unwrap_err().why, Refused::WrongState);
        assert_eq!(srq.arm_limit(1), Err(ArmLimitError::Forked));
        assert_eq!((srq.waiting(), srq.limit()), (0, 0));
    }
}
