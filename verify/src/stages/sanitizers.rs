//! The compiler's sanitizers: code that tells on each access whether that is allowed.
//!
//! | module | owns |
//! |---|---|
//! | `thread` | ThreadSanitizer, on the tests of the engine and of the device |
//! | `address` | AddressSanitizer and LeakSanitizer, on the C ABI |

use std::process::Command;

use super::toolchain;
use crate::run::{self, Job, Stop};

mod address;
mod thread;

/// Runs them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    toolchain::nightly(job)?;
    Ok(format!("{}; {}", thread::run(job)?, address::run(job)?))
}

/// The cargo that builds with a sanitizer. With a target, so that what runs at build time has none.
fn cargo(sanitizer: &str, subcommand: &str) -> Command {
    let mut cargo = toolchain::cargo(toolchain::NIGHTLY);
    cargo.args([subcommand, "--locked", "--target", &toolchain::host()]);
    run::with_flags(cargo, &format!("-Zsanitizer={sanitizer}"), &format!("{sanitizer}-sanitizer"))
}
