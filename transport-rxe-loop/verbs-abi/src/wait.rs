//! Waiting for an event. Programs know it as a `read(2)` of a descriptor that they see, and count on what that
//! does: O_NONBLOCK is heeded, a signal ends it unless its handler has calls restarted, and a thread that waits can
//! be cancelled.
//!
//! It must not take out of the FIFO what others wait for. `tee(2)` does not, and is like `read(2)` in all of the
//! above, where `poll(2)` is never restarted.
//!
//! The descriptors that programs see, of completion channels and of asynchronous events, are theirs: the device's own must
//! never block, and programs decide by `fcntl(2)` whether theirs does. So theirs is a second opening of the same FIFO: it
//! is readable as long as the other is, and its flags are the program's.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, open};
use rustix::pipe::{PipeFlags, pipe_with};
use transport_rxe_loop::SystemError;
use transport_rxe_loop::descriptor::{KeptFd, above_streams};
use transport_rxe_loop::sanitizer;

use crate::errno::Errno;
use crate::raw::child::{Alone, Renewed};
use crate::raw::system::{tee_byte, uncancelled};

/// A descriptor for a program.
#[derive(Debug)]
pub struct Descriptor(KeptFd);

impl Descriptor {
    /// One that is readable as long as the FIFO `device` is, which stays open as long as this. Waiting for it does not fail
    /// for want of a descriptor.
    ///
    /// # Errors
    /// EMFILE, ENFILE: the system has none. ENOENT: `/proc` is not there.
    pub fn over(device: BorrowedFd<'_>) -> Result<Self, SystemError> {
        scratch().map_err(|errno| SystemError::of("pipe", "waiting for events", errno))?;
        // `/proc/self` is unusable in a process whose first thread has ended.
        let path = format!("/proc/thread-self/fd/{}", device.as_raw_fd());
        let opening = || open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let opened = above_streams(opening).and_then(KeptFd::new);
        Ok(Self(opened.map_err(|errno| SystemError::at("open", Path::new(&path), errno))?))
    }

    /// Its number.
    pub fn number(&self) -> RawFd {
        self.0.unchecked().as_raw_fd()
    }
}

/// What looking for an event found.
#[derive(Clone, Copy)]
pub enum Look<T> {
    /// One.
    Found(T),
    /// None. This descriptor of the program's is readable once there may be one.
    Nothing(RawFd),
}

/// Looks until there is an event, and waits in between, where the program wants that. Being woken for nothing, and
/// finding that somebody else took the event, goes round.
///
/// A thread may be cancelled while it waits (`pthread_cancel(3)`). That is sound as long as nothing that is to be dropped is
/// in any frame: so both types are [`Copy`], and callers have nothing else, either.
///
/// # Errors
/// EAGAIN: the program does not want to wait. EINTR: a signal came, whose handler does not have calls restarted.
/// EBADF: the program has closed the descriptor. Why `look` failed.
pub fn until_found<T: Copy>(look: impl Fn() -> Result<Look<T>, Errno> + Copy) -> Result<T, Errno> {
    until_found_by(look, wait)
}

/// The same, with another way to wait.
pub fn until_found_by<T: Copy>(
    look: impl Fn() -> Result<Look<T>, Errno> + Copy,
    wait: fn(RawFd) -> Result<(), Errno>,
) -> Result<T, Errno> {
    loop {
        match uncancelled(look)? {
            Look::Found(event) => {
                sanitizer::completed();
                return Ok(event);
            }
            Look::Nothing(descriptor) => wait(descriptor)?,
        }
    }
}

/// Waits until the descriptor is readable, or can't become it. It is a number, since the program may close it.
fn wait(descriptor: RawFd) -> Result<(), Errno> {
    let pipe = scratch()?;
    match tee_byte(descriptor, pipe.writer.get()?) {
        ..0 => Err(Errno::last()),
        0 => Ok(()),
        1.. => Ok(rustix::io::read(pipe.reader.get()?, &mut [0; 1]).map(drop)?),
    }
}

/// Where `tee` puts what nobody wants; everybody takes out what they put in.
struct Pipe {
    reader: KeptFd,
    writer: KeptFd,
}

/// Never freed. A forked child has its own: it may end between putting something in and taking it out.
static SCRATCH: Renewed<Mutex<Option<&'static Pipe>>> = Renewed::new(Mutex::new(None));

/// The pipe of this process, or another one if the program has closed it.
fn scratch() -> Result<&'static Pipe, rustix::io::Errno> {
    let scratch = SCRATCH.get();
    let known = *scratch.lock().unwrap_or_else(PoisonError::into_inner);
    let is_open = |pipe: &&Pipe| pipe.reader.get().is_ok() && pipe.writer.get().is_ok();
    if let Some(pipe) = known.filter(is_open) {
        return Ok(pipe);
    }
    let (reader, writer) = above_streams(|| pipe_with(PipeFlags::CLOEXEC))?;
    let (reader, writer) = (KeptFd::new(reader)?, KeptFd::new(writer)?);
    let pipe = Box::leak(Box::new(Pipe { reader, writer }));
    // Of two that come at the same time, each has a pipe that works.
    *scratch.lock().unwrap_or_else(PoisonError::into_inner) = Some(pipe);
    Ok(pipe)
}

