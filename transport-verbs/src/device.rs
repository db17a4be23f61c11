//! Devices: listing and opening them, their attributes, and the objects created from them.

use std::sync::Arc;

use cq_verbs::setup::{DeviceAttr, DeviceError, Gid, Port};

use crate::error::{Attempt, OpenError};
use crate::sys::context::{self, DeviceList};
use crate::{port, trace};

/// The names of the RDMA devices of this host.
///
/// # Errors
/// The system refused.
#[doc(alias("ibv_get_device_list", "ibv_get_device_name"))]
pub fn devices() -> Result<Vec<String>, OpenError> {
    Ok(DeviceList::new().attempt("list the RDMA devices")?.names())
}

/// An open device. Clones share it. It is closed when the last clone is dropped and the last object created from it is destroyed.
///
/// ```no_run
/// use transport_verbs::{Context, devices};
///
/// println!("{:?}", devices()?);
/// let context = Context::open_first()?;
/// println!("{} holds up to {} completions a queue", context.name(), context.attributes().max_cqe);
/// let port = context.port(1)?;
/// println!("port 1 is {}, with GID {}", port.state, port.gid);
/// let cq = context.cq(100).create()?;
/// assert!(cq.capacity() >= 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Asynchronous events
/// A context receives the [asynchronous events](cq_verbs::async_event::BlockAsync) of the objects that were created through
/// it, and of the device's ports. Each is delivered to one of the clones.
///
/// ```no_run
/// use transport_verbs::verbs::async_event::{AsyncEventType, Element};
/// use transport_verbs::verbs::async_event::BlockAsync;
/// use std::time::Duration;
/// use transport_verbs::Context;
///
/// let mut context = Context::open_first()?;
/// let cq = context.cq(16).create()?;
/// while let Some(event) = context.wait_async_timeout(Duration::from_secs(1))? {
///     match event.element {
///         Element::Cq(key) if event.event_type == AsyncEventType::CQ_ERR => {
///             println!("queue {key} has overrun: polling it fails once it is empty");
///         }
///         _ => println!("{event}"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A poll can't detect that a queue of a device has overrun: the device reports it by CQ_ERR. Taking that event marks the
/// queue. Once it is empty, polling fails with [`PollError::Overrun`](cq_core::transport::PollError::Overrun)
/// ([O3](cq_core::contract#o3)). A program that takes no asynchronous events does not notice an overrun.
///
/// Taking an event acknowledges it. An event names its object by key or number, without a reference to it. Destroying an
/// object discards its unread events, so that an event names an object that exists when it is taken
/// ([and after that](cq_verbs::async_event)). The keys of completion queues and the numbers of shared receive queues are
/// never used again, those of queue pairs are.
///
/// An event of a queue that other code created with this context, as by [`Cq::as_raw`](crate::Cq::as_raw), names
/// [`Element::Unknown`](cq_verbs::async_event::Element::Unknown), and so does one of a queue that another thread is
/// destroying. An event of a queue pair names its number, whatever code created it.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) raw: Arc<context::Context>,
}

impl Context {
    /// Opens a device by its name.
    ///
    /// # Errors
    /// There is no such device, or the system refused.
    #[doc(alias("ibv_open_device", "ibv_close_device"))]
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
        let raw = list.open(nth).attempt("open the device")?;
        trace::event!(DEBUG, device = raw.name(), "device opened");
        Ok(Self { raw: Arc::new(raw) })
    }

    /// The device that VERBS_DEVICE names, if it does.
    #[cfg(test)]
    pub(crate) fn of_tests() -> Self {
        Self::open(&std::env::var("VERBS_DEVICE").expect("VERBS_DEVICE names a device")).unwrap()
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.raw.name()
    }

    /// The device's attributes, as they were when it was opened.
    #[must_use]
    #[doc(alias = "ibv_query_device")]
    pub fn attributes(&self) -> DeviceAttr {
        self.raw.attributes
    }

    /// Queries a port, with the GID that most likely reaches peers: on RoCE one of RoCE v2, and of IPv4 if there is one; on
    /// InfiniBand the first. [`port_with_gid`](Self::port_with_gid) takes another. Ports are numbered from 1.
    ///
    /// # Errors
    /// There is no such port, or it has no GID yet.
    #[doc(alias("ibv_query_port", "RoCE"))]
    pub fn port(&self, number: u8) -> Result<Port, DeviceError> {
        port::query(&self.raw, number)
    }

    /// The same port with another of its [`gids`](Self::gids).
    ///
    /// # Errors
    /// There is no such port, or no GID at that index.
    pub fn port_with_gid(&self, number: u8, index: u8) -> Result<Port, DeviceError> {
        port::query_gid(&self.raw, number, index)
    }

    /// The GIDs of a port that are in use, each with its index.
    ///
    /// # Errors
    /// There is no such port.
    #[doc(alias("ibv_query_gid", "ibv_query_gid_ex", "ibv_query_gid_table"))]
    pub fn gids(&self, port: u8) -> Result<Vec<(u8, Gid)>, DeviceError> {
        port::gids(&self.raw, port)
    }
}
