//! A queue of each kind against a model of one: whatever is pushed, polled and armed, both say the same (P1–P4, P6, O1, O3,
//! O5, N1–N4, N6, S1–S4).

use std::collections::VecDeque;
use std::mem;

use cq_core::queue::{Dropped, Entry, State, TryPushError};
use cq_core::transport::{Armed, Notify, PollError};
use cq_core::wc::Wc;
use proptest::prelude::*;

use super::device::{App, Device, Sides, with_each};
use super::{Bell, failed, recv, send};

const CAPACITY: usize = 4;

/// What completes.
#[derive(Clone, Copy, Debug)]
enum What {
    Receive,
    SolicitedReceive,
    Send,
    SolicitedSend,
    Failure,
    SolicitedFailure,
}
use What::{Failure, Receive, SolicitedFailure, SolicitedReceive, SolicitedSend};

impl What {
    fn entry(self, number: u64) -> Entry {
        let wc = match self {
            Receive | SolicitedReceive => recv(number),
            What::Send | SolicitedSend => send(number),
            Failure | SolicitedFailure => failed(number),
        };
        let solicited = matches!(self, SolicitedReceive | SolicitedSend | SolicitedFailure);
        Entry { wc, tag: 0, solicited }
    }

    /// Whether a consumer waits for it that armed for solicited completions (N3).
    fn is_urgent(self) -> bool {
        matches!(self, SolicitedReceive | Failure | SolicitedFailure)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(What),
    PushBatch(Vec<What>),
    TryPush(What),
    TryPushBatch(Vec<What>),
    Poll(usize),
    Arm(Notify),
    Fail,
}

/// Which side goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Device,
    App,
}

/// A queue whose slots are free once their completions are polled.
struct Model {
    unpolled: VecDeque<Wc>,
    state: State,
    is_abandoned: bool,
    dropped: u32,
    armed: Option<Notify>,
    events: u32,
}

impl Model {
    fn new() -> Self {
        let (unpolled, state) = (VecDeque::new(), State::Running);
        Self { unpolled, state, is_abandoned: false, dropped: 0, armed: None, events: 0 }
    }

    fn has_ended(&self) -> bool {
        self.is_abandoned || self.state != State::Running
    }

    fn fire(&mut self, is_urgent: bool) {
        let fires = |on: &mut Notify| is_urgent || *on == Notify::Next;
        self.events += u32::from(self.armed.take_if(fires).is_some());
    }

    /// Stores the first ones; says how many.
    fn store(&mut self, batch: &[What], entries: &[Entry]) -> usize {
        let free = if self.has_ended() { 0 } else { CAPACITY - self.unpolled.len() };
        let stored = free.min(batch.len());
        self.unpolled.extend(entries[..stored].iter().map(|entry| entry.wc));
        if stored > 0 {
            self.fire(batch[..stored].iter().any(|what| what.is_urgent()));
        }
        stored
    }

    fn push(&mut self, batch: &[What], entries: &[Entry]) -> Result<(), Dropped> {
        let lost = (batch.len() - self.store(batch, entries)) as u32;
        if lost == 0 {
            return Ok(());
        }
        self.dropped += lost;
        if matches!(self.state, State::Running | State::Overrun { .. }) {
            self.state = State::Overrun { dropped: self.dropped };
        }
        self.fire(true);
        Err(Dropped { lost, total: self.dropped })
    }

    fn try_push(&mut self, batch: &[What], entries: &[Entry]) -> Result<usize, TryPushError> {
        match self.store(batch, entries) {
            0 if batch.is_empty() => Ok(0),
            0 if self.has_ended() => Err(TryPushError::Ended),
            0 => Err(TryPushError::Full),
            stored => Ok(stored),
        }
    }

    fn poll(&mut self, capacity: usize) -> Result<Vec<Wc>, PollError> {
        let count = capacity.min(self.unpolled.len());
        match self.state {
            _ if count > 0 || capacity == 0 => Ok(self.unpolled.drain(..count).collect()),
            State::Overrun { dropped } => Err(PollError::Overrun { dropped: Some(dropped) }),
            State::Failed => Err(PollError::Failed),
            State::Closed => Err(PollError::Closed),
            _ => Ok(Vec::new()),
        }
    }

    fn arm(&mut self, on: Notify) -> Armed {
        self.armed = self.armed.max(Some(on));
        let is_quiet = self.unpolled.is_empty() && !self.has_ended();
        if is_quiet { Armed::Armed } else { Armed::MayHaveMissed }
    }
}

/// Both queues, and how many completions there were.
struct Both<'a> {
    kind: &'static str,
    /// Neither side, once it is dropped.
    device: Option<Box<dyn Device + 'a>>,
    app: Option<Box<dyn App + 'a>>,
    bell: &'a Bell,
    model: Model,
    count: u64,
}

