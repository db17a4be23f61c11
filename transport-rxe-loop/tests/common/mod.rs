//! What the tests share: two connected ends, waiting for conditions with a deadline, and the names that most of them
//! use of the device and the engine.
#![allow(dead_code, unused_imports)]

pub mod actor;
#[path = "../inside/chance.rs"]
pub mod chance;
pub mod confined;
pub mod datagrams;
mod end;
#[path = "../inside/name_space.rs"]
pub mod name_space;
#[path = "../inside/actor.rs"]
pub mod process;
pub mod windows;

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use cq_core::cq::CompletionQueue;
pub use cq_core::transport::{Arm, Armed, Block, Events, Notify, PollCq, PollError, Woken};
pub use cq_core::wc::{Failed, Wc, WcFlags, WcOpcode, WcStatus as S};
pub use cq_verbs::async_event::{AsyncEvent, AsyncEventType, AsyncEvents, BlockAsync, Element};
pub use cq_verbs::device::QpBuilder;
pub use cq_verbs::post::{Post, PostError, WrError};
pub use cq_verbs::setup::{Endpoint, Port, SrqInit, inc_rkey};
pub use cq_verbs::wr::{Placement, RecvWr, RemoteAddr, Selectivity, SendWr, Sge, WindowBind};
use libtest_mimic::{Arguments, Trial};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
pub use transport_rxe_loop::{
    Access, AckTimeout, AddressVector, CompletionChannel, Context, Cq, CreateError, Destination,
    LimitKind, Limits, MemoryRegion, Mtu, OpenOptions, OwnedRegion, ProtectionDomain, QpAttr,
    QpCaps, QpState, QpType, QueuePair, RnrTimer,
};
use transport_rxe_loop::{Faults, OpenError};

pub use self::end::End;

/// The tests of a program that has no harness of libtest, one after the other: they start this program as their processes.
pub fn tests<const N: usize>(tests: [(&'static str, fn()); N]) {
    let tests = tests.map(|(name, run)| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    });
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, tests.into()).exit()
}

/// Longer than anything here takes, on any machine.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// How long a condition is waited for without sleep.
const SPIN: Duration = Duration::from_micros(200);

pub const ALL: Access = Access::LOCAL_WRITE.union(Access::REMOTE);

pub const CAPS: QpCaps =
    QpCaps::USUAL.max_send_wr(8).max_recv_wr(8).max_send_sge(4).max_recv_sge(4).max_inline(64);

/// What a fabric needs that many tests have one of each, until their process ends.
pub const SMALL: Limits = Limits::USUAL
    .queue_pairs(1024)
    .completion_queues(1024)
    .memory_regions(4096)
    .shared_receive_queues(256)
    .channels(512)
    .processes(64)
    .bytes(16 << 20);

/// Names the fabric that a further process is to use.
pub const FABRIC: &str = "TEST_FABRIC";

