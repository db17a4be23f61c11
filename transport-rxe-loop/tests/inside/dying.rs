//! Tests of processes that die while others continue (X3), at a chosen step or at any instant, of processes that are
//! stopped for a while, and of processes that fork.

mod address;
mod commons;
mod descriptors;
pub mod ends;
mod execs;
mod forked;
mod gone;
mod line;
// Steps exist only with debug assertions.
#[cfg(debug_assertions)]
mod atomics;
#[cfg(debug_assertions)]
mod connecting;
#[cfg(debug_assertions)]
mod copying;
#[cfg(debug_assertions)]
mod datagrams;
#[cfg(debug_assertions)]
mod messages;
#[cfg(debug_assertions)]
mod observed;
#[cfg(debug_assertions)]
mod raising;
#[cfg(debug_assertions)]
mod steps;
mod storm;
#[cfg(debug_assertions)]
mod suspended;
#[cfg(debug_assertions)]
mod waking;
mod work;

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

use self::address::Address;
use self::commons::Commons;
use self::ends::{DEPTH, End, Memory, OUTSTANDING};
#[cfg(debug_assertions)]
use self::steps::{die_there, mortal_at, one_or_all};
use self::work::{LINES, Near, poll};
use crate::inside::actor::PATIENCE;
use crate::inside::prelude::*;

/// The result of using a device: while a process is suspended, any operation may give up.
type Outcome<T> = Result<T, Box<dyn Error>>;

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

/// The device of a process that another one started.
fn its_fixture() -> Fixture {
    Fixture::with(open())
}

/// The device in a fabric that this process names for those that it starts.
fn named(name: &str, options: OpenOptions) -> (Fixture, String) {
    let name = format!("{name}-{}", std::process::id());
    (Fixture::with(options.fabric(&name).open("loop0").unwrap()), name)
}

/// Waits until nothing is left of the dead, no lock stays held, and this process has what it had.
#[cfg(debug_assertions)]
fn nothing_is_left(device: &'static Device, estate: Estate) {
    until("nothing is left of it, and this process has what it had", || {
        drop(open());
        let is_left = !audit::ownerless(device).is_empty() || !audit::held(device).is_empty();
        !is_left && Estate::mine(device) == estate
    });
}

/// Runs a test of this module in its own fabric, and expects success; its lines, which have to come from time to
/// time, go to `hear`. If it hangs, it is killed.
fn runs_well(test: &str, environment: &[(&str, &str)], hear: impl Fn(&str)) {
    let fabric = format!("{}-{}", test.replace("::", "-"), std::process::id());
    let environment = [&[(FABRIC, &*fabric)], environment].concat();
    let mut actor = Actor::start(&format!("inside::dying::{test}"), &environment);
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
