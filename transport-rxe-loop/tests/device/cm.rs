//! Connecting by addresses: the events of both sides, their descriptors, ports, and peers that give up, stop or die.

mod across;
mod blocking;
mod ports;

use std::net::SocketAddr;
use std::time::Instant;

use cq_core::cm::ConnParam;
use cq_core::setup::Errno;
use transport_rxe_loop::cm::{CmId, EventChannel, EventKind, IdEvent, PortSpace, Status};

use super::common::*;

/// An identifier with a channel of its own.
struct Side {
    channel: EventChannel,
    id: CmId,
}

impl Side {
    fn new(context: &Context) -> Self {
        Self::of(context, PortSpace::TCP, QpType::Rc)
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
        it.id.bind(SocketAddr::new(ip.parse().unwrap(), 0), false).unwrap();
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

/// The active side and the passive one, connected.
fn connected(context: &Context) -> [Side; 2] {
    let (listener, addr) = Side::listens(context, "127.0.0.1", 0);
    let active = Side::requests(context, addr);
    let passive = listener.requested(context);
    passive.id.accept(&PARAM).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE, 0);
    passive.is_silent();
    active.id.establish().unwrap();
    passive.expect(EventKind::ESTABLISHED, 0);
    [active, passive]
}

#[test]
fn both_sides_get_what_the_other_one_sends() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    listener.is_silent();
    let active = Side::new(&context);
    active.resolve(addr);
    let request = ConnParam {
        srq: true,
        responder_resources: 3,
        initiator_depth: 5,
        flow_control: true,
        retry_count: 2,
        rnr_retry_count: 4,
        ..ConnParam::new(17, &b"ask"[..])
    };
    active.id.connect(&request).unwrap();
    let IdEvent { id, event, request, .. } = listener.expect(EventKind::CONNECT_REQUEST, 0);
    assert_eq!(id, listener.id.key());
    // What the one starts, the other answers.
    let padded = |data: &[u8], len| [data, &vec![0; len - data.len()]].concat();
    let expected = ConnParam {
        qp_num: 17,
        srq: true,
        private_data: padded(b"ask", 56),
        responder_resources: 5,
        initiator_depth: 3,
        flow_control: true,
        retry_count: 2,
        rnr_retry_count: 4,
    };
    assert_eq!(event.param, expected);
    let passive = request.unwrap();
    assert_eq!(passive.peer_addr(), active.id.local_addr());
    assert_eq!(passive.local_addr(), Some(addr));
    active.is_silent();

    passive.accept(&ConnParam::new(18, &b"answer"[..])).unwrap();
    let answer = active.expect(EventKind::CONNECT_RESPONSE, 0).event.param;
    assert_eq!((answer.qp_num, answer.private_data), (18, padded(b"answer", 196)));
    assert_eq!((answer.responder_resources, answer.initiator_depth), (3, 5));
    active.id.establish().unwrap();
    let established = listener.expect(EventKind::ESTABLISHED, 0);
    assert_eq!(established.id, passive.key());
    listener.is_silent();
}

#[test]
fn a_side_that_disconnects_and_its_peer_are_told_once_and_leave_the_time_wait_state() {
    for of_both in [false, true] {
        let [active, passive] = connected(&open());
        active.id.disconnect().unwrap();
        if of_both {
            passive.id.disconnect().unwrap();
            passive.expect(EventKind::DISCONNECTED, 0);
        } else {
            passive.expect(EventKind::DISCONNECTED, 0);
            active.is_silent();
            passive.id.disconnect().unwrap();
        }
        for side in [&active, &passive] {
            side.id.disconnect().unwrap();
        }
        active.expect(EventKind::DISCONNECTED, 0);
        for side in [&active, &passive] {
            side.expect(EventKind::TIMEWAIT_EXIT, 0);
            side.is_silent();
        }
    }
}

#[test]
fn whose_peer_is_destroyed_is_told() {
    let context = open();
    let [active, passive] = connected(&context);
    drop(passive);
    active.expect(EventKind::DISCONNECTED, 0);
    let [active, passive] = connected(&context);
    drop(active);
    passive.expect(EventKind::DISCONNECTED, 0);

    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let active = Side::requests(&context, addr);
    let passive = listener.requested(&context);
    drop(active);
    passive.expect(EventKind::REJECTED, 4);
    assert_eq!(passive.id.accept(&PARAM), Err(Errno::EINVAL));

    let active = Side::requests(&context, addr);
    drop(listener.requested(&context));
    active.expect(EventKind::REJECTED, BY_PEER);

    let active = Side::requests(&context, addr);
    listener.requested(&context).id.accept(&PARAM).unwrap();
    // It is destroyed before the active side is ready.
    active.expect(EventKind::CONNECT_RESPONSE, 0);
    assert_eq!(active.id.establish(), Err(Errno::EINVAL));
    active.is_silent();

    let waits = [(); 3].map(|()| Side::requests(&context, addr));
    drop(listener);
    waits.iter().for_each(|active| _ = active.expect(EventKind::REJECTED, BY_PEER));
}

#[test]
fn a_rejected_request_brings_the_peers_data() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let active = Side::requests(&context, addr);
    listener.requested(&context).id.reject(b"no").unwrap();
    let event = active.expect(EventKind::REJECTED, BY_PEER).event;
    assert_eq!(event.param.private_data, [&b"no"[..], &[0; 146]].concat());
    // The answer can be rejected, too.
    let active = Side::requests(&context, addr);
    let passive = listener.requested(&context);
    passive.id.accept(&PARAM).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE, 0);
    active.id.reject(b"").unwrap();
    passive.expect(EventKind::REJECTED, BY_PEER);
}

#[test]
fn too_much_and_too_early_is_refused() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let side = Side::new(&context);
    assert_eq!(side.id.connect(&PARAM), Err(Errno::EINVAL));
    assert_eq!(side.id.resolve_route(), Err(Errno::EINVAL));
    side.resolve(addr);
    for of_listener in [None, Some(addr)] {
        assert_eq!(listener.id.resolve_addr(of_listener, addr), Err(Errno::EINVAL));
    }
    assert_eq!(side.id.listen(0), Err(Errno::EINVAL));
    let connect = |param: ConnParam<&[u8]>| side.id.connect(&param);
    assert_eq!(connect(ConnParam::new(1, &[0; 57][..])), Err(Errno::EINVAL));
    assert_eq!(connect(ConnParam { initiator_depth: 100, ..PARAM }), Err(Errno::EINVAL));
    for call in [CmId::establish, CmId::disconnect, |id: &CmId| id.reject(b"")] {
        assert_eq!(call(&side.id), Err(Errno::EINVAL));
    }
    connect(ConnParam::new(1, &[7; 56][..])).unwrap();
    assert_eq!(connect(PARAM), Err(Errno::EINVAL));
    assert_eq!(side.id.resolve_addr(None, "8.8.8.8:1".parse().unwrap()), Err(Errno::EINVAL));
    assert_eq!(side.id.peer_addr(), Some(addr));
    let passive = listener.requested(&context);
    assert_eq!(passive.id.accept(&ConnParam::new(1, &[0; 197][..])), Err(Errno::EINVAL));
    assert_eq!(passive.id.reject(&[0; 149]), Err(Errno::EINVAL));
    passive.id.accept(&ConnParam::new(1, &[7; 196][..])).unwrap();
    side.expect(EventKind::CONNECT_RESPONSE, 0);
}

#[test]
fn datagrams_learn_of_the_peers_queue_pair() {
    let context = open();
    let of = || Side::of(&context, PortSpace::UDP, QpType::Ud);
    let listener = of();
    listener.id.bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
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
