//! Assertions about a device that works asynchronously, each with a deadline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cq_core::transport::{CqKey, Events, Notify};
use cq_core::wc::{Wc, WcStatus as S};
use cq_verbs::polling::{ArmWc, PollWc};

use crate::device::Device;

/// The default deadline of everything that must happen. Short in unit tests, where what is awaited never happens.
pub const PATIENT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// [`PATIENT`], or the deadline that the runner set for the running case, in milliseconds. The case's threads see it
/// because they are started later.
static PATIENCE: AtomicU64 = AtomicU64::new(PATIENT.as_millis() as u64);

/// How long a case waits for what must happen.
pub fn patience() -> Duration {
    Duration::from_millis(PATIENCE.load(Ordering::Relaxed))
}

/// Sets [`patience`] for the next case.
pub fn set_patience(patience: Duration) {
    PATIENCE.store(patience.as_millis() as u64, Ordering::Relaxed);
}

/// Expects exactly these completions in a completion queue, in this order, all of this queue pair.
#[track_caller]
pub fn expect<D: Device>(device: &D, cq: &mut D::Cq, number: u32, wanted: &[(u64, S)]) -> Vec<Wc> {
    let got = settle(device, cq, wanted.len());
    let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id(), wc.status())).collect();
    assert_eq!(seen, wanted, "completions");
    assert!(got.iter().all(|wc| wc.qp_num() == number), "each names its queue pair: {got:?}");
    got
}

/// Polls until there are `count` completions or the deadline has passed, and once more a moment later.
#[track_caller]
pub fn settle<D: Device>(device: &D, cq: &mut D::Cq, count: usize) -> Vec<Wc> {
    let start = Instant::now();
    let mut all = take(cq);
    while all.len() < count && start.elapsed() < patience() {
        device.pause();
        all.extend(take(cq));
    }
    device.pause();
    all.extend(take(cq));
    all
}

/// Gives a device that works in real time a moment to complete what it has started.
pub fn rest<D: Device>(device: &D) {
    for _ in 0..20 {
        device.pause();
    }
}

/// Polls until the queue is empty.
#[track_caller]
pub fn take(cq: &mut impl PollWc) -> Vec<Wc> {
    let mut all = Vec::new();
    let mut buffer = [Wc::default(); 16];
    loop {
        match cq.poll_into(&mut buffer).expect("the queue works") {
            0 => return all,
            count => all.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Takes `count` events from a channel, and those that arrive a moment later.
pub fn events<D: Device>(device: &D, channel: &mut D::Channel, count: usize) -> Vec<CqKey> {
    let start = Instant::now();
    let mut keys = Vec::new();
    loop {
        let enough = keys.len() >= count || start.elapsed() > patience();
        keys.extend(std::iter::from_fn(|| channel.take_event().expect("the channel works")));
        if enough {
            return keys;
        }
        device.pause();
    }
}

/// Lets the device work until a condition holds.
#[track_caller]
pub fn wait_until<D: Device>(device: &D, what: &str, mut until: impl FnMut() -> bool) {
    wait_for(what, || {
        let so = until();
        if !so {
            device.pause();
        }
        so
    });
}

/// Waits until a condition holds, in a thread without a device.
#[track_caller]
pub fn wait_for(what: &str, mut until: impl FnMut() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < patience(), "never came true: {what}");
    }
}

/// Arms a queue that is empty.
#[track_caller]
pub fn arm(cq: &mut impl ArmWc, on: Notify) {
    let _says_nothing_for_sure = cq.arm(on).expect("it has a channel");
}

/// Pairs each of these requests with a status.
pub fn all(ids: impl IntoIterator<Item = u64>, status: S) -> Vec<(u64, S)> {
    ids.into_iter().map(|id| (id, status)).collect()
}
