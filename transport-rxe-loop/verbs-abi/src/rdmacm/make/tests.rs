//! Identifiers that move, and what fails half-way, called as C does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::rdmacm::connect::tests::{Side, fails, ok, with_address};
use crate::rdmacm::ep::tests::{Asked, elsewhere};
use crate::test::*;

/// One event is taken before a move, and one behind it: the move ends once this one of them is acknowledged.
fn moves_once_acknowledged(nth: usize) {
    let side = Side::new();
    // SAFETY: as C does it; events stay until they are acknowledged.
    unsafe {
        let other = rdma_create_event_channel();
        ok(with_address(7, |to| rdma_resolve_addr(side.id, ptr::null_mut(), to, 2000)));
        let before = side.next(RDMA_CM_EVENT_ADDR_RESOLVED);
        let is_acknowledged = AtomicBool::new(false);
        let (id, to) = (elsewhere(side.id), elsewhere(other));
        let left = thread::scope(|scope| {
            scope.spawn(|| {
                ok(rdma_migrate_id(id(), to()));
                assert!(is_acknowledged.load(Ordering::Relaxed), "it does not wait");
            });
            ok(rdma_write_cm_event(side.id, RDMA_CM_EVENT_USER, 0, 0));
            // Wherever it was queued, it is there once the identifier is.
            let mut behind = ptr::null_mut();
            ok(rdma_get_cm_event(other, &raw mut behind));
            assert_eq!(((*behind).event, (*side.id).channel), (RDMA_CM_EVENT_USER, other));
            is_acknowledged.store(true, Ordering::Relaxed);
            let both = [before, behind];
            ok(rdma_ack_cm_event(both[nth]));
            // That one is open until the move is done.
            both[1 - nth]
        });
        ok(rdma_ack_cm_event(left));
        ok(rdma_migrate_id(side.id, side.channel));
        rdma_destroy_event_channel(other);
    }
    side.destroy();
}

#[test]
fn a_move_waits_until_as_many_events_are_acknowledged_as_were_taken_before() {
    [0, 1].into_iter().for_each(moves_once_acknowledged);
}

#[test]
fn what_is_synchronous_needs_a_channel_to_move_to() {
    let side = Side::new();
    // SAFETY: as C does it.
    unsafe {
        ok(rdma_migrate_id(side.id, ptr::null_mut()));
        let own = (*side.id).channel;
        ok(with_address(7, |to| rdma_resolve_addr(side.id, ptr::null_mut(), to, 2000)));
        fails(rdma_migrate_id(side.id, ptr::null_mut()), libc::EINVAL);
        assert_eq!(
            ((*side.id).channel, (*(*side.id).event).event),
            (own, RDMA_CM_EVENT_ADDR_RESOLVED)
        );
        ok(rdma_migrate_id(side.id, side.channel));
        assert!((*side.id).event.is_null(), "it is acknowledged");
        ok(rdma_resolve_route(side.id, 2000));
    }
    side.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    side.destroy();
}

#[test]
fn identifiers_move_past_each_other() {
    let sides = [Side::new(), Side::new()];
    let [(first, one), (second, two)] =
        sides.each_ref().map(|side| (elsewhere(side.id), elsewhere(side.channel)));
    let (done, are_done) = mpsc::channel();
    for (id, home, away) in [(first, one, two), (second, two, one)] {
        let done = done.clone();
        thread::spawn(move || {
            for _ in 0..1000 {
                for channel in [away(), away(), home()] {
                    // SAFETY: as C does it.
                    ok(unsafe { rdma_migrate_id(id(), channel) });
                }
            }
            done.send(()).unwrap();
        });
    }
    for _ in &sides {
        are_done.recv_timeout(Duration::from_secs(20)).expect("they wait for each other");
    }
    sides.into_iter().for_each(Side::destroy);
}

/// What a C function says.
fn call(returned: c_int) -> Result<(), Errno> {
    let said = if returned == 0 { Ok(()) } else { Err(Errno::last()) };
    fault::step();
    said
}

