//! Connecting, broken in one way. The model has no connection manager, so this is the loopback's.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_core::cm::{Advice, CmEvent, ConnParam, EventKind, Identifier, ModifyQpError, QpInfo, QpOf};
use cq_core::setup::{Errno, QpState};
use transport_rxe_loop::cm::Id;
use transport_rxe_loop::{Context, OpenError};

use super::How;
use crate::device::{Device, Made};
use crate::loopback::Loopback;

/// An identifier of the loopback, broken.
#[derive(Debug)]
pub struct BrokenId {
    how: How,
    id: Id,
    /// Taken before anything else.
    again: Option<CmEvent>,
    /// What can always be read.
    readable: Option<File>,
}

impl BrokenId {
    pub fn new(how: How) -> Made<Self> {
        Ok(Self::of(how, Loopback::open().create_id()?))
    }

    fn of(how: How, id: Id) -> Self {
        let is_always = how == How::IsAlwaysReadable;
        let readable = is_always.then(|| File::open("/dev/zero").expect("there is a /dev/zero"));
        Self { how, id, again: None, readable }
    }

    /// An event that came, or none.
    fn spoil(&self, mut event: CmEvent) -> Option<CmEvent> {
        let param = &mut event.param;
        match self.how {
            How::SkipsEstablishing if event.kind == EventKind::CONNECT_RESPONSE => {
                event.kind = EventKind::ESTABLISHED;
            }
            How::CutsPrivateData => {
                let half = param.private_data.len() / 2;
                param.private_data[half..].fill(0);
            }
            How::MissesDisconnections if event.kind == EventKind::DISCONNECTED => return None,
            How::TurnsNothingRound => {
                let (asks, allows) = (param.responder_resources, param.initiator_depth);
                (param.responder_resources, param.initiator_depth) = (allows, asks);
            }
            _ => {}
        }
        Some(event)
    }
}

impl AsFd for BrokenId {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_ref().map_or_else(|| self.id.as_fd(), File::as_fd)
    }
}

impl Identifier for BrokenId {
    type Device = Context;
    type OpenError = OpenError;

    const ADVICE: Advice = Id::ADVICE;

    fn new() -> Result<Self, Errno> {
        Self::new(How::Nothing)
    }

    fn bind(&mut self, addr: SocketAddr) -> Result<(), Errno> {
        match self.id.bind(addr) {
            Err(Errno::EADDRINUSE) if self.how == How::SharesPorts => {
                self.id.bind(SocketAddr::new(addr.ip(), 0))
            }
            bound => bound,
        }
    }

    fn listen(&mut self, backlog: i32) -> Result<(), Errno> {
        self.id.listen(backlog)
    }

    fn resolve_addr(&mut self, addr: SocketAddr, limit: Duration) -> Result<(), Errno> {
        self.id.resolve_addr(addr, limit)
    }

    fn resolve_route(&mut self, limit: Duration) -> Result<(), Errno> {
        self.id.resolve_route(limit)
    }

    fn connect(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        self.id.connect(param)
    }

    fn establish(&mut self) -> Result<(), Errno> {
        self.id.establish()
    }

    fn accept(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        self.id.accept(param).or_else(|errno| match self.how {
            How::AcceptsForNobody => Ok(()),
            _ => Err(errno),
        })
    }

    fn reject(&mut self, private_data: &[u8]) -> Result<(), Errno> {
        let is_silent = self.how == How::RejectsInSilence;
        self.id.reject(if is_silent { b"" } else { private_data })
    }

    fn disconnect(&mut self) -> Result<(), Errno> {
        self.id.disconnect()
    }

    fn take_event(&mut self) -> Result<Option<(CmEvent, Option<Self>)>, Errno> {
        if let Some(event) = self.again.take() {
            return Ok(Some((event, None)));
        }
        let Some((event, request)) = self.id.take_event()? else { return Ok(None) };
        if self.how == How::ReportsTwice && event.kind == EventKind::ESTABLISHED {
            self.again = Some(event.clone());
        }
        let request = request.map(|id| Self::of(self.how, id));
        Ok(self.spoil(event).map(|event| (event, request)))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.peer_addr()
    }

    fn device_name(&self) -> Result<String, Errno> {
        self.id.device_name()
    }

    fn port_number(&self) -> u8 {
        self.id.port_number()
    }

    fn open(&self) -> Result<Context, OpenError> {
        self.id.open()
    }

    fn is_device_of(&self, qp: &QpOf<Self>) -> Result<bool, Errno> {
        self.id.is_device_of(qp)
    }

    fn describe(qp: &QpOf<Self>) -> QpInfo {
        Id::describe(qp)
    }

    fn modify_qp(
        &mut self,
        qp: &mut QpOf<Self>,
        to: QpState,
        rd_atomic: Option<u8>,
    ) -> Result<(), ModifyQpError> {
        self.id.modify_qp(qp, to, rd_atomic)
    }
}
