//! Completion queues for tests, and polling as the header's inline functions do it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::test::*;

/// As long as a test waits for what has to come.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Goes on until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "never so: {what}");
        std::thread::yield_now();
    }
}

/// The number of the calling thread.
pub fn this_thread() -> i32 {
    // SAFETY: it has no conditions.
    unsafe { libc::gettid() }
}

/// Whether a thread of this process sleeps, or has ended.
pub fn is_at_rest(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
}

/// Pointers of C's that another thread may have, too.
#[derive(Clone, Copy)]
pub struct Shared<T>(pub T);

// SAFETY: the functions of the ABI find and lock what is behind them.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// The pointers; closures that name it take all of this along.
    pub const fn get(self) -> T {
        self.0
    }
}

/// A completion queue for so many, which has a channel unless that is null.
pub fn queue(context: *mut ibv_context, cqe: c_int, channel: *mut ibv_comp_channel) -> *mut ibv_cq {
    // SAFETY: any pointer may be handed in.
    let cq = unsafe { ibv_create_cq(context, cqe, ptr::null_mut(), channel, 0) };
    assert!(!cq.is_null());
    cq
}

/// A shared receive queue.
pub fn shared_queue(pd: *mut ibv_pd) -> *mut ibv_srq {
    let attr = ibv_srq_attr { max_wr: 4, max_sge: 1, srq_limit: 0 };
    let mut init = ibv_srq_init_attr { srq_context: ptr::null_mut(), attr };
    // SAFETY: attributes.
    unsafe { ibv_create_srq(pd, &raw mut init) }
}

/// Polls for up to so many completions.
pub fn poll(cq: *mut ibv_cq, most: c_int) -> Result<Vec<ibv_wc>, Errno> {
    let mut buffer = vec![ibv_wc::default(); most as usize];
    // SAFETY: a queue; the buffer holds so many.
    let polled = unsafe {
        let poll = (*(*cq).context).ops.poll_cq.unwrap();
        poll(cq, most, buffer.as_mut_ptr().cast())
    };
    buffer.truncate(usize::try_from(polled).map_err(|_| Errno::of(-polled))?);
    Ok(buffer)
}

/// Which requests they are of.
pub fn wr_ids(completions: &[ibv_wc]) -> Vec<u64> {
    completions.iter().map(ibv_wc::wr_id).collect()
}

/// Arms a queue for any completion.
pub fn arm(cq: *mut ibv_cq) {
    // SAFETY: a queue.
    assert_eq!(unsafe { (*(*cq).context).ops.req_notify_cq.unwrap()(cq, 0) }, 0);
}

/// Takes an event: its queue, and what that was made with.
pub fn event(channel: *mut ibv_comp_channel) -> Result<(*mut ibv_cq, *mut c_void), Errno> {
    let (mut cq, mut cq_context) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the buffer holds both.
    let answer = unsafe { ibv_get_cq_event(channel, &raw mut cq, &raw mut cq_context) };
    if answer == 0 { Ok((cq, cq_context)) } else { Err(Errno::last()) }
}

/// Asks for no waiting for what is read from a descriptor.
pub fn never_wait_for(descriptor: c_int) {
    // SAFETY: any number may be given.
    assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
}

/// A completion channel, and a small queue that has it.
pub fn channel() -> (*mut ibv_comp_channel, *mut ibv_cq) {
    let context = open();
    // SAFETY: any pointer may be handed in.
    let channel = unsafe { ibv_create_comp_channel(context) };
    (channel, queue(context, 16, channel))
}

/// The same, where the channel is not waited for.
pub fn hasty_channel() -> (*mut ibv_comp_channel, *mut ibv_cq) {
    let (channel, cq) = channel();
    // SAFETY: a channel.
    never_wait_for(unsafe { (*channel).fd });
    (channel, cq)
}

/// What waits for edges of a descriptor, as an event loop does that is edge-triggered.
pub struct Edges(OwnedFd);

impl Edges {
    pub fn of(descriptor: c_int) -> Self {
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        // SAFETY: a descriptor of an object that stays.
        let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, descriptor, EventData::new_u64(0), flags).unwrap();
        Self(epoll)
    }

    /// Whether there was one since this was asked last.
    pub fn next(&self) -> bool {
        let (mut events, now) = (Vec::with_capacity(1), Timespec::default());
        epoll::wait(&self.0, rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap() == 1
    }

    /// There is one for each of so many events, of which none is taken.
    #[track_caller]
    pub fn expect(&self, count: u64, mut cause: impl FnMut(u64)) {
        assert!(!self.next());
        for nth in 0..count {
            cause(nth);
            assert!(self.next(), "the {nth}th");
        }
        assert!(!self.next());
    }
}

/// Whether a program that polls a descriptor would find something, now or within this time.
pub fn is_readable(descriptor: c_int, milliseconds: c_int) -> bool {
    let mut watched = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one of them.
    unsafe { libc::poll(&raw mut watched, 1, milliseconds) == 1 }
}
