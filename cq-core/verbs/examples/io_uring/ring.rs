//! The transport: the completions of an io_uring, and the events of its eventfd(2).

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::with_exposed_provenance_mut;
use std::rc::Rc;
use std::time::Instant;

use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Woken,
};
use cq_core::wc::{Failed, Wc, WcOpcode, WcStatus};
use cq_verbs::post::WrError;
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{IoUring, cqueue, opcode};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

/// How many reads may be in flight. The kernel's completion ring holds twice as many, so it never overruns (O7).
pub const DEPTH: usize = 16;
const KEY: CqKey = CqKey { index: 0, generation: 1 };

/// What the queue, its channel and the reads share.
pub struct Ring {
    uring: RefCell<IoUring>,
    /// The kernel adds 1 after each completion.
    eventfd: OwnedFd,
    armed: Cell<Option<Notify>>,
    /// An event was raised and not taken.
    raised: Cell<bool>,
    /// Reads whose completions were not polled.
    in_flight: Cell<usize>,
}

impl Ring {
    pub fn new() -> io::Result<Rc<Self>> {
        let uring = IoUring::new(DEPTH as u32).map_err(|error| {
            let why = "no io_uring (is it off by kernel.io_uring_disabled, or by a container's seccomp filter?)";
            io::Error::new(error.kind(), format!("{why}: {error}"))
        })?;
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        uring.submitter().register_eventfd(eventfd.as_raw_fd())?;
        let (armed, raised, in_flight) = Default::default();
        Ok(Rc::new(Self { uring: RefCell::new(uring), eventfd, armed, raised, in_flight }))
    }

    /// Posts a read. This is not `Post`, which has no offset in a file, whose memory has keys that the device checks,
    /// and whose completions are in the order of the requests (C10).
    ///
    /// # Safety
    /// Until the completion was polled, the memory stays allocated, and nobody else accesses it.
    pub unsafe fn read(
        &self,
        wr_id: u64,
        file: BorrowedFd<'_>,
        offset: usize,
        (addr, len): (u64, u32),
    ) -> Result<(), WrError> {
        if self.in_flight.get() == DEPTH {
            return Err(WrError::QueueFull);
        }
        let to = with_exposed_provenance_mut(addr as usize);
        let read = opcode::Read::new(Fd(file.as_raw_fd()), to, len).offset(offset as u64);
        let mut uring = self.uring.borrow_mut();
        // SAFETY: the caller keeps the memory.
        let pushed = unsafe { uring.submission().push(&read.build().user_data(wr_id)) };
        pushed.map_err(|_| WrError::QueueFull)?;
        self.in_flight.set(self.in_flight.get() + 1);
        // What the kernel does not take stays in its ring: the next read submits it, or `arm`, which returns the error.
        let _ = uring.submit();
        Ok(())
    }

    /// Waits until all reads in flight are completed. They are still to be polled.
    pub fn finish(&self) -> io::Result<()> {
        let (mut uring, count) = (self.uring.borrow_mut(), self.in_flight.get());
        while uring.completion().len() < count {
            match uring.submit_and_wait(count) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Cancels all reads in flight, as far as they can be. Each completes.
    pub fn cancel(&self) -> io::Result<()> {
        let uring = self.uring.borrow();
        uring.submit()?;
        match uring.submitter().register_sync_cancel(None, CancelBuilder::any()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes what the kernel has added to the eventfd. It is an event if the queue is armed for it.
    fn settle(&self) -> Result<(), Errno> {
        match rustix::io::read(&self.eventfd, &mut [0; 8]) {
            Err(Errno::AGAIN) => return Ok(()),
            Err(errno) => return Err(errno),
            Ok(_) => {}
        }
        match self.armed.get() {
            Some(Notify::Next) => self.raise(),
            // Reads are not solicited.
            Some(Notify::Solicited) if self.holds_failure() => self.raise(),
            _ => {}
        }
        Ok(())
    }

    fn raise(&self) {
        self.armed.set(None);
        self.raised.set(true);
    }

    fn holds_failure(&self) -> bool {
        let mut uring = self.uring.borrow_mut();
        let mut entries = uring.completion();
        let is_any = entries.any(|entry| entry.result() < 0);
        // Dropping them would free them in the ring.
        mem::forget(entries);
        is_any
    }
}

/// The queue.
pub struct Queue(pub Rc<Ring>);

impl PollCq for Queue {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let (mut uring, mut count) = (self.0.uring.borrow_mut(), 0);
        // The head of the ring is published when the iterator is dropped: once for all entries.
        for (wc, entry) in out.iter_mut().zip(uring.completion()) {
            *wc = completion(&entry);
            count += 1;
            if entry.result() < 0 && self.0.armed.get() == Some(Notify::Solicited) {
                self.0.raise();
            }
        }
        self.0.in_flight.set(self.0.in_flight.get() - count);
        Ok(count)
    }
}

/// The `user_data` of a request is its `wr_id`. Its result is the number of bytes, or a negative error number.
fn completion(entry: &cqueue::Entry) -> Wc {
    const CANCELED: i32 = -Errno::CANCELED.raw_os_error();
    let wc = |status| Wc::new(entry.user_data(), status, 1);
    match entry.result() {
        bytes @ 0.. => {
            wc(WcStatus::SUCCESS).with_opcode(WcOpcode::RECV).with_byte_len(bytes.cast_unsigned())
        }
        CANCELED => wc(WcStatus::WR_FLUSH_ERR),
        errno => {
            let (wr_id, errno) = (entry.user_data(), errno.unsigned_abs());
            Failed::new(wr_id, WcStatus::GENERAL_ERR, 1, errno).map_or_else(Wc::default, Wc::failed)
        }
    }
}

impl Arm for Queue {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let ring = &*self.0;
        ring.uring.borrow().submit().map_err(|error| ArmError::Device(code(&error)))?;
        // What came before is for the earlier arm, or for nobody (N2).
        ring.settle().map_err(|errno| ArmError::Device(errno.raw_os_error()))?;
        // Arming never weakens (N4).
        ring.armed.set(ring.armed.get().max(Some(on)));
        // Read after the eventfd: a completion is either seen here, or added to it from now on (N6).
        let is_empty = ring.uring.borrow_mut().completion().is_empty();
        Ok(if is_empty { Armed::Armed } else { Armed::MayHaveMissed })
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

fn code(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or_default()
}

/// The channel.
pub struct Channel(pub Rc<Ring>);

impl Events for Channel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.0.settle().map_err(|errno| EventError::Device(errno.raw_os_error()))?;
        Ok(self.0.raised.take().then_some(KEY))
    }
}

impl Block for Channel {
    type Instant = Instant;

    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        if self.0.raised.get() {
            return Ok(Woken::Event);
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&self.0.eventfd, PollFlags::IN)], left.as_ref()) {
            Ok(0) => Ok(Woken::DeadlinePassed),
            Ok(_) => Ok(Woken::Event),
            Err(Errno::INTR) => Ok(Woken::Interrupted),
            Err(errno) => Err(EventError::Device(errno.raw_os_error())),
        }
    }
}
