//! Tests of the connection manager where it lacks something: a listener, time, space for another port; and where a forked
//! child has a socket, too.

use std::net::SocketAddr;

use cq_verbs::setup::Errno;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::prelude::*;
use crate::cm::{CmId, ConnParam, EventChannel, EventKind, IdEvent, PortSpace};
use crate::connections::IdKey;
use crate::connections::port::{Place, Sharing};

pub const PARAM: ConnParam<&[u8]> = ConnParam::new(1, b"");

/// An identifier with a channel of its own.
pub struct Side {
    pub channel: EventChannel,
    pub id: CmId,
}

impl Side {
    pub fn new(context: &Context) -> Self {
        let channel = EventChannel::new(context).unwrap();
        let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
        Self { channel, id }
    }

    pub fn listens(context: &Context, backlog: i32) -> (Self, SocketAddr) {
        let it = Self::new(context);
        it.id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        it.id.listen(backlog).unwrap();
        let addr = it.id.local_addr().unwrap();
        (it, addr)
    }

    /// Resolves an address: all but the connection.
    pub fn resolves(context: &Context, addr: SocketAddr) -> Self {
        let it = Self::new(context);
        it.id.resolve_addr(None, addr).unwrap();
        it.expect(EventKind::ADDR_RESOLVED);
        it.id.resolve_route().unwrap();
        it.expect(EventKind::ROUTE_RESOLVED);
        it
    }

    pub fn requests(context: &Context, addr: SocketAddr) -> Self {
        let it = Self::resolves(context, addr);
        it.id.connect(&PARAM).unwrap();
        it
    }

    #[track_caller]
    pub fn expect(&self, kind: EventKind) -> IdEvent {
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
fn a_request_that_finds_no_listener_reaches_one_that_listens_a_moment_later() {
    let Fixture { context, device, .. } = Fixture::new();
    let passive = Side::new(&context);
    passive.id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = passive.id.local_addr().unwrap();
    {
        let active = Side::requests(&context, addr);
        passive.id.listen(2).unwrap();
        passive.expect(EventKind::CONNECT_REQUEST);
        active.expect(EventKind::REJECTED);
    }
    let begun = Instant::now();
    drop(passive);
    // The service thread pauses in between, too: no clock runs slower than its sleep.
    Side::requests(&context, addr).expect(EventKind::REJECTED);
    assert!(begun.elapsed() >= Duration::from_millis(255));
    // It does not send what nobody waits for.
    drop(Side::requests(&context, addr));
    until("it is not sent again", || device.connections.serve().is_none());
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
    device.connections.lock().unwrap().receive(IdKey(passive.key()), true).unwrap();
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
        // As if the system refused to watch it.
        let mut all = device.connections.lock().unwrap();
        let requests = all.id(IdKey(listener.id.key())).unwrap().listener.as_ref().unwrap().fd();
        let (data, flags) = (EventData::new_u64(0), EventFlags::IN);
        epoll::add(&other, requests.unchecked(), data, flags).unwrap();
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
        id.listener.as_ref().unwrap().fd().unchecked().try_clone_to_owned().unwrap()
    };
    let active = Side::requests(&context, addr);
    drop(listener);
    active.expect(EventKind::REJECTED);
    Side::requests(&context, addr).expect(EventKind::REJECTED);
    drop(of_child);
}

#[test]
fn a_port_that_a_program_has_at_one_address_is_not_given_out() {
    let Fixture { device, .. } = Fixture::new();
    let bind = |addr: &str| {
        let addr = addr.parse().unwrap();
        device.connections.ports.bind(Place::new(PortSpace::TCP, addr, Sharing::default()).unwrap())
    };
    // All of them that there is space for, and then one that is given back.
    let mut taken: Vec<_> =
        (40_000..40_512).map(|port| bind(&format!("127.0.0.1:{port}")).unwrap()).collect();
    let given: Vec<_> = std::iter::from_fn(|| bind("127.0.0.2:0").ok()).collect();
    assert!(given.len() > 1);
    let ports: std::collections::BTreeSet<_> =
        given.iter().chain(&taken).map(|bound| bound.place.addr.port()).collect();
    assert_eq!(ports.len(), given.len() + taken.len());
    assert_eq!(bind("127.0.0.2:0").unwrap_err(), rustix::io::Errno::NOMEM);
    taken.pop();
    assert!(bind("127.0.0.2:0").is_ok());
}
