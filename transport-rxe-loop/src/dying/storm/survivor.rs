//! The process that goes on: it starts the others, is connected to each, kills them, and counts.

use std::thread;
use std::time::{Duration, Instant};

use cq_core::transport::{Arm, Block, Events, Notify};
use cq_core::wc::WcStatus;

use super::super::ends::{End, OUTSTANDING, poll};
use super::super::{FABRIC, open};
use super::victim::LINES;
use super::{KILLS, SEED, number};
use crate::actor::{Actor, PATIENCE, die_with_parent, say, until};
use crate::audit::{self, Estate};
use crate::chance::Chance;
use crate::channel::CompletionChannel;
use crate::cq::Cq;
use crate::device::Context;
use crate::fabric::Fabric;
use crate::pd::ProtectionDomain;

/// Victims at a time; an even number, since two are connected to each other.
const VICTIMS: usize = 4;
/// After so many kills nobody is left for a moment, and everything is counted.
const ROUND: u64 = 50;

/// A victim, and the ends that are connected to it.
struct Line {
    victim: Actor,
    /// Its numbers, as far as it has said them.
    numbers: Vec<u32>,
    ends: Vec<End>,
    cq: Cq,
    channel: CompletionChannel,
}

impl Line {
    fn new(context: &Context, pd: &ProtectionDomain) -> Self {
        let channel = context.create_channel().unwrap();
        let cq = context.create_cq(2 * LINES as u32 * OUTSTANDING, Some(&channel)).unwrap();
        let ends = (0..LINES).map(|_| End::new(pd, &cq)).collect();
        Self { victim: start(), numbers: Vec::new(), ends, cq, channel }
    }

    /// Listens to what the victim says; true if it has just said the last.
    fn greets(&mut self) -> bool {
        let before = self.numbers.len();
        while let Some(said) = self.victim.heard() {
            self.numbers.push(said.parse().unwrap());
        }
        let greets = before <= LINES && self.numbers.len() == LINES + 1;
        if greets {
            for (which, end) in self.ends.iter_mut().enumerate() {
                end.connect(self.numbers[which]);
                self.victim.order(format!("{which} {}", end.number()));
            }
        }
        greets
    }

    /// The number by which another victim connects to this one.
    fn mesh(&self) -> Option<u32> {
        self.numbers.get(LINES).copied()
    }

    fn work(&mut self, chance: &mut Chance) {
        self.ends.iter_mut().for_each(|end| end.work(chance));
        poll(&mut self.cq, &mut self.ends);
    }

    /// Whether each end has got something across, and something back.
    fn has_talked(&self) -> bool {
        self.ends.iter().all(|end| end.arrived > 0 && end.received() > 0)
    }

    /// The victim is dead, or about to be: its peers fail once they send it something.
    fn expect_the_end(&mut self, asleep: bool) {
        if self.mesh().is_none() {
            return;
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.ends.iter().all(|end| end.is_done() && end.failure.is_some()) {
            assert!(Instant::now() < deadline, "not everything completes: {:#?}", self.ends);
            // What finds a receive that is still there succeeds, dead or not.
            for end in self.ends.iter_mut().filter(|end| end.failure.is_none()) {
                end.post_send(true, true);
            }
            if asleep {
                self.sleep();
            }
            poll(&mut self.cq, &mut self.ends);
            thread::yield_now();
        }
        for end in &self.ends {
            assert_eq!(end.failure, Some(WcStatus::RETRY_EXC_ERR), "{end:?}");
        }
    }

    /// Sleeps until something comes (N6).
    fn sleep(&mut self) {
        while self.channel.next().unwrap().is_some() {}
        let _ = self.cq.arm(Notify::Next).unwrap();
        if poll(&mut self.cq, &mut self.ends) > 0 || self.ends.iter().all(End::is_done) {
            return;
        }
        let woken = self.channel.block(&mut Some(Duration::from_secs(10))).unwrap();
        let came = poll(&mut self.cq, &mut self.ends);
        assert!(woken, "{came} completions came to a sleeper that nobody woke: {:?}", self.ends);
    }

    fn replace(&mut self, pd: &ProtectionDomain, anew: bool) {
        self.victim = start();
        self.numbers.clear();
        if anew {
            self.ends = (0..LINES).map(|_| End::new(pd, &self.cq)).collect();
        }
    }
}

fn start() -> Actor {
    let fabric = std::env::var(FABRIC).unwrap();
    Actor::start("dying::storm::victim::suffers", &[(FABRIC, &fabric)])
}

struct Survivor {
    context: Context,
    pd: ProtectionDomain,
    fabric: &'static Fabric,
    lines: Vec<Line>,
    chance: Chance,
    kills: u64,
    /// What this process has while it has its lines.
    estate: Estate,
}

impl Survivor {
    fn new() -> Self {
        let context = open();
        let (pd, fabric) = (context.alloc_pd(), context.bell().fabric());
        let lines = (0..VICTIMS).map(|_| Line::new(&context, &pd)).collect();
        let chance = Chance::new(number(SEED, 0));
        let estate = Estate::of(fabric, fabric.place());
        Self { context, pd, fabric, lines, chance, kills: 0, estate }
    }

