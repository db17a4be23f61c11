//! What the active and the passive side have in common: a queue pair whose states follow the connection manager, and the
//! connection.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_core::setup::{DeviceError, QpAttr, QpAttrMask, QpState};
use rdma_sys::ibv_qp_attr;

use super::{CmError, Event, EventKind, deadline_after, next};
use crate::device::Context;
use crate::error::{Attempt, OpenError};
use crate::qp::QueuePair;
use crate::sys::cm::{self, Id, Param};

/// The device through which the peer is reached.
#[derive(Clone, Copy, Debug)]
pub struct Device<'a>(pub(super) &'a Id);

impl Device<'_> {
    /// Opens the device, to create the queue pair on it. A context of it that is open already can be used instead.
    ///
    /// # Errors
    /// The device is gone, or the system refused.
    pub fn open(self) -> Result<Context, OpenError> {
        Context::open(&self.name()?)
    }

    /// Its name.
    ///
    /// # Errors
    /// The device is gone.
    pub fn name(self) -> Result<String, DeviceError> {
        self.0.device_name().attempt("name the connection's device")
    }

    /// The number of its port.
    #[must_use]
    pub fn port_number(self) -> u8 {
        self.0.port_number()
    }
}

/// An established connection. Dropping it disconnects, and the peer gets the event DISCONNECTED. The queue pair belongs to
/// the user, and is unchanged.
#[derive(Debug)]
pub struct Connection {
    id: Id,
    private_data: Vec<u8>,
    ended: bool,
}

impl Connection {
    pub(super) const fn new(id: Id, private_data: Vec<u8>) -> Self {
        Self { id, private_data, ended: false }
    }

    /// The peer's private data, padded with zeros up to the size that the transport carries.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// This side's address.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.peer_addr()
    }

    /// Waits for an event of the connection.
    ///
    /// # Errors
    /// There was no event in time, or the system failed.
    pub fn event(&mut self, limit: Duration) -> Result<Event, CmError> {
        let deadline = deadline_after(limit);
        let (event, _) = next(&mut self.id, deadline, "an event of the connection")?;
        self.note(&event);
        Ok(Event::of(&event))
    }

    /// Whether one of the sides has disconnected. It reads all pending events, and does not wait.
    ///
    /// # Errors
    /// The device is gone, or the system refused.
    pub fn has_ended(&mut self) -> Result<bool, CmError> {
        match self.wait_disconnected(Duration::ZERO) {
            Ok(()) => Ok(true),
            Err(CmError::TimedOut { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Disconnects: the queue pair goes to ERR, its requests are flushed, and the peer gets the event DISCONNECTED. If the
    /// peer has disconnected, this completes it.
    ///
    /// # Errors
    /// The queue pair can't go to ERR from its state, or the device was removed.
    pub fn disconnect(&mut self, qp: &mut QueuePair) -> Result<(), CmError> {
        qp.modify(&QpAttr::to(QpState::ERR))?;
        Ok(self.id.disconnect().attempt("end the connection")?)
    }

    /// Waits until one of the sides disconnects.
    ///
    /// # Errors
    /// None did in time, the device was removed, or the system failed.
    pub fn wait_disconnected(&mut self, limit: Duration) -> Result<(), CmError> {
        let deadline = deadline_after(limit);
        while !self.ended {
            let (event, _) = next(&mut self.id, deadline, "the end of the connection")?;
            self.note(&event);
            if EventKind(event.kind) == EventKind::DEVICE_REMOVAL {
                return Err(CmError::DeviceRemoved);
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &cm::Event) {
        let kind = EventKind(event.kind);
        self.ended |= matches!(kind, EventKind::DISCONNECTED | EventKind::DEVICE_REMOVAL);
    }
}

impl AsFd for Connection {
    /// Readable while there is an [`event`](Connection::event).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.id.as_fd()
    }
}

/// The attributes of this side's queue pair that the peer needs, with so many READs and atomics of the peer and of this side.
pub(super) fn param<'a>(
    qp: &QueuePair,
    private_data: &'a [u8],
    responder_resources: u8,
    initiator_depth: u8,
) -> Result<Param<'a>, CmError> {
    let (number, srq) = (qp.number(), qp.has_srq());
    let param = Param::new(number, srq, private_data, responder_resources, initiator_depth);
    Ok(param.attempt("describe the connection")?)
}

/// Changes the queue pair to a state, with the attributes that the connection manager has, and one that it lacks.
pub(super) fn enter(
    id: &mut Id,
    qp: &mut QueuePair,
    state: QpState,
    adapt: impl FnOnce(&mut ibv_qp_attr),
) -> Result<(), CmError> {
    let (mut attr, mask) = attempt(id.qp_attr(state.0), "ask for the queue pair's attributes")?;
    adapt(&mut attr);
    Ok(qp.modify_raw(&mut attr, QpAttrMask::from_bits_retain(mask as u32))?)
}

/// A step of connecting. librdmacm returns EINVAL for it if the peer has given up.
pub(super) fn attempt<V>(step: io::Result<V>, attempt: &'static str) -> Result<V, CmError> {
    match step {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(CmError::Abandoned),
        step => Ok(step.attempt(attempt)?),
    }
}

/// A number names a queue pair of the connection's device only.
pub(super) fn check_device(id: &Id, qp: &QueuePair) -> Result<(), CmError> {
    let (queue_pair, connection) = (qp.device_name(), Device(id).name()?);
    match queue_pair == connection {
        true => Ok(()),
        false => Err(CmError::OtherDevice { queue_pair: queue_pair.to_owned(), connection }),
    }
}
