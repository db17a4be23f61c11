//! What follows from the requests that a thread carries out: a wake-up, once their completions are stored; queue pairs to
//! run, once the send queue that the thread owns has been given back.

use super::{Engine, remote_requests};
use crate::completion::wakeup::Wakeup;
use crate::protocol::number::QpIndex;

/// A few queue pairs of this process, by index, and a wake-up.
#[derive(Debug, Default)]
pub struct Rescheduled {
    /// Due at a receiver, once the completions of the requests are stored: there is one for each run.
    wakeup: Wakeup,
    list: [QpIndex; 4],
    len: usize,
}

impl Rescheduled {
    /// Adds one, by its index. For one of another process, or where the list is full, a remote request is left.
    pub fn add(&mut self, engine: &'static Engine, qp: QpIndex) {
        if self.list[..self.len].contains(&qp) {
            return;
        }
        match self.list.get_mut(self.len) {
            Some(free) if engine.is_mine(qp) => {
                *free = qp;
                self.len += 1;
            }
            _ => remote_requests::submit(engine, qp),
        }
    }

    /// A receiver is to be woken, which [`wake`](Self::wake) does.
    #[inline(always)]
    pub fn add_wakeup(&mut self, wakeup: Wakeup) {
        if wakeup.is_due() {
            debug_assert!(!self.wakeup.is_due(), "the one of the run before was raised");
            self.wakeup = wakeup;
        }
    }

    /// Whether a receiver is to be woken.
    pub const fn wakes(&self) -> bool {
        self.wakeup.is_due()
    }

    /// The completions of the requests are stored: wakes the receiver, if one is to be woken (N13).
    #[inline(always)]
    pub fn wake(&mut self, engine: &'static Engine) {
        if self.wakes() {
            std::mem::take(&mut self.wakeup).raise(engine.completions);
        }
    }

    /// Whether there are any queue pairs.
    #[inline]
    pub const fn is_any(&self) -> bool {
        self.len > 0
    }

    /// Takes one.
    #[inline]
    pub fn pop(&mut self) -> Option<QpIndex> {
        self.len = self.len.checked_sub(1)?;
        Some(self.list[self.len])
    }
}
