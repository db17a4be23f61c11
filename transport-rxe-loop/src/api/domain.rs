//! The protection domain that its objects share by reference: it is in use while one of them exists.

use std::sync::Arc;

use crate::completion::channel::EventChannel;
use crate::conditions::FORKED;
use crate::engine::Engine;
use crate::error::{CreateError, LimitKind};
use crate::lifecycle::Device;
use crate::memory::domains;
use crate::trace;

/// A protection domain, referred to by its handle and by all objects in it.
#[derive(Debug)]
pub struct Domain {
    /// The device.
    pub device: &'static Device,
    /// The channel of the asynchronous events of its objects.
    pub events: Arc<EventChannel>,
    /// Its number, unique in the fabric while it is in use.
    pub number: u32,
}

impl Domain {
    /// The engine that carries out its requests.
    pub const fn engine(&self) -> &'static Engine {
        self.device.engine
    }

    /// A new domain, without objects.
    pub fn new(device: &'static Device, events: &Arc<EventChannel>) -> Result<Self, CreateError> {
        if !device.shm.is_ours() {
            return Err(FORKED.into());
        }
        let full = CreateError::TableFull { what: LimitKind::ProtectionDomains, max: domains::MAX };
        let number = device.memory.next_domain().ok_or(full)?;
        trace::event!(DEBUG, pd = number, "protection domain allocated");
        Ok(Self { device, events: Arc::clone(events), number })
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        self.device.memory.end_domain(self.number);
        if self.device.shm.is_ours() {
            trace::event!(DEBUG, pd = self.number, "protection domain deallocated");
        }
    }
}
