//! All that can become of a connection: every order of calls, messages, timeouts and deaths of its two ends.

mod table;

use std::collections::{HashSet, VecDeque};

use cq_verbs::cm::ConnParam;

use super::message::Message;
use super::*;

const RC: Service = Service::Connection;

/// What an end's user was notified of, in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Reported {
    established: bool,
    refused: bool,
    disconnected: bool,
}

/// How far an end is that gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GivesUp {
    No,
    /// Nothing had arrived: it shuts down its socket.
    Shuts,
    /// It receives what arrived in between.
    Receives,
    /// Nothing did: it closes its socket.
    Closes,
}

/// An end, with the messages that have arrived and that it has not received.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct End {
    state: State,
    arrived: VecDeque<Received>,
    is_open: bool,
    /// It receives no more.
    is_shut: bool,
    gives_up: GivesUp,
    /// Its user has destroyed it, or is dead.
    is_gone: bool,
    reported: Reported,
}

impl End {
    fn new(state: State) -> Self {
        let (arrived, reported) = (VecDeque::new(), Reported::default());
        let (gives_up, is_shut, is_gone) = (GivesUp::No, false, false);
        Self { state, arrived, is_open: true, gives_up, is_shut, is_gone, reported }
    }

    /// Goes to a state, and closes its socket where that is not needed.
    fn enter(&mut self, state: State) {
        self.state = state;
        if !state.is_open() {
            self.close();
        }
    }

    fn close(&mut self) {
        self.is_open = false;
        self.arrived.clear();
    }
}

/// What the model leaves out, for a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lacks {
    Nothing,
    /// An end that gives up does not shut down its socket first.
    Shutdown,
    /// An end that gives up does not receive what arrived before it shut down its socket.
    Receiving,
    /// An end whose time is over does not look first whether anything has arrived.
    Looking,
}

/// The active end, and the passive one; and whether anything may have ended the connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World([End; 2], bool);

impl World {
    fn new() -> Self {
        let requested = State::RouteResolved.call(Call::Connect, RC).unwrap().state;
        Self([requested, State::ReqRcvd].map(End::new), false)
    }

    /// An end receives something, and its user an event of each.
    fn receive(&mut self, end: usize, received: Received) {
        let end = &mut self.0[end];
        let Step { state, event, .. } = end.state.receive(received, Service::Connection);
        end.enter(state);
        match event.expect("what is watched or timed is an event").0 {
            EventKind::CONNECT_RESPONSE | EventKind::TIMEWAIT_EXIT => {}
            EventKind::ESTABLISHED => end.reported.established = true,
            EventKind::REJECTED | EventKind::UNREACHABLE => end.reported.refused = true,
            event => {
                assert_eq!(event, EventKind::DISCONNECTED);
                assert!(!end.reported.disconnected, "reported twice");
                assert!(self.1, "nobody has ended it");
                end.reported.disconnected = true;
            }
        }
    }

    /// Sends a message to the other end; false if that takes no more.
    fn send(&mut self, from: usize, message: Received) -> bool {
        let to = &mut self.0[1 - from];
        let takes = to.is_open && !to.is_shut;
        if takes {
            to.arrived.push_back(message);
        }
        takes
    }

    fn call(&mut self, end: usize, call: Call) {
        let Ok(Step { state, sends, .. }) = self.0[end].state.call(call, RC) else { return };
        self.1 |= call == Call::Disconnect;
        let message =
            sends.map(|kind| Message { reason: reason::BY_PEER, ..Message::of(kind) }.received());
        let is_sent = message.is_none_or(|message| self.send(end, message));
        self.0[end].enter(state);
        match (call, is_sent) {
            (Call::Establish, true) => self.0[end].reported.established = true,
            (Call::Establish, false) => {
                let it = &mut self.0[end];
                it.enter(State::Over);
                it.reported.refused = true;
            }
            (Call::Disconnect, false) if sends == Some(Kind::Dreq) => {
                self.receive(end, Received::HungUp)
            }
            _ => {}
        }
    }

