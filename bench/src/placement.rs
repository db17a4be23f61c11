//! How far the two cores are from each other. A hypervisor may move them at any time without notice, by a
//! factor of five in what a cache line costs, so each sample of two threads is taken between two probes.

use std::fmt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cores::Cores;

/// How long a probe takes.
const PROBE: Duration = Duration::from_millis(1);

/// Round trips between two looks at the clock.
const TRIPS: u64 = 128;

/// Below this a round trip of a cache line is near.
const NEAR: Duration = Duration::from_nanos(250);

/// Where a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On one core.
    OneCore,
    /// On two cores, close together.
    Near,
    /// On two cores, far apart.
    Far,
    /// On two cores that were moved meanwhile: the sample is of no use.
    Moved,
}

impl Placement {
    /// Those of which samples are of use.
    pub const ALL: [Self; 3] = [Self::OneCore, Self::Near, Self::Far];

    fn of(before: Duration, after: Duration) -> Self {
        match (before < NEAR, after < NEAR) {
            (true, true) => Self::Near,
            (false, false) => Self::Far,
            _ => Self::Moved,
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OneCore => "one core",
            Self::Near => "near",
            Self::Far => "far",
            Self::Moved => "moved",
        })
    }
}

/// Runs `home` here and `away` on the other core, at once, between two probes. Gives what they return.
///
/// A panic of either aborts the program.
pub fn on_two_cores<H, A: Send>(
    cores: Cores,
    home: impl FnOnce() -> H,
    away: impl FnOnce() -> A + Send,
) -> (H, A, Placement) {
    let (before, after) = (Line::default(), Line::default());
    // Whoever has this core to itself would keep the other thread from getting to its own.
    let settled = Barrier::new(2);
    thread::scope(|scope| {
        let _guard = AbortOnPanic;
        let other = scope.spawn(|| {
            let _guard = AbortOnPanic;
            cores.settle(1);
            settled.wait();
            before.echo();
            let result = away();
            after.echo();
            result
        });
        settled.wait();
        let first = before.round_trip();
        let ours = home();
        let second = after.round_trip();
        let theirs = other.join().expect("a panic would have aborted");
        (ours, theirs, Placement::of(first, second))
    })
}

/// One cache line, and its neighbour, which some processors fetch along.
#[derive(Default)]
#[repr(align(128))]
pub struct Line(pub AtomicU64);

impl Line {
    /// Ends the echo; every other odd number is sent back increased.
    const STOP: u64 = u64::MAX;

    fn echo(&self) {
        loop {
            match self.0.load(Ordering::Acquire) {
                Self::STOP => return,
                ping if ping % 2 == 1 => self.0.store(ping + 1, Ordering::Release),
                _ => {}
            }
        }
    }

    /// The median round trip, so that neither the wait for the echo to begin nor an interrupt counts.
    fn round_trip(&self) -> Duration {
        let end = Instant::now() + PROBE;
        let (mut groups, mut pings) = (Vec::new(), (1..).step_by(2));
        while groups.len() < 3 || Instant::now() < end {
            let start = Instant::now();
            for ping in pings.by_ref().take(TRIPS as usize) {
                self.0.store(ping, Ordering::Release);
                while self.0.load(Ordering::Acquire) == ping {}
            }
            groups.push(start.elapsed());
        }
        self.0.store(Self::STOP, Ordering::Release);
        groups.sort_unstable();
        groups[groups.len() / 2] / TRIPS as u32
    }
}

/// A thread that panicked would leave the other one spinning for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}
