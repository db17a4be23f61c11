//! Draining a queue pair.

use core::ops::ControlFlow;

use cq_core::cq::CompletionQueue;
use cq_core::transport::PollError;
use cq_core::wc::Wc;

use super::TrackedQp;
use super::ledgers::Ledgers;
use super::qp::{Done, FailError};
use crate::device::DeviceQp;
use crate::ledger::{Reaped, reap};
use crate::polling::PollWc;

/// Why a queue pair could not be drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DrainError {
    /// It could not go to ERR, or not so that everything completes.
    #[error("the queue pair can't flush its requests")]
    Fail(#[from] FailError),
    /// A completion queue failed: what is outstanding completes there no more.
    #[error("a completion queue can't be polled: destroy the queue pair instead of draining it")]
    Poll(#[from] PollError),
    /// The caller ended the wait.
    #[error("the wait for the flushed requests was ended")]
    Stopped,
    /// Nobody polls a completion queue of this `TaskQp` any more: what is outstanding can't be seen to complete.
    #[error(
        "a completion queue is no longer polled: it failed, or its driver ended; destroy the queue pair instead of draining it"
    )]
    NotPolled,
}

impl<Q: DeviceQp, S, R, L: Ledgers> TrackedQp<Q, S, R, L> {
    /// Goes to ERR, and polls its completion queues until everything outstanding was flushed ([Q2](cq_core::contract#q2)):
    /// no buffer is in use any more, every token was returned, and the queue pair can be destroyed or
    /// [reset](Self::reset) without loss. Passes on what it polls, in each queue's order. `reaped` ends the wait by
    /// `Break`, after the whole batch is passed on. If it panics, what this queue pair has completed stays, as what `retire`
    /// leaves; completions of others that were polled are lost.
    ///
    /// # Errors
    /// The queue pair can't go to ERR, a completion queue failed, or `reaped` ended the wait. What was not returned is
    /// still outstanding.
    pub fn drain<T: PollWc>(
        &mut self,
        cqs: &mut [&mut CompletionQueue<T>],
        buffer: &mut [Wc],
        mut reaped: impl FnMut(Reaped<'_, Done<'_, S, R>>) -> ControlFlow<()>,
    ) -> Result<(), DrainError> {
        if !self.is_idle() {
            self.fail()?;
        }
        while !self.is_idle() {
            if cqs.is_empty() && reaped(Reaped::Nothing).is_break() {
                return Err(DrainError::Stopped);
            }
            for cq in &mut *cqs {
                if reap(self, cq, buffer, &mut reaped)?.is_break() {
                    return Err(DrainError::Stopped);
                }
            }
        }
        Ok(())
    }
}
