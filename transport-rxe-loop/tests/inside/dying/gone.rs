//! Tests of memory that its owner takes away while it is registered: it unmaps it, protects it, or truncates its file.
//! That may end the owner, like any other access of its to what is not there. It never ends another process, nor what is
//! shared: others get a completion, and go on.

#![allow(unsafe_code)]

mod mapped;

use std::ptr::without_provenance_mut;

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};

use self::mapped::{Mapped, without_core};
use super::*;
use crate::memory::paths::AccessPath;

/// How memory becomes inaccessible, and what ends the program that accesses it then.
const TAKINGS: [(&str, Signal); 3] =
    [("unmapped", Signal::SEGV), ("protected", Signal::SEGV), ("truncated", Signal::BUS)];
/// Names it for a further process.
const TAKING: &str = "DYING_TAKING";
/// Names the request for which the memory is used then.
const REQUEST: &str = "DYING_REQUEST";

const LEN: usize = 64 << 10;
/// More bytes than one word, and than the header of a datagram.
const BYTES: usize = 512;
const ALL: Access = Access::LOCAL_WRITE.union(Access::REMOTE);
const QKEY: u32 = 1;

/// What the owner does with its memory by its own requests, all ends of which it has itself.
const OWN: [&str; 6] = ["sends", "receives", "writes", "reads", "adds", "datagrams"];

/// Takes its memory away, and uses it for a request.
#[test]
#[ignore = "a process of another test"]
fn uses_what_is_gone() {
    without_core();
    let mut fixture = its_fixture();
    let (mut qp, mut own, mut stations) =
        (fixture.qp(), fixture.own_peer(), [fixture.datagrams(), fixture.datagrams()]);
    let (gone, good, ah) = (Mapped::new(&fixture.pd), fixture.region(LEN), fixture.ah());
    say(qp.number());
    qp.connect_to(order().parse().unwrap()).unwrap();
    qp.post_recv(&[RecvWr::new(0, &[])]).unwrap();
    say("ready");
    order();
    let [there, short, word] = [BYTES, 64, 8].map(|len| [good.sge(..len).unwrap()]);
    let lost = gone.sge(BYTES);
    let to = Destination::new(&ah, stations[1].number(), QKEY);
    let request = std::env::var(REQUEST).unwrap();
    let (receive, wr) = match request.as_str() {
        "sends" => (&there, SendWr::send(1, &lost)),
        "receives" => (&lost, SendWr::send(1, &there)),
        "writes" => (&there, SendWr::write(1, &there, gone.remote())),
        "reads" => (&there, SendWr::read(1, &there, gone.remote())),
        "adds" => (&there, SendWr::fetch_add(1, &word, gone.remote(), 1)),
        _ => (&lost, SendWr::send(1, &short)),
    };
    gone.take_away();
    if request == "datagrams" {
        stations[1].post_recv(&[RecvWr::new(2, receive)]).unwrap();
        stations[0].to(&to).post_send(&[wr]).unwrap();
    } else {
        own.post_recv(&[RecvWr::new(2, receive)]).unwrap();
        own.post_send(&[wr]).unwrap();
    }
    // It is not to come here.
    say(format!("{:?}", fixture.next_wc()));
}

/// This process, with queue pairs of its own beside the one that is connected to another process.
struct Survivor {
    fixture: Fixture,
    name: String,
    pair: [QueuePair; 2],
    words: &'static [AtomicU64],
    heap: MemoryRegion,
    nth: u64,
}

impl Survivor {
    fn new(name: &str, options: OpenOptions) -> Self {
        let (fixture, name) = named(name, options);
        let (pair, (words, heap)) = (fixture.pair(), heap(&fixture.pd, LEN / 8, ALL));
        Self { fixture, name, pair, words, heap, nth: 100 }
    }

    fn start(&self, test: &str, taking: &str, request: &str) -> Actor {
        let environment = [(FABRIC, self.name.as_str()), (TAKING, taking), (REQUEST, request)];
        Actor::start(&format!("inside::dying::gone::{test}"), &environment)
    }

    fn sge(&self, len: usize) -> [Sge; 1] {
        [self.heap.sge(..len).unwrap()]
    }

    /// Posts a request, and waits for its completion.
    #[track_caller]
    fn outcome(&mut self, qp: &mut QueuePair, wr: SendWr<'_>) -> WcStatus {
        qp.post_send(&[wr]).unwrap();
        let (wr_id, status) = self.fixture.next_wc();
        assert_eq!(wr_id, wr.wr_id);
        status
    }

