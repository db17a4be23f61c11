//! Synchronous identifiers, called as C does.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::rdmacm::connect::tests::{Side, fails, here, listens, ok};
use crate::test::*;

/// What `rdma_create_ep` is given for a side of this type.
pub struct Asked {
    res: rdma_addrinfo,
    addr: [u8; crate::raw::cm::SIZE],
    init: ibv_qp_init_attr,
    pd: *mut ibv_pd,
}

impl Asked {
    pub fn new(qp_type: ibv_qp_type, flags: u32, port: u16) -> Self {
        let ps = if qp_type == IBV_QPT_UD { RDMA_PS_UDP } else { RDMA_PS_TCP };
        let res = rdma_addrinfo {
            ai_flags: flags.cast_signed(),
            ai_port_space: ps.cast_signed(),
            ai_qp_type: qp_type.cast_signed(),
            ..rdma_addrinfo::ZEROED
        };
        let init = ibv_qp_init_attr { qp_type, cap: CAP, ..ibv_qp_init_attr::ZEROED };
        Self { res, addr: here(port), init, pd: ptr::null_mut() }
    }

    /// `rdma_create_ep`.
    pub fn create(&mut self, id: &mut *mut rdma_cm_id) -> c_int {
        in_own_fabric();
        let addr = self.addr.as_mut_ptr().cast();
        match self.res.ai_flags.cast_unsigned() & RAI_PASSIVE {
            0 => self.res.ai_dst_addr = addr,
            _ => self.res.ai_src_addr = addr,
        }
        // SAFETY: as C does it.
        unsafe { rdma_create_ep(id, &raw mut self.res, self.pd, &raw mut self.init) }
    }

    /// The identifier.
    #[track_caller]
    pub fn made(mut self) -> *mut rdma_cm_id {
        let mut id = ptr::null_mut();
        ok(self.create(&mut id));
        id
    }
}

/// A listener, and its port.
pub fn listening(qp_type: ibv_qp_type) -> (*mut rdma_cm_id, u16) {
    let listener = Asked::new(qp_type, RAI_PASSIVE, 0).made();
    // SAFETY: as C does it.
    unsafe {
        ok(rdma_listen(listener, 1));
        (listener, u16::from_be(rdma_get_src_port(listener)))
    }
}

/// A pointer for another thread.
pub fn elsewhere<T>(pointer: *mut T) -> impl Fn() -> *mut T + Send + Copy {
    let address = pointer.expose_provenance();
    move || ptr::with_exposed_provenance_mut(address)
}

