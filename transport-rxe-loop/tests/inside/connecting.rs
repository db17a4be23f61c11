//! Tests of the connection manager where it lacks something: clients that connect and send no request, processes without
//! descriptors, sockets that a forked child has, too.

use std::net::SocketAddr;

use cq_core::setup::Errno;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{SocketType, connect};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::prelude::*;
use crate::cm::{CmId, ConnParam, EventChannel, EventKind, IdEvent, PortSpace};
use crate::connections::IdKey;
use crate::connections::again::Request;
use crate::connections::port::{Place, Purpose, Sharing, socket};
use crate::protocol::cm::message::{Kind, Message};

const PARAM: ConnParam<&[u8]> = ConnParam::new(1, b"");
const EMFILE: Errno = Errno(24);

struct Side {
    channel: EventChannel,
    id: CmId,
}

impl Side {
    fn new(context: &Context) -> Self {
        let channel = EventChannel::new(context).unwrap();
        let id = CmId::new(&channel, PortSpace::TCP, QpType::Rc).unwrap();
        Self { channel, id }
    }

    fn listens(context: &Context, backlog: i32) -> (Self, SocketAddr) {
        let it = Self::new(context);
        it.id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        it.id.listen(backlog).unwrap();
        let addr = it.id.local_addr().unwrap();
        (it, addr)
    }

    /// Resolves an address: all but the connection.
    fn resolves(context: &Context, addr: SocketAddr) -> Self {
        let it = Self::new(context);
        it.id.resolve_addr(None, addr).unwrap();
        it.expect(EventKind::ADDR_RESOLVED);
        it.id.resolve_route().unwrap();
        it.expect(EventKind::ROUTE_RESOLVED);
        it
    }

    fn requests(context: &Context, addr: SocketAddr) -> Self {
        let it = Self::resolves(context, addr);
        it.id.connect(&PARAM).unwrap();
        it
    }

    #[track_caller]
    fn expect(&self, kind: EventKind) -> IdEvent {
        let deadline = Some(Instant::now() + Duration::from_secs(10));
        loop {
            if let Some(event) = self.channel.take().unwrap() {
                assert_eq!(event.event.kind, kind);
                return event;
            }
            assert_eq!(self.channel.block(deadline), Ok(Woken::Event), "{kind} in time");
        }
    }

    fn is_readable(&self) -> bool {
        self.channel.block(Some(Instant::now())) == Ok(Woken::Event)
    }
}

#[test]
fn who_connects_and_sends_no_request_keeps_nobody_out() {
    let Fixture { context, device, .. } = Fixture::new();
    let (listener, addr) = Side::listens(&context, 1);
    // It stops, or dies, before it sends the request.
    let silent = || {
        let place = device.connections.place(PortSpace::TCP, addr, Sharing::default());
        let silent = socket(SocketType::SEQPACKET).unwrap();
        connect(silent.unchecked(), &place.listeners()[0].socket().unwrap()).unwrap();
        silent
    };
    let stopped = silent();
    Side::requests(&context, addr).expect(EventKind::REJECTED);
    assert!(listener.channel.take().unwrap().is_none());
    drop(silent());
    Side::requests(&context, addr).expect(EventKind::REJECTED);
    assert!(listener.channel.take().unwrap().is_none());
    let _active = Side::requests(&context, addr);
    listener.expect(EventKind::CONNECT_REQUEST);
    drop(stopped);
}

#[test]
fn a_request_that_finds_no_listener_reaches_one_that_listens_a_moment_later() {
    let Fixture { context, device, .. } = Fixture::new();
    let passive = Side::new(&context);
    passive.id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = passive.id.local_addr().unwrap();
    let key = |side: &Side| IdKey(side.id.key());
    let resolved = || {
        let side = Side::resolves(&context, addr);
        let addresses = [side.id.local_addr().unwrap(), addr];
        let place = device.connections.place(PortSpace::TCP, addr, Sharing::default());
        let message = Message { addresses, ..Message::of(Kind::Req) };
        (side, Request::new(place, message))
    };
    let [(active, first), (deaf, second)] = [resolved(), resolved()];
    let mut all = device.connections.lock().unwrap();
    for (side, request) in [(&active, &first), (&deaf, &second)] {
        assert!(all.request(key(side), request).unwrap(), "nobody listens");
    }
    all.listen(key(&passive), 2).unwrap();
    assert!(!all.request_again(key(&active), &first));
    // As if the system refused to watch its socket.
    let socket = &all.id(key(&deaf)).unwrap().bound.as_ref().unwrap().socket;
    epoll::add(&deaf.channel, socket.unchecked(), EventData::new_u64(0), EventFlags::IN).unwrap();
    assert!(!all.request_again(key(&deaf), &second));
    assert!(!all.request_again(key(&deaf), &second), "it does not wait any more");
    drop(all);
    passive.expect(EventKind::CONNECT_REQUEST);
    deaf.expect(EventKind::UNREACHABLE);
    drop(passive);

    // The service thread pauses in between, too: no clock runs slower than its sleep.
    let begun = Instant::now();
    Side::requests(&context, addr).expect(EventKind::REJECTED);
    assert!(begun.elapsed() >= Duration::from_millis(255));
}

