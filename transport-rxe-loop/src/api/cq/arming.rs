//! Arming a completion queue, and raising its event at once where completions are there already.

use cq_core::queue::State;
use cq_core::queue::raw::RawQueue;
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify};
use cq_core::wc::WcStatus;

use super::Cq;
use crate::completion::queue::{key, ring};
use crate::completion::wakeup::Wakeup;
use crate::engine::complete;
use crate::error::Stuck;
use crate::protocol::mode::CqFlag;
use crate::protocol::moderation::EventAction;
use crate::protocol::tag;

impl Arm for Cq {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        if self.attachments.1.is_none() {
            return Err(ArmError::NoChannel);
        }
        if let Some(counted) = &self.counted {
            counted.counters.arm();
        }
        // The event may be taken already.
        self.fail_if_given_up();
        self.consumer_mut().arm(on)
    }

    fn key(&self) -> CqKey {
        self.consumer.key()
    }
}

impl Cq {
    /// [Arms](Arm::arm) the queue, and raises the event at once if completions are there that it is armed for, as some
    /// cards do: for programs that sleep without polling the queue empty ([N2](cq_core::contract#n2)).
    ///
    /// - There is one event for each arming, and the queue is not armed after it. The event may be a spurious wake-up
    ///   ([N5](cq_core::contract#n5)).
    /// - None is raised at once if just one completion has come since the queue was last armed, its event was raised, and
    ///   all before it were polled: the program has taken this event, or is about to, and polls then. Many programs arm
    ///   before that, and some can't cope with a spurious wake-up.
    /// - If it is armed for solicited completions, failures and all receives count: the queue does not know which of them
    ///   are of messages sent SOLICITED. Successful sends do not count ([N3](cq_core::contract#n3)).
    /// - A queue that has overrun raises it.
    /// - Moderation does not delay it, and an event that is delayed is raised ([N12](cq_core::contract#n12)).
    /// - While another process is suspended that pushes a completion, the event comes also if that process raises one when
    ///   it resumes.
    ///
    /// ```
    /// use cq_core::transport::{Events, Notify, PollCq, Post};
    /// use cq_core::wc::Wc;
    /// use cq_core::wr::{RemoteAddr, SendWr};
    /// use transport_rxe_loop::{Context, QpInit};
    ///
    /// let context = Context::open("loop0")?;
    /// let mut channel = context.create_channel()?;
    /// let mut cq = context.create_cq(16, Some(&channel))?;
    /// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
    /// let mut qp = pd.create_qp(&QpInit::new(&cq))?;
    /// qp.connect(&port, &qp.endpoint(&port))?;
    /// qp.post_send(&[SendWr::write_inline(7, &[], RemoteAddr { addr: 0, rkey: 0 })])?;
    /// while !cq.holds_more_than(0) {}
    ///
    /// cq.arm_or_raise(Notify::Next)?;
    /// assert!(channel.take_event()?.is_some());
    /// assert_eq!(cq.poll(&mut [Wc::default(); 4])?, 1);
    /// cq.arm_or_raise(Notify::Next)?;
    /// assert!(channel.take_event()?.is_none()); // it is armed, for the next one
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`arm`](Arm::arm).
    pub fn arm_or_raise(&mut self, on: Notify) -> Result<(), ArmError> {
        let was_armed = self.ring().is_some_and(|ring| ring.control().armed().is_some());
        match self.arm(on)? {
            Armed::Armed => self.armed_at = Some(self.consumer().position()),
            Armed::MayHaveMissed => self.raise_missed(on, was_armed),
        }
        Ok(())
    }

    fn ring(&self) -> Option<RawQueue<'static>> {
        let completions = self.queue.engine.completions;
        ring(completions, completions.cq(self.queue.index).fanin.location())
    }

    /// Raises the event of what was there when the queue was armed, unless a producer has done so since. `was_armed`:
    /// before that.
    #[cold]
    fn raise_missed(&mut self, on: Notify, was_armed: bool) {
        let (engine, index) = (self.queue.engine, self.queue.index);
        let slot = engine.completions.cq(index);
        // A forked child gets no completions, and so no events.
        if !engine.shm.is_ours() {
            return;
        }
        // Producers that could not take the lock gave the queue up; it is not waited for again.
        let is_given_up = self.mode.has(CqFlag::GivenUp);
        let guard = if is_given_up { Err(Stuck) } else { complete::lock(engine, index) };
        let event_action = match (&guard, self.ring()) {
            (Ok(_), Some(ring)) => {
                let tail = slot.fanin.position();
                let raises = self.has_missed(&ring, on) && (was_armed || !self.is_announced(tail));
                self.armed_at = (!raises).then_some(tail);
                // Under the lock either a producer has disarmed the queue, and its event is due, or this does.
                if raises { slot.moderation.fire(ring.control()) } else { EventAction::None }
            }
            (Ok(_), None) => EventAction::None,
            (Err(Stuck), _) => EventAction::Raise,
        };
        drop(guard);
        Wakeup::new(key(engine.completions, index), event_action).raise(engine.completions);
    }

    /// Under the lock: whether the ring holds what a queue is armed for, or has ended.
    fn has_missed(&self, ring: &RawQueue<'_>, on: Notify) -> bool {
        if on == Notify::Next || ring.control().state() != State::Running {
            return true;
        }
        let mut any = false;
        ring.look_through(self.consumer().position(), |wc, tag| {
            any |= wc.status() != WcStatus::SUCCESS || !tag::is_send(tag);
        });
        any
    }

    /// Whether a queue that was disarmed since it was last armed holds nothing but the completion that did that.
    fn is_announced(&self, tail: u64) -> bool {
        let position = self.consumer().position();
        let is_running = self.consumer().state() == State::Running;
        is_running && self.armed_at == Some(position) && tail == position.wrapping_add(1)
    }
}

#[cfg(test)]
mod tests;
