//! Tests of processes that die or are stopped at each step of sending and receiving datagrams: others continue, each
//! of their receives completes once, and nothing is left.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::process::{Pid, kill_process};

use super::*;
use crate::inside::actor::is_stopped;

const QKEY: u32 = 0x77;
const SEND: u64 = 1 << 32;
/// Bytes before a datagram, and of it.
const GRH: usize = 40;
const LEN: usize = 64;

/// A UD queue pair that keeps count.
struct Station {
    qp: QueuePair,
    cq: Cq,
    region: OwnedRegion,
    ah: AddressHandle,
    receives: VecDeque<u64>,
    next: u64,
    /// Sends that have not completed.
    sends: usize,
    /// Datagrams received.
    came: usize,
}

impl Station {
    fn new(context: &Context, pd: &ProtectionDomain) -> Outcome<Self> {
        let (here, cq) = (context.port(1).unwrap(), context.cq(4 * DEPTH as u32).create()?);
        let init = pd.qp(&cq).qp_type(QpType::UD);
        let mut qp = init.create()?;
        qp.activate(&Port::new(1), QKEY)?;
        let region = pd.allocate(4096, Access::LOCAL_WRITE)?;
        let ah = pd.create_ah(&AddressVector::new(&here, here.gid, 0))?;
        let receives = VecDeque::new();
        Ok(Self { qp, cq, region, ah, receives, next: 0, sends: 0, came: 0 })
    }

    fn send(&mut self, to: u32) -> Outcome<()> {
        if self.sends == DEPTH {
            return Ok(());
        }
        let destination = Destination::new(&self.ah, to, QKEY);
        let sge = [self.region.sge(..LEN)?];
        self.qp.to(&destination).post_send(&[SendWr::send(SEND, &sge)])?;
        self.sends += 1;
        Ok(())
    }

    fn post(&mut self) -> Outcome<()> {
        while self.receives.len() < DEPTH {
            let sge = [self.region.sge(1024..1024 + GRH + LEN)?];
            self.qp.post_recv(&[RecvWr::new(self.next, &sge)])?;
            self.receives.push_back(self.next);
            self.next += 1;
        }
        Ok(())
    }

    /// Every receive completes once, in order; every send succeeds, or is flushed.
    fn poll(&mut self) -> Outcome<()> {
        let mut wcs = [Wc::default(); 4 * DEPTH];
        let count = self.cq.poll_into(&mut wcs)?;
        for wc in &wcs[..count] {
            if wc.wr_id() == SEND {
                self.sends -= 1;
            } else {
                assert_eq!(self.receives.pop_front(), Some(wc.wr_id()), "{wc:?}");
                self.came += usize::from(wc.status() == WcStatus::SUCCESS);
            }
            let status = wc.status();
            assert!(matches!(status, WcStatus::SUCCESS | WcStatus::WR_FLUSH_ERR), "{wc:?}");
        }
        Ok(())
    }

    /// Fails the queue pair, waits until everything has completed, and starts again.
    fn fail(&mut self) -> Outcome<()> {
        self.qp.modify(&QpAttr::new().state(QpState::ERR))?;
        let deadline = Instant::now() + PATIENCE;
        while !self.receives.is_empty() || self.sends > 0 {
            assert!(Instant::now() < deadline, "not all is flushed: {:?}", self.receives);
            self.poll()?;
        }
        self.qp.modify(&QpAttr::new().state(QpState::RESET))?;
        self.qp.activate(&Port::new(1), QKEY)?;
        Ok(())
    }
}

/// Sends to its parent and to itself, receives, and fails from time to time.
#[test]
#[ignore = "a process of another test"]
fn sends() {
    let (_, _, stops) = die_there();
    let outcome = live();
    assert!(stops || outcome.is_ok(), "{outcome:?}");
}

