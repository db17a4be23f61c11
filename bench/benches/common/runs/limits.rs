//! What the machine allows: the least that a queue could do.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::placement::Line;
use bench::turns::Sample;

use super::Setting;

/// One thread looks whether a word has changed: an empty poll that is a load and a comparison.
pub fn one_load(_: Setting, count: u64) -> Sample {
    let (word, empty) = black_box((AtomicU64::new(0), 0));
    Sample::alone(count, || {
        for _ in 0..count {
            assert_eq!(black_box(&word).load(Ordering::Acquire), empty);
        }
    })
}

/// One thread writes to a cache line, another answers in a second one: a round trip that moves nothing else.
pub fn two_lines(setting: Setting, count: u64) -> Sample {
    let (there, back) = (Line::default(), Line::default());
    let ping = || {
        for trip in 1..=count {
            there.0.store(trip, Ordering::Release);
            while back.0.load(Ordering::Acquire) != trip {}
        }
    };
    let pong = || {
        for trip in 1..=count {
            while there.0.load(Ordering::Acquire) != trip {}
            back.0.store(trip, Ordering::Release);
        }
    };
    Sample::both(setting.cores, count, ping, pong)
}
