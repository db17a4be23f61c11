//! The model with one thing broken, which whatever compares or judges has to notice.

mod connecting;

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Instant;

use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Woken,
};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus as S};
use cq_verbs::async_event::AsyncEvents;
use cq_verbs::async_event::{AsyncEvent, AsyncEventType};
use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::wr::{RecvWr, SendFlags, SendOp, SendWr};

use self::connecting::BrokenId;
use crate::device::{
    Access, Address, Cq, CqInit, Destination, Destroy, Device, Errno, Limits, Made, Posted, Qp,
    QpAttr, QpCaps, QpInit, QpState, SrqInit,
};
use crate::model::{
    Model, ModelAh, ModelChannel, ModelCq, ModelMr, ModelMw, ModelPd, ModelQp, ModelSrq,
};

/// A way to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Not at all.
    Nothing,
    SwapsTwoStatuses,
    SkipsAFlush,
    LosesSolicited,
    GivesASlotEarly,
    HandsOutTwice,
    LosesAnEvent,
    /// A thread that waits for an event is woken without one.
    WakesForNothing,
    /// A channel says that it serves every queue.
    ServesEveryQueue,
    ReportsNothing,
    ForgetsToResize,
    /// What a shared receive queue holds goes with the first queue pair of it that fails.
    FlushesSharedReceives,
    /// `byte_len` of a datagram is that of what was sent.
    ForgetsTheRoute,
    IgnoresQueueKeys,
    ReachesALimitTwice,
    /// A key that was invalidated still opens the window.
    KeepsKeys,
    /// Moderation changes nothing.
    HoldsNothingBack,
    /// A completion queue that was to ignore overruns does not.
    MindsOverruns,
    /// A window that is bound can be bound again.
    Rebinds,
    /// A window can't be bound again by the queue pair that took its key away.
    BindsOnce,
    /// The peer's answer is reported as the end of connecting.
    SkipsEstablishing,
    /// An event of the connection manager is reported twice.
    ReportsTwice,
    /// Half of the private data arrives.
    CutsPrivateData,
    /// A request of a peer that has given up can be accepted.
    AcceptsForNobody,
    /// A rejection goes without its data.
    RejectsInSilence,
    /// A peer that is gone is not noticed.
    MissesDisconnections,
    /// Two can listen at one port.
    SharesPorts,
    /// The descriptor of an identifier is always readable.
    IsAlwaysReadable,
    /// The parameters of a connection arrive as they were sent.
    TurnsNothingRound,
}

impl How {
    /// Runs what opens the model so that it is broken in this way. It is no type's, so that the cases are compiled
    /// once for all.
    pub fn with<R>(self, run: impl FnOnce() -> R) -> R {
        HOW.set(self);
        let result = run();
        HOW.set(How::Nothing);
        result
    }
}

thread_local! {
    static HOW: Cell<How> = const { Cell::new(How::Nothing) };
}

/// The model, broken in one way.
pub struct Broken {
    how: How,
    device: Model,
    /// Reported before anything else.
    again: Option<AsyncEvent>,
}

/// An object of the model, broken in the same way.
pub struct Object<T> {
    how: How,
    it: T,
    /// Of a completion queue: handed out before anything else.
    again: VecDeque<Wc>,
    /// How many completions were polled, events taken, keys of windows invalidated.
    count: u32,
}

type BrokenCq = Object<ModelCq>;
type BrokenQp = Object<ModelQp>;
type BrokenChannel = Object<ModelChannel>;

impl Broken {
    fn object<T>(&self, it: T) -> Object<T> {
        Object { how: self.how, it, again: VecDeque::new(), count: 0 }
    }
}

impl<T: Destroy> Destroy for Object<T> {
    fn destroy(self) -> Result<(), Self> {
        let Self { how, it, again, count } = self;
        it.destroy().map_err(|it| Self { how, it, again, count })
    }
}

impl Device for Broken {
    type Pd = ModelPd;
    type Mr = ModelMr;
    type Channel = BrokenChannel;
    type Cq = BrokenCq;
    type Srq = ModelSrq;
    type Ah = ModelAh;
    type Mw = ModelMw;
    type Qp = BrokenQp;
    type Id = BrokenId;

