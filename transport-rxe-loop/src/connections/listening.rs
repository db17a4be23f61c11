//! How a listener takes requests.

use cq_core::cm::EventKind;
use cq_core::setup::QpType;
use rustix::io::Errno;

use super::carrier::Arrived;
use super::{All, IdKey, Queued};
use crate::protocol::cm::{OK, Service, State};

/// What a backlog that is not above 0 stands for, and the most that one can be, as the kernel has it.
pub const MAX_BACKLOG: u32 = 1024;

impl All {
    /// Accepts the requests that have arrived at an identifier, if it listens: as many as may wait.
    pub(super) fn accept_requests(&mut self, key: IdKey) -> Result<(), Errno> {
        let Ok((id, channel)) = self.of(key) else { return Ok(()) };
        let accepted = (channel.waiting(key)..id.backlog).try_for_each(|_| {
            let listener = self.id(key)?.listener.as_ref();
            let arrived = listener.ok_or(Errno::AGAIN)?.next()?;
            self.requested(key, arrived)
        });
        self.count_queued(key);
        accepted.or_else(|errno| if errno == Errno::AGAIN { Ok(()) } else { Err(errno) })
    }

    /// Has it be known how many requests to a listener are queued.
    pub(super) fn count_queued(&mut self, key: IdKey) {
        let Ok((id, channel)) = self.of(key) else { return };
        id.listener.iter().for_each(|listener| listener.has_queued(channel.waiting(key)));
    }

    /// Makes the identifier of a request, and its event. If it can't be made, the peer is rejected.
    fn requested(&mut self, key: IdKey, (end, message): Arrived) -> Result<(), Errno> {
        let listener = self.id(key)?;
        let qp_type = match (message.service, listener.qp_type) {
            (Service::Datagram, _) => QpType::Ud,
            (Service::Connection, QpType::Uc) => QpType::Uc,
            (Service::Connection, _) => QpType::Rc,
        };
        let (channel, space) = (listener.channel, listener.space);
        let request = self.create(channel, space, qp_type);
        let id = self.id(request)?;
        let [from, to] = message.addresses;
        (id.end, id.local, id.remote) = (Some(end), Some(to), Some(from));
        id.peer = Some(message.clone());
        self.enter(request, State::ReqRcvd);
        let (event, request) = ((EventKind::CONNECT_REQUEST, OK), Some(request));
        self.push(Queued { id: key, event, request, message: Some(message), arg: 0 })
    }
}
