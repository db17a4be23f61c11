//! Tests of processes that die or stop at each step of connecting by addresses: the peer is told in time, no channel is
//! readable without an event, and the listener and the ports are as before.

use std::net::SocketAddr;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll as poll_descriptors};

use super::*;
use crate::cm::{CmId, ConnParam, EventChannel, EventKind, IdEvent, PortSpace};
use crate::inside::dying::steps::mortal_with;

const PARAM: ConnParam<&[u8]> = ConnParam::new(1, b"");
/// Which side dies.
const IS_SERVER: &str = "DYING_SERVER";
/// How often each step has been reached before; on a commit, one of these.
const TIMES: [usize; 3] = [0, 1, 2];

/// A side of a connection, until it has ended.
struct Side {
    channel: EventChannel,
    id: CmId,
    /// Of a listener: those that it has accepted and that have not ended.
    accepted: Vec<CmId>,
}

impl Side {
    fn new(context: Context) -> Self {
        let channel = EventChannel::new(&context).unwrap();
        let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
        Self { channel, id, accepted: Vec::new() }
    }

    fn listen(&self, addr: SocketAddr) -> SocketAddr {
        self.id.bind(addr).unwrap();
        self.id.listen(0).unwrap();
        self.id.local_addr().unwrap()
    }

    fn connect(&self, addr: SocketAddr) {
        self.id.resolve_addr(None, addr).unwrap();
        assert_eq!(self.next().event.kind, EventKind::ADDR_RESOLVED);
        self.id.resolve_route().unwrap();
        assert_eq!(self.next().event.kind, EventKind::ROUTE_RESOLVED);
        self.id.connect(&PARAM).unwrap();
    }

    /// An event, if there is one: so says the descriptor.
    fn take(&self) -> Option<IdEvent> {
        let (mut watched, now) = ([PollFd::new(&self.channel, PollFlags::IN)], Timespec::default());
        let is_readable = poll_descriptors(&mut watched, Some(&now)) == Ok(1);
        let taken = self.channel.take().unwrap();
        assert!(taken.is_some() || !is_readable, "readable without an event");
        taken
    }

    fn next(&self) -> IdEvent {
        let deadline = Some(Instant::now() + PATIENCE);
        loop {
            if let Some(event) = self.take() {
                return event;
            }
            assert_eq!(self.channel.block(deadline), Ok(Woken::Event), "it waits for ever");
        }
    }

    /// Takes part until a connection has ended.
    fn until_ended(&mut self, ends_it: bool) {
        while !self.is_end(self.next(), ends_it) {}
    }

    /// Does what comes next, and `ends` a connection that is established, unless the peer is to; whether one has ended.
    fn is_end(&mut self, IdEvent { id, event, request, .. }: IdEvent, ends_it: bool) -> bool {
        let passive = self.accepted.iter().position(|it| it.key() == id);
        let it = passive.map_or(&self.id, |index| &self.accepted[index]);
        match event.kind {
            EventKind::CONNECT_REQUEST => {
                let request = request.unwrap();
                // The peer may have gone.
                if request.accept(&PARAM).is_ok() {
                    self.accepted.push(request);
                }
                return false;
            }
            EventKind::CONNECT_RESPONSE if it.establish().is_err() => return true,
            EventKind::CONNECT_RESPONSE | EventKind::ESTABLISHED => {
                if ends_it {
                    it.disconnect().unwrap();
                }
                return false;
            }
            EventKind::TIMEWAIT_EXIT => return false,
            EventKind::DISCONNECTED => it.disconnect().unwrap(),
            kind => {
                assert!([EventKind::REJECTED, EventKind::UNREACHABLE].contains(&kind), "{kind}")
            }
        }
        passive.map(|index| self.accepted.remove(index));
        true
    }
}

/// One side of a connection, which dies or stops at a step.
#[test]
#[ignore = "a process of another test"]
fn takes_part() {
    die_there();
    let mut side = Side::new(open());
    if std::env::var_os(IS_SERVER).is_some() {
        say(side.listen("127.0.0.1:0".parse().unwrap()));
        side.until_ended(false);
    } else {
        side.connect(order().parse().unwrap());
        side.until_ended(true);
    }
}

/// A process that takes part, in its fabric.
fn victim(step: Step, time: usize, signal: Signal, is_server: bool) -> (Context, Actor) {
    let name = format!("connecting-{step:?}-{time}-{}-{is_server}", signal.as_raw());
    let (fixture, fabric) = named(&name, OpenOptions::new());
    let more = if is_server { &[(IS_SERVER, "")][..] } else { &[] };
    let test = "inside::dying::connecting::takes_part";
    (fixture.context.clone(), mortal_with(test, &fabric, (step, time, signal), more))
}

fn is_over(victim: &mut Actor) -> bool {
    victim.has_ended() || victim.is_stopped()
}

/// Connects to a server that dies or stops.
fn outlives_server(context: Context, mut server: Actor) {
    let mut said = None;
    until("it listens, or is over", || {
        said = server.heard();
        said.is_some() || is_over(&mut server)
    });
    let Some(addr) = said.map(|addr| addr.parse().unwrap()) else { return };
    let mut side = Side::new(context.clone());
    side.connect(addr);
    side.until_ended(true);
    drop(side);
    until("it is over", || is_over(&mut server));
    if server.has_ended() {
        assert_eq!(Side::new(context).listen(addr), addr);
    }
}