/// A channel, until this is dropped.
struct OwnChannel(*mut rdma_event_channel);

impl OwnChannel {
    fn new() -> Result<Self, Errno> {
        // SAFETY: it has no arguments.
        let channel = unsafe { rdma_create_event_channel() };
        if channel.is_null() { Err(Errno::last()) } else { Ok(Self(channel)) }
    }

    fn create_id(&self) -> Result<OwnId, Errno> {
        let mut id = ptr::null_mut();
        // SAFETY: as C does it.
        call(unsafe { rdma_create_id(self.0, &raw mut id, ptr::null_mut(), RDMA_PS_TCP) })?;
        Ok(OwnId(id))
    }

    /// Takes the next event, which is this one, or says why it is not.
    fn next(&self, kind: rdma_cm_event_type) -> Result<*mut rdma_cm_id, Errno> {
        let mut event = ptr::null_mut();
        // SAFETY: as C does it; the event stays until it is acknowledged.
        unsafe {
            call(rdma_get_cm_event(self.0, &raw mut event))?;
            let (told, status, id) = ((*event).event, (*event).status, (*event).id);
            call(rdma_ack_cm_event(event))?;
            if told == kind { Ok(id) } else { Err(Errno::of(-status)) }
        }
    }

    /// An identifier that has requested a connection.
    fn connect(&self, port: u16) -> Result<OwnId, Errno> {
        let id = self.create_id()?;
        // SAFETY: as C does it.
        unsafe {
            call(with_address(port, |to| rdma_resolve_addr(id.0, ptr::null_mut(), to, 2000)))?;
            self.next(RDMA_CM_EVENT_ADDR_RESOLVED)?;
            call(rdma_resolve_route(id.0, 2000))?;
            self.next(RDMA_CM_EVENT_ROUTE_RESOLVED)?;
            id.create_qp()?;
            call(rdma_connect(id.0, ptr::null_mut()))?;
        }
        Ok(id)
    }
}

impl Drop for OwnChannel {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { rdma_destroy_event_channel(self.0) };
    }
}

/// An identifier, with its queue pair, until this is dropped.
struct OwnId(*mut rdma_cm_id);

impl OwnId {
    fn create_qp(&self) -> Result<(), Errno> {
        let mut init =
            ibv_qp_init_attr { qp_type: IBV_QPT_RC, cap: CAP, ..ibv_qp_init_attr::ZEROED };
        // SAFETY: as C does it.
        call(unsafe { rdma_create_qp(self.0, ptr::null_mut(), &raw mut init) })
    }

    /// Listens at a port.
    fn listen(&self) -> Result<u16, Errno> {
        // SAFETY: as C does it.
        unsafe {
            call(rdma_listen(self.0, 1))?;
            Ok(u16::from_be(rdma_get_src_port(self.0)))
        }
    }

    fn of_ep(mut asked: Asked) -> Result<Self, Errno> {
        let mut id = ptr::null_mut();
        call(asked.create(&mut id))?;
        Ok(Self(id))
    }
}

impl Drop for OwnId {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { rdma_destroy_ep(self.0) };
    }
}

/// What a program does that has channels, up to what fails.
fn by_channels() -> Result<(), Errno> {
    let [passive, active, other] = [OwnChannel::new()?, OwnChannel::new()?, OwnChannel::new()?];
    let listener = passive.create_id()?;
    // SAFETY: as C does it.
    call(with_address(0, |at| unsafe { rdma_bind_addr(listener.0, at) }))?;
    let id = active.connect(listener.listen()?)?;
    let request = OwnId(passive.next(RDMA_CM_EVENT_CONNECT_REQUEST)?);
    request.create_qp()?;
    // SAFETY: as C does it.
    unsafe {
        call(rdma_accept(request.0, ptr::null_mut()))?;
        active.next(RDMA_CM_EVENT_ESTABLISHED)?;
        passive.next(RDMA_CM_EVENT_ESTABLISHED)?;
        call(rdma_migrate_id(request.0, other.0))?;
        call(rdma_migrate_id(request.0, ptr::null_mut()))?;
        call(rdma_disconnect(id.0))
    }
}

