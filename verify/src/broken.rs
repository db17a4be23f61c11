//! The model with one thing broken, which whatever compares or judges has to notice.

use std::collections::VecDeque;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{
    Arm, ArmError, Armed, AsyncEvents, CqKey, EventError, Events, Notify, Poll, PollError, Post,
    PostError,
};
use cq_core::wc::{Wc, WcStatus as S};
use cq_core::wr::{RecvWr, SendFlags, SendWr};

use crate::device::{
    Access, Attr, Cq, Destroy, Device, Limits, Qp, QpCaps, QpInit, Refusal, State,
};
use crate::model::{Model, ModelChannel, ModelCq, ModelMr, ModelPd, ModelQp};

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

/// The model, broken in one way.
pub struct Broken<const HOW: u8>(Model);

pub struct BrokenCq<const HOW: u8> {
    cq: ModelCq,
    /// Handed out before anything else.
    again: VecDeque<Wc>,
    polled: u32,
}

pub struct BrokenQp<const HOW: u8>(ModelQp);

pub struct BrokenChannel<const HOW: u8> {
    channel: ModelChannel,
    taken: u32,
}

impl<const HOW: u8> Device for Broken<HOW> {
    type Pd = ModelPd;
    type Mr = ModelMr;
    type Channel = BrokenChannel<HOW>;
    type Cq = BrokenCq<HOW>;
    type Qp = BrokenQp<HOW>;

    fn open() -> Self {
        Self(Model::open())
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn alloc_pd(&self) -> ModelPd {
        self.0.alloc_pd()
    }

    fn register(&self, pd: &ModelPd, len: usize, access: Access) -> Result<ModelMr, Refusal> {
        self.0.register(pd, len, access)
    }

    fn create_channel(&self) -> BrokenChannel<HOW> {
        BrokenChannel { channel: self.0.create_channel(), taken: 0 }
    }

    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&BrokenChannel<HOW>>,
    ) -> Result<BrokenCq<HOW>, Refusal> {
        let cq = self.0.create_cq(capacity, channel.map(|broken| &broken.channel))?;
        Ok(BrokenCq { cq, again: VecDeque::new(), polled: 0 })
    }

    fn create_qp(
        &self,
        pd: &ModelPd,
        init: &QpInit<'_, BrokenCq<HOW>>,
    ) -> Result<BrokenQp<HOW>, Refusal> {
        let QpInit { send_cq, recv_cq, mut caps, sq_sig_all } = *init;
        caps.max_send_wr += u32::from(HOW == GIVES_A_SLOT_EARLY);
        let (send_cq, recv_cq) = (&send_cq.cq, &recv_cq.cq);
        self.0.create_qp(pd, &QpInit { send_cq, recv_cq, caps, sq_sig_all }).map(BrokenQp)
    }

    fn pause(&self) {
        self.0.pause();
    }
}

impl<const HOW: u8> AsyncEvents for Broken<HOW> {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        if HOW == REPORTS_NOTHING { Ok(None) } else { self.0.next_async() }
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
}

impl<const HOW: u8> Post for BrokenQp<HOW> {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let mut list = list.to_vec();
        if HOW == LOSES_SOLICITED {
            list.iter_mut().for_each(|wr| wr.flags.remove(SendFlags::SOLICITED));
        }
        self.0.post_send(&list)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.0.post_recv(list)
    }
}

impl<const HOW: u8> Qp for BrokenQp<HOW> {
    fn number(&self) -> u32 {
        self.0.number()
    }

    fn caps(&self) -> QpCaps {
        let QpCaps { max_send_wr, .. } = self.0.caps();
        let max_send_wr = max_send_wr - u32::from(HOW == GIVES_A_SLOT_EARLY);
        QpCaps { max_send_wr, ..self.0.caps() }
    }

    fn state(&self) -> State {
        self.0.state()
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        self.0.modify(attr)
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