    fn open() -> Self {
        Self { how: HOW.get(), device: Model::open(), again: None }
    }

    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn alloc_pd(&self) -> ModelPd {
        self.device.alloc_pd()
    }

    fn register(&self, pd: &ModelPd, len: usize, access: Access) -> Result<ModelMr, Errno> {
        self.device.register(pd, len, access)
    }

    fn create_channel(&self) -> BrokenChannel {
        self.object(self.device.create_channel())
    }

    fn create_cq_with(&self, init: CqInit<'_, BrokenChannel>) -> Made<BrokenCq> {
        let channel = init.channel.map(|broken| &broken.it);
        let ignores_overrun = init.ignores_overrun && self.how != How::MindsOverruns;
        let init = CqInit { capacity: init.capacity, channel, ignores_overrun };
        Ok(self.object(self.device.create_cq_with(init)?))
    }

    fn create_srq(&self, pd: &ModelPd, init: &SrqInit) -> Result<ModelSrq, Errno> {
        self.device.create_srq(pd, init)
    }

    fn create_ah(&self, pd: &ModelPd, to: Address) -> Result<ModelAh, Errno> {
        self.device.create_ah(pd, to)
    }

    fn ah_from_wc(&self, pd: &ModelPd, wc: &Wc, grh: &[u8; 40]) -> Result<ModelAh, Errno> {
        self.device.ah_from_wc(pd, wc, grh)
    }

    fn alloc_mw(&self, pd: &ModelPd) -> Result<ModelMw, Errno> {
        self.device.alloc_mw(pd)
    }

    fn create_qp(&self, pd: &ModelPd, init: &QpInit<'_, BrokenCq, ModelSrq>) -> Made<BrokenQp> {
        let QpInit { qp_type, send_cq, recv_cq, srq, mut caps, sq_sig_all } = *init;
        caps.max_send_wr += u32::from(self.how == How::GivesASlotEarly);
        let (send_cq, recv_cq) = (&send_cq.it, &recv_cq.it);
        let init = QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all };
        Ok(self.object(self.device.create_qp(pd, &init)?))
    }

    fn create_id(&self) -> Made<BrokenId> {
        BrokenId::new(self.how)
    }

    fn pause(&self) {
        self.device.pause();
    }
}

impl AsyncEvents for Broken {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        if self.how == How::ReportsNothing {
            return Ok(None);
        }
        if let Some(event) = self.again.take() {
            return Ok(Some(event));
        }
        let event = self.device.take_async_event()?;
        self.again = event.filter(|event| {
            self.how == How::ReachesALimitTwice
                && event.event_type == AsyncEventType::SRQ_LIMIT_REACHED
        });
        Ok(event)
    }
}

impl PollCq for BrokenCq {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        if let (Some(entry), Some(wc)) = (out.first_mut(), self.again.pop_front()) {
            *entry = wc;
            return Ok(1);
        }
        let mut count = self.it.poll_into(out)?;
        for wc in &mut out[..count] {
            self.count += 1;
            if self.how == How::HandsOutTwice && self.count % 5 == 4 {
                self.again.push_back(*wc);
            }
            if self.how == How::ForgetsTheRoute && wc.result().is_ok_and(|done| done.src_qp() > 0) {
                *wc = without_route(wc);
            }
            if self.how == How::SwapsTwoStatuses {
                let status = match wc.status() {
                    S::REM_ACCESS_ERR => S::REM_INV_REQ_ERR,
                    S::REM_INV_REQ_ERR => S::REM_ACCESS_ERR,
                    _ => continue,
                };
                *wc = Wc::new(wc.wr_id(), status, wc.qp_num());
            }
        }
        let is_flush = |wc: &&Wc| self.how == How::SkipsAFlush && wc.status() == S::WR_FLUSH_ERR;
        if out[..count].last().as_ref().is_some_and(is_flush) {
            count -= 1;
        }
        Ok(count)
    }
}

