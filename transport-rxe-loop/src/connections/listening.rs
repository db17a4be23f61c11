//! How a listener takes requests.

use cq_verbs::cm::EventKind;
use cq_verbs::setup::QpType;
use rustix::io::Errno;

use super::carrier::Arrived;
use super::id::Id;
use super::{All, IdKey, Queued};
use crate::protocol::cm::{OK, Service, State};

/// What a backlog that is not above 0 stands for, and the most that one can be, as the kernel has it.
pub const MAX_BACKLOG: u32 = 1024;

impl All {
    /// Accepts the requests that have arrived at an identifier, if it listens: as many as may wait.
    pub(super) fn accept_requests(&mut self, key: IdKey) -> Result<(), Errno> {
        loop {
            let Ok(Id { listener: Some(listener), queued, backlog, .. }) = self.id(key) else {
                return Ok(());
            };
            let arrived = if queued < backlog { listener.next() } else { return Ok(()) };
            match arrived {
                Err(Errno::AGAIN) => return Ok(()),
                arrived => self.requested(key, arrived?)?,
            }
        }
    }

    /// Makes the identifier of a request, and its event. If it can't be made, the peer is rejected.
    fn requested(&mut self, key: IdKey, (end, message): Arrived) -> Result<(), Errno> {
        let listener = self.id(key)?;
        let connected = if listener.qp_type == QpType::UC { QpType::UC } else { QpType::RC };
        let is_connected = message.service == Service::Connection;
        let qp_type = if is_connected { connected } else { QpType::UD };
        listener.count_queued(1);
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
