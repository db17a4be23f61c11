//! One end at work: it posts, finds what completed, asleep or awake, and notices when nothing does.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use bench::transport::{End, Transport};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::wc::{Completed, Wc};

use crate::control::{Control, Failure};
use crate::payload::{Layout, Slots};
use crate::stats::{Counted, Tally};

/// One end at work. Each request carries the number of its message as `wr_id`.
pub struct Side<'a, T: Transport> {
    /// Where requests are posted.
    pub pair: T::Pair,
    /// Where messages lie.
    pub slots: Slots<T::Memory>,
    /// Where requests complete.
    pub completions: Completions<'a, T>,
}

impl<'a, T: Transport> Side<'a, T> {
    /// Puts an end to work: with messages that lie so, polling up to `batch` completions.
    pub fn new(end: End<T>, layout: Layout, batch: u32, waiting: Waiting<'a>) -> Self {
        let End { queue, channel, pair, memory } = end;
        let completions = Completions {
            queue: CompletionQueue::new(Counted::new(queue)),
            channel,
            room: vec![Wc::default(); batch as usize].into_boxed_slice(),
            waiting,
        };
        Self { pair, slots: Slots::new(memory, layout), completions }
    }

    /// How often its completion queue was polled.
    pub fn tally(&mut self) -> Tally {
        self.completions.queue.transport().tally()
    }
}

/// How an end waits.
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    /// What the ends share.
    pub control: &'a Control<'a>,
    /// Whether both ends run on one core, so that a spinning one keeps the other from working.
    pub shared_core: bool,
}

impl Waiting<'_> {
    #[inline]
    fn relax(&self) {
        if self.shared_core { thread::yield_now() } else { hint::spin_loop() }
    }
}

/// The completions of one end.
pub struct Completions<'a, T: Transport> {
    queue: CompletionQueue<Counted<T::Queue>>,
    channel: Option<T::Channel>,
    room: Box<[Wc]>,
    waiting: Waiting<'a>,
}

/// How often to poll in vain before looking at the clock.
const POLLS: u32 = 1024;

/// How long to sleep before looking whether to leave.
const SLEEP: Duration = Duration::from_millis(100);

impl<'a, T: Transport> Completions<'a, T> {
    /// The next completions: spins for them, or sleeps where there is a channel. None means: leave.
    #[inline]
    pub fn next(&mut self) -> Result<&[Wc], Failure> {
        if self.waiting.control.leave() {
            return Ok(&[]);
        }
        let count = if self.channel.is_some() { self.sleep()? } else { self.spin()? };
        Ok(&self.room[..count])
    }

    /// Spins until `seen` sees what a peer has written, and gives no completions, or until there are some, of
    /// requests that are `outstanding`. `None` means: leave.
    #[inline]
    pub fn watch(
        &mut self,
        outstanding: bool,
        seen: impl Fn() -> bool,
    ) -> Result<Option<&[Wc]>, Failure> {
        if self.waiting.control.leave() {
            return Ok(None);
        }
        let mut patience = Patience::default();
        loop {
            for _ in 0..POLLS {
                if seen() {
                    return Ok(Some(&[]));
                }
                if outstanding {
                    let count = self.queue.poll(&mut self.room)?.len();
                    if count > 0 {
                        return Ok(Some(&self.room[..count]));
                    }
                }
                self.waiting.relax();
            }
            if self.waiting.control.leave() {
                return Ok(None);
            }
            patience.wear(Instant::now())?;
        }
    }

    /// Sleeps for the next completions, however long it takes. None means: leave.
    pub fn idle(&mut self) -> Result<&[Wc], Failure> {
        if self.channel.is_none() {
            return self.next();
        }
        let mut count = 0;
        while count == 0 && !self.waiting.control.leave() {
            count = self.doze()?;
        }
        Ok(&self.room[..count])
    }

    /// What the ends share.
    pub const fn control(&self) -> &'a Control<'a> {
        self.waiting.control
    }

    #[inline]
    fn spin(&mut self) -> Result<usize, Failure> {
        let mut patience = Patience::default();
        loop {
            for _ in 0..POLLS {
                let count = self.queue.poll(&mut self.room)?.len();
                if count > 0 {
                    return Ok(count);
                }
                self.waiting.relax();
            }
            if self.waiting.control.leave() {
                return Ok(0);
            }
            patience.wear(Instant::now())?;
        }
    }

    fn sleep(&mut self) -> Result<usize, Failure> {
        let mut patience = Patience::default();
        loop {
            let count = self.doze()?;
            if count > 0 || self.waiting.control.leave() {
                return Ok(count);
            }
            patience.wear(Instant::now())?;
        }
    }

    /// Sleeps for completions, a while at most, or until a signal comes that may mean: leave.
    fn doze(&mut self) -> Result<usize, Failure> {
        let Some(channel) = &mut self.channel else { return Ok(0) };
        match self.queue.wait(&mut self.room, channel, Some(Instant::now() + SLEEP)) {
            Err(WaitError::Interrupted) => Ok(0),
            other => Ok(other?.len()),
        }
    }
}

/// How long to wait for a completion that may never come.
struct Patience {
    left: Duration,
    seen: Option<Instant>,
}

impl Patience {
    const WHOLE: Duration = Duration::from_secs(30);

    /// More time than this between two looks was spent suspended, the other end with it.
    const GAP: Duration = Duration::from_secs(1);

    #[cold]
    fn wear(&mut self, now: Instant) -> Result<(), Failure> {
        let gap = self.seen.replace(now).map_or(Duration::ZERO, |seen| now - seen);
        self.left = self.left.saturating_sub(gap.min(Self::GAP));
        if self.left.is_zero() {
            return Err(Failure::Stalled { seconds: Self::WHOLE.as_secs() });
        }
        Ok(())
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { left: Self::WHOLE, seen: None }
    }
}

/// Checks that this request is the one that is next.
#[inline]
pub fn in_turn(done: &Completed<'_>, expected: u64) -> Result<(), Failure> {
    match done.wr_id() {
        found if found == expected => Ok(()),
        found => Err(Failure::Order { found, expected }),
    }
}

/// Checks that this receive is the one that is next, and that its message has the right length.
#[inline]
pub fn received(done: &Completed<'_>, number: u64, expected: u32) -> Result<(), Failure> {
    in_turn(done, number)?;
    match done.byte_len() {
        found if found == expected => Ok(()),
        found => Err(Failure::Length { number, found, expected }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_when_nothing_completes() {
        let mut patience = Patience::default();
        let start = Instant::now();
        let worn = (0..)
            .find(|&tenths| patience.wear(start + Duration::from_millis(100 * tenths)).is_err());
        assert_eq!(worn, Some(300));
    }

    #[test]
    fn a_suspended_process_does_not_lose_its_patience() {
        let mut patience = Patience::default();
        let start = Instant::now();
        patience.wear(start).unwrap();
        patience.wear(start + Duration::from_secs(3600)).unwrap();
    }
}
