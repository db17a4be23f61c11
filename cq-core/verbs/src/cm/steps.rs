//! The steps of both sides: events with a deadline, a queue pair whose states follow the connection manager, and calls
//! whose errors name what was attempted.

use std::time::{Duration, Instant};

use cq_core::transport::Woken;
use rustix::event::{PollFd, PollFlags};

use super::{CmError, CmEvent, ConnParam, EventKind, Identifier, ModifyQpError, QpOf, Status};
use crate::descriptor::{refused, sleep};
use crate::device::DeviceQp;
use crate::setup::{DeviceError, Errno, QpState};

/// An identifier, if there is a connection manager.
pub(super) fn created<I: Identifier>(id: Result<I, Errno>) -> Result<I, CmError> {
    id.map_err(|errno| CmError::NoCm { errno, advice: I::ADVICE.no_cm })
}

/// The next event, and the identifier that a connection request brings.
pub(super) fn next<I: Identifier>(
    id: &mut I,
    deadline: Option<Instant>,
    awaited: &'static str,
) -> Result<(CmEvent, Option<I>), CmError> {
    loop {
        if let Some(taken) = attempt(id.take_event(), "read an event of the connection manager")? {
            return Ok(taken);
        }
        match sleep(&mut [PollFd::new(id, PollFlags::IN)], deadline) {
            Ok(Woken::DeadlinePassed) => return Err(CmError::TimedOut { awaited }),
            // A signal does not end the wait.
            Ok(_) => {}
            Err(errno) => return Err(refused("wait for the connection manager", errno).into()),
        }
    }
}

/// The expected next event; another one is an error.
pub(super) fn expect<I: Identifier>(
    id: &mut I,
    expected: EventKind,
    deadline: Option<Instant>,
    awaited: &'static str,
) -> Result<CmEvent, CmError> {
    const TIMED_OUT: Status = Status(-Errno::ETIMEDOUT.0);
    loop {
        let (event, _) = next(id, deadline, awaited)?;
        match (event.kind, event.status) {
            (kind, Status(0)) if kind == expected => return Ok(event),
            (EventKind::ADDR_CHANGE, _) => {}
            // The connection manager's timeout has passed.
            (EventKind::ADDR_ERROR | EventKind::ROUTE_ERROR, TIMED_OUT) => {
                return Err(CmError::TimedOut { awaited });
            }
            _ => return Err(CmError::of(event, id.peer_addr(), &I::ADVICE)),
        }
    }
}

/// The time left.
pub(super) fn left(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
}

pub(super) const fn bounded(private_data: &[u8], max: usize) -> Result<(), CmError> {
    match private_data.len() {
        len if len > max => Err(CmError::PrivateDataTooLong { len, max }),
        _ => Ok(()),
    }
}

/// The attributes of this side's queue pair that the peer needs.
pub(super) fn param<'a, I: Identifier>(
    qp: &QpOf<I>,
    private_data: &'a [u8],
) -> ConnParam<&'a [u8]> {
    ConnParam::new(qp.number(), private_data).srq(I::describe(qp).srq)
}

/// Takes the queue pair to RTS. Returns how many READs and atomics of the peer it answers at a time, and how many of its own it
/// has outstanding, where the peer has sent these parameters: what both devices allow. The connection manager has what the
/// peer has sent.
pub(super) fn start<I: Identifier>(
    id: &mut I,
    qp: &mut QpOf<I>,
    peer: &ConnParam,
) -> Result<(u8, u8), CmError> {
    let device = I::describe(qp);
    let responder_resources = peer.responder_resources.min(device.max_qp_rd_atom);
    let initiator_depth = peer.initiator_depth.min(device.max_qp_init_rd_atom);
    enter(id, qp, QpState::RTR, Some(responder_resources))?;
    enter(id, qp, QpState::RTS, Some(initiator_depth))?;
    Ok((responder_resources, initiator_depth))
}

/// Changes the queue pair to a state, with the attributes that the connection manager has.
fn enter<I: Identifier>(
    id: &mut I,
    qp: &mut QpOf<I>,
    to: QpState,
    rd_atomic: Option<u8>,
) -> Result<(), CmError> {
    id.modify_qp(qp, to, rd_atomic).or_else(|error| match error {
        ModifyQpError::Modify(error) => Err(error.into()),
        ModifyQpError::Attributes(errno) => {
            or_abandoned(Err(errno), "ask for the queue pair's attributes")
        }
    })
}

/// Changes a queue pair of the connection's device to INIT.
pub(super) fn init<I: Identifier>(id: &mut I, qp: &mut QpOf<I>) -> Result<(), CmError> {
    check_device(id, qp)?;
    enter(id, qp, QpState::INIT, None)
}

/// A number names a queue pair of the connection's device only.
fn check_device<I: Identifier>(id: &I, qp: &QpOf<I>) -> Result<(), CmError> {
    const NAMING: &str = "name the connection's device";
    if attempt(id.is_device_of(qp), NAMING)? {
        return Ok(());
    }
    let (queue_pair, connection) = (I::describe(qp).device, attempt(id.device_name(), NAMING)?);
    Err(CmError::OtherDevice { queue_pair, connection })
}

/// Says what was attempted when it fails.
pub(super) fn attempt<V>(step: Result<V, Errno>, attempt: &'static str) -> Result<V, DeviceError> {
    step.map_err(|errno| DeviceError::cannot(attempt, errno))
}

/// A step of connecting. EINVAL says that the peer has given up.
pub(super) fn or_abandoned<V>(
    step: Result<V, Errno>,
    attempted: &'static str,
) -> Result<V, CmError> {
    match step {
        Err(Errno::EINVAL) => Err(CmError::Abandoned),
        step => Ok(attempt(step, attempted)?),
    }
}
