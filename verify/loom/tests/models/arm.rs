//! Arming against pushing: whoever was told that it is safe to sleep is woken by what it armed for (N1,
//! N6), by nothing else (N3), once for each arm at most; arming again never weakens (N4).

use cq_core::queue::{HeapCq, Tagged};
use cq_core::sync::Site;
use cq_core::transport::{Arm, Armed, Notify};
use cq_core::wc::{Wc, WcOpcode, WcStatus};
use loom::thread;
use verify_loom::channel::{EventCount, LOST};
use verify_loom::harness::model;

/// What completes.
#[derive(Clone, Copy)]
enum What {
    Receive,
    SolicitedReceive,
    SolicitedSend,
    FailedSend,
}
use What::{FailedSend, Receive, SolicitedReceive, SolicitedSend};

impl What {
    fn wc(self) -> Wc {
        let (status, opcode) = match self {
            Receive | SolicitedReceive => (WcStatus::SUCCESS, WcOpcode::RECV),
            SolicitedSend => (WcStatus::SUCCESS, WcOpcode::SEND),
            FailedSend => (WcStatus::REM_ACCESS_ERR, WcOpcode::SEND),
        };
        Wc::new(1, status, 1).with_opcode(opcode)
    }

    fn sent_solicited(self) -> bool {
        matches!(self, SolicitedReceive | SolicitedSend)
    }

    fn wakes(self, armed: Notify) -> bool {
        armed == Notify::Next || matches!(self, SolicitedReceive | FailedSend)
    }
}

/// The consumer arms while the producer pushes, one after the other of these each, into a queue that
/// `capacity` overruns if it is smaller.
#[derive(Clone, Copy)]
struct Plan {
    capacity: u32,
    arms: &'static [Notify],
    pushes: &'static [What],
}

impl Plan {
    /// Whether something here wakes who is armed for `armed` (N3, O5).
    fn wakes(&self, armed: Notify) -> bool {
        self.pushes.len() > self.capacity as usize
            || self.pushes.iter().any(|what| what.wakes(armed))
    }
}

/// Carries the plan out, but for its arms: those are `arms`.
fn race(plan: Plan, arms: &[Notify]) {
    let events = EventCount::default();
    let (mut producer, mut consumer) =
        HeapCq::new(plan.capacity as usize).unwrap().split_with(events.clone());
    let producer = thread::spawn(move || {
        for what in plan.pushes {
            let solicited = what.sent_solicited();
            let _overrun_is_expected =
                producer.push_or_overrun(&Tagged { wc: what.wc(), tag: 0, solicited });
        }
        producer
    });

    let mut asleep = None;
    for (count, &on) in arms.iter().enumerate() {
        if consumer.arm(on).unwrap() == Armed::Armed {
            asleep = plan.arms[..=count].iter().max();
        }
    }
    let _producer = producer.join().unwrap();

    let events = events.raised() as usize;
    let wanted = plan.arms.iter().filter(|&&armed| plan.wakes(armed)).count();
    assert!(events <= wanted, "woken by what was not asked for");
    if asleep.is_some_and(|&armed| plan.wakes(armed)) {
        assert!(events > 0, "{LOST}");
    }
}

#[test]
fn n06_who_is_armed_is_woken() {
    use Notify::{Next, Solicited};
    let plans: [(&str, u32, &[Notify], &[What]); 9] = [
        ("armed for any", 4, &[Next], &[Receive, Receive]),
        ("armed twice", 4, &[Next, Next], &[Receive, Receive, Receive]),
        ("solicited, a solicited receive comes", 4, &[Solicited], &[Receive, SolicitedReceive]),
        ("solicited, a failed send comes", 4, &[Solicited], &[Receive, FailedSend]),
        ("solicited, a failed send comes first", 4, &[Solicited], &[FailedSend, Receive]),
        ("any, then solicited", 4, &[Next, Solicited], &[Receive]),
        ("any, then solicited, two come", 4, &[Next, Solicited], &[Receive, Receive]),
        ("solicited, then any", 4, &[Solicited, Next], &[Receive, Receive]),
        ("overrun while armed for solicited", 1, &[Solicited], &[Receive, Receive]),
    ];
    for (name, capacity, arms, pushes) in plans {
        let plan = Plan { capacity, arms, pushes };
        model(name, move || race(plan, plan.arms))
            .must_fail_without([Site::PushFence, Site::ArmFence], LOST);
    }
}

#[test]
fn n03_solicited_sleeps_through_the_rest() {
    let plan = Plan { capacity: 4, arms: &[Notify::Solicited], pushes: &[Receive, SolicitedSend] };
    model("solicited, nothing of it comes", move || race(plan, plan.arms)).must_fail_as(
        "arming for solicited only",
        "woken by what was not asked for",
        move || race(plan, &[Notify::Next]),
    );
}
