//! One end of a connection that keeps count: every request completes once, in order (C8, C10), and what
//! comes is what the other end sent. Messages have no bytes; each bears its number as immediate data.

use std::collections::VecDeque;
use std::error::Error;

use cq_core::setup::{Access, QpCaps};
use cq_core::transport::{Poll, Post};
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{RecvWr, SendWr};

use crate::attr::QpAttr;
use crate::chance::Chance;
use crate::cq::Cq;
use crate::pd::ProtectionDomain;
use crate::qp::{QpInit, QueuePair};
use crate::state::QpState;

const DEPTH: usize = 8;
const CAPS: QpCaps = QpCaps {
    max_send_wr: DEPTH as u32,
    max_recv_wr: DEPTH as u32,
    max_send_sge: 0,
    max_recv_sge: 0,
    max_inline: 0,
};

/// Completions that one end has outstanding at most.
pub const OUTSTANDING: u32 = 2 * DEPTH as u32;

/// What comes of using a device: where somebody is suspended, any part of it may be given up.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// A queue pair and what it has posted.
pub struct End {
    pub qp: QueuePair,
    /// Tells what was posted before the last connecting.
    life: u64,
    next: u64,
    /// Posted and not completed, and whether each is signaled.
    sends: VecDeque<(u64, bool)>,
    recvs: VecDeque<u64>,
    sent: u32,
    received: u32,
    /// Successful sends that were completed.
    pub arrived: u32,
    /// How the first send that failed did.
    pub failure: Option<WcStatus>,
    flushes: bool,
}

const RECV: u64 = 1;
const LIFE_AT: u32 = 32;

impl End {
    pub fn new(pd: &ProtectionDomain, cq: &Cq) -> Outcome<Self> {
        let qp = pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(cq) })?;
        Ok(Self {
            qp,
            life: 0,
            next: 0,
            sends: VecDeque::new(),
            recvs: VecDeque::new(),
            sent: 0,
            received: 0,
            arrived: 0,
            failure: None,
            flushes: false,
        })
    }

    pub fn number(&self) -> u32 {
        self.qp.number()
    }

    /// Begins anew, with this peer; what was outstanding is dropped. A dead peer is given up, any other
    /// waited for without end.
    pub fn connect(&mut self, peer: u32) -> Outcome<()> {
        if self.qp.state() != QpState::Reset {
            self.qp.modify(&QpAttr::to(QpState::Reset))?;
        }
        let rts = QpAttr::rts().timeout(0).rnr_retry(7);
        for attr in [QpAttr::init(Access::REMOTE), QpAttr::rtr(peer), rts] {
            self.qp.modify(&attr)?;
        }
        (self.life, self.sent, self.received, self.arrived) = (self.life + 1, 0, 0, 0);
        (self.failure, self.flushes) = (None, false);
        self.sends.clear();
        self.recvs.clear();
        Ok(())
    }

    pub fn is_connected(&self) -> bool {
        self.life > 0
    }

    fn wr_id(&mut self, kind: u64) -> u64 {
        self.next += 1;
        self.life << LIFE_AT | (self.next << 1 & ((1 << LIFE_AT) - 1)) | kind
    }

    /// Posts up to so many receives, while there is room.
    pub fn post_recvs(&mut self, most: usize) -> Outcome<()> {
        for _ in 0..most.min(DEPTH - self.recvs.len()) {
            let wr_id = self.wr_id(RECV);
            self.qp.post_recv(&[RecvWr::new(wr_id, &[])])?;
            self.recvs.push_back(wr_id);
        }
        Ok(())
    }

    /// Posts a send, if there is room. The last that there is room for is signaled.
    pub fn post_send(&mut self, signaled: bool, solicited: bool) -> Outcome<()> {
        if self.sends.len() == DEPTH {
            return Ok(());
        }
        let signaled = signaled || self.sends.len() == DEPTH - 1;
        let wr_id = self.wr_id(0);
        let mut wr = SendWr::send_inline(wr_id, &[]).with_imm(self.sent.to_be_bytes());
        if !signaled {
            wr = wr.unsignaled();
        }
        if solicited {
            wr = wr.solicited();
        }
        self.qp.post_send(&[wr])?;
        self.sends.push_back((wr_id, signaled));
        self.sent += 1;
        Ok(())
    }

    /// Messages that came.
    pub const fn received(&self) -> u32 {
        self.received
    }

    /// Posts some of everything.
    pub fn work(&mut self, chance: &mut Chance) -> Outcome<()> {
        if !self.is_connected() || self.failure.is_some() {
            return Ok(());
        }
        self.post_recvs(chance.below(DEPTH + 1))?;
        for _ in 0..chance.below(DEPTH + 1) {
            self.post_send(chance.one_in(2), chance.one_in(4))?;
        }
        Ok(())
    }

    /// Whether everything that was posted has completed.
    pub fn is_done(&self) -> bool {
        self.sends.is_empty() && self.recvs.is_empty()
    }

    /// A completion of this queue pair came.
    #[track_caller]
    pub fn completed(&mut self, wc: &Wc) {
        if wc.wr_id() >> LIFE_AT != self.life {
            return;
        }
        if wc.wr_id() & RECV != 0 {
            self.recv_completed(wc);
        } else {
            self.send_completed(wc);
        }
    }

    fn recv_completed(&mut self, wc: &Wc) {
        assert_eq!(self.recvs.pop_front(), Some(wc.wr_id()), "{self:?} {wc:?}");
        if let Ok(received) = wc.result() {
            assert!(!self.flushes, "a success after a flush: {self:?} {wc:?}");
            assert_eq!(received.imm(), Some(self.received.to_be_bytes()), "{self:?} {wc:?}");
            self.received += 1;
        } else {
            assert_eq!(wc.status(), WcStatus::WR_FLUSH_ERR, "{self:?}");
            self.flushes = true;
        }
    }

    fn send_completed(&mut self, wc: &Wc) {
        // It speaks for the unsignaled ones before it, if it is a success (C9).
        loop {
            let (wr_id, signaled) =
                self.sends.pop_front().expect("it was posted, and not completed");
            if wr_id == wc.wr_id() {
                break;
            }
            assert!(!signaled, "out of order: {wr_id:#x} {self:?} {wc:?}");
            self.arrived += 1;
        }
        let status = wc.status();
        match self.failure {
            None if status == WcStatus::SUCCESS => self.arrived += 1,
            None => self.failure = Some(status),
            Some(_) => assert_eq!(status, WcStatus::WR_FLUSH_ERR, "{self:?} {wc:?}"),
        }
    }
}

impl std::fmt::Debug for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("End")
            .field("number", &self.number())
            .field("state", &self.qp.state())
            .field("sends", &self.sends)
            .field("recvs", &self.recvs)
            .field("received", &self.received)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

/// Hands everything that a completion queue has to the ends that it is of.
pub fn poll(cq: &mut Cq, ends: &mut [End]) -> Outcome<usize> {
    let mut room = [Wc::default(); 32];
    let mut all = 0;
    loop {
        let count = cq.poll(&mut room)?;
        all += count;
        for wc in &room[..count] {
            if let Some(end) = ends.iter_mut().find(|end| end.number() == wc.qp_num()) {
                end.completed(wc);
            }
        }
        if count < room.len() {
            return Ok(all);
        }
    }
}
