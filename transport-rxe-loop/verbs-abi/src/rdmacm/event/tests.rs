//! Events whose identifiers come or go while they are told.

use std::time::{Duration, Instant};

use super::*;
use crate::rdmacm::connect::tests::{Side, Sides, ok, requested, with_address};
use crate::rdmacm::ep::tests::elsewhere;
use crate::rdmacm::id::IDS;
use crate::test::*;

const LIMIT: Duration = Duration::from_secs(20);

/// Waits until it holds.
#[track_caller]
fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "it takes too long");
        thread::yield_now();
    }
}

/// A thread that takes the next event, and tells its kind and its identifier.
struct Taker(mpsc::Receiver<Result<(rdma_cm_event_type, usize), Errno>>, libc::pid_t);

impl Taker {
    fn of(channel: *mut rdma_event_channel) -> Self {
        let (channel, (sender, told)) = (elsewhere(channel), mpsc::channel());
        let (begins, begun) = mpsc::channel();
        thread::spawn(move || {
            let mut event = ptr::null_mut();
            // SAFETY: as C does it; the event stays until it is acknowledged.
            unsafe {
                begins.send(libc::gettid()).unwrap();
                let taken = match rdma_get_cm_event(channel(), &raw mut event) {
                    0 => Ok(((*event).event, (*event).id.addr())),
                    _ => Err(Errno::last()),
                };
                if taken.is_ok() {
                    ok(rdma_ack_cm_event(event));
                }
                sender.send(taken).unwrap();
            }
        });
        Self(told, begun.recv().unwrap())
    }

    /// Waits until it sleeps.
    fn sleeps(&self) {
        let stat = format!("/proc/self/task/{}/stat", self.1);
        // Behind the name of the thread, which may contain anything.
        let state =
            || std::fs::read_to_string(&stat).unwrap().rsplit(')').next().unwrap().as_bytes()[1];
        until(|| state() == b'S');
    }

    #[track_caller]
    fn told(self) -> (rdma_cm_event_type, usize) {
        self.0.recv_timeout(LIMIT).expect("nothing is told").unwrap()
    }
}

fn fd(channel: *mut rdma_event_channel) -> c_int {
    // SAFETY: a channel.
    unsafe { (*channel).fd }
}

/// An event of an identifier is there, which is being destroyed when it is taken: it is skipped.
fn is_skipped(side: Side) {
    until(|| is_readable(fd(side.channel), 0));
    let (slot, other) = (IDS.find(side.id).unwrap(), Side::new());
    // SAFETY: as C does it.
    ok(unsafe { rdma_migrate_id(other.id, side.channel) });
    let begun = slot.with(|id| {
        let taker = Taker::of(side.channel);
        until(|| !is_readable(fd(side.channel), 0));
        taker.sleeps();
        // As the call that destroys it begins.
        (taker, id.cm.take())
    });
    let (taker, cm) = begun.unwrap();
    // SAFETY: as C does it.
    ok(unsafe { rdma_write_cm_event(other.id, RDMA_CM_EVENT_USER, 0, 0) });
    assert_eq!(taker.told(), (RDMA_CM_EVENT_USER, other.id.addr()));
    slot.with(|id| id.cm = cm).unwrap();
    // No event of it is open.
    side.destroy_beside(other);
}

#[test]
fn the_event_of_an_identifier_that_is_being_destroyed_is_skipped() {
    let side = Side::new();
    // SAFETY: as C does it.
    ok(with_address(7, |to| unsafe { rdma_resolve_addr(side.id, ptr::null_mut(), to, 2000) }));
    is_skipped(side);
}

#[test]
fn so_is_the_answer_that_its_queue_pair_would_follow() {
    let Sides { listener, active } = requested();
    let mut init = ibv_qp_init_attr { qp_type: IBV_QPT_RC, cap: CAP, ..ibv_qp_init_attr::ZEROED };
    let mut param = rdma_conn_param::ZEROED;
    // SAFETY: as C does it; the event stays until it is acknowledged.
    unsafe {
        ok(rdma_create_qp(active.id, ptr::null_mut(), &raw mut init));
        let event = listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
        let id = (*event).id;
        ok(rdma_ack_cm_event(event));
        ok(rdma_accept(id, &raw mut param));
        let qp = (*active.id).qp;
        is_skipped(active);
        assert_eq!((*qp).state, IBV_QPS_INIT, "it has not followed");
        assert_eq!(ibv_destroy_qp(qp), 0);
        ok(rdma_destroy_id(id));
    }
    listener.destroy();
}

