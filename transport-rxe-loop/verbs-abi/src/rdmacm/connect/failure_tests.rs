//! Calls that fail when a connection has begun, and what either side hears of it.

use std::net::SocketAddr;

use cq_verbs::setup::QpAttr;

use super::tests::*;
use super::*;
use crate::raw::cm::address_bytes;
use crate::rdmacm::ep::tests::{Asked, listening};
use crate::test::*;

/// A connection that was requested, and the passive side's identifier.
struct Asking {
    sides: Sides,
    passive: *mut rdma_cm_id,
}

impl Asking {
    fn new() -> Self {
        let sides = requested();
        let event = sides.listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
        // SAFETY: as C does it; the event stays until it is acknowledged.
        unsafe {
            let passive = (*event).id;
            ok(rdma_ack_cm_event(event));
            Self { sides, passive }
        }
    }

    fn destroy(self) {
        // SAFETY: as C does it.
        unsafe {
            for id in [self.sides.active.id, self.passive] {
                rdma_destroy_qp(id);
            }
            ok(rdma_destroy_id(self.passive));
        }
        self.sides.active.destroy();
        self.sides.listener.destroy();
    }
}

impl Side {
    /// The next event is this one, with this status.
    #[track_caller]
    fn receives(&self, kind: rdma_cm_event_type, status: c_int) {
        let mut event = ptr::null_mut();
        // SAFETY: as C does it; the event stays until it is acknowledged.
        unsafe {
            ok(rdma_get_cm_event(self.channel, &raw mut event));
            assert_eq!(((*event).event, (*event).status), (kind, status));
            ok(rdma_ack_cm_event(event));
        }
    }

    /// There is no event.
    #[track_caller]
    fn receives_nothing(&self) {
        // SAFETY: a channel.
        assert!(!is_readable(unsafe { (*self.channel).fd }, 0));
    }
}

fn create_qp(id: *mut rdma_cm_id) {
    // SAFETY: as C does it.
    ok(unsafe { rdma_create_qp(id, ptr::null_mut(), &mut init()) });
}

#[test]
fn a_queue_pair_that_cannot_follow_the_answer_ends_the_connection_for_both_sides() {
    let asking = Asking::new();
    let Sides { listener, active } = &asking.sides;
    create_qp(active.id);
    let mut attr = ibv_qp_attr { qp_state: IBV_QPS_ERR, ..ibv_qp_attr::ZEROED };
    let mask = QpAttr::new().state(QpState::ERR).mask().bits().cast_signed();
    let mut param = rdma_conn_param::ZEROED;
    // SAFETY: as C does it.
    unsafe {
        ok(rdma_accept(asking.passive, &raw mut param));
        assert_eq!(ibv_modify_qp((*active.id).qp, &raw mut attr, mask), 0);
    }
    active.receives(RDMA_CM_EVENT_CONNECT_ERROR, -libc::EINVAL);
    listener.receives(RDMA_CM_EVENT_REJECTED, 28);
    // SAFETY: as C does it.
    fails(unsafe { rdma_reject(asking.passive, ptr::null(), 0) }, libc::EINVAL);
    active.receives_nothing();
    asking.destroy();
}

/// More than any peer is sent.
fn too_long(data: &mut [u8; 255]) -> rdma_conn_param {
    rdma_conn_param {
        private_data: data.as_mut_ptr().cast(),
        private_data_len: 255,
        ..rdma_conn_param::ZEROED
    }
}

#[test]
fn accepting_that_fails_with_a_queue_pair_rejects() {
    let mut data = [0; 255];
    // More than the device has outstanding: the queue pair gets as far as RTR.
    let too_deep = rdma_conn_param { initiator_depth: 17, ..rdma_conn_param::ZEROED };
    for mut wrong in [too_long(&mut data), too_deep] {
        let asking = Asking::new();
        create_qp(asking.passive);
        // SAFETY: as C does it.
        unsafe {
            fails(rdma_accept(asking.passive, &raw mut wrong), libc::EINVAL);
            assert_eq!((*(*asking.passive).qp).state, IBV_QPS_ERR);
            asking.sides.active.receives(RDMA_CM_EVENT_REJECTED, 28);
            fails(rdma_accept(asking.passive, ptr::null_mut()), libc::EINVAL);
        }
        asking.sides.listener.receives_nothing();
        asking.destroy();
    }
}

