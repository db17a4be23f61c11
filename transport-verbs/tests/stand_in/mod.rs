//! A stand-in for libibverbs with one device, for what no device here can be made to do. A program that includes it calls
//! these functions instead of the library's: the linker prefers what the program defines itself. What the device does, and
//! what it was asked for, are of the thread that calls.
#![allow(dead_code, unsafe_code)]

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::ptr;

use rdma_sys::*;

/// The name of the device.
pub const NAME: &str = "stand-in";

/// What `errno` is after a call that returns a number: another one.
pub const OTHER: c_int = libc::EXDEV;

/// Which request a post that fails names.
#[derive(Clone, Copy, Debug)]
pub enum Bad {
    /// The one at this position of the chain.
    Nth(usize),
    /// A pointer to none of them.
    Foreign,
    /// None: the pointer is not written.
    Untouched,
}

/// Attributes of a queue pair, and which were given.
#[derive(Clone, Copy, Debug)]
pub struct Modified {
    pub qp_state: u32,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub mask: c_int,
}

/// What the device does, and what it was asked for.
#[derive(Default)]
pub struct State {
    /// The objects that were created and destroyed, and the events that were acknowledged.
    pub calls: Vec<&'static str>,
    /// The calls that return this number instead of doing anything.
    pub fails: Vec<(&'static str, c_int)>,
    /// `max_qp_rd_atom` and `max_qp_init_rd_atom` of devices that are opened.
    pub rd_atomic: [c_int; 2],
    /// How queue pairs were modified.
    pub modified: Vec<Modified>,
    /// How posting fails.
    pub refuses: Option<(c_int, Bad)>,
    /// The `wr_id` of what was posted, refused or not.
    pub posted: Vec<u64>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Reads or changes what the device does.
pub fn state<R>(with: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(with)
}

fn called(name: &'static str) {
    state(|state| state.calls.push(name));
}

/// The errno that a call returns.
fn fails(name: &'static str) -> Option<c_int> {
    // SAFETY: the thread's own.
    unsafe { *libc::__errno_location() = OTHER };
    state(|state| state.fails.iter().find(|(of, _)| *of == name).map(|&(_, errno)| errno))
}

/// Something on the heap, all of whose fields may be zero.
fn made<T>(name: &'static str, fill: impl FnOnce(&mut T)) -> *mut T {
    called(name);
    // SAFETY: as said.
    let mut new: Box<T> = Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
    fill(&mut new);
    Box::into_raw(new)
}

/// # Safety
/// `made` returned it, and nothing refers to it.
unsafe fn destroyed<T>(name: &'static str, raw: *mut T) -> c_int {
    if let Some(errno) = fails(name) {
        return errno;
    }
    called(name);
    // SAFETY: the caller's word.
    drop(unsafe { Box::from_raw(raw) });
    0
}

/// An object that has events, and where they are written.
#[repr(C)]
struct Source<T> {
    raw: T,
    events: c_int,
}

fn pipe() -> [c_int; 2] {
    let (read, write) = rustix::pipe::pipe().unwrap();
    [read.into_raw_fd(), write.into_raw_fd()]
}

/// # Safety
/// The object is alive, and the first of a [`Source`].
unsafe fn raise<T, E>(of: *mut T, event: &E) {
    // SAFETY: the caller's word; the event is as long as said.
    let written = unsafe {
        let events = (*of.cast::<Source<T>>()).events;
        libc::write(events, ptr::from_ref(event).cast(), size_of::<E>())
    };
    assert_eq!(written, size_of::<E>() as isize);
}

/// Reports an asynchronous event of a context.
///
/// # Safety
/// The context is the stand-in's, and alive.
pub unsafe fn raise_async(of: *mut ibv_context, element: *mut c_void, event_type: u32) {
    // SAFETY: the caller's word.
    unsafe { raise(of, &(element.expose_provenance(), u64::from(event_type))) };
}

/// Reports an event of a completion queue to its channel.
///
/// # Safety
/// The queue is the stand-in's, and alive, and has a channel.
pub unsafe fn raise_completion(of: *mut ibv_cq) {
    // SAFETY: the caller's word.
    unsafe { raise((*of).channel, &of.expose_provenance()) };
}

/// Reads an event: 0, or -1 with `errno`.
///
/// # Safety
/// Any bytes are an `E`.
unsafe fn take<E>(from: c_int, event: *mut E) -> c_int {
    // SAFETY: the caller's word.
    match unsafe { libc::read(from, event.cast(), size_of::<E>()) } {
        -1 => -1,
        read => c_int::from(read != size_of::<E>() as isize),
    }
}

static mut DEVICE: MaybeUninit<ibv_device> = MaybeUninit::zeroed();
static mut LIST: [*mut ibv_device; 2] = [(&raw mut DEVICE).cast(), ptr::null_mut()];
static mut NAME_OF_DEVICE: [u8; 9] = *b"stand-in\0";

unsafe extern "C" fn poll_cq(_: *mut ibv_cq, _: c_int, _: *mut ibv_wc) -> c_int {
    0
}

unsafe extern "C" fn req_notify_cq(_: *mut ibv_cq, _: c_int) -> c_int {
    fails("ibv_req_notify_cq").unwrap_or(0)
}

macro_rules! posts {
    ($($name:ident($queue:ty, $wr:ty);)+) => {$(
        unsafe extern "C" fn $name(_: *mut $queue, first: *mut $wr, bad: *mut *mut $wr) -> c_int {
            let (mut chain, mut at) = (Vec::new(), first);
            while !at.is_null() {
                // SAFETY: the caller ensures that it is a chain of requests, and that `bad` may be written.
                unsafe { state(|state| state.posted.push((*at).wr_id)) };
                chain.push(at);
                // SAFETY: as above.
                at = unsafe { (*at).next };
            }
            let Some((errno, which)) = state(|state| state.refuses) else { return 0 };
            let named = match which {
                Bad::Nth(nth) => chain[nth],
                Bad::Foreign => ptr::dangling_mut(),
                Bad::Untouched => return errno,
            };
            // SAFETY: as above.
            unsafe { *bad = named };
            errno
        }
    )+};
}
posts! {
    post_send(ibv_qp, ibv_send_wr);
    post_recv(ibv_qp, ibv_recv_wr);
    post_srq_recv(ibv_srq, ibv_recv_wr);
}

/// The functions of libibverbs that create and destroy objects.
macro_rules! objects {
    ($($destroy:ident($object:ty);)+) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $destroy(raw: *mut $object) -> c_int {
            // SAFETY: the caller's word.
            unsafe { destroyed(stringify!($destroy), raw) }
        }
    )+};
}
objects! {
    ibv_dealloc_pd(ibv_pd);
    ibv_destroy_cq(ibv_cq);
    ibv_destroy_qp(ibv_qp);
    ibv_destroy_srq(ibv_srq);
    ibv_destroy_ah(ibv_ah);
    ibv_dereg_mr(ibv_mr);
}

