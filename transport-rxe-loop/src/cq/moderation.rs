//! Holding events back: what the owner asks for, what whoever pushes does then, and what the owner's service
//! thread does once an event has waited long enough.

use cq_core::queue::{Completion, Control, Entry};
use rustix::time::{ClockId, clock_gettime};

use super::push::lock;
use super::{Cq, ring};
use crate::bell::{self, Source};
use crate::error::ModerateError;
use crate::fabric::Fabric;
use crate::layout::{CqSlot, Entry as _};
use crate::lock::Stuck;
use crate::protocol::mode::Trait;
use crate::protocol::moderation::{Alert, News, Setting, until};
use crate::protocol::steps::{self, Step};
use crate::sync;

impl Cq {
    /// Lets an event wait for `count` completions, or for `period` microseconds after the first of them;
    /// 1 and 0 end that. The most of either is in [`DeviceAttr`](crate::DeviceAttr).
    ///
    /// The queue stays armed until the event is raised: arming it again meanwhile asks for no further event, and
    /// polling it empty does not take the event back. Completions count that it was armed for. A failure and a
    /// completion that finds no room raise the event at once. A period of 0 is one of 10 milliseconds, so that no
    /// event waits for ever; a count of 0 is one of 1. An event that waits when this is called is raised. Resizing
    /// changes nothing about all this.
    ///
    /// ```
    /// use cq_core::transport::{Arm, Armed, Notify};
    /// use transport_rxe_loop::Context;
    ///
    /// let context = Context::open("loop0")?;
    /// let channel = context.create_channel()?;
    /// let mut cq = context.create_cq(16, Some(&channel))?;
    /// cq.moderate(4, 1_000)?;
    /// assert_eq!(cq.arm(Notify::Next), Ok(Armed::Armed));
    /// cq.moderate(1, 0)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The service thread, which raises events whose time is over, can't be started; or another process holds the
    /// queue's lock. Nothing was changed.
    pub fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        let (fabric, index) = (self.queue.fabric, self.queue.index);
        if !fabric.is_ours() {
            return Err(ModerateError::Forked);
        }
        let (slot, setting) = (fabric.cq(index), Setting { count, period });
        if setting.is_any() && self.attachments.1.is_some() {
            fabric.service().moderates(fabric, index).map_err(|error| ModerateError::NoThread {
                errno: error.raw_os_error().unwrap_or(0),
            })?;
        }
        let alert = {
            let _guard = lock(fabric, index).map_err(|Stuck| ModerateError::Stuck)?;
            slot.mode.set(Trait::Moderated, setting.is_any());
            let queue = ring(fabric, slot.fanin.place());
            queue.map_or(Alert::None, |queue| slot.moderation.set(queue.control(), setting))
        };
        act(fabric, index, alert);
        Ok(())
    }
}

/// Does what is to be done, for a queue that can't go meanwhile.
pub fn act(fabric: &'static Fabric, index: u32, alert: Alert) {
    match alert {
        Alert::None => {}
        Alert::Raise => bell::raise(fabric, Source::Completion(index), || true),
        Alert::Call => {
            steps::done(Step::Held);
            if let Some(owner) = fabric.cq(index).life().place() {
                fabric.call(owner);
            }
        }
    }
}

/// What these are for who waits for completions; `lost` says whether any found no room.
pub fn news(entries: &[Entry], lost: bool) -> News {
    News {
        all: entries.len() as u32,
        urgent: entries.iter().filter(|entry| entry.is_urgent()).count() as u32,
        at_once: lost || entries.iter().any(|entry| entry.wc.result().is_err()),
    }
}

/// Under the queue's lock, after something was pushed: what is to be done about an event. One without a channel
/// is never armed (N11).
pub fn alert(fabric: &'static Fabric, index: u32, queue: &Control, news: News) -> Alert {
    fabric.cq(index).moderation.alert(queue, news, now)
}

/// The queue at `index` is about to go: the service thread need not look at it any more.
pub fn forget(fabric: &'static Fabric, index: u32) {
    if fabric.is_ours() {
        fabric.service().forgets(index);
    }
}

/// For the service thread: raises the event of the queue at `index`, if it has waited long enough, and says for
/// how many nanoseconds there is nothing to do about the queue.
pub fn look(fabric: &'static Fabric, index: u32) -> Option<u64> {
    let slot = fabric.cq(index);
    if slot.life().place() != Some(fabric.place()) {
        return None;
    }
    match slot.moderation.alarm() {
        0 => return None,
        alarm => match until(alarm, now()) {
            0 => {}
            left => return Some(left),
        },
    }
    if let Some(generation) = due(fabric, index, slot) {
        // It may go meanwhile, and another one be in its place.
        bell::raise(fabric, Source::Completion(index), || {
            sync::load(&slot.generation) == generation
        });
    }
    match slot.moderation.alarm() {
        0 => None,
        alarm => Some(until(alarm, now())),
    }
}

/// Which queue it is whose event is to be raised, if it is one: the generation that is disarmed here is the one
/// that is told, also if this thread was kept so long that another one is in its place.
fn due(fabric: &'static Fabric, index: u32, slot: &CqSlot) -> Option<u32> {
    let guard = lock(fabric, index);
    let generation = sync::load(&slot.generation);
    let is_due = match (&guard, ring(fabric, slot.fanin.place())) {
        (Ok(_), Some(queue)) => slot.moderation.look(queue.control(), now()) == Alert::Raise,
        // Who is suspended over it keeps nobody asleep: whoever wakes to nothing sleeps again (N5).
        _ => slot.moderation.give_up(),
    };
    is_due.then_some(generation)
}

/// The time, by a clock that all processes share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

#[cfg(test)]
mod tests;
