//! Tests of a live process that lost its descriptor of the fabric, or the record locks that are dropped with any
//! descriptor of the file: it works like any other (X3, X7), and is found dead once it is.

#![allow(unsafe_code)]

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use super::*;
use crate::cm::{CmId, ConnParam, EventChannel, EventKind, PortSpace};
use crate::memory::paths::AccessPath;

/// How a process loses its descriptors.
const HOW: &str = "DYING_HOW";
const ROUNDS: u64 = 60;

/// One side: ends with memory of each kind.
struct Side {
    ends: Vec<End>,
    cq: Cq,
    chance: Chance,
    device: &'static Device,
    _context: Context,
}

impl Side {
    fn new(context: Context, seed: u64) -> Self {
        let pd = context.alloc_pd().unwrap();
        let cq = context.cq(4 * OUTSTANDING).create().unwrap();
        let end = |memory| End::new(&pd, &cq, memory).unwrap();
        let ends = [Memory::Heap, Memory::Fabric].map(end).into();
        let device = context.device;
        Self { ends, cq, chance: Chance::new(seed), device, _context: context }
    }

    fn work(&mut self) {
        self.ends.iter_mut().for_each(|end| end.work(&mut self.chance).unwrap());
        poll(&mut self.cq, &mut self.ends).unwrap();
    }

    /// Each counts its completions, and checks their order.
    fn fails(&self) -> bool {
        self.ends.iter().any(|end| end.failure.is_some())
    }
}

/// Works a round at each order, and loses its descriptors when it is told to.
#[test]
#[ignore = "a process of another test"]
fn loses_it() {
    die_with_parent();
    let mut side = Side::new(open(), 2);
    side.ends.iter().for_each(|end| say(end.address()));
    for end in &mut side.ends {
        end.connect_to(order().parse().unwrap()).unwrap();
    }
    say("connected");
    loop {
        match order().as_str() {
            "lose" => lose(&std::env::var(HOW).unwrap(), side.device),
            "work" => side.work(),
            "make" => drop(Side::new(open(), 3)),
            "find" => {
                let shm = side.device.shm;
                let dead = shm.die_at(ANOTHER);
                assert!(shm.is_dead(dead), "it can tell");
                until("the dead is swept up after", || {
                    deaths::look(side.device);
                    shm.others().all(|other| other != dead)
                });
            }
            order => panic!("{order}?"),
        }
        say(side.fails());
    }
}

fn lose(how: &str, device: &'static Device) {
    match how {
        // SAFETY: what this process goes on with are its streams, and what is tested.
        "close_range" => unsafe { assert_eq!(libc::close_range(3, u32::MAX, 0), 0) },
        "read" => drop(File::open(device.shm.path().file()).unwrap()),
        how => panic!("{how}?"),
    }
}

fn goes_on_having_lost_it(how: &str) {
    let name = format!("lost-{how}-{}", std::process::id());
    let open_it = || OpenOptions::new().fabric(&name).open("loop0").unwrap();
    let mut side = Side::new(open_it(), 1);
    let environment = [(FABRIC, name.as_str()), (HOW, how)];
    let mut other = Actor::start("inside::dying::descriptors::loses_it", &environment);
    for end in &mut side.ends {
        end.connect_to(other.hear().parse().unwrap()).unwrap();
        other.order(end.address());
    }
    assert_eq!(other.hear(), "connected");
    let mut tell = |what: &str| {
        other.order(what);
        assert_eq!(other.hear(), "false", "{what}: nothing of its own fails");
    };
    let Device { shm, memory, .. } = *side.device;
    let owner = shm.others().next().unwrap();
    let device = side.device;
    let estate = || Estate::of(device, owner.attachment());
    let before = estate();
    tell("work");
    tell("lose");
    for nth in 0..ROUNDS {
        assert!(shm.is_alive(owner.attachment()) && !shm.is_dead(owner));
        assert!(deaths::look(side.device), "it has not left");
        assert!(shm.others().eq([owner]), "nobody takes its place");
        if nth % 10 == 0 {
            tell("make");
            // Files created by others conflict with nothing.
            drop(Side::new(open_it(), 4));
        }
        side.work();
        tell("work");
        assert!(!side.fails(), "{:?}", side.ends);
    }
    assert!(side.ends.iter().all(|end| end.arrived > 0 && end.received() > 0));
    assert_eq!(estate(), before, "nothing of it was freed");
    tell("find");
    until("its memory is reached directly again", || {
        matches!(memory.paths.of(memory, owner.attachment()), AccessPath::Direct(..))
    });
    other.signal(Signal::KILL);
    drop(other);
    recover_all(side.device);
    assert_eq!(audit::ownerless(side.device), [""; 0]);
    assert_eq!(estate(), Estate::default());
}

