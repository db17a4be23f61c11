//! The cost of a poll (P5).

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use allocation_counter::measure;
use cq_core::transport::PollError;
use cq_verbs::polling::PollWc;
use rustix::thread::{SecureComputingMode, gettid, set_secure_computing_mode};

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/costs.rs"));

/// The number of completions to poll.
const COUNT: u64 = 12;

/// An end with more than one batch of completions.
fn polled_out(cq: &mut impl PollWc) -> u64 {
    let (mut buffer, mut count) = ([Wc::default(); 5], 0);
    // The last ones find it empty.
    for _ in 0..COUNT {
        count += cq.poll_into(&mut buffer).map_or(0, |polled| polled as u64);
    }
    count
}

/// Polls in a thread that is killed if it makes a system call. Returns the number of completions (`None` if it was
/// killed) and the queue, unless it was lost with the thread.
fn without_system_calls<T: PollWc + Send + 'static>(cq: T) -> (Option<u64>, Option<T>) {
    let queue = Arc::new(Mutex::new(Some(cq)));
    let (theirs, over) = (queue.clone(), Arc::new(AtomicBool::new(false)));
    let (ended, (tell, told)) = (over.clone(), mpsc::channel());
    let count = Arc::new(Mutex::new(0));
    let counted = count.clone();
    let _dies = thread::spawn(move || {
        let (mut cq, mut count) = (theirs.lock().unwrap(), counted.lock().unwrap());
        tell.send(gettid().as_raw_pid()).expect("it is waited for");
        set_secure_computing_mode(SecureComputingMode::Strict).expect("seccomp is there");
        *count = polled_out(cq.as_mut().expect("it was put there"));
        drop((cq, count));
        ended.store(true, Ordering::Release);
        // Exiting normally takes system calls, so the thread is killed here; it holds nothing.
        thread::yield_now();
    });
    let thread = format!("/proc/self/task/{}", told.recv().expect("it starts"));
    wait_for("the thread is gone", || {
        thread::yield_now();
        !fs::exists(&thread).expect("threads can be looked for")
    });
    if !over.load(Ordering::Acquire) {
        return (None, None);
    }
    (Some(*count.lock().unwrap()), queue.lock().unwrap().take())
}

/// A transport whose poll makes a system call.
struct Calling<T>(T);

impl<T: PollWc> PollCq for Calling<T> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        thread::yield_now();
        self.0.poll_into(out)
    }
}

/// A transport whose poll makes none.
struct Copying<'a, T>(&'a mut T);

impl<T: PollWc> PollCq for Copying<'_, T> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let mut buffer = vec![Wc::default(); out.len()];
        let count = self.0.poll_into(&mut buffer)?;
        out[..count].copy_from_slice(&buffer[..count]);
        Ok(count)
    }
}

fn p05_polling_makes_no_system_call<D: Device>() {
    let (mut a, b) = pair::<D>();
    complete(&mut a, &b, 0..COUNT);
    let End { sent, qp: _qp, mr: _mr, .. } = a;
    let (polled, cq) = without_system_calls(sent);
    assert_eq!(polled, Some(COUNT), "all were polled, without a system call");
    // The negative control: a system call is detected.
    let (polled, _) = without_system_calls(Calling(cq.expect("it came back")));
    assert_eq!(polled, None, "a system call was not seen");
}

fn p05_polling_allocates_nothing<D: Device>() {
    let (mut a, b) = pair::<D>();
    complete(&mut a, &b, 0..COUNT);
    let mut polled = 0;
    let seen = measure(|| polled = polled_out(&mut a.sent));
    assert_eq!((polled, seen.count_total), (COUNT, 0), "completions, allocations");
    let seen = measure(|| polled = polled_out(&mut Copying(&mut a.sent)));
    assert_eq!((polled, seen.count_total), (0, COUNT), "the control: allocations are seen");
}
