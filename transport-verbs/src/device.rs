//! Devices: which there are, opening one, what it can do at most, and what is made of it.

use std::sync::Arc;

use crate::channel::CompletionChannel;
use crate::cq::Cq;
use crate::error::{Attempt, DeviceError, OpenError};
use crate::pd::ProtectionDomain;
use crate::sys::context::{self, DeviceList};

/// The names of the devices that there are.
///
/// # Errors
/// The system refused.
pub fn devices() -> Result<Vec<String>, OpenError> {
    Ok(DeviceList::new().attempt("list the RDMA devices")?.names())
}

/// An open device.
#[derive(Clone, Debug)]
pub struct Context {
    raw: Arc<context::Context>,
    name: Arc<str>,
}

impl Context {
    /// Opens a device by its name.
    ///
    /// # Errors
    /// There is no such device, or the system refused.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let list = DeviceList::new().attempt("list the RDMA devices")?;
        let names = list.names();
        let Some(nth) = names.iter().position(|one| one == name) else {
            return Err(match names.is_empty() {
                true => OpenError::NoDevice,
                false => OpenError::NoSuchDevice { name: name.to_owned(), there_are: names },
            });
        };
        let raw = Arc::new(list.open(nth).attempt("open the device")?);
        Ok(Self { raw, name: name.into() })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A protection domain.
    ///
    /// # Errors
    /// The device has none left.
    pub fn alloc_pd(&self) -> Result<ProtectionDomain, DeviceError> {
        ProtectionDomain::new(&self.raw)
    }

    /// A channel to sleep on.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn create_channel(&self) -> Result<CompletionChannel, DeviceError> {
        CompletionChannel::new(&self.raw)
    }

    /// A completion queue that holds at least `capacity` completions (O1). With a channel it can be armed.
    ///
    /// # Errors
    /// The capacity is out of range, or the device has none left.
    pub fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<Cq, DeviceError> {
        Cq::new(&self.raw, capacity, channel)
    }
}
