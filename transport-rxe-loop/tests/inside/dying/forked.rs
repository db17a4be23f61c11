//! Tests of a device in a forked child (X7): whatever the child does with what it inherited is refused or has no
//! effect, and its parent continues; and the child can open the device itself.

#![allow(unsafe_code)]

use std::io::{PipeWriter, Read, Write, pipe};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cq_core::transport::EventError;
use cq_verbs::setup::Errno;

use super::*;
use crate::conditions::FORKED;
use crate::error::CreateError;
use crate::inside::attaching::forks::{exit_code, fork};
use crate::inside::subscriber::Recorder;

/// How often the process forks, with the other thread in the middle of something each time.
const FORKS: u64 = 40;

/// Two connected ends and their objects.
struct Pair {
    ends: Vec<End>,
    srq: SharedReceiveQueue,
    cq: Cq,
    channel: CompletionChannel,
    pd: ProtectionDomain,
    context: Context,
}

impl Pair {
    fn new() -> Outcome<Self> {
        let context = open();
        let (pd, channel) = (context.alloc_pd().unwrap(), context.create_channel()?);
        let cq = context.cq(4 * OUTSTANDING).channel(&channel).create()?;
        let memories = [Memory::Fabric, Memory::Heap];
        let mut ends: Vec<_> =
            memories.into_iter().map(|it| End::new(&pd, &cq, it)).collect::<Outcome<_>>()?;
        let addresses = [1, 0].map(|other: usize| ends[other].address());
        ends.iter_mut().zip(addresses).try_for_each(|(end, peer)| end.connect_to(peer))?;
        let srq = pd.create_srq(&SrqInit::new(4))?;
        Ok(Self { ends, srq, cq, channel, pd, context })
    }

    fn work(&mut self, chance: &mut Chance) -> Outcome<()> {
        self.ends.iter_mut().try_for_each(|end| end.work(chance))?;
        let _ = self.cq.arm(Notify::Next)?;
        poll(&mut self.cq, &mut self.ends)?;
        while self.channel.take_event()?.is_some() {}
        Ok(())
    }

    /// An event arrives, and a waiting thread wakes up.
    fn wakes(&mut self) -> Outcome<bool> {
        poll(&mut self.cq, &mut self.ends)?;
        let _ = self.cq.arm(Notify::Next)?;
        self.ends[0].post_recvs(1)?;
        self.ends[1].post_recvs(1)?;
        self.ends[0].post_send(true, true)?;
        Ok(self.channel.block(Some(Instant::now() + PATIENCE / 2))? == Woken::Event)
    }

