//! What is to go wrong, and when: the faults of an injector, seeded.

use heapless::Vec;

use super::when::{Dice, Occasion, When, Which};
use crate::async_event::AsyncEvent;
use crate::transport::{CqKey, Refused};
use crate::wc::WcStatus;

/// Rules that a plan has at most.
const RULES: usize = 16;

/// What is to go wrong, and when. The same seed and the same calls give the same faults.
///
/// # Panics
/// Each method that adds a fault, when there are 16 already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    seed: u64,
    rules: Vec<Rule, RULES>,
    pub(super) capacity: Option<u64>,
    pub(super) alone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    occasion: Occasion,
    fault: Fault,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Fail(WcStatus),
    Delay(u32),
    Reorder,
    RefuseSend(Refused),
    RefuseRecv(Refused),
    Event(CqKey),
    EventTwice,
    Async(AsyncEvent),
    AsyncTwice,
}

/// Completions.
impl Faults {
    /// None, with this seed for the dice.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, rules: Vec::new(), capacity: None, alone: false }
    }

    /// A completion that succeeded comes with this status, any number, instead, and the queue pair counts as
    /// failed. Which of its two queues the completion is of plays no part.
    ///
    /// # Panics
    /// SUCCESS is no failure.
    #[must_use]
    #[track_caller]
    pub fn fail(self, which: impl Into<Which>, status: WcStatus) -> Self {
        assert!(status != WcStatus::SUCCESS, "SUCCESS is no failure");
        self.with(which, Fault::Fail(status))
    }

    /// A failure stands alone: what comes behind it comes as it is, not flushed. For devices whose requests
    /// do not depend on each other.
    #[must_use]
    pub const fn failing_alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// A completion is held back, and with it those of its queue pair that come after it: so many polls do
    /// not find it. A queue pair that stops for a while looks like this.
    #[must_use]
    #[track_caller]
    pub fn delay(self, which: impl Into<Which>, polls: u32) -> Self {
        self.with(which, Fault::Delay(polls))
    }

    /// Where completions of several queue pairs are there, any of them is the next instead of the first.
    #[must_use]
    #[track_caller]
    pub fn reorder(self, when: When) -> Self {
        self.with(when, Fault::Reorder)
    }

    /// The queue overruns once it has handed out so many: the one after them is dropped, with all that come.
    #[must_use]
    pub const fn overrun_after(mut self, completions: u64) -> Self {
        self.capacity = Some(completions);
        self
    }
}

/// Requests.
impl Faults {
    /// A request for the send queue is refused, and with it those that stand behind it in its list.
    #[must_use]
    #[track_caller]
    pub fn refuse_send(self, when: When, why: Refused) -> Self {
        self.with(when, Fault::RefuseSend(why))
    }

    /// A request for the receive queue is refused, and with it those that stand behind it in its list.
    #[must_use]
    #[track_caller]
    pub fn refuse_recv(self, when: When, why: Refused) -> Self {
        self.with(when, Fault::RefuseRecv(why))
    }
}

/// Events.
impl Faults {
    /// A channel that has no event gives this one: for a queue in which there is nothing (N5), or for one
    /// that nobody knows. `When::always` would never let anybody sleep.
    #[must_use]
    #[track_caller]
    pub fn spurious(self, when: When, key: CqKey) -> Self {
        self.with(when, Fault::Event(key))
    }

    /// An event comes a second time.
    #[must_use]
    #[track_caller]
    pub fn duplicate(self, when: When) -> Self {
        self.with(when, Fault::EventTwice)
    }

    /// A device that has no asynchronous event gives this one.
    #[must_use]
    #[track_caller]
    pub fn spurious_async(self, when: When, event: AsyncEvent) -> Self {
        self.with(when, Fault::Async(event))
    }

    /// An asynchronous event comes a second time.
    #[must_use]
    #[track_caller]
    pub fn duplicate_async(self, when: When) -> Self {
        self.with(when, Fault::AsyncTwice)
    }

    #[track_caller]
    fn with(mut self, which: impl Into<Which>, fault: Fault) -> Self {
        let full = self.rules.push(Rule { occasion: Occasion::new(which), fault }).is_err();
        assert!(!full, "a plan has room for {RULES} faults: put the others into another injector");
        self
    }
}

/// As an injector goes by them.
impl Faults {
    pub(super) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether completions may leave in another order than they came, or not at all: it helps to take them
    /// before they are asked for.
    pub(super) fn looks_ahead(&self) -> bool {
        let holds = |rule: &Rule| matches!(rule.fault, Fault::Delay(_) | Fault::Reorder);
        self.capacity.is_some() || self.rules.iter().any(holds)
    }

    /// Something of `qp` happens, which counts for every rule of the kind that `of` knows: what the first of
    /// those has for it whose time has come.
    pub(super) fn roll<T>(
        &mut self,
        dice: &mut Dice,
        qp: Option<u32>,
        of: impl Fn(Fault) -> Option<T>,
    ) -> Option<T> {
        let mut comes = None;
        for rule in &mut self.rules {
            let Some(fault) = of(rule.fault) else { continue };
            if rule.occasion.comes(qp, dice) && comes.is_none() {
                comes = Some(fault);
            }
        }
        comes
    }
}
