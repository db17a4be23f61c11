//! The checks of software queues on one that is plain values: what they accept, and the rule that they name for each planted
//! fault.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use cq_core::entry::Entry;
use cq_testing::entries::Bytes16;
use cq_testing::rules::{
    self, Consume, InPlace, Kind, Numbered, Produce, Ran, RuleError, Software, Taken,
};

use super::kit::faults;
use super::*;

const CAPACITY: usize = 6;

faults! {
    SaysLess: "O1",
    OverrunsEarly: "O1",
    LosesOneOfMany: "O1",
    /// The slots of polled entries are free once the queue is empty.
    ReleasesWhenEmpty: "O7",
    OverrunLosesWhatIsStored: "O3",
    OverrunComesFirst: "O3",
    ForgetsTheOverrun: "O3",
    CountsABatchAsOne: "O3",
    StoresAfterTheOverrun: "O3",
    FailureHidesTheOverrun: "O3",
    OverrunWakesNobody: "O5",
    OverrunWakesForAnyAlone: "O5",
    OverrunWakesTwice: "O5",
    FullOverruns: "S1",
    IsNeverFull: "S1",
    StoresWhatItRefuses: "S1",
    RefusalRaises: "S1",
    AllOrNothing: "S1",
    HidesTheRest: "S1",
    AnEventForEach: "S1",
    NothingDoesNotFit: "S1",
    CloseLosesWhatIsStored: "S2",
    CloseWakesNobody: "S2",
    NeverCloses: "S2",
    StoresForNobody: "S3",
    NobodyIsGone: "S3",
    AlwaysGone: "S3",
    AbandonedIsOverrun: "S3",
    FailureLosesWhatIsStored: "S4",
    FailureWakesWhoIsArmed: "S4",
    StoresAfterTheFailure: "S4",
    CutsLargeNumbers: "S8",
    LargeNumbersAreNotUrgent: "S8",
    /// Fewer are taken in place, and all slots are released.
    ReleasesAll: "S7",
    ReleasesWhatIsLeaked: "S7",
    KeepsWhatIsDropped: "S7",
    ShowsTheSecond: "S7",
}

/// What the sides share.
#[derive(Default)]
struct State {
    queue: VecDeque<Bytes16>,
    /// Polled, and not released.
    kept: usize,
    armed: Option<Notify>,
    events: u32,
    dropped: u32,
    end: Option<PollError>,
    is_abandoned: bool,
}

impl State {
    fn fire(&mut self, is_urgent: bool) {
        let fires = |on: &mut Notify| is_urgent || *on == Notify::Next;
        self.events += u32::from(self.armed.take_if(fires).is_some());
    }

    fn ended(&mut self, error: PollError, loses: Fault, wakes: bool) {
        self.end = Some(error);
        if FAULT.get() == loses {
            self.queue.clear();
        }
        if wakes {
            self.fire(true);
        }
    }

    fn refuses(&self) -> bool {
        match self.end {
            _ if self.is_abandoned => FAULT.get() != Fault::StoresForNobody,
            Some(PollError::Overrun { .. }) => FAULT.get() != Fault::StoresAfterTheOverrun,
            Some(PollError::Failed) => FAULT.get() != Fault::StoresAfterTheFailure,
            end => end.is_some(),
        }
    }

    /// Stores the first ones, and says how many.
    fn store(&mut self, batch: &[Bytes16]) -> usize {
        let slots = match FAULT.get() {
            Fault::OverrunsEarly => CAPACITY - 1,
            Fault::IsNeverFull => 1000,
            _ => CAPACITY,
        };
        let free = slots.saturating_sub(self.queue.len() + self.kept);
        let count = if self.refuses() { 0 } else { free.min(batch.len()) };
        let is_large = |entry: &Bytes16| entry.number() >> 40 != 0;
        for &entry in &batch[..count] {
            let cut = FAULT.get() == Fault::CutsLargeNumbers && is_large(&entry);
            self.queue.push_back(if cut { Bytes16::polled(Kind::Send, 0) } else { entry });
            if FAULT.get() == Fault::LosesOneOfMany && entry.number() == 30 {
                self.queue.pop_back();
            }
            if FAULT.get() == Fault::AnEventForEach {
                self.events += u32::from(count > 1);
            }
        }
        let knows = |entry: &Bytes16| {
            Entry::is_urgent(entry)
                && (FAULT.get() != Fault::LargeNumbersAreNotUrgent || !is_large(entry))
        };
        if count > 0 {
            self.fire(batch[..count].iter().any(knows));
        }
        count
    }

