//! The strict device: what the ordinary one forgives, as decisions that the other layers ask for at [named
//! points](crate::policy). Each hides a mistake of a program that shows on hardware: see [the
//! manual](crate::manual#strictly).
//!
//! A process that is not strict pays nothing where requests are posted, carried out and polled.

use std::time::Duration;

use cq_verbs::setup::QpType;

use super::faults::Faults;
use crate::memory::transfer::Order;

/// How long a request is deferred at most, where the program requests no other time.
const DEFERRED: Duration = Duration::from_micros(20);

/// Whether the device is strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strict {
    is_strict: bool,
}

impl Strict {
    /// Strict or not.
    pub const fn new(is_strict: bool) -> Self {
        Self { is_strict }
    }

    /// Whether it is.
    pub const fn is_on(self) -> bool {
        self.is_strict
    }

    /// The faults that are injected, for those that were requested: requests are deferred, unless something else is
    /// said about when they begin.
    pub fn faults(self, asked: Option<Faults>) -> Option<Faults> {
        let Self { is_strict } = self;
        match asked {
            Some(faults) if is_strict && !faults.has_delay() => Some(faults.defer(DEFERRED)),
            None if is_strict => Some(Faults::default().defer(DEFERRED)),
            asked => asked,
        }
    }

    /// Whether a completion queue overruns at its capacity, and not only when its memory is used up.
    pub const fn queues_are_exact(self) -> bool {
        self.is_strict
    }

    /// Whether a responder that expects a packet with one number answers a requester whose first one has another.
    pub const fn answers(self, kind: QpType, expected: u32, first: u32) -> bool {
        const NUMBER: u32 = (1 << 24) - 1;
        let is_checked = self.is_strict && matches!(kind, QpType::RC);
        !is_checked || expected & NUMBER == first & NUMBER
    }

    /// The order in which the bytes of a WRITE become visible (Q8).
    pub const fn write_order(self) -> Order {
        if self.is_strict { Order::LastWordFirst } else { Order::LastWordLast }
    }
}
