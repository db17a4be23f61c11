//! Events that are held back, to stand for several completions: a queue that is armed stays so until as many
//! have come as one event is to stand for, or the first of them has waited long enough.
//!
//! ```
//! use cq_core::queue::raw::Slot;
//! use cq_core::queue::{Control, OnChannel};
//! use cq_core::testing::raw_queue;
//! use cq_core::transport::{Arm, CqKey, Notify};
//! use transport_rxe_loop::protocol::moderation::{Alert, Moderation, News, Setting};
//!
//! let (queue, slots, moderation) = (Control::new(), [const { Slot::new() }; 4], Moderation::default());
//! assert_eq!(moderation.set(&queue, Setting { count: 3, period: 100 }), Alert::None);
//! let key = CqKey { index: 0, generation: 1 };
//! raw_queue(&queue, &slots, &[], 4)?.into_consumer(0, OnChannel::named(key)).arm(Notify::Next)?;
//!
//! let one = News { all: 1, ..News::default() };
//! assert_eq!(moderation.alert(&queue, one, || 5_000), Alert::Call); // until 105,000
//! assert_eq!(moderation.alert(&queue, one, || 6_000), Alert::None);
//! assert_eq!(moderation.alarm(), 105_000);
//! assert_eq!(moderation.look(&queue, 105_000), Alert::Raise);
//! assert_eq!(moderation.alert(&queue, one, || 106_000), Alert::None); // not armed any more
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Who does what
//! All words are for who holds the queue's lock, which producers of any process and the owner do. Whoever
//! has pushed and [finds](Moderation::alert) the queue armed raises the event, or leaves it to the next one, and
//! at last to the alarm of the owner's service thread, which [looks](Moderation::look).
//!
//! | held | deadline | state | left by |
//! |---|---|---|---|
//! | 0 | 0 | nothing is held back | a producer that holds an event back, to Held |
//! | n | when it is to be raised | Held: n completions came since the arm | a producer or the service thread that raises it; the owner that [sets](Moderation::set) |
//!
//! # The alarm
//! Who holds an event back must see to it that the service thread looks at the deadline, and that costs a
//! system call. So the alarm says when the thread will look again by itself: once for all events
//! that are held back and raised by their count until then. The producer sets it, under the lock, and calls the
//! thread after it; the thread moves it on to the next deadline, under the lock, when its time has come. It
//! may read it without: who changes it without calling leaves it as it is.
//!
//! A producer may die before it calls. Then whoever sweeps up raises the event (see [`fanin`](super::fanin)),
//! and an alarm whose time is over counts as none.
//!
//! # Time
//! In nanoseconds of a clock that all processes share, never 0. One that goes differently elsewhere makes
//! events come early: what lies further ahead than any period is over.

use cq_core::queue::Control;
use cq_core::transport::Notify;

use crate::sync::{self, AtomicU32, AtomicU64, Site};

/// The words. Any content is harmless, zeros are a queue that is not moderated.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Moderation {
    setting: AtomicU32,
    held: AtomicU32,
    deadline: AtomicU64,
    alarm: AtomicU64,
}

/// How events are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// For how many completions an event stands; 0 and 1 are no moderation.
    pub count: u16,
    /// How long one waits for them at most, in microseconds; 0 is [`NO_PERIOD`].
    pub period: u16,
}

/// How long an event waits whose period is 0, in nanoseconds: it may not wait for ever.
pub const NO_PERIOD: u64 = 10_000_000;

/// Longer than any event waits.
const LONGEST: u64 = u16::MAX as u64 * 1_000;

impl Setting {
    /// Whether any event is ever held back.
    #[must_use]
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

/// What was just pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// How many completions, stored or not.
    pub all: u32,
    /// How many of them are what a consumer waits for that armed for solicited ones.
    pub urgent: u32,
    /// Whether one is a failure, or was not stored: then nothing is held back.
    pub at_once: bool,
}

/// What is to be done about an event once the queue's lock is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// Nothing.
    None,
    /// To raise it.
    Raise,
    /// To call the owner's service thread, so that it looks at its alarm.
    Call,
}

/// What became of an event.
enum Verdict {
    Raise,
    Hold { call: bool },
}

impl Moderation {
    /// A new queue lies here.
    pub fn begin(&self) {
        sync::store(&self.setting, Setting::default().to_word());
        self.release();
        sync::store(&self.alarm, 0);
    }

    /// Moderates from now on in this way. An event that was held back is to be raised now.
    #[must_use]
    pub fn set(&self, queue: &Control, setting: Setting) -> Alert {
        sync::store(&self.setting, setting.to_word());
        match sync::load(&self.held) {
            0 => Alert::None,
            _ => self.fire(queue),
        }
    }

    /// Something was pushed to the queue, if it is one that has a channel.
    #[must_use]
    pub fn alert(&self, queue: &Control, news: News, now: impl FnOnce() -> u64) -> Alert {
        let (mut call, mut raise) = (false, false);
        let holds = |armed| {
            let came = match armed {
                Notify::Solicited => news.urgent,
                Notify::Next => news.all,
            };
            match self.add(came, news.at_once, now) {
                Verdict::Raise => false,
                Verdict::Hold { call: anew } => {
                    call = anew;
                    true
                }
            }
        };
        queue.notify_unless(news.urgent > 0 || news.at_once, holds, || raise = true);
        match (raise, call) {
            (true, _) => Alert::Raise,
            (false, true) => Alert::Call,
            (false, false) => Alert::None,
        }
    }

    /// So many completions came of those that the queue is armed for.
    fn add(&self, came: u32, at_once: bool, now: impl FnOnce() -> u64) -> Verdict {
        let setting = Setting::from_word(sync::load(&self.setting));
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

    /// Nothing is held back any more.
    fn release(&self) {
        sync::store(&self.held, 0);
        sync::store(&self.deadline, 0);
    }

    /// Raises what is held back.
    fn fire(&self, queue: &Control) -> Alert {
        self.release();
        let mut alert = Alert::None;
        queue.notify_unless(true, |_| false, || alert = Alert::Raise);
        alert
    }

    /// When the service thread is to [look](Self::look); 0 is never. To be read without the lock.
    #[must_use]
    pub fn alarm(&self) -> u64 {
        sync::load(&self.alarm)
    }

    /// For the service thread, once the time of the alarm has come: what is to be done about the event that is
    /// held back. Sets the next alarm.
    #[must_use]
    pub fn look(&self, queue: &Control, now: u64) -> Alert {
        match self.is_due(now) {
            true => self.fire(queue),
            false => Alert::None,
        }
    }

    /// For the service thread, where it can't have the lock: true if an event may have to be raised. It will not
    /// look again before it is called.
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

/// How long it is until a time that stands in shared memory; nothing, once it is over, and where it is none
/// that a producer would have written.
#[must_use]
pub const fn until(time: u64, now: u64) -> u64 {
    let left = time.saturating_sub(now);
    if left > LONGEST { 0 } else { left }
}

#[cfg(all(test, not(loom)))]
mod tests;
