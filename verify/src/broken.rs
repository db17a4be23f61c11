//! The model with one thing broken, which whatever compares or judges has to notice.

use std::collections::VecDeque;

use cq_core::async_event::{AsyncEvent, AsyncEventType};
use cq_core::transport::{
    Arm, ArmError, Armed, AsyncEvents, CqKey, EventError, Events, Notify, Poll, PollError, Post,
    PostError,
};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus as S};
use cq_core::wr::{RecvWr, SendFlags, SendOp, SendWr};

use crate::device::{
    Access, Address, Attr, Cq, Destination, Destroy, Device, Limits, Qp, QpCaps, QpInit, Refusal,
    SrqInit, State,
};
use crate::model::{
    Model, ModelAh, ModelChannel, ModelCq, ModelMr, ModelMw, ModelPd, ModelQp, ModelSrq,
};

/// A way to be broken: not at all.
pub const NOT: u8 = 0;
pub const SWAPS_TWO_STATUSES: u8 = 1;
pub const SKIPS_A_FLUSH: u8 = 2;
pub const LOSES_SOLICITED: u8 = 3;
pub const GIVES_A_SLOT_EARLY: u8 = 4;
pub const HANDS_OUT_TWICE: u8 = 5;
pub const LOSES_AN_EVENT: u8 = 6;
pub const REPORTS_NOTHING: u8 = 7;
pub const FORGETS_TO_RESIZE: u8 = 8;
/// What a shared receive queue holds goes with the first queue pair of it that fails.
pub const FLUSHES_SHARED_RECEIVES: u8 = 9;
/// `byte_len` of a datagram is that of what was sent.
pub const FORGETS_THE_ROUTE: u8 = 10;
pub const IGNORES_QUEUE_KEYS: u8 = 11;
pub const REACHES_A_LIMIT_TWICE: u8 = 12;
/// A key that was invalidated still opens the window.
pub const KEEPS_KEYS: u8 = 13;
/// Moderation changes nothing.
pub const HOLDS_NOTHING_BACK: u8 = 14;
/// A completion queue that was to ignore overruns does not.
pub const MINDS_OVERRUNS: u8 = 15;
/// A window that is bound can be bound again.
pub const REBINDS: u8 = 16;
/// A window can't be bound again by the queue pair that took its key away.
pub const BINDS_ONCE: u8 = 17;

/// The model, broken in one way.
pub struct Broken<const HOW: u8> {
    device: Model,
    /// Reported before anything else.
    again: Option<AsyncEvent>,
}

pub struct BrokenCq<const HOW: u8> {
    cq: ModelCq,
    /// Handed out before anything else.
    again: VecDeque<Wc>,
    polled: u32,
}

pub struct BrokenQp<const HOW: u8> {
    qp: ModelQp,
    /// Whether it was to take a key away.
    invalidated: bool,
}

pub struct BrokenChannel<const HOW: u8> {
    channel: ModelChannel,
    taken: u32,
}

impl<const HOW: u8> Device for Broken<HOW> {
    type Pd = ModelPd;
    type Mr = ModelMr;
    type Channel = BrokenChannel<HOW>;
    type Cq = BrokenCq<HOW>;
    type Srq = ModelSrq;
    type Ah = ModelAh;
    type Mw = ModelMw;
    type Qp = BrokenQp<HOW>;

    fn open() -> Self {
        Self { device: Model::open(), again: None }
    }

    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn alloc_pd(&self) -> ModelPd {
        self.device.alloc_pd()
    }

    fn register(&self, pd: &ModelPd, len: usize, access: Access) -> Result<ModelMr, Refusal> {
        self.device.register(pd, len, access)
    }

