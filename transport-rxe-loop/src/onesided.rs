//! What a request does to memory of the peer by itself: WRITE, READ and the atomics. The peer takes no
//! part, and learns only of what it had to refuse.
//!
//! # What is wrong, in the order of judging (Q7)
//!
//! | what is wrong | initiator | target |
//! |---|---|---|
//! | WRITE: a key or a range of its own | LOC_PROT, ERR | |
//! | atomic: its pieces are not eight bytes | LOC_LEN, ERR | |
//! | the target's queue pair lacks the right, or takes no READ and no atomic | REM_INV_REQ, ERR | ERR |
//! | atomic: the address is no multiple of eight, whatever the key | REM_INV_REQ, ERR | ERR |
//! | the remote key, its range, or its region's rights | REM_ACCESS, ERR | ERR |
//! | READ, atomic: a key, a range, or a region of its own without LOCAL_WRITE | LOC_PROT, ERR | |
//!
//! In none of these is any memory changed. That an atomic of the wrong size fails before the peer hears of
//! it is a decision: some cards refuse it so, others carry it out with eight bytes.

use cq_core::setup::Access;
use cq_core::wc::WcStatus;
use cq_core::wr::{RemoteAddr, SendOp, Sge};

use crate::execute::{Halt, Initiator};
use crate::memory::{self, Pieces, Target};
use crate::queue::SendRequest;
use crate::reach::stripes::{self, Step};
use crate::reach::{self, Order, Trouble};
use crate::sync::{self, AtomicU64};
use crate::window::Window;

/// Bytes that an atomic is about.
const ATOMIC: u64 = 8;

impl Initiator<'_> {
    /// A WRITE of `from`.
    pub fn write(
        &mut self,
        window: &Window<'_>,
        from: &Pieces<'_>,
        remote: RemoteAddr,
    ) -> Result<(), Halt> {
        let (rights, domain) = self.peer.rights().map_err(Self::halt)?;
        if !rights.contains(Access::REMOTE_WRITE) {
            return Err(self.refused(WcStatus::REM_INV_REQ_ERR));
        }
        let len = from.len() as u64;
        let target = [place(remote, len)];
        let Some(to) = window.target(domain, target, Access::REMOTE_WRITE, len) else {
            return Err(self.refused(WcStatus::REM_ACCESS_ERR));
        };
        let moved = reach::copy(self.fabric, from, &to, Order::LastWordLast);
        moved.map_err(|trouble| self.troubled(trouble))
    }

    /// A request whose data comes back: READ, or an atomic. Requests are carried out one after the other,
    /// so every earlier one is done: that is all there is to a FENCE.
    pub fn fetch(&mut self, window: &Window<'_>, request: &SendRequest) -> Result<(), Halt> {
        match request.op {
            SendOp::Read { remote } => self.read(window, request, remote),
            SendOp::CompareSwap { remote, compare, swap } => {
                self.atomic(window, request, remote, Step::CompareSwap { compare, swap })
            }
            SendOp::FetchAdd { remote, add } => {
                self.atomic(window, request, remote, Step::FetchAdd { add })
            }
            _ => Err(Halt::Failed(WcStatus::LOC_QP_OP_ERR)),
        }
    }

    fn read(
        &mut self,
        window: &Window<'_>,
        request: &SendRequest,
        remote: RemoteAddr,
    ) -> Result<(), Halt> {
        let domain = self.ask(Access::REMOTE_READ)?;
        let source = [place(remote, request.payload.len())];
        let Some(from) = window.source(domain, source, Access::REMOTE_READ) else {
            return Err(self.refused(WcStatus::REM_ACCESS_ERR));
        };
        let moved = reach::copy(self.fabric, &from, &self.answer(window, request)?, Order::Any);
        moved.map_err(|trouble| self.troubled(trouble))
    }

    fn atomic(
        &mut self,
        window: &Window<'_>,
        request: &SendRequest,
        remote: RemoteAddr,
        step: Step,
    ) -> Result<(), Halt> {
        if request.payload.len() != ATOMIC {
            return Err(Halt::Failed(WcStatus::LOC_LEN_ERR));
        }
        let domain = self.ask(Access::REMOTE_ATOMIC)?;
        if !remote.addr.is_multiple_of(ATOMIC) {
            return Err(self.refused(WcStatus::REM_INV_REQ_ERR));
        }
        let Some(word) = window.word(domain, remote) else {
            return Err(self.refused(WcStatus::REM_ACCESS_ERR));
        };
        let to = self.answer(window, request)?;
        let held = stripes::apply(self.fabric, &word, step);
        let held = [AtomicU64::new(held.map_err(|trouble| self.troubled(trouble))?)];
        memory::copy(&Pieces::of_words(&held, ATOMIC as usize), &to);
        Ok(())
    }

    /// Whether the peer's queue pair lets its own do this; in which protection domain its memory lies.
    fn ask(&mut self, right: Access) -> Result<u32, Halt> {
        let answers = self.peer.answers();
        let (rights, domain) = self.peer.rights().map_err(Self::halt)?;
        if answers && rights.contains(right) {
            Ok(domain)
        } else {
            Err(self.refused(WcStatus::REM_INV_REQ_ERR))
        }
    }

    /// Where the peer's answer goes.
    fn answer<'w>(
        &self,
        window: &'w Window<'_>,
        request: &SendRequest,
    ) -> Result<Target<'w>, Halt> {
        let domain = sync::load_u32(&self.slot.pd);
        let pieces = request.payload.pieces();
        window.target(domain, pieces, Access::LOCAL_WRITE, u64::MAX).ok_or(Halt::LOCAL_PROTECTION)
    }

    /// What it means for a request that bytes of the peer's can't be moved.
    #[cold]
    fn troubled(&self, trouble: Trouble) -> Halt {
        match trouble {
            Trouble::Fault => self.refused(WcStatus::REM_ACCESS_ERR),
            Trouble::NoAnswer => self.unanswered(),
        }
    }

    /// The target refuses the request, and fails.
    #[cold]
    fn refused(&self, status: WcStatus) -> Halt {
        self.peer.refuse(status);
        Halt::Failed(status)
    }
}

/// Memory of the peer as a piece.
const fn place(remote: RemoteAddr, len: u64) -> Sge {
    Sge { addr: remote.addr, length: len as u32, lkey: remote.rkey }
}
