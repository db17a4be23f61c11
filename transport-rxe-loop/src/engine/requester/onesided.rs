//! One-sided operations: WRITE, READ, FLUSH, the atomics and the atomic write. The responder takes no part in them, and
//! is concerned only by those that it refuses.
//!
//! # Errors, in the order in which they are checked (Q7)
//! On RC. On UC the requester does not learn of what concerns the responder: see `unreliable`.
//!
//! | error | requester | responder |
//! |---|---|---|
//! | atomic, atomic write: the SGEs do not have eight bytes | LOC_LEN, ERR | |
//! | WRITE, atomic write: a local key or range | LOC_PROT, ERR | |
//! | the responder's queue pair lacks the right, or accepts no READs and atomics | REM_INV_REQ, ERR | ERR |
//! | atomic, atomic write: the address is no multiple of eight, whatever the remote key | REM_INV_REQ, ERR | ERR |
//! | the remote key, its range, or its region's rights | REM_ACCESS, ERR | ERR |
//! | READ, atomic: a local key or range, or a region without LOCAL_WRITE | LOC_PROT, ERR | |
//!
//! None of these changes memory, except the last: an atomic's local SGEs are checked when its result is there, and the
//! responder's word has changed by then. Memory that is registered and no longer mapped counts as a wrong range; bytes
//! before it may have been moved. That an atomic of the wrong size fails before the responder is concerned is a
//! decision: some adapters refuse it like this, others carry it out with eight bytes.
//!
//! # Unanswered atomics
//! Where the responder's process carries out an atomic itself and does not answer, it may have carried it out. Each
//! retry waits for the answer to that one, so it is carried out at most once. Whether one that fails with RETRY_EXC, or
//! is flushed, was carried out is unknown.
//!
//! # FLUSH
//! Bytes are visible to all once they have been moved, and requests are carried out one after the other, so what a
//! FLUSH asks for is already done. It checks its rights and fences. Memory is as persistent as what it lies in: nothing
//! is written back.

use cq_core::wc::WcStatus;
use cq_verbs::setup::Access;
use cq_verbs::wr::{Placement, RemoteAddr, Selectivity, Sge};

use super::{Halt, Requester};
use crate::engine::pending_atomic;
use crate::engine::ring::SendRequest;
use crate::memory::atomic_op::AtomicOp;
use crate::memory::copier::client::{self, NotDone, PendingAtomic};
use crate::memory::copy_guard::CopyGuard;
use crate::memory::key::Key;
use crate::memory::region::KeyUser;
use crate::memory::sge::{self, Spans, Target};
use crate::memory::transfer::{Order, Trouble};
use crate::memory::{atomics, copy};
use crate::policy::imitation::StartingOp;
use crate::sync::{self, AtomicU64};

/// Bytes of an atomic's operand.
const ATOMIC: u64 = 8;

