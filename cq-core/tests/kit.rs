//! The test kit passes the engine's queues, and names the rule that a planted fault breaks.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use cq_core::queue::{Completion, Consumer, HeapCq, OnChannel, Producer};
use cq_core::testing::rules::{self, Fixture, Kind};
use cq_core::transport::{
    Arm, ArmError, Armed, CqKey, EventError, Events, Notify, PollCq, PollError, Signal,
};
use cq_core::wc::{Wc, WcStatus};

const KEY: CqKey = CqKey { index: 3, generation: 9 };
const OTHER: CqKey = CqKey { index: 3, generation: 8 };
const CAPACITY: usize = 4;

/// What is wrong with a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    YoungestFirst,
    Changes,
    KeepsOne,
    Twice,
    EmptyIsAnError,
    TouchesTheRest,
    NothingIsAnError,
    NothingTakesOne,
    ClaimsMore,
    RaisesUnarmed,
    NeverDisarms,
    NeverRaises,
    RaisesAtTheArm,
    NeverMayHaveMissed,
    SolicitedWakesForAll,
    SolicitedWakesForNone,
    FailureWakesNobody,
    Weakens,
    NeverStrengthens,
    PollTakesTheEvent,
    ArmsOnce,
    ForgetsTheFifthArm,
    WrongKey,
    NotAcknowledged,
}

thread_local! {
    /// That of the fixtures which are made next.
    static FAULT: Cell<Fault> = const { Cell::new(Fault::None) };
}

#[derive(Clone, Default)]
struct Channel(Rc<RefCell<VecDeque<CqKey>>>);

impl Signal for Channel {
    fn raise(&self, cq: CqKey) {
        let key = if FAULT.get() == Fault::WrongKey { OTHER } else { cq };
        if FAULT.get() != Fault::NeverRaises {
            self.0.borrow_mut().push_back(key);
        }
    }
}

impl Events for Channel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let mut waiting = self.0.borrow_mut();
        match FAULT.get() {
            Fault::NotAcknowledged => Ok(waiting.front().copied()),
            _ => Ok(waiting.pop_front()),
        }
    }
}

struct Queue {
    inner: Consumer<'static, OnChannel>,
    channel: Channel,
    last: Option<Wc>,
    armed: Option<Notify>,
    arms: u32,
}

impl PollCq for Queue {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let fault = FAULT.get();
        match fault {
            Fault::NothingIsAnError if out.is_empty() => return Err(PollError::Device(22)),
            Fault::NothingTakesOne if out.is_empty() => {
                return self.inner.poll(&mut [Wc::default()]).map(|_| 0);
            }
            Fault::KeepsOne if out.len() > 1 => {
                let most = out.len() - 1;
                return self.inner.poll(&mut out[..most.min(1)]);
            }
            _ => {}
        }
        let count = self.inner.poll(out)?;
        match fault {
            Fault::YoungestFirst => out[..count].reverse(),
            Fault::Changes if count > 0 => out[0] = out[0].with_byte_len(1),
            Fault::EmptyIsAnError if count == 0 && !out.is_empty() => {
                return Err(PollError::Device(11));
            }
            Fault::TouchesTheRest => out[count..].fill(Wc::default()),
            Fault::Twice if count == 0 && !out.is_empty() => {
                if let Some(wc) = self.last.take() {
                    out[0] = wc;
                    return Ok(1);
                }
            }
            Fault::ClaimsMore if count == 1 && out.len() == 1 => return Ok(2),
            Fault::PollTakesTheEvent => self.channel.0.borrow_mut().clear(),
            Fault::NeverStrengthens if count > 0 => self.armed = None,
            _ => {}
        }
        self.last = out[..count].last().copied();
        Ok(count)
    }
}

