//! Victims in processes of their own: each starts with nothing, may die, and takes its threads and memory with it. What it
//! covers counts as if it had run in the fuzzer's process.

use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use libc::{c_char, itimerval, timeval};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};

/// A victim that runs.
#[must_use]
pub struct Victim(Pid);

impl Victim {
    /// Starts a victim.
    pub fn start(live: impl FnOnce()) -> Self {
        let counts = counts();
        // SAFETY: the child has this thread alone, and uses nothing that another may have locked: the fuzzer's other thread
        // only looks at how much memory is in use. So AddressSanitizer's handlers of forks are not needed, which touch
        // megabytes.
        match unsafe { _Fork() } {
            0 => {
                begin();
                live();
                counts.leave();
                // SAFETY: always sound.
                unsafe { libc::_exit(0) }
            }
            pid => Self(Pid::from_raw(pid).expect("a process can be started")),
        }
    }

    /// Starts a victim that stops once it has done this, and waits until then. It ends with this process.
    pub fn start_and_stop(live: impl FnOnce()) {
        let it = Self::start(|| {
            live();
            // SAFETY: always sound.
            unsafe { libc::raise(libc::SIGSTOP) };
        });
        let stopped = waitpid(Some(it.0), WaitOptions::UNTRACED);
        assert!(stopped.is_ok_and(|it| it.is_some_and(|(_, it)| it.stopped())));
    }

    /// Waits for its end. If it crashed, it has said how and kept the input, and so this process ends, too.
    ///
    /// # Panics
    /// Somebody killed it.
    pub fn wait(self) {
        let status = loop {
            match waitpid(Some(self.0), WaitOptions::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                ended => break ended.expect("it is a child").expect("it was waited for").1,
            }
        };
        match status.exit_status() {
            Some(0) => {}
            // SAFETY: always sound.
            Some(failed) => unsafe { libc::_exit(failed) },
            None => panic!("the victim died: {status:?}"),
        }
        counts().take();
    }
}

/// Runs a victim to its end.
pub fn run(live: impl FnOnce()) {
    Victim::start(live).wait();
}

/// Options of AddressSanitizer: each page that it writes is copied for each victim. So no stacks of allocations, and no frames
/// kept of functions that have returned, which safe code does not use.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const c_char {
    c"malloc_context_size=0:detect_stack_use_after_return=0".as_ptr()
}

/// The victim ends with its parent. One that hangs says where: the fuzzer's handler knows when this input is too slow.
fn begin() {
    set_parent_process_death_signal(Some(Signal::KILL)).expect("the system has it");
    let second = timeval { tv_sec: 1, tv_usec: 0 };
    let timer = itimerval { it_interval: second, it_value: second };
    // SAFETY: the timer is valid, and nobody wants the old one.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
    counts().own.iter().for_each(|count| count.store(0, Relaxed));
}

/// How often each piece of code was run, eight counters to a word. A few at either end are left out.
struct Counts {
    own: &'static [AtomicU64],
    /// What victims leave to their parents.
    left: &'static [AtomicU64],
}

unsafe extern "C" {
    /// `fork` without the handlers of `pthread_atfork`.
    fn _Fork() -> libc::pid_t;
    #[link_name = "__start___sancov_cntrs"]
    static FIRST: AtomicU8;
    #[link_name = "__stop___sancov_cntrs"]
    static END: AtomicU8;
}

fn counts() -> &'static Counts {
    static COUNTS: OnceLock<Counts> = OnceLock::new();
    COUNTS.get_or_init(|| {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the linker places both around the counters, which are bytes and in use for as long as the program runs; any
        // bytes are words. The new memory is zeros, aligned, nobody else's, and never unmapped.
        unsafe {
            let (first, end) = (&raw const FIRST, &raw const END);
            let counters = slice::from_raw_parts(first, end.offset_from_unsigned(first));
            let own = counters.align_to::<AtomicU64>().1;
            let shared = mmap_anonymous(std::ptr::null_mut(), size_of_val(own), access, flags);
            let shared = shared.expect("there is memory").cast();
            Counts { own, left: slice::from_raw_parts(shared, own.len()) }
        }
    })
}

impl Counts {
    fn leave(&self) {
        add(self.own, self.left);
    }

    fn take(&self) {
        add(self.left, self.own);
    }
}

/// Moves counts.
fn add(from: &[AtomicU64], to: &[AtomicU64]) {
    for (from, to) in from.iter().zip(to) {
        let counts = from.load(Relaxed);
        if counts != 0 {
            from.store(0, Relaxed);
            let mut sums = to.load(Relaxed).to_ne_bytes();
            let each = sums.iter_mut().zip(counts.to_ne_bytes());
            each.for_each(|(sum, count)| *sum = sum.saturating_add(count));
            to.store(u64::from_ne_bytes(sums), Relaxed);
        }
    }
}
