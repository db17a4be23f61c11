//! What each transport is asked to do.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use bench::Failure;
use bench::delivery::{DEPTH, Delivery, ROOM, counted};
use bench::transport::Transport;
use cq_core::transport::Notify;
use cq_core::wc::Wc;

/// One thing that every transport is asked to do.
#[derive(Clone, Copy)]
pub enum Workload {
    /// Poll an empty queue.
    EmptyPoll,
    /// Post a SEND and poll until it has completed.
    PostToCompletion,
    /// Arm, post a SEND, sleep until the event, and poll.
    ArmAndWait,
    /// Take so many completions that are there by one poll.
    Batch(usize),
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyPoll => f.pad("empty poll"),
            Self::PostToCompletion => f.pad("post to completion"),
            Self::ArmAndWait => f.pad("arm, post, wait"),
            Self::Batch(size) => write!(f, "batch poll of {size}"),
        }
    }
}

impl Workload {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::EmptyPoll,
        Self::PostToCompletion,
        Self::ArmAndWait,
        Self::Batch(1),
        Self::Batch(2),
        Self::Batch(4),
        Self::Batch(8),
        Self::Batch(16),
        Self::Batch(32),
        Self::Batch(64),
    ];

    /// How long `count` of them take.
    pub fn run<T: Transport>(
        self,
        delivery: &mut Delivery<T>,
        count: u64,
    ) -> Result<Duration, Failure> {
        match self {
            Self::EmptyPoll => empty_polls(delivery, count),
            Self::PostToCompletion => sends(delivery, count, |delivery| {
                delivery.sender.send(false)?;
                delivery.sender.collect(1)
            }),
            Self::ArmAndWait => sends(delivery, count, |delivery| {
                delivery.sender.arm(Notify::Next)?;
                delivery.sender.send(false)?;
                delivery.sender.event()?;
                delivery.sender.collect(1)
            }),
            Self::Batch(size) => batches(delivery, size, count),
        }
    }
}

fn empty_polls<T: Transport>(delivery: &mut Delivery<T>, count: u64) -> Result<Duration, Failure> {
    let queue = &mut delivery.sender.queue;
    let mut room = [Wc::default(); ROOM];
    let start = Instant::now();
    for _ in 0..count {
        counted(black_box(queue.poll(black_box(&mut room))?).len(), 0)?;
    }
    Ok(start.elapsed())
}

/// Each sends one message, that is received meanwhile. What the receiver has to do is not measured.
fn sends<T: Transport>(
    delivery: &mut Delivery<T>,
    count: u64,
    mut once: impl FnMut(&mut Delivery<T>) -> Result<(), Failure>,
) -> Result<Duration, Failure> {
    let (mut left, mut elapsed) = (count, Duration::ZERO);
    while left > 0 {
        let some = left.min(DEPTH.into()) as u32;
        delivery.receiver.receive(some)?;
        let start = Instant::now();
        for _ in 0..some {
            once(delivery)?;
        }
        elapsed += start.elapsed();
        delivery.receiver.collect(some)?;
        left -= u64::from(some);
    }
    Ok(elapsed)
}

/// How the completions come there is not measured.
fn batches<T: Transport>(
    delivery: &mut Delivery<T>,
    size: usize,
    count: u64,
) -> Result<Duration, Failure> {
    let at_once = DEPTH as usize / size;
    let (mut left, mut elapsed) = (count, Duration::ZERO);
    while left > 0 {
        let some = left.min(at_once as u64);
        delivery.fill(some as u32 * size as u32)?;
        let start = Instant::now();
        for _ in 0..some {
            delivery.receiver.take(size)?;
        }
        elapsed += start.elapsed();
        left -= some;
    }
    Ok(elapsed)
}