#[test]
fn accepting_that_fails_without_a_queue_pair_changes_nothing() {
    let (asking, mut param) = (Asking::new(), rdma_conn_param::ZEROED);
    // SAFETY: as C does it.
    unsafe {
        fails(rdma_accept(asking.passive, &mut too_long(&mut [0; 255])), libc::EINVAL);
        asking.sides.active.receives_nothing();
        ok(rdma_accept(asking.passive, &raw mut param));
    }
    asking.sides.active.receives(RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    asking.destroy();
}

#[test]
fn disconnecting_fails_the_queue_pair_of_datagrams_too() {
    let (listener, port) = listening(IBV_QPT_UD);
    let id = Asked::new(IBV_QPT_UD, 0, port).made();
    // SAFETY: as C does it.
    unsafe {
        assert_eq!((*(*id).qp).state, IBV_QPS_RTS);
        fails(rdma_disconnect(id), libc::EINVAL);
        assert_eq!((*(*id).qp).state, IBV_QPS_ERR);
        rdma_destroy_ep(id);
        rdma_destroy_ep(listener);
    }
}

/// Listens where the system refuses that.
fn is_refused() -> Result<(), Errno> {
    let side = Side::new();
    // SAFETY: as C does it.
    unsafe {
        fails(rdma_listen(side.id, 1), libc::ENOMEM);
        assert_ne!(rdma_get_src_port(side.id), 0);
        // It is bound.
        fails(with_address(0, |addr| rdma_bind_addr(side.id, addr)), libc::EINVAL);
    }
    side.destroy();
    Ok(())
}

#[test]
fn the_port_of_what_was_bound_and_cannot_listen_is_told() {
    // The device is open by then: what is refused is a call for the port.
    let other = Side::new();
    assert_eq!(fault::from_step(0, (libc::SYS_fchmod, None), is_refused), (Ok(()), true));
    other.destroy();
}

#[test]
#[ignore = "limits its process: the test below runs it in one of its own"]
fn an_address_can_not_be_asked_for() {
    or_end();
    in_own_fabric();
    let [bound, resolved] = [Side::new(), Side::new()];
    let limit = |most: u64| {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: 1024 };
        // SAFETY: a limit.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    };
    // SAFETY: as C does it.
    let bind = |addr| unsafe { rdma_bind_addr(bound.id, addr) };
    // SAFETY: as C does it.
    let resolve = |addr| unsafe { rdma_resolve_addr(resolved.id, ptr::null_mut(), addr, 2000) };
    limit(3);
    assert_eq!((with_address(0, bind), Errno::last()), (-1, Errno::of(libc::EMFILE)));
    assert_eq!((with_address(0, resolve), Errno::last()), (-1, Errno::of(libc::EMFILE)));
    limit(1024);
    resolved.receives_nothing();
    let mut broadcast = address_bytes(SocketAddr::from(([255; 4], 0)));
    let broadcast = broadcast.as_mut_ptr().cast();
    assert_eq!((bind(broadcast), Errno::last()), (-1, Errno::of(libc::EADDRNOTAVAIL)));
    ok(with_address(0, bind));
    ok(resolve(broadcast));
    resolved.receives(RDMA_CM_EVENT_ADDR_ERROR, -libc::EHOSTUNREACH);
    [bound, resolved].into_iter().for_each(Side::destroy);
}

#[test]
fn a_question_for_an_address_keeps_its_errno() {
    in_its_own_process("rdmacm::connect::failure_tests::an_address_can_not_be_asked_for");
}
