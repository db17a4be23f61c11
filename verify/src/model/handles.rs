//! Handles: the seams of cq-core and the traits of [`device`](crate::device), each method one call on the
//! [`World`] under its lock.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{
    Arm, ArmError, Armed, AsyncEvents, Block, CqKey, EventError, Events, Notify, Poll, PollError,
    Post, PostError,
};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};

use super::events::key;
use super::world::{Channel, Cq, Id, Opening, Pd, Qp, World};
use crate::device::{self, Access, Attr, Caps, Destroy, Limits, QpInit, Refusal, State};

/// What this device allows at most.
const LIMITS: Limits = Limits {
    max_cqe: 1 << 16,
    max_qp_wr: 1 << 14,
    max_sge: 16,
    max_inline: 256,
    max_rd_atomic: 16,
};

/// A device, shared by its handles.
#[derive(Default)]
struct Shared {
    world: Mutex<World>,
    /// Rung whenever somebody did something.
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        // A caller's mistake that panicked changed nothing before.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, act: impl FnOnce(&mut World) -> R) -> R {
        let result = act(&mut self.lock());
        self.done.notify_all();
        result
    }
}

thread_local! {
    /// The device that this thread opened, while something of it is left.
    static DEVICE: RefCell<Weak<Shared>> = const { RefCell::new(Weak::new()) };
}