    /// Works with all, and connects who has come.
    fn work(&mut self) {
        for at in 0..self.lines.len() {
            if self.lines[at].greets() {
                self.introduce(at);
            }
            self.lines[at].work(&mut self.chance);
        }
    }

    /// Connects a victim to its neighbour.
    fn introduce(&mut self, at: usize) {
        let neighbour = at ^ 1;
        let both = (self.lines[at].mesh(), self.lines[neighbour].mesh());
        if let (Some(one), Some(other)) = both {
            self.lines[at].victim.order(format!("{LINES} {other}"));
            self.lines[neighbour].victim.order(format!("{LINES} {one}"));
        }
    }

    fn work_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.work();
        }
    }

    fn kill(&mut self, at: usize) {
        let line = &mut self.lines[at];
        assert!(!line.victim.has_ended(), "it ended before it was killed");
        line.victim.kill();
        line.expect_the_end(self.chance.one_in(2));
        self.kills += 1;
    }

    /// The device of this process, and a new pair in it.
    fn use_device(&mut self) {
        let cq = &mut self.context.create_cq(2 * OUTSTANDING, None).unwrap();
        let mut ends = [(); 2].map(|()| End::new(&self.pd, cq));
        let numbers = [1, 0].map(|other: usize| ends[other].number());
        for (end, peer) in ends.iter_mut().zip(numbers) {
            end.connect(peer);
            end.post_recvs(2);
        }
        ends.iter_mut().for_each(|end| assert!(end.post_send(true, false)));
        until("a new pair works", || {
            poll(cq, &mut ends);
            ends.iter().all(|end| end.arrived == 1 && end.received() == 1)
        });
    }

    fn nothing_is_left_of_the_dead(&mut self) {
        let mut last = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let left = audit::ownerless(self.fabric);
            if left.is_empty() {
                return;
            }
            // What a victim is making or destroying right now is not in its place for a moment.
            if Instant::now() > deadline {
                panic!("this is left of the dead: {left:#?}, before: {last:#?}");
            }
            last = left;
            self.work_for(Duration::from_millis(1));
        }
    }

    /// All are killed, and everything is counted.
    fn take_stock(&mut self) {
        (0..VICTIMS).for_each(|at| self.kill(at));
        // Whoever was killed in the midst of coming may come a little further.
        until("nobody is left", || self.fabric.others().count() == 0);
        self.nothing_is_left_of_the_dead();
        assert_eq!(Estate::of(self.fabric, self.fabric.place()), self.estate);
        assert_eq!(audit::held(self.fabric), [], "no lock stays taken");
    }

    fn replace(&mut self, at: usize) {
        let anew = self.chance.one_in(2);
        self.lines[at].replace(&self.pd, anew);
    }
}

#[test]
#[ignore = "a process of the storm"]
fn survives() {
    die_with_parent();
    let mut me = Survivor::new();
    let kills = number(KILLS, 0);
    let begun = Instant::now();
    while me.kills < kills {
        let time = Duration::from_micros(me.chance.below(40_000) as u64);
        me.work_for(time);
        let at = me.chance.below(VICTIMS);
        if me.chance.one_in(8) {
            // In the midst of coming, perhaps; else one with whom something was exchanged.
        } else if me.lines[at].mesh().is_none() || !me.lines[at].has_talked() {
            let deadline = Instant::now() + Duration::from_secs(20);
            while me.lines[at].mesh().is_none() || !me.lines[at].has_talked() {
                me.work();
                assert!(Instant::now() < deadline, "nothing comes: {:?}", me.lines[at].ends);
            }
        }
        if me.kills / ROUND < (me.kills + 1) / ROUND {
            me.take_stock();
            (0..VICTIMS).for_each(|at| me.replace(at));
        } else {
            me.kill(at);
            me.use_device();
            me.nothing_is_left_of_the_dead();
            me.replace(at);
        }
        say(format!("{} kills in {:?}", me.kills, begun.elapsed()));
    }
    me.take_stock();
}
