//! What objects remember of their protection domain: it is in use as long as one of them is.

use std::sync::Arc;

use crate::completion::channel::EventChannel;
use crate::engine::Engine;
use crate::error::{CreateError, Limit, RegisterError};
use crate::lifecycle::Device;
use crate::memory::domains;

/// What regions and queue pairs remember of their protection domain.
#[derive(Debug)]
pub struct Domain {
    device: &'static Device,
    events: Arc<EventChannel>,
    /// 0 is none: there were too many, and nothing can be made in it.
    number: u32,
}

impl Domain {
    /// The device.
    pub const fn device(&self) -> &'static Device {
        self.device
    }

    /// The engine that carries out its requests.
    pub const fn engine(&self) -> &'static Engine {
        self.device.engine
    }

    /// Where what happens to its queue pairs is reported.
    pub const fn events(&self) -> &Arc<EventChannel> {
        &self.events
    }

    /// Tells it from others.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether it can be told from others: else nothing is made in it.
    fn is_one(&self) -> bool {
        // A forked child is told of that first.
        self.number != 0 || !self.device.shm.is_ours()
    }

    /// Judges whether anything can be made in it.
    pub fn check(&self) -> Result<(), CreateError> {
        let full = CreateError::TableFull { what: Limit::ProtectionDomains, max: domains::MAX };
        self.is_one().then_some(()).ok_or(full)
    }

    /// The same, of memory.
    pub fn check_memory(&self) -> Result<(), RegisterError> {
        let full = RegisterError::TooManyDomains { max: domains::MAX };
        self.is_one().then_some(()).ok_or(full)
    }

    /// One that got no number.
    #[cfg(test)]
    pub fn in_none(device: &'static Device, events: &Arc<EventChannel>) -> Self {
        Self { device, events: Arc::clone(events), number: 0 }
    }

    /// A new one, in which nothing is yet.
    pub fn new(device: &'static Device, events: &Arc<EventChannel>) -> Self {
        let number = device.memory.next_domain().unwrap_or(0);
        Self { device, events: Arc::clone(events), number }
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if self.number != 0 {
            self.device.memory.end_domain(self.number);
        }
    }
}
