//! When to leave: on Ctrl-C, on SIGTERM, and when the other end has failed or left.

use std::mem;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::INTERRUPTED;

/// What the ends look at while they wait. Both flags are only ever set, and nothing is published by them.
#[derive(Debug, Default)]
pub struct Stop {
    leave: AtomicBool,
    interrupted: AtomicBool,
}

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
            handlers.interrupt();
        })?;
        Ok(stop)
    }

    /// Asks the ends to leave.
    pub fn leave(&self) {
        self.leave.store(true, Ordering::Relaxed);
    }

    /// Asks the ends to leave, because the user wants it.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Relaxed);
        self.leave();
    }

    /// Whether to leave.
    #[inline]
    pub fn asked(&self) -> bool {
        self.leave.load(Ordering::Relaxed)
    }

    /// Whether the user wants it.
    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
