//! The calls that are counted, by either API. Those of the Rust API are functions here, so that each has a symbol by
//! which callgrind knows it; those of the C ABI have one in its library.

use std::slice;

use bench::transport::Transport;
use bench::transport::loopback::Loopback;
use bench::transport::verbs::Verbs;
use cq_core::transport::{PollCq, PollError, Post, PostError};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};

/// How a transport is called.
pub struct Calls<T: Transport> {
    /// Posts a send.
    pub post_send: fn(&mut T::Pair, &SendWr<'_>) -> Result<(), PostError>,
    /// Posts a receive.
    pub post_recv: fn(&mut T::Pair, &RecvWr<'_>) -> Result<(), PostError>,
    /// Polls.
    pub poll: fn(&mut T::Queue, &mut [Wc]) -> Result<usize, PollError>,
    /// What callgrind knows them by, in this order.
    pub symbols: [&'static str; 3],
}

/// By the Rust API.
pub const RUST: Calls<Loopback> = Calls {
    post_send: abi_cost_post_send,
    post_recv: abi_cost_post_recv,
    poll: abi_cost_poll,
    symbols: ["abi_cost_post_send", "abi_cost_post_recv", "abi_cost_poll"],
};

/// By the C ABI, which transport-verbs calls.
pub const C: Calls<Verbs> = Calls {
    post_send: |pair, wr| pair.post_send(slice::from_ref(wr)),
    post_recv: |pair, wr| pair.post_recv(slice::from_ref(wr)),
    poll: PollCq::poll,
    symbols: [
        "rxe_loop_verbs::exports::tables::ibv_post_send",
        "rxe_loop_verbs::exports::tables::ibv_post_recv",
        "rxe_loop_verbs::exports::tables::ibv_poll_cq",
    ],
};

#[unsafe(no_mangle)]
#[inline(never)]
fn abi_cost_post_send(
    pair: &mut <Loopback as Transport>::Pair,
    wr: &SendWr<'_>,
) -> Result<(), PostError> {
    pair.post_send(slice::from_ref(wr))
}

#[unsafe(no_mangle)]
#[inline(never)]
fn abi_cost_post_recv(
    pair: &mut <Loopback as Transport>::Pair,
    wr: &RecvWr<'_>,
) -> Result<(), PostError> {
    pair.post_recv(slice::from_ref(wr))
}

#[unsafe(no_mangle)]
#[inline(never)]
fn abi_cost_poll(
    queue: &mut <Loopback as Transport>::Queue,
    room: &mut [Wc],
) -> Result<usize, PollError> {
    queue.poll(room)
}