#[test]
fn a_datagram_listener_goes_once_its_request_is_accepted() {
    let (listener, port) = listening(IBV_QPT_UD);
    let client = thread::spawn(move || {
        let id = Asked::new(IBV_QPT_UD, 0, port).made();
        // SAFETY: as C does it.
        unsafe {
            ok(rdma_connect(id, ptr::null_mut()));
            assert_eq!((*(*id).event).event, RDMA_CM_EVENT_ESTABLISHED);
            rdma_destroy_ep(id);
        }
    });
    let mut id = ptr::null_mut();
    // SAFETY: as C does it.
    unsafe {
        ok(rdma_get_request(listener, &raw mut id));
        assert_eq!((*(*id).event).listen_id, listener);
        ok(rdma_accept(id, ptr::null_mut()));
        assert!((*id).event.is_null(), "it is acknowledged");
    }
    let (done, is_done) = channel();
    let listener = elsewhere(listener);
    thread::spawn(move || {
        // SAFETY: as C does it.
        unsafe { rdma_destroy_ep(listener()) };
        done.send(()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(()), "the listener waits");
    // SAFETY: as C does it.
    unsafe { rdma_destroy_ep(id) };
    client.join().unwrap();
}

#[test]
fn what_is_no_request_stays_with_the_listener_until_its_next_call() {
    let (listener, port) = listening(IBV_QPT_RC);
    let mut id = ptr::null_mut();
    // SAFETY: as C does it.
    unsafe {
        for (status, errno) in
            [(0, libc::EINVAL), (5, 5), (-libc::EHOSTUNREACH, -libc::EHOSTUNREACH)]
        {
            ok(rdma_write_cm_event(listener, RDMA_CM_EVENT_USER, status, 0));
            fails(rdma_get_request(listener, &raw mut id), errno);
            let event = (*listener).event;
            assert_eq!(((*event).event, (*event).status), (RDMA_CM_EVENT_USER, status));
            assert!(id.is_null());
        }
        let client = thread::spawn(move || {
            let id = Asked::new(IBV_QPT_RC, 0, port).made();
            fails(rdma_connect(id, ptr::null_mut()), libc::ECONNREFUSED);
            rdma_destroy_ep(id);
        });
        ok(rdma_get_request(listener, &raw mut id));
        assert!((*listener).event.is_null(), "it is acknowledged");
        rdma_destroy_ep(id);
        client.join().unwrap();
        rdma_destroy_ep(listener);
    }
}

#[test]
fn a_request_that_moves_to_a_channel_hears_there_that_its_peer_has_gone() {
    let (listener, port) = listening(IBV_QPT_RC);
    let active = Asked::new(IBV_QPT_RC, 0, port).made();
    let (mut id, other) = (ptr::null_mut(), Side::new());
    // SAFETY: as C does it.
    unsafe {
        ok(rdma_migrate_id(active, other.channel));
        ok(rdma_connect(active, ptr::null_mut()));
        ok(rdma_get_request(listener, &raw mut id));
        ok(rdma_migrate_id(id, other.channel));
        assert!((*id).event.is_null(), "its request is acknowledged");
        rdma_destroy_ep(active);
        let mut event = ptr::null_mut();
        ok(rdma_get_cm_event(other.channel, &raw mut event));
        assert_eq!(((*event).event, (*event).id), (RDMA_CM_EVENT_REJECTED, id));
        ok(rdma_ack_cm_event(event));
        rdma_destroy_ep(id);
        rdma_destroy_ep(listener);
    }
    other.destroy();
}

#[test]
fn the_domain_of_a_listener_is_that_of_its_requests() {
    // SAFETY: as C does it.
    unsafe {
        let pd = ibv_alloc_pd(shared_context());
        let mut listener = ptr::null_mut();
        let mut asked = Asked::new(IBV_QPT_RC, RAI_PASSIVE, 0);
        asked.pd = pd;
        ok(asked.create(&mut listener));
        assert_eq!((*listener).pd, pd);
        ok(rdma_listen(listener, 1));
        let port = u16::from_be(rdma_get_src_port(listener));
        let client = thread::spawn(move || {
            let id = Asked::new(IBV_QPT_RC, 0, port).made();
            fails(rdma_connect(id, ptr::null_mut()), libc::ECONNREFUSED);
            rdma_destroy_ep(id);
        });
        let mut id = ptr::null_mut();
        ok(rdma_get_request(listener, &raw mut id));
        assert_eq!(((*id).pd, (*(*id).qp).pd), (pd, pd));
        rdma_destroy_ep(id);
        client.join().unwrap();
        rdma_destroy_ep(listener);
        assert_eq!(ibv_dealloc_pd(pd), 0);
    }
}

#[test]
fn the_status_of_an_event_is_an_errno_or_a_reason() {
    let mut id = ptr::null_mut();
    in_own_fabric();
    for (status, errno) in [(-libc::EHOSTUNREACH, libc::EHOSTUNREACH), (1, 1), (2, 2)] {
        // SAFETY: as C does it.
        unsafe {
            ok(rdma_create_id(ptr::null_mut(), &raw mut id, ptr::null_mut(), RDMA_PS_UDP));
            ok(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, status, 0));
            let resolved = rdma_resolve_addr(id, ptr::null_mut(), here(7).as_mut_ptr().cast(), 1);
            fails(resolved, errno);
            ok(rdma_destroy_id(id));
        }
    }
}

#[test]
fn the_data_of_the_address_come_before_those_of_the_call() {
    let listener = Side::new();
    let port = listens(listener.id);
    let mut asked = Asked::new(IBV_QPT_RC, 0, port);
    let (mut first, mut second) = (*b"of the address", [b'.'; 43]);
    asked.res.ai_connect = first.as_mut_ptr().cast();
    asked.res.ai_connect_len = first.len();
    let id = asked.made();
    let mut param = rdma_conn_param {
        private_data: second.as_mut_ptr().cast(),
        private_data_len: 43,
        ..rdma_conn_param::ZEROED
    };
    // SAFETY: as C does it; the event stays until it is acknowledged.
    unsafe {
        fails(rdma_connect(id, &raw mut param), libc::EINVAL);
        param.private_data_len = 42;
        let (active, parameters) = (elsewhere(id), elsewhere(&raw mut param));
        let client =
            thread::spawn(move || fails(rdma_connect(active(), parameters()), libc::ECONNREFUSED));
        let event = listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
        let sent = (*event).param.conn.private_data.cast::<[u8; 56]>().read();
        assert_eq!((&sent[..14], &sent[14..]), (&first[..], &second[..42]));
        ok(rdma_reject((*event).id, ptr::null(), 0));
        ok(rdma_destroy_id((*event).id));
        ok(rdma_ack_cm_event(event));
        client.join().unwrap();
        rdma_destroy_ep(id);
    }
    listener.destroy();
}

#[test]
fn an_address_of_another_family_has_no_length() {
    let side = Side::new();
    let unix = |of: c_int| {
        let mut addr = here(0);
        addr[..2].copy_from_slice(&(of as sa_family_t).to_ne_bytes());
        addr
    };
    for (family, errno) in [
        (libc::AF_UNIX, libc::EINVAL),
        (libc::AF_UNSPEC, libc::EINVAL),
        (99, libc::EINVAL),
        (libc::AF_IB, libc::EOPNOTSUPP),
    ] {
        let (mut other, mut known) = (unix(family), here(7));
        let (other, known) = (other.as_mut_ptr().cast(), known.as_mut_ptr().cast());
        // SAFETY: as C does it.
        unsafe {
            fails(rdma_bind_addr(side.id, other), errno);
            fails(rdma_resolve_addr(side.id, ptr::null_mut(), other, 1), errno);
            fails(rdma_resolve_addr(side.id, other, known, 1), errno);
        }
        for flags in [0, RAI_PASSIVE] {
            let mut asked = Asked { addr: unix(family), ..Asked::new(IBV_QPT_RC, flags, 0) };
            fails(asked.create(&mut ptr::null_mut()), errno);
        }
    }
    side.destroy();
}
