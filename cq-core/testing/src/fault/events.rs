//! Spurious and duplicate events, completion and asynchronous.

use cq_core::of_target;
use cq_core::transport::{Block, CqKey, EventError, Events, Woken};
use cq_verbs::async_event::{AsyncEvent, AsyncEvents, BlockAsync};

use super::FaultInjector;
use super::plan::Fault;

impl<T: Events, const N: usize> Events for FaultInjector<T, N> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        if let Some(key) = self.again.take() {
            return Ok(Some(key));
        }
        let event = self.transport.take_event()?;
        if event.is_some() {
            self.again = event.filter(|_| self.doubles(Fault::EventTwice));
            return Ok(event);
        }
        match self.spurious(|fault| matches!(fault, Fault::Event(_))) {
            Some(Fault::Event(key)) => Ok(Some(key)),
            _ => Ok(None),
        }
    }

    fn forget(&mut self, key: CqKey) {
        self.again = self.again.filter(|again| *again != key);
        self.transport.forget(key);
    }

    of_target! { self.transport; serves(&self, key: CqKey) -> bool; }
}

impl<T: Block, const N: usize> Block for FaultInjector<T, N> {
    type Instant = T::Instant;

    fn block(&mut self, deadline: Option<T::Instant>) -> Result<Woken, EventError> {
        if self.again.is_some() {
            return Ok(Woken::Event);
        }
        self.transport.block(deadline)
    }
}

/// The transport's descriptor. It is not readable for an event that is returned a second time, or that is spurious.
#[cfg(all(feature = "std", unix))]
impl<T: std::os::fd::AsFd, const N: usize> std::os::fd::AsFd for FaultInjector<T, N> {
    of_target! { self.transport; as_fd(&self) -> std::os::fd::BorrowedFd<'_>; }
}

impl<T: AsyncEvents, const N: usize> AsyncEvents for FaultInjector<T, N> {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        if let Some(event) = self.async_again.take() {
            return Ok(Some(event));
        }
        let event = self.transport.take_async_event()?;
        if event.is_some() {
            self.async_again = event.filter(|_| self.doubles(Fault::AsyncTwice));
            return Ok(event);
        }
        match self.spurious(|fault| matches!(fault, Fault::Async(_))) {
            Some(Fault::Async(event)) => Ok(Some(event)),
            _ => Ok(None),
        }
    }
}

impl<T: BlockAsync, const N: usize> BlockAsync for FaultInjector<T, N> {
    type Instant = T::Instant;

    /// Returns at once if an event is to be returned a second time.
    fn block_async(&mut self, deadline: Option<T::Instant>) -> Result<Woken, EventError> {
        match self.async_again {
            Some(_) => Ok(Woken::Event),
            None => self.transport.block_async(deadline),
        }
    }
}

impl<T, const N: usize> FaultInjector<T, N> {
    /// Whether to return the event that was just taken a second time.
    fn doubles(&mut self, of: Fault) -> bool {
        let doubles = self.roll(None, |fault| *fault == of).is_some();
        self.injected.duplicated += u64::from(doubles);
        doubles
    }

    /// A spurious event, if one is due.
    fn spurious(&mut self, of: impl Fn(&Fault) -> bool) -> Option<Fault> {
        self.roll(None, of).inspect(|_| self.injected.spurious += 1)
    }
}
