//! One end at work: it posts, finds what completed, asleep or awake, and notices when nothing does.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use bench::Failure;
use bench::transport::{End, Transport};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::wc::{Completed, Wc, WcStatus};
use cq_verbs::wr::RemoteAddr;

use crate::control::Control;
use crate::job::{DEPTH, Flow, Job, Op};
use crate::payload::Slots;
use crate::stats::{Counted, Latencies, Tally};

/// One end at work. Each request carries the number of its message as `wr_id`.
pub struct Side<'a, T: Transport> {
    /// What is measured.
    pub job: Job,
    /// What it shares with the rest of its process.
    pub control: &'a Control<'a>,
    /// Where requests are posted.
    pub pair: T::Pair,
    /// Where messages lie.
    pub slots: Slots,
    /// Where requests complete.
    pub completions: Completions<'a, T>,
    /// How long messages took.
    pub latencies: Latencies,
}

impl<'a, T: Transport> Side<'a, T> {
    /// Puts an end to work, whose peer has its memory there. If both ends run on one core, a spinning one keeps the
    /// other from working.
    pub fn new(
        end: End<T>,
        job: Job,
        peer: RemoteAddr,
        control: &'a Control<'a>,
        shared_core: bool,
    ) -> Self {
        let End { queue, channel, pair, memory } = end;
        let batch = if job.flow == Flow::Pingpong { DEPTH } else { job.shape().batch };
        let completions = Completions {
            queue: CompletionQueue::new(Counted { transport: queue, tally: Tally::default() }),
            channel,
            buffer: vec![Wc::default(); batch as usize].into_boxed_slice(),
            control,
            shared_core,
        };
        let marked = job.op == Op::Write;
        let slots = Slots::new(memory, [job.bytes(), job.slots()], peer, marked);
        Self { job, control, pair, slots, completions, latencies: Latencies::new() }
    }

    /// How often its completion queue was polled.
    pub fn tally(&mut self) -> Tally {
        self.completions.queue.get_mut().tally
    }
}

/// The completions of one end.
pub struct Completions<'a, T: Transport> {
    queue: CompletionQueue<Counted<T::Queue>>,
    channel: Option<T::Channel>,
    buffer: Box<[Wc]>,
    control: &'a Control<'a>,
    shared_core: bool,
}

/// How often to poll in vain before looking at the clock.
const POLLS: u32 = 1024;

/// How long to sleep before looking whether to leave.
const SLEEP: Duration = Duration::from_millis(100);

impl<T: Transport> Completions<'_, T> {
    /// The next completions: spins for them, or sleeps where there is a channel. None means: leave.
    #[inline]
    pub fn next(&mut self) -> Result<&[Wc], Failure> {
        match self.channel {
            Some(_) => self.sleep(Some(Patience::default())),
            None => Ok(self.watch(true, || false)?.unwrap_or_default()),
        }
    }

    /// Sleeps for the next completions, however long it takes. None means: leave.
    pub fn idle(&mut self) -> Result<&[Wc], Failure> {
        self.sleep(None)
    }

    /// Spins until `seen` sees what a peer has written, and gives no completions, or until there are some, of
    /// requests that are `outstanding`. `None` means: leave.
    #[inline]
    pub fn watch(
        &mut self,
        outstanding: bool,
        seen: impl Fn() -> bool,
    ) -> Result<Option<&[Wc]>, Failure> {
        let mut patience = Patience::default();
        while !self.control.leave() {
            for _ in 0..POLLS {
                if seen() {
                    return Ok(Some(&[]));
                }
                if outstanding {
                    let count = self.queue.poll(&mut self.buffer)?.len();
                    if count > 0 {
                        return Ok(Some(&self.buffer[..count]));
                    }
                }
                if self.shared_core { thread::yield_now() } else { hint::spin_loop() }
            }
            patience.wear(Instant::now())?;
        }
        Ok(if outstanding { self.cause()? } else { None })
    }

    /// What has failed, where the peer leaves because of that: its message may be here before the completion is seen. What was
    /// flushed is only a consequence.
    #[cold]
    fn cause(&mut self) -> Result<Option<&[Wc]>, Failure> {
        let is_cause = |wc: &Wc| !matches!(wc.status(), WcStatus::SUCCESS | WcStatus::WR_FLUSH_ERR);
        let batch = self.queue.poll(&mut self.buffer)?;
        Ok(batch.iter().any(is_cause).then_some(batch))
    }

    /// Sleeps for completions, each time for a while at most, or until a signal comes that may mean: leave.
    fn sleep(&mut self, mut patience: Option<Patience>) -> Result<&[Wc], Failure> {
        let channel = self.channel.as_mut().ok_or("it has no channel to sleep on")?;
        while !self.control.leave() {
            let deadline = Some(Instant::now() + SLEEP);
            let count = match self.queue.wait(&mut self.buffer, channel, deadline) {
                Err(WaitError::Interrupted) => 0,
                other => other?.len(),
            };
            if count > 0 {
                return Ok(&self.buffer[..count]);
            }
            patience.as_mut().map_or(Ok(()), |patience| patience.wear(Instant::now()))?;
        }
        Ok(self.cause()?.unwrap_or_default())
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
        match self.left.is_zero() {
            true => Err(format!("no completion came for {} s", Self::WHOLE.as_secs()).into()),
            false => Ok(()),
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { left: Self::WHOLE, seen: None }
    }
}

/// What was done, if it went well.
#[inline]
pub fn done(wc: &Wc) -> Result<Completed<'_>, Failure> {
    Ok(wc.result()?)
}

/// Checks that this request is the one that is next.
#[inline]
pub fn in_turn(done: &Completed<'_>, expected: u64) -> Result<(), Failure> {
    match done.wr_id() {
        found if found == expected => Ok(()),
        found => Err(format!("request {found} completed where request {expected} was next").into()),
    }
}

/// Checks that this receive is the one that is next, and that its message has the right length.
#[inline]
pub fn received(done: &Completed<'_>, number: u64, expected: u32) -> Result<(), Failure> {
    in_turn(done, number)?;
    match done.byte_len() {
        found if found == expected => Ok(()),
        found => Err(format!("message {number} has {found} bytes instead of {expected}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_when_nothing_completes_but_not_by_being_suspended() {
        let (mut patience, start) = (Patience::default(), Instant::now());
        let at = |tenths: u64| start + Duration::from_millis(100 * tenths);
        let worn = (0..).find(|&tenths| patience.wear(at(tenths)).is_err());
        assert_eq!(worn, Some(300));
        let mut patience = Patience::default();
        patience.wear(at(0)).unwrap();
        patience.wear(at(36_000)).unwrap();
    }
}
