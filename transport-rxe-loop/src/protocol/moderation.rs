//! Completion moderation: events that are delayed to stand for several completions. An armed queue stays armed until
//! the configured number of completions came, or the first of them has waited for the configured period.
//!
//! # Who does what
//! All words are protected by the queue's lock, which producers of any process and the owner take. A producer that
//! has pushed and [finds](Moderation::event_action) the queue armed raises the event, or leaves it to a later producer, and
//! finally to the alarm of the owner's service thread, which [checks](Moderation::look) the deadline.
//!
//! | held | deadline | state | left by |
//! |---|---|---|---|
//! | 0 | 0 | no event is delayed | a producer that delays an event, to Held |
//! | n | when the event has to be raised | Held: n completions came since the arm | a producer or the service thread that raises it; the owner that [changes](Moderation::set) the setting |
//!
//! # The alarm
//! A producer that delays an event has to make the service thread check the deadline, which costs a system
//! call. So the alarm records when the thread will check by itself: one call serves all events that are
//! delayed and raised by count until then. The producer sets the alarm, under the lock, and calls the thread
//! afterwards; when the time has come, the thread moves it to the next deadline, under the lock. The thread
//! may read the alarm without the lock: a producer that does not call the thread does not change it.
//!
//! A producer may die before it calls the thread. Then a process that recovers from its death raises the
//! event (see [`fanin`](super::fanin)), and an alarm whose time is over counts as none.
//!
//! # Time
//! In nanoseconds of a clock that all processes share, never 0. Where a clock differs, events come early: a
//! time further ahead than any period counts as over.

use cq_core::queue::Control;
use cq_core::transport::Notify;

use crate::sync::{self, AtomicU32, AtomicU64, Site};

/// The words. Any content is harmless; zeros are a queue that is not moderated.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Moderation {
    setting: AtomicU32,
    held: AtomicU32,
    deadline: AtomicU64,
    alarm: AtomicU64,
}

/// The moderation parameters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Completions for each event; 0 and 1 are no moderation.
    pub count: u16,
    /// The longest delay, in microseconds; 0 is [`NO_PERIOD`].
    pub period: u16,
}

/// The longest delay of an event whose period is 0, in nanoseconds: it must not wait for ever.
pub const NO_PERIOD: u64 = 10_000_000;

/// Longer than any event is delayed.
const LONGEST: u64 = u16::MAX as u64 * 1_000;

impl Setting {
    /// Whether events are delayed at all.
    pub const fn is_any(self) -> bool {
        self.count > 1
    }

    const fn to_word(self) -> u32 {
        (self.count as u32) << 16 | self.period as u32
    }

    const fn from_word(word: u32) -> Self {
        Self { count: (word >> 16) as u16, period: word as u16 }
    }

    const fn limit(self) -> u64 {
        match self.period {
            0 => NO_PERIOD,
            period => period as u64 * 1_000,
        }
    }
}

/// What a producer just pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushSummary {
    /// Completions, stored or dropped.
    pub all: u32,
    /// How many of them notify a consumer that armed for solicited ones.
    pub urgent: u32,
    /// Whether one is a failure, or was dropped: then the event is not delayed.
    pub at_once: bool,
}

/// What the producer has to do after it has released the queue's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// Nothing.
    None,
    /// Raise the event.
    Raise,
    /// Call the owner's service thread, which reads its alarm.
    Call,
}

/// Whether an event is raised or delayed.
enum Verdict {
    Raise,
    Hold { call: bool },
}

impl Moderation {
    /// Initializes the words for a new queue.
    pub fn begin(&self) {
        sync::store(&self.setting, Setting::default().to_word());
        self.release();
        sync::store(&self.alarm, 0);
    }

    /// Changes the setting. An event that is delayed is to be raised now.
    #[must_use]
    pub fn set(&self, queue: &Control, setting: Setting) -> EventAction {
        sync::store(&self.setting, setting.to_word());
        match sync::load(&self.held) {
            0 => EventAction::None,
            _ => self.fire(queue),
        }
    }