/// Declares a handle: an object of a device, and what happens when it is dropped.
macro_rules! handles {
    ($($(#[$meta:meta])* $name:ident: |$world:ident, $id:ident| $drop:expr;)+) => {
        $(
            $(#[$meta])*
            pub struct $name {
                shared: Arc<Shared>,
                id: Id,
            }

            impl $name {
                fn with<R>(&self, act: impl FnOnce(&mut World, Id) -> R) -> R {
                    self.shared.with(|world| act(world, self.id))
                }
            }

            impl Drop for $name {
                fn drop(&mut self) {
                    self.with(|$world, $id| {
                        $drop;
                        $world.sweep();
                    });
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_tuple(stringify!($name)).field(&self.id).finish()
                }
            }
        )+
    };
}

handles! {
    /// The reference model, opened.
    Model: |world, id| world.openings.remove(&id);
    /// A protection domain of the model.
    ModelPd: |world, id| world.pds.get_mut(&id).expect("it is held").held = false;
    /// A memory region of the model.
    ModelMr: |world, id| world.regions.remove(&id);
    /// A completion channel of the model.
    ModelChannel: |world, id| world.channels.get_mut(&id).expect("it is held").held = false;
    /// A completion queue of the model.
    ModelCq: |world, id| world.cqs.get_mut(&id).expect("it is held").held = false;
    /// A queue pair of the model.
    ModelQp: |world, id| world.forget_qp(id);
}

impl device::Device for Model {
    type Pd = ModelPd;
    type Mr = ModelMr;
    type Channel = ModelChannel;
    type Cq = ModelCq;
    type Qp = ModelQp;

    fn open() -> Self {
        let shared = DEVICE.with_borrow_mut(|device| {
            let shared = device.upgrade().unwrap_or_default();
            *device = Arc::downgrade(&shared);
            shared
        });
        let id = shared.with(|world| {
            let id = world.fresh();
            world.openings.insert(id, Opening::default());
            id
        });
        Self { shared, id }
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn alloc_pd(&self) -> ModelPd {
        let id = self.with(|world, opening| {
            let id = world.fresh();
            world.pds.insert(id, Pd { opening, held: true });
            id
        });
        ModelPd { shared: self.shared.clone(), id }
    }

    fn register(&self, pd: &ModelPd, len: usize, access: Access) -> Result<ModelMr, Refusal> {
        self.owns(&pd.shared, |world| world.pds[&pd.id].opening)?;
        let id = self.with(|world, _| world.register(pd.id, len, access))?;
        Ok(ModelMr { shared: self.shared.clone(), id })
    }

    fn create_channel(&self) -> ModelChannel {
        let id = self.with(|world, opening| {
            let id = world.fresh();
            let events = Default::default();
            world.channels.insert(id, Channel { opening, events, held: true });
            id
        });
        ModelChannel { shared: self.shared.clone(), id }
    }

    fn create_cq(&self, capacity: u32, channel: Option<&ModelChannel>) -> Result<ModelCq, Refusal> {
        // O1: it holds what was asked for, exactly.
        if !(1..=LIMITS.max_cqe).contains(&capacity) {
            return Err(Refusal::Invalid);
        }
        if let Some(channel) = channel {
            self.owns(&channel.shared, |world| world.channels[&channel.id].opening)?;
        }
        let id = self.with(|world, opening| {
            let id = world.fresh();
            let cq = Cq {
                opening,
                channel: channel.map(|channel| channel.id),
                capacity,
                entries: Default::default(),
                armed: None,
                dropped: 0,
                breaks: false,
                held: true,
            };
            world.cqs.insert(id, cq);
            id
        });
        Ok(ModelCq { shared: self.shared.clone(), id })
    }

    fn create_qp(&self, pd: &ModelPd, init: &QpInit<'_, ModelCq>) -> Result<ModelQp, Refusal> {
        if !in_limits(&init.caps) {
            return Err(Refusal::Invalid);
        }
        self.owns(&pd.shared, |world| world.pds[&pd.id].opening)?;
        for cq in [init.send_cq, init.recv_cq] {
            self.owns(&cq.shared, |world| world.cqs[&cq.id].opening)?;
        }
        let id = self.with(|world, opening| {
            let id = world.fresh();
            let qp = Qp {
                opening,
                pd: pd.id,
                send_cq: init.send_cq.id,
                recv_cq: init.recv_cq.id,
                caps: init.caps,
                sq_sig_all: init.sq_sig_all,
                state: State::Reset,
                attr: Attr::default(),
                sends: Default::default(),
                receives: Default::default(),
                sends_posted: 0,
                sends_retired: 0,
                wait: None,
                report_drained: false,
            };
            world.qps.insert(id, qp);
            id
        });
        Ok(ModelQp { shared: self.shared.clone(), id })
    }

    fn pause(&self) {
        self.with(|world, _| {
            if let Some(deadline) = world.next_deadline() {
                world.advance(deadline);
            }
        });
        thread::yield_now();
    }
}

impl Model {
    /// Objects are of the opening that they were made through.
    fn owns(&self, shared: &Arc<Shared>, of: impl FnOnce(&World) -> Id) -> Result<(), Refusal> {
        let own = Arc::ptr_eq(shared, &self.shared) && self.with(|world, id| of(world) == id);
        if own { Ok(()) } else { Err(Refusal::Invalid) }
    }
}

/// Whether a queue pair can be so large; a queue of no requests is always full.
fn in_limits(caps: &Caps) -> bool {
    caps.max_send_wr <= LIMITS.max_qp_wr
        && caps.max_recv_wr <= LIMITS.max_qp_wr
        && caps.max_send_sge <= LIMITS.max_sge
        && caps.max_recv_sge <= LIMITS.max_sge
        && caps.max_inline <= LIMITS.max_inline
}

impl AsyncEvents for Model {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        Ok(self.with(|world, id| world.openings.get_mut(&id)?.reports.pop_front()))
    }
}

impl Destroy for ModelPd {
    fn destroy(self) -> Result<(), Self> {
        if self.with(|world, id| world.uses_pd(id)) { Err(self) } else { Ok(()) }
    }
}

impl Destroy for ModelChannel {
    fn destroy(self) -> Result<(), Self> {
        if self.with(|world, id| world.uses_channel(id)) { Err(self) } else { Ok(()) }
    }
}

impl Destroy for ModelCq {
    fn destroy(self) -> Result<(), Self> {
        if self.with(|world, id| world.uses_cq(id)) { Err(self) } else { Ok(()) }
    }
}

impl Events for ModelChannel {
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.with(|world, id| world.next_event(id)))
    }
}

impl Block for ModelChannel {
    fn block(&mut self, left: &mut Option<Duration>) -> Result<bool, EventError> {
        let mut world = self.shared.lock();
        loop {
            if !world.channels[&self.id].events.is_empty() {
                return Ok(true);
            }
            let end = left.map(|left| world.now.saturating_add(left));
            match (world.next_deadline(), end) {
                (Some(deadline), end) if end.is_none_or(|end| deadline <= end) => {
                    world.advance(deadline);
                }
                (_, Some(end)) => {
                    world.advance(end);
                    *left = Some(Duration::ZERO);
                    return Ok(false);
                }
                // Time brings nothing: another thread may.
                _ => world = self.shared.done.wait(world).unwrap_or_else(PoisonError::into_inner),
            }
            *left = end.map(|end| end.saturating_sub(world.now));
        }
    }
}

impl Poll for ModelCq {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.with(|world, id| world.poll(id, out))
    }
}

impl Arm for ModelCq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.with(|world, id| world.arm(id, on))
    }

    fn key(&self) -> CqKey {
        key(self.id)
    }
}

impl device::Cq for ModelCq {
    fn capacity(&self) -> u32 {
        self.with(|world, id| world.cqs[&id].capacity)
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        self.with(|world, id| world.resize(id, capacity, LIMITS.max_cqe))
    }
}

impl Post for ModelQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.with(|world, id| world.post_send(id, list))
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.with(|world, id| world.post_recv(id, list))
    }
}

impl device::Qp for ModelQp {
    fn number(&self) -> u32 {
        self.id
    }

    fn state(&self) -> State {
        self.with(|world, id| world.qps[&id].state)
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        self.with(|world, id| world.modify(id, attr, LIMITS.max_rd_atomic))
    }
}

impl device::Mr for ModelMr {
    fn addr(&self) -> u64 {
        self.with(|world, id| world.regions[&id].addr)
    }

    fn lkey(&self) -> u32 {
        self.id
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