    fn overrun(&mut self, lost: u32) -> DroppedError {
        let lost = if FAULT.get() == Fault::CountsABatchAsOne { 1 } else { lost };
        self.dropped += lost;
        let wakes = match FAULT.get() {
            Fault::OverrunWakesNobody => false,
            Fault::OverrunWakesForAnyAlone => self.armed == Some(Notify::Next),
            _ => true,
        };
        self.events += u32::from(FAULT.get() == Fault::OverrunWakesTwice);
        let end = match self.how() {
            Some(end) if !matches!(end, End::Overrun { .. }) => end,
            _ => {
                let error = PollError::Overrun { dropped: Some(self.dropped) };
                self.ended(error, Fault::OverrunLosesWhatIsStored, wakes);
                End::Overrun { dropped: self.dropped }
            }
        };
        let is_overrun = FAULT.get() == Fault::AbandonedIsOverrun && end == End::Abandoned;
        DroppedError { lost, end: if is_overrun { End::Overrun { dropped: lost } } else { end } }
    }

    fn how(&self) -> Option<End> {
        match self.end {
            _ if self.is_abandoned => Some(End::Abandoned),
            Some(PollError::Overrun { dropped }) => {
                Some(End::Overrun { dropped: dropped.unwrap() })
            }
            Some(PollError::Failed) => Some(End::Failed),
            Some(_) => Some(End::Closed),
            None => None,
        }
    }

    fn why_ended(&self) -> PushError {
        PushError::Ended(self.how().unwrap())
    }
}

type Shared = Rc<RefCell<State>>;

struct Pushes(Shared);
struct Polls(Shared);
struct Channel(Shared);

impl Produce<Bytes16> for Pushes {
    fn push_or_overrun(&mut self, entry: &Bytes16) -> Result<(), DroppedError> {
        self.push_batch_or_overrun(&[*entry])
    }

    fn push_batch_or_overrun(&mut self, batch: &[Bytes16]) -> Result<(), DroppedError> {
        let mut state = self.0.borrow_mut();
        match batch.len() - state.store(batch) {
            0 => Ok(()),
            lost => Err(state.overrun(lost as u32)),
        }
    }

    fn push(&mut self, entry: &Bytes16) -> Result<(), PushError> {
        self.push_batch(&[*entry]).map_err(|error| error.why)
    }

    fn push_batch(&mut self, batch: &[Bytes16]) -> Result<(), BatchError> {
        let (mut state, fault) = (self.0.borrow_mut(), FAULT.get());
        let free = CAPACITY.saturating_sub(state.queue.len() + state.kept);
        let is_whole = fault != Fault::AllOrNothing || batch.len() <= free;
        let stored = if is_whole { state.store(batch) } else { 0 };
        let why = match stored {
            0 if batch.is_empty() && fault == Fault::NothingDoesNotFit => PushError::Full,
            count if count == batch.len() => return Ok(()),
            _ if state.refuses() => state.why_ended(),
            0 if fault == Fault::FullOverruns => {
                state.overrun(1);
                state.why_ended()
            }
            0 => {
                state.events += u32::from(fault == Fault::RefusalRaises);
                if fault == Fault::StoresWhatItRefuses {
                    state.queue.extend(batch);
                }
                PushError::Full
            }
            _ if fault == Fault::HidesTheRest => return Ok(()),
            _ => PushError::Full,
        };
        Err(BatchError { stored, why })
    }

    fn end(&self) -> Option<End> {
        match FAULT.get() {
            Fault::NobodyIsGone if self.0.borrow().is_abandoned => None,
            Fault::AlwaysGone => Some(End::Abandoned),
            _ => self.0.borrow().how(),
        }
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        if state.end.is_none() && FAULT.get() != Fault::NeverCloses {
            let wakes = FAULT.get() != Fault::CloseWakesNobody;
            state.ended(PollError::Closed, Fault::CloseLosesWhatIsStored, wakes);
        }
    }
}

