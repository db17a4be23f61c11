//! The application's side: polling and arming.

use super::{Alerts, Tags};
use crate::health::State;
use crate::ring::{self, Position};
use crate::sync::{self, Site};
use crate::transport::{Arm, ArmError, Armed, CqKey, Notify, Poll, PollError};
use crate::wc::Wc;

/// The application's side: [`Poll`] and [`Arm`].
#[derive(Debug)]
pub struct Consumer<'a> {
    pub(super) ring: ring::Consumer<'a>,
    pub(super) alerts: &'a Alerts,
    pub(super) tags: Tags<'a>,
    pub(super) key: CqKey,
    pub(super) events: bool,
    pub(super) promised: u32,
}

/// What the consumer sees of the queue.
pub(super) enum Look {
    /// The next entry is published.
    Ready,
    /// It is not.
    Empty,
    /// It was not, and then the queue had overrun.
    Overrun { dropped: u32 },
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
        each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        self.poll_for(out, |_| true, each)
    }

    /// [`poll_with`](Self::poll_with) for tags that `matter`; `each` is given 0 for the others. A tag lies in
    /// another cache line than its completion: one that is not looked at stays with the producer's core.
    ///
    /// # Errors
    /// [`PollError::Overrun`], once everything that was stored has been handed out (O3).
    #[inline(always)]
    pub fn poll_for(
        &mut self,
        out: &mut [Wc],
        matter: impl Fn(&Wc) -> bool,
        mut each: impl FnMut(&Wc, u32),
    ) -> Result<usize, PollError> {
        match self.look() {
            Look::Empty => Ok(0),
            Look::Ready => Ok(self.take_tagged(out, &matter, &mut each)),
            Look::Overrun { dropped } => self
                .last_entries(dropped, out, |this, out| this.take_tagged(out, &matter, &mut each)),
        }
    }

    /// How many completions were polled.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.ring.position()
    }

    /// How many completions it was promised to hold (O1).
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.promised
    }

    #[inline(always)]
    pub(super) fn look(&self) -> Look {
        if self.ring.is_ready() {
            return Look::Ready;
        }
        match self.alerts.health.state() {
            State::Running => Look::Empty,
            State::Overrun { dropped } => Look::Overrun { dropped },
        }
    }

    /// Once the latch is seen, takes what there is: the last entries may have been published after the
    /// look at the slot.
    #[cold]
    fn last_entries(
        &mut self,
        dropped: u32,
        out: &mut [Wc],
        take: impl FnOnce(&mut Self, &mut [Wc]) -> usize,
    ) -> Result<usize, PollError> {
        let asked = out.len();
        match if sync::intact(Site::LookAfterLatch) { take(self, out) } else { 0 } {
            0 if asked > 0 => Err(PollError::Overrun { dropped: Some(dropped) }),
            count => Ok(count),
        }
    }

    pub(super) fn take_tagged(
        &mut self,
        out: &mut [Wc],
        matter: &impl Fn(&Wc) -> bool,
        each: &mut impl FnMut(&Wc, u32),
    ) -> usize {
        // Most ask for one: known to be that, it needs neither loop nor array.
        if let [_] = out {
            return self.take_chunk::<1>(out, matter, each);
        }
        let mut count = 0;
        for room in out.chunks_mut(CHUNK) {
            let taken = self.take_chunk::<CHUNK>(room, matter, each);
            count += taken;
            // More may have come by now: that is the next poll's, or there would be a gap.
            if taken < room.len() {
                break;
            }
        }
        count
    }

    /// For room for `MOST` at most.
    #[inline]
    fn take_chunk<const MOST: usize>(
        &mut self,
        room: &mut [Wc],
        matter: &impl Fn(&Wc) -> bool,
        each: &mut impl FnMut(&Wc, u32),
    ) -> usize {
        let (mut tags, kept) = ([0; MOST], self.tags);
        let count = self.ring.copy(room, |nth, slot, wc| {
            if matter(wc) {
                tags[nth] = kept.load(slot);
            }
        });
        if sync::intact(Site::ReleaseFirst) {
            self.ring.release();
        }
        room[..count].iter().zip(&tags).for_each(|(wc, &tag)| each(wc, tag));
        if !sync::intact(Site::ReleaseFirst) {
            self.ring.release();
        }
        count
    }
}

impl Poll for Consumer<'_> {
    // Out of line, an empty poll takes three times as long.
    #[inline(always)]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        match self.look() {
            Look::Empty => Ok(0),
            Look::Ready => Ok(self.ring.take(out)),
            Look::Overrun { dropped } => {
                self.last_entries(dropped, out, |this, out| this.ring.take(out))
            }
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
        Ok(match self.look() {
            Look::Empty => Armed::Armed,
            Look::Ready | Look::Overrun { .. } => Armed::MayHaveMissed,
        })
    }

    fn key(&self) -> CqKey {
        self.key
    }
}
