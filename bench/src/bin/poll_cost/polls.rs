//! What is counted: the same loop around a poll, in C and in Rust. Each has a symbol of its own, by which
//! callgrind tells them apart.

use std::ffi::c_void;
use std::hint::black_box;

use cq_core::cq::CompletionQueue;
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;
use transport_verbs::Cq;

#[link(name = "bench_bare_polls", kind = "static")]
unsafe extern "C" {
    fn poll_cost_bare(cq: *mut c_void, buffer: *mut Wc, times: u64) -> i64;
}

/// A way to poll one completion.
#[derive(Clone, Copy)]
pub struct Way {
    /// What it is called.
    pub name: &'static str,
    /// Its symbol.
    pub symbol: &'static str,
    /// Polls so many times; says how many completions came.
    pub poll: fn(&mut CompletionQueue<Cq>, u64) -> i64,
}

/// The bare call, by which the others are measured.
pub const BARE: Way = Way { name: "ibv_poll_cq in C", symbol: "poll_cost_bare", poll: bare };

/// Those through transport-verbs.
pub const OURS: [Way; 3] = [
    Way { name: "Cq::poll", symbol: "poll_cost_handle", poll: poll_cost_handle },
    Way {
        name: "Cq::poll into a slice of any length",
        symbol: "poll_cost_slice",
        poll: poll_cost_slice,
    },
    Way { name: "CompletionQueue::poll", symbol: "poll_cost_engine", poll: poll_cost_engine },
];

fn bare(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    let raw = queue.get_mut().as_raw().cast();
    let mut buffer = Wc::default();
    // SAFETY: the queue is alive, `Wc` is `ibv_wc`, and there is room for one.
    unsafe { poll_cost_bare(raw, &mut buffer, times) }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn poll_cost_handle(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    let (cq, mut buffer) = (queue.get_mut(), [Wc::default()]);
    repeat(times, || cq.poll_into(&mut buffer))
}

#[unsafe(no_mangle)]
#[inline(never)]
fn poll_cost_slice(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    let (cq, mut buffer) = (queue.get_mut(), [Wc::default()]);
    let buffer: &mut [Wc] = black_box(&mut buffer);
    repeat(times, || cq.poll_into(buffer))
}

#[unsafe(no_mangle)]
#[inline(never)]
fn poll_cost_engine(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    let mut buffer = [Wc::default()];
    repeat(times, || Ok(queue.poll(&mut buffer)?.len()))
}

/// As C tells it.
#[inline(always)]
fn repeat(times: u64, mut poll: impl FnMut() -> Result<usize, PollError>) -> i64 {
    let mut got = 0;
    for _ in 0..times {
        match poll() {
            Ok(came) => got += came as i64,
            Err(_) => return -1,
        }
    }
    got
}
