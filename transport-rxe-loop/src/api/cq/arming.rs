//! Arming a completion queue, and raising its event at once where completions are there already.

use cq_core::queue::raw::RawQueue;
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify};
use cq_core::wc::WcStatus;

use super::Cq;
use crate::completion::queue::{CqSlot, key, ring};
use crate::completion::wakeup::Wakeup;
use crate::engine::complete;
use crate::error::Stuck;
use crate::protocol::mode::CqFlag;
use crate::protocol::moderation::EventAction;
use crate::protocol::tag;
use crate::sync;

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
    /// - None is raised at once, one time, if the queue holds a single completion, and the program has
    ///   [taken](Self::event_taken) the event of it, and polled nothing since: such programs arm before they poll, and some
    ///   can't cope with a spurious wake-up. One that sleeps instead of polling after that event sleeps on.
    /// - If it is armed for solicited completions, failures and all receives count: the queue does not know which of them
    ///   are of messages sent SOLICITED. Successful sends do not count ([N3](cq_core::contract#n3)).
    /// - A queue that has overrun raises it.
    /// - Moderation does not delay it, and an event that is delayed is raised ([N12](cq_core::contract#n12)).
    /// - While another process is suspended that pushes a completion, the event comes also if that process raises one when
    ///   it resumes.
    ///
    /// ```
    /// use cq_core::transport::{Events, Notify, PollCq};
    /// use transport_rxe_loop::{Context, RemoteAddr, SendWr, Wc};
    ///
    /// let context = Context::open("loop0")?;
    /// let mut channel = context.create_channel()?;
    /// let mut cq = context.cq(16).channel(&channel).create()?;
    /// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
    /// let mut qp = pd.qp(&cq).create()?;
    /// qp.connect(&port, &qp.endpoint(&port))?;
    /// qp.post_send(&[SendWr::write_inline(7, &[], RemoteAddr { addr: 0, rkey: 0 })])?;
    /// while !cq.holds_more_than(0) {}
    ///
    /// cq.arm_or_raise(Notify::Next)?;
    /// assert!(channel.take_event()?.is_some());
    /// assert!(cq.pop()?.is_some());
    /// cq.arm_or_raise(Notify::Next)?; // the queue is empty: it is armed, for the next one
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`arm`](Arm::arm).
    pub fn arm_or_raise(&mut self, on: Notify) -> Result<(), ArmError> {
        if self.arm(on)? == Armed::MayHaveMissed {
            self.raise_missed(on);
        }
        Ok(())
    }

    /// Records that the program has taken an event of the queue from its channel, for
    /// [`arm_or_raise`](Self::arm_or_raise).
    pub fn event_taken(&mut self) {
        self.event_at = Some(self.consumer().position());
    }

    fn ring(&self) -> Option<RawQueue<'static>> {
        let completions = self.handle.queue.engine.completions;
        ring(completions, completions.cq(self.handle.queue.index).fanin.location())
    }

    /// Raises the event of what was there when the queue was armed, unless a producer has done so since.
    #[cold]
    fn raise_missed(&mut self, on: Notify) {
        let (engine, index) = (self.handle.queue.engine, self.handle.queue.index);
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
                let raises = self.has_missed(&ring, on) && !self.is_announced(slot);
                sync::store(&slot.announced, 0);
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
        if on == Notify::Next || ring.control().end().is_some() {
            return true;
        }
        let mut any = false;
        ring.look_through(self.consumer().position(), |wc, tag| {
            any |= wc.status() != WcStatus::SUCCESS || !tag::is_send(tag);
        });
        any
    }

    /// Under the lock: whether the queue holds nothing but the completion that disarmed it last, and the program has taken
    /// that event, and polled nothing since.
    fn is_announced(&self, slot: &CqSlot) -> bool {
        let (position, tail) = (self.consumer().position(), slot.fanin.position());
        let is_running = self.consumer().end().is_none();
        let is_single =
            tail == position.wrapping_add(1) && sync::load(&slot.announced) == tail as u32;
        is_running && is_single && self.event_at == Some(position)
    }
}

#[cfg(test)]
mod tests;
