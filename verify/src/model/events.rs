//! Events of completion queues (N1–N9, N11), their moderation (N12), and asynchronous events (O2, O4, Q7, Q9).

use std::time::Duration;

use cq_core::transport::{ArmError, Armed, CqKey, Notify};
use cq_verbs::async_event::{AsyncEvent, AsyncEventType, Element};

use super::world::{Cq, Id, Moderation, World};
use crate::device::QpState;

/// The key of a completion queue in events. No number is used twice, so there is one generation.
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
        // N4: armed for any completion, it remains so.
        cq.armed = cq.armed.max(Some(on));
        // N2: completions in the queue raise no event. The next poll also reports an overrun.
        let something = !cq.entries.is_empty() || cq.has_overrun();
        Ok(if something { Armed::MayHaveMissed } else { Armed::Armed })
    }

    /// A completion came; solicited as N3 says. N12: one that is urgent is not delayed.
    pub fn notify(&mut self, queue: Id, solicited: bool, urgent: bool) {
        let now = self.now;
        let cq = self.cqs.get_mut(&queue).expect("it got a completion");
        let fires = cq.armed.is_some_and(|on| on == Notify::Next || solicited);
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
        channel.push_back(key(queue));
    }

    /// N12: it applies from now on, and raises a delayed event. A period of 0 does not mean without limit.
    pub fn moderate(&mut self, queue: Id, count: u16, period: u16) {
        let period = match period {
            0 => Duration::from_millis(10),
            _ => Duration::from_micros(period.into()),
        };
        if self.cqs[&queue].moderation.due.is_some() {
            self.raise(queue);
        }
        let cq = self.cqs.get_mut(&queue).expect("its handle is alive");
        cq.moderation = Moderation { count, period, ..Moderation::default() };
    }

    /// N12: raises events whose deadline has passed.
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
        self.channels.get_mut(&channel).expect("its handle is alive").pop_front()
    }

    /// N8: whether the events of this queue come through the channel.
    pub fn serves(&self, channel: Id, cq: CqKey) -> bool {
        self.cqs.iter().any(|(id, queue)| key(*id) == cq && queue.channel == Some(channel))
    }

    /// Removes an object of any kind. N7: no event names one that is destroyed. C8: of a queue pair, all outstanding
    /// requests go without completions; its completions stay.
    pub fn remove(&mut self, id: Id) {
        self.openings.remove(&id);
        self.channels.remove(&id);
        self.windows.remove(&id);
        self.handles.remove(&id);
        if self.regions.remove(&id).is_some() {
            self.unbind(|bound| bound.region == id);
        }
        if self.srqs.remove(&id).is_some() {
            self.forget_reports(Element::Srq(id));
        }
        if let Some(cq) = self.cqs.remove(&id) {
            self.forget_reports(Element::Cq(key(id)));
            if let Some(events) = cq.channel.and_then(|channel| self.channels.get_mut(&channel)) {
                events.retain(|event| *event != key(id));
            }
        }
        if self.qps.remove(&id).is_some() {
            self.forget_reports(Element::Qp(id));
            self.unbind(|bound| bound.qp == id);
            self.settle();
        }
    }

    /// Reports an event of an object to the context that it was created through.
    pub fn report(&mut self, opening: Id, event_type: AsyncEventType, element: Element) {
        if let Some(reports) = self.openings.get_mut(&opening) {
            reports.push_back(AsyncEvent { event_type, element });
        }
    }

    /// Reports an event of a queue pair.
    pub fn report_qp(&mut self, number: Id, event_type: AsyncEventType) {
        self.report(self.qps[&number].opening, event_type, Element::Qp(number));
    }

    /// Raises SQ_DRAINED, if requested, when a queue pair in SQD has completed all requests that it had started.
    pub fn report_drained(&mut self) {
        let mut drained = Vec::new();
        for (number, qp) in &mut self.qps {
            let drains = qp.state == QpState::SQD;
            if qp.report_drained && drains && qp.wait.is_none() {
                drained.push(*number);
            }
            qp.report_drained &= drains && qp.wait.is_some();
        }
        for number in drained {
            self.report_qp(number, AsyncEventType::SQ_DRAINED);
        }
    }

    fn forget_reports(&mut self, element: Element) {
        for opening in self.openings.values_mut() {
            opening.retain(|event| event.element != element);
        }
    }
}
