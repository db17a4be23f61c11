//! Threads that are cancelled in calls that wait, or could: what they began is as if the call had been interrupted, and
//! nothing stays behind.

use std::cell::Cell;
use std::ffi::CStr;

use crate::raw::addr_info::getaddrinfo;
use crate::rdmacm::connect::tests::{Side, here, listens, ok};
use crate::rdmacm::ep::tests::{Asked, elsewhere, listening};
use crate::test::cancel::cancelled;
use crate::test::*;

/// Whether the thread ends in the call.
fn is_cut_short(call: impl Fn() -> c_int) -> bool {
    let returned = Cell::new(None);
    cancelled(&|| returned.set(Some(call())));
    returned.get().is_none()
}

/// The call waits, and its thread ends there.
#[track_caller]
fn ends_in(call: impl Fn() -> c_int) {
    assert!(is_cut_short(call));
}

/// The call has nothing to wait for: it does its work, and the thread ends behind it.
fn ends_behind(call: impl Fn() -> c_int) {
    let returned = Cell::new(None);
    cancelled(&|| returned.set(Some(call())));
    assert_eq!(returned.get(), Some(0));
}

/// The identifier that a call makes.
fn made_by(call: impl Fn(*mut *mut rdma_cm_id) -> c_int) -> *mut rdma_cm_id {
    let mut id = ptr::null_mut();
    let to = &raw mut id;
    ends_behind(|| call(to));
    id
}

/// `rdma_create_ep`, which makes its whole identifier.
fn endpoint(mut asked: Asked) -> *mut rdma_cm_id {
    let asked = &raw mut asked;
    // SAFETY: both live until the thread was joined.
    made_by(|id| unsafe { (*asked).create(&mut *id) })
}

fn taking_an_event() {
    let (side, mut event) = (Side::new(), ptr::null_mut());
    let to = &raw mut event;
    // SAFETY: as C does it.
    ends_in(|| unsafe { rdma_get_cm_event(side.channel, to) });
    side.destroy();
}

fn connecting() {
    let listener = Side::new();
    let port = listens(listener.id);
    // SAFETY: as C does it; the event stays until it is acknowledged.
    unsafe {
        let id = made_by(|id| rdma_create_id(ptr::null_mut(), id, ptr::null_mut(), RDMA_PS_TCP));
        let mut to = here(port);
        let to = to.as_mut_ptr().cast();
        ends_behind(|| rdma_resolve_addr(id, ptr::null_mut(), to, 2000));
        assert_eq!((*(*id).event).event, RDMA_CM_EVENT_ADDR_RESOLVED);
        ends_behind(|| rdma_resolve_route(id, 2000));
        assert_eq!((*(*id).event).event, RDMA_CM_EVENT_ROUTE_RESOLVED);
        let mut param = rdma_conn_param::ZEROED;
        let param = &raw mut param;
        ends_in(|| rdma_connect(id, param));
        let event = listener.next(RDMA_CM_EVENT_CONNECT_REQUEST);
        let request = (*event).id;
        ok(rdma_ack_cm_event(event));
        ok(rdma_destroy_id(id));
        ok(rdma_destroy_id(request));
    }
    listener.destroy();
}

fn accepting() {
    let asked = Asked::new(IBV_QPT_RC, RAI_PASSIVE, 0);
    let listener = endpoint(asked);
    // SAFETY: as C does it.
    unsafe {
        ok(rdma_listen(listener, 1));
        ends_in(|| rdma_get_request(listener, &mut ptr::null_mut()));
        // It takes its events late.
        let active = endpoint(Asked::new(IBV_QPT_RC, 0, u16::from_be(rdma_get_src_port(listener))));
        let channel = rdma_create_event_channel();
        ok(rdma_migrate_id(active, channel));
        ok(rdma_connect(active, ptr::null_mut()));

        let id = made_by(|id| rdma_get_request(listener, id));
        ends_in(|| rdma_accept(id, ptr::null_mut()));
        // The event that it waited for is there for the next one.
        for channel in [channel, (*id).channel] {
            let mut event = ptr::null_mut();
            ok(rdma_get_cm_event(channel, &raw mut event));
            assert_eq!((*event).event, RDMA_CM_EVENT_ESTABLISHED);
            ok(rdma_ack_cm_event(event));
        }
        for id in [id, active, listener] {
            rdma_destroy_ep(id);
        }
        rdma_destroy_event_channel(channel);
    }
}

fn disconnecting() {
    let (listener, port) = listening(IBV_QPT_RC);
    let active = endpoint(Asked::new(IBV_QPT_RC, 0, port));
    // SAFETY: as C does it.
    unsafe {
        let channel = rdma_create_event_channel();
        ok(rdma_migrate_id(active, channel));
        ok(rdma_connect(active, ptr::null_mut()));
        let mut id = ptr::null_mut();
        ok(rdma_get_request(listener, &raw mut id));
        let passive = elsewhere(id);
        let accepts = thread::spawn(move || ok(rdma_accept(passive(), ptr::null_mut())));
        let mut event = ptr::null_mut();
        ok(rdma_get_cm_event(channel, &raw mut event));
        ok(rdma_ack_cm_event(event));
        accepts.join().unwrap();
        ends_in(|| rdma_disconnect(id));
        for id in [id, active, listener] {
            rdma_destroy_ep(id);
        }
        rdma_destroy_event_channel(channel);
    }
}

/// A name that nobody has: the C library asks for it, wherever that is.
const NAME: &CStr = c"cancelled.invalid";

fn looking_up_a_name() -> [bool; 2] {
    let (side, mut res) = (Side::new(), ptr::null_mut());
    let to = &raw mut res;
    // SAFETY: as C does it.
    unsafe {
        let (name, none) = (NAME.as_ptr(), ptr::null());
        let cut_short = [
            is_cut_short(|| rdma_getaddrinfo(name, none, ptr::null(), to)),
            is_cut_short(|| rdma_resolve_addrinfo(side.id, name, none, ptr::null())),
        ];
        ends_behind(|| rdma_getaddrinfo(c"127.0.0.1".as_ptr(), none, ptr::null(), to));
        rdma_freeaddrinfo(res);
        side.destroy();
        cut_short
    }
}

/// The same by the C library alone, which keeps a descriptor of its own where it is cancelled.
fn looking_up_by_the_c_library() -> [bool; 2] {
    [(); 2].map(|()| is_cut_short(|| getaddrinfo(Some(NAME), None, (0, 0, 0)).map_or(-1, |_| 0)))
}

#[test]
#[ignore = "counts what its process has: the next test runs it in one of its own"]
fn threads_are_cancelled() {
    or_end();
    in_own_fabric();
    let every = || {
        [taking_an_event, connecting, accepting, disconnecting].iter().for_each(|calls| calls());
    };
    every();
    let before = Census::take();
    every();
    assert_eq!(Census::take(), before);
    let open = |calls: fn() -> [bool; 2]| {
        let before = Census::take();
        let cut_short = calls();
        let after = Census::take();
        assert_eq!(Census { descriptors: 0, ..after }, Census { descriptors: 0, ..before });
        (cut_short, after.descriptors - before.descriptors)
    };
    assert_eq!(open(looking_up_a_name), open(looking_up_by_the_c_library));
}

#[test]
fn what_a_cancelled_thread_had_begun_is_whole_and_goes_with_its_identifier() {
    in_its_own_process("rdmacm::connect::cancel_tests::threads_are_cancelled");
}