fn live() -> Outcome<()> {
    let context = open();
    let pd = context.alloc_pd().unwrap();
    let mut station = Station::new(&context, &pd)?;
    say(station.qp.number());
    let parent = order().parse()?;
    for round in 0..60 {
        station.post()?;
        for to in [parent, parent, station.qp.number()] {
            station.send(to)?;
        }
        station.poll()?;
        if round % 8 == 7 {
            station.fail()?;
        }
    }
    Ok(())
}

/// The steps of a datagram and of failing.
const STEPS: [Step; 8] = [
    Step::Entered,
    Step::Left,
    Step::Published,
    Step::Settled,
    Step::Kept,
    Step::Opened,
    Step::Closed,
    Step::Changed,
];

/// At which occurrence of each step, and how.
const ENDS: [(usize, Signal); 4] =
    [(0, Signal::KILL), (4, Signal::KILL), (25, Signal::KILL), (9, Signal::STOP)];

/// Resumes a process a moment after each stop, in a thread of its own: the others may wait for a lock that the
/// process holds.
fn resumes(pid: i32, over: &AtomicBool) {
    while !over.load(Relaxed) {
        if is_stopped(pid) {
            thread::sleep(Duration::from_millis(5));
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::CONT);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Exchanges datagrams with a victim until it has ended.
fn works_until_it_ends(
    stations: &mut [Station; 2],
    victim: &mut Actor,
    number: u32,
    end: (Step, usize),
) {
    let (deadline, mut ended) = (Instant::now() + PATIENCE, false);
    let mut rounds = 0;
    while !ended || rounds % 16 != 0 {
        assert!(Instant::now() < deadline, "{end:?}");
        rounds += 1;
        stations[0].post().unwrap();
        for station in &mut *stations {
            station.send(number).unwrap();
            station.poll().unwrap();
        }
        if rounds % 256 == 255 {
            stations[0].fail().unwrap();
        }
        ended = ended || victim.has_ended();
    }
}

/// A victim that is killed at a step, or stopped for a moment, while this process continues.
fn meet(context: &Context, pd: &ProtectionDomain, step: Step, time: usize, signal: Signal) {
    let mut stations = [(); 2].map(|()| Station::new(context, pd).unwrap());
    let mut victim = mortal_at("inside::dying::datagrams::sends", &fabric(), step, time, signal);
    let (pid, over) = (victim.pid(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| resumes(pid, &over));
        let ends = catch_unwind(AssertUnwindSafe(|| {
            // It may be stopped or killed before it names its queue pair.
            let said = victim.heard_within(PATIENCE);
            let number = said.map_or(0, |said| said.parse::<u32>().unwrap());
            victim.order(stations[0].qp.number());
            works_until_it_ends(&mut stations, &mut victim, number, (step, time));
        }));
        over.store(true, Relaxed);
        ends.unwrap_or_else(|panic| resume_unwind(panic));
    });
    let status = victim.status();
    let died = status.signal() == Some(signal.as_raw());
    assert!(died || status.success(), "{step:?} {time}: {status}");
    assert!(died || signal != Signal::KILL || time > 0, "nobody comes to {step:?}");
    works_on(&mut stations);
}

/// One queue pair sends to the other, which receives the datagram, and flushes what is left.
fn works_on([one, other]: &mut [Station; 2]) {
    let before = one.came;
    one.post().unwrap();
    until("a datagram of another one comes", || {
        other.send(one.qp.number()).unwrap();
        other.poll().unwrap();
        one.poll().unwrap();
        one.came > before
    });
    one.fail().unwrap();
    other.fail().unwrap();
}

#[test]
#[ignore = "a process of another test"]
fn goes_on() {
    die_with_parent();
    let context = open();
    let (pd, device) = (context.alloc_pd().unwrap(), context.device);
    let estate = Estate::mine(device);
    for step in STEPS {
        for (time, signal) in ENDS {
            meet(&context, &pd, step, time, signal);
            nothing_is_left(device, estate);
        }
        say(format!("{step:?}"));
    }
}

#[test]
fn x03_a_death_in_a_datagram_stops_no_other_and_leaks_nothing() {
    runs_well("datagrams::goes_on", &[], |_| {});
}
