//! What is counted: the same loop around a poll, in C and in Rust. Each has a symbol of its own, by which
//! callgrind tells them apart.

use std::ffi::c_void;

use cq_core::cq::CompletionQueue;
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::Wc;
use transport_verbs::Cq;

#[link(name = "bench_bare_polls", kind = "static")]
unsafe extern "C" {
    fn poll_cost_bare(cq: *mut c_void, room: *mut Wc, times: u64) -> i64;
}

/// A way to poll, with room for one completion.
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
    Way { name: "Cq::poll", symbol: "poll_cost_handle", poll: handle },
    Way { name: "Cq::poll with room of any size", symbol: "poll_cost_slice", poll: slice },
    Way { name: "CompletionQueue::poll", symbol: "poll_cost_engine", poll: engine },
];

fn bare(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    let raw = queue.transport().as_raw().cast();
    let mut room = Wc::default();
    // SAFETY: the queue is alive, `Wc` is `ibv_wc`, and there is room for one.
    unsafe { poll_cost_bare(raw, &mut room, times) }
}

fn handle(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    told(poll_cost_handle(queue.transport(), &mut [Wc::default()], times))
}

fn slice(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    told(poll_cost_slice(queue.transport(), &mut [Wc::default()], times))
}

fn engine(queue: &mut CompletionQueue<Cq>, times: u64) -> i64 {
    told(poll_cost_engine(queue, &mut [Wc::default()], times))
}

/// As C tells it.
fn told(polled: Result<u64, PollError>) -> i64 {
    polled.map_or(-1, |got| got as i64)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn poll_cost_handle(cq: &mut Cq, room: &mut [Wc; 1], times: u64) -> Result<u64, PollError> {
    repeat(times, || cq.poll(room))
}

#[unsafe(no_mangle)]
#[inline(never)]
fn poll_cost_slice(cq: &mut Cq, room: &mut [Wc], times: u64) -> Result<u64, PollError> {
    repeat(times, || cq.poll(room))
}

#[unsafe(no_mangle)]
#[inline(never)]
fn poll_cost_engine(
    queue: &mut CompletionQueue<Cq>,
    room: &mut [Wc; 1],
    times: u64,
) -> Result<u64, PollError> {
    repeat(times, || Ok(queue.poll(room)?.len()))
}

#[inline(always)]
fn repeat(
    times: u64,
    mut poll: impl FnMut() -> Result<usize, PollError>,
) -> Result<u64, PollError> {
    let mut got = 0;
    for _ in 0..times {
        got += poll()? as u64;
    }
    Ok(got)
}