impl PollCq for Polls {
    type Entry = Bytes16;

    fn poll_into(&mut self, out: &mut [Bytes16]) -> Result<usize, PollError> {
        let (mut state, fault) = (self.0.borrow_mut(), FAULT.get());
        let count = out.len().min(state.queue.len());
        match state.end {
            Some(error @ PollError::Overrun { .. }) if fault == Fault::OverrunComesFirst => {
                return Err(error);
            }
            Some(error) if count == 0 && !out.is_empty() => {
                if fault == Fault::ForgetsTheOverrun {
                    state.end = None;
                }
                return Err(error);
            }
            _ => {}
        }
        out.iter_mut().zip(state.queue.drain(..count)).for_each(|(to, entry)| *to = entry);
        let keeps = fault == Fault::ReleasesWhenEmpty && !state.queue.is_empty();
        state.kept = if keeps { state.kept + count } else { 0 };
        Ok(count)
    }
}

impl Arm for Polls {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let mut state = self.0.borrow_mut();
        state.armed = state.armed.max(Some(on));
        let is_quiet = state.queue.is_empty() && state.end.is_none();
        Ok(if is_quiet { Armed::Armed } else { Armed::MayHaveMissed })
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

impl Capacity for Polls {
    fn capacity(&self) -> usize {
        CAPACITY - usize::from(FAULT.get() == Fault::SaysLess)
    }
}

impl Consume for Polls {
    fn fail(&mut self) {
        let mut state = self.0.borrow_mut();
        let wakes = FAULT.get() != Fault::FailureWakesWhoIsArmed || state.armed.is_some();
        let has_overrun = matches!(state.end, Some(PollError::Overrun { .. }));
        if !has_overrun || FAULT.get() == Fault::FailureHidesTheOverrun {
            state.ended(PollError::Failed, Fault::FailureLosesWhatIsStored, false);
        }
        state.events += u32::from(wakes);
    }
}

impl InPlace for Polls {
    fn take(
        &mut self,
        most: usize,
        taken: Taken,
        each: impl FnMut(&Bytes16),
    ) -> Result<usize, PollError> {
        let (mut state, fault) = (self.0.borrow_mut(), FAULT.get());
        let count = most.min(state.queue.len());
        let skipped = usize::from(fault == Fault::ShowsTheSecond);
        state.queue.iter().skip(skipped).take(count).for_each(each);
        let released = match (taken, fault) {
            (Taken::First(_), Fault::ReleasesAll) => count,
            (Taken::Leaked, Fault::ReleasesWhatIsLeaked) => count,
            (Taken::All, Fault::KeepsWhatIsDropped) | (Taken::Leaked, _) => 0,
            (Taken::First(first), _) => first.min(count),
            (Taken::All, _) => count,
        };
        state.queue.drain(..released);
        Ok(count)
    }
}

impl Drop for Polls {
    fn drop(&mut self) {
        self.0.borrow_mut().is_abandoned = true;
    }
}

impl Events for Channel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let mut state = self.0.borrow_mut();
        let left = state.events.checked_sub(1);
        state.events = left.unwrap_or(0);
        Ok(left.map(|_| KEY))
    }
}

/// The queue.
struct Plain;

impl Software for Plain {
    type Entry = Bytes16;
    type Producer = Pushes;
    type Consumer = Polls;
    type Channel = Channel;
    const CAPACITY: usize = CAPACITY;

    fn new() -> (Pushes, Polls, Channel) {
        let state = Shared::default();
        (Pushes(state.clone()), Polls(state.clone()), Channel(state))
    }
}

fn check() -> Result<Ran, RuleError> {
    rules::run(rules::in_place::<Plain>())
}

#[test]
fn a_queue_of_plain_values_passes() {
    assert_eq!(check(), Ok(Ran { passed: 26, not_applicable: 0 }));
}

#[test]
fn each_planted_fault_is_found_by_the_rule_that_it_breaks() {
    each_is_found(check);
}
