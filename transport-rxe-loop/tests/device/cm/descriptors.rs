//! Connecting where the process may have no more descriptors, or the system refuses something: each call succeeds, or fails
//! with that error and changes nothing, and succeeds once the system grants it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use transport_rxe_loop::CreateError;

use super::super::common::confined::refused;
use super::super::common::process::{Actor, order, say};
use super::*;

/// What the calls of a process may lack.
#[derive(Clone, Copy, Debug)]
enum Lack {
    /// Descriptors of the process: it may have so many more.
    Descriptors(usize),
    /// One kind of descriptor of the system.
    Kind(libc::c_long),
}

/// The calls that make descriptors.
const KINDS: [libc::c_long; 7] = [
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_accept4,
    libc::SYS_epoll_create1,
    libc::SYS_timerfd_create,
    libc::SYS_eventfd2,
    libc::SYS_openat,
];

/// More than one call makes.
const MOST: usize = 12;

impl Lack {
    fn all() -> impl Iterator<Item = Self> {
        let kinds = KINDS.into_iter().map(Self::Kind);
        kinds.chain((0..MOST).map(Self::Descriptors))
    }

    fn errno(self) -> Errno {
        match self {
            Self::Descriptors(_) => Errno(libc::EMFILE),
            Self::Kind(_) => Errno(libc::ENFILE),
        }
    }

    /// Does something where that is so.
    fn with<T: Send>(self, what: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Kind(call) => refused(&[call], libc::ENFILE, what),
            Self::Descriptors(free) => {
                let (taken, old) = (descriptors(), getrlimit(Resource::Nofile));
                // The numbers below the limit are those that are taken, and so many free ones.
                let limit = (0..).filter(|number| !taken.contains(number)).nth(free);
                let lower = Rlimit { current: limit, maximum: old.maximum };
                setrlimit(Resource::Nofile, lower).unwrap();
                let outcome = what();
                setrlimit(Resource::Nofile, old).unwrap();
                outcome
            }
        }
    }
}

/// The descriptors of this process, but for that of the folder in which they are read.
fn descriptors() -> BTreeSet<u64> {
    let names = fs::read_dir("/proc/thread-self/fd").unwrap().map(|entry| entry.unwrap().path());
    let is_there = |path: &std::path::PathBuf| path.read_link().is_ok();
    let names: Vec<_> = names.collect();
    let there = names.into_iter().filter(is_there);
    there.map(|path| path.file_name().unwrap().to_str().unwrap().parse().unwrap()).collect()
}

impl Lack {
    /// A call that this may make fail: it changes nothing then, and succeeds as soon as nothing lacks.
    #[track_caller]
    fn attempt<T: Send + Debug>(
        self,
        what: &str,
        mut call: impl FnMut() -> Result<T, Errno> + Send,
        mut is_as_before: impl FnMut() -> bool,
    ) -> T {
        let before = descriptors();
        match self.with(&mut call) {
            Ok(it) => return it,
            Err(errno) => assert_eq!(errno, self.errno(), "{what}, {self:?}"),
        }
        assert!(is_as_before(), "{what}, {self:?}: it has changed something");
        wait_for(|| descriptors() == before);
        call().unwrap_or_else(|errno| panic!("{what}, after {self:?}: {errno:?}"))
    }

    /// A new identifier with its channel.
    fn side(self) -> Side {
        let channel = || {
            EventChannel::new(CONTEXT.get().unwrap()).map_err(|error| match error {
                CreateError::Refused(failed) => failed.errno(),
                error => panic!("{error}"),
            })
        };
        let channel = self.attempt("create_event_channel", channel, || true);
        let id = || CmId::new(&channel, PortSpace::TCP, QpType::RC);
        let id = self.attempt("create_id", id, || true);
        Side { channel, id }
    }

    /// The next event of a side, which stays there until it can be taken.
    #[track_caller]
    fn next(self, side: &Side, kind: EventKind) -> IdEvent {
        wait_for(|| is_readable(&side.channel));
        let take = || Ok(side.channel.take()?.expect("readable without an event"));
        let event = self.attempt("get_cm_event", take, || is_readable(&side.channel));
        assert_eq!((event.event.kind, event.event.status), (kind, Status(0)), "{self:?}");
        event
    }

    /// Binds and listens.
    fn listens(self, at: SocketAddr) -> (Side, SocketAddr) {
        let side = self.side();
        let is_unbound = || side.id.local_addr().is_none();
        self.attempt("bind_addr", || side.id.bind(at), is_unbound);
        self.attempt("listen", || side.id.listen(4), || !is_readable(&side.channel));
        let addr = side.id.local_addr().unwrap();
        (side, addr)
    }