thread_local! {
    static JOINED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The fabric of this test alone, so that it may fill it, by the thread that runs it; or the one that the parent of
/// this process named.
pub fn fabric() -> String {
    let joined = JOINED.with_borrow(Clone::clone);
    joined.or_else(|| std::env::var(FABRIC).ok()).unwrap_or_else(|| {
        let thread = std::thread::current();
        assert!(thread.name().is_some(), "a thread that a test started has not joined its fabric");
        format!("test-{}-{}", std::process::id(), rustix::thread::gettid().as_raw_nonzero())
    })
}

/// Lets a thread that a test started open the device where the test does.
pub fn join(fabric: &str) {
    JOINED.set(Some(fabric.to_owned()));
}

/// In the fabric of this test.
pub fn open() -> Context {
    try_open().unwrap()
}

/// Where all queue pairs of an opening of the device are.
pub fn address(context: &Context) -> AddressVector {
    let here = context.port(1).unwrap();
    AddressVector::new(&here, here.gid, here.lid)
}

pub fn try_open() -> Result<Context, OpenError> {
    OpenOptions::new().fabric(&fabric()).limits(SMALL).open("loop0")
}

/// Two ends of a type in RTS, of this opening of the device, connected both ways if they are connections.
pub fn pair_on(context: &Context, qp_type: QpType) -> (End, End) {
    let [mut a, mut b] = [(); 2].map(|()| End::on(context, qp_type, CAPS));
    match qp_type {
        QpType::UD => [&mut a, &mut b].into_iter().for_each(End::activate),
        _ => connect(&mut a.qp, &mut b.qp),
    }
    (a, b)
}

/// What a process says first that runs an ignored test with these variables in its environment.
#[track_caller]
pub fn said_by(test: &str, environment: &[(&str, &str)]) -> String {
    let actor = process::Actor::start(test, environment);
    let said = actor.hear();
    actor.finish();
    said
}

/// The device in a fabric where this goes wrong, which no other test uses.
pub fn faulty(faults: Faults) -> Context {
    static FABRICS: AtomicU32 = AtomicU32::new(0);
    let nth = FABRICS.fetch_add(1, Ordering::Relaxed);
    let name = format!("faulty-{}-{nth}", std::process::id());
    let limits = Limits::USUAL.bytes(5 << 20);
    OpenOptions::new().fabric(&name).limits(limits).faults(faults).open("loop0").unwrap()
}

/// Two ends, connected both ways.
pub fn pair() -> (End, End) {
    pair_with(CAPS)
}

pub fn pair_with(caps: QpCaps) -> (End, End) {
    let (mut a, mut b) = (End::with(caps), End::with(caps));
    connect(&mut a.qp, &mut b.qp);
    (a, b)
}

pub fn connect(a: &mut QueuePair, b: &mut QueuePair) {
    a.connect_to(b.number()).unwrap();
    b.connect_to(a.number()).unwrap();
}

/// A queue pair that is its own peer.
pub fn to_itself(init: QpBuilder<'_, ProtectionDomain>) -> QueuePair {
    let mut qp = init.create().unwrap();
    qp.connect_to(qp.number()).unwrap();
    qp
}

/// What brings a queue pair to RTR that is to be connected to this one.
pub fn rtr(peer: &QueuePair) -> QpAttr {
    QpAttr::rtr(&Port::new(1), &Endpoint::new(peer.number()))
}

/// Connects a queue pair with these attributes.
pub fn connect_by(qp: &mut QueuePair, rtr: &QpAttr, rts: &QpAttr) {
    for attr in [&QpAttr::init(&Port::new(1), Access::REMOTE_WRITE), rtr, rts] {
        qp.modify(attr).unwrap();
    }
}

/// How to send to a peer that may take its time: it is waited for without end.
pub fn patient() -> QpAttr {
    QpAttr::rts().timeout(AckTimeout::UNLIMITED)
}

/// How to send so that waiting is over soon, whatever for.
pub fn impatient() -> QpAttr {
    QpAttr::rts().timeout(AckTimeout::from_number(1).unwrap()).retry_cnt(1).rnr_retry(1)
}

/// An end that sends by `rts` to another, which is not connected yet.
pub fn unanswered(rts: &QpAttr) -> (End, End) {
    let (mut a, b) = (End::new(), End::new());
    connect_by(&mut a.qp, &rtr(&b.qp), rts);
    (a, b)
}

/// Lets requests whose time is short, and which began to wait before, have their alarms.
#[track_caller]
pub fn let_short_times_pass() {
    let (mut a, _b) = unanswered(&impatient().timeout(AckTimeout::from_number(12).unwrap()));
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}

/// The queue key of what receives datagrams.
pub const QKEY: u32 = 0x1111;

/// Where nobody has memory. Of no bytes the key is not looked at.
pub const NOWHERE: RemoteAddr = RemoteAddr { addr: 0, rkey: 0 };

/// An SGE that no domain may use.
pub const BAD: Sge = Sge { addr: 0, length: 8, lkey: 0 };

/// These requests with this status.
pub fn all(wr_ids: impl IntoIterator<Item = u64>, status: S) -> Vec<(u64, S)> {
    wr_ids.into_iter().map(|wr_id| (wr_id, status)).collect()
}

/// Which requests completed, and how.
pub fn outcomes(completions: &[Wc]) -> Vec<(u64, S)> {
    completions.iter().map(|wc| (wc.wr_id(), wc.status())).collect()
}

/// Everything that is there now.
pub fn take(cq: &mut Cq) -> Vec<Wc> {
    let mut all = Vec::new();
    let mut buffer = [Wc::default(); 16];
    loop {
        match cq.poll_into(&mut buffer).unwrap() {
            0 => return all,
            count => all.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Every asynchronous event that there is now.
pub fn reports(context: &mut Context) -> Vec<AsyncEvent> {
    std::iter::from_fn(|| context.take_async_event().unwrap()).collect()
}

pub fn cq_err(cq: &Cq) -> AsyncEvent {
    AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(cq.key()) }
}

pub fn fatal(qp: &QueuePair) -> AsyncEvent {
    AsyncEvent { event_type: AsyncEventType::QP_FATAL, element: Element::Qp(qp.number()) }
}

/// Polls until `count` completions have come.
#[track_caller]
pub fn settle(cq: &mut Cq, count: usize) -> Vec<Wc> {
    let mut all = Vec::new();
    wait_for(|| {
        all.extend(take(cq));
        all.len() >= count
    });
    all
}

/// Waits until the first byte of a region is not zero any more.
#[track_caller]
pub fn wait_for_first_byte(region: &OwnedRegion) {
    let mut first = [0];
    wait_for(|| {
        region.read(0, &mut first).unwrap();
        first != [0]
    });
}

/// Whether a program that polls its descriptor would find something now.
pub fn is_readable(waited_on: &impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(waited_on, PollFlags::IN)], Some(&now)).unwrap() == 1
}

/// What waits for edges of a descriptor, as an event loop does that is edge-triggered.
pub struct Edges(OwnedFd);

impl Edges {
    pub fn of(waited_on: &impl AsFd) -> Self {
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, waited_on, EventData::new_u64(0), flags).unwrap();
        Self(epoll)
    }

    /// Whether there was one since this was asked last.
    pub fn next(&self) -> bool {
        let (mut events, now) = (Vec::with_capacity(1), Timespec { tv_sec: 0, tv_nsec: 0 });
        epoll::wait(&self.0, rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap() == 1
    }
}

/// Lets other threads run until `done`; after a while it sleeps between two looks, for the tests beside this one.
#[track_caller]
pub fn wait_for(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        match start.elapsed() {
            short if short < SPIN => std::thread::yield_now(),
            long => {
                assert!(long < DEADLINE, "the condition never came true");
                std::thread::sleep(SPIN / 4);
            }
        }
    }
}

