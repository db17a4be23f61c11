//! Handles: the traits of cq-core and those of [`device`], each method one call on the
//! [`World`] under its lock.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Woken,
};
use cq_core::wc::Wc;
use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::wr::{RecvWr, SendWr};

use super::events::key;
use super::world::{AddressHandle, Channel, Cq, Id, Opening, Pd, Qp, Region, Srq, Window, World};
use crate::device::{self, Destination, Destroy, Errno, Posted, QpAttr, QpCaps, QpState, SrqInit};

/// A device, shared by its handles.
#[derive(Default)]
pub struct Shared {
    world: Mutex<World>,
    /// Notified at every change.
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        // A panic for a caller's mistake changed nothing before.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn with<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        let result = act(&mut self.lock());
        self.done.notify_all();
        result
    }

    /// Waits until another thread changes something, and subtracts the time from `left`; if it is over, the clock
    /// advances by it.
    fn wait<'a>(
        &self,
        world: MutexGuard<'a, World>,
        left: &mut Option<Duration>,
    ) -> MutexGuard<'a, World> {
        let Some(limit) = *left else {
            return self.done.wait(world).unwrap_or_else(PoisonError::into_inner);
        };
        let (started, end) = (Instant::now(), world.now.saturating_add(limit));
        let woken = self.done.wait_timeout(world, limit);
        let (mut world, result) = woken.unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() {
            world.advance(end);
            *left = Some(Duration::ZERO);
        } else {
            *left = Some(limit.saturating_sub(started.elapsed()));
        }
        world
    }
}

/// An object of a device. It is removed when its handle is dropped, and everything that uses it.
pub struct Object {
    pub shared: Arc<Shared>,
    pub id: Id,
    /// The context that it was created through.
    pub opening: Id,
    /// What it uses.
    pub _uses: Vec<Arc<Object>>,
}

impl Drop for Object {
    fn drop(&mut self) {
        self.shared.with(|world| world.remove(self.id));
    }
}

/// What a user holds of an object of this kind.
pub struct Handle<Kind>(Arc<Object>, PhantomData<Kind>);

impl<Kind> Handle<Kind> {
    pub(super) fn new(object: Object) -> Self {
        Self(Arc::new(object), PhantomData)
    }

    pub(super) const fn object(&self) -> &Arc<Object> {
        &self.0
    }

    pub(super) fn id(&self) -> Id {
        self.0.id
    }

    pub(super) fn with<R>(&self, act: impl FnOnce(&mut World, Id) -> R) -> R {
        self.0.shared.with(|world| act(world, self.0.id))
    }
}

impl<Kind> fmt::Debug for Handle<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.0.id).finish()
    }
}

/// Q11
impl<Kind> Destroy for Handle<Kind> {
    fn destroy(self) -> Result<(), Self> {
        if Arc::strong_count(&self.0) > 1 { Err(self) } else { Ok(()) }
    }
}

/// A context of the reference model.
pub type Model = Handle<Opening>;
/// A protection domain of the model.
pub type ModelPd = Handle<Pd>;
/// A memory region of the model.
pub type ModelMr = Handle<Region>;
/// A completion channel of the model.
pub type ModelChannel = Handle<Channel>;
/// A completion queue of the model.
pub type ModelCq = Handle<Cq>;
/// A shared receive queue of the model.
pub type ModelSrq = Handle<Srq>;
/// An address handle of the model.
pub type ModelAh = Handle<AddressHandle>;
/// A memory window of the model.
pub type ModelMw = Handle<Window>;
/// A queue pair of the model.
pub type ModelQp = Handle<Qp>;

impl Events for ModelChannel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.with(|world, id| world.next_event(id)))
    }

    fn serves(&self, key: CqKey) -> bool {
        self.with(|world, id| world.serves(id, key))
    }
}

impl Block for ModelChannel {
    type Instant = Instant;

    /// Advances the clock to the next timer within the time left. Without one, waits really for another thread.
    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        let mut left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let shared = &self.0.shared;
        let mut world = shared.lock();
        loop {
            if !world.channels[&self.0.id].is_empty() {
                return Ok(Woken::Event);
            }
            let end = left.map(|left| world.now.saturating_add(left));
            let deadline = world.next_deadline();
            match deadline.filter(|deadline| end.is_none_or(|end| *deadline <= end)) {
                Some(deadline) => {
                    world.advance(deadline);
                    left = end.map(|end| end.saturating_sub(world.now));
                }
                None if left == Some(Duration::ZERO) => return Ok(Woken::DeadlinePassed),
                None => world = shared.wait(world, &mut left),
            }
        }
    }
}

impl PollCq for ModelCq {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.with(|world, id| world.poll(id, out))
    }
}

impl Arm for ModelCq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.with(|world, id| world.arm(id, on))
    }

    fn key(&self) -> CqKey {
        key(self.0.id)
    }
}

impl device::Cq for ModelCq {
    fn capacity(&self) -> u32 {
        self.with(|world, id| world.cqs[&id].capacity)
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Errno> {
        self.with(|world, id| world.resize(id, capacity))
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), Errno> {
        self.with(|world, id| world.moderate(id, count, period));
        Ok(())
    }
}

impl Post for ModelQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.with(|world, id| world.post_send(id, None, list))
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.with(|world, id| world.post_recv(id, list))
    }

    /// The model's memory is its own, and requests are executed while its lock is held.
    fn quiesce(&mut self) -> bool {
        true
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.with(|world, id| world.qps[&id].check_send(wr))
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        self.with(|world, id| world.qps[&id].check_recv(wr))
    }
}

impl device::Qp<ModelAh> for ModelQp {
    fn post_to(&mut self, to: &Destination<'_, ModelAh>, list: &[SendWr<'_>]) -> Posted {
        let Destination { ah, qp_num, qkey, .. } = *to;
        let to = Destination::new(&ah.0.id, qp_num, qkey);
        self.with(|world, id| world.post_send(id, Some(&to), list))
    }

    fn number(&self) -> u32 {
        self.0.id
    }

    fn caps(&self) -> QpCaps {
        self.with(|world, id| world.qps[&id].caps)
    }

    fn state(&self) -> QpState {
        self.with(|world, id| world.qps[&id].state)
    }

    fn modify(&mut self, attr: &QpAttr) -> Result<(), Errno> {
        self.with(|world, id| world.modify(id, attr))
    }
}

impl device::Srq for ModelSrq {
    fn number(&self) -> u32 {
        self.0.id
    }

    fn caps(&self) -> SrqInit {
        self.with(|world, id| world.srqs[&id].caps)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.with(|world, id| world.post_srq_recv(id, list))
    }

    fn arm_limit(&mut self, limit: u32) -> Result<(), Errno> {
        self.with(|world, id| world.arm_limit(id, limit))
    }

    fn limit(&self) -> u32 {
        self.with(|world, id| world.srqs[&id].limit)
    }
}

impl device::Mw for ModelMw {
    fn rkey(&self) -> u32 {
        self.with(|world, id| world.windows[&id].rkey)
    }
}

impl device::Mr for ModelMr {
    fn addr(&self) -> u64 {
        self.with(|world, id| world.regions[&id].addr)
    }

    fn lkey(&self) -> u32 {
        self.0.id
    }

    fn rkey(&self) -> u32 {
        self.with(|world, id| world.regions[&id].rkey)
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        self.with(|world, id| {
            to.copy_from_slice(&world.regions[&id].bytes[offset..offset + to.len()]);
        });
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.with(|world, id| {
            let region = world.regions.get_mut(&id).expect("its handle is alive");
            region.bytes[offset..offset + from.len()].copy_from_slice(from);
        });
    }
}