impl Side {
    /// With another one that uses the same channel.
    fn destroy_beside(self, other: Self) {
        // SAFETY: as C does it.
        unsafe {
            ok(rdma_destroy_id(other.id));
            rdma_destroy_event_channel(other.channel);
        }
        self.destroy();
    }
}

#[test]
fn an_event_of_a_request_waits_until_the_request_is_acknowledged() {
    let Sides { listener, active } = requested();
    let request = listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
    // SAFETY: the event stays until it is acknowledged.
    let id = unsafe { (*request).id };
    active.destroy();
    assert!(!is_readable(fd(listener.channel), 0), "its peer has gone, which comes too early");
    let other = Taker::of(listener.channel);
    other.sleeps();
    assert_eq!(other.0.try_recv(), Err(mpsc::TryRecvError::Empty));
    // SAFETY: as C does it.
    ok(unsafe { rdma_ack_cm_event(request) });
    assert_eq!(other.told(), (RDMA_CM_EVENT_REJECTED, id.addr()));
    // SAFETY: as C does it.
    ok(unsafe { rdma_destroy_id(id) });
    listener.destroy();
}

extern "C" fn handle(_: c_int) {}

#[test]
#[ignore = "handles a signal: the next test runs it in a process of its own"]
fn is_interrupted() {
    or_end();
    let side = Side::new();
    // SAFETY: all zeros are an action; the handler does what any may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as extern "C" fn(c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);
    }
    let waiting = Taker::of(side.channel);
    waiting.sleeps();
    side.destroy();
    // SAFETY: a thread of this process.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), waiting.1, libc::SIGUSR1) };
    assert_eq!(sent, 0);
    assert_eq!(waiting.0.recv_timeout(LIMIT), Ok(Err(Errno::of(libc::EINTR))));
}

#[test]
fn the_first_signal_ends_the_wait_at_a_channel_that_was_destroyed() {
    in_its_own_process("rdmacm::event::tests::is_interrupted");
}

/// Listeners are destroyed while their requests are taken, and identifiers while their events are.
#[test]
#[ignore = "counts what its process has: the next test runs it in one of its own"]
fn races_with_destroying() {
    or_end();
    let channel = Side::new();
    let before = {
        race(&channel);
        Census::take()
    };
    for _ in 0..300 {
        race(&channel);
    }
    assert_eq!(Census::take(), before);
    channel.destroy();
}

/// A thread takes the events of a channel meanwhile, and none of its calls fails.
fn race(side: &Side) {
    let channel = elsewhere(side.channel);
    let taker = thread::spawn(move || {
        loop {
            let mut event = ptr::null_mut();
            // SAFETY: as C does it; the event stays until it is acknowledged.
            unsafe {
                ok(rdma_get_cm_event(channel(), &raw mut event));
                let (kind, id) = ((*event).event, (*event).id);
                ok(rdma_ack_cm_event(event));
                match kind {
                    RDMA_CM_EVENT_CONNECT_REQUEST => ok(rdma_destroy_id(id)),
                    RDMA_CM_EVENT_USER => return,
                    _ => {}
                }
            }
        }
    });
    // SAFETY: as C does it.
    unsafe {
        let Sides { listener, active } = requested();
        // The request comes there.
        ok(rdma_migrate_id(listener.id, side.channel));
        let mut id = ptr::null_mut();
        ok(rdma_create_id(side.channel, &raw mut id, ptr::null_mut(), RDMA_PS_TCP));
        ok(with_address(7, |to| rdma_resolve_addr(id, ptr::null_mut(), to, 2000)));
        ok(rdma_destroy_id(id));
        listener.destroy();
        active.expect_rejected();
        active.destroy();
        ok(rdma_write_cm_event(side.id, RDMA_CM_EVENT_USER, 0, 0));
    }
    taker.join().unwrap();
}

impl Side {
    fn expect_rejected(&self) {
        let mut event = ptr::null_mut();
        // SAFETY: as C does it; the event stays until it is acknowledged.
        unsafe {
            ok(rdma_get_cm_event(self.channel, &raw mut event));
            assert_eq!((*event).event, RDMA_CM_EVENT_REJECTED);
            ok(rdma_ack_cm_event(event));
        }
    }
}

#[test]
fn who_destroys_while_events_are_taken_makes_no_call_fail_and_nothing_stays() {
    in_its_own_process("rdmacm::event::tests::races_with_destroying");
}