    /// In the child: everything is refused or has no effect.
    fn finds_no_use(mut self) -> Outcome<()> {
        FORBIDDEN.store(true, Relaxed);
        const NODEV: i32 = libc::ENODEV;
        let Self { ends, srq, cq, channel, pd, context } = &mut self;
        let qp = &mut ends[0].qp;
        let refused = qp.post_send(&[SendWr::send_inline(1, &[])]).unwrap_err();
        assert_eq!(refused.why, WrError::WrongState);
        let refused = qp.post_recv(&[RecvWr::new(1, &[])]).unwrap_err();
        assert_eq!(refused.why, WrError::WrongState);
        for state in [QpState::RESET, QpState::ERR] {
            assert_eq!(qp.modify(&QpAttr::new().state(state)), Err(FORKED.into()));
        }
        assert_eq!(qp.state().map_err(|error| error.errno()), Err(Errno::ENODEV));
        assert_eq!(qp.attributes().map_err(|error| error.errno()), Err(Errno::ENODEV));
        let refused = srq.post_recv(&[RecvWr::new(1, &[])]).unwrap_err();
        assert_eq!((refused.why, srq.waiting()), (WrError::WrongState, 0));
        assert_eq!(srq.arm_limit(1), Err(FORKED.into()));
        assert_eq!(srq.limit().map_err(|error| error.errno()), Err(Errno::ENODEV));
        assert_eq!(cq.poll_into(&mut [Wc::default(); 4]), Err(PollError::Device(NODEV)));
        let _either = cq.arm(Notify::Next);
        assert_eq!(cq.resize(100), Err(CreateError::from(FORKED).into()));
        assert_eq!(cq.moderate(2, 1), Err(FORKED.into()));
        assert_eq!(channel.take_event(), Err(EventError::Device(NODEV)));
        assert_eq!(channel.block(None), Err(EventError::Device(NODEV)));
        assert_eq!(context.take_async_event(), Err(EventError::Device(NODEV)));
        assert_eq!(context.wait_async(None), Err(EventError::Device(NODEV).into()));
        let forked = Some(CreateError::from(FORKED));
        assert_eq!(context.create_channel().err(), forked);
        assert_eq!(context.cq(4).create().err(), forked);
        assert_eq!(context.alloc_pd().err(), forked);
        assert_eq!(pd.qp(cq).create().err(), forked);
        assert_eq!(pd.allocate(64, Access::LOCAL_WRITE).err(), Some(FORKED.into()));
        // As if the service thread owned the send queue, which does not exist here.
        let fabric = context.device;
        let _kept = fabric.engine.alarms.keep();
        // As if another thread had been reading its events.
        let bell = Arc::clone(&context.events);
        let _taking = bell.hold();
        drop(self);
        FORBIDDEN.store(false, Relaxed);
        Ok(())
    }
}

/// Whether no event may be sent to a subscriber, which another thread of the parent may have locked.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Everything that a child does. It finds its parent at `parent`, which it tells by a pipe where it is.
fn child(inherited: Pair, parent: Address, pipe: PipeWriter) -> Outcome<()> {
    inherited.finds_no_use()?;
    let mut own = Pair::new()?;
    own.work(&mut Chance::new(1))?;
    Near::new(&own.context, &own.pd)?.work(&mut Chance::new(2))?;
    let ends = &mut own.ends[..1];
    { pipe }.write_all(ends[0].address().to_string().as_bytes())?;
    ends[0].connect_to(parent)?;
    talk(&mut own.cq, ends)
}

/// A message in each direction.
fn talk(cq: &mut Cq, ends: &mut [End]) -> Outcome<()> {
    ends[0].post_recvs(1)?;
    ends[0].post_send(true, false)?;
    until("both hear each other", || {
        poll(cq, ends).is_ok() && ends[0].arrived == 1 && ends[0].received() == 1
    });
    Ok(())
}

/// What a child inherits from its parent, which continues to use it.
fn inherit<T>(what: &T) -> ManuallyDrop<T> {
    // SAFETY: only ever used, and dropped, in the child, whose memory is a copy.
    ManuallyDrop::new(unsafe { std::ptr::read(what) })
}

/// Records that the test is over, even if it panics: nobody waits for the other thread for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
#[ignore = "a process of another test"]
fn forks() {
    die_with_parent();
    // That of the child, too, since this thread forks.
    let watcher = Recorder::telling(|| assert!(!FORBIDDEN.load(Relaxed), "an event in the child"));
    let watcher: &Recorder = Box::leak(Box::new(watcher));
    let _guard = watcher.listens();
    let mut pair = Pair::new().unwrap();
    let fabric = pair.context.device;
    let mut far_cq = pair.context.cq(OUTSTANDING).create().unwrap();
    let mut far = [End::new(&pair.pd, &far_cq, Memory::Fabric).unwrap()];
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let (mut own, mut chance) = (Pair::new().unwrap(), Chance::new(3));
            while !over.load(Relaxed) {
                own.work(&mut chance).unwrap();
            }
        });
        let ends = Over(&over);
        for nth in 0..FORKS {
            assert!(pair.wakes().unwrap());
            let (inherited, parent) = (inherit(&pair), far[0].address());
            let (mut reader, writer) = pipe().unwrap();
            let pid = fork(|| child(ManuallyDrop::into_inner(inherited), parent, writer).is_ok());
            let mut address = String::new();
            reader.read_to_string(&mut address).unwrap();
            far[0].connect_to(address.parse().unwrap()).unwrap();
            talk(&mut far_cq, &mut far).unwrap();
            assert_eq!(exit_code(pid), 0, "the child of fork {nth}");
            let woken = pair.channel.block(Some(Instant::now()));
            assert_eq!(woken, Ok(Woken::Event), "it still wakes");
            assert!(pair.channel.take_event().unwrap().is_some(), "the child has not taken it");
            pair.work(&mut Chance::new(nth)).unwrap();
            say(nth);
        }
        drop(ends);
        other.join().unwrap();
    });
    until("nothing is left of the children", || {
        let _swept = open();
        audit::ownerless(fabric).is_empty() && fabric.shm.others().count() == 0
    });
}

