//! Faults of completions: failed, held back, reordered, dropped.

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::{Failed, Wc, WcStatus};
use cq_verbs::polling::{ArmWc, PollWc};

use super::plan::Fault;
use super::{FaultInjector, VENDOR_ERR};

impl<T: PollWc, const N: usize> FaultInjector<T, N> {
    /// Polls the queue for `wanted` completions, or for more when looking ahead, as far as they can be held. Returns
    /// whether there may be more.
    fn refill(&mut self, wanted: usize) -> bool {
        let free = self.hold.free();
        let asked = if self.faults.looks_ahead() { free } else { free.min(wanted) };
        if asked == 0 || self.error.is_some() {
            return self.error.is_none();
        }
        let mut found = [Wc::default(); N];
        match CompletionQueue::new(&mut self.transport).poll(&mut found[..asked]).map(<[Wc]>::len) {
            Ok(count) => {
                found[..count].iter().for_each(|wc| self.take(*wc));
                // Fewer than asked: the queue is empty, and later completions raise the event of the arm.
                self.settling &= count == asked;
                count == asked
            }
            Err(error) => {
                self.error = Some(error);
                self.hold.release();
                false
            }
        }
    }

    /// Applies `fail` and `delay` to a completion, and holds it.
    fn take(&mut self, wc: Wc) {
        let qp = wc.qp_num();
        let wc = self.judge(wc);
        let polls = match self.settling {
            true => None,
            false => self.roll(Some(qp), |fault| matches!(fault, Fault::Delay(_))),
        };
        let polls = match polls {
            Some(Fault::Delay(polls)) if polls > 0 => Some(polls),
            _ => None,
        };
        self.injected.delayed += u64::from(polls.is_some());
        self.hold.add(wc, self.polls + u64::from(polls.unwrap_or(0)));
    }

    /// Applies `fail`. Returns the completion to report.
    fn judge(&mut self, wc: Wc) -> Wc {
        let qp = wc.qp_num();
        if self.failed.contains(&qp) {
            self.injected.flushed += 1;
            return failed(&wc, WcStatus::WR_FLUSH_ERR);
        }
        // A failure of the device is no occasion.
        if wc.result().is_err() {
            return wc;
        }
        let fails = self.roll(Some(qp), |fault| matches!(fault, Fault::Fail(_)));
        let Some(Fault::Fail(status)) = fails else { return wc };
        if !self.faults.alone && self.failed.push(qp).is_err() {
            return wc;
        }
        self.injected.failed += 1;
        failed(&wc, status)
    }

    /// The next completion that may leave.
    fn give(&mut self) -> Option<Wc> {
        let ready = self.hold.ready(self.polls);
        if ready == 0 || self.faults.capacity == Some(self.given) {
            return None;
        }
        // A single completion is no occasion.
        let reorders = ready > 1 && self.roll(None, |fault| *fault == Fault::Reorder).is_some();
        let nth = if reorders { self.dice.below(ready as u64) as usize } else { 0 };
        self.injected.reordered += u64::from(nth > 0);
        self.given += 1;
        self.hold.take(self.polls, nth)
    }

    /// Whether the queue has overrun: it has returned as many completions as it stores, and there were more.
    fn has_overrun(&self) -> bool {
        self.faults.capacity == Some(self.given)
            && (self.injected.dropped > 0 || !self.hold.is_empty())
    }

    /// Drops all completions that there are.
    fn overrun(&mut self) -> PollError {
        while self.refill(N) {
            self.injected.dropped += self.hold.drop_all() as u64;
        }
        self.injected.dropped += self.hold.drop_all() as u64;
        let dropped = u32::try_from(self.injected.dropped).unwrap_or(u32::MAX);
        PollError::Overrun { dropped: Some(dropped) }
    }
}

/// The completion as a failure. The other fields are undefined ([C4](cq_core::contract#c4)).
fn failed(wc: &Wc, status: WcStatus) -> Wc {
    Failed::new(wc.wr_id(), status, wc.qp_num(), VENDOR_ERR).map_or(*wc, Wc::poisoned)
}

impl<T: PollWc, const N: usize> PollCq for FaultInjector<T, N> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        const { assert!(N > 0, "an injector around a queue has to hold something") };
        if out.is_empty() {
            return Ok(0);
        }
        self.polls += 1;
        let mut count = 0;
        loop {
            let more = self.refill(out.len() - count);
            let before = count;
            while let Some(entry) = out.get_mut(count) {
                let Some(wc) = self.give() else { break };
                *entry = wc;
                count += 1;
            }
            if count == out.len() || count == before || !more {
                break;
            }
        }
        if count == 0 && self.has_overrun() {
            return Err(self.overrun());
        }
        match self.error.take_if(|_| count == 0 && self.hold.is_empty()) {
            Some(error) => Err(error),
            None => Ok(count),
        }
    }
}

impl<T: ArmWc, const N: usize> Arm for FaultInjector<T, N> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let armed = self.transport.arm(on)?;
        self.settling = true;
        self.hold.release();
        let quiet = self.hold.is_empty() && self.error.is_none() && self.injected.dropped == 0;
        Ok(if quiet { armed } else { Armed::MayHaveMissed })
    }

    cq_core::of_target! { self.transport;
        key(&self) -> CqKey;
        took_events(&mut self, count: u32);
    }
}
