//! The virtual clock. It advances only while a thread waits, to the next timer: the end of a wait for a receive or for an
//! answer (Q7), or the deadline of a moderated event (N12).

use std::time::Duration;

use super::failures::Fault;
use super::world::{Id, Timer, Wait, World};
use crate::device::RnrTimer;

/// What the oldest send of a queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The peer has no receive.
    NoReceive,
    /// The peer is not ready, or is connected to another queue pair.
    NotReady,
    /// There is no peer.
    Gone,
}

impl Why {
    /// The status if the time is over.
    const fn fault(self) -> Fault {
        match self {
            Self::NoReceive => Fault::NoReceive,
            Self::NotReady | Self::Gone => Fault::NoAnswer,
        }
    }
}

/// The timer of a peer that has none.
const LONGEST: Duration = Duration::from_micros(655_360);

impl World {
    /// The oldest send of this queue has to wait. A wait for the same continues; another one starts now.
    ///
    /// # Errors
    /// There is no time to wait.
    pub fn wait_for(&mut self, number: Id, why: Why) -> Result<(), Fault> {
        let fault = why.fault();
        let begun = self.qps[&number].wait.filter(|wait| wait.fault == fault);
        let timer = match begun {
            Some(wait) => wait.timer,
            None => self.timer(number, why),
        };
        if timer.is_some_and(|timer| timer.rounds == 0) {
            return Err(fault);
        }
        if why == Why::Gone && timer.is_none() {
            return Err(fault);
        }
        self.qps.get_mut(&number).expect("it posted").wait = Some(Wait { fault, timer });
        Ok(())
    }

    /// Q7: for a receive, `rnr_retry` times the responder's `min_rnr_timer`, where 7 is without limit; for an
    /// answer, 1 + `retry_cnt` times 4.096 µs · 2^`timeout`, where 0 is without limit, unless there is no responder.
    fn timer(&self, number: Id, why: Why) -> Option<Timer> {
        let attr = &self.qps[&number].attr;
        let (period, rounds) = match (why, attr.rnr_retry.unwrap_or(0)) {
            (Why::NoReceive, 7) => return None,
            (Why::NoReceive, rnr_retry) => {
                let peer = attr.dest_qp_num.and_then(|peer| self.qps.get(&peer));
                let timer = peer.and_then(|peer| peer.attr.min_rnr_timer);
                (timer.map_or(LONGEST, RnrTimer::duration), rnr_retry)
            }
            (Why::NotReady | Why::Gone, _) => {
                (attr.timeout?.duration()?, attr.retry_cnt.unwrap_or(0) + 1)
            }
        };
        Some(Timer { next: self.now + period, period, rounds: rounds.into() })
    }

    /// The next timer, if a request waits with one or an event is delayed.
    pub fn next_deadline(&self) -> Option<Duration> {
        let timers = self.qps.values().filter_map(|qp| qp.wait?.timer).map(|timer| timer.next);
        timers.chain(self.cqs.values().filter_map(|cq| cq.moderation.due)).min()
    }

    /// Advances the clock to `until`: each timer on the way fires, in order. A waiting request is retried whenever something
    /// changes, so at the end of a period only the count is checked.
    pub fn advance(&mut self, until: Duration) {
        while let Some(next) = self.next_deadline().filter(|next| *next <= until) {
            self.now = next;
            self.raise_due();
            let numbers: Vec<Id> = self.qps.keys().copied().collect();
            for number in numbers {
                if let Some(fault) = self.fire(number) {
                    self.fail(number, fault);
                }
            }
            self.settle();
        }
        self.now = self.now.max(until);
    }

    /// The timer of this queue pair fires; the request fails if no retry is left.
    fn fire(&mut self, number: Id) -> Option<Fault> {
        let now = self.now;
        let wait = self.qps.get_mut(&number)?.wait.as_mut()?;
        let timer = wait.timer.as_mut().filter(|timer| timer.next <= now)?;
        timer.rounds -= 1;
        timer.next += timer.period;
        (timer.rounds == 0).then_some(wait.fault)
    }
}
