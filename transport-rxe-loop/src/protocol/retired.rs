//! Values that one thread replaces while others use them without a lock: what was replaced is kept until no copy can
//! use it any more.
//!
//! A thread looks a value up while an [in-flight marker](super::in_flight) of its process is set. A value that was
//! replaced is free once each marker that was set at that time has been cleared since: a copy that begins later finds the
//! new value.

use std::mem;

use super::in_flight::{ChangeFence, Marker, Seen};

/// A marker that is set: its number, and which copy it is set for.
type Open = (usize, Seen);

/// Values that were replaced and may still be in use. One thread has them at a time.
#[derive(Debug)]
pub struct Retired<T>(Vec<(T, Option<Vec<Open>>)>);

impl<T> Retired<T> {
    /// Keeps a value that was replaced.
    pub fn add(&mut self, value: T) {
        self.0.push((value, None));
    }

    /// Passes each value that no copy uses any more to `free`; true if some are left for the next call. The markers are
    /// all those that are set while values are looked up, the same in each call.
    pub fn free(&mut self, markers: &[impl Marker], mut free: impl FnMut(T)) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let fence = ChangeFence::after_change();
        let now: Vec<Open> = markers
            .iter()
            .enumerate()
            .filter_map(|(number, marker)| Some((number, fence.seen(marker)?)))
            .collect();
        for (value, before) in mem::take(&mut self.0) {
            let mut open = before.unwrap_or_else(|| now.clone());
            open.retain(|copy| now.contains(copy));
            if open.is_empty() {
                free(value);
            } else {
                self.0.push((value, Some(open)));
            }
        }
        !self.0.is_empty()
    }
}

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
