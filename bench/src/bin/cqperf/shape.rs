//! How deep the queues of a stream are, and how much of them is used at a time.

use bench::transport::Limits;
use serde::Serialize;

/// Credit messages that can be under way: one for each half of the receives.
pub const CREDITS: u32 = 2;

/// How messages are streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// How many sends are posted, and how many completions polled, at a time.
    pub batch: u32,
    /// How far apart signaled sends are.
    pub signal_every: u32,
    /// Messages at either end, each with its request: a multiple of two batches, and enough for a batch to
    /// be posted while the sends before it wait for the signaled one that covers them.
    #[serde(rename = "queue_depth")]
    pub depth: u32,
}

/// Messages under way, so that neither end waits for the other after each batch. Fewer if they are long, since
/// they should stay in the caches.
const UNDER_WAY: u64 = 128;
const CACHED: u64 = 1 << 20;

impl Shape {
    /// One after the other.
    pub const ONE: Self = Self { batch: 1, signal_every: 1, depth: 1 };

    /// Sizes the queues.
    pub fn new(size: u32, batch: u32, signal_every: u32, limits: &Limits) -> Result<Self, TooDeep> {
        let two_batches = 2 * u64::from(batch);
        let wanted = UNDER_WAY.min(CACHED / u64::from(size));
        let needed =
            wanted.max(u64::from(batch) + u64::from(signal_every)).next_multiple_of(two_batches);
        match u32::try_from(needed) {
            Ok(depth) if depth <= limits.requests => Ok(Self { batch, signal_every, depth }),
            _ => Err(TooDeep { batch, signal_every, needed, most: limits.requests }),
        }
    }

    /// How many messages a credit message allows.
    pub const fn credit(&self) -> u64 {
        (self.depth / CREDITS) as u64
    }
}

/// The device's queues are too short.
#[derive(Debug, thiserror::Error)]
#[error(
    "--batch {batch} with --signal-every {signal_every} needs queues of {needed} requests: \
     the device's have at most {most}"
)]
pub struct TooDeep {
    batch: u32,
    signal_every: u32,
    needed: u64,
    most: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { message: 1 << 20, requests: 4096, atomics: true };

    #[test]
    fn the_depth_is_whole_batches_for_each_credit() {
        for (batch, signal_every) in [(1, 1), (1, 100), (32, 32), (33, 7), (1024, 1), (7, 900)] {
            for size in [1, 64, 1 << 16, 1 << 20, u32::MAX] {
                let shape = Shape::new(size, batch, signal_every, &LIMITS).unwrap();
                assert_eq!(shape.depth % (CREDITS * batch), 0, "{shape:?}");
                assert!(shape.depth >= batch + signal_every, "{shape:?}");
            }
        }
    }

    #[test]
    fn long_messages_are_fewer() {
        let depth = |size| Shape::new(size, 1, 1, &LIMITS).unwrap().depth;
        assert_eq!([64, 1 << 14, 1 << 30].map(depth), [128, 64, 2]);
    }

    #[test]
    fn what_is_too_deep_for_the_device_is_refused_without_overflow() {
        for (batch, signal_every) in [(2049, 1), (1, 4096), (u32::MAX, u32::MAX), (1, u32::MAX)] {
            let error = Shape::new(64, batch, signal_every, &LIMITS).unwrap_err().to_string();
            assert!(error.contains("at most 4096"), "{error}");
        }
    }
}
