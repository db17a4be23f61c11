//! A connection, and the device that it goes through.

use alloc::string::String;
use alloc::vec::Vec;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_core::transport::Deadline;

use super::steps::{attempt, next};
use super::{CmError, CmEvent, Event, EventKind, Identifier, QpOf};
use crate::device::DeviceQp;
use crate::setup::{DeviceError, QpAttr, QpState};

/// The device through which the peer is reached.
#[derive(Debug)]
pub struct CmDevice<'a, I>(pub(super) &'a I);

cq_core::copied!([I] CmDevice<'_, I>);

impl<I: Identifier> CmDevice<'_, I> {
    /// Opens the device, to create the queue pair on it. A context of it that is open already can be used instead.
    ///
    /// # Errors
    /// The device is gone, or the system refused.
    #[doc(alias("rdma_get_devices", "rdma_free_devices"))]
    pub fn open(self) -> Result<I::Device, I::OpenError> {
        self.0.open()
    }

    /// Its name.
    ///
    /// # Errors
    /// The device is gone.
    pub fn name(self) -> Result<String, DeviceError> {
        attempt(self.0.device_name(), "name the connection's device")
    }

    /// The number of its port.
    #[must_use]
    pub fn port_number(self) -> u8 {
        self.0.port_number()
    }
}

/// An established connection. Dropping it disconnects, as dropping its [`Identifier`] does, and the peer gets the event
/// DISCONNECTED. The queue pair belongs to the user, and is unchanged.
///
/// ```
/// use cq_verbs::cm::{CmError, Connection, Identifier, QpOf};
///
/// /// Serves the peer until it disconnects.
/// fn serve<I: Identifier>(
///     mut connection: Connection<I>,
///     qp: &mut QpOf<I>,
///     mut poll: impl FnMut(&mut QpOf<I>),
/// ) -> Result<(), CmError> {
///     while !connection.check_ended()? {
///         poll(qp);
///     }
///     connection.disconnect(qp)
/// }
/// ```
#[derive(Debug)]
pub struct Connection<I> {
    id: I,
    private_data: Vec<u8>,
    ended: bool,
}

impl<I: Identifier> Connection<I> {
    pub(super) const fn new(id: I, private_data: Vec<u8>) -> Self {
        Self { id, private_data, ended: false }
    }

    /// The peer's private data, padded with zeros up to the size that the transport carries.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// This side's address.
    #[doc(alias("rdma_get_local_addr", "rdma_get_src_port"))]
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    /// The peer's address.
    #[doc(alias("rdma_get_peer_addr", "rdma_get_dst_port"))]
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.peer_addr()
    }

    /// Waits for an event of the connection.
    ///
    /// # Errors
    /// There was no event in time, or the system failed.
    #[doc(alias("rdma_get_cm_event", "rdma_ack_cm_event"))]
    pub fn event(&mut self, limit: Duration) -> Result<Event, CmError> {
        let deadline = Deadline::after(limit);
        let (event, _) = next(&mut self.id, deadline, "an event of the connection")?;
        self.note(&event);
        Ok(event.event())
    }

    /// Whether one of the sides has disconnected. It reads all pending events, and does not wait.
    ///
    /// # Errors
    /// The device is gone, or the system refused.
    pub fn check_ended(&mut self) -> Result<bool, CmError> {
        match self.wait_disconnected(Duration::ZERO) {
            Ok(()) => Ok(true),
            Err(CmError::TimedOut { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Disconnects: the queue pair goes to ERR, its requests are flushed, and the peer gets the event DISCONNECTED. If
    /// the peer has disconnected, this completes it.
    ///
    /// # Errors
    /// The queue pair can't go to ERR from its state, or the device was removed.
    #[doc(alias = "rdma_disconnect")]
    pub fn disconnect(&mut self, qp: &mut QpOf<I>) -> Result<(), CmError> {
        qp.modify(&QpAttr::new().state(QpState::ERR))?;
        Ok(attempt(self.id.disconnect(), "end the connection")?)
    }

    /// Waits until one of the sides disconnects.
    ///
    /// # Errors
    /// None did in time, the device was removed, or the system failed.
    pub fn wait_disconnected(&mut self, limit: Duration) -> Result<(), CmError> {
        let deadline = Deadline::after(limit);
        while !self.ended {
            let (event, _) = next(&mut self.id, deadline, "the end of the connection")?;
            self.note(&event);
            if event.kind == EventKind::DEVICE_REMOVAL {
                return Err(CmError::DeviceRemoved);
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &CmEvent) {
        self.ended |= matches!(event.kind, EventKind::DISCONNECTED | EventKind::DEVICE_REMOVAL);
    }
}

impl<I: AsFd> AsFd for Connection<I> {
    /// Readable while there is an [`event`](Connection::event).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.id.as_fd()
    }
}