/// Serves a client that dies or stops, and then another one.
fn outlives_client(context: Context, mut client: Actor) {
    let mut side = Side::new(context.clone());
    let addr = side.listen("127.0.0.1:0".parse().unwrap());
    client.order(addr);
    until("it is over", || {
        if let Some(event) = side.take() {
            side.is_end(event, false);
        }
        is_over(&mut client)
    });
    // Those that are established by now; the others end when they are, or can't be.
    side.accepted.iter().for_each(|it| _ = it.disconnect());
    let other = Side::new(context);
    other.connect(addr);
    let of_other = |event: &IdEvent| {
        event.request.as_ref().is_some_and(|it| it.peer_addr() == other.id.local_addr())
    };
    let mut is_served = false;
    while !is_served || !side.accepted.is_empty() {
        match side.next() {
            event if of_other(&event) => is_served = true,
            event => _ = side.is_end(event, true),
        }
    }
}

#[test]
fn who_dies_or_stops_at_any_step_of_connecting_keeps_nobody_waiting() {
    thread::scope(|scope| {
        // A process that is stopped while it holds the ports' lock delays those who bind.
        let with_lock = (Step::Entered, &[Signal::KILL][..]);
        let steps = Step::CONNECTING.map(|step| (step, &[Signal::KILL, Signal::STOP][..]));
        for (nth, (step, signals)) in steps.into_iter().chain([with_lock]).enumerate() {
            for time in one_or_all(&TIMES, nth) {
                for &signal in signals {
                    let (context, server) = victim(step, time, signal, true);
                    scope.spawn(move || outlives_server(context, server));
                    let (context, client) = victim(step, time, signal, false);
                    scope.spawn(move || outlives_client(context, client));
                }
            }
        }
    });
}

/// Listens, and is killed while a child that it forked lives on with all its descriptors.
#[test]
#[ignore = "a process of another test"]
#[allow(unsafe_code)]
fn listens_and_leaves_a_child() {
    let side = Side::new(open());
    let addr = side.listen("127.0.0.1:0".parse().unwrap());
    // SAFETY: the child calls `alarm` and `pause` alone, which are async-signal-safe.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: neither has a precondition.
        unsafe {
            libc::alarm(60);
            loop {
                libc::pause();
            }
        }
    }
    say(format_args!("{addr} {child}"));
    order();
    rustix::process::kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
}

/// Its port is as if nobody listened, though the child has its socket.
#[test]
fn who_requests_a_connection_of_a_dead_listener_with_a_living_child_is_rejected() {
    let (fixture, fabric) = named("connecting-child", OpenOptions::new());
    let test = "inside::dying::connecting::listens_and_leaves_a_child";
    let mut server = Actor::start(test, &[(FABRIC, &fabric)]);
    let said = server.hear();
    let (addr, child) = said.split_once(' ').unwrap();
    server.go();
    until("it has ended", || server.has_ended());
    let side = Side::new(fixture.context.clone());
    side.connect(addr.parse().unwrap());
    let told = side.next().event.kind;
    let child = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(child, Signal::KILL).unwrap();
    assert_eq!(told, EventKind::REJECTED);
}

/// Listens, and takes nothing.
#[test]
#[ignore = "a process of another test"]
fn listens_only() {
    die_with_parent();
    let side = Side::new(open());
    say(side.listen("127.0.0.1:0".parse().unwrap()));
    order();
}

/// Has the fabric open.
#[test]
#[ignore = "a process of another test"]
fn is_there() {
    die_with_parent();
    let _context = open();
    say("here");
    order();
}

#[test]
fn a_service_thread_with_many_requests_to_send_again_does_its_other_work() {
    const MANY: usize = 2_000;
    let (fixture, fabric) = named("connecting-many", OpenOptions::new());
    let start =
        |part| Actor::start(&format!("inside::dying::connecting::{part}"), &[(FABRIC, &*fabric)]);
    let (mut server, mut other) = (start("listens_only"), start("is_there"));
    let addr = server.hear().parse().unwrap();
    assert_eq!(other.hear(), "here");
    server.signal(Signal::STOP);
    until("it is stopped", || server.is_stopped());
    let shm = fixture.device.shm;
    shm.watch().unwrap();
    let channel = EventChannel::new(&fixture.context).unwrap();
    let resolved = (0..MANY).map(|_| {
        let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
        id.resolve_addr(None, addr).unwrap();
        id.resolve_route().unwrap();
        while channel.take().unwrap().is_some() {}
        id
    });
    let resolved: Vec<_> = resolved.collect();
    resolved.iter().for_each(|id| id.connect(&PARAM).unwrap());
    other.kill();
    until("the dead one is noticed, or the first request is over", || {
        shm.others().count() == 1 || channel.take().unwrap().is_some()
    });
    assert_eq!(shm.others().count(), 1, "it is noticed first");
    server.kill();
}
