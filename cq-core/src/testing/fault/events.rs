//! Spurious and duplicate events, completion and asynchronous.

use super::FaultInjector;
use super::plan::Fault;
use crate::async_event::AsyncEvent;
use crate::transport::{AsyncEvents, Block, CqKey, EventError, Events, Woken};

impl<T: Events, const N: usize> Events for FaultInjector<T, N> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        if let Some(key) = self.again.take() {
            return Ok(Some(key));
        }
        let event = self.transport.take_event()?;
        let (event, doubles) = self.meddle(event, Fault::EventTwice, |fault| match fault {
            Fault::Event(key) => Some(key),
            _ => None,
        });
        self.again = event.filter(|_| doubles);
        Ok(event)
    }
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

impl<T: AsyncEvents, const N: usize> AsyncEvents for FaultInjector<T, N> {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        if let Some(event) = self.async_again.take() {
            return Ok(Some(event));
        }
        let event = self.transport.take_async_event()?;
        let (event, doubles) = self.meddle(event, Fault::AsyncTwice, |fault| match fault {
            Fault::Async(event) => Some(event),
            _ => None,
        });
        self.async_again = event.filter(|_| doubles);
        Ok(event)
    }
}

impl<T, const N: usize> FaultInjector<T, N> {
    /// Returns the event that was just taken and whether to return it a second time, or else a spurious one if that is
    /// due.
    fn meddle<E>(
        &mut self,
        event: Option<E>,
        twice: Fault,
        spurious: impl Fn(Fault) -> Option<E>,
    ) -> (Option<E>, bool) {
        if event.is_some() {
            let doubles = self.roll(None, |fault| (fault == twice).then_some(())).is_some();
            self.injected.duplicated += u64::from(doubles);
            return (event, doubles);
        }
        let event = self.roll(None, spurious);
        self.injected.spurious += u64::from(event.is_some());
        (event, false)
    }
}
