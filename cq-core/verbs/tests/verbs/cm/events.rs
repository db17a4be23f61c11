//! The events of connections, and waiting for them.

use super::*;

/// More than the clock can express.
const FOR_EVER: Duration = Duration::MAX;
const NOW: Duration = Duration::ZERO;

fn timed_out(awaited: &'static str) -> CmError {
    CmError::TimedOut { awaited }
}

#[test]
fn a_connection_has_ended_once_one_side_disconnects() {
    let (script, mut connection, _qp) = connected();
    assert_eq!(connection.check_ended(), Ok(false));
    script.play(event(EventKind::ADDR_CHANGE, OK), None);
    script.play(event(EventKind::DISCONNECTED, OK), None);
    assert_eq!(connection.check_ended(), Ok(true));
    connection.wait_disconnected(NOW).unwrap();
    // What comes after that is not lost.
    script.play(event(EventKind::TIMEWAIT_EXIT, OK), None);
    assert_eq!(connection.event(LONG).unwrap().kind, EventKind::TIMEWAIT_EXIT);
}

#[test]
fn events_are_returned_in_order_and_remembered() {
    let (script, mut connection, _qp) = connected();
    for (kind, status) in
        [(EventKind::ADDR_CHANGE, OK), (EventKind(99), Status(7)), (EventKind::DISCONNECTED, OK)]
    {
        script.play(event(kind, status), None);
        assert_eq!(connection.event(LONG), Ok(Event { kind, status }));
    }
    assert_eq!(connection.check_ended(), Ok(true));
}

#[test]
fn a_removed_device_ends_its_connections() {
    let (script, mut connection, _qp) = connected();
    script.play(event(EventKind::DEVICE_REMOVAL, OK), None);
    assert_eq!(connection.check_ended(), Err(CmError::DeviceRemoved));
    assert_eq!(connection.check_ended(), Ok(true));
}

#[test]
fn a_wait_ends_with_the_event() {
    let (script, mut connection, _qp) = connected();
    let waiter = thread::spawn(move || connection.wait_disconnected(LONG));
    script.play_late(event(EventKind::DISCONNECTED, OK), None);
    waiter.join().unwrap().unwrap();

    let ((script, mut listener), (of_request, id)) = (listener(), Script::new());
    let waiter = thread::spawn(move || listener.accept(FOR_EVER));
    script.play_late(from_peer(EventKind::CONNECT_REQUEST, b"late", [1, 1]), Some(id));
    assert_eq!(waiter.join().unwrap().unwrap().private_data(), b"late");
    assert_eq!(of_request.calls(), ["drop"]);
}

#[test]
fn descriptors_are_readable_while_there_is_an_event() {
    let (script, mut connection, _qp) = connected();
    let is_readable =
        |fd: BorrowedFd<'_>| descriptor::block(fd, Some(Instant::now())).unwrap() == Woken::Event;
    assert!(!is_readable(connection.as_fd()));
    script.play(event(EventKind::ADDR_CHANGE, OK), None);
    assert!(is_readable(connection.as_fd()));
    connection.event(NOW).unwrap();
    connection.event(NOW).unwrap_err();
    assert!(!is_readable(connection.as_fd()));

    let (script, listener) = listener();
    assert!(!is_readable(listener.as_fd()));
    script.play(event(EventKind::ADDR_CHANGE, OK), None);
    assert!(is_readable(listener.as_fd()));
}

#[test]
fn each_wait_has_a_limit() {
    let (mut qp, confirmation) = (Qp::default(), "the peer's confirmation");
    let (script, id) = Script::new();
    script.answer("resolve_addr", event(EventKind::ADDR_RESOLVED, OK));
    let mut id = Some(id);
    let error = resolve_with(|| Ok(id.take().unwrap()), at(THERE), NOW).unwrap_err();
    assert_eq!(error, timed_out("the route to the address"));
    let error = resolve_with(|| Ok(Script::new().1), at(THERE), NOW).unwrap_err();
    assert_eq!(error, timed_out("the address"));
    let error = route(&[]).1.connect(&mut qp, &[], NOW).unwrap_err();
    assert_eq!(error, timed_out("the peer's answer"));
    let error = listener().1.accept(NOW).unwrap_err();
    assert_eq!(error, timed_out("a connection request"));
    let error = request([1, 1], &[]).1.accept(&mut qp, &[], NOW).unwrap_err();
    assert_eq!(error, timed_out(confirmation));
    let (_script, mut connection, _qp) = connected();
    assert_eq!(connection.event(NOW).unwrap_err(), timed_out("an event of the connection"));
    let error = connection.wait_disconnected(NOW).unwrap_err();
    assert_eq!(error, timed_out("the end of the connection"));
}

#[test]
fn an_address_is_resolved_again_until_it_answers() {
    let late = event(EventKind::ADDR_ERROR, Errno::ETIMEDOUT.into());
    let (mut scripts, mut ids): (Vec<_>, Vec<_>) = (0..3).map(|_| Script::new()).unzip();
    scripts.reverse();
    scripts[0].answer("resolve_addr", late.clone());
    scripts[1].answer("resolve_addr", late);
    scripts[2].answer("resolve_addr", event(EventKind::ADDR_RESOLVED, OK));
    scripts[2].answer("resolve_route", event(EventKind::ROUTE_RESOLVED, OK));
    let route = resolve_with(|| Ok(ids.pop().unwrap()), at(THERE), FOR_EVER).unwrap();
    assert_eq!(scripts[0].calls(), ["resolve_addr", "drop"]);
    assert_eq!(scripts[1].calls(), ["resolve_addr", "drop"]);
    assert_eq!(scripts[2].calls(), ["resolve_addr", "resolve_route"]);
    let again = Duration::from_millis(250);
    assert_eq!(scripts[2].with(|state| state.limits.clone()), [again, FOR_EVER]);
    drop(route);

    // The end of the connection manager's own limit is that of the call's.
    let (script, id) = Script::new();
    script.answer("resolve_addr", event(EventKind::ADDR_RESOLVED, OK));
    script.answer("resolve_route", event(EventKind::ROUTE_ERROR, Errno::ETIMEDOUT.into()));
    let mut id = Some(id);
    let error = resolve_with(|| Ok(id.take().unwrap()), at(THERE), LONG).unwrap_err();
    assert_eq!(error, timed_out("the route to the address"));
}