    /// Everything works, of this process, and with another one; nothing is held, and nothing left.
    #[track_caller]
    fn goes_on(&mut self, what: &str) {
        recover_all(self.fixture.device);
        assert_eq!(audit::ownerless(self.fixture.device), [""; 0], "{what}");
        // Only the service thread of this process may take one meanwhile.
        until("no lock is held", || audit::held(self.fixture.device).is_empty());
        self.works(what);
    }

    #[track_caller]
    fn works(&mut self, what: &str) {
        self.nth += 3;
        let (nth, before) = (self.nth, sync::load(&self.words[0]));
        let (from, to, word) = (
            self.sge(BYTES),
            [self.heap.sge(4096..4096 + BYTES).unwrap()],
            [self.heap.sge(8..16).unwrap()],
        );
        let [a, b] = &mut self.pair;
        b.post_recv(&[RecvWr::new(nth, &to)]).unwrap();
        a.post_send(&[
            SendWr::send(nth + 1, &from),
            SendWr::fetch_add(nth + 2, &word, self.heap.remote(0).unwrap(), 1),
        ])
        .unwrap();
        let mut came: Vec<_> = (0..3).map(|_| self.fixture.next_wc()).collect();
        came.sort_unstable_by_key(|&(wr_id, _)| wr_id);
        assert_eq!(came, [0, 1, 2].map(|i| (nth + i, WcStatus::SUCCESS)), "{what}");
        assert_eq!(sync::load(&self.words[0]), before + 1, "{what}");
    }
}

#[test]
fn x03_memory_that_is_taken_away_ends_at_most_the_process_that_has_it() {
    let mut survivor = Survivor::new("gone-own", OpenOptions::new());
    for (taking, signal) in TAKINGS {
        for request in OWN {
            let what = format!("{taking}, {request}");
            let mut victim = survivor.start("uses_what_is_gone", taking, request);
            let mut qp = survivor.fixture.qp();
            connect_with(
                &mut qp,
                victim.number() as u32,
                QpAttr::rts().timeout(AckTimeout::UNLIMITED),
            );
            victim.order(qp.number());
            assert_eq!(victim.hear(), "ready");
            assert_eq!(survivor.outcome(&mut qp, SendWr::send(1, &[])), WcStatus::SUCCESS);
            victim.go();
            let status = victim.leave();
            assert_eq!(status.signal(), Some(signal.as_raw()), "{what}: {:?}", victim.heard());
            let outcome = survivor.outcome(&mut qp, SendWr::send(2, &[]));
            assert_eq!(outcome, WcStatus::RETRY_EXC_ERR, "{what}");
            survivor.goes_on(&what);
        }
    }
}

/// Takes its memory away, which others use; uses it for requests to others; and goes on.
#[test]
#[ignore = "a process of another test"]
fn has_what_is_gone() {
    without_core();
    let mut fixture = its_fixture();
    let (gone, ah) = (Mapped::new(&fixture.pd), fixture.ah());
    say(Address { number: 0, memory: gone.remote() });
    let mut station = fixture.datagrams();
    say(station.number());
    let mut qps = [(); ASKED + ASKS].map(|()| fixture.qp());
    for qp in &mut qps {
        say(qp.number());
        connect_with(qp, order().parse().unwrap(), QpAttr::rts().timeout(AckTimeout::UNLIMITED));
    }
    let lost = gone.sge(BYTES);
    qps[ASKED - 1].post_recv(&[RecvWr::new(1, &lost)]).unwrap();
    station.post_recv(&[RecvWr::new(2, &lost)]).unwrap();
    gone.take_away();
    say("ready");
    order();
    // Of the requests of others, its receives.
    let mut came = [fixture.next_wc(), fixture.next_wc()];
    came.sort_unstable();
    say(format!("{came:?}"));
    // Of its own.
    let remote: Address = order().parse().unwrap();
    let far = remote.memory;
    let wrs = [SendWr::send(1, &lost), SendWr::write(2, &lost, far), SendWr::read(3, &lost, far)];
    for (qp, wr) in qps[ASKED..].iter_mut().zip(wrs) {
        qp.post_send(&[wr]).unwrap();
        say(format!("{:?}", fixture.next_wc().1));
    }
    let mut sender = fixture.datagrams();
    let to = Destination::new(&ah, remote.number, QKEY);
    sender.to(&to).post_send(&[SendWr::send(4, &lost)]).unwrap();
    say(format!("{:?}", fixture.next_wc().1));
    order();
    drop(qps);
    gone.region.deregister();
    fixture.own_peer();
    say("deregistered");
    order();
}

/// How many queue pairs are for requests of others to the owner, and for requests of the owner to others.
const ASKED: usize = 4;
const ASKS: usize = 3;

