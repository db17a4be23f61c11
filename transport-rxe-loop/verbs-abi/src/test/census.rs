//! What a process has: for tests that are alone in theirs.

use crate::rdmacm::id::{BY_KEY, IDS};
use crate::rdmacm::objects::{CHANNELS, EVENTS};
use crate::test::*;
use crate::{channel, cq, qp};

/// How many there are of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    pub descriptors: usize,
    pub ids: usize,
    pub keys: usize,
    pub channels: usize,
    pub events: usize,
    pub pairs: usize,
    pub queues: usize,
    pub completion_channels: usize,
}

impl Census {
    /// What there is.
    pub fn take() -> Self {
        Self {
            descriptors: std::fs::read_dir("/proc/thread-self/fd").unwrap().count(),
            ids: IDS.used(),
            keys: BY_KEY.get().lock().len(),
            channels: CHANNELS.used(),
            events: EVENTS.used(),
            pairs: qp::PAIRS.used(),
            queues: cq::QUEUES.used(),
            completion_channels: channel::CHANNELS.used(),
        }
    }
}

/// The process ends if this takes long: a thread that is never woken leaves no other way to fail.
pub fn or_end() {
    const SECONDS: c_uint = 60;
    // SAFETY: a number.
    unsafe { libc::alarm(SECONDS) };
}

/// Runs an ignored test of this binary in a process of its own, where it passes.
#[track_caller]
pub fn in_its_own_process(test: &str) {
    let run = alone(test, &[]);
    let said = [run.stdout, run.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(run.status.success(), "{} {said:#?}", run.status);
}
