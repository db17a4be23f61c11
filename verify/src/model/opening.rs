//! Opening the device and creating objects: the traits [`Device`] and [`AsyncEvents`].

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use cq_core::transport::EventError;
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::async_event::AsyncEvents;
use cq_verbs::cm::CmEvent;

use super::handles::{
    Handle, Model, ModelAh, ModelChannel, ModelCq, ModelMr, ModelMw, ModelPd, ModelQp, ModelSrq,
    Object, Shared,
};
use super::world::{Channel, Cq, Id, LIMITS, Opening, Qp, World};
use crate::device::{
    Access, Address, CmCall, CqInit, Device, Errno, Identifier, Limits, Made, QpAttr, QpCaps,
    QpInit, QpState, QpType, SrqInit,
};

/// Who pauses again and again yields the processor, which takes milliseconds on a busy machine, once in so many times.
const SPINS: u64 = 4096;

thread_local! {
    /// The device that this thread opened, while an object of it exists.
    static DEVICE: RefCell<Weak<Shared>> = const { RefCell::new(Weak::new()) };
}

impl Device for Model {
    type Pd = ModelPd;
    type Mr = ModelMr;
    type Channel = ModelChannel;
    type Cq = ModelCq;
    type Srq = ModelSrq;
    type Ah = ModelAh;
    type Mw = ModelMw;
    type Qp = ModelQp;
    type Id = Infallible;