#[test]
fn x03_a_process_that_closes_all_its_descriptors_is_alive_and_goes_on() {
    goes_on_having_lost_it("close_range");
}

#[test]
fn x03_a_process_that_opens_and_closes_the_fabric_s_file_is_alive_and_goes_on() {
    goes_on_having_lost_it("read");
}

/// The program's own sockets, with the numbers of what it has closed.
struct OwnSockets(Vec<[UnixStream; 2]>);

impl OwnSockets {
    /// Closes what is not this process' own, and opens these.
    fn instead_of_all() -> Self {
        // SAFETY: what this process goes on with are its streams, and what is tested.
        unsafe { assert_eq!(libc::close_range(3, u32::MAX, 0), 0) };
        Self((0..64).map(|_| UnixStream::pair().unwrap().into()).collect())
    }

    /// They are open, and nothing was written to them or read from them.
    fn check(&mut self) {
        for [one, other] in &mut self.0 {
            for socket in [&mut *one, &mut *other] {
                socket.set_nonblocking(true).unwrap();
                let read = socket.read(&mut [0]).map_err(|error| error.kind());
                assert_eq!(read, Err(ErrorKind::WouldBlock), "{}", socket.as_raw_fd());
            }
            one.write_all(b"x").unwrap();
            assert_eq!(other.read(&mut [0; 2]).unwrap(), 1);
        }
    }
}

/// A channel of the connection manager, with an identifier that listens or requests a connection.
fn identifier(context: &Context, listens: bool) -> (EventChannel, CmId) {
    let channel = EventChannel::new(context).unwrap();
    let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
    if listens {
        id.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        id.listen(2).unwrap();
    } else {
        id.resolve_addr(None, "127.0.0.1:1".parse().unwrap()).unwrap();
        assert_eq!(channel.take().unwrap().unwrap().event.kind, EventKind::ADDR_RESOLVED);
        id.resolve_route().unwrap();
        assert_eq!(channel.take().unwrap().unwrap().event.kind, EventKind::ROUTE_RESOLVED);
        id.connect(&ConnParam::new(1, b"")).unwrap();
    }
    (channel, id)
}

/// Closes all descriptors that are not its own, opens others, and goes on with what it has.
#[test]
#[ignore = "a process of another test"]
fn opens_others() {
    die_with_parent();
    let mut fixture = Fixture::new();
    let mut channel = fixture.context.create_channel().unwrap();
    let mut cq = fixture.context.cq(8).channel(&channel).create().unwrap();
    let mut qp = fixture.own_peer_of(&fixture.pd.qp(&cq));
    let mut raise = |cq: &mut Cq| {
        assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
        let nowhere = RemoteAddr { addr: 0, rkey: 0 };
        qp.post_send(&[SendWr::write(1, &[], nowhere)]).unwrap();
        assert_eq!(polled(cq), [(1, WcStatus::SUCCESS)]);
    };
    raise(&mut cq);
    let [listens, requests] = [true, false].map(|listens| identifier(&fixture.context, listens));
    let mut own = OwnSockets::instead_of_all();
    for _ in 0..3 {
        assert_eq!(channel.block(Some(Instant::now())), Ok(Woken::Event));
        assert_eq!(channel.take_event(), Ok(Some(cq.key())));
        assert_eq!(channel.take_event(), Ok(None));
        assert_eq!(channel.block(Some(Instant::now())), Ok(Woken::DeadlinePassed));
        raise(&mut cq);
    }
    assert_eq!(fixture.told(), None);
    assert!(listens.0.take().unwrap().is_none());
    assert!(listens.0.block(Some(Instant::now())).is_err(), "it can't be readable");
    until("nobody listens", || {
        let event = requests.0.take().unwrap();
        event.is_some_and(|event| event.event.kind == EventKind::REJECTED)
    });
    own.check();
    drop((listens, requests, qp, cq, channel, fixture));
    own.check();
    say("done");
}

#[test]
fn x03_what_a_program_opens_in_place_of_what_it_has_closed_is_left_alone() {
    let actor = Actor::start("inside::dying::descriptors::opens_others", &[]);
    assert_eq!(actor.heard_within(Duration::from_secs(20)).as_deref(), Some("done"));
    assert!(actor.ended().success());
}