    fn create_channel(&self) -> BrokenChannel<HOW> {
        BrokenChannel { channel: self.device.create_channel(), taken: 0 }
    }

    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&BrokenChannel<HOW>>,
    ) -> Result<BrokenCq<HOW>, Refusal> {
        let cq = self.device.create_cq(capacity, channel.map(|broken| &broken.channel))?;
        Ok(BrokenCq { cq, again: VecDeque::new(), polled: 0 })
    }

    fn create_cq_ignoring_overrun(
        &self,
        capacity: u32,
        channel: Option<&BrokenChannel<HOW>>,
    ) -> Result<BrokenCq<HOW>, Refusal> {
        if HOW == MINDS_OVERRUNS {
            return self.create_cq(capacity, channel);
        }
        let channel = channel.map(|broken| &broken.channel);
        let cq = self.device.create_cq_ignoring_overrun(capacity, channel)?;
        Ok(BrokenCq { cq, again: VecDeque::new(), polled: 0 })
    }

    fn create_srq(&self, pd: &ModelPd, init: &SrqInit) -> Result<ModelSrq, Refusal> {
        self.device.create_srq(pd, init)
    }

    fn create_ah(&self, pd: &ModelPd, to: Address) -> Result<ModelAh, Refusal> {
        self.device.create_ah(pd, to)
    }

    fn ah_from_wc(&self, pd: &ModelPd, wc: &Wc, grh: &[u8; 40]) -> Result<ModelAh, Refusal> {
        self.device.ah_from_wc(pd, wc, grh)
    }

    fn alloc_mw(&self, pd: &ModelPd) -> Result<ModelMw, Refusal> {
        self.device.alloc_mw(pd)
    }

    fn create_qp(
        &self,
        pd: &ModelPd,
        init: &QpInit<'_, BrokenCq<HOW>, ModelSrq>,
    ) -> Result<BrokenQp<HOW>, Refusal> {
        let QpInit { qp_type, send_cq, recv_cq, srq, mut caps, sq_sig_all } = *init;
        caps.max_send_wr += u32::from(HOW == GIVES_A_SLOT_EARLY);
        let (send_cq, recv_cq) = (&send_cq.cq, &recv_cq.cq);
        let init = QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all };
        self.device.create_qp(pd, &init).map(|qp| BrokenQp { qp, invalidated: false })
    }

    fn pause(&self) {
        self.device.pause();
    }
}

impl<const HOW: u8> AsyncEvents for Broken<HOW> {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        if HOW == REPORTS_NOTHING {
            return Ok(None);
        }
        if let Some(event) = self.again.take() {
            return Ok(Some(event));
        }
        let event = self.device.next_async()?;
        self.again = event.filter(|event| {
            HOW == REACHES_A_LIMIT_TWICE && event.event_type == AsyncEventType::SRQ_LIMIT_REACHED
        });
        Ok(event)
    }
}

impl<const HOW: u8> Poll for BrokenCq<HOW> {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        if let (Some(room), Some(wc)) = (out.first_mut(), self.again.pop_front()) {
            *room = wc;
            return Ok(1);
        }
        let mut count = self.cq.poll(out)?;
        for wc in &mut out[..count] {
            self.polled += 1;
            if HOW == HANDS_OUT_TWICE && self.polled % 5 == 4 {
                self.again.push_back(*wc);
            }
            if HOW == FORGETS_THE_ROUTE && wc.result().is_ok_and(|done| done.src_qp() > 0) {
                *wc = without_route(wc);
            }
            if HOW == SWAPS_TWO_STATUSES {
                let status = match wc.status() {
                    S::REM_ACCESS_ERR => S::REM_INV_REQ_ERR,
                    S::REM_INV_REQ_ERR => S::REM_ACCESS_ERR,
                    _ => continue,
                };
                *wc = Wc::new(wc.wr_id(), status, wc.qp_num());
            }
        }
        let is_flush = |wc: &&Wc| HOW == SKIPS_A_FLUSH && wc.status() == S::WR_FLUSH_ERR;
        if out[..count].last().as_ref().is_some_and(is_flush) {
            count -= 1;
        }
        Ok(count)
    }
}

impl<const HOW: u8> Arm for BrokenCq<HOW> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.cq.arm(on)
    }

    fn key(&self) -> CqKey {
        self.cq.key()
    }
}

