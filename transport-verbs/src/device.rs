//! Devices: which there are, opening one, what it can do at most, and what is made of it.

use std::sync::Arc;

use cq_core::setup::Gid;

use crate::attributes::DeviceAttr;
use crate::channel::CompletionChannel;
use crate::cq::Cq;
use crate::error::{Attempt, CapacityError, DeviceError, OpenError};
use crate::pd::ProtectionDomain;
use crate::port::{self, Port};
use crate::sys::context::{self, DeviceList};

/// The names of the devices that there are.
///
/// # Errors
/// The system refused.
pub fn devices() -> Result<Vec<String>, OpenError> {
    Ok(DeviceList::new().attempt("list the RDMA devices")?.names())
}

/// An open device. A clone is the same opening: each of its
/// [asynchronous events](cq_core::transport::AsyncEvents) goes to one of them. It is closed when the last
/// clone and everything made of it are gone.
///
/// ```no_run
/// use transport_verbs::{Context, devices};
///
/// println!("{:?}", devices()?);
/// let context = Context::open_first()?;
/// println!("{} holds up to {} completions a queue", context.name(), context.attributes().max_cqe);
/// let port = context.port(1)?;
/// println!("port 1 is {}, with GID {}", port.state(), port.gid());
/// let cq = context.create_cq(100, None)?;
/// assert!(cq.capacity() >= 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    raw: Arc<context::Context>,
}

impl Context {
    /// Opens a device by its name.
    ///
    /// # Errors
    /// There is no such device, or the system refused.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let list = DeviceList::new().attempt("list the RDMA devices")?;
        let names = list.names();
        match names.iter().position(|one| one == name) {
            Some(nth) => Self::open_nth(&list, nth),
            None if names.is_empty() => Err(OpenError::NoDevice),
            None => Err(OpenError::NoSuchDevice { name: name.to_owned(), there_are: names }),
        }
    }

    /// Opens the first of [`devices`].
    ///
    /// # Errors
    /// There is no device, or the system refused.
    pub fn open_first() -> Result<Self, OpenError> {
        let list = DeviceList::new().attempt("list the RDMA devices")?;
        if list.names().is_empty() {
            return Err(OpenError::NoDevice);
        }
        Self::open_nth(&list, 0)
    }

    fn open_nth(list: &DeviceList, nth: usize) -> Result<Self, OpenError> {
        Ok(Self { raw: Arc::new(list.open(nth).attempt("open the device")?) })
    }

    pub(crate) const fn raw(&self) -> &Arc<context::Context> {
        &self.raw
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.raw.name()
    }

    /// What the device can do at most, as it said when it was opened.
    #[must_use]
    pub fn attributes(&self) -> &DeviceAttr {
        self.raw.attributes()
    }

    /// What there is to know of a port now, and its best GID; ports are numbered from 1.
    ///
    /// # Errors
    /// There is no such port, or it has no GID yet.
    pub fn port(&self, number: u8) -> Result<Port, DeviceError> {
        Port::new(&self.raw, number)
    }

    /// The GIDs of a port that are in use, each with its index.
    ///
    /// # Errors
    /// There is no such port.
    pub fn gids(&self, port: u8) -> Result<Vec<(u8, Gid)>, DeviceError> {
        port::gids(&self.raw, port)
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
    ) -> Result<Cq, CapacityError> {
        Cq::new(&self.raw, capacity, channel)
    }
}
