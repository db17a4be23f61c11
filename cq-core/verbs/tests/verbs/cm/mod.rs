//! Connecting through a connection manager: both sides, on identifiers that play the events of a script.

mod errors;
mod events;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use cq_verbs::cm::*;
use cq_verbs::descriptor;
use cq_verbs::device::{Device as _, DeviceQp};
use cq_verbs::setup::{CreateError, Errno, ModifyError, QpAttr, QpState};

use super::device::Fake;
use super::tracked::Qp;
use super::*;

/// Longer than anything here takes.
const LONG: Duration = DEADLINE;
const HERE: &str = "192.0.2.1:7471";
const THERE: &str = "192.0.2.2:9";
const OK: Status = Status(0);

/// The calls of an identifier, and the events with which it answers them.
#[derive(Clone, Debug)]
struct Script(Arc<Mutex<State>>, Arc<descriptor::Raiser>);

#[derive(Debug, Default)]
struct State {
    /// The calls, by name. `drop` is the last.
    calls: Vec<&'static str>,
    /// What was sent to the peer.
    sent: Vec<ConnParam>,
    /// The states that the queue pair was changed to, and the READs and atomics.
    modified: Vec<(QpState, Option<u8>)>,
    /// The limits of resolving.
    limits: Vec<Duration>,
    /// What each call is answered with.
    answers: Vec<(&'static str, CmEvent)>,
    /// The calls that fail.
    failures: Vec<(&'static str, Errno)>,
    events: VecDeque<(CmEvent, Option<Id>)>,
    /// There was none when one was to be taken.
    was_empty: bool,
}

impl Script {
    fn new() -> (Self, Id) {
        let (raiser, readable) = descriptor::channel(1).unwrap();
        let script = Self(Arc::default(), Arc::new(raiser));
        (script.clone(), Id(script, readable))
    }

    fn with<T>(&self, then: impl FnOnce(&mut State) -> T) -> T {
        then(&mut self.0.lock().unwrap())
    }

    /// Queues an event.
    fn play(&self, event: CmEvent, request: Option<Id>) {
        self.with(|state| state.events.push_back((event, request)));
        self.1.raise();
    }

    /// Queues an event for a thread that has found none.
    fn play_late(&self, event: CmEvent, request: Option<Id>) {
        let start = Instant::now();
        while !self.with(|state| state.was_empty) {
            assert!(start.elapsed() < DEADLINE, "nobody waits");
            thread::yield_now();
        }
        self.play(event, request);
    }

    fn answer(&self, call: &'static str, event: CmEvent) {
        self.with(|state| state.answers.push((call, event)));
    }

    fn fail(&self, call: &'static str, errno: Errno) {
        self.with(|state| state.failures.push((call, errno)));
    }

    /// The calls since it was asked last.
    fn calls(&self) -> Vec<&'static str> {
        self.with(|state| std::mem::take(&mut state.calls))
    }

    /// Notes a call, and plays its answers.
    fn call(&self, call: &'static str) -> Result<(), Errno> {
        let (failed, answers) = self.with(|state| {
            state.calls.push(call);
            let failed = state.failures.iter().find(|(of, _)| *of == call).map(|(_, errno)| *errno);
            let answers = state.answers.iter().filter(|(of, _)| *of == call);
            (failed, answers.map(|(_, event)| event.clone()).collect::<Vec<_>>())
        });
        if let Some(errno) = failed {
            return Err(errno);
        }
        answers.into_iter().for_each(|event| self.play(event, None));
        Ok(())
    }

    fn send(&self, call: &'static str, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        let sent = ConnParam::new(param.qp_num, param.private_data.to_vec())
            .srq(param.srq)
            .responder_resources(param.responder_resources)
            .initiator_depth(param.initiator_depth)
            .flow_control(param.flow_control)
            .retry_count(param.retry_count)
            .rnr_retry_count(param.rnr_retry_count);
        self.with(|state| state.sent.push(sent));
        self.call(call)
    }
}

/// An identifier that plays a script.
#[derive(Debug)]
struct Id(Script, descriptor::Receiver);

impl Drop for Id {
    fn drop(&mut self) {
        self.0.call("drop").unwrap();
    }
}

impl AsFd for Id {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
}

impl Identifier for Id {
    type Device = Fake;
    type OpenError = CreateError;

    const ADVICE: Advice =
        Advice { no_cm: "start it", address: "look there", route: "look for another" };

    fn new() -> Result<Self, Errno> {
        Err(Errno::ENODEV)
    }

    fn bind(&mut self, addr: SocketAddr) -> Result<(), Errno> {
        assert_eq!(addr, at(HERE));
        self.0.call("bind")
    }

    fn listen(&mut self, backlog: i32) -> Result<(), Errno> {
        assert_eq!(backlog, 128);
        self.0.call("listen")
    }

    fn resolve_addr(&mut self, addr: SocketAddr, limit: Duration) -> Result<(), Errno> {
        assert_eq!(addr, at(THERE));
        self.0.with(|state| state.limits.push(limit));
        self.0.call("resolve_addr")
    }

