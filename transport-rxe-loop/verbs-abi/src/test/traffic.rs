//! Completion queues for tests, what completes on them, and polling as the header's inline functions do it.

use crate::exports::*;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use cq_core::transport::{PollCq, Post};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{Cq, QpAttr, QpInit, QpState, QueuePair};

use crate::context::OPENINGS;
use crate::cq::QUEUES;
use crate::errno::Errno;
use crate::sys::*;

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

/// A pointer of C's that another thread may have, too.
pub struct Shared<T>(pub *mut T);

impl<T> Copy for Shared<T> {}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

// SAFETY: what is behind it is found and locked by whoever it is handed to.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The pointer; closures that name it take all of this along.
    pub const fn get(self) -> *mut T {
        self.0
    }
}

/// A completion channel.
pub fn channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    // SAFETY: any pointer may be handed in.
    let channel = unsafe { ibv_create_comp_channel(context) };
    assert!(!channel.is_null());
    channel
}

/// A completion queue for so many, which has a channel unless that is null.
pub fn queue(context: *mut ibv_context, cqe: c_int, channel: *mut ibv_comp_channel) -> *mut ibv_cq {
    // SAFETY: any pointer may be handed in.
    let cq = unsafe { ibv_create_cq(context, cqe, ptr::null_mut(), channel, 0) };
    assert!(!cq.is_null());
    cq
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

/// Arms a queue; 0, or the errno.
pub fn arm(cq: *mut ibv_cq, solicited_only: bool) -> c_int {
    // SAFETY: a queue.
    unsafe { (*(*cq).context).ops.req_notify_cq.unwrap()(cq, solicited_only.into()) }
}

/// Takes an event: its queue, and what that was made with.
pub fn event(channel: *mut ibv_comp_channel) -> Result<(*mut ibv_cq, *mut c_void), Errno> {
    let (mut cq, mut cq_context) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the buffer holds both.
    match unsafe { ibv_get_cq_event(channel, &raw mut cq, &raw mut cq_context) } {
        0 => Ok((cq, cq_context)),
        failed => {
            assert_eq!(failed, -1);
            Err(Errno::last())
        }
    }
}

/// Asks for no waiting for what is read from a descriptor.
pub fn never_wait_for(descriptor: c_int) {
    // SAFETY: any number may be given.
    assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) }, 0);
}

/// A channel that is not waited for.
pub fn hasty_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let channel = channel(context);
    // SAFETY: a channel.
    never_wait_for(unsafe { (*channel).fd });
    channel
}

/// A queue pair that sends to itself, and whose receives complete on a queue.
pub struct Traffic {
    qp: QueuePair,
    sent: Cq,
}

impl Traffic {
    /// To this queue.
    pub fn to(cq: *mut ibv_cq) -> Self {
        // SAFETY: a queue.
        let opening = OPENINGS.find(unsafe { (*cq).context }).unwrap();
        let (pd, sent) = opening
            .with(|open| {
                (open.device.alloc_pd().unwrap(), open.device.create_cq(128, None).unwrap())
            })
            .unwrap();
        let create = |recv_cq: &Cq| {
            pd.create_qp(&QpInit { send_cq: &sent, ..QpInit::new(recv_cq) }).unwrap()
        };
        let mut qp = QUEUES.find(cq).unwrap().with(|queue| create(&queue.cq)).unwrap();
        qp.connect_to(qp.number()).unwrap();
        Self { qp, sent }
    }

    fn receive(&mut self, wr_id: u64, send: SendWr<'_>) {
        self.qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
        self.qp.post_send(&[send]).unwrap();
        until("what was sent has completed", || self.sent.poll(&mut [ibv_wc::default()]) == Ok(1));
    }

    /// A receive completes.
    pub fn complete(&mut self, wr_id: u64) {
        self.receive(wr_id, SendWr::send(0, &[]));
    }

    /// So many receives complete.
    pub fn complete_each(&mut self, wr_ids: impl IntoIterator<Item = u64>) {
        wr_ids.into_iter().for_each(|wr_id| self.complete(wr_id));
    }

    /// A receive completes that carries immediate data.
    pub fn complete_with_imm(&mut self, wr_id: u64, imm: [u8; 4]) {
        self.receive(wr_id, SendWr::send(0, &[]).with_imm(imm));
    }

    /// A receive is flushed. Nothing else comes any more.
    pub fn fail(&mut self, wr_id: u64) {
        self.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
        self.qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    }
}
