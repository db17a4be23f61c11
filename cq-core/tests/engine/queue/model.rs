//! A queue of each kind, with completions and with other entries, against a model of one: whatever is pushed, polled and
//! armed, both say the same (P1–P4, P6, O1, O3, O5, N1–N4, N6, S1–S4).

use std::collections::VecDeque;
use std::mem;

use cq_core::entry::Entry;
use cq_testing::entries::{Bytes4, Bytes16};
use cq_testing::rules::{self, Numbered};

use super::device::{App, Device, Sides, with_each, with_each_of};
use super::*;

const CAPACITY: usize = 4;

/// What completes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Receive,
    Send,
    Failure,
}

#[derive(Clone, Debug)]
enum Step {
    /// Pushes completions, each SOLICITED or not: alone or as a batch, if `tries` as far as there is room.
    Push {
        batch: Vec<(Kind, bool)>,
        is_alone: bool,
        tries: bool,
    },
    Poll(usize),
    Arm(Notify),
    Fail,
}

/// A queue of so many slots, of which its consumer may keep some for a while.
pub struct Model<T = Tagged> {
    slots: usize,
    /// Whether it is what a consumer waits for that armed for solicited completions (N3).
    is_urgent: fn(&T) -> bool,
    pub unpolled: VecDeque<T>,
    /// How many slots were polled and not given back.
    pub unreleased: usize,
    /// How many were dropped when it had not ended otherwise.
    dropped: u32,
    is_failed: bool,
    is_closed: bool,
    is_abandoned: bool,
    /// Whether the consumer has raised the event of a failure, which it does once.
    has_raised: bool,
    armed: Option<Notify>,
    events: u32,
}

impl<T: Copy> Model<T> {
    pub fn new(slots: usize, is_urgent: fn(&T) -> bool) -> Self {
        Self {
            slots,
            is_urgent,
            unpolled: VecDeque::new(),
            unreleased: 0,
            dropped: 0,
            is_failed: false,
            is_closed: false,
            is_abandoned: false,
            has_raised: false,
            armed: None,
            events: 0,
        }
    }

    pub fn end(&self) -> Option<End> {
        match *self {
            Self { is_abandoned: true, .. } => Some(End::Abandoned),
            Self { is_failed: true, .. } => Some(End::Failed),
            Self { is_closed: true, .. } => Some(End::Closed),
            Self { dropped: 1.., .. } => Some(End::Overrun { dropped: self.dropped }),
            _ => None,
        }
    }

    fn has_ended(&self) -> bool {
        self.end().is_some()
    }

    fn fire(&mut self, is_urgent: bool) {
        let fires = |on: &mut Notify| is_urgent || *on == Notify::Next;
        self.events += u32::from(self.armed.take_if(fires).is_some());
    }

    /// Stores the first ones; says how many.
    fn store(&mut self, batch: &[T]) -> usize {
        let free = self.slots - self.unpolled.len() - self.unreleased;
        let stored = &batch[..if self.has_ended() { 0 } else { free.min(batch.len()) }];
        self.unpolled.extend(stored);
        if !stored.is_empty() {
            self.fire(stored.iter().any(self.is_urgent));
        }
        stored.len()
    }

    /// A queue that has ended stays as it ended.
    pub fn fail(&mut self) {
        self.is_failed |= self.end().is_none();
        self.events += u32::from(!mem::replace(&mut self.has_raised, true));
    }

    pub fn push_or_overrun(&mut self, batch: &[T]) -> Result<(), DroppedError> {
        let lost = (batch.len() - self.store(batch)) as u32;
        if lost == 0 {
            return Ok(());
        }
        if matches!(self.end(), None | Some(End::Overrun { .. })) {
            self.dropped += lost;
        }
        self.fire(true);
        Err(DroppedError { lost, end: self.end().unwrap() })
    }

    pub fn push(&mut self, batch: &[T]) -> Result<(), BatchError> {
        match self.store(batch) {
            stored if stored == batch.len() => Ok(()),
            stored => {
                let why = self.end().map_or(PushError::Full, PushError::Ended);
                Err(BatchError { stored, why })
            }
        }
    }

    pub fn poll(&mut self, capacity: usize) -> Result<Vec<T>, PollError> {
        let count = capacity.min(self.unpolled.len());
        match self.end() {
            _ if count > 0 || capacity == 0 => Ok(self.unpolled.drain(..count).collect()),
            Some(End::Overrun { dropped }) => Err(PollError::Overrun { dropped: Some(dropped) }),
            Some(End::Failed) => Err(PollError::Failed),
            Some(End::Closed) => Err(PollError::Closed),
            _ => Ok(Vec::new()),
        }
    }

    fn arm(&mut self, on: Notify) -> Armed {
        self.armed = self.armed.max(Some(on));
        let is_quiet = self.unpolled.is_empty() && !self.has_ended();
        if is_quiet { Armed::Armed } else { Armed::MayHaveMissed }
    }
}

/// How entries are made and judged, apart from how the engine does that.
trait Modelled: Numbered {
    fn make(what: Kind, solicited: bool, number: u64) -> Self::Pushed;
    fn is_urgent(pushed: &Self::Pushed) -> bool;
}

impl Modelled for Wc {
    fn make(what: Kind, solicited: bool, number: u64) -> Tagged {
        let wc = match what {
            Kind::Receive => recv(number),
            Kind::Send => send(number),
            Kind::Failure => failed(number),
        };
        Tagged { wc, tag: 0, solicited }
    }

    fn is_urgent(entry: &Tagged) -> bool {
        match entry.wc.status() {
            WcStatus::SUCCESS => entry.solicited && entry.wc == recv(entry.wc.wr_id()),
            _ => true,
        }
    }
}