impl Requester<'_> {
    /// A WRITE of `from`.
    #[inline]
    pub fn write(
        &mut self,
        guard: &CopyGuard<'_>,
        from: &Spans<'_>,
        remote: RemoteAddr,
    ) -> Result<(), Halt> {
        let domain = self.check_right(Access::REMOTE_WRITE)?;
        let len = from.len() as u64;
        let (mut to, target) = (Target::new(), remote_sge(remote, len));
        if guard.target(&mut to, domain, target, Access::REMOTE_WRITE, len).is_none() {
            return Err(self.refused(WcStatus::REM_ACCESS_ERR));
        }
        let order = self.engine.policy.strict.write_order();
        let moved = copy::copy(self.engine.memory, from, &to, order);
        moved.map_err(|trouble| self.troubled(trouble))
    }

    /// A READ. A FENCE needs nothing: requests are carried out one after the other, so all earlier ones are done.
    #[inline]
    pub fn read(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        remote: RemoteAddr,
    ) -> Result<(), Halt> {
        let (mut from, mut to) = (Spans::new(), Target::new());
        self.read_source(guard, request, remote, &mut from)?;
        self.answer(guard, request, &mut to)?;
        self.move_read(&from, &to)
    }

    /// Resolves the responder's memory that a READ reads.
    #[inline]
    pub fn read_source<'w>(
        &mut self,
        guard: &'w CopyGuard<'_>,
        request: &SendRequest,
        remote: RemoteAddr,
        from: &mut Spans<'w>,
    ) -> Result<(), Halt> {
        let domain = self.check_read_atomic_right(Access::REMOTE_READ)?;
        let source = remote_sge(remote, request.payload.len());
        let granted = guard.source(from, domain, source, Access::REMOTE_READ);
        granted.ok_or_else(|| self.refused(WcStatus::REM_ACCESS_ERR))
    }

    /// Moves the bytes of a READ.
    #[inline]
    pub fn move_read(&mut self, from: &Spans<'_>, to: &Target<'_>) -> Result<(), Halt> {
        let moved = copy::copy(self.engine.memory, from, to, Order::Any);
        moved.map_err(|trouble| self.troubled(trouble))
    }

    /// An atomic.
    pub fn atomic(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        remote: RemoteAddr,
        op: AtomicOp,
    ) -> Result<(), Halt> {
        let held = [AtomicU64::new(self.exchange(guard, request, remote, op)?)];
        let mut to = Target::new();
        self.answer(guard, request, &mut to)?;
        sge::copy(&Spans::of_words(&held, ATOMIC as usize), &to);
        Ok(())
    }

    /// Changes the responder's word of an atomic, and returns what it was.
    #[inline(always)]
    pub fn exchange(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        remote: RemoteAddr,
        op: AtomicOp,
    ) -> Result<u64, Halt> {
        self.start(StartingOp::Atomic { len: request.payload.len() })?;
        match self.begun() {
            Some(begun) => self.resume(begun),
            None => {
                let domain = self.check_read_atomic_right(Access::REMOTE_ATOMIC)?;
                self.apply(guard, domain, remote, Access::REMOTE_ATOMIC, op)
            }
        }
    }

    /// An atomic write of eight bytes.
    #[cold]
    pub fn atomic_write(
        &mut self,
        guard: &CopyGuard<'_>,
        request: &SendRequest,
        remote: RemoteAddr,
    ) -> Result<(), Halt> {
        const RIGHT: Access = Access::REMOTE_WRITE;
        if request.payload.len() != ATOMIC {
            return Err(Halt::Failed(WcStatus::LOC_LEN_ERR));
        }
        match self.begun() {
            Some(begun) => self.resume(begun)?,
            None => {
                let mut from = Spans::new();
                self.source(guard, &request.payload, &mut from)?;
                let domain = self.check_right(RIGHT)?;
                let value = [AtomicU64::new(0)];
                sge::copy(&from, &Target::of_words(&value, ATOMIC as usize));
                let op = AtomicOp::Store { value: sync::load(&value[0]) };
                self.apply(guard, domain, remote, RIGHT, op)?
            }
        };
        Ok(())
    }

    /// Carries out an atomic operation on eight bytes of the responder's memory, if its keys allow it.
    fn apply(
        &mut self,
        guard: &CopyGuard<'_>,
        whose: KeyUser,
        remote: RemoteAddr,
        right: Access,
        op: AtomicOp,
    ) -> Result<u64, Halt> {
        if !remote.addr.is_multiple_of(ATOMIC) {
            return Err(self.refused(WcStatus::REM_INV_REQ_ERR));
        }
        let word = guard.word(whose, remote, right);
        let word = word.ok_or_else(|| self.refused(WcStatus::REM_ACCESS_ERR))?;
        atomics::apply(self.engine.memory, &word, op).map_err(|why| self.not_done(why))
    }

    /// Waits again for the answer to an atomic that was begun.
    #[cold]
    fn resume(&mut self, begun: PendingAtomic) -> Result<u64, Halt> {
        client::resume(self.engine.memory, begun).map_err(|why| self.not_done(why))
    }

    /// Takes the atomic that this request, the oldest, began when it was tried before.
    fn begun(&self) -> Option<PendingAtomic> {
        pending_atomic::take(self.engine, self.connection.me.number())
    }

    /// A FLUSH of so many bytes, or of the whole region.
    #[cold]
    pub fn flush(
        &mut self,
        guard: &CopyGuard<'_>,
        (remote, length): (RemoteAddr, u32),
        placement: Placement,
        selectivity: Selectivity,
    ) -> Result<(), Halt> {
        let mut needs = Access::empty();
        needs.set(Access::FLUSH_GLOBAL, placement.contains(Placement::GLOBAL));
        needs.set(Access::FLUSH_PERSISTENT, placement.contains(Placement::PERSISTENT));
        let domain = self.check_right(needs)?;
        let is_there = match selectivity {
            Selectivity::Region => guard.knows(domain, Key::new(remote.rkey), needs),
            Selectivity::Range => {
                let range = remote_sge(remote, length.into());
                guard.source(&mut Spans::new(), domain, range, needs).is_some()
            }
        };
        if !is_there {
            return Err(self.refused(WcStatus::REM_ACCESS_ERR));
        }
        sync::full_fence();
        Ok(())
    }

    /// Checks that the responder's queue pair grants a right; returns whose keys its peer's requests use.
    #[inline]
    pub fn check_right(&mut self, right: Access) -> Result<KeyUser, Halt> {
        let rights = self.connection.peer.rights().map_err(|why| self.halt(why))?;
        if rights.access.contains(right) {
            Ok(rights.whose)
        } else {
            Err(self.refused(WcStatus::REM_INV_REQ_ERR))
        }
    }

    /// The same, of a request that returns data.
    #[inline]
    fn check_read_atomic_right(&mut self, right: Access) -> Result<KeyUser, Halt> {
        let rights = self.connection.peer.rights().map_err(|why| self.halt(why))?;
        if rights.answers && rights.access.contains(right) {
            Ok(rights.whose)
        } else {
            Err(self.refused(WcStatus::REM_INV_REQ_ERR))
        }
    }

    /// Resolves the local SGEs that the result of a request is written to.
    #[inline]
    pub fn answer<'w>(
        &self,
        guard: &'w CopyGuard<'_>,
        request: &SendRequest,
        to: &mut Target<'w>,
    ) -> Result<(), Halt> {
        let domain = self.connection.local_keys;
        let (sges, needs) = (request.payload.sges(), Access::LOCAL_WRITE);
        guard.target_all(to, domain, sges, needs, u64::MAX).ok_or(Halt::LOCAL_PROTECTION)
    }

    /// The halt of a request whose bytes can't be moved.
    #[cold]
    fn troubled(&mut self, trouble: Trouble) -> Halt {
        match trouble {
            Trouble::Fault => self.refused(WcStatus::REM_ACCESS_ERR),
            Trouble::Own => Halt::LOCAL_PROTECTION,
            Trouble::NoAnswer => self.unanswered(),
        }
    }

    /// The halt of an atomic that was not answered.
    #[cold]
    fn not_done(&mut self, why: NotDone) -> Halt {
        match why {
            NotDone::Trouble(trouble) => self.troubled(trouble),
            NotDone::PendingAtomic(begun) => {
                pending_atomic::keep(self.engine, self.connection.me.number(), begun);
                self.unanswered()
            }
        }
    }

    /// The responder refuses the request, and goes to ERR.
    #[cold]
    pub fn refused(&mut self, status: WcStatus) -> Halt {
        self.connection.peer.refuse(status);
        Halt::Failed(status)
    }
}

/// Remote memory as an SGE.
pub const fn remote_sge(remote: RemoteAddr, len: u64) -> Sge {
    Sge { addr: remote.addr, length: len as u32, lkey: remote.rkey }
}
