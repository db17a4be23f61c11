//! The test kit on a device whose queue, arm and events are plain values: what it accepts, and the rule that it names for
//! each planted fault.

use std::collections::VecDeque;

use cq_testing::rules::{self, EntryOf, EventFixture, Fixture, Kind, Ran, RuleError};

use super::*;

/// An earlier queue of the same index.
const EARLIER: CqKey = CqKey { generation: 8, ..KEY };
const CAPACITY: usize = 48;

/// Declares the faults, each with the rule that it breaks.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident: $rule:literal,)+) => {
        /// What is wrong with the device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Fault {
            None,
            $($(#[$doc])* $name,)+
        }

        const FAULTS: &[(Fault, &str)] = &[$((Fault::$name, $rule)),+];

        thread_local! {
            /// That of the fixtures which are made next.
            static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
        }

        /// Each of them makes a check fail that names the rule.
        fn each_is_found(check: fn() -> Result<Ran, RuleError>) {
            for &(fault, rule) in FAULTS {
                assert_eq!(named(fault, check), Some(rule), "{fault:?}");
            }
        }

        /// The rule that is named for this fault.
        fn named(fault: Fault, check: fn() -> Result<Ran, RuleError>) -> Option<&'static str> {
            FAULT.set(fault);
            let found = check();
            FAULT.set(Fault::None);
            found.err().map(|broken| broken.rule)
        }
    };
}
pub(crate) use faults;

faults! {
    YoungestFirst: "P1",
    /// A poll reorders what comes behind the sixteenth.
    ReordersLargeBatches: "P1",
    Changes: "P1",
    KeepsOne: "P1",
    Twice: "P2",
    EmptyIsAnError: "P3",
    FailureIsAnError: "P3",
    TouchesTheRest: "P4",
    NothingIsAnError: "P6",
    NothingTakesOne: "P6",
    ClaimsMore: "P7",
    RaisesUnarmed: "N1",
    NeverDisarms: "N1",
    NeverRaises: "N1",
    RaisesAtTheArm: "N1",
    ArmsOnce: "N1",
    ForgetsTheFifthArm: "N6",
    /// An arm while an event is unread is forgotten.
    ForgetsAnArm: "N6",
    NeverMayHaveMissed: "N2",
    SolicitedWakesForAll: "N3",
    SolicitedWakesForNone: "N3",
    FailureWakesNobody: "N3",
    /// A failed receive raises no event for solicited completions.
    FailedReceiveWakesNobody: "N3",
    Weakens: "N4",
    NeverStrengthens: "N4",
    PollTakesTheEvent: "N5",
    /// The same after an arm for solicited completions alone.
    PollTakesTheSolicitedEvent: "N5",
    /// A poll that returns something takes an arm for any completion back.
    PollDisarms: "N6",
    /// Taking an event disarms the queue, also if it was armed anew.
    TakingDisarms: "N6",
    /// Only a completion in an empty queue raises the event.
    RaisesAtTheEdge: "N6",
    /// The same for solicited completions alone.
    RaisesSolicitedAtTheEdge: "N6",
    WrongKey: "N8",
    ServesNobody: "N8",
    NotAcknowledged: "N7",
}

thread_local! {
    /// The length of every message.
    static BYTES: Cell<u32> = const { Cell::new(0) };
}

/// What the device and its driver share.
#[derive(Default)]
struct State {
    queue: VecDeque<Wc>,
    armed: Option<Notify>,
    events: VecDeque<CqKey>,
    /// What the last event was raised for.
    raised: Option<Notify>,
    arms: u32,
    /// The last that was polled, and the first arm since.
    polled: Option<Wc>,
    first_arm: Option<Notify>,
}

impl State {
    fn raise(&mut self) {
        match FAULT.get() {
            Fault::NeverRaises => {}
            Fault::WrongKey => self.events.push_back(EARLIER),
            _ => self.events.push_back(KEY),
        }
    }

    /// Whether the arm is for this completion, the first in the queue or not.
    fn fires(&self, kind: Kind, is_first: bool) -> bool {
        let fault = FAULT.get();
        let is_urgent = || kind.entry(0).is_urgent();
        let has_failed = kind.wc(0).status() != WcStatus::SUCCESS;
        match (self.armed, fault) {
            (None, _) => fault == Fault::RaisesUnarmed,
            (Some(_), Fault::RaisesAtTheEdge) if !is_first => false,
            (Some(_), Fault::FailureWakesNobody) if has_failed => false,
            (Some(Notify::Next), _) => true,
            (Some(_), Fault::RaisesSolicitedAtTheEdge) if !is_first => false,
            (Some(_), Fault::FailedReceiveWakesNobody) if kind == Kind::FailedReceive => false,
            (Some(_), Fault::SolicitedWakesForNone) => has_failed,
            (Some(_), _) => is_urgent(),
        }
    }
}

