//! Connecting, called as C does: both sides in one process, each with a channel of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::raw::cm::address_bytes;
use crate::test::*;

/// Both sides of a connection, of reliable queue pairs.
pub struct Sides {
    pub listener: Side,
    pub active: Side,
}

/// An identifier and its channel.
pub struct Side {
    pub channel: *mut rdma_event_channel,
    pub id: *mut rdma_cm_id,
}

/// A number that a C function returned, which is 0.
#[track_caller]
pub fn ok(returned: c_int) {
    assert_eq!(returned, 0, "{:?}", Errno::last());
}

/// -1, and this number in `errno`.
#[track_caller]
pub fn fails(returned: c_int, with: c_int) {
    assert_eq!((returned, Errno::last()), (-1, Errno::of(with)));
}

impl Side {
    pub fn new() -> Self {
        in_own_fabric();
        // SAFETY: as C does it.
        unsafe {
            let channel = rdma_create_event_channel();
            assert!(!channel.is_null(), "{:?}", Errno::last());
            let mut id = ptr::null_mut();
            ok(rdma_create_id(channel, &raw mut id, ptr::without_provenance_mut(7), RDMA_PS_TCP));
            Self { channel, id }
        }
    }

    /// The next event, which is this one.
    #[track_caller]
    pub fn next(&self, kind: rdma_cm_event_type) -> *mut rdma_cm_event {
        let mut event = ptr::null_mut();
        // SAFETY: as C does it; the event stays until it is acknowledged.
        unsafe {
            ok(rdma_get_cm_event(self.channel, &raw mut event));
            assert_eq!(((*event).event, (*event).status), (kind, 0));
        }
        event
    }

    #[track_caller]
    pub fn expect(&self, kind: rdma_cm_event_type) {
        // SAFETY: it was just taken.
        ok(unsafe { rdma_ack_cm_event(self.next(kind)) });
    }

    pub fn destroy(self) {
        // SAFETY: as C does it.
        unsafe {
            ok(rdma_destroy_id(self.id));
            rdma_destroy_event_channel(self.channel);
        }
    }
}

/// 127.0.0.1, with this port.
pub fn here(port: u16) -> [u8; crate::raw::cm::SIZE] {
    address_bytes(SocketAddr::from(([127, 0, 0, 1], port)))
}

/// Calls with the address as C has it.
pub fn with_address<T>(port: u16, call: impl FnOnce(*mut sockaddr) -> T) -> T {
    call(here(port).as_mut_ptr().cast())
}

pub fn listens(listener: *mut rdma_cm_id) -> u16 {
    // SAFETY: as C does it.
    unsafe {
        ok(with_address(0, |addr| rdma_bind_addr(listener, addr)));
        ok(rdma_listen(listener, 0));
        u16::from_be(rdma_get_src_port(listener))
    }
}

/// Up to the request.
pub fn requested() -> Sides {
    let [listener, active] = [Side::new(), Side::new()];
    let port = listens(listener.id);
    // SAFETY: as C does it.
    unsafe {
        ok(with_address(port, |to| rdma_resolve_addr(active.id, ptr::null_mut(), to, 2000)));
        active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
        ok(rdma_resolve_route(active.id, 2000));
        active.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
        assert!(!(*active.id).verbs.is_null());
        assert_eq!(((*active.id).route.num_paths, (*active.id).port_num), (1, 1));
        let mut data = *b"hello";
        let mut param = rdma_conn_param {
            private_data: data.as_mut_ptr().cast(),
            private_data_len: 5,
            ..rdma_conn_param::ZEROED
        };
        ok(rdma_connect(active.id, &raw mut param));
    }
    Sides { listener, active }
}

pub fn init() -> ibv_qp_init_attr {
    ibv_qp_init_attr { qp_type: IBV_QPT_RC, cap: CAP, ..ibv_qp_init_attr::ZEROED }
}

