//! When to leave: on Ctrl-C, on SIGTERM, and when the other end has failed.

use std::mem;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of an interrupted run, as a shell has it for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// What both ends look at while they wait. Only ever set, and nothing is published by it.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// One that signals set; at the second signal the process ends at once.
    pub fn on_signals() -> Result<Arc<Self>, ctrlc::Error> {
        let stop = Arc::new(Self::default());
        let handlers = Arc::clone(&stop);
        let mut again = false;
        ctrlc::set_handler(move || {
            if mem::replace(&mut again, true) {
                process::exit(INTERRUPTED.into());
            }
            handlers.leave();
        })?;
        Ok(stop)
    }

    /// Asks both ends to leave.
    pub fn leave(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to leave.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