#[derive(Default)]
struct Device(State);

impl PollCq for Device {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let (state, fault, capacity) = (&mut self.0, FAULT.get(), out.len());
        if fault == Fault::Twice && state.queue.is_empty() {
            state.queue.extend(state.polled.take());
        }
        let mut count = capacity.min(state.queue.len());
        let has_failed = |wc: &Wc| wc.status() != WcStatus::SUCCESS;
        match fault {
            Fault::NothingIsAnError if capacity == 0 => return Err(PollError::Device(22)),
            Fault::NothingTakesOne if capacity == 0 => _ = state.queue.pop_front(),
            Fault::KeepsOne => count = count.min(1),
            Fault::FailureIsAnError if state.queue.range(..count).any(has_failed) => {
                return Err(PollError::Device(5));
            }
            Fault::EmptyIsAnError if count == 0 && capacity > 0 => {
                return Err(PollError::Device(11));
            }
            _ => {}
        }
        out.iter_mut().zip(state.queue.drain(..count)).for_each(|(to, wc)| *to = wc);
        state.polled = out[..count].last().copied();
        match fault {
            Fault::YoungestFirst => out[..count].reverse(),
            Fault::ReordersLargeBatches if count > 16 => out[16..count].reverse(),
            Fault::Changes if count > 0 => out[0] = out[0].with_byte_len(1),
            Fault::TouchesTheRest => out[count..].fill(Wc::default()),
            Fault::ClaimsMore if count == 1 && capacity == 1 => return Ok(2),
            Fault::PollTakesTheEvent => state.events.clear(),
            Fault::PollTakesTheSolicitedEvent if state.raised == Some(Notify::Solicited) => {
                state.events.clear();
            }
            Fault::PollDisarms if count > 0 => {
                _ = state.armed.take_if(|on| *on == Notify::Next);
            }
            Fault::NeverStrengthens if count > 0 => state.first_arm = None,
            _ => {}
        }
        Ok(count)
    }
}

impl Arm for Device {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let state = &mut self.0;
        state.arms += 1;
        let first = *state.first_arm.get_or_insert(on);
        match FAULT.get() {
            Fault::ArmsOnce if state.arms > 1 => {}
            Fault::ForgetsTheFifthArm if state.arms == 5 => {}
            Fault::ForgetsAnArm if !state.events.is_empty() => {}
            Fault::SolicitedWakesForAll => state.armed = Some(Notify::Next),
            Fault::Weakens => state.armed = Some(on),
            Fault::NeverStrengthens => state.armed = Some(first),
            _ => state.armed = state.armed.max(Some(on)),
        }
        if FAULT.get() == Fault::RaisesAtTheArm {
            state.raise();
        }
        let is_empty = state.queue.is_empty() || FAULT.get() == Fault::NeverMayHaveMissed;
        Ok(if is_empty { Armed::Armed } else { Armed::MayHaveMissed })
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

impl Events for Device {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let state = &mut self.0;
        if FAULT.get() == Fault::NotAcknowledged {
            return Ok(state.events.front().copied());
        }
        let event = state.events.pop_front();
        if FAULT.get() == Fault::TakingDisarms && event.is_some() {
            state.armed = None;
        }
        Ok(event)
    }

    fn serves(&self, _: CqKey) -> bool {
        FAULT.get() != Fault::ServesNobody
    }
}

impl Fixture for Device {
    type Queue = Self;
    const CAPACITY: usize = CAPACITY;

    fn new() -> Self {
        Self::default()
    }

    fn queue(&mut self) -> &mut Self {
        self
    }

    fn complete(&mut self, kind: Kind, wr_id: u64) {
        let wc = self.expected(kind, wr_id);
        let state = &mut self.0;
        let fires = state.fires(kind, state.queue.is_empty());
        state.queue.push_back(wc);
        if fires {
            state.raise();
            state.raised = state.armed;
            state.armed.take_if(|_| FAULT.get() != Fault::NeverDisarms);
        }
    }

    fn expected(&self, kind: Kind, wr_id: u64) -> Wc {
        kind.wc(wr_id).with_byte_len(BYTES.get())
    }
}