/// Posts a request so often, numbered, as slots come back.
pub fn post_all(qp: &mut QueuePair, wr: SendWr<'_>, count: u64) {
    let mut wr_id = 0;
    wait_for(|| {
        match qp.post_send(&[SendWr { wr_id, ..wr }]) {
            Ok(()) => wr_id += 1,
            Err(error) => assert_eq!(error.why, WrError::QueueFull),
        }
        wr_id == count
    });
}

/// Hands `on` what exchanges messages of every kind, some of which fail, and polls empty queues.
pub fn exchange(on: impl FnOnce(&mut dyn FnMut())) {
    let (a, b) = pair();
    let (from, to) = ([a.region.sge(..300).unwrap()], [b.region.sge(..512).unwrap()]);
    let target = b.region.remote(1024).unwrap();
    let (mut a_qp, mut b_qp) = (a.qp, b.qp);
    let (mut a_cq, mut b_cq) = (CompletionQueue::new(a.cq), CompletionQueue::new(b.cq));
    let mut buffer = [Wc::default(); 8];
    on(&mut || {
        for round in 0..100 {
            assert!(b_cq.poll(&mut buffer).unwrap().is_empty());
            b_qp.post_recv(&[RecvWr::new(round, &to), RecvWr::new(round, &to)]).unwrap();
            let write = SendWr::write(round, &from, target).unsignaled();
            let inline = SendWr::send_inline(round, b"inline").with_imm([1; 4]);
            a_qp.post_send(&[write, SendWr::send(round, &from), inline]).unwrap();
            assert_eq!(b_cq.poll(&mut buffer).unwrap().len(), 2);
            assert_eq!(a_cq.poll(&mut buffer).unwrap().len(), 2);
        }
        let nowhere = SendWr::write(7, &from, RemoteAddr { addr: 1, rkey: 1 });
        a_qp.post_send(&[nowhere, SendWr::send(8, &from)]).unwrap();
        let failed = a_cq.poll(&mut buffer).unwrap();
        assert_eq!(failed[0].status(), S::REM_ACCESS_ERR);
        assert_eq!(failed[1].status(), S::WR_FLUSH_ERR);
    });
}
