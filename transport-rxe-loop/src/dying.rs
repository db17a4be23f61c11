//! Processes that die while others go on (X3): at a chosen step, at any instant, or for a while.

mod ends;
mod line;
mod steps;
mod storm;
mod work;

use crate::device::Context;
use crate::open::OpenOptions;

/// Names the fabric that a further process of a test is to open.
const FABRIC: &str = "DYING_FABRIC";

/// Opens the fabric of this process, which its parent named.
fn open() -> Context {
    let name = std::env::var(FABRIC).expect("started by another test");
    OpenOptions::new().fabric(&name).open("loop0").unwrap()
}
