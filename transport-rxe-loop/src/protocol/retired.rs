//! Values that one thread replaces while others use them without a lock: what was replaced is kept until no copy can
//! use it any more.
//!
//! A thread looks a value up while an [in-flight marker](super::in_flight) of its process is set. A value that was
//! replaced is free once each marker that was set at that time has been cleared since: a copy that begins later finds the
//! new value.
//!
//! ```
//! use transport_rxe_loop::protocol::in_flight::InFlight;
//! use transport_rxe_loop::protocol::retired::Retired;
//!
//! let (markers, mut retired) = ([InFlight::default(), InFlight::default()], Retired::new());
//! markers[0].open();
//! retired.add("in use by a copy");
//! assert!(retired.free(&markers, |_| unreachable!())); // it is left for the next time
//! markers[0].close();
//! markers[1].open();
//! let mut freed = None;
//! assert!(!retired.free(&markers, |value| freed = Some(value)));
//! assert_eq!(freed, Some("in use by a copy"));
//! ```

use std::mem;

use super::in_flight::{ChangeFence, Marker, Seen};

/// A marker that is set: its number, and which copy it is set for.
type Open = (usize, Seen);

/// Values that were replaced and may still be in use. One thread has them at a time.
#[derive(Debug)]
pub struct Retired<T>(Vec<(T, Option<Vec<Open>>)>);

impl<T> Retired<T> {
    /// No values.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

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
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
