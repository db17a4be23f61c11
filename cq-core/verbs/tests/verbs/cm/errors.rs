//! What fails: by an event, by an error number, and before the connection manager is asked.

use super::*;

/// What each step that waits for an event of its identifier makes of these events: resolving the address and the route,
/// requesting a connection, accepting one.
fn outcomes(events: &[CmEvent]) -> [CmError; 4] {
    let resolving = |steps: &[(&'static str, &[CmEvent])]| {
        let (script, id) = Script::new();
        for (step, events) in steps {
            events.iter().for_each(|event| script.answer(step, event.clone()));
        }
        let mut id = Some(id);
        resolve_with(|| Ok(id.take().unwrap()), at(THERE), LONG).unwrap_err()
    };
    let resolved = [event(EventKind::ADDR_RESOLVED, OK)];
    let mut qp = Qp::default();
    [
        resolving(&[("resolve_addr", events)]),
        resolving(&[("resolve_addr", &resolved), ("resolve_route", events)]),
        route(events).1.connect(&mut qp, &[], LONG).unwrap_err(),
        request([1, 1], events).1.accept(&mut qp, &[], LONG).unwrap_err(),
    ]
}

#[test]
fn each_event_that_is_not_awaited_is_an_error() {
    let (status, addr) = (Status(-5), at(THERE));
    let reason = RejectReason::BY_PEER;
    let mut rejected = from_peer(EventKind::REJECTED, b"full", [0, 0]);
    rejected.status = Status(reason.0);
    let unexpected = |kind| (event(kind, status), CmError::Unexpected(Event { kind, status }));
    let cases = [
        (
            event(EventKind::ADDR_ERROR, status),
            CmError::Address { addr, status, advice: "look there" },
        ),
        (
            event(EventKind::ROUTE_ERROR, status),
            CmError::Route { status, advice: "look for another" },
        ),
        (event(EventKind::UNREACHABLE, status), CmError::Unreachable(status)),
        (rejected, CmError::Rejected { reason, private_data: b"full".to_vec() }),
        (event(EventKind::CONNECT_ERROR, status), CmError::Failed(status)),
        (event(EventKind::DISCONNECTED, OK), CmError::Disconnected),
        (event(EventKind::DEVICE_REMOVAL, OK), CmError::DeviceRemoved),
        unexpected(EventKind::MULTICAST_JOIN),
        unexpected(EventKind::TIMEWAIT_EXIT),
        unexpected(EventKind(99)),
        // Those that are awaited, where they failed.
        unexpected(EventKind::ADDR_RESOLVED),
        unexpected(EventKind::ROUTE_RESOLVED),
        unexpected(EventKind::CONNECT_RESPONSE),
        unexpected(EventKind::ESTABLISHED),
    ];
    for (event, error) in cases {
        let steps = [error.clone(), error.clone(), error.clone(), error];
        assert_eq!(outcomes(std::slice::from_ref(&event)), steps);
        // A change of the address is none.
        assert_eq!(outcomes(&[CmEvent::new(EventKind::ADDR_CHANGE, OK), event]), steps);
    }
}

#[test]
fn a_listener_skips_changed_addresses_and_returns_what_ends_it() {
    let ((script, mut listener), (of_request, id)) = (listener(), Script::new());
    script.play(event(EventKind::ADDR_CHANGE, OK), None);
    script.play(from_peer(EventKind::CONNECT_REQUEST, &[], [1, 1]), Some(id));
    drop(listener.accept(LONG).unwrap());
    assert_eq!(of_request.calls(), ["drop"]);

    script.play(event(EventKind::DEVICE_REMOVAL, OK), None);
    assert_eq!(listener.accept(LONG).unwrap_err(), CmError::DeviceRemoved);
    for kind in [EventKind::CONNECT_REQUEST, EventKind::ADDR_ERROR] {
        script.play(event(kind, OK), None);
        let unexpected = CmError::Unexpected(Event { kind, status: OK });
        assert_eq!(listener.accept(LONG).unwrap_err(), unexpected);
    }
}

#[test]
fn without_a_connection_manager_it_says_so() {
    let error = CmError::NoCm { errno: Errno::ENODEV, advice: "start it" };
    assert_eq!(resolve::<Id>(at(THERE), LONG).unwrap_err(), error);
    assert_eq!(Listener::<Id>::bind(at(HERE)).unwrap_err(), error);
}

/// What comes of it where one call of an identifier fails.
fn failing(
    call: &'static str,
    errno: Errno,
    then: impl FnOnce(Id) -> Result<(), CmError>,
) -> CmError {
    let (script, id) = Script::new();
    for (step, answer) in [
        ("resolve_addr", EventKind::ADDR_RESOLVED),
        ("resolve_route", EventKind::ROUTE_RESOLVED),
        ("connect", EventKind::CONNECT_RESPONSE),
        ("accept", EventKind::ESTABLISHED),
    ] {
        script.answer(step, event(answer, OK));
    }
    script.fail(call, errno);
    let error = then(id).unwrap_err();
    assert_eq!(script.calls().iter().rev().take(2).collect::<Vec<_>>(), [&"drop", &call]);
    error
}

fn connect(id: Id) -> Result<(), CmError> {
    let (mut id, mut qp) = (Some(id), Qp::default());
    let route = resolve_with(|| Ok(id.take().unwrap()), at(THERE), LONG)?;
    route.connect(&mut qp, &[], LONG)?.disconnect(&mut qp)
}

fn bind(id: Id) -> Result<(), CmError> {
    Listener::bind_with(|| Ok(id), at(HERE)).map(drop)
}

/// The request that brings an identifier.
fn requested(id: Id) -> Request<Id> {
    let (script, mut listener) = listener();
    script.play(from_peer(EventKind::CONNECT_REQUEST, &[], [1, 1]), Some(id));
    listener.accept(LONG).unwrap()
}

fn accept(id: Id) -> Result<(), CmError> {
    requested(id).accept(&mut Qp::default(), &[], LONG).map(drop)
}

fn reject(id: Id) -> Result<(), CmError> {
    requested(id).reject(&[])
}

#[test]
fn each_call_that_fails_says_what_was_attempted() {
    let cases: [(_, fn(Id) -> _, _); 12] = [
        ("bind", bind, "bind to the address"),
        ("listen", bind, "listen at the address"),
        ("take_event", connect, "read an event of the connection manager"),
        ("is_device_of", connect, "name the connection's device"),
        ("modify_qp", connect, "ask for the queue pair's attributes"),
        ("connect", connect, "request a connection"),
        ("establish", connect, "complete the connection"),
        ("disconnect", connect, "end the connection"),
        ("is_device_of", accept, "name the connection's device"),
        ("modify_qp", accept, "ask for the queue pair's attributes"),
        ("accept", accept, "accept the connection"),
        ("reject", reject, "reject the connection"),
    ];
    for (call, then, attempt) in cases {
        let error = failing(call, Errno::ENODEV, then);
        let text = format!("cannot {attempt}: no such device (ENODEV, errno 19)");
        assert_eq!(error.to_string(), text, "{call}");
        assert!(matches!(error, CmError::Refused(_)), "{error:?}");
    }
}

#[test]
fn an_address_or_a_route_that_is_refused_is_an_error_of_its_own() {
    let (status, addr) = (Errno::ENODEV.into(), at(THERE));
    let error = failing("resolve_addr", Errno::ENODEV, connect);
    assert_eq!(error, CmError::Address { addr, status, advice: "look there" });
    let error = failing("resolve_route", Errno::ENODEV, connect);
    assert_eq!(error, CmError::Route { status, advice: "look for another" });
}

#[test]
fn einval_says_that_the_peer_has_given_up() {
    let cases: [(_, fn(Id) -> _); 3] =
        [("accept", accept), ("modify_qp", accept), ("modify_qp", connect)];
    for (call, then) in cases {
        assert_eq!(failing(call, Errno::EINVAL, then), CmError::Abandoned);
    }
}

#[test]
fn negative_statuses_and_reasons_are_error_numbers() {
    for errno in [Errno::ETIMEDOUT, Errno::ECONNREFUSED, Errno(i32::MAX)] {
        let text = std::io::Error::from_raw_os_error(errno.0).to_string();
        assert_eq!(
            [Status::from(errno).to_string(), RejectReason(-errno.0).to_string()],
            [text.clone(), text]
        );
    }
    assert!(!Status(i32::MIN).to_string().is_empty(), "it has no positive number");
}

#[test]
fn too_much_private_data_is_not_sent() {
    let (data, mut qp) = ([7; 200], Qp::default());
    type Active = Route<Id>;
    type Passive = Request<Id>;
    let too_long = |max| CmError::PrivateDataTooLong { len: max + 1, max };
    let (script, active) = route(&[]);
    let error = active.connect(&mut qp, &data[..=Active::MAX_REQUEST], LONG).unwrap_err();
    assert_eq!((error, script.calls()), (too_long(56), vec!["drop"]));
    let (script, passive) = request([1, 1], &[]);
    let error = passive.accept(&mut qp, &data[..=Passive::MAX_ANSWER], LONG).unwrap_err();
    assert_eq!((error, script.calls()), (too_long(196), vec!["drop"]));
    let (script, passive) = request([1, 1], &[]);
    let error = passive.reject(&data[..=Passive::MAX_REFUSAL]).unwrap_err();
    assert_eq!((error, script.calls()), (too_long(148), vec!["drop"]));
    assert_eq!(qp.state().unwrap(), QpState::RESET);

    let (script, active) = route(&[event(EventKind::CONNECT_RESPONSE, OK)]);
    active.connect(&mut qp, &data[..Active::MAX_REQUEST], LONG).unwrap();
    let (of_answer, passive) = request([1, 1], &[event(EventKind::ESTABLISHED, OK)]);
    passive.accept(&mut qp, &data[..Passive::MAX_ANSWER], LONG).unwrap();
    let (of_refusal, passive) = request([1, 1], &[]);
    passive.reject(&data[..Passive::MAX_REFUSAL]).unwrap();
    let sent = [script, of_answer, of_refusal]
        .map(|script| script.with(|state| state.sent.pop()).unwrap().private_data.len());
    assert_eq!(sent, [56, 196, 148]);
}

#[test]
fn a_queue_pair_of_another_device_is_refused_and_unchanged() {
    let mut qp = Qp::default();
    qp.nth = 1;
    let refused = CmError::OtherDevice { queue_pair: "another".into(), connection: "fake".into() };
    let (script, route) = route(&[]);
    assert_eq!(route.connect(&mut qp, &[], LONG).unwrap_err(), refused);
    assert_eq!(script.calls(), ["is_device_of", "drop"]);
    let (script, mut request) = request([1, 1], &[]);
    assert_eq!(request.init(&mut qp).unwrap_err(), refused);
    assert_eq!(request.accept(&mut qp, &[], LONG).unwrap_err(), refused);
    assert_eq!(script.calls(), ["is_device_of", "is_device_of", "drop"]);
    assert_eq!(qp.state().unwrap(), QpState::RESET);
}

#[test]
fn no_peer_hears_of_a_queue_pair_that_does_not_change() {
    let error = ModifyError::Illegal { from: QpState::RTS, to: QpState::INIT };
    let mut qp = Qp::default();
    *qp.refuses.lock().unwrap() = Some(error);
    let (script, route) = route(&[]);
    assert_eq!(route.connect(&mut qp, &[], LONG).unwrap_err(), CmError::Modify(error));
    assert_eq!(script.calls(), ["is_device_of", "modify_qp", "drop"]);
    let (script, request) = request([1, 1], &[]);
    assert_eq!(request.accept(&mut qp, &[], LONG).unwrap_err(), CmError::Modify(error));
    assert_eq!(script.calls(), ["is_device_of", "modify_qp", "drop"]);
    // Nor is the connection ended.
    let (script, mut connection, _) = connected();
    assert_eq!(connection.disconnect(&mut qp).unwrap_err(), CmError::Modify(error));
    assert_eq!(script.calls(), [""; 0]);
}
