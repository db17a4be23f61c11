//! The application's side: polling and arming.

use super::{Alerts, Tag};
use crate::health::State;
use crate::ring;
use crate::sync::{self, Site};
use crate::transport::{Arm, ArmError, Armed, CqKey, Notify, Poll, PollError};
use crate::wc::Wc;

/// The application's side: [`Poll`] and [`Arm`].
#[derive(Debug)]
pub struct Consumer<'a> {
    pub(super) ring: ring::Consumer<'a>,
    pub(super) alerts: &'a Alerts,
    pub(super) tags: &'a [Tag],
    pub(super) key: CqKey,
    pub(super) events: bool,
    pub(super) promised: u32,
}

impl Consumer<'_> {
    /// [`poll`](Poll::poll), calling `each` with every completion and its tag (0 in a queue without tags)
    /// before its slot is given back.
    ///
    /// # Errors
    /// [`PollError::Overrun`], once everything that was stored has been handed out (O3).
    #[inline]
    pub fn poll_with(
        &mut self,
        out: &mut [Wc],
        mut each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        let tags = self.tags;
        let tag = |slot: usize| tags.get(slot).map_or(0, |place| sync::load_u32(&place.0));
        let mut each = |slot: usize, wc: &Wc| each(wc, tag(slot));
        match self.ring.pop_with(out, &mut each) {
            0 if !out.is_empty() => self.poll_empty(out, each),
            count => Ok(count),
        }
    }

    /// How many completions it was promised to hold (O1).
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.promised
    }

    /// Nothing was there: looks at the latch and, if that is set, once more at the slot, since the last
    /// entries may have been published between the two looks.
    #[inline]
    fn poll_empty(
        &mut self,
        out: &mut [Wc],
        each: impl FnMut(usize, &Wc),
    ) -> Result<usize, PollError> {
        let State::Overrun { dropped } = self.alerts.health.state() else { return Ok(0) };
        let again =
            if sync::intact(Site::LookAfterLatch) { self.ring.pop_with(out, each) } else { 0 };
        match again {
            0 => Err(PollError::Overrun { dropped: Some(dropped) }),
            count => Ok(count),
        }
    }
}

impl Poll for Consumer<'_> {
    #[inline]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        match self.ring.pop(out) {
            0 if !out.is_empty() => self.poll_empty(out, |_, _| ()),
            count => Ok(count),
        }
    }
}

impl Arm for Consumer<'_> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        if !self.events {
            return Err(ArmError::NoChannel);
        }
        self.alerts.arm.arm(on);
        sync::arm_fence();
        if self.ring.is_ready() || self.alerts.health.state() != State::Running {
            return Ok(Armed::MayHaveMissed);
        }
        Ok(Armed::Armed)
    }

    fn key(&self) -> CqKey {
        self.key
    }
}