/// What is called by name. Each is what its manual page says, of arguments that the crate keeps right.
mod exported {
    #![allow(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]
    use super::*;

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
        *count = 1;
        (&raw mut LIST).cast()
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_free_device_list(_: *mut *mut ibv_device) {}

    #[unsafe(no_mangle)]
    extern "C" fn ibv_get_device_name(_: *mut ibv_device) -> *const c_char {
        (&raw const NAME_OF_DEVICE).cast()
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
        let open = |context: &mut Source<ibv_context>| {
            let [read, write] = pipe();
            (context.raw.device, context.raw.async_fd, context.events) = (device, read, write);
            let ops = &mut context.raw.ops;
            ops.poll_cq = Some(poll_cq);
            ops.req_notify_cq = Some(req_notify_cq);
            ops.post_send = Some(post_send);
            ops.post_recv = Some(post_recv);
            ops.post_srq_recv = Some(post_srq_recv);
        };
        made("ibv_open_device", open).cast()
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
        if let Some(errno) = fails("ibv_close_device") {
            *libc::__errno_location() = errno;
            return -1;
        }
        libc::close((*context).async_fd);
        libc::close((*context.cast::<Source<ibv_context>>()).events);
        destroyed("ibv_close_device", context.cast::<Source<ibv_context>>())
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_query_device(
        _: *mut ibv_context,
        attr: *mut ibv_device_attr,
    ) -> c_int {
        let [responder, initiator] = state(|state| state.rd_atomic);
        ((*attr).max_qp_rd_atom, (*attr).max_qp_init_rd_atom) = (responder, initiator);
        ((*attr).max_cqe, (*attr).max_sge, (*attr).max_qp_wr) = (1000, 4, 1000);
        (*attr).phys_port_cnt = 1;
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_query_port(
        _: *mut ibv_context,
        _: u8,
        attr: *mut ibv_port_attr,
    ) -> c_int {
        ((*attr).state, (*attr).active_mtu, (*attr).lid) = (4, 3, 7);
        0
    }

    #[unsafe(no_mangle)]
    extern "C" fn _ibv_query_gid_table(
        _: *mut ibv_context,
        _: *mut ibv_gid_entry,
        _: usize,
        _: u32,
        _: usize,
    ) -> isize {
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_get_async_event(
        context: *mut ibv_context,
        event: *mut ibv_async_event,
    ) -> c_int {
        take((*context).async_fd, event.cast::<(u64, u64)>())
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_ack_async_event(_: *mut ibv_async_event) {
        called("ibv_ack_async_event");
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
        let create = |channel: &mut Source<ibv_comp_channel>| {
            let [read, write] = pipe();
            (channel.raw.context, channel.raw.fd, channel.events) = (context, read, write);
        };
        made("ibv_create_comp_channel", create).cast()
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
        destroyed("ibv_destroy_comp_channel", channel.cast::<Source<ibv_comp_channel>>())
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel,
        cq: *mut *mut ibv_cq,
        cq_context: *mut *mut c_void,
    ) -> c_int {
        let taken = take((*channel).fd, cq);
        if taken == 0 {
            *cq_context = (**cq).cq_context;
        }
        taken
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, count: c_uint) {
        (*cq).comp_events_completed += count;
        called("ibv_ack_cq_events");
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
        made("ibv_alloc_pd", |pd: &mut ibv_pd| pd.context = context)
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_create_cq(
        context: *mut ibv_context,
        cqe: c_int,
        cq_context: *mut c_void,
        channel: *mut ibv_comp_channel,
        _: c_int,
    ) -> *mut ibv_cq {
        made("ibv_create_cq", |cq: &mut ibv_cq| {
            (cq.context, cq.cqe, cq.cq_context, cq.channel) = (context, cqe, cq_context, channel);
        })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_create_srq(
        pd: *mut ibv_pd,
        init: *mut ibv_srq_init_attr,
    ) -> *mut ibv_srq {
        made("ibv_create_srq", |srq: &mut ibv_srq| {
            (srq.pd, srq.context, srq.srq_context) = (pd, (*pd).context, (*init).srq_context);
        })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_create_qp(
        pd: *mut ibv_pd,
        init: *mut ibv_qp_init_attr,
    ) -> *mut ibv_qp {
        made("ibv_create_qp", |qp: &mut ibv_qp| {
            (qp.pd, qp.context, qp.qp_context) = (pd, (*pd).context, (*init).qp_context);
            qp.qp_num = 17;
        })
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_modify_qp(
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        mask: c_int,
    ) -> c_int {
        if let Some(errno) = fails("ibv_modify_qp") {
            return errno;
        }
        (*qp).state = (*attr).qp_state;
        let ibv_qp_attr { qp_state, max_rd_atomic, max_dest_rd_atomic, .. } = *attr;
        let modified = Modified { qp_state, max_rd_atomic, max_dest_rd_atomic, mask };
        state(|state| state.modified.push(modified));
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn ibv_query_qp(
        qp: *mut ibv_qp,
        attr: *mut ibv_qp_attr,
        _: c_int,
        _: *mut ibv_qp_init_attr,
    ) -> c_int {
        (*attr).qp_state = (*qp).state;
        0
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_create_ah(pd: *mut ibv_pd, _: *mut ibv_ah_attr) -> *mut ibv_ah {
        made("ibv_create_ah", |ah: &mut ibv_ah| ah.pd = pd)
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_reg_mr_iova2(
        pd: *mut ibv_pd,
        addr: *mut c_void,
        length: usize,
        _: u64,
        _: c_uint,
    ) -> *mut ibv_mr {
        made("ibv_reg_mr_iova2", |mr: &mut ibv_mr| {
            (mr.pd, mr.addr, mr.length, mr.lkey, mr.rkey) = (pd, addr, length, 5, 6);
        })
    }
}
