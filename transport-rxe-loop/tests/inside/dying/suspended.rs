//! Tests of processes that are stopped at each step, for longer than any process waits (X7): others get what they ask
//! for, or an error, and are not blocked; and a process that is resumed continues without harm.

use std::iter;
use std::sync::Mutex;

use super::line::Line;
use super::steps::{asks, mortal};
use super::*;
use crate::inside::actor::NO_ORDERS;

/// Longer than any wait for a lock.
const LONG: Duration = Duration::from_millis(2500);
/// The occurrence of a step: mostly in the middle of an exchange.
const TIME: usize = 30;

/// Small, so that many fit.
const LIMITS: Limits = Limits::USUAL
    .queue_pairs(64)
    .completion_queues(64)
    .memory_regions(64)
    .shared_receive_queues(16)
    .channels(64)
    .processes(8)
    .bytes(1 << 20);

/// The process that continues.
struct Survivor {
    name: String,
    step: Step,
    context: Context,
    pd: ProtectionDomain,
    line: Line,
}

impl Survivor {
    fn new(name: &str, step: Step, time: usize) -> Outcome<Self> {
        let context = open(name, step)?;
        let pd = context.alloc_pd().unwrap();
        let ends = |cq: &Cq| {
            if asks(step) {
                return work::ends(&pd, cq, LINES);
            }
            let commons = Commons::new(&pd, Memory::No)?;
            let sharing = |_| End::sharing(&pd, cq, Memory::No, &commons);
            let first = End::new(&pd, cq, Memory::No);
            let ends = iter::once(first).chain((1..LINES).map(sharing));
            Ok((ends.collect::<Outcome<_>>()?, commons))
        };
        let victim = || mortal(name, step, time, Signal::STOP);
        let line = Line::new(&context, victim, ends)?;
        Ok(Self { name: name.to_owned(), step, context, pd, line })
    }

    /// Connects to the victim, and exchanges messages until that stops; false if it ends.
    fn works(&mut self, chance: &mut Chance) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while !self.line.victim.is_stopped() {
            assert!(Instant::now() < deadline, "it does not get on");
            if self.line.victim.has_ended() {
                return false;
            }
            self.line.greets();
            self.exchange(chance);
        }
        true
    }

    fn exchange(&mut self, chance: &mut Chance) {
        let _ = self.line.work(chance);
        while self.line.channel.take_event().is_ok_and(|event| event.is_some()) {}
    }

    /// All operations of a process, with any outcome.
    fn does_everything(&mut self, chance: &mut Chance) {
        self.exchange(chance);
        let _ = self.line.channel.block(Some(Instant::now() + Duration::from_millis(1)));
        let _ = self.line.cq.resize(2 * LINES as u32 * OUTSTANDING);
        let _ = Near::new(&self.context, &self.pd).and_then(|near| near.work(chance));
        let _ = self.pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE);
        let _ = self.context.take_async_event();
        let _ = open(&self.name, self.step);
    }

    /// Destroys everything that is connected, and resumes the victim.
    fn ends(self) {
        let Self { name, step, context, pd, line } = self;
        let Line { mut ends, cq, channel, victim, .. } = line;
        let _ = ends[0].qp.modify(&QpAttr::new().state(QpState::ERR));
        let _ = ends[1].qp.modify(&QpAttr::new().state(QpState::RESET));
        // Memory of the program is kept for as long as the victim may write to it.
        if asks(step) {
            victim.signal(Signal::CONT);
        }
        drop((ends, cq, channel));
        victim.signal(Signal::CONT);
        let status = victim.ended();
        // It may have been stopped before it was told to whom to connect.
        assert!([Some(0), Some(NO_ORDERS)].contains(&status.code()), "{step:?}: {status}");
        let fabric = context.device;
        until("nothing is left of it, nor of what was left to it", || {
            let _swept = open(&name, step);
            let mine = Estate::mine(fabric);
            audit::ownerless(fabric).is_empty() && mine.qps == 0 && audit::held(fabric).is_empty()
        });
        let near = Near::new(&context, &pd).and_then(|near| near.work(&mut Chance::new(1)));
        near.unwrap_or_else(|error| panic!("{step:?}: {error}"));
    }
}

fn open(name: &str, step: Step) -> Outcome<Context> {
    let options = OpenOptions::new().fabric(name).limits(LIMITS);
    let options = if asks(step) { options.copying_by_service() } else { options };
    Ok(options.open("loop0")?)
}

/// Locked while a thread opens its fabric: on a slow machine, each waits too long for all others that do so at once.
static OPENING: Mutex<()> = Mutex::new(());

/// False if the victim does not reach the step so often.
fn outlives(step: Step, time: usize) -> bool {
    let mut chance = Chance::new(time as u64);
    let name = format!("{}-{step:?}-{time}", fabric());
    let mut me = {
        let _turn = sync::lock(&OPENING);
        Survivor::new(&name, step, time).unwrap()
    };
    if !me.works(&mut chance) {
        return false;
    }
    let end = Instant::now() + LONG;
    while Instant::now() < end {
        me.does_everything(&mut chance);
    }
    me.ends();
    true
}

#[test]
#[ignore = "a process of another test"]
fn goes_on() {
    die_with_parent();
    let one = |step| {
        let came = [TIME, 2, 0].into_iter().find(|&time| outlives(step, time));
        say(format!("{step:?} {came:?}"));
        assert!(came.is_some(), "nobody comes to {step:?}");
    };
    let outcomes = thread::scope(|scope| {
        let threads = Step::ALL.map(|step| scope.spawn(move || one(step)));
        threads.map(|thread| thread.join().is_ok())
    });
    assert!(outcomes.iter().all(|&well| well));
}

#[test]
fn x07_a_process_stopped_at_any_step_delays_no_other_and_resumes_without_harm() {
    runs_well("suspended::goes_on", &[], |_| {});
}
