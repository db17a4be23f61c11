//! Asynchronous events of a device, for a task.

use core::future::poll_fn;
use core::task::{Poll, ready};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use cq_core::transport::EventError;
use tokio::io::unix::AsyncFd;
use tokio::task::coop;

use super::channel::{failed, watch};
use crate::async_event::{AsyncEvent, AsyncEvents};

/// The asynchronous events of an open device, one after the other. Destroying an object discards its events that were not
/// taken yet: a task that is to see why a queue pair or a completion queue failed keeps it until then.
///
/// ```
/// use cq_verbs::device::Device;
/// use cq_verbs::task::DeviceEvents;
/// use std::os::fd::AsFd;
///
/// async fn log<D: Device + AsFd>(device: &D) -> Result<(), Box<dyn std::error::Error>> {
///     let mut events = DeviceEvents::new(device.clone())?;
///     loop {
///         println!("{}", events.next().await?);
///     }
/// }
/// ```
#[derive(Debug)]
pub struct DeviceEvents<D> {
    device: D,
    fd: AsyncFd<OwnedFd>,
}

impl<D: AsyncEvents + AsFd> DeviceEvents<D> {
    /// Registers a duplicate of the device's descriptor with the runtime.
    ///
    /// # Errors
    /// The process has no descriptors left, or the system refused to add it to the runtime's epoll(7).
    ///
    /// # Panics
    /// The caller is not in a runtime of tokio, or in one without I/O.
    pub fn new(device: D) -> io::Result<Self> {
        let fd = watch(&device)?;
        Ok(Self { device, fd })
    }

    /// Takes the next event, and waits until there is one.
    ///
    /// # Cancel safety
    /// This method is cancel safe. If the future is dropped before it is ready, it has taken no event.
    ///
    /// # Errors
    /// The device failed, or the runtime shuts down.
    pub async fn next(&mut self) -> Result<AsyncEvent, EventError> {
        let Self { device, fd } = self;
        poll_fn(|task| {
            loop {
                let budget = ready!(coop::poll_proceed(task));
                if let Some(event) = device.take_async_event()? {
                    budget.made_progress();
                    return Poll::Ready(Ok(event));
                }
                // An event that is raised after it was cleared makes the descriptor ready again.
                ready!(fd.poll_read_ready(task)).map_err(|error| failed(&error))?.clear_ready();
            }
        })
        .await
    }

    /// Returns the device, to create objects of it.
    pub const fn get_ref(&self) -> &D {
        &self.device
    }

    /// Returns the device.
    pub fn into_inner(self) -> D {
        self.device
    }
}