    fn open() -> Self {
        let shared = DEVICE.with_borrow_mut(|device| {
            let shared = device.upgrade().unwrap_or_default();
            *device = Arc::downgrade(&shared);
            shared
        });
        let id = shared.with(|world| world.put(|world| &mut world.openings, Opening::default()));
        Self::new(Object { shared, id, opening: id, _uses: Vec::new() })
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn alloc_pd(&self) -> ModelPd {
        let made = self.make(&[], |world, _| Ok(world.fresh()));
        made.expect("it uses nothing")
    }

    fn register(&self, pd: &ModelPd, len: usize, access: Access) -> Result<ModelMr, Errno> {
        let register = |world: &mut World, _| world.register(pd.id(), len, access);
        self.make(&[pd.object()], register)
    }

    fn create_channel(&self) -> ModelChannel {
        let create =
            |world: &mut World, _| Ok(world.put(|world| &mut world.channels, Channel::default()));
        self.make(&[], create).expect("it uses nothing")
    }

    fn create_cq_with(&self, init: CqInit<'_, ModelChannel>) -> Made<ModelCq> {
        let CqInit { capacity, channel, ignores_overrun } = init;
        let uses: Vec<_> = channel.map(Handle::object).into_iter().collect();
        self.make(&uses, |world, opening| {
            if !(1..=LIMITS.max_cqe).contains(&capacity) {
                return Err(Errno::EINVAL);
            }
            let channel = channel.map(Handle::id);
            let cq = Cq { opening, channel, capacity, ignores_overrun, ..Cq::default() };
            Ok(world.put(|world| &mut world.cqs, cq))
        })
    }

    fn create_srq(&self, pd: &ModelPd, init: &SrqInit) -> Result<ModelSrq, Errno> {
        let create = |world: &mut World, opening| world.create_srq(opening, pd.id(), *init);
        self.make(&[pd.object()], create)
    }

    fn create_qp(&self, pd: &ModelPd, init: &QpInit<'_, ModelCq, ModelSrq>) -> Made<ModelQp> {
        // Q9: there are no receives of its own.
        let (max_recv_wr, max_recv_sge) = match init.srq {
            Some(_) => (0, 0),
            None => (init.caps.max_recv_wr, init.caps.max_recv_sge),
        };
        let caps = init.caps.max_recv_wr(max_recv_wr).max_recv_sge(max_recv_sge);
        let mut uses = vec![pd.object(), init.send_cq.object(), init.recv_cq.object()];
        uses.extend(init.srq.map(Handle::object));
        self.make(&uses, |world, opening| {
            if !in_limits(&caps) {
                return Err(Errno::EINVAL);
            }
            let is_known = QpType::KNOWN.contains(&init.qp_type);
            if !is_known || init.srq.is_some() && init.qp_type == QpType::UC {
                return Err(Errno::EOPNOTSUPP);
            }
            let qp = Qp {
                opening,
                kind: init.qp_type,
                pd: pd.id(),
                srq: init.srq.map(Handle::id),
                send_cq: init.send_cq.id(),
                recv_cq: init.recv_cq.id(),
                caps,
                sq_sig_all: init.sq_sig_all,
                state: QpState::RESET,
                attr: QpAttr::default(),
                sends: Default::default(),
                receives: Default::default(),
                sends_posted: 0,
                sends_retired: 0,
                wait: None,
                report_drained: false,
            };
            Ok(world.put(|world| &mut world.qps, qp))
        })
    }

    fn create_ah(&self, pd: &ModelPd, to: Address) -> Result<ModelAh, Errno> {
        self.make(&[pd.object()], |world, _| world.create_handle(pd.id(), to))
    }

    fn ah_from_wc(&self, pd: &ModelPd, wc: &Wc, grh: &[u8; 40]) -> Result<ModelAh, Errno> {
        self.make(&[pd.object()], |world, _| world.handle_from(pd.id(), wc, grh))
    }

    fn alloc_mw(&self, pd: &ModelPd) -> Result<ModelMw, Errno> {
        self.make(&[pd.object()], |world, _| Ok(world.alloc_window(pd.id())))
    }

    fn pause(&self) {
        let yields = self.with(|world, _| {
            if let Some(deadline) = world.next_deadline() {
                world.advance(deadline);
            }
            world.pauses += 1;
            world.pauses.is_multiple_of(SPINS)
        });
        if yields {
            thread::yield_now();
        }
    }
}

impl Model {
    /// An object that uses others, which have to be of this context, too.
    fn make<Kind>(
        &self,
        uses: &[&Arc<Object>],
        create: impl FnOnce(&mut World, Id) -> Result<Id, Errno>,
    ) -> Result<Handle<Kind>, Errno> {
        let Object { shared, id: opening, .. } = &**self.object();
        let is_own = |object: &&Arc<Object>| {
            Arc::ptr_eq(&object.shared, shared) && object.opening == *opening
        };
        if !uses.iter().all(is_own) {
            return Err(Errno::EINVAL);
        }
        let id = self.with(create)?;
        let _uses = uses.iter().copied().cloned().collect();
        Ok(Handle::new(Object { shared: shared.clone(), id, opening: *opening, _uses }))
    }
}

/// Whether a queue pair can be so large; a queue of no requests is always full.
fn in_limits(caps: &QpCaps) -> bool {
    caps.max_send_wr.max(caps.max_recv_wr) <= LIMITS.max_qp_wr
        && caps.max_send_sge.max(caps.max_recv_sge) <= LIMITS.max_sge
        && caps.max_inline <= LIMITS.max_inline
}

/// The model has no connection manager.
impl Identifier<Model> for Infallible {
    fn call(&mut self, _: &CmCall) -> Made<()> {
        match *self {}
    }

    fn take_event(&mut self) -> Made<Option<(CmEvent, Option<Self>)>> {
        match *self {}
    }

    fn is_readable(&self, _: Instant) -> bool {
        match *self {}
    }

    fn addrs(&self) -> [Option<SocketAddr>; 2] {
        match *self {}
    }

    fn open(&self) -> Model {
        match *self {}
    }

    fn modify(&mut self, _: &mut ModelQp, _: QpState) -> Made<()> {
        match *self {}
    }
}

impl AsyncEvents for Model {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        Ok(self.with(|world, id| world.openings.get_mut(&id)?.pop_front()))
    }
}
