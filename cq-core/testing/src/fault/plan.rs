//! The plan of an injector: faults, and when to inject them.

use cq_core::transport::CqKey;
use cq_core::wc::WcStatus;
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::post::WrError;
use heapless::Vec;

use super::{Dice, Occasion, When, Which};

/// How many rules a plan has at most.
const RULES: usize = 16;

/// A plan of faults, and when to inject them. The same seed and the same calls give the same faults.
///
/// # Panics
/// Each method that takes a [`When`] or a [`Which`], if the plan has 16 such faults already.
///
/// # Example
/// ```
/// use cq_core::cq::CompletionQueue;
/// use cq_core::transport::{CqKey, PollError};
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::fake::Script;
/// use cq_testing::fault::{FaultInjector, Faults, When};
///
/// let faults = Faults::seeded(7).fail(When::nth(2), WcStatus::RETRY_EXC_ERR);
/// let wcs = [1, 2, 3].map(|wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 5));
/// let script = Script::<4>::new(CqKey { index: 0, generation: 1 }).on_poll(Ok(&wcs));
/// let mut cq = CompletionQueue::new(FaultInjector::<_, 4>::new(&script, &faults));
/// let polled = cq.poll(&mut [Wc::default(); 4])?.iter().map(Wc::status).collect::<Vec<_>>();
/// assert_eq!(polled, [WcStatus::SUCCESS, WcStatus::RETRY_EXC_ERR, WcStatus::WR_FLUSH_ERR]);
/// # Ok::<(), PollError>(())
/// ```
#[must_use]
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

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Fail(WcStatus),
    Delay(u32),
    Reorder,
    RefuseSend(WrError),
    RefuseRecv(WrError),
    Event(CqKey),
    EventTwice,
    Async(AsyncEvent),
    AsyncTwice,
}

/// Faults of completions.
impl Faults {
    /// A plan without faults, with this seed.
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, rules: Vec::new(), capacity: None, alone: false }
    }

    /// Returns a successful completion with this status instead, which may be any number. The queue pair then counts as
    /// failed. Send and receive completions are treated alike.
    ///
    /// # Panics
    /// `status` is SUCCESS.
    #[track_caller]
    pub fn fail(self, which: impl Into<Which>, status: WcStatus) -> Self {
        assert!(status != WcStatus::SUCCESS, "SUCCESS is no failure");
        self.with(which, Fault::Fail(status))
    }

    /// Makes failures independent: later completions of the queue pair are not flushed. For devices whose requests do
    /// not depend on each other.
    pub const fn failing_alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Holds a completion back for this many polls, and with it the later completions of its queue pair. It looks like
    /// a queue pair that stalls.
    #[track_caller]
    pub fn delay(self, which: impl Into<Which>, polls: u32) -> Self {
        self.with(which, Fault::Delay(polls))
    }

    /// If several queue pairs have completions, returns the next completion of any of them instead of the oldest.
    #[track_caller]
    pub fn reorder(self, when: When) -> Self {
        self.with(when, Fault::Reorder)
    }

    /// Overruns the queue after it returned this many completions: all further ones are dropped.
    pub const fn overrun_after(mut self, completions: u64) -> Self {
        self.capacity = Some(completions);
        self
    }
}

/// Faults of requests.
impl Faults {
    /// Refuses a request for the send queue, and with it the rest of its list.
    #[track_caller]
    pub fn refuse_send(self, when: When, why: WrError) -> Self {
        self.with(when, Fault::RefuseSend(why))
    }

    /// Refuses a request for the receive queue, and with it the rest of its list.
    #[track_caller]
    pub fn refuse_recv(self, when: When, why: WrError) -> Self {
        self.with(when, Fault::RefuseRecv(why))
    }
}

/// Faults of events.
impl Faults {
    /// An empty channel returns an event with this key: a spurious event of an empty queue ([N5](cq_core::contract#n5)),
    /// or the event of an unknown queue. With [`When::always`] the channel is never empty.
    #[track_caller]
    pub fn spurious(self, when: When, key: CqKey) -> Self {
        self.with(when, Fault::Event(key))
    }

    /// Returns an event a second time.
    #[track_caller]
    pub fn duplicate(self, when: When) -> Self {
        self.with(when, Fault::EventTwice)
    }

    /// A device without an asynchronous event returns this one.
    #[track_caller]
    pub fn spurious_async(self, when: When, event: AsyncEvent) -> Self {
        self.with(when, Fault::Async(event))
    }

    /// Returns an asynchronous event a second time.
    #[track_caller]
    pub fn duplicate_async(self, when: When) -> Self {
        self.with(when, Fault::AsyncTwice)
    }

    #[track_caller]
    fn with(mut self, which: impl Into<Which>, fault: Fault) -> Self {
        let full = self.rules.push(Rule { occasion: Occasion::new(which), fault }).is_err();
        assert!(!full, "a plan holds {RULES} faults: put the others into another injector");
        self
    }
}

/// For the injector.
impl Faults {
    pub(super) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether to poll ahead of the consumer: completions may be held back, reordered or dropped.
    pub(super) fn looks_ahead(&self) -> bool {
        let holds = |rule: &Rule| matches!(rule.fault, Fault::Delay(_) | Fault::Reorder);
        self.capacity.is_some() || self.rules.iter().any(holds)
    }

    /// Counts an occasion of `qp` for every rule whose fault is `of` these. Returns the fault of the first rule that is
    /// due.
    pub(super) fn roll(
        &mut self,
        dice: &mut Dice,
        qp: Option<u32>,
        of: impl Fn(&Fault) -> bool,
    ) -> Option<Fault> {
        let mut comes = None;
        for rule in self.rules.iter_mut().filter(|rule| of(&rule.fault)) {
            if rule.occasion.comes(qp, dice) && comes.is_none() {
                comes = Some(rule.fault);
            }
        }
        comes
    }
}