#[test]
#[ignore = "needs process_vm_readv(2)"]
fn x07_memory_that_is_taken_away_fails_requests_of_others_and_the_owner_goes_on() {
    let mut survivor = Survivor::new("gone-others", OpenOptions::new());
    for (taking, _) in TAKINGS {
        let mut owner = survivor.start("has_what_is_gone", taking, "");
        let far: Address = owner.hear().parse().unwrap();
        let (far, station) = (far.memory, owner.number() as u32);
        let mut qps = [(); ASKED + ASKS].map(|()| survivor.fixture.qp());
        for qp in &mut qps {
            connect_with(qp, owner.number() as u32, QpAttr::rts().timeout(AckTimeout::UNLIMITED));
            owner.order(qp.number());
        }
        assert_eq!(owner.hear(), "ready");
        must_be_direct(survivor.fixture.device);
        let (sges, word) = (survivor.sge(BYTES), survivor.sge(8));
        let wrs = [
            (SendWr::write(1, &sges, far), WcStatus::REM_ACCESS_ERR),
            (SendWr::read(2, &sges, far), WcStatus::REM_ACCESS_ERR),
            (SendWr::fetch_add(3, &word, far, 1), WcStatus::REM_ACCESS_ERR),
            (SendWr::send(4, &sges), WcStatus::REM_OP_ERR),
        ];
        for (qp, (wr, status)) in qps.iter_mut().zip(wrs) {
            assert_eq!(survivor.outcome(qp, wr), status, "{taking}, {}", wr.wr_id);
        }
        let (mut sender, ah) = (survivor.fixture.datagrams(), survivor.fixture.ah());
        let to = Destination::new(&ah, station, QKEY);
        sender.to(&to).post_send(&[SendWr::send(5, &survivor.sge(64))]).unwrap();
        assert_eq!(survivor.fixture.next_wc(), (5, WcStatus::SUCCESS));
        owner.go();
        assert_eq!(owner.hear(), "[(1, LOC_PROT_ERR), (2, LOC_PROT_ERR)]", "{taking}");
        blames_itself(&mut survivor, &mut owner, &mut qps[ASKED..], taking);
        drop(qps);
        owner.go();
        assert_eq!(owner.hear(), "deregistered");
        owner.finish();
        survivor.goes_on(taking);
    }
}

/// A request of the owner that needs its own memory is its own failure: its peers notice nothing.
fn blames_itself(survivor: &mut Survivor, owner: &mut Actor, qps: &mut [QueuePair], taking: &str) {
    let mut receiver = survivor.fixture.datagrams();
    let room = survivor.sge(BYTES + 40);
    qps[0].post_recv(&[RecvWr::new(6, &room)]).unwrap();
    receiver.post_recv(&[RecvWr::new(7, &room)]).unwrap();
    let memory = survivor.heap.remote(0).unwrap();
    owner.order(Address { number: receiver.number(), memory });
    for request in ["send", "write", "read", "datagram"] {
        assert_eq!(owner.hear(), "LOC_PROT_ERR", "{taking}, its own {request}");
    }
    let states: Vec<_> = qps.iter().chain([&receiver]).map(|qp| qp.state().unwrap()).collect();
    assert_eq!(states, [QpState::RTS; ASKS + 1], "{taking}");
    assert_eq!(survivor.fixture.polled(), [], "{taking}");
    // The receive that was taken for the datagram is the next one's.
    let (mut sender, ah) = (survivor.fixture.datagrams(), survivor.fixture.ah());
    let to = Destination::new(&ah, receiver.number(), QKEY);
    sender.to(&to).post_send(&[SendWr::send(8, &survivor.sge(64))]).unwrap();
    let mut came = [survivor.fixture.next_wc(), survivor.fixture.next_wc()];
    came.sort_unstable();
    assert_eq!(came, [(7, WcStatus::SUCCESS), (8, WcStatus::SUCCESS)], "{taking}");
}

/// Bytes from and to the only other process are moved by the system.
#[track_caller]
fn must_be_direct(device: &'static Device) {
    let other = device.shm.others().next().unwrap().attachment();
    let path = device.memory.paths.of(device.memory, other);
    assert!(
        matches!(path, AccessPath::Direct(_)),
        "this process may not read the memory of another"
    );
}

/// Takes its memory away, and waits for others to use it.
#[test]
#[ignore = "a process of another test"]
fn serves_what_is_gone() {
    without_core();
    let fixture = its_fixture();
    let (mut qp, gone) = (fixture.qp(), Mapped::new(&fixture.pd));
    say(Address { number: qp.number(), memory: gone.remote() });
    connect_with(&mut qp, order().parse().unwrap(), QpAttr::rts().timeout(AckTimeout::UNLIMITED));
    qp.post_recv(&[RecvWr::new(1, &gone.sge(BYTES))]).unwrap();
    gone.take_away();
    say("ready");
    order();
}

