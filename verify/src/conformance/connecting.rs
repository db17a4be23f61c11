//! Connecting by addresses (M1–M9). Queue pairs are needed where bytes are moved only: a connection manager takes their
//! numbers as they are.

use std::net::{Ipv4Addr, SocketAddr};

use super::peer::*;
use super::stand::*;
use crate::model::connecting::{Call, Side};

include!(concat!(env!("OUT_DIR"), "/connecting.rs"));

fn m01_a_connection_has_its_events_in_order<D: Device>() {
    let [mut active, mut passive] = connected::<D>();
    active.is_silent();
    passive.is_silent();
    active.call(Call::Disconnect).unwrap();
    passive.expect(EventKind::DISCONNECTED);
    passive.call(Call::Disconnect).unwrap();
    active.expect(EventKind::DISCONNECTED);
    for side in [&mut active, &mut passive] {
        side.expect(EventKind::TIMEWAIT_EXIT);
        assert_eq!(side.state, Side::Over);
        side.is_silent();
    }
}

fn m01_who_both_disconnect_are_each_told_once<D: Device>() {
    let mut sides = connected::<D>();
    for side in &mut sides {
        side.call(Call::Disconnect).unwrap();
    }
    // Each answers the disconnection of the other.
    for side in &mut sides {
        side.expect(EventKind::DISCONNECTED);
        side.call(Call::Disconnect).unwrap();
    }
    // What comes next is not a second one.
    for side in &mut sides {
        side.expect(EventKind::TIMEWAIT_EXIT);
    }
}

fn m01_a_call_before_its_time_fails_and_changes_nothing<D: Device>() {
    let mut early = Peer::<D>::near();
    let too_early = |peer: &mut Peer<D>, calls: &[Call]| {
        for &call in calls {
            assert!(peer.call(call).is_err(), "{call:?} in {:?}", peer.state);
        }
    };
    const ALL: [Call; 5] =
        [Call::Connect, Call::Accept, Call::Establish, Call::Reject, Call::Disconnect];
    too_early(&mut early, &ALL);
    assert!(early.id.call(&CmCall::ResolveRoute).is_err());
    early.is_silent();

    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::resolved(addr);
    too_early(&mut active, &[Call::Accept, Call::Establish, Call::Reject]);
    active.call(Call::Connect).unwrap();
    let mut passive = listener.requested();
    passive.call(Call::Accept).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE);
    active.call(Call::Establish).unwrap();
    passive.expect(EventKind::ESTABLISHED);
}

/// Every step to a connection fails, but for the next ones, and no event comes.
#[track_caller]
fn goes_on_with_no_other<D: Device>(peer: &mut Peer<D>, steps: &[CmCall], next: &[CmCall]) {
    for step in steps.iter().filter(|&step| !next.contains(step)) {
        assert_eq!(peer.id.call(step), Err(Errno::EINVAL), "{step:?} in {:?}", peer.state);
    }
    peer.is_silent();
}

fn m01_an_identifier_goes_one_way_and_once<D: Device>() {
    use CmCall::{Bind, Connect, Listen, ResolveAddr, ResolveRoute};
    let (mut listener, addr) = Peer::<D>::listening();
    let bind = Bind(SocketAddr::new(addr.ip(), 0));
    let connect = Connect(ConnParam::new(1, Vec::new()));
    let steps = [bind, Listen, ResolveAddr(addr), ResolveRoute, connect];
    let only = |peer: &mut Peer<D>, next| goes_on_with_no_other(peer, &steps, next);
    only(&mut listener, &[]);
    let mut active = Peer::<D>::near();
    for (nth, event) in [(2, EventKind::ADDR_RESOLVED), (3, EventKind::ROUTE_RESOLVED)] {
        active.id.call(&steps[nth]).unwrap();
        active.expect(event);
        only(&mut active, &steps[nth + 1..nth + 2]);
    }
    active.call(Call::Connect).unwrap();
    only(&mut active, &[]);
    only(&mut listener.requested(), &[]);
    let mut sides = connected::<D>();
    sides.iter_mut().for_each(|side| only(side, &[]));
    for side in &mut sides {
        side.call(Call::Disconnect).unwrap();
    }
    for side in &mut sides {
        side.expect(EventKind::DISCONNECTED);
        side.call(Call::Disconnect).unwrap();
        side.expect(EventKind::TIMEWAIT_EXIT);
        only(side, &[]);
    }
}