macro_rules! modelled {
    ($($entry:ty),+) => {$(
        impl Modelled for $entry {
            fn make(what: Kind, _: bool, number: u64) -> Self {
                let is_urgent = matches!(what, Kind::Failure);
                let kind = if is_urgent { rules::Kind::Failure } else { rules::Kind::Send };
                Self::pushed(kind, number)
            }

            fn is_urgent(entry: &Self) -> bool {
                Entry::is_urgent(entry)
            }
        }
    )+};
}
modelled!(Bytes16, Bytes4);

/// Both queues, and how many completions there were.
struct Both<'a, E: Numbered> {
    kind: &'static str,
    /// Neither side, once it is dropped.
    device: Option<Box<dyn Device<E::Pushed> + 'a>>,
    app: Option<Box<dyn App<Entry = E> + 'a>>,
    event_count: &'a EventCount,
    model: Model<E::Pushed>,
    count: u64,
}

impl<'a, E: Modelled + std::fmt::Debug> Both<'a, E> {
    fn new(Sides { kind, device, app, event_count }: Sides<'a, E>) -> Self {
        let (device, app) = (Some(device), Some(app));
        let model = Model::new(CAPACITY, <E as Modelled>::is_urgent);
        Self { kind, device, app, event_count, model, count: 0 }
    }

    fn step(&mut self, step: &Step) {
        let kind = self.kind;
        match (step, &mut self.device, &mut self.app) {
            (Step::Push { batch, is_alone, tries }, Some(device), _) => {
                self.count += batch.len() as u64;
                let make = |(&(what, solicited), number): (&(Kind, bool), u64)| {
                    E::make(what, solicited, number)
                };
                let batch: Vec<_> = batch.iter().zip(self.count..).map(make).collect();
                let model = &mut self.model;
                match (tries, is_alone) {
                    (false, true) => {
                        let pushed = device.push_or_overrun(&batch[0]);
                        assert_eq!(pushed, model.push_or_overrun(&batch), "{kind}");
                    }
                    (false, false) => {
                        let pushed = device.push_batch_or_overrun(&batch);
                        assert_eq!(pushed, model.push_or_overrun(&batch), "{kind}");
                    }
                    (true, true) => {
                        let expected = model.push(&batch).map_err(|error| error.why);
                        assert_eq!(device.push(&batch[0]), expected, "{kind}");
                    }
                    (true, false) => {
                        assert_eq!(device.push_batch(&batch), model.push(&batch), "{kind}");
                    }
                }
                assert_eq!(device.end(), self.model.end(), "{kind}");
            }
            (&Step::Poll(capacity), _, Some(app)) => {
                let untouched = E::polled(rules::Kind::Receive, u64::MAX);
                let mut out = vec![untouched; capacity];
                let polled = app.poll_into(&mut out);
                let count = polled.unwrap_or(0);
                assert!(out[count..].iter().all(|entry| *entry == untouched), "{kind}: P4");
                let expected = self.model.poll(capacity);
                let expected =
                    expected.map(|all| all.iter().map(|pushed| *pushed.entry()).collect());
                assert_eq!(polled.map(|_| out[..count].to_vec()), expected, "{kind}");
            }
            (&Step::Arm(on), _, Some(app)) => {
                assert_eq!(app.arm(on), Ok(self.model.arm(on)), "{kind}")
            }
            (Step::Fail, _, Some(app)) => {
                app.fail();
                self.model.fail();
            }
            _ => {}
        }
        if let Some(app) = &self.app {
            assert_eq!(app.end(), self.model.end(), "{kind}");
        }
        self.events();
    }

    fn events(&mut self) {
        let events = mem::take(&mut self.model.events);
        assert_eq!(self.event_count.take(), events, "{}", self.kind);
    }

    fn run(mut self, steps: &[Step], app_goes_first: bool, after: &[Step]) {
        for step in steps {
            self.step(step);
            let unpolled = self.model.unpolled.len();
            let lengths = self.device.as_ref().map(|device| device.lengths());
            assert_eq!(lengths, Some((unpolled, CAPACITY - unpolled)), "{}", self.kind);
        }
        // Where other sides may follow, the end of one is not the queue's.
        if self.kind.starts_with("raw") {
            return;
        }
        if app_goes_first {
            self.app = None;
            self.model.is_abandoned = true;
        } else {
            self.device = None;
            if !self.model.has_ended() {
                self.model.is_closed = true;
                self.model.fire(true);
            }
            self.events();
        }
        after.iter().for_each(|step| self.step(step));
    }
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let kind = prop::sample::select(vec![Kind::Receive, Kind::Send, Kind::Failure]);
    let what = || (kind.clone(), any::<bool>());
    let batch = prop_oneof![
        prop::collection::vec(what(), 1).prop_map(|batch| (batch, true)),
        prop::collection::vec(what(), 0..7).prop_map(|batch| (batch, false)),
    ];
    let push = (batch, prop::bool::weighted(0.84));
    let on = prop::sample::select(vec![Notify::Next, Notify::Solicited]);
    let step = prop_oneof![
        19 => push.prop_map(|((batch, is_alone), tries)| Step::Push { batch, is_alone, tries }),
        12 => (0_usize..7).prop_map(Step::Poll),
        8 => on.prop_map(Step::Arm),
        1 => Just(Step::Fail),
    ];
    prop::collection::vec(step, lengths(count))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_of_any_kind_does_as_the_model_does(
        steps in steps(60), app_goes_first in any::<bool>(), after in steps(12),
    ) {
        with_each(|sides| Both::new(sides).run(&steps, app_goes_first, &after));
        with_each_of::<Bytes16>(|sides| Both::new(sides).run(&steps, app_goes_first, &after));
        with_each_of::<Bytes4>(|sides| Both::new(sides).run(&steps, app_goes_first, &after));
    }
}
