//! Tests of processes that die while others continue (X3), at a chosen step or at any instant, of processes that are
//! stopped for a while, and of processes that fork.

mod address;
mod commons;
mod descriptors;
mod ends;
mod execs;
mod forked;
mod line;
// Steps exist only with debug assertions.
#[cfg(debug_assertions)]
mod atomics;
#[cfg(debug_assertions)]
mod copying;
#[cfg(debug_assertions)]
mod datagrams;
#[cfg(debug_assertions)]
mod messages;
#[cfg(debug_assertions)]
mod raising;
#[cfg(debug_assertions)]
mod steps;
mod storm;
#[cfg(debug_assertions)]
mod suspended;
mod work;

use crate::inside::prelude::*;

/// Names the fabric that a further process of a test opens.
const FABRIC: &str = "DYING_FABRIC";
/// Set if a further process of a test asks others to move bytes, and moves none itself.
const BY_SERVICE: &str = "DYING_BY_SERVICE";
/// The longest time between two lines of a process.
const SILENCE: Duration = Duration::from_secs(240);

/// The fabric of this process, which its parent named.
fn fabric() -> String {
    std::env::var(FABRIC).expect("started by another test")
}

fn open() -> Context {
    let options = OpenOptions::new().fabric(&fabric());
    let options =
        if std::env::var_os(BY_SERVICE).is_some() { options.copying_by_service() } else { options };
    options.open("loop0").unwrap()
}

/// Runs a test of this binary in its own fabric, and expects success; its lines, which have to come from time to
/// time, go to `hear`. If it hangs, it is killed.
fn runs_well(test: &str, environment: &[(&str, &str)], hear: impl Fn(&str)) {
    let mut actor = Actor::start(test, environment);
    let (mut since, mut last) = (Instant::now(), String::from("nothing"));
    while !actor.has_ended() {
        if let Some(news) = actor.heard_within(Duration::from_millis(50)) {
            hear(&news);
            (since, last) = (Instant::now(), news);
        }
        assert!(since.elapsed() < SILENCE, "it hangs; the last that it said: {last}");
    }
    let status = actor.ended();
    assert!(status.success(), "{status}; the last that it said: {last}");
}