impl EventFixture for Device {
    type Channel = Self;

    fn channel(&mut self) -> &mut Self {
        self
    }
}

/// The same device, but no completion of it is solicited, or fails.
struct Lucky(Device);

impl Fixture for Lucky {
    type Queue = Device;
    const CAPACITY: usize = CAPACITY;
    const KINDS: &'static [Kind] = &[Kind::Send];

    fn new() -> Self {
        Self(Device::new())
    }

    fn queue(&mut self) -> &mut Device {
        &mut self.0
    }

    fn complete(&mut self, kind: Kind, wr_id: u64) {
        assert_eq!(kind, Kind::Send);
        self.0.complete(kind, wr_id);
    }

    fn expected(&self, kind: Kind, wr_id: u64) -> Wc {
        self.0.expected(kind, wr_id)
    }
}

impl EventFixture for Lucky {
    type Channel = Device;

    fn channel(&mut self) -> &mut Device {
        &mut self.0
    }
}

/// A ring of words without events, whose device numbers them on its own. The upper bits of a word are undefined.
#[derive(Default)]
struct Words {
    ring: [u16; 4],
    completed: usize,
    polled: usize,
}

impl PollCq for Words {
    type Entry = u16;

    fn poll_into(&mut self, out: &mut [u16]) -> Result<usize, PollError> {
        let count = out.len().min(self.completed - self.polled);
        for word in &mut out[..count] {
            *word = self.ring[self.polled % 4];
            self.polled += 1;
        }
        Ok(count)
    }
}

impl Fixture for Words {
    type Queue = Self;
    const CAPACITY: usize = 4;
    const KINDS: &'static [Kind] = &[Kind::Send];

    fn new() -> Self {
        Self::default()
    }

    fn queue(&mut self) -> &mut Self {
        self
    }

    fn complete(&mut self, _: Kind, _: u64) {
        self.ring[self.completed % 4] = self.completed as u16 ^ 0xa000;
        self.completed += 1;
    }

    fn expected(&self, _: Kind, number: u64) -> EntryOf<Self> {
        number as u16
    }

    fn is_expected(&self, word: &u16, kind: Kind, number: u64) -> bool {
        word << 4 == self.expected(kind, number) << 4
    }
}

#[test]
fn a_device_that_fills_in_more_passes() {
    for bytes in [0, 64] {
        BYTES.set(bytes);
        let ran = Ran { passed: 16, not_applicable: 0 };
        assert_eq!(rules::run(rules::all::<Device>()), Ok(ran));
    }
}

#[test]
fn a_device_without_events_and_completions_of_its_own_passes() {
    let ran = Ran { passed: 7, not_applicable: 0 };
    assert_eq!(rules::run(rules::polling::<Words>()), Ok(ran));
}

#[test]
fn checks_of_completions_that_a_device_does_not_have_are_not_applicable() {
    let ran = rules::run(rules::all::<Lucky>()).unwrap();
    assert_eq!(ran.to_string(), "13 checks passed, 3 not applicable");
    let left: Vec<_> =
        rules::all::<Lucky>().filter(|check| check.run.is_none()).map(|check| check.name).collect();
    assert_eq!(left, ["n03_solicited", "n03_failure", "n03_failed_receive"]);
}

#[test]
fn each_planted_fault_is_found_by_the_rule_that_it_breaks() {
    each_is_found(|| rules::run(rules::all::<Device>()));
}

#[test]
fn each_planted_fault_of_polling_is_found_without_events() {
    for &(fault, rule) in FAULTS.iter().filter(|(_, rule)| rule.starts_with('P')) {
        let found = named(fault, || rules::run(rules::polling::<Device>()));
        assert_eq!(found, Some(rule), "{fault:?}");
    }
}

/// All but those that concern solicited completions and failures alone.
#[test]
fn planted_faults_are_found_with_one_kind_of_completion() {
    let alone = [
        Fault::FailureIsAnError,
        Fault::SolicitedWakesForNone,
        Fault::FailureWakesNobody,
        Fault::FailedReceiveWakesNobody,
        Fault::PollTakesTheSolicitedEvent,
        Fault::RaisesSolicitedAtTheEdge,
    ];
    for &(fault, rule) in FAULTS {
        let found = named(fault, || rules::run(rules::all::<Lucky>()));
        assert_eq!(found, (!alone.contains(&fault)).then_some(rule), "{fault:?}");
    }
}
