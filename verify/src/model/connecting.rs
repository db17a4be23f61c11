//! Connecting: the steps of one side of a connection, in every order that M1 and M4 allow. The model does not connect by
//! addresses: the suite compares with this table what each side of a device has called, and which events it has taken.

use cq_verbs::cm::EventKind;

/// The state of an identifier, as its side knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Created.
    Created,
    /// Its address is resolved.
    HasAddress,
    /// Its route is resolved.
    HasRoute,
    /// The active side has requested a connection.
    Requesting,
    /// The active side has the answer.
    Answered,
    /// The passive side has a request.
    Requested,
    /// The passive side has accepted.
    Accepted,
    /// The connection is established.
    Connected,
    /// This side has disconnected.
    Disconnecting,
    /// The connection has ended.
    Disconnected,
    /// There is no connection any more, or never was: no event follows.
    Over,
}

/// What happens at a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It takes this event.
    Event(EventKind),
    /// It makes this call, which succeeds.
    Call(Call),
}

/// A call of a side that is connecting or connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `rdma_connect`.
    Connect,
    /// `rdma_establish`.
    Establish,
    /// `rdma_accept`.
    Accept,
    /// `rdma_reject`.
    Reject,
    /// `rdma_disconnect`.
    Disconnect,
}

const fn event(from: Side, event: EventKind, to: Side) -> (Side, Step, Side) {
    (from, Step::Event(event), to)
}

const fn call(from: Side, call: Call, to: Side) -> (Side, Step, Side) {
    (from, Step::Call(call), to)
}

/// Every step: the state in which it has its place, and the state after it.
pub const STEPS: &[(Side, Step, Side)] = &[
    event(Side::Created, EventKind::ADDR_RESOLVED, Side::HasAddress),
    event(Side::HasAddress, EventKind::ROUTE_RESOLVED, Side::HasRoute),
    call(Side::HasRoute, Call::Connect, Side::Requesting),
    event(Side::Requesting, EventKind::CONNECT_RESPONSE, Side::Answered),
    event(Side::Requesting, EventKind::REJECTED, Side::Over),
    event(Side::Requesting, EventKind::UNREACHABLE, Side::Over),
    call(Side::Answered, Call::Establish, Side::Connected),
    call(Side::Answered, Call::Reject, Side::Over),
    event(Side::Answered, EventKind::REJECTED, Side::Over),
    call(Side::Requested, Call::Accept, Side::Accepted),
    call(Side::Requested, Call::Reject, Side::Over),
    event(Side::Requested, EventKind::REJECTED, Side::Over),
    event(Side::Accepted, EventKind::ESTABLISHED, Side::Connected),
    event(Side::Accepted, EventKind::REJECTED, Side::Over),
    event(Side::Accepted, EventKind::UNREACHABLE, Side::Over),
    // The passive side gave up while it was told that the connection is established.
    event(Side::Connected, EventKind::REJECTED, Side::Over),
    call(Side::Connected, Call::Disconnect, Side::Disconnecting),
    event(Side::Connected, EventKind::DISCONNECTED, Side::Disconnected),
    event(Side::Disconnecting, EventKind::DISCONNECTED, Side::Disconnected),
    event(Side::Disconnecting, EventKind::REJECTED, Side::Over),
    call(Side::Disconnecting, Call::Disconnect, Side::Disconnecting),
    call(Side::Disconnected, Call::Disconnect, Side::Disconnected),
    event(Side::Disconnected, EventKind::TIMEWAIT_EXIT, Side::Over),
    // There is nothing to disconnect, or nothing any more.
    call(Side::Requesting, Call::Disconnect, Side::Requesting),
    call(Side::Answered, Call::Disconnect, Side::Answered),
    call(Side::Requested, Call::Disconnect, Side::Requested),
    call(Side::Accepted, Call::Disconnect, Side::Accepted),
    call(Side::Over, Call::Disconnect, Side::Over),
];

impl Side {
    /// The state after a step; `None` if that has no place here.
    #[must_use]
    pub fn after(self, step: Step) -> Option<Self> {
        STEPS.iter().find(|(from, which, _)| (*from, *which) == (self, step)).map(|&(.., to)| to)
    }

    /// The calls that have their place here.
    pub fn calls(self) -> impl Iterator<Item = Call> {
        STEPS.iter().filter_map(move |&(from, step, _)| match step {
            Step::Call(call) if from == self => Some(call),
            _ => None,
        })
    }

    /// Whether an event follows once the other side has been destroyed.
    #[must_use]
    pub fn hears_of_a_peer_that_is_gone(self) -> bool {
        let is_told = |kind| self.after(Step::Event(kind)).is_some();
        is_told(EventKind::REJECTED) || is_told(EventKind::DISCONNECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_one_outcome_and_no_event_is_repeated() {
        for &(from, step, to) in STEPS {
            let same = STEPS.iter().filter(|(other, which, _)| (*other, *which) == (from, step));
            assert_eq!(same.count(), 1, "{step:?} in {from:?}");
            assert_eq!(from.after(step), Some(to));
            if let Step::Event(_) = step {
                assert_eq!(to.after(step), None, "{step:?} twice");
            }
        }
        assert!(Side::Over.calls().eq([Call::Disconnect]));
    }

    #[test]
    fn nothing_precedes_what_it_needs() {
        use EventKind as K;
        let established = Step::Event(K::ESTABLISHED);
        for side in [Side::Created, Side::Requesting, Side::Answered, Side::Requested] {
            assert_eq!(side.after(established), None, "{side:?}");
            assert_eq!(side.after(Step::Event(K::TIMEWAIT_EXIT)), None, "{side:?}");
        }
        assert!(Side::Accepted.hears_of_a_peer_that_is_gone());
        assert!(!Side::Over.hears_of_a_peer_that_is_gone());
    }
}