fn m02_each_event_is_taken_once<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::requesting(addr);
    let mut passive = listener.requested();
    listener.is_silent();
    passive.call(Call::Accept).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE);
    active.is_silent();
    active.call(Call::Establish).unwrap();
    passive.expect(EventKind::ESTABLISHED);
    passive.is_silent();
}

fn m02_destroying_discards_what_was_not_taken<D: Device>() {
    let (listener, addr) = Peer::<D>::listening();
    let active = Peer::<D>::requesting(addr);
    wait_for("the request has come", || listener.is_readable());
    drop(listener);
    wait_for("it is rejected", || active.is_readable());
    drop(active);
    // A later holder of the port gets its own events only.
    let mut later = Peer::<D>::far();
    later.bind(addr.port()).unwrap();
    later.listen().unwrap();
    later.is_silent();
    let _active = Peer::<D>::requesting(addr);
    later.requested();
    later.is_silent();
}

/// The sizes of the private data of a request, an answer and a rejection.
const SIZES: [usize; 3] = [56, 196, 148];

/// The data, and then zeros to the size that is carried.
#[track_caller]
fn is_whole(got: &CmEvent, sent: &[u8], size: usize) {
    let got = &got.param.private_data;
    assert!(got.len() >= size, "{} bytes of private data came", got.len());
    assert_eq!(&got[..sent.len()], sent);
    assert!(got[sent.len()..].iter().all(|&byte| byte == 0), "padded with zeros: {got:?}");
}

fn m03_private_data_arrives_whole_and_padded_with_zeros<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let bytes: Vec<u8> = (1..=196).collect();
    for of in [|_| 0, |_| 1, |size| size - 1, |size| size] as [fn(usize) -> usize; 4] {
        let [ask, answer, refusal] = SIZES.map(|size| &bytes[..of(size)]);
        for accepts in [true, false] {
            let mut active = Peer::<D>::resolved(addr);
            active.call_with(Call::Connect, ask).unwrap();
            let (event, mut passive) = listener.requested_with();
            is_whole(&event, ask, SIZES[0]);
            if accepts {
                passive.call_with(Call::Accept, answer).unwrap();
                is_whole(&active.expect(EventKind::CONNECT_RESPONSE), answer, SIZES[1]);
            } else {
                passive.call_with(Call::Reject, refusal).unwrap();
                is_whole(&active.expect(EventKind::REJECTED), refusal, SIZES[2]);
            }
        }
    }
}

fn m03_private_data_that_is_too_long_is_refused<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let [ask, answer, refusal] = SIZES.map(|size| vec![7; size + 1]);
    let mut active = Peer::<D>::resolved(addr);
    assert_eq!(active.call_with(Call::Connect, &ask), Err(Errno::EINVAL));
    active.call(Call::Connect).unwrap();
    let (event, mut passive) = listener.requested_with();
    is_whole(&event, b"", SIZES[0]);
    assert_eq!(passive.call_with(Call::Reject, &refusal), Err(Errno::EINVAL));
    assert_eq!(passive.call_with(Call::Accept, &answer), Err(Errno::EINVAL));
    // A connection manager may reject the request then, with no data.
    drop(passive);
    is_whole(&active.expect(EventKind::REJECTED), b"", 0);
}

fn m04_a_request_that_was_withdrawn_is_told_as_rejected<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let active = Peer::<D>::requesting(addr);
    let mut passive = listener.requested();
    drop(active);
    passive.expect(EventKind::REJECTED);
    assert!(passive.call(Call::Accept).is_err());
    passive.is_silent();
}

