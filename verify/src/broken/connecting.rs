//! Connecting, broken in one way. The model has no connection manager, so this is the loopback's.

use std::net::SocketAddr;
use std::time::Instant;

use cq_verbs::cm::{CmEvent, EventKind};

use super::{Broken, BrokenQp, How};
use crate::device::{CmCall, Device, Errno, Identifier, Made, QpState};
use crate::loopback::Loopback;

/// An identifier of the loopback, broken.
#[derive(Debug)]
pub struct BrokenId {
    how: How,
    id: <Loopback as Device>::Id,
    /// Taken before anything else.
    again: Option<CmEvent>,
}

impl BrokenId {
    pub fn new(how: How) -> Made<Self> {
        Ok(Self { how, id: Loopback::open().create_id()?, again: None })
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

impl Identifier<Broken> for BrokenId {
    fn call(&mut self, call: &CmCall) -> Made<()> {
        let silent = CmCall::Reject(Vec::new());
        let done = self.id.call(match (self.how, call) {
            (How::RejectsInSilence, CmCall::Reject(_)) => &silent,
            _ => call,
        });
        match (self.how, call, done) {
            (How::SharesPorts, CmCall::Bind(addr), Err(Errno::EADDRINUSE)) => {
                self.id.call(&CmCall::Bind(SocketAddr::new(addr.ip(), 0)))
            }
            (How::AcceptsForNobody, CmCall::Accept(_), Err(_)) => Ok(()),
            (.., done) => done,
        }
    }

    fn take_event(&mut self) -> Made<Option<(CmEvent, Option<Self>)>> {
        if let Some(event) = self.again.take() {
            return Ok(Some((event, None)));
        }
        let Some((event, request)) = self.id.take_event()? else { return Ok(None) };
        if self.how == How::ReportsTwice && event.kind == EventKind::ESTABLISHED {
            self.again = Some(event.clone());
        }
        let request = request.map(|id| Self { how: self.how, id, again: None });
        Ok(self.spoil(event).map(|event| (event, request)))
    }

    fn is_readable(&self, deadline: Instant) -> bool {
        self.how == How::IsAlwaysReadable || self.id.is_readable(deadline)
    }

    fn addrs(&self) -> [Option<SocketAddr>; 2] {
        self.id.addrs()
    }

    fn open(&self) -> Broken {
        Broken::open()
    }

    /// The queue pair is the model's.
    fn modify(&mut self, _: &mut BrokenQp, _: QpState) -> Made<()> {
        Err(Errno::EOPNOTSUPP)
    }
}