/// What a program does that has none.
fn synchronously() -> Result<(), Errno> {
    let listener = OwnId::of_ep(Asked::new(IBV_QPT_RC, RAI_PASSIVE, 0))?;
    let port = listener.listen()?;
    let active = OwnChannel::new()?;
    let _id = active.connect(port)?;
    let mut request = ptr::null_mut();
    // SAFETY: as C does it.
    call(unsafe { rdma_get_request(listener.0, &raw mut request) })?;
    drop(OwnId(request));
    active.next(RDMA_CM_EVENT_REJECTED)?;
    drop(OwnId::of_ep(Asked::new(IBV_QPT_RC, 0, port))?);
    is_refused(Asked::new(99, 0, port), Errno::OPNOTSUPP)?;
    is_refused(Asked::new(IBV_QPT_RC, RAI_PASSIVE, port), Errno::of(libc::EADDRINUSE))
}

/// It is refused with this errno, unless something else fails before.
fn is_refused(asked: Asked, with: Errno) -> Result<(), Errno> {
    match OwnId::of_ep(asked) {
        Ok(_) => panic!("it is not refused"),
        Err(errno) if errno == with => Ok(()),
        Err(errno) => Err(errno),
    }
}

const PROGRAMS: [fn() -> Result<(), Errno>; 2] = [by_channels, synchronously];

/// What there is once everything was used once.
fn used_once() -> Census {
    or_end();
    in_own_fabric();
    for program in PROGRAMS {
        assert_eq!(program(), Ok(()));
    }
    Census::take()
}

#[test]
#[ignore = "counts what its process has: the test below runs it in one of its own"]
fn places_are_refused() {
    let before = used_once();
    for program in PROGRAMS {
        fault::each(|| {
            let done = program();
            assert_eq!(Census::take(), before, "{done:?}");
            done
        });
    }
}

#[test]
#[ignore = "limits its process: the test below runs it in one of its own"]
fn descriptors_are_refused() {
    let before = used_once();
    let limit = |most: u64| {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: 1024 };
        // SAFETY: a limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    };
    for program in PROGRAMS {
        let mut refused = 0;
        for most in 3.. {
            limit(most);
            let done = program();
            limit(1024);
            assert_eq!(Census::take(), before, "{most}: {done:?}");
            if done == Ok(()) {
                break;
            }
            refused += 1;
        }
        assert!(refused > 10, "{refused}");
    }
}

#[test]
#[ignore = "counts what its process has: the test below runs it in one of its own"]
fn system_calls_are_refused() {
    let before = used_once();
    for program in PROGRAMS {
        for call in CALLS {
            let mut failures = 0;
            for steps in 0.. {
                let (done, is_refused) = fault::from_step(steps, call, program);
                assert_eq!(Census::take(), before, "{call:?} from step {steps} on: {done:?}");
                if !is_refused {
                    break;
                }
                failures += u32::from(done.is_err());
            }
            assert!(failures > 1, "{call:?}");
        }
    }
}

/// What may fail for want of memory, but for memory itself, without which the process ends, and messages, which can get lost.
const CALLS: [(libc::c_long, Option<c_int>); 8] = [
    (libc::SYS_socket, None),
    (libc::SYS_bind, None),
    (libc::SYS_fchmod, None),
    (libc::SYS_connect, None),
    (libc::SYS_socketpair, None),
    (libc::SYS_epoll_create1, None),
    (libc::SYS_epoll_ctl, Some(libc::EPOLL_CTL_ADD)),
    (libc::SYS_timerfd_create, None),
];

#[test]
fn what_fails_half_way_gives_back_what_it_took() {
    in_its_own_process("rdmacm::make::tests::places_are_refused");
    in_its_own_process("rdmacm::make::tests::descriptors_are_refused");
    in_its_own_process("rdmacm::make::tests::system_calls_are_refused");
}