#[test]
fn n14_each_event_is_an_edge_even_if_none_is_taken() {
    let side = Side::new();
    // SAFETY: a channel.
    let fd = unsafe { (*side.channel).fd };
    Edges::of(fd).expect(20, |_| {
        // SAFETY: as C does it.
        ok(unsafe { rdma_write_cm_event(side.id, RDMA_CM_EVENT_USER, 0, 0) });
    });
    for _ in 0..20 {
        assert!(is_readable(fd, 0));
        side.expect(RDMA_CM_EVENT_USER);
    }
    assert!(!is_readable(fd, 0));
    side.destroy();
}

#[test]
fn a_request_has_the_listeners_context_and_belongs_to_it_until_it_is_acknowledged() {
    let Sides { listener, active } = requested();
    let event = listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
    // SAFETY: as C does it; the event stays until it is acknowledged.
    unsafe {
        let id = (*event).id;
        assert_eq!(((*event).listen_id, (*id).channel), (listener.id, listener.channel));
        assert_eq!(((*id).context.addr(), (*id).qp_type), (7, IBV_QPT_RC));
        assert_eq!((*id).verbs, (*active.id).verbs);
        let param = (*event).param.conn;
        assert_eq!(param.private_data_len, 56);
        assert_eq!(param.private_data.cast::<[u8; 5]>().read(), *b"hello");
        // As in librdmacm, the new identifier can go before that.
        ok(rdma_reject(id, ptr::null(), 0));
        ok(rdma_destroy_id(id));
        fails(rdma_destroy_id(id), libc::ENOENT);
        let is_acknowledged = AtomicBool::new(false);
        let of = listener.id.expose_provenance();
        thread::scope(|scope| {
            scope.spawn(|| {
                ok(rdma_destroy_id(ptr::with_exposed_provenance_mut(of)));
                assert!(is_acknowledged.load(Ordering::Relaxed), "it waits");
            });
            is_acknowledged.store(true, Ordering::Relaxed);
            ok(rdma_ack_cm_event(event));
        });
        fails(rdma_ack_cm_event(event), libc::ENOENT);
        rdma_destroy_event_channel(listener.channel);
        let mut event = ptr::null_mut();
        ok(rdma_get_cm_event(active.channel, &raw mut event));
        assert_eq!(((*event).event, (*event).status), (RDMA_CM_EVENT_REJECTED, 28));
        ok(rdma_ack_cm_event(event));
    }
    active.destroy();
}

#[test]
fn queue_pairs_of_identifiers_follow_their_events() {
    let Sides { listener, active } = requested();
    // SAFETY: as C does it; events stay until they are acknowledged.
    unsafe {
        // Too late for the request, but not for the answer.
        ok(rdma_create_qp(active.id, ptr::null_mut(), &mut init()));
        let event = listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
        let id = (*event).id;
        ok(rdma_ack_cm_event(event));
        let mut attr = ibv_qp_attr { qp_state: IBV_QPS_RTR, ..ibv_qp_attr::ZEROED };
        let mut mask = 0;
        ok(rdma_init_qp_attr(id, &raw mut attr, &raw mut mask));
        assert_eq!((attr.dest_qp_num, mask & 1), (0, 1), "the request named no queue pair");
        fails(rdma_init_qp_attr(active.id, &raw mut attr, &raw mut mask), libc::EINVAL);
        ok(rdma_create_qp(id, ptr::null_mut(), &mut init()));
        let (level, option) = (RDMA_OPTION_ID as c_int, RDMA_OPTION_ID_ACK_TIMEOUT as c_int);
        let set =
            |number: &mut u8| rdma_set_option(id, level, option, ptr::from_mut(number).cast(), 1);
        ok(set(&mut 21));
        fails(set(&mut 32), libc::EINVAL);
        ok(rdma_accept(id, ptr::null_mut()));
        assert_eq!((*(*id).qp).state, IBV_QPS_RTS);
        let mut init = init();
        assert_eq!(ibv_query_qp((*id).qp, &raw mut attr, 0, &raw mut init), 0);
        assert_eq!(attr.timeout, 21);
        active.expect(RDMA_CM_EVENT_ESTABLISHED);
        assert_eq!((*(*active.id).qp).state, IBV_QPS_RTS);
        listener.expect(RDMA_CM_EVENT_ESTABLISHED);
        fails(rdma_establish(active.id), libc::EINVAL);
        ok(rdma_disconnect(active.id));
        assert_eq!((*(*active.id).qp).state, IBV_QPS_ERR);
        listener.expect(RDMA_CM_EVENT_DISCONNECTED);
        ok(rdma_disconnect(id));
        active.expect(RDMA_CM_EVENT_DISCONNECTED);
        for id in [id, active.id] {
            rdma_destroy_qp(id);
        }
        ok(rdma_destroy_id(id));
    }
    active.destroy();
    listener.destroy();
}

