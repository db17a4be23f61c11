//! Events: those of completion queues (N1–N9, N11), held back or not (N12), and asynchronous ones (O2, O4,
//! Q7, Q9).

use std::time::Duration;

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::transport::{ArmError, Armed, CqKey, Notify};

use super::world::{Cq, Id, Moderation, World};
use crate::device::QpState;

/// What events call a completion queue. No name is given twice, so that there is one generation.
pub const fn key(queue: Id) -> CqKey {
    CqKey { index: queue, generation: 0 }
}

impl Moderation {
    /// One more completion. Whether its event waits for more.
    fn holds_back(&mut self, now: Duration) -> bool {
        self.counted += 1;
        let waits = self.counted < self.count;
        if waits {
            self.due = self.due.or(Some(now + self.period));
        }
        waits
    }
}

impl World {
    /// Arms a queue: for one event, at the next completion (N1).
    pub fn arm(&mut self, queue: Id, on: Notify) -> Result<Armed, ArmError> {
        let cq = self.cqs.get_mut(&queue).expect("its handle is alive");
        // N11
        if cq.channel.is_none() {
            return Err(ArmError::NoChannel);
        }
        // N4: any stays any.
        cq.armed = cq.armed.max(Some(on));
        // N2: what is there raises nothing. An overrun is there too: the next poll says it.
        let something = !cq.entries.is_empty() || cq.has_overrun();
        Ok(if something { Armed::MayHaveMissed } else { Armed::Armed })
    }

    /// A completion came; solicited as N3 says. N12: one that is urgent is not held back.
    pub fn notify(&mut self, queue: Id, solicited: bool, urgent: bool) {
        let now = self.now;
        let cq = self.cqs.get_mut(&queue).expect("it got a completion");
        let fires = match cq.armed {
            None => false,
            Some(Notify::Solicited) => solicited,
            Some(Notify::Next) => true,
        };
        if fires && (urgent || !cq.moderation.holds_back(now)) {
            self.raise(queue);
        }
    }

    /// N1: one event, then disarmed.
    fn raise(&mut self, queue: Id) {
        let cq = self.cqs.get_mut(&queue).expect("its event is due");
        cq.armed = None;
        (cq.moderation.counted, cq.moderation.due) = (0, None);
        let channel = cq.channel.expect("it could be armed");
        let channel = self.channels.get_mut(&channel).expect("its queues keep it alive");
        // N8, N9
        channel.events.push_back(key(queue));
    }

    /// N12: from now on, so that what was held back so far is not any more. A period of 0 does not mean
    /// for ever.
    pub fn moderate(&mut self, queue: Id, count: u16, period: u16) {
        let cq = self.cqs.get_mut(&queue).expect("its handle is alive");
        let period = match period {
            0 => Duration::from_millis(10),
            _ => Duration::from_micros(period.into()),
        };
        let held_back = cq.moderation.due.is_some();
        if held_back {
            self.raise(queue);
        }
        let cq = self.cqs.get_mut(&queue).expect("its handle is alive");
        cq.moderation = Moderation { count, period, ..Moderation::default() };
    }

    /// N12: raises what was held back long enough.
    pub fn raise_due(&mut self) {
        let due = |cq: &Cq| cq.moderation.due.is_some_and(|due| due <= self.now);
        let queues: Vec<Id> =
            self.cqs.iter().filter(|(_, cq)| due(cq)).map(|(queue, _)| *queue).collect();
        for queue in queues {
            self.raise(queue);
        }
    }

    /// N7: taking an event acknowledges it.
    pub fn next_event(&mut self, channel: Id) -> Option<CqKey> {
        self.channels.get_mut(&channel).expect("its handle is alive").events.pop_front()
    }

    /// N7: a queue that is gone is never named.
    pub fn forget_cq(&mut self, queue: Id) {
        if let Some(cq) = self.cqs.remove(&queue) {
            self.forget_reports(Element::Cq(key(queue)));
            if let Some(channel) = cq.channel.and_then(|channel| self.channels.get_mut(&channel)) {
                channel.events.retain(|event| *event != key(queue));
            }
        }
    }

    /// Removes a queue pair with everything outstanding, in silence (C8). Its completions stay.
    pub fn forget_qp(&mut self, number: Id) {
        self.qps.remove(&number);
        self.unbind_all(number);
        self.forget_reports(Element::Qp(number));
        self.settle();
    }

    /// Tells whoever opened the device what happened to something made through that opening.
    pub fn report(&mut self, opening: Id, event: AsyncEvent) {
        if let Some(opening) = self.openings.get_mut(&opening) {
            opening.reports.push_back(event);
        }
    }

    /// Something happened to a queue pair.
    pub fn report_qp(&mut self, number: Id, event_type: AsyncEventType) {
        let event = AsyncEvent { event_type, element: Element::Qp(number) };
        self.report(self.qps[&number].opening, event);
    }

    /// A queue pair that was asked to says when, in SQD, nothing of what it began is left.
    pub fn report_drained(&mut self) {
        let mut drained = Vec::new();
        for (number, qp) in &mut self.qps {
            if qp.report_drained && qp.state != QpState::SQD {
                qp.report_drained = false;
            }
            if qp.report_drained && qp.wait.is_none() {
                qp.report_drained = false;
                drained.push(*number);
            }
        }
        for number in drained {
            self.report_qp(number, AsyncEventType::SQ_DRAINED);
        }
    }

    /// As N7 for asynchronous events: what is gone is not named any more.
    pub fn forget_reports(&mut self, element: Element) {
        for opening in self.openings.values_mut() {
            opening.reports.retain(|event| event.element != element);
        }
    }
}