    /// Decides about the event of completions that were just pushed to a queue with a channel.
    #[must_use]
    pub fn event_action(
        &self,
        queue: &Control,
        push_summary: PushSummary,
        now: impl FnOnce() -> u64,
    ) -> EventAction {
        let (mut call, mut raise) = (false, false);
        let holds = |armed| {
            let came = match armed {
                Notify::Solicited => push_summary.urgent,
                Notify::Next => push_summary.all,
            };
            match self.add(came, push_summary.at_once, now) {
                Verdict::Raise => false,
                Verdict::Hold { call: anew } => {
                    call = anew;
                    true
                }
            }
        };
        queue
            .notify_unless(push_summary.urgent > 0 || push_summary.at_once, holds, || raise = true);
        match (raise, call) {
            (true, _) => EventAction::Raise,
            (false, true) => EventAction::Call,
            (false, false) => EventAction::None,
        }
    }

    /// Counts completions for which the queue is armed.
    fn add(&self, came: u32, at_once: bool, now: impl FnOnce() -> u64) -> Verdict {
        let setting = self.setting();
        let held = sync::load(&self.held).saturating_add(came);
        if at_once || held >= setting.count.into() {
            self.release();
            return Verdict::Raise;
        }
        let now = now();
        let latest = now.saturating_add(setting.limit());
        let deadline = match sync::load(&self.deadline) {
            0 => latest,
            deadline => deadline.min(latest),
        };
        if deadline <= now {
            self.release();
            return Verdict::Raise;
        }
        sync::store(&self.deadline, deadline);
        sync::store(&self.held, held);
        sync::full_fence_at(Site::HoldFence);
        let alarm = sync::load(&self.alarm);
        let call = alarm <= now || alarm > deadline;
        if call {
            sync::store(&self.alarm, deadline);
        }
        Verdict::Hold { call }
    }

    /// No event is delayed any more.
    fn release(&self) {
        sync::store(&self.held, 0);
        sync::store(&self.deadline, 0);
    }

    /// Raises the event that the queue is armed for, delayed or not.
    #[must_use]
    pub fn fire(&self, queue: &Control) -> EventAction {
        self.release();
        let mut event_action = EventAction::None;
        queue.notify_unless(true, |_| false, || event_action = EventAction::Raise);
        event_action
    }

    /// The setting.
    pub fn setting(&self) -> Setting {
        Setting::from_word(sync::load(&self.setting))
    }

    /// How many completions a delayed event stands for, and when it has to be raised; `None` if no event is delayed.
    ///
    /// # Staleness
    /// Without the lock it may be out of date, or torn.
    pub fn delayed(&self) -> Option<(u32, u64)> {
        let deadline = sync::load(&self.deadline);
        (deadline != 0).then(|| (sync::load(&self.held), deadline))
    }

    /// When the service thread is to [check](Self::look) the deadline; 0 is never. May be read without the lock.
    pub fn alarm(&self) -> u64 {
        sync::load(&self.alarm)
    }

    /// For the service thread, once the time of the alarm has come: returns what to do about the delayed
    /// event, and sets the next alarm.
    #[must_use]
    pub fn look(&self, queue: &Control, now: u64) -> EventAction {
        match self.is_due(now) {
            true => self.fire(queue),
            false => EventAction::None,
        }
    }

    /// For the service thread that could not take the lock: true if an event may have to be raised. It will
    /// not check again before it is called.
    #[must_use]
    pub fn give_up(&self) -> bool {
        sync::store(&self.alarm, 0);
        sync::full_fence_at(Site::AlarmFence);
        sync::load(&self.deadline) != 0
    }

    fn is_due(&self, now: u64) -> bool {
        let deadline = sync::load(&self.deadline);
        let is_due = deadline != 0 && until(deadline, now) == 0;
        sync::store(&self.alarm, if is_due { 0 } else { deadline });
        is_due
    }
}

/// The time until a deadline in shared memory: 0 once it is over, and also if it is further ahead than a
/// producer would have set it.
pub const fn until(time: u64, now: u64) -> u64 {
    let left = time.saturating_sub(now);
    if left > LONGEST { 0 } else { left }
}

#[cfg(all(test, not(loom)))]
mod tests;