    /// All but the connection, from a port that it has asked for, or is given.
    fn resolves(self, to: SocketAddr, is_bound: bool) -> Side {
        let side = self.side();
        let is_silent = || !is_readable(&side.channel);
        if is_bound {
            let any = SocketAddr::new(to.ip(), 0);
            let is_unbound = || side.id.local_addr().is_none();
            self.attempt("bind_addr", || side.id.bind(any), is_unbound);
        }
        let resolve = || side.id.resolve_addr(None, to);
        self.attempt("resolve_addr", resolve, || {
            is_silent() && side.id.local_addr().is_some() == is_bound
        });
        self.next(&side, EventKind::ADDR_RESOLVED);
        self.attempt("resolve_route", || side.id.resolve_route(), is_silent);
        self.next(&side, EventKind::ROUTE_RESOLVED);
        side
    }

    /// A whole connection, where each call may lack this.
    fn connects(self, at: SocketAddr, is_bound: bool) {
        let (listener, addr) = self.listens(at);
        let to = if at.is_ipv4() { "127.0.0.1" } else { "::1" };
        let to = SocketAddr::new(to.parse().unwrap(), addr.port());
        let active = self.resolves(to, is_bound);
        let connect = || active.id.connect(&PARAM);
        self.attempt("connect", connect, || !is_readable(&listener.channel));
        let request = self.next(&listener, EventKind::CONNECT_REQUEST).request.unwrap();
        listener.is_silent();
        self.attempt("accept", || request.accept(&PARAM), || !is_readable(&active.channel));
        self.next(&active, EventKind::CONNECT_RESPONSE);
        self.attempt("establish", || active.id.establish(), || !is_readable(&listener.channel));
        self.next(&listener, EventKind::ESTABLISHED);
        let disconnect = || active.id.disconnect();
        self.attempt("disconnect", disconnect, || !is_readable(&listener.channel));
        self.next(&listener, EventKind::DISCONNECTED);
        self.attempt("disconnect", || request.disconnect(), || true);
        self.next(&active, EventKind::DISCONNECTED);
        self.with(move || drop((active, request, listener)));
        // The port is free again.
        self.listens(addr);
    }
}

static CONTEXT: OnceLock<Context> = OnceLock::new();

/// Connects in all ways, for each lack, in a process of its own.
#[test]
#[ignore = "a process of another test"]
fn lacks_each() {
    CONTEXT.get_or_init(open);
    let ways = ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"].map(|at| at.parse().unwrap());
    let ways = ways.into_iter().flat_map(|at| [(at, false), (at, true)]);
    let plenty = Lack::Descriptors(500);
    ways.clone().for_each(|(at, is_bound)| plenty.connects(at, is_bound));
    let before = descriptors();
    for lack in Lack::all() {
        for (at, is_bound) in ways.clone() {
            lack.connects(at, is_bound);
        }
        wait_for(|| descriptors() == before);
    }
    say("done");
}

#[test]
fn each_call_succeeds_or_fails_for_what_lacks_and_changes_nothing() {
    let actor = Actor::start("cm::descriptors::lacks_each", &[(FABRIC, &fabric())]);
    assert_eq!(actor.hear(), "done");
    assert!(actor.ended().success());
}

/// Requests that arrive while the listener has no descriptor.
const MANY: usize = 30;

/// Listens without a descriptor until it is told, and accepts all requests then.
#[test]
#[ignore = "a process of another test"]
fn listens_without_descriptors() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", MANY as i32);
    let none = Lack::Descriptors(0);
    let mut requests = Vec::new();
    none.with(|| {
        say(addr);
        // By now one has arrived.
        order();
        wait_for(|| is_readable(&listener.channel));
        assert_eq!(listener.channel.take().unwrap_err(), none.errno());
        // All have.
        order();
        for _ in 0..3 {
            assert!(is_readable(&listener.channel));
            assert_eq!(listener.channel.take().unwrap_err(), none.errno());
        }
    });
    let few = Lack::Descriptors(1);
    requests.push(few.with(|| listener.next()));
    while requests.len() < MANY {
        requests.push(listener.next());
    }
    for event in requests {
        assert_eq!(event.event.kind, EventKind::CONNECT_REQUEST);
        event.request.unwrap().accept(&PARAM).unwrap();
    }
    order();
}

#[test]
fn requests_wait_for_a_listener_without_descriptors_and_none_is_lost() {
    let context = open();
    let test = "cm::descriptors::listens_without_descriptors";
    let mut actor = Actor::start(test, &[(FABRIC, &fabric())]);
    let addr = actor.hear().parse().unwrap();
    let first = Side::requests(&context, addr);
    actor.go();
    let mut all = vec![first];
    all.extend((1..MANY).map(|_| Side::requests(&context, addr)));
    actor.go();
    for active in &all {
        active.expect(EventKind::CONNECT_RESPONSE, 0);
    }
    actor.finish();
}

#[test]
fn who_finds_the_listener_connects_though_the_system_refuses_a_thread() {
    let context = open();
    let (actor, addr) = super::across::server("the end");
    let active = Side::new(&context);
    active.resolve(addr);
    let threads = [libc::SYS_clone, libc::SYS_clone3];
    refused(&threads, libc::EAGAIN, || active.id.connect(&PARAM)).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE, 0);
    active.id.establish().unwrap();
    active.id.disconnect().unwrap();
    active.expect(EventKind::DISCONNECTED, 0);
    assert!(actor.ended().success());
}