#[test]
fn what_arrived_before_the_time_was_over_is_received_and_ends_nothing() {
    let Fixture { context, device, .. } = Fixture::new();
    let (listener, addr) = Side::listens(&context, 0);
    let active = Side::requests(&context, addr);
    let passive = listener.expect(EventKind::CONNECT_REQUEST).request.unwrap();
    passive.accept(&PARAM).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE);
    active.id.establish().unwrap();
    // Its channel takes no events until the time of its answer is over.
    device.connections.lock().unwrap().time_out(IdKey(passive.key())).unwrap();
    listener.expect(EventKind::ESTABLISHED);
    assert!(!listener.is_readable() && listener.channel.take().unwrap().is_none());
    active.id.disconnect().unwrap();
    listener.expect(EventKind::DISCONNECTED);
}

#[test]
fn who_can_not_be_watched_elsewhere_stays() {
    let Fixture { context, device, .. } = Fixture::new();
    let (listener, addr) = Side::listens(&context, 0);
    let _active = Side::requests(&context, addr);
    let other = EventChannel::new(&context).unwrap();
    {
        // As if the system refused to watch its bell.
        let mut all = device.connections.lock().unwrap();
        let listening = all.id(IdKey(listener.id.key())).unwrap().listening.as_ref().unwrap();
        let (data, flags) = (EventData::new_u64(0), EventFlags::IN);
        epoll::add(&other, listening.bell.unchecked(), data, flags).unwrap();
    }
    assert_eq!(listener.id.migrate(&other), Err(Errno::EEXIST));
    listener.expect(EventKind::CONNECT_REQUEST);
    assert!(other.take().unwrap().is_none());
}

#[test]
fn who_waits_at_a_listener_that_is_destroyed_is_told_even_if_a_forked_child_has_its_socket() {
    let Fixture { context, device, .. } = Fixture::new();
    let (listener, addr) = Side::listens(&context, 0);
    let of_child = {
        let mut all = device.connections.lock().unwrap();
        let id = all.id(IdKey(listener.id.key())).unwrap();
        id.bound.as_ref().unwrap().socket.unchecked().try_clone_to_owned().unwrap()
    };
    let active = Side::requests(&context, addr);
    drop(listener);
    active.expect(EventKind::REJECTED);
    Side::requests(&context, addr).expect(EventKind::REJECTED);
    drop(of_child);
}

#[test]
fn a_port_that_a_program_has_at_one_address_is_not_given_out() {
    let fixture = Fixture::new();
    let place = |addr: &str| -> Place {
        fixture.device.connections.place(PortSpace::TCP, addr.parse().unwrap(), Sharing::default())
    };
    let _taken = place("127.0.0.1:7000").bind(Purpose::Any).unwrap();
    for _ in 0..8 {
        // A child that another test forks has the socket of the round before, until it executes a program.
        until("the other port is free again", || {
            let other = place("127.0.0.1:0").bind_one_of(7000..7002, Purpose::Any);
            other.is_ok_and(|other| {
                assert_eq!(other.place.addr.port(), 7001);
                true
            })
        });
    }
    assert!(place("127.0.0.1:0").bind_one_of(7000..7001, Purpose::Any).is_err());
    // Who was to connect from there can't listen there.
    let mut given = place("0.0.0.0:0").bind_one_of(7000..7001, Purpose::Connect).unwrap();
    assert_eq!(given.expose(), Err(rustix::io::Errno::ADDRNOTAVAIL));
}

/// Takes all descriptors that there are.
fn all_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[test]
#[ignore = "a process of another test"]
fn lacks_descriptors() {
    let Fixture { context, .. } = Fixture::new();
    let (listener, addr) = Side::listens(&context, 0);
    let active = Side::resolves(&context, addr);
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum: Some(200) }).unwrap();
    let mut all = all_descriptors();
    assert_eq!(active.id.connect(&PARAM), Err(EMFILE));
    all.pop();
    active.id.connect(&PARAM).unwrap();
    all.extend(all_descriptors());
    for _ in 0..2 {
        assert!(listener.is_readable());
        assert_eq!(listener.channel.take().unwrap_err(), EMFILE);
    }
    drop(all);
    let request = listener.expect(EventKind::CONNECT_REQUEST).request.unwrap();
    assert!(!listener.is_readable());
    request.accept(&PARAM).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE);
}

#[test]
fn a_request_waits_for_a_descriptor() {
    let mut actor = Actor::start("inside::connecting::lacks_descriptors", &[]);
    actor.order("");
    assert!(actor.leave().success());
}
