//! All that can become of a connection: every order of calls, messages, timeouts and deaths of its two ends.

use std::collections::{HashSet, VecDeque};

use super::message::{Kind, Message};
use super::*;

/// What an end's user was told, in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Told {
    established: bool,
    refused: bool,
    disconnected: bool,
}

/// How far an end is that gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GivesUp {
    No,
    /// It hears what has arrived.
    Hears,
    /// Nothing had: it closes its socket.
    Closes,
}

/// An end, with the messages that have arrived and that it has not heard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct End {
    state: State,
    arrived: VecDeque<Heard>,
    is_open: bool,
    /// It receives no more.
    is_shut: bool,
    gives_up: GivesUp,
    /// Its user has destroyed it, or is dead.
    is_gone: bool,
    told: Told,
}

impl End {
    fn new(state: State) -> Self {
        let (arrived, told) = (VecDeque::new(), Told::default());
        let (gives_up, is_shut, is_gone) = (GivesUp::No, false, false);
        Self { state, arrived, is_open: true, gives_up, is_shut, is_gone, told }
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
    /// An end that gives up does not hear what had arrived.
    Hearing,
}

/// The active end, and the passive one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World([End; 2]);

impl World {
    fn new() -> Self {
        let requested = State::Idle.call(Call::Connect).unwrap().state;
        Self([requested, State::ReqRcvd].map(End::new))
    }

    /// An end hears something: it is told of each.
    fn hear(&mut self, end: usize, heard: Heard) {
        let end = &mut self.0[end];
        let After { state, event } = end.state.hear(heard, Service::Connection);
        end.enter(state);
        match event.expect("what is watched or timed is an event") {
            Event::Responded | Event::TimewaitExit => {}
            Event::Established => end.told.established = true,
            Event::Rejected(_) | Event::Unreachable(_) => end.told.refused = true,
            Event::Disconnected(_) => {
                assert!(!end.told.disconnected, "told twice");
                end.told.disconnected = true;
            }
        }
    }

    /// Sends a message to the other end; false if that takes no more.
    fn send(&mut self, from: usize, message: Heard) -> bool {
        let to = &mut self.0[1 - from];
        let takes = to.is_open && !to.is_shut;
        if takes {
            to.arrived.push_back(message);
        }
        takes
    }

    fn call(&mut self, end: usize, call: Call) {
        let Ok(Called { state, sends }) = self.0[end].state.call(call) else { return };
        let message =
            sends.map(|kind| Message { reason: reason::BY_PEER, ..Message::of(kind) }.heard());
        let is_sent = message.is_none_or(|message| self.send(end, message));
        self.0[end].enter(state);
        match (call, is_sent) {
            (Call::Establish, true) => self.0[end].told.established = true,
            (Call::Establish, false) => {
                let it = &mut self.0[end];
                it.enter(State::Idle);
                it.told.refused = true;
            }
            (Call::Disconnect, false) if sends == Some(Kind::Dreq) => self.hear(end, Heard::HungUp),
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
                GivesUp::Hears => {
                    add(&|world| {
                        let it = &mut world.0[end];
                        let arrived = it.arrived.pop_front().filter(|_| lacks != Lacks::Hearing);
                        it.gives_up = arrived.map_or(GivesUp::Closes, |_| GivesUp::No);
                        arrived.into_iter().for_each(|heard| world.hear(end, heard));
                    });
                    continue;
                }
                GivesUp::Closes => {
                    add(&|world| {
                        world.0[end].gives_up = GivesUp::No;
                        world.hear(end, Heard::TimedOut);
                    });
                    continue;
                }
            }
            if it.is_open && it.state.is_watched(Service::Connection) {
                match it.arrived.front() {
                    Some(&heard) => add(&|world| {
                        world.0[end].arrived.pop_front();
                        world.hear(end, heard);
                    }),
                    None if !self.0[1 - end].is_open => {
                        add(&|world| world.hear(end, Heard::HungUp))
                    }
                    None => {}
                }
            }
            if it.state.patience().is_some() {
                add(&|world| {
                    let it = &mut world.0[end];
                    it.gives_up = GivesUp::Hears;
                    it.is_shut |= lacks != Lacks::Shutdown;
                });
            }
            for call in [Call::Accept, Call::Reject, Call::Establish, Call::Disconnect] {
                add(&|world| world.call(end, call));
            }
            add(&|world| {
                world.0[end].close();
                world.0[end].is_gone = true;
            });
        }
        all
    }

    /// Whether neither end has anything to hear: only calls could change it, and all times are over.
    fn is_quiet(&self) -> bool {
        let is_quiet = |end: usize| {
            let (it, other) = (&self.0[end], &self.0[1 - end]);
            let hears = it.is_open && it.state.is_watched(Service::Connection);
            let is_silent = it.arrived.is_empty() && other.is_open;
            it.is_gone
                || it.gives_up == GivesUp::No
                    && it.state.patience().is_none()
                    && (!hears || is_silent)
        };
        is_quiet(0) && is_quiet(1)
    }

    /// What must hold once it is quiet.
    fn check(&self) {
        for end in [0, 1] {
            let (it, other) = (&self.0[end], &self.0[1 - end]);
            assert!(!(it.told.established && it.told.refused), "both: {self:?}");
            if it.told.established && !other.is_gone {
                assert!(other.told.established, "for one end alone: {self:?}");
            }
            // Whose peer has ended it learns that.
            if it.told.established && !it.is_gone && !other.is_open {
                assert!(it.told.disconnected, "not told: {self:?}");
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
fn a_connection_is_established_for_both_ends_or_none_and_each_is_told_of_its_end() {
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
fn control_an_end_that_gives_up_hears_what_had_arrived() {
    explore(Lacks::Hearing);
}

#[test]
fn a_datagram_service_has_one_answer() {
    let hear = |heard| State::ReqSent.hear(heard, Service::Datagram);
    let ends = |event| After { state: State::Idle, event: Some(event) };
    assert_eq!(hear(Heard::Rep), ends(Event::Established));
    assert_eq!(hear(Heard::Rej(reason::BY_PEER)), ends(Event::Unreachable(2)));
    assert_eq!(hear(Heard::Rej(reason::NO_LISTENER)), ends(Event::Unreachable(1)));
    assert_eq!(hear(Heard::TimedOut), ends(Event::Unreachable(TIMED_OUT)));
    assert!(!State::ReqRcvd.is_watched(Service::Datagram));
}

#[test]
fn who_goes_before_the_answer_waited_too_long_and_who_goes_later_has_rejected() {
    let hear = |state: State| state.hear(Heard::HungUp, Service::Connection).event;
    assert_eq!(hear(State::ReqRcvd), Some(Event::Rejected(reason::TIMEOUT)));
    for state in [State::ReqSent, State::RepSent, State::RepRcvd] {
        assert_eq!(hear(state), Some(Event::Rejected(reason::BY_PEER)));
    }
}

#[test]
fn messages_arrive_as_they_were_sent_and_other_bytes_do_not() {
    let message = Message {
        service: Service::Datagram,
        addresses: ["192.0.2.1:1".parse().unwrap(), "[2001:db8::1]:65535".parse().unwrap()],
        qp_num: 1,
        psn: 2,
        qkey: 3,
        reason: -4,
        srq: true,
        responder_resources: 5,
        initiator_depth: 6,
        flow_control: 7,
        retry_count: 8,
        rnr_retry_count: 9,
        private_data: vec![10; 255],
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