    fn resolve_route(&mut self, limit: Duration) -> Result<(), Errno> {
        self.0.with(|state| state.limits.push(limit));
        self.0.call("resolve_route")
    }

    fn connect(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        self.0.send("connect", param)
    }

    fn establish(&mut self) -> Result<(), Errno> {
        self.0.call("establish")
    }

    fn accept(&mut self, param: &ConnParam<&[u8]>) -> Result<(), Errno> {
        self.0.send("accept", param)
    }

    fn reject(&mut self, private_data: &[u8]) -> Result<(), Errno> {
        let mut param = ConnParam::default();
        param.private_data = private_data;
        self.0.send("reject", &param)
    }

    fn disconnect(&mut self) -> Result<(), Errno> {
        self.0.call("disconnect")
    }

    fn take_event(&mut self) -> Result<Option<(CmEvent, Option<Self>)>, Errno> {
        let failed = self.0.with(|state| state.failures.iter().any(|(of, _)| *of == "take_event"));
        if failed {
            self.0.call("take_event")?;
        }
        while self.1.take_event().unwrap().is_some() {}
        Ok(self.0.with(|state| {
            state.was_empty |= state.events.is_empty();
            state.events.pop_front()
        }))
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        Some(at(HERE))
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        Some(at(THERE))
    }

    fn device_name(&self) -> Result<String, Errno> {
        Ok("fake".into())
    }

    fn port_number(&self) -> u8 {
        3
    }

    fn open(&self) -> Result<Fake, CreateError> {
        Ok(Fake::default())
    }

    /// The first queue pair is.
    fn is_device_of(&self, qp: &Qp) -> Result<bool, Errno> {
        self.0.call("is_device_of")?;
        Ok(qp.nth == 0)
    }

    fn describe(qp: &Qp) -> QpInfo {
        let device = if qp.nth == 0 { "fake" } else { "another" };
        QpInfo { device: device.into(), srq: true, max_qp_rd_atom: 4, max_qp_init_rd_atom: 8 }
    }