impl Arm for BrokenCq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.it.arm(on)
    }

    fn key(&self) -> CqKey {
        self.it.key()
    }
}

impl Cq for BrokenCq {
    fn capacity(&self) -> u32 {
        self.it.capacity()
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Errno> {
        if self.how == How::ForgetsToResize { Ok(capacity) } else { self.it.resize(capacity) }
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), Errno> {
        if self.how == How::HoldsNothingBack { Ok(()) } else { self.it.moderate(count, period) }
    }
}

impl Post for BrokenQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let mut list = list.to_vec();
        if self.how == How::LosesSolicited {
            list.iter_mut().for_each(|wr| wr.flags.remove(SendFlags::SOLICITED));
        }
        if self.how == How::BindsOnce {
            list.iter_mut().for_each(|wr| self.spoil(&mut wr.op));
        }
        let result = match self.how {
            How::KeepsKeys => self.it.keeping_keys(|qp| qp.post_send(&list)),
            How::Rebinds => {
                self.it.unbind_what_is_bound_by(&list);
                self.it.post_send(&list)
            }
            _ => self.it.post_send(&list),
        };
        self.after();
        result
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.it.post_recv(list)
    }

    fn quiesce(&mut self) -> bool {
        self.it.quiesce()
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.it.check_send(wr)
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        self.it.check_recv(wr)
    }
}

/// The completion of a datagram as if it had come over a connection.
fn without_route(wc: &Wc) -> Wc {
    const GRH: u32 = 40;
    let done = wc.result().expect("a datagram that came");
    Wc::new(wc.wr_id(), S::SUCCESS, wc.qp_num())
        .with_opcode(WcOpcode::RECV)
        .with_byte_len(done.byte_len() - GRH)
        .with_src_qp(done.src_qp())
        .with_path(done.pkey_index(), done.slid(), done.sl(), done.dlid_path_bits())
        .with_flags(done.flags() & WcFlags::GRH)
}

impl BrokenQp {
    /// After anything that may have made it fail.
    fn after(&self) {
        if self.how == How::FlushesSharedReceives {
            self.it.flush_shared_receives();
        }
    }

    /// Binds nothing, once a key was taken away.
    fn spoil(&mut self, op: &mut SendOp) {
        match op {
            SendOp::LocalInvalidate { .. } => self.count += 1,
            SendOp::BindWindow(bind) if self.count > 0 => bind.length = 0,
            _ => {}
        }
    }
}

impl Qp<ModelAh> for BrokenQp {
    fn post_to(&mut self, to: &Destination<'_, ModelAh>, list: &[SendWr<'_>]) -> Posted {
        let Destination { ah, qp_num, qkey, .. } = *to;
        let qkey = if self.how == How::IgnoresQueueKeys { 0 } else { qkey };
        self.it.post_to(&Destination::new(ah, qp_num, qkey), list)
    }

    fn number(&self) -> u32 {
        self.it.number()
    }

    fn caps(&self) -> QpCaps {
        let QpCaps { max_send_wr, .. } = self.it.caps();
        let max_send_wr = max_send_wr - u32::from(self.how == How::GivesASlotEarly);
        self.it.caps().max_send_wr(max_send_wr)
    }

    fn state(&self) -> QpState {
        self.it.state()
    }

    fn modify(&mut self, attr: &QpAttr) -> Result<(), Errno> {
        let mut attr = *attr;
        if self.how == How::IgnoresQueueKeys {
            attr.qkey = attr.qkey.map(|_| 0);
        }
        let result = self.it.modify(&attr);
        self.after();
        result
    }
}

impl Events for BrokenChannel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let event = self.it.take_event()?;
        self.count += u32::from(event.is_some());
        Ok(event.filter(|_| self.how != How::LosesAnEvent || self.count % 3 != 2))
    }

    fn serves(&self, key: CqKey) -> bool {
        self.how == How::ServesEveryQueue || self.it.serves(key)
    }
}

impl Block for BrokenChannel {
    type Instant = Instant;

    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        if self.how == How::WakesForNothing {
            return Ok(Woken::Event);
        }
        self.it.block(deadline)
    }
}