/// Has the next one who waits make another one.
pub fn renew(alone: &Alone) {
    SCRATCH.renew(alone, Mutex::new(None));
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::os::unix::thread::JoinHandleExt;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread::{self, JoinHandle};
    use std::time::{Duration, Instant};

    use rustix::pipe::pipe;

    use super::*;
    use crate::exports::{rdma_create_event_channel, rdma_destroy_event_channel};
    use crate::rdmacm::event::next;
    use crate::rdmacm::objects::CHANNELS;
    use crate::test::cancel::{cancel, cancel_this};
    use crate::test::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn is_readable(descriptor: RawFd) -> bool {
        let mut watched = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: one of them.
        unsafe { libc::poll(&raw mut watched, 1, 0) == 1 }
    }

    fn look(descriptor: RawFd) -> Result<Look<()>, Errno> {
        Ok(if is_readable(descriptor) { Look::Found(()) } else { Look::Nothing(descriptor) })
    }

    #[test]
    fn n10_waiting_takes_nothing_out_and_waits_for_nothing_that_is_closed() {
        let (reader, writer) = pipe().unwrap();
        let descriptor = reader.as_raw_fd();
        rustix::io::write(&writer, &[1]).unwrap();
        assert_eq!((wait(descriptor), wait(descriptor)), (Ok(()), Ok(())));
        assert!(is_readable(descriptor));
        assert_eq!(until_found(|| Ok(Look::<()>::Nothing(-1))), Err(Errno::of(libc::EBADF)));
    }

    /// How often the handler ran.
    static HANDLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn handle(_: c_int) {
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    /// From now on SIGUSR1 is handled.
    fn install(flags: c_int) {
        // SAFETY: all zeros are an action.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handle as extern "C" fn(c_int) as usize;
        action.sa_flags = flags;
        // SAFETY: the handler does what any may do.
        let done = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) };
        assert_eq!(done, 0);
    }

    /// Signals the thread until it is `done`.
    fn signal_until(thread: &JoinHandle<Result<(), Errno>>, done: impl Fn() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !done() {
            assert!(Instant::now() < deadline, "the signal does not arrive");
            // SAFETY: nobody has joined it.
            unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
            thread::yield_now();
        }
    }

    #[test]
    fn x7_a_signal_ends_the_wait_unless_its_handler_restarts_calls() {
        let (reader, writer) = pipe().unwrap();
        let descriptor = reader.as_raw_fd();
        let waiter = || thread::spawn(move || until_found(|| look(descriptor)));

        // It has found the channel, which is destroyed then: nothing but the signal ends its wait.
        // SAFETY: the pointer is used no more once what it leads to is destroyed; slots stay.
        let channel = unsafe {
            let face = rdma_create_event_channel();
            let channel = CHANNELS.find(face).unwrap();
            rdma_destroy_event_channel(face);
            channel
        };

        install(libc::SA_RESTART);
        let thread = waiter();
        signal_until(&thread, || HANDLED.load(Ordering::Relaxed) >= 100);
        rustix::io::write(&writer, &[1]).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(()));
        // Rust's handler of faults does not have calls restarted, and interrupts none.
        let waits = thread::spawn(move || next(channel).map(drop));
        signal_until(&waits, || waits.is_finished() || HANDLED.load(Ordering::Relaxed) >= 200);
        assert!(!waits.is_finished());

        rustix::io::read(&reader, &mut [0; 1]).unwrap();
        install(0);
        let is_interrupted = |thread: JoinHandle<Result<(), Errno>>| {
            signal_until(&thread, || thread.is_finished());
            assert_eq!(thread.join().unwrap(), Err(Errno::of(libc::EINTR)));
        };
        is_interrupted(waiter());
        is_interrupted(waits);
    }

    /// Has a thread wait for what does not come, which is cancelled once it has looked.
    fn is_cancelled(look_twice: &dyn Fn()) {
        let (reader, _writer) = pipe().unwrap();
        let (descriptor, looked) = (reader.as_raw_fd(), AtomicBool::new(false));
        let wait_for_ever = || {
            let found = until_found(|| {
                look_twice();
                looked.store(true, Ordering::Relaxed);
                look(descriptor)
            });
            assert!(found.is_err());
        };
        cancel(&wait_for_ever, || looked.load(Ordering::Relaxed));
    }

    #[test]
    fn a_thread_that_waits_can_be_cancelled() {
        is_cancelled(&|| {});
    }

    #[test]
    fn a_thread_that_looks_is_cancelled_when_it_waits() {
        is_cancelled(&|| {
            cancel_this();
            // It is opened and closed.
            drop(std::fs::File::open("/dev/null"));
        });
    }
}