#[test]
fn x07_a_forked_child_can_do_nothing_with_what_it_inherits_and_everything_with_its_own() {
    runs_well("forked::forks", &[], |_| {});
}

#[test]
#[ignore = "a process of another test"]
fn forks_strictly() {
    forks();
}

#[test]
fn x07_a_forked_child_can_do_as_little_with_what_is_strict() {
    let environment = [("RXE_LOOP_STRICT", "1"), ("RXE_LOOP_FAULTS", "defer=0us")];
    runs_well("forked::forks_strictly", &environment, |_| {});
}

#[test]
#[ignore = "a process of another test"]
fn forks_in_the_midst() {
    die_with_parent();
    let fixture = its_fixture();
    let memory = fixture.device.memory;
    let own = (fixture.qp(), fixture.region(64));
    // Other threads copy for another process, and rebind windows.
    let copies = CopyGuard::open_to_own(memory, &memory.copier.in_flight);
    let changes = memory.windows.hold();
    let inherited = inherit(&own);
    let pid = fork(|| {
        die_with_parent();
        let (qp, region) = ManuallyDrop::into_inner(inherited);
        assert!(!qp.has_windows() && !region.has_windows());
        drop((qp, region));
        true
    });
    assert_eq!(exit_code(pid), 0);
    drop((copies, changes));
}

#[test]
fn x07_a_forked_child_does_not_wait_for_the_threads_of_its_parent() {
    runs_well("forked::forks_in_the_midst", &[], |_| {});
}

/// Sends this process a signal that its only own thread blocks, while the device's thread exists: true once it is
/// pending for `sigwait`.
fn waits_for_a_signal() -> bool {
    let context = open();
    context.device.shm.watch().unwrap();
    // SAFETY: the sets are initialised by `sigemptyset`, and the calls take nothing else.
    unsafe {
        let (mut wanted, mut took) = (std::mem::zeroed(), 0);
        libc::sigemptyset(&raw mut wanted);
        libc::sigaddset(&raw mut wanted, libc::SIGTERM);
        let (how, none) = (libc::SIG_BLOCK, std::ptr::null_mut());
        assert_eq!(libc::pthread_sigmask(how, &raw const wanted, none), 0);
        // A signal to the process is delivered at once to a thread that does not block it, and ends all threads.
        assert_eq!(libc::kill(libc::getpid(), libc::SIGTERM), 0);
        libc::sigwait(&raw const wanted, &raw mut took) == 0 && took == libc::SIGTERM
    }
}

#[test]
#[ignore = "a process of another test"]
fn waits_for_signals() {
    die_with_parent();
    // The threads of the test harness take signals: a child has none of them.
    assert_eq!(exit_code(fork(waits_for_a_signal)), 0, "a process that opened the device");
    let pid = fork(|| {
        let context = open();
        context.device.shm.watch().unwrap();
        exit_code(fork(waits_for_a_signal)) == 0
    });
    assert_eq!(exit_code(pid), 0, "a forked child of one");
}

#[test]
fn the_devices_thread_takes_no_signal_of_the_programs() {
    runs_well("forked::waits_for_signals", &[], |_| {});
}