fn m04_a_request_that_was_withdrawn_is_never_established<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let active = Peer::<D>::requesting(addr);
    let mut passive = listener.requested();
    drop(active);
    // The answer and the withdrawal may cross.
    if passive.call(Call::Accept).is_ok() {
        passive.next();
        assert_eq!(passive.state, Side::Over);
    }
    assert!(!passive.was_connected);
}

fn m04_who_gives_up_before_the_confirmation_is_not_connected<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::requesting(addr);
    let mut passive = listener.requested();
    passive.call(Call::Accept).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE);
    drop(passive);
    active.expect(EventKind::REJECTED);
    assert!(active.call(Call::Establish).is_err());
    active.is_silent();
}

fn m04_an_answer_that_is_rejected_establishes_nothing<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    for drops in [false, true] {
        let mut active = Peer::<D>::requesting(addr);
        let mut passive = listener.requested();
        passive.call(Call::Accept).unwrap();
        active.expect(EventKind::CONNECT_RESPONSE);
        if drops {
            drop(active);
        } else {
            active.call(Call::Reject).unwrap();
        }
        passive.expect(EventKind::REJECTED);
        passive.is_silent();
    }
}

#[track_caller]
fn is_rejected_by_peer<D: Device>(active: &mut Peer<D>, data: &[u8]) {
    let event = active.expect(EventKind::REJECTED);
    assert_eq!(RejectReason(event.status.0), RejectReason::BY_PEER);
    is_whole(&event, data, data.len());
}

fn m05_a_rejection_has_its_reason_and_its_data<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::requesting(addr);
    let mut passive = listener.requested();
    passive.call_with(Call::Reject, b"not now").unwrap();
    is_rejected_by_peer(&mut active, b"not now");
    active.is_silent();
    assert!(active.call(Call::Establish).is_err());
}

fn m05_a_request_that_is_destroyed_is_rejected<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::requesting(addr);
    drop(listener.requested());
    is_rejected_by_peer(&mut active, b"");
}

/// It is told that nobody listens.
#[track_caller]
fn finds_nobody<D: Device>(active: &mut Peer<D>) {
    let event = active.next();
    match event.kind {
        EventKind::REJECTED => assert_ne!(event.status, Status(0)),
        kind => assert_eq!(kind, EventKind::UNREACHABLE),
    }
}

fn m06_without_a_listener_a_request_fails<D: Device>() {
    let (listener, addr) = Peer::<D>::listening();
    drop(listener);
    finds_nobody(&mut Peer::<D>::requesting(addr));
    let mut bound = Peer::<D>::far();
    bound.bind(addr.port()).unwrap();
    finds_nobody(&mut Peer::<D>::requesting(addr));
}

fn m06_a_listener_that_goes_fails_the_requests_that_wait<D: Device>() {
    let (listener, addr) = Peer::<D>::listening();
    let mut waiting = [(); 3].map(|()| Peer::<D>::requesting(addr));
    wait_for("a request has come", || listener.is_readable());
    drop(listener);
    waiting.iter_mut().for_each(finds_nobody);
}

fn m06_a_peer_that_goes_is_a_disconnection<D: Device>() {
    for goes in [0, 1] {
        let [active, passive] = connected::<D>();
        let mut stays = if goes == 0 {
            drop(active);
            passive
        } else {
            drop(passive);
            active
        };
        stays.expect(EventKind::DISCONNECTED);
        assert_eq!(stays.state, Side::Disconnected);
    }
}

fn m07_two_do_not_listen_at_one_port<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut second = Peer::<D>::near();
    let everywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), addr.port());
    assert_eq!(second.id.call(&CmCall::Bind(everywhere)), Err(Errno::EADDRNOTAVAIL));
    let listens = second.bind(addr.port()).and_then(|()| second.listen());
    assert_eq!(listens, Err(Errno::EADDRINUSE));
    // The first one is not disturbed.
    let _active = Peer::<D>::requesting(addr);
    listener.requested();
}