impl<'a> Both<'a> {
    fn new(Sides { kind, device, app, bell }: Sides<'a>) -> Self {
        let (device, app) = (Some(device), Some(app));
        Self { kind, device, app, bell, model: Model::new(), count: 0 }
    }

    fn entries(&mut self, batch: &[What]) -> Vec<Entry> {
        self.count += batch.len() as u64;
        batch.iter().zip(self.count..).map(|(what, number)| what.entry(number)).collect()
    }

    /// What the device does.
    fn push(&mut self, step: &Step) {
        let batch = match step {
            Step::Push(what) | Step::TryPush(what) => std::slice::from_ref(what),
            Step::PushBatch(batch) | Step::TryPushBatch(batch) => batch,
            _ => return,
        };
        let entries = self.entries(batch);
        let (kind, model) = (self.kind, &mut self.model);
        let Some(device) = &mut self.device else { return };
        match step {
            Step::Push(_) => {
                let pushed = model.push(batch, &entries);
                assert_eq!(device.push(&entries[0]), pushed, "{kind}");
            }
            Step::TryPush(_) => {
                let pushed = model.try_push(batch, &entries).map(|_| ());
                assert_eq!(device.try_push(&entries[0]), pushed, "{kind}");
            }
            Step::PushBatch(_) => {
                let pushed = model.push(batch, &entries);
                assert_eq!(device.push_batch(&entries), pushed, "{kind}");
            }
            _ => {
                let pushed = model.try_push(batch, &entries);
                assert_eq!(device.try_push_batch(&entries), pushed, "{kind}");
            }
        }
        assert_eq!(device.is_abandoned(), model.is_abandoned, "{kind}");
        self.events();
    }

    /// What the application does.
    fn consume(&mut self, step: &Step) {
        let (kind, model) = (self.kind, &mut self.model);
        let Some(app) = &mut self.app else { return };
        match *step {
            Step::Poll(capacity) => {
                let untouched = recv(u64::MAX);
                let mut out = vec![untouched; capacity];
                let polled = app.poll(&mut out);
                let count = polled.unwrap_or(0);
                assert!(out[count..].iter().all(|wc| *wc == untouched), "{kind}: P4");
                assert_eq!(polled.map(|_| out[..count].to_vec()), model.poll(capacity), "{kind}");
            }
            Step::Arm(on) => assert_eq!(app.arm(on), Ok(model.arm(on)), "{kind}"),
            Step::Fail => {
                app.fail();
                model.state = State::Failed;
            }
            _ => return,
        }
        assert_eq!(app.state(), model.state, "{kind}");
        self.events();
    }

    fn events(&mut self) {
        let events = mem::take(&mut self.model.events);
        assert_eq!(self.bell.take(), events, "{}", self.kind);
    }

    fn run(mut self, steps: &[Step], first: First, after: &[Step]) {
        for step in steps {
            self.push(step);
            self.consume(step);
            let unpolled = self.model.unpolled.len();
            let room = self.device.as_ref().map(|device| device.room());
            assert_eq!(room, Some((unpolled, CAPACITY - unpolled)), "{}", self.kind);
        }
        // Where other sides may follow, the end of one is not the queue's.
        if self.kind.starts_with("raw") {
            return;
        }
        if first == First::App {
            self.app = None;
            self.model.is_abandoned = true;
        } else {
            self.device = None;
            if !self.model.has_ended() {
                self.model.state = State::Closed;
                self.model.fire(true);
            }
            self.events();
        }
        for step in after {
            self.push(step);
            self.consume(step);
        }
    }
}

fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let what = prop::sample::select(vec![
        Receive,
        SolicitedReceive,
        What::Send,
        SolicitedSend,
        Failure,
        SolicitedFailure,
    ]);
    let batch = prop::collection::vec(what.clone(), 0..7);
    let on = prop::sample::select(vec![Notify::Next, Notify::Solicited]);
    let step = prop_oneof![
        2 => what.clone().prop_map(Step::Push),
        1 => batch.clone().prop_map(Step::PushBatch),
        8 => what.prop_map(Step::TryPush),
        8 => batch.prop_map(Step::TryPushBatch),
        12 => (0_usize..7).prop_map(Step::Poll),
        8 => on.prop_map(Step::Arm),
        1 => Just(Step::Fail),
    ];
    prop::collection::vec(step, 0..count)
}

fn sides() -> impl Strategy<Value = First> {
    prop::sample::select(vec![First::Device, First::App])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_of_any_kind_does_as_the_model_does(
        steps in steps(60), first in sides(), after in steps(12),
    ) {
        with_each(|sides| Both::new(sides).run(&steps, first, &after));
    }
}
