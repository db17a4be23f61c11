//! Many processes that connect to one listener at once: all are served.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::super::common::process::{Actor, order, say};
use super::*;

/// Where a server listens.
const AT: &str = "TEST_LISTENS_AT";

/// The fabric of a test, with more processes than usual.
fn crowd() -> Context {
    let limits = SMALL.processes(200);
    OpenOptions::new().fabric(&fabric()).limits(limits).open("loop0").unwrap()
}

/// What a server has seen.
#[derive(Debug, Default)]
struct Served {
    accepted: BTreeMap<u64, CmId>,
    established: u64,
    /// How often the channel was readable without an event: in rdma_get_cm_event, it would have waited for the next.
    deceived: u64,
}

impl Served {
    /// Takes an event if there is one, so says poll(2).
    fn look(&mut self, channel: &EventChannel) {
        let _ = channel.block(Some(Instant::now() + Duration::from_millis(1))).unwrap();
        if !is_readable(channel) {
            return;
        }
        let Some(IdEvent { id, event, request, .. }) = channel.take().unwrap() else {
            self.deceived += 1;
            return;
        };
        match event.kind {
            EventKind::CONNECT_REQUEST => {
                let request = request.unwrap();
                // The peer may have gone.
                if request.accept(&PARAM).is_ok() {
                    self.accepted.insert(request.key(), request);
                }
            }
            EventKind::ESTABLISHED => self.established += 1,
            EventKind::TIMEWAIT_EXIT => {}
            _ => _ = self.accepted.remove(&id),
        }
    }
}

/// Accepts all requests; says for each order how many are established, how many identifiers and descriptors there are, and
/// how often it was deceived.
#[test]
#[ignore = "a process of the other tests"]
fn serves() {
    let context = crowd();
    let listener = Side::new(&context);
    listener.id.bind(std::env::var(AT).unwrap().parse().unwrap()).unwrap();
    listener.id.listen(0).unwrap();
    say(listener.id.local_addr().unwrap());
    let (sender, orders) = channel();
    std::thread::spawn(move || {
        loop {
            sender.send(order()).unwrap();
        }
    });
    let mut served = Served::default();
    loop {
        served.look(&listener.channel);
        if orders.try_recv().is_ok() {
            let descriptors = fs::read_dir("/proc/thread-self/fd").unwrap().count();
            let Served { accepted, established, deceived } = &served;
            say(format_args!("{established} {} {descriptors} {deceived}", accepted.len()));
        }
    }
}

/// Connects to an address so often, one after the other; says how long the longest took, in microseconds.
#[test]
#[ignore = "a process of the other tests"]
fn asks() {
    let context = crowd();
    say("here");
    let line = order();
    let (addr, times) = line.split_once(' ').unwrap();
    let longest = (0..times.parse().unwrap()).map(|_| {
        let active = Side::new(&context);
        active.resolve(addr.parse().unwrap());
        let begun = Instant::now();
        active.id.connect(&PARAM).unwrap();
        active.expect(EventKind::CONNECT_RESPONSE, 0);
        let took = begun.elapsed();
        active.id.establish().unwrap();
        active.id.disconnect().unwrap();
        active.expect(EventKind::DISCONNECTED, 0);
        took
    });
    say(longest.max().unwrap().as_micros());
    order();
}

/// A server, and what it says of itself.
pub struct Server {
    pub actor: Actor,
    pub addr: SocketAddr,
}

/// What a server says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    pub established: u64,
    pub identifiers: u64,
    pub descriptors: u64,
    pub deceived: u64,
}

impl Server {
    pub fn start(fabric: &str) -> Self {
        Self::start_at(fabric, "127.0.0.1:0".parse().unwrap())
    }

    /// One that listens there.
    pub fn start_at(fabric: &str, addr: SocketAddr) -> Self {
        let environment = [(FABRIC, fabric), (AT, &addr.to_string())];
        let actor = Actor::start("cm::storms::serves", &environment);
        let addr = actor.hear().parse().unwrap();
        Self { actor, addr }
    }

    #[track_caller]
    pub fn ask(&mut self) -> Said {
        self.actor.go();
        let said = self.actor.hear();
        let mut numbers = said.split(' ').map(|number| number.parse().unwrap());
        let [established, identifiers, descriptors, deceived] =
            [(); 4].map(|()| numbers.next().unwrap());
        Said { established, identifiers, descriptors, deceived }
    }
}

/// Clients that connect so often each, once they are told.
pub struct Clients(Vec<Actor>);

impl Clients {
    pub fn start(fabric: &str, count: usize) -> Self {
        let start = |_| Actor::start("cm::storms::asks", &[(FABRIC, fabric)]);
        let clients: Vec<_> = (0..count).map(start).collect();
        clients.iter().for_each(|client| assert_eq!(client.hear(), "here"));
        Self(clients)
    }

    /// Has all connect at once, so often each. How long the longest request waited for its answer.
    #[track_caller]
    pub fn connect(&mut self, addr: SocketAddr, times: usize) -> Duration {
        self.0.iter_mut().for_each(|client| client.order(format_args!("{addr} {times}")));
        let longest = self.0.iter().map(Actor::number).max().unwrap();
        self.0.drain(..).for_each(Actor::finish);
        Duration::from_micros(longest)
    }
}

#[test]
fn requests_of_many_processes_at_once_are_all_served() {
    let (clients, times, fabric) = (100, 100, fabric());
    let (mut server, mut all) = (Server::start(&fabric), Clients::start(&fabric, clients));
    let before = server.ask();
    let longest = all.connect(server.addr, times);
    eprintln!("{clients} clients, {times} requests each: the longest waited {longest:?}");
    wait_for(|| server.ask().identifiers == 0);
    let after = server.ask();
    assert_eq!(after.established, (clients * times) as u64);
    assert_eq!((after.descriptors, after.deceived), (before.descriptors, 0));
}
