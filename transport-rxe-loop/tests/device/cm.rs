//! Connecting by addresses: the events of both sides, their descriptors, ports, and peers that give up, stop or die.

mod across;
mod blocking;
mod descriptors;
mod hostile;
mod name_spaces;
mod options;
mod ports;
mod states;
mod storms;

use std::net::SocketAddr;
use std::time::Instant;

use cq_verbs::cm::ConnParam;
use cq_verbs::setup::Errno;
use transport_rxe_loop::cm::{CmId, EventChannel, EventKind, IdEvent, PortSpace, Status};

use super::common::*;

/// An identifier with a channel of its own.
struct Side {
    channel: EventChannel,
    id: CmId,
}

impl Side {
    fn new(context: &Context) -> Self {
        Self::of(context, PortSpace::TCP, QpType::RC)
    }

    fn of(context: &Context, space: PortSpace, qp_type: QpType) -> Self {
        let channel = EventChannel::new(context).unwrap();
        let id = CmId::new(&channel, space, qp_type).unwrap();
        Self { channel, id }
    }

    /// The next event, before which the descriptor becomes readable.
    #[track_caller]
    fn next(&self) -> IdEvent {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let is_readable = is_readable(&self.channel);
            match self.channel.take().unwrap() {
                Some(event) => return event,
                None => assert!(!is_readable, "readable without an event"),
            }
            assert_eq!(self.channel.block(Some(deadline)), Ok(Woken::Event), "in time");
        }
    }

    #[track_caller]
    fn expect(&self, kind: EventKind, status: i32) -> IdEvent {
        let event = self.next();
        assert_eq!((event.event.kind, event.event.status), (kind, Status(status)));
        event
    }

    /// There is no event, and the descriptor says so.
    #[track_caller]
    fn is_silent(&self) {
        assert!(!is_readable(&self.channel));
        assert!(self.channel.take().unwrap().is_none());
    }

    /// Resolves an address, and the route to it.
    #[track_caller]
    fn resolve(&self, to: SocketAddr) {
        self.id.resolve_addr(None, to).unwrap();
        self.expect(EventKind::ADDR_RESOLVED, 0);
        self.id.resolve_route().unwrap();
        self.expect(EventKind::ROUTE_RESOLVED, 0);
        self.is_silent();
    }

    /// Listens at any port of an address.
    fn listens(context: &Context, ip: &str, backlog: i32) -> (Self, SocketAddr) {
        let it = Self::new(context);
        it.id.bind(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
        it.id.listen(backlog).unwrap();
        let addr = it.id.local_addr().unwrap();
        (it, addr)
    }

    /// Requests a connection of queue pair 1.
    fn requests(context: &Context, to: SocketAddr) -> Self {
        let it = Self::new(context);
        it.resolve(to);
        it.id.connect(&PARAM).unwrap();
        it
    }

    /// The identifier of a request, on a channel of its own.
    #[track_caller]
    fn requested(&self, context: &Context) -> Side {
        let id = self.expect(EventKind::CONNECT_REQUEST, 0).request.unwrap();
        let channel = EventChannel::new(context).unwrap();
        id.migrate(&channel).unwrap();
        Side { channel, id }
    }
}

const PARAM: ConnParam<&[u8]> = ConnParam::new(1, b"");
const BY_PEER: i32 = 28;

#[test]
fn a_listener_does_not_connect_and_who_is_to_connect_does_not_listen() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let side = Side::new(&context);
    side.resolve(addr);
    for from in [None, Some(addr)] {
        assert_eq!(listener.id.resolve_addr(from, addr), Err(Errno::EINVAL));
    }
    assert_eq!(side.id.listen(0), Err(Errno::EINVAL));
    let too_many = PARAM.initiator_depth(100);
    assert_eq!(side.id.connect(&too_many), Err(Errno::EINVAL));
    side.id.connect(&PARAM).unwrap();
    assert_eq!(side.id.resolve_addr(None, "8.8.8.8:1".parse().unwrap()), Err(Errno::EINVAL));
    assert_eq!(side.id.peer_addr(), Some(addr));
    listener.requested(&context);
}

#[test]
fn datagrams_learn_of_the_peers_queue_pair() {
    let context = open();
    let of = || Side::of(&context, PortSpace::UDP, QpType::UD);
    let listener = of();
    listener.id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    listener.id.listen(0).unwrap();
    let addr = listener.id.local_addr().unwrap();
    let request = || {
        let active = of();
        active.resolve(addr);
        active.id.connect(&ConnParam::new(1, &[5; 180][..])).unwrap();
        active
    };
    let active = request();
    let IdEvent { request: passive, event, .. } = listener.expect(EventKind::CONNECT_REQUEST, 0);
    assert_eq!(event.param.private_data, [5; 180]);
    let passive = passive.unwrap();
    passive.accept(&ConnParam::new(77, &b"yes"[..])).unwrap();
    let answer = active.expect(EventKind::ESTABLISHED, 0);
    assert_eq!((answer.event.param.qp_num, answer.qkey), (77, 0x0123_4567));
    assert_eq!(answer.event.param.private_data.len(), 136);
    drop(passive);
    let active_too = request();
    listener.requested(&context).id.reject(b"").unwrap();
    active_too.expect(EventKind::UNREACHABLE, 2);
    for side in [&active, &active_too, &listener] {
        side.is_silent();
    }
    let to_nobody = of();
    drop(listener);
    to_nobody.resolve(addr);
    to_nobody.id.connect(&PARAM).unwrap();
    to_nobody.expect(EventKind::UNREACHABLE, 1);
}