    fn modify_qp(
        &mut self,
        qp: &mut Qp,
        to: QpState,
        rd_atomic: Option<u8>,
    ) -> Result<(), ModifyQpError> {
        self.0.call("modify_qp")?;
        self.0.with(|state| state.modified.push((to, rd_atomic)));
        Ok(qp.modify(&QpAttr::new().state(to))?)
    }
}

fn at(addr: &str) -> SocketAddr {
    addr.parse().unwrap()
}

fn event(kind: EventKind, status: Status) -> CmEvent {
    CmEvent::new(kind, status)
}

/// An event with the peer's private data, and so many READs and atomics of either side.
fn from_peer(kind: EventKind, data: &[u8], reads: [u8; 2]) -> CmEvent {
    let [responder_resources, initiator_depth] = reads;
    let param = ConnParam::new(9, data.to_vec())
        .responder_resources(responder_resources)
        .initiator_depth(initiator_depth);
    let mut event = CmEvent::new(kind, OK);
    event.param = param;
    event
}

/// A route whose script answers this from now on.
fn route(answers: &[CmEvent]) -> (Script, Route<Id>) {
    let (script, id) = Script::new();
    script.answer("resolve_addr", event(EventKind::ADDR_RESOLVED, OK));
    script.answer("resolve_route", event(EventKind::ROUTE_RESOLVED, OK));
    let mut id = Some(id);
    let route = resolve_with(|| Ok(id.take().unwrap()), at(THERE), LONG).unwrap();
    assert_eq!(script.calls(), ["resolve_addr", "resolve_route"]);
    answers.iter().for_each(|answer| script.answer("connect", answer.clone()));
    (script, route)
}

fn listener() -> (Script, Listener<Id>) {
    let (script, id) = Script::new();
    let listener = Listener::bind_with(|| Ok(id), at(HERE)).unwrap();
    assert_eq!(script.calls(), ["bind", "listen"]);
    (script, listener)
}

/// A request with these READs and atomics, whose acceptance is answered so.
fn request(reads: [u8; 2], answers: &[CmEvent]) -> (Script, Request<Id>) {
    let ((of_listener, mut listener), (script, id)) = (listener(), Script::new());
    of_listener.play(from_peer(EventKind::CONNECT_REQUEST, b"hello", reads), Some(id));
    let request = listener.accept(LONG).unwrap();
    answers.iter().for_each(|answer| script.answer("accept", answer.clone()));
    (script, request)
}

fn connected() -> (Script, Connection<Id>, Qp) {
    let (script, route) = route(&[from_peer(EventKind::CONNECT_RESPONSE, b"welcome", [1, 2])]);
    let mut qp = Qp::default();
    let connection = route.connect(&mut qp, b"hello", LONG).unwrap();
    script.calls();
    (script, connection, qp)
}

#[test]
fn the_active_side_resolves_requests_and_establishes() {
    let (script, mut route) = route(&[from_peer(EventKind::CONNECT_RESPONSE, b"welcome", [1, 2])]);
    assert_eq!(route.local_addr(), Some(at(HERE)));
    let device = route.device();
    assert_eq!((device.name().unwrap().as_str(), device.port_number()), ("fake", 3));
    assert_eq!(device.open().unwrap().name(), "fake");

    let mut qp = Qp::default();
    route.init(&mut qp).unwrap();
    assert_eq!(script.calls(), ["is_device_of", "modify_qp"]);
    let mut connection = route.connect(&mut qp, b"hello", LONG).unwrap();
    let init = ["is_device_of", "modify_qp"];
    let rest = ["modify_qp", "modify_qp", "establish"];
    assert_eq!(script.calls(), [&init[..], &["connect"], &init, &rest].concat());
    let i = (QpState::INIT, None);
    let (rtr, rts) = ((QpState::RTR, Some(1)), (QpState::RTS, Some(2)));
    assert_eq!(script.with(|state| state.modified.clone()), [i, i, i, rtr, rts]);
    // As many READs and atomics as the devices allow.
    let request = ConnParam::new(1, b"hello".to_vec())
        .srq(true)
        .responder_resources(255)
        .initiator_depth(255)
        .flow_control(false)
        .retry_count(6)
        .rnr_retry_count(7);
    assert_eq!(script.with(|state| state.sent.clone()), [request]);
    assert_eq!(connection.private_data(), b"welcome");
    assert_eq!(
        (connection.local_addr(), connection.peer_addr()),
        (Some(at(HERE)), Some(at(THERE)))
    );

    connection.disconnect(&mut qp).unwrap();
    assert_eq!(qp.state().unwrap(), QpState::ERR);
    assert_eq!(script.calls(), ["disconnect"]);
    drop(connection);
    assert_eq!(script.calls(), ["drop"]);
}

#[test]
fn the_active_side_caps_reads_and_atomics_of_an_answer_that_has_more_than_was_asked_for() {
    for (answered, used) in [([16, 16], [4, 8]), ([0, 255], [0, 8]), ([255, 0], [4, 0])] {
        let (script, route) = route(&[from_peer(EventKind::CONNECT_RESPONSE, b"", answered)]);
        route.connect(&mut Qp::default(), b"", LONG).unwrap();
        let modified = script.with(|state| state.modified.split_off(2));
        let [responder_resources, initiator_depth] = used.map(Some);
        let rtr = (QpState::RTR, responder_resources);
        assert_eq!(modified, [rtr, (QpState::RTS, initiator_depth)]);
    }
}

#[test]
fn the_passive_side_caps_reads_and_atomics_and_waits_for_the_peer() {
    let established = [event(EventKind::ESTABLISHED, OK)];
    for (asked, allowed) in [([16, 2], [4, 2]), ([3, 16], [3, 8]), ([0, 0], [0, 0])] {
        let (script, mut request) = request(asked, &established);
        assert_eq!((request.private_data(), request.peer_addr()), (&b"hello"[..], Some(at(THERE))));
        assert_eq!(request.device().open().unwrap().name(), "fake");
        let mut qp = Qp::default();
        request.init(&mut qp).unwrap();
        let connection = request.accept(&mut qp, b"welcome", LONG).unwrap();
        let init = ["is_device_of", "modify_qp"];
        let rest = ["modify_qp", "modify_qp", "accept"];
        assert_eq!(script.calls(), [&init[..], &init, &rest].concat());

        let [responder_resources, initiator_depth] = allowed;
        let (init, rtr) = ((QpState::INIT, None), (QpState::RTR, Some(responder_resources)));
        let rts = (QpState::RTS, Some(initiator_depth));
        assert_eq!(script.with(|state| state.modified.clone()), [init, init, rtr, rts]);
        let sent = script.with(|state| state.sent.pop()).unwrap();
        assert_eq!((sent.qp_num, sent.srq, &sent.private_data[..]), (1, true, &b"welcome"[..]));
        assert_eq!([sent.responder_resources, sent.initiator_depth], allowed);
        assert_eq!(
            (connection.private_data(), connection.peer_addr()),
            (&b"hello"[..], Some(at(THERE)))
        );
    }
}

#[test]
fn a_request_does_not_depend_on_its_listener() {
    let (of_listener, mut listener) = listener();
    assert_eq!(listener.local_addr(), Some(at(HERE)));
    let (script, id) = Script::new();
    of_listener.play(from_peer(EventKind::CONNECT_REQUEST, &[], [1, 1]), Some(id));
    let request = listener.accept(LONG).unwrap();
    drop(listener);
    assert_eq!((of_listener.calls(), script.calls()), (vec!["drop"], vec![]));
    // Dropping its identifier is what rejects it.
    drop(request);
    assert_eq!(script.calls(), ["drop"]);
}

#[test]
fn a_request_is_rejected_with_data() {
    let (script, request) = request([1, 1], &[]);
    request.reject(b"full").unwrap();
    assert_eq!(script.calls(), ["reject", "drop"]);
    assert_eq!(script.with(|state| state.sent.pop()).unwrap().private_data, b"full");
}