impl Arm for Queue {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let fault = FAULT.get();
        self.arms += 1;
        if fault == Fault::ArmsOnce && self.arms > 1
            || fault == Fault::ForgetsTheFifthArm && self.arms == 5
        {
            return Ok(Armed::Armed);
        }
        let on = match fault {
            Fault::SolicitedWakesForAll => Notify::Next,
            Fault::NeverStrengthens => *self.armed.get_or_insert(on),
            _ => on,
        };
        self.armed = Some(on);
        let armed = self.inner.arm(on)?;
        Ok(match fault {
            Fault::RaisesAtTheArm => {
                self.channel.raise(KEY);
                armed
            }
            Fault::NeverMayHaveMissed => Armed::Armed,
            _ => armed,
        })
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

struct Bench {
    device: Producer<'static, OnChannel<Channel>>,
    queue: Queue,
    channel: Channel,
}

impl Fixture for Bench {
    type Queue = Queue;
    type Channel = Channel;
    const CAPACITY: usize = CAPACITY;

    fn new() -> Self {
        let channel = Channel::default();
        let (device, inner) =
            HeapCq::new(CAPACITY as u32).unwrap().split_with(KEY, channel.clone());
        let queue = Queue { inner, channel: channel.clone(), last: None, armed: None, arms: 0 };
        Self { device, queue, channel }
    }

    fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    fn complete(&mut self, kind: Kind, wr_id: u64) {
        let fault = FAULT.get();
        let mut entry = kind.entry(wr_id);
        if fault == Fault::Weakens && self.queue.armed == Some(Notify::Solicited) {
            // As if the last arm alone counted.
            let before = self.channel.0.borrow().len();
            self.device.push(&entry).unwrap();
            if !entry.is_urgent() {
                self.channel.0.borrow_mut().truncate(before);
            }
            return;
        }
        if fault == Fault::SolicitedWakesForNone {
            entry.solicited = false;
        }
        let before = self.channel.0.borrow().len();
        self.device.push(&entry).unwrap();
        match fault {
            Fault::RaisesUnarmed if self.queue.armed.is_none() => self.channel.raise(KEY),
            Fault::NeverDisarms if self.queue.armed.is_some() => {
                self.channel.0.borrow_mut().truncate(before);
                self.channel.raise(KEY);
            }
            Fault::FailureWakesNobody if entry.wc.status() != WcStatus::SUCCESS => {
                self.channel.0.borrow_mut().truncate(before);
            }
            _ => {}
        }
    }
}

#[test]
fn the_engine_s_queue_passes() {
    assert_eq!(rules::all::<Bench>(), Ok(()));
}

#[test]
fn each_planted_fault_is_found_by_the_rule_that_it_breaks() {
    for (fault, rule) in [
        (Fault::YoungestFirst, "P1"),
        (Fault::Changes, "P1"),
        (Fault::KeepsOne, "P1"),
        (Fault::Twice, "P2"),
        (Fault::EmptyIsAnError, "P3"),
        (Fault::TouchesTheRest, "P4"),
        (Fault::NothingIsAnError, "P6"),
        (Fault::NothingTakesOne, "P6"),
        (Fault::ClaimsMore, "P7"),
        (Fault::RaisesUnarmed, "N1"),
        (Fault::NeverDisarms, "N1"),
        (Fault::NeverRaises, "N1"),
        (Fault::RaisesAtTheArm, "N1"),
        (Fault::NeverMayHaveMissed, "N2"),
        (Fault::SolicitedWakesForAll, "N3"),
        (Fault::SolicitedWakesForNone, "N3"),
        (Fault::FailureWakesNobody, "N3"),
        (Fault::Weakens, "N4"),
        (Fault::NeverStrengthens, "N4"),
        (Fault::PollTakesTheEvent, "N5"),
        (Fault::ArmsOnce, "N1"),
        (Fault::ForgetsTheFifthArm, "N6"),
        (Fault::WrongKey, "N8"),
        (Fault::NotAcknowledged, "N7"),
    ] {
        FAULT.set(fault);
        let found = rules::all::<Bench>();
        FAULT.set(Fault::None);
        assert_eq!(found.map_err(|broken| broken.rule), Err(rule), "{fault:?}");
    }
}