#[test]
fn synchronous_identifiers_wait_for_their_events() {
    let hints = |flags| rdma_addrinfo {
        ai_flags: flags,
        ai_port_space: RDMA_PS_TCP.cast_signed(),
        ai_qp_type: IBV_QPT_RC.cast_signed(),
        ..rdma_addrinfo::ZEROED
    };
    in_own_fabric();
    // SAFETY: as C does it.
    unsafe {
        let (mut listener, mut addr) = (ptr::null_mut(), here(0));
        let mut res = hints(RAI_PASSIVE.cast_signed());
        res.ai_src_addr = addr.as_mut_ptr().cast();
        ok(rdma_create_ep(&raw mut listener, &raw mut res, ptr::null_mut(), &mut init()));
        ok(rdma_listen(listener, 1));
        let port = u16::from_be(rdma_get_src_port(listener));
        let client = thread::spawn(move || {
            let (mut id, mut addr) = (ptr::null_mut(), here(port));
            let mut res = hints(0);
            res.ai_dst_addr = addr.as_mut_ptr().cast();
            ok(rdma_create_ep(&raw mut id, &raw mut res, ptr::null_mut(), &mut init()));
            ok(rdma_connect(id, ptr::null_mut()));
            assert_eq!((*(*id).event).event, RDMA_CM_EVENT_ESTABLISHED);
            ok(rdma_disconnect(id));
            rdma_destroy_ep(id);
        });
        let mut id = ptr::null_mut();
        ok(rdma_get_request(listener, &raw mut id));
        assert_eq!((*(*id).event).event, RDMA_CM_EVENT_CONNECT_REQUEST);
        assert!(!(*id).qp.is_null());
        ok(rdma_accept(id, ptr::null_mut()));
        assert_eq!((*(*id).event).event, RDMA_CM_EVENT_ESTABLISHED);
        ok(rdma_disconnect(id));
        client.join().unwrap();
        rdma_destroy_ep(id);
        rdma_destroy_ep(listener);
    }
}

#[test]
fn q11_what_is_no_object_and_what_is_no_option_is_told() {
    let side = Side::new();
    let mut number: c_int = 1;
    let value = (&raw mut number).cast();
    // SAFETY: any pointer may be handed in.
    unsafe {
        let (none, wild) = (ptr::null_mut(), ptr::without_provenance_mut(4096));
        for (id, why) in [(none, libc::EINVAL), (wild, libc::ENOENT)] {
            fails(rdma_destroy_id(id), why);
            fails(rdma_listen(id, 1), why);
            fails(rdma_connect(id, ptr::null_mut()), why);
            fails(rdma_disconnect(id), why);
            fails(rdma_migrate_id(id, ptr::null_mut()), why);
        }
        fails(rdma_get_cm_event(side.channel, ptr::null_mut()), libc::EINVAL);
        fails(rdma_ack_cm_event(ptr::null_mut()), libc::EINVAL);
        fails(rdma_connect(side.id, ptr::null_mut()), libc::EINVAL);
        fails(rdma_bind_addr(side.id, ptr::null_mut()), libc::EINVAL);
        let mut of_ib = [libc::AF_IB as u8, 0];
        fails(rdma_bind_addr(side.id, of_ib.as_mut_ptr().cast()), libc::EOPNOTSUPP);
        let set = |level: u32, option: u32, len| {
            rdma_set_option(side.id, level.cast_signed(), option.cast_signed(), value, len)
        };
        ok(set(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4));
        ok(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1));
        ok(set(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4));
        ok(set(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1));
        for option in [RDMA_OPTION_ID_TOS, RDMA_OPTION_ID_ACK_TIMEOUT] {
            for len in [0, 2, 4] {
                fails(set(RDMA_OPTION_ID, option, len), libc::EINVAL);
            }
        }
        for option in [RDMA_OPTION_ID_REUSEADDR, RDMA_OPTION_ID_AFONLY] {
            for len in [0, 1, 8] {
                fails(set(RDMA_OPTION_ID, option, len), libc::EINVAL);
            }
        }
        fails(set(RDMA_OPTION_ID, 99, 4), libc::ENOSYS);
        fails(set(99, RDMA_OPTION_ID_TOS, 1), libc::ENOSYS);
        let flags = libc::fcntl((*side.channel).fd, libc::F_GETFL);
        ok(libc::fcntl((*side.channel).fd, libc::F_SETFL, flags | libc::O_NONBLOCK));
        let mut event = ptr::null_mut();
        fails(rdma_get_cm_event(side.channel, &raw mut event), libc::EAGAIN);
    }
    side.destroy();
}