    /// Each world that can come next.
    fn next(&self, lacks: Lacks) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |step: &dyn Fn(&mut Self)| {
            let mut world = self.clone();
            step(&mut world);
            if world != *self {
                all.push(world);
            }
        };
        for end in [0, 1] {
            let it = &self.0[end];
            if it.is_gone {
                continue;
            }
            match it.gives_up {
                GivesUp::No => {}
                GivesUp::Shuts => {
                    add(&|world| {
                        let it = &mut world.0[end];
                        it.gives_up = GivesUp::Receives;
                        it.is_shut |= lacks != Lacks::Shutdown;
                    });
                    continue;
                }
                GivesUp::Receives => {
                    add(&|world| {
                        let it = &mut world.0[end];
                        let arrived = it.arrived.pop_front().filter(|_| lacks != Lacks::Receiving);
                        it.gives_up = arrived.map_or(GivesUp::Closes, |_| GivesUp::No);
                        // It can receive nothing more after that.
                        world.1 |= arrived.is_some() && lacks != Lacks::Looking;
                        arrived.into_iter().for_each(|received| world.receive(end, received));
                    });
                    continue;
                }
                GivesUp::Closes => {
                    add(&|world| {
                        world.0[end].gives_up = GivesUp::No;
                        world.1 = true;
                        world.receive(end, Received::TimedOut);
                    });
                    continue;
                }
            }
            let receives = |world: &mut Self| match world.0[end].arrived.pop_front() {
                Some(received) => world.receive(end, received),
                None => world.receive(end, Received::HungUp),
            };
            // Its own shutdown is the end of the socket, too.
            let is_at_end = !self.0[1 - end].is_open || it.is_shut;
            let has_arrived = it.is_open && (!it.arrived.is_empty() || is_at_end);
            if has_arrived && it.state.is_watched(RC) {
                add(&receives);
            }
            if it.state.patience().is_some() {
                match has_arrived && lacks != Lacks::Looking {
                    true => add(&receives),
                    false => add(&|world| world.0[end].gives_up = GivesUp::Shuts),
                }
            }
            for call in [Call::Accept, Call::Reject, Call::Establish, Call::Disconnect] {
                add(&|world| world.call(end, call));
            }
            add(&|world| {
                world.0[end].close();
                world.0[end].is_gone = true;
                world.1 = true;
            });
        }
        all
    }

    /// Whether neither end has anything to receive: only calls could change it, and all times are over.
    fn is_quiet(&self) -> bool {
        let is_quiet = |end: usize| {
            let (it, other) = (&self.0[end], &self.0[1 - end]);
            let receives = it.is_open && it.state.is_watched(RC);
            let is_silent = it.arrived.is_empty() && other.is_open && !it.is_shut;
            it.is_gone
                || it.gives_up == GivesUp::No
                    && it.state.patience().is_none()
                    && (!receives || is_silent)
        };
        is_quiet(0) && is_quiet(1)
    }

    /// What must hold once it is quiet.
    fn check(&self) {
        for end in [0, 1] {
            let (it, other) = (&self.0[end], &self.0[1 - end]);
            assert!(!(it.reported.established && it.reported.refused), "both: {self:?}");
            if it.reported.established && !other.is_gone {
                assert!(other.reported.established, "for one end alone: {self:?}");
            }
            // Whose peer has ended it learns that.
            if it.reported.established && !it.is_gone && !other.is_open {
                assert!(it.reported.disconnected, "not reported: {self:?}");
            }
        }
    }
}

/// Visits all worlds, and returns how many there are.
fn explore(lacks: Lacks) -> usize {
    let (mut seen, mut left) = (HashSet::new(), vec![World::new()]);
    while let Some(world) = left.pop() {
        if !seen.insert(world.clone()) {
            continue;
        }
        if world.is_quiet() {
            world.check();
        }
        left.extend(world.next(lacks));
    }
    seen.len()
}

#[test]
fn a_connection_is_established_for_both_ends_or_none_and_each_is_notified_of_its_end() {
    let worlds = explore(Lacks::Nothing);
    assert!(worlds > 500, "{worlds}");
}

#[test]
#[should_panic(expected = "for one end alone")]
fn control_an_end_that_gives_up_shuts_down_its_socket_first() {
    explore(Lacks::Shutdown);
}

#[test]
#[should_panic(expected = "for one end alone")]
fn control_an_end_that_gives_up_receives_what_had_arrived() {
    explore(Lacks::Receiving);
}

#[test]
#[should_panic(expected = "nobody has ended it")]
fn control_an_end_whose_time_is_over_looks_first_what_has_arrived() {
    explore(Lacks::Looking);
}

#[test]
fn a_datagram_service_has_one_answer() {
    let receive = |received| State::ReqSent.receive(received, Service::Datagram);
    let ends = |event| Step { state: State::Over, sends: None, event: Some(event) };
    let accepted = State::ReqRcvd.call(Call::Accept, Service::Datagram);
    assert_eq!(accepted.map(|called| called.state), Ok(State::Over));
    let rejected = |reason| receive(Received::Message(Kind::Rej, reason));
    let unreachable = |status| ends((EventKind::UNREACHABLE, status));
    assert_eq!(receive(Received::Message(Kind::Rep, 0)), ends((EventKind::ESTABLISHED, OK)));
    assert_eq!(rejected(reason::BY_PEER), unreachable(Status(2)));
    assert_eq!(rejected(reason::NO_LISTENER), unreachable(Status(1)));
    assert_eq!(receive(Received::TimedOut), unreachable(TIMED_OUT));
    assert!(!State::ReqRcvd.is_watched(Service::Datagram));
}

#[test]
fn who_goes_before_the_answer_waited_too_long_and_who_goes_later_has_rejected() {
    let receive = |state: State| state.receive(Received::HungUp, Service::Connection).event;
    let rejected = |reason| Some((EventKind::REJECTED, Status(reason)));
    assert_eq!(receive(State::ReqRcvd), rejected(reason::TIMEOUT));
    for state in [State::ReqSent, State::RepSent, State::RepRcvd] {
        assert_eq!(receive(state), rejected(reason::BY_PEER));
    }
}

#[test]
fn messages_arrive_as_they_were_sent_and_other_bytes_do_not() {
    let message = Message {
        service: Service::Datagram,
        addresses: ["192.0.2.1:1".parse().unwrap(), "[2001:db8::1]:65535".parse().unwrap()],
        psn: 2,
        qkey: 3,
        reason: -4,
        param: ConnParam::new(1, vec![10; 255])
            .srq(true)
            .responder_resources(5)
            .initiator_depth(6)
            .flow_control(true)
            .retry_count(8)
            .rnr_retry_count(9),
        ..Message::of(Kind::Req)
    };
    let bytes = message.to_bytes();
    assert_eq!(bytes.len(), message::MAX);
    assert_eq!(Message::from_bytes(&bytes), Some(message));
    for len in 0..bytes.len() {
        assert_eq!(Message::from_bytes(&bytes[..len]), None, "{len} bytes");
    }
    for wrong in 0..6 {
        let mut bytes = bytes.clone();
        bytes[wrong] = 0xff;
        assert_eq!(Message::from_bytes(&bytes), None, "byte {wrong}");
    }
}
