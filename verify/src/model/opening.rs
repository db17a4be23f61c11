//! Opening the device and creating objects: the traits [`Device`] and [`AsyncEvents`].

use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::thread;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{AsyncEvents, EventError};
use cq_core::wc::Wc;

use super::handles::{
    Model, ModelAh, ModelChannel, ModelCq, ModelMr, ModelMw, ModelPd, ModelQp, ModelSrq, Shared,
};
use super::world::{Channel, Cq, Id, LIMITS, Opening, Pd, Qp, World};
use crate::device::{
    Access, Address, Device, Errno, Limits, QpAttr, QpCaps, QpInit, QpState, QpType, SrqInit,
};

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

    fn register(&self, pd: &ModelPd, len: usize, access: Access) -> Result<ModelMr, Errno> {
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

    fn create_cq(&self, capacity: u32, channel: Option<&ModelChannel>) -> Result<ModelCq, Errno> {
        self.make_cq(capacity, channel, false)
    }

    fn create_cq_ignoring_overrun(
        &self,
        capacity: u32,
        channel: Option<&ModelChannel>,
    ) -> Result<ModelCq, Errno> {
        self.make_cq(capacity, channel, true)
    }

    fn create_srq(&self, pd: &ModelPd, init: &SrqInit) -> Result<ModelSrq, Errno> {
        self.owns(&pd.shared, |world| world.pds[&pd.id].opening)?;
        let most = SrqInit { max_wr: LIMITS.max_srq_wr, max_sge: LIMITS.max_srq_sge };
        let id = self.with(|world, opening| world.create_srq(opening, pd.id, *init, most))?;
        Ok(ModelSrq { shared: self.shared.clone(), id })
    }

    fn create_qp(
        &self,
        pd: &ModelPd,
        init: &QpInit<'_, ModelCq, ModelSrq>,
    ) -> Result<ModelQp, Errno> {
        // Q9: there are no receives of its own.
        let (max_recv_wr, max_recv_sge) = match init.srq {
            Some(_) => (0, 0),
            None => (init.caps.max_recv_wr, init.caps.max_recv_sge),
        };
        let caps = QpCaps { max_recv_wr, max_recv_sge, ..init.caps };
        if !in_limits(&caps) {
            return Err(Errno::EINVAL);
        }
        self.owns(&pd.shared, |world| world.pds[&pd.id].opening)?;
        for cq in [init.send_cq, init.recv_cq] {
            self.owns(&cq.shared, |world| world.cqs[&cq.id].opening)?;
        }
        if let Some(srq) = init.srq {
            self.owns(&srq.shared, |world| world.srqs[&srq.id].opening)?;
            if init.qp_type == QpType::Uc {
                return Err(Errno::EOPNOTSUPP);
            }
        }
        let id = self.with(|world, opening| {
            let id = world.fresh();
            let qp = Qp {
                opening,
                kind: init.qp_type,
                pd: pd.id,
                srq: init.srq.map(|srq| srq.id),
                send_cq: init.send_cq.id,
                recv_cq: init.recv_cq.id,
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
            world.qps.insert(id, qp);
            id
        });
        Ok(ModelQp { shared: self.shared.clone(), id })
    }

    fn create_ah(&self, pd: &ModelPd, to: Address) -> Result<ModelAh, Errno> {
        self.owns(&pd.shared, |world| world.pds[&pd.id].opening)?;
        let id = self.with(|world, _| world.create_handle(pd.id, to))?;
        Ok(ModelAh { shared: self.shared.clone(), id })
    }

    fn ah_from_wc(&self, pd: &ModelPd, wc: &Wc, grh: &[u8; 40]) -> Result<ModelAh, Errno> {
        self.owns(&pd.shared, |world| world.pds[&pd.id].opening)?;
        let id = self.with(|world, _| world.handle_from(pd.id, wc, grh))?;
        Ok(ModelAh { shared: self.shared.clone(), id })
    }

    fn alloc_mw(&self, pd: &ModelPd) -> Result<ModelMw, Errno> {
        self.owns(&pd.shared, |world| world.pds[&pd.id].opening)?;
        let id = self.with(|world, _| world.alloc_window(pd.id));
        Ok(ModelMw { shared: self.shared.clone(), id })
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
    /// O1: the capacity is exactly the requested one.
    fn make_cq(
        &self,
        capacity: u32,
        channel: Option<&ModelChannel>,
        ignores_overrun: bool,
    ) -> Result<ModelCq, Errno> {
        if !(1..=LIMITS.max_cqe).contains(&capacity) {
            return Err(Errno::EINVAL);
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
                moderation: Default::default(),
                dropped: 0,
                ignores_overrun,
                breaks: false,
                held: true,
            };
            world.cqs.insert(id, cq);
            id
        });
        Ok(ModelCq { shared: self.shared.clone(), id })
    }

    /// Objects belong to the context that they were created through.
    fn owns(&self, shared: &Arc<Shared>, of: impl FnOnce(&World) -> Id) -> Result<(), Errno> {
        let own = Arc::ptr_eq(shared, &self.shared) && self.with(|world, id| of(world) == id);
        if own { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

/// Whether a queue pair can be so large; a queue of no requests is always full.
fn in_limits(caps: &QpCaps) -> bool {
    caps.max_send_wr <= LIMITS.max_qp_wr
        && caps.max_recv_wr <= LIMITS.max_qp_wr
        && caps.max_send_sge <= LIMITS.max_sge
        && caps.max_recv_sge <= LIMITS.max_sge
        && caps.max_inline <= LIMITS.max_inline
}

impl AsyncEvents for Model {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        Ok(self.with(|world, id| world.openings.get_mut(&id)?.reports.pop_front()))
    }
}
