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

/// How many tags are kept between copying and handing out.
const CHUNK: usize = 32;

impl Consumer<'_> {
    /// [`poll`](Poll::poll), calling `each` with every completion and its tag (0 in a queue without
    /// tags). The slots have been given back by then, so `each` may let the device push as many more (O7).
    ///
    /// # Errors
    /// [`PollError::Overrun`], once everything that was stored has been handed out (O3).
    #[inline]
    pub fn poll_with(
        &mut self,
        out: &mut [Wc],
        mut each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        self.poll_by(out, |consumer, out| consumer.take_tagged(out, &mut each))
    }

    /// How many completions it was promised to hold (O1).
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.promised
    }

    /// Polls by `take`. If nothing is there, looks at the latch and, if that is set, takes once more, since
    /// the last entries may have been published between the two looks.
    #[inline]
    fn poll_by(
        &mut self,
        out: &mut [Wc],
        mut take: impl FnMut(&mut Self, &mut [Wc]) -> usize,
    ) -> Result<usize, PollError> {
        let count = take(self, out);
        if count > 0 || out.is_empty() {
            return Ok(count);
        }
        let State::Overrun { dropped } = self.alerts.health.state() else { return Ok(0) };
        match if sync::intact(Site::LookAfterLatch) { take(self, out) } else { 0 } {
            0 => Err(PollError::Overrun { dropped: Some(dropped) }),
            count => Ok(count),
        }
    }

    #[inline]
    fn take_tagged(&mut self, out: &mut [Wc], each: &mut impl FnMut(&Wc, u32)) -> usize {
        let mut count = 0;
        for room in out.chunks_mut(CHUNK) {
            if !self.ring.is_ready() {
                break;
            }
            count += self.take_chunk(room, each);
        }
        count
    }

    #[inline]
    fn take_chunk(&mut self, room: &mut [Wc], each: &mut impl FnMut(&Wc, u32)) -> usize {
        let (mut tags, words) = ([0; CHUNK], self.tags);
        let count = self.ring.copy(room, |nth, slot| {
            tags[nth] = words.get(slot).map_or(0, |tag| sync::load_u32(&tag.0));
        });
        if sync::intact(Site::ReleaseFirst) {
            self.ring.release();
        }
        room[..count].iter().zip(tags).for_each(|(wc, tag)| each(wc, tag));
        if !sync::intact(Site::ReleaseFirst) {
            self.ring.release();
        }
        count
    }
}

impl Poll for Consumer<'_> {
    #[inline]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.poll_by(out, |consumer, out| consumer.ring.pop(out))
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