#[test]
fn x03_an_owner_that_copies_by_itself_ends_alone() {
    let mut survivor = Survivor::new("gone-service", OpenOptions::new().copying_by_service());
    for (taking, signal) in TAKINGS {
        for request in ["sends", "writes", "reads", "adds"] {
            let what = format!("{taking}, {request}");
            let mut owner = survivor.start("serves_what_is_gone", taking, request);
            let far: Address = owner.hear().parse().unwrap();
            let mut qp = survivor.fixture.qp();
            connect_with(&mut qp, far.number, QpAttr::rts().timeout(AckTimeout::UNLIMITED));
            owner.order(qp.number());
            assert_eq!(owner.hear(), "ready");
            let (sges, word) = (survivor.sge(BYTES), survivor.sge(8));
            let wr = match request {
                "sends" => SendWr::send(1, &sges),
                "writes" => SendWr::write(1, &sges, far.memory),
                "reads" => SendWr::read(1, &sges, far.memory),
                _ => SendWr::fetch_add(1, &word, far.memory, 1),
            };
            assert_eq!(survivor.outcome(&mut qp, wr), WcStatus::RETRY_EXC_ERR, "{what}");
            assert_eq!(owner.leave().signal(), Some(signal.as_raw()), "{what}");
            survivor.goes_on(&what);
        }
    }
}

#[test]
fn what_is_mapped_instead_is_what_a_key_names() {
    let mut survivor = Survivor::new("gone-instead", OpenOptions::new());
    let (mut qp, gone) = (survivor.fixture.own_peer(), Mapped::new(&survivor.fixture.pd));
    let (word, remote) = ([survivor.heap.sge(..8).unwrap()], gone.remote());
    let mut exchange = |value: u64| {
        sync::store(&survivor.words[0], value);
        let written = survivor.outcome(&mut qp, SendWr::write(1, &word, remote));
        let read = survivor.outcome(&mut qp, SendWr::read(2, &word, remote));
        assert_eq!((written, read), (WcStatus::SUCCESS, WcStatus::SUCCESS));
        sync::load(&survivor.words[0])
    };
    assert_eq!(exchange(1), 1);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: memory of this test alone takes the place of other such memory.
    let at = unsafe {
        mmap_anonymous(gone.at, LEN, ProtFlags::READ | ProtFlags::WRITE, flags).unwrap();
        gone.at.cast::<u64>().wrapping_byte_add(LEN / 2)
    };
    // SAFETY: a word there, which nobody writes now.
    let now = || unsafe { at.read_volatile() };
    assert_eq!((now(), exchange(2), now()), (0, 2, 2));
    // SAFETY: as above.
    unsafe { madvise(gone.at, LEN, Advice::LinuxDontNeed).unwrap() };
    assert_eq!((now(), exchange(3), now()), (0, 3, 3));
}

#[test]
fn memory_of_the_device_is_there_for_others_whatever_its_owner_does_with_it() {
    let mut survivor = Survivor::new("gone-fabric", OpenOptions::new());
    let mut owner = survivor.start("protects_memory_of_the_device", "", "");
    let far: Address = owner.hear().parse().unwrap();
    let mut qp = survivor.fixture.qp();
    connect_with(&mut qp, far.number, QpAttr::rts().timeout(AckTimeout::UNLIMITED));
    owner.order(qp.number());
    assert_eq!(owner.hear(), "ready");
    let sges = survivor.sge(BYTES);
    for wr in [SendWr::write(1, &sges, far.memory), SendWr::read(2, &sges, far.memory)] {
        assert_eq!(survivor.outcome(&mut qp, wr), WcStatus::SUCCESS);
    }
    owner.finish();
}

#[test]
#[ignore = "a process of another test"]
fn protects_memory_of_the_device() {
    without_core();
    let fixture = its_fixture();
    let (mut qp, region) = (fixture.qp(), fixture.region(LEN));
    let memory = region.remote(0).unwrap();
    say(Address { number: qp.number(), memory });
    connect_with(&mut qp, order().parse().unwrap(), QpAttr::rts().timeout(AckTimeout::UNLIMITED));
    let at = without_provenance_mut(memory.addr as usize);
    // SAFETY: nobody of this process looks at it meanwhile.
    unsafe { mprotect(at, LEN, MprotectFlags::empty()).unwrap() };
    say("ready");
    order();
    // SAFETY: as above.
    unsafe { mprotect(at, LEN, MprotectFlags::READ | MprotectFlags::WRITE).unwrap() };
}
