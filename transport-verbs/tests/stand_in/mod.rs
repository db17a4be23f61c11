//! A stand-in for libibverbs with one device, for what no device here can be made to do. A program that includes it calls
//! these functions instead of the library's: the linker prefers what the program defines itself. What the device does, and
//! what it was asked for, are of the thread that calls.
#![allow(dead_code, unsafe_code)]

mod exported;

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
    /// What polling a completion queue returns.
    pub polls: c_int,
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
    state(|state| state.polls)
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