#[test]
fn a_programs_own_event_is_taken_behind_the_others() {
    let side = Side::new();
    // SAFETY: as C does it.
    unsafe {
        ok(with_address(7, |to| rdma_resolve_addr(side.id, ptr::null_mut(), to, 2000)));
        ok(rdma_write_cm_event(side.id, RDMA_CM_EVENT_USER, -5, 1 << 63 | 7));
        fails(rdma_write_cm_event(side.id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), libc::EINVAL);
        fails(rdma_write_cm_event(ptr::null_mut(), RDMA_CM_EVENT_USER, 0, 0), libc::EINVAL);
        side.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
        let mut event = ptr::null_mut();
        ok(rdma_get_cm_event(side.channel, &raw mut event));
        assert_eq!(((*event).event, (*event).status), (RDMA_CM_EVENT_USER, -5));
        assert_eq!((*event).id, side.id);
        assert_eq!((&raw const (*event).param).cast::<u64>().read(), 1 << 63 | 7);
        ok(rdma_ack_cm_event(event));
    }
    side.destroy();
}

#[test]
fn names_are_resolved_with_an_event() {
    let side = Side::new();
    let (node, no_hints) = (c"127.0.0.1".as_ptr(), ptr::null());
    let mut found = ptr::null_mut();
    let resolve = |node, flags: u32| {
        let hints = rdma_addrinfo { ai_flags: flags.cast_signed(), ..rdma_addrinfo::ZEROED };
        // SAFETY: as C does it.
        unsafe { rdma_resolve_addrinfo(side.id, node, c"7471".as_ptr(), &raw const hints) }
    };
    // SAFETY: as C does it.
    unsafe {
        fails(rdma_query_addrinfo(side.id, &raw mut found), libc::ENOENT);
        ok(resolve(node, RAI_DNS));
        fails(resolve(node, 0), libc::EBUSY);
        side.expect(RDMA_CM_EVENT_ADDRINFO_RESOLVED);
        fails(rdma_query_addrinfo(side.id, ptr::null_mut()), libc::EINVAL);
        ok(rdma_query_addrinfo(side.id, &raw mut found));
        assert_eq!((*found).ai_family, libc::AF_INET);
        rdma_freeaddrinfo(found);
        fails(rdma_query_addrinfo(side.id, &raw mut found), libc::ENOENT);

        fails(resolve(ptr::null(), RAI_SA), libc::EOPNOTSUPP);
        fails(resolve(node, 0x100), libc::EINVAL);
        fails(rdma_resolve_addrinfo(side.id, ptr::null(), ptr::null(), no_hints), libc::EINVAL);
        ok(resolve(c"not a name".as_ptr(), RAI_NUMERICHOST));
        let mut event = ptr::null_mut();
        ok(rdma_get_cm_event(side.channel, &raw mut event));
        let told = ((*event).event, (*event).status);
        assert_eq!(told, (RDMA_CM_EVENT_ADDRINFO_ERROR, -libc::ENOENT));
        ok(rdma_ack_cm_event(event));
        // What nobody asks for goes with the identifier.
        ok(resolve(node, 0));
        side.expect(RDMA_CM_EVENT_ADDRINFO_RESOLVED);
    }
    side.destroy();
}
