//! The protection domain that its objects share by reference: it is in use while one of them exists.

use std::sync::Arc;

use crate::completion::channel::EventChannel;
use crate::engine::Engine;
use crate::error::{CreateError, Limit, RegisterError};
use crate::lifecycle::Device;
use crate::memory::domains;

/// A protection domain, referred to by its handle and by all objects in it.
#[derive(Debug)]
pub struct Domain {
    device: &'static Device,
    events: Arc<EventChannel>,
    /// 0 means that there were too many domains: nothing can be made in this one.
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

    /// The channel of the asynchronous events of its objects.
    pub const fn events(&self) -> &Arc<EventChannel> {
        &self.events
    }

    /// Its number, unique in the fabric while it is in use.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Whether it has a number of its own, so that objects can be made in it.
    fn is_one(&self) -> bool {
        // A forked child passes: its error is reported by the operation itself.
        self.number != 0 || !self.device.shm.is_ours()
    }

    /// Validates that objects can be made in it.
    pub fn check(&self) -> Result<(), CreateError> {
        let full = CreateError::TableFull { what: Limit::ProtectionDomains, max: domains::MAX };
        self.is_one().then_some(()).ok_or(full)
    }

    /// The same, for memory.
    pub fn check_memory(&self) -> Result<(), RegisterError> {
        let full = RegisterError::TooManyDomains { max: domains::MAX };
        self.is_one().then_some(()).ok_or(full)
    }

    /// A domain without a number.
    #[cfg(test)]
    pub fn in_none(device: &'static Device, events: &Arc<EventChannel>) -> Self {
        Self { device, events: Arc::clone(events), number: 0 }
    }

    /// A new domain, without objects.
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
