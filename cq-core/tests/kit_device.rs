//! The test kit on a device whose queue, arm and events are plain values: what it accepts, and which wake-ups it finds
//! lost.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use cq_core::queue::Completion;
use cq_core::testing::rules::{self, Fixture, Kind};
use cq_core::transport::{
    Arm, ArmError, Armed, CqKey, EventError, Events, Notify, PollCq, PollError,
};
use cq_core::wc::Wc;

const KEY: CqKey = CqKey { index: 3, generation: 9 };
const CAPACITY: usize = 48;

/// What is wrong with the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A poll that returns something takes an arm for any completion back.
    PollDisarms,
    /// Taking an event disarms the queue, also if it was armed anew.
    TakingDisarms,
    /// An arm while an event is unread is forgotten.
    ForgetsAnArm,
    /// Only a completion in an empty queue raises the event.
    RaisesAtTheEdge,
    /// The same for solicited completions alone.
    RaisesSolicitedAtTheEdge,
    /// A failed receive raises no event for solicited completions.
    FailedReceiveWakesNobody,
    /// A poll reorders what comes behind the sixteenth.
    ReordersLargeBatches,
}

thread_local! {
    /// That of the fixtures which are made next.
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
    /// The length of every message.
    static BYTES: Cell<u32> = const { Cell::new(0) };
}

/// What the device and its driver share.
#[derive(Default)]
struct State {
    queue: VecDeque<Wc>,
    armed: Option<Notify>,
    events: VecDeque<CqKey>,
}

#[derive(Clone, Default)]
struct Device(Rc<RefCell<State>>);

impl PollCq for Device {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let state = &mut *self.0.borrow_mut();
        let count = out.len().min(state.queue.len());
        out.iter_mut().zip(state.queue.drain(..count)).for_each(|(to, wc)| *to = wc);
        match FAULT.get() {
            Fault::PollDisarms if count > 0 => {
                _ = state.armed.take_if(|on| *on == Notify::Next);
            }
            Fault::ReordersLargeBatches if count > 16 => out[16..count].reverse(),
            _ => {}
        }
        Ok(count)
    }
}

impl Arm for Device {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let state = &mut *self.0.borrow_mut();
        if FAULT.get() != Fault::ForgetsAnArm || state.events.is_empty() {
            state.armed = state.armed.max(Some(on));
        }
        Ok(if state.queue.is_empty() { Armed::Armed } else { Armed::MayHaveMissed })
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

impl Events for Device {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let state = &mut *self.0.borrow_mut();
        let event = state.events.pop_front();
        if FAULT.get() == Fault::TakingDisarms && event.is_some() {
            state.armed = None;
        }
        Ok(event)
    }
}

struct Bench {
    queue: Device,
    channel: Device,
}

impl Fixture for Bench {
    type Queue = Device;
    type Channel = Device;
    const CAPACITY: usize = CAPACITY;

    fn new() -> Self {
        let device = Device::default();
        Self { queue: device.clone(), channel: device }
    }

    fn queue(&mut self) -> &mut Device {
        &mut self.queue
    }

    fn channel(&mut self) -> &mut Device {
        &mut self.channel
    }

    fn complete(&mut self, kind: Kind, wr_id: u64) {
        let wc = self.expected(kind, wr_id);
        let state = &mut *self.queue.0.borrow_mut();
        let is_first = state.queue.is_empty();
        state.queue.push_back(wc);
        let fires = match (state.armed, FAULT.get()) {
            (None, _) => false,
            (Some(_), Fault::RaisesAtTheEdge) if !is_first => false,
            (Some(Notify::Solicited), Fault::RaisesSolicitedAtTheEdge) if !is_first => false,
            (Some(Notify::Solicited), Fault::FailedReceiveWakesNobody)
                if kind == Kind::FailedReceive =>
            {
                false
            }
            (Some(Notify::Solicited), _) => kind.entry(wr_id).is_urgent(),
            (Some(Notify::Next), _) => true,
        };
        if fires {
            state.armed = None;
            state.events.push_back(KEY);
        }
    }

    fn expected(&self, kind: Kind, wr_id: u64) -> Wc {
        kind.wc(wr_id).with_byte_len(BYTES.get())
    }
}

#[test]
fn a_device_that_fills_in_more_passes() {
    for bytes in [0, 64] {
        BYTES.set(bytes);
        assert_eq!(rules::all::<Bench>(), Ok(()));
    }
}

#[test]
fn each_lost_wake_up_is_found_by_the_rule_that_it_breaks() {
    for (fault, rule) in [
        (Fault::PollDisarms, "N6"),
        (Fault::TakingDisarms, "N6"),
        (Fault::ForgetsAnArm, "N6"),
        (Fault::RaisesAtTheEdge, "N6"),
        (Fault::RaisesSolicitedAtTheEdge, "N6"),
        (Fault::FailedReceiveWakesNobody, "N3"),
        (Fault::ReordersLargeBatches, "P1"),
    ] {
        FAULT.set(fault);
        let found = rules::all::<Bench>();
        FAULT.set(Fault::None);
        assert_eq!(found.map_err(|broken| broken.rule), Err(rule), "{fault:?}");
    }
}