#[test]
fn events_move_with_their_identifier() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let _waits = [(); 2].map(|()| Side::requests(&context, addr));
    let active = Side::new(&context);
    active.id.resolve_addr(None, addr).unwrap();
    let other = EventChannel::new(&context).unwrap();
    listener.requested(&context);
    for id in [&listener.id, &active.id] {
        id.migrate(&other).unwrap();
    }
    listener.is_silent();
    active.is_silent();
    let moved = Side { channel: other, id: active.id };
    let kinds = [(); 2].map(|()| moved.next().event.kind);
    assert!(kinds.contains(&EventKind::CONNECT_REQUEST), "{kinds:?}");
    assert!(kinds.contains(&EventKind::ADDR_RESOLVED), "{kinds:?}");
    let _late = Side::requests(&context, addr);
    moved.expect(EventKind::CONNECT_REQUEST, 0);
    moved.is_silent();
}

#[test]
fn two_requests_from_one_address_are_two() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let free = Side::new(&context);
    free.id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let from = free.id.local_addr().unwrap();
    drop(free);
    let request = || {
        let active = Side::new(&context);
        active.id.bind(from).unwrap();
        active.resolve(addr);
        active.id.connect(&PARAM).unwrap();
        active
    };
    drop(request());
    let active = request();
    let [gone, there] = [(); 2].map(|()| listener.requested(&context));
    gone.expect(EventKind::REJECTED, 4);
    there.id.accept(&PARAM).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE, 0);
}

#[test]
fn events_of_a_request_can_be_held_back() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let active = Side::requests(&context, addr);
    assert_eq!(listener.channel.block(Some(Instant::now() + DEADLINE)), Ok(Woken::Event));
    let taken = listener.channel.take_held().unwrap().unwrap();
    drop(active);
    listener.is_silent();
    let request = taken.request.unwrap();
    for _ in 0..2 {
        request.begin().unwrap();
    }
    assert_eq!(listener.expect(EventKind::REJECTED, 4).id, request.key());
}

#[test]
fn a_full_backlog_rejects() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 2);
    let all = [(); 3].map(|()| Side::requests(&context, addr));
    all[2].expect(EventKind::REJECTED, BY_PEER);
    let passives = [(); 2].map(|()| listener.requested(&context));
    passives.iter().for_each(|passive| passive.id.accept(&PARAM).unwrap());
    all[..2].iter().for_each(|active| _ = active.expect(EventKind::CONNECT_RESPONSE, 0));
    let _another = Side::requests(&context, addr);
    listener.requested(&context);
}

#[test]
fn many_connect_at_once_and_none_is_lost() {
    const MANY: usize = 200;
    let (context, name) = (open(), fabric());
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    join(&name);
                    let context = open();
                    let requested: Vec<_> =
                        (0..MANY / 4).map(|_| Side::requests(&context, addr)).collect();
                    for active in &requested {
                        active.expect(EventKind::CONNECT_RESPONSE, 0);
                        active.id.establish().unwrap();
                    }
                    for active in &requested {
                        active.expect(EventKind::DISCONNECTED, 0);
                    }
                })
            })
            .collect();
        let mut passives = Vec::new();
        let (mut established, mut requests) = (0, 0);
        while established < MANY {
            let IdEvent { event, request, .. } = listener.next();
            match event.kind {
                EventKind::CONNECT_REQUEST => {
                    requests += 1;
                    let passive = request.unwrap();
                    passive.accept(&PARAM).unwrap();
                    passives.push(passive);
                }
                kind => {
                    assert_eq!(kind, EventKind::ESTABLISHED);
                    established += 1;
                }
            }
        }
        assert_eq!(requests, MANY);
        drop(passives);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    listener.is_silent();
}

#[test]
fn a_programs_own_event_is_taken_in_its_turn() {
    let context = open();
    let side = Side::new(&context);
    side.id.resolve_addr(None, "127.0.0.1:7".parse().unwrap()).unwrap();
    side.id.queue_event(EventKind(18), Status(-5), u64::MAX).unwrap();
    assert_eq!(side.expect(EventKind::ADDR_RESOLVED, 0).arg, 0);
    let own = side.expect(EventKind(18), -5);
    assert_eq!((own.id, own.arg, own.request.is_none()), (side.id.key(), u64::MAX, true));
    side.is_silent();
}
