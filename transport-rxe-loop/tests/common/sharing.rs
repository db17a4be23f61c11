//! Queue pairs that share their receives.

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::setup::SrqInit;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    Context, Cq, OwnedRegion, ProtectionDomain, QpAttr, QpInit, QpState, QueuePair,
    SharedReceiveQueue,
};

use super::{ALL, End, S, bring_to, open, settle, take};

pub const INIT: SrqInit = SrqInit { max_wr: 8, max_sge: 2 };

/// Two queue pairs that share their receives, and a sender to each.
pub struct Scene {
    pub context: Context,
    pub srq: SharedReceiveQueue,
    pub qps: [QueuePair; 2],
    pub cq: Cq,
    pub senders: [End; 2],
    pub region: OwnedRegion,
    pub pd: ProtectionDomain,
}

impl Scene {
    pub fn new() -> Self {
        let context = open();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
        let srq = pd.create_srq(&INIT).unwrap();
        let region = pd.allocate(8192, ALL).unwrap();
        let init = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
        let mut qps = [(); 2].map(|()| pd.create_qp(&init).unwrap());
        let mut senders = [End::new(), End::new()];
        for (qp, sender) in qps.iter_mut().zip(&mut senders) {
            qp.connect_to(sender.qp.number()).unwrap();
            sender.qp.connect_to(qp.number()).unwrap();
        }
        Self { context, srq, qps, cq, senders, region, pd }
    }

    /// Posts receives of 64 bytes, with these numbers.
    pub fn post(&mut self, wr_ids: impl IntoIterator<Item = u64>) {
        for wr_id in wr_ids {
            let sge = [self.region.sge(64 * (wr_id as usize % 64), 64).unwrap()];
            self.srq.post_recv(&[RecvWr::new(wr_id, &sge)]).unwrap();
        }
    }

    /// Sends a message to one of the queue pairs.
    pub fn send(&mut self, to: usize) {
        self.senders[to].post(SendWr::send_inline(100, b"message").unsignaled());
    }

    /// What came, and to which of the queue pairs.
    #[track_caller]
    pub fn expect(&mut self, wanted: &[(u64, usize)]) {
        let got = settle(&mut self.cq, wanted.len());
        let which = |wc: &Wc| self.qps.iter().position(|qp| qp.number() == wc.qp_num()).unwrap();
        let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id(), which(wc))).collect();
        assert_eq!(seen, wanted);
        assert!(got.iter().all(|wc| wc.status() == S::SUCCESS), "{got:?}");
        assert_eq!(take(&mut self.cq), []);
    }

    pub fn is_last(&self, which: usize) -> AsyncEvent {
        let element = Element::Qp(self.qps[which].number());
        AsyncEvent { event_type: AsyncEventType::QP_LAST_WQE_REACHED, element }
    }

    pub fn limit_reached(&self) -> AsyncEvent {
        let element = Element::Srq(self.srq.number());
        AsyncEvent { event_type: AsyncEventType::SRQ_LIMIT_REACHED, element }
    }
}

/// Connects a queue pair anew.
pub fn connect_anew(qp: &mut QueuePair, peer: u32) {
    qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
    bring_to(qp, peer, QpState::RTS);
}