fn m07_a_port_is_free_when_its_holder_is_gone<D: Device>() {
    let (listener, addr) = Peer::<D>::listening();
    drop(listener);
    for listens in [false, true] {
        let mut next = if listens { Peer::<D>::far() } else { Peer::near() };
        next.bind(addr.port()).expect("nobody has it");
        if listens {
            next.listen().expect("nobody listens");
            let _active = Peer::<D>::requesting(addr);
            next.requested();
        }
    }
}

fn m07_any_port_is_a_free_one<D: Device>() {
    let (first, addr) = Peer::<D>::listening();
    let mut second = Peer::<D>::near();
    let other = second.listen_at_any();
    assert!(addr.port() != 0 && other.port() != 0 && addr != other);
    drop((first, second));
}

fn m08_the_descriptor_is_readable_while_an_event_is_queued<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    assert!(!listener.is_readable());
    let mut active = Peer::<D>::near();
    active.is_silent();
    active.id.call(&CmCall::ResolveAddr(addr)).unwrap();
    wait_for("ADDR_RESOLVED", || active.is_readable());
    assert!(active.is_readable(), "until it is taken");
    active.expect(EventKind::ADDR_RESOLVED);
    active.is_silent();
    let _waiting = [(); 2].map(|()| Peer::<D>::requesting(addr));
    for _ in 0..2 {
        wait_for("CONNECT_REQUEST", || listener.is_readable());
        let mut passive = listener.requested();
        assert!(!passive.is_readable(), "the identifier of a request has its own");
        passive.is_silent();
    }
    listener.is_silent();
}

fn m09_the_parameters_of_one_side_are_those_of_the_others_event<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::resolved(addr);
    let request = active
        .param(b"")
        .srq(true)
        .responder_resources(3)
        .initiator_depth(5)
        .flow_control(true)
        .retry_count(2)
        .rnr_retry_count(4);
    active.id.call(&CmCall::Connect(request.clone())).unwrap();
    let (event, mut passive) = listener.requested_with();
    let got = event.param;
    assert_eq!((got.qp_num, got.srq, got.flow_control), (request.qp_num, true, true));
    assert_eq!((got.responder_resources, got.initiator_depth), (5, 3), "what the other asks for");
    assert_eq!((got.retry_count, got.rnr_retry_count), (2, 4));
    let peer_addr = active.local_addr().unwrap();
    assert_eq!(passive.peer_addr().unwrap().ip(), peer_addr.ip());
    assert_eq!(passive.local_addr(), Some(addr));
    assert_eq!(active.peer_addr(), Some(addr));

    let answer = passive.param(b"").responder_resources(2).initiator_depth(1);
    let answer = answer.rnr_retry_count(6);
    passive.id.call(&CmCall::Accept(answer.clone())).unwrap();
    active.state = Side::Requesting;
    let got = active.expect(EventKind::CONNECT_RESPONSE).param;
    assert_eq!((got.qp_num, got.srq, got.rnr_retry_count), (answer.qp_num, false, 6));
    assert_eq!((got.responder_resources, got.initiator_depth), (1, 2));
}

fn m09_the_most_reads_are_what_both_allow<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::resolved(addr);
    let request = active.param(b"").responder_resources(1).initiator_depth(2);
    active.id.call(&CmCall::Connect(request)).unwrap();
    let (event, mut passive) = listener.requested_with();
    assert_eq!((event.param.responder_resources, event.param.initiator_depth), (2, 1));
    // ConnParam::MOST is as many as the request has.
    passive.call(Call::Accept).unwrap();
    active.state = Side::Requesting;
    let got = active.expect(EventKind::CONNECT_RESPONSE).param;
    assert_eq!((got.responder_resources, got.initiator_depth), (1, 2));
}