impl<const HOW: u8> Destroy for BrokenCq<HOW> {
    fn destroy(self) -> Result<(), Self> {
        let Self { cq, again, polled } = self;
        cq.destroy().map_err(|cq| Self { cq, again, polled })
    }
}

impl<const HOW: u8> Cq for BrokenCq<HOW> {
    fn capacity(&self) -> u32 {
        self.cq.capacity()
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        if HOW == FORGETS_TO_RESIZE { Ok(capacity) } else { self.cq.resize(capacity) }
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), Refusal> {
        if HOW == HOLDS_NOTHING_BACK { Ok(()) } else { self.cq.moderate(count, period) }
    }
}

impl<const HOW: u8> Post for BrokenQp<HOW> {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let mut list = list.to_vec();
        if HOW == LOSES_SOLICITED {
            list.iter_mut().for_each(|wr| wr.flags.remove(SendFlags::SOLICITED));
        }
        if HOW == BINDS_ONCE {
            list.iter_mut().for_each(|wr| self.spoil(&mut wr.op));
        }
        let result = match HOW {
            KEEPS_KEYS => self.qp.keeping_keys(|qp| qp.post_send(&list)),
            REBINDS => {
                self.qp.unbind_what_is_bound_by(&list);
                self.qp.post_send(&list)
            }
            _ => self.qp.post_send(&list),
        };
        self.after();
        result
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.qp.post_recv(list)
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

impl<const HOW: u8> BrokenQp<HOW> {
    /// After anything that may have made it fail.
    fn after(&self) {
        if HOW == FLUSHES_SHARED_RECEIVES {
            self.qp.flush_shared_receives();
        }
    }

    /// Binds nothing, once a key was taken away.
    fn spoil(&mut self, op: &mut SendOp) {
        match op {
            SendOp::LocalInvalidate { .. } => self.invalidated = true,
            SendOp::BindWindow(bind) if self.invalidated => bind.length = 0,
            _ => {}
        }
    }
}

impl<const HOW: u8> Qp<ModelAh> for BrokenQp<HOW> {
    fn post_to(
        &mut self,
        to: &Destination<'_, ModelAh>,
        list: &[SendWr<'_>],
    ) -> Result<(), PostError> {
        let Destination { ah, qp_num, qkey } = *to;
        let qkey = if HOW == IGNORES_QUEUE_KEYS { 0 } else { qkey };
        self.qp.post_to(&Destination { ah, qp_num, qkey }, list)
    }

    fn number(&self) -> u32 {
        self.qp.number()
    }

    fn caps(&self) -> QpCaps {
        let QpCaps { max_send_wr, .. } = self.qp.caps();
        let max_send_wr = max_send_wr - u32::from(HOW == GIVES_A_SLOT_EARLY);
        QpCaps { max_send_wr, ..self.qp.caps() }
    }

    fn state(&self) -> State {
        self.qp.state()
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        let mut attr = *attr;
        if HOW == IGNORES_QUEUE_KEYS {
            attr.qkey = attr.qkey.map(|_| 0);
        }
        let result = self.qp.modify(&attr);
        self.after();
        result
    }
}

impl<const HOW: u8> Events for BrokenChannel<HOW> {
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        let event = self.channel.next()?;
        self.taken += u32::from(event.is_some());
        Ok(event.filter(|_| HOW != LOSES_AN_EVENT || self.taken % 3 != 2))
    }
}

impl<const HOW: u8> cq_core::transport::Block for BrokenChannel<HOW> {
    fn block(&mut self, left: &mut Option<std::time::Duration>) -> Result<bool, EventError> {
        self.channel.block(left)
    }
}

impl<const HOW: u8> Destroy for BrokenChannel<HOW> {
    fn destroy(self) -> Result<(), Self> {
        let Self { channel, taken } = self;
        channel.destroy().map_err(|channel| Self { channel, taken })
    }
}
