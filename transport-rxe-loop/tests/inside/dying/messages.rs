//! Tests of processes that die or are stopped at each step of the usual messages: of one SGE, between memory that both map,
//! with completion queues that have no channel, of which the one for sends is used by one queue pair alone.

use super::*;

/// An end with its queues.
struct Party {
    ends: [End; 1],
    sends: Cq,
    recvs: Cq,
    chance: Chance,
}

impl Party {
    fn new(context: &Context, pd: &ProtectionDomain, seed: u64) -> Outcome<Self> {
        let (sends, recvs) = (context.cq(OUTSTANDING).create()?, context.cq(OUTSTANDING).create()?);
        let ends = [End::with_queues(pd, [&sends, &recvs], Memory::Fabric)?];
        Ok(Self { ends, sends, recvs, chance: Chance::new(seed) })
    }

    const fn end(&mut self) -> &mut End {
        &mut self.ends[0]
    }

    fn poll(&mut self) -> Outcome<()> {
        poll(&mut self.sends, &mut self.ends)?;
        poll(&mut self.recvs, &mut self.ends)?;
        Ok(())
    }

    fn work(&mut self) -> Outcome<()> {
        self.ends[0].work(&mut self.chance)?;
        self.poll()
    }
}

/// Exchanges messages with its parent, until it ends in one of them.
#[test]
#[ignore = "a process of another test"]
fn exchanges() {
    die_with_parent();
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let mut party = Party::new(&context, &pd, 2).unwrap();
    say(party.end().address());
    party.end().connect_to(order().parse().unwrap()).unwrap();
    let (.., stops) = die_there();
    let deadline = Instant::now() + PATIENCE;
    while party.end().failure.is_none() && Instant::now() < deadline {
        // If others gave up on it while it was stopped, its operations are refused.
        let worked = party.work();
        assert!(stops || worked.is_ok(), "{worked:?}");
    }
}

/// The steps of a message.
const STEPS: [Step; 9] = [
    Step::Announced,
    Step::Opened,
    Step::Entered,
    Step::Published,
    Step::Settled,
    Step::Kept,
    Step::Left,
    Step::Withdrawn,
    Step::Closed,
];

/// At which occurrences of each step it is killed, at one on a commit.
const DEATHS: [usize; 3] = [0, 7, 40];
/// Where it is stopped, at one of them on a commit since that takes long, and at which occurrence.
const STOPS: [Step; 4] = [Step::Announced, Step::Opened, Step::Published, Step::Withdrawn];
const STOP: usize = 23;

/// A process that is to end at a step, connected to a queue pair of this one.
fn meet(party: &mut Party, (step, time): (Step, usize), signal: Signal) -> Actor {
    let fabric = fabric();
    let mut victim = mortal_at("inside::dying::messages::exchanges", &fabric, step, time, signal);
    party.end().connect_to(victim.hear().parse().unwrap()).unwrap();
    victim.order(party.end().address());
    victim
}

/// The victim is killed: everything that was posted completes, in order, and then fails.
fn outlives(party: &mut Party, step: Step, time: usize) {
    let mut victim = meet(party, (step, time), Signal::KILL);
    let deadline = Instant::now() + PATIENCE;
    while !victim.has_ended() {
        party.work().unwrap();
        assert!(Instant::now() < deadline, "{step:?} {time}: {:?}", party.end());
    }
    assert_eq!(victim.status().signal(), Some(Signal::KILL.as_raw()), "nobody comes to {step:?}");
    while !(party.end().is_done() && party.end().failure.is_some()) {
        assert!(Instant::now() < deadline, "{step:?} {time}: {:?}", party.end());
        if party.end().failure.is_none() {
            party.end().post_send(true, false).unwrap();
        }
        party.poll().unwrap();
        thread::yield_now();
    }
    assert_eq!(party.end().failure, Some(WcStatus::RETRY_EXC_ERR), "{step:?} {time}");
}

/// The victim is stopped for longer than anybody waits: this process goes to ERR and RESET and has its memory back, or is
/// told that it can't; and the victim, resumed, finds that out.
fn outwaits(context: &Context, step: Step, time: usize) {
    let pd = context.alloc_pd().unwrap();
    let mut party = Party::new(context, &pd, time as u64).unwrap();
    let victim = meet(&mut party, (step, time), Signal::STOP);
    let deadline = Instant::now() + PATIENCE;
    while !victim.is_stopped() {
        // It may be stopped by now, and keep a receive that has completed from being posted again.
        let _suspended = party.work();
        assert!(Instant::now() < deadline, "{step:?} {time}: {:?}", party.end());
    }
    for _ in 0..8 {
        let _suspended = party.work();
    }
    let begin = Instant::now();
    let _suspended = party.end().qp.modify(&QpAttr::new().state(QpState::ERR));
    let _suspended = party.end().qp.modify(&QpAttr::new().state(QpState::RESET));
    drop(party);
    assert!(begin.elapsed() < PATIENCE, "{step:?} {time}: it waits for a stopped process");
    victim.signal(Signal::CONT);
    victim.finish();
}

#[test]
#[ignore = "a process of another test"]
fn goes_on() {
    die_with_parent();
    let context = open();
    let (pd, fabric) = (context.alloc_pd().unwrap(), context.device);
    let mut party = Party::new(&context, &pd, 1).unwrap();
    let estate = Estate::mine(fabric);
    for (nth, step) in STEPS.into_iter().enumerate() {
        for time in one_or_all(&DEATHS, nth) {
            outlives(&mut party, step, time);
            nothing_is_left(fabric, estate);
            say(format!("{step:?} {time}"));
        }
    }
    for step in one_or_all(&STOPS, 0) {
        outwaits(&context, step, STOP);
        nothing_is_left(fabric, estate);
        say(format!("{step:?} {STOP}"));
    }
}

#[test]
fn x03_a_death_or_a_stop_in_a_usual_message_stops_no_other_and_leaks_nothing() {
    runs_well("messages::goes_on", &[], |_| {});
}
