//! The surviving process: it starts the others, is connected to each, kills them, and counts.

use rustix::process::{Pid, kill_process};

use super::super::line::Survivor;
use super::*;

/// Victims at a time; an even number, since two are connected to each other.
const VICTIMS: usize = 4;
/// After so many kills all victims are killed, and everything is counted.
const ROUND: u64 = 50;

fn start() -> Actor {
    Actor::start("inside::dying::storm::victim::suffers", &[])
}

struct Storm {
    survivor: Survivor,
    kills: u64,
}

impl Storm {
    fn kill(&mut self, at: usize) {
        let victim = &mut self.survivor.lines[at].victim;
        assert!(!victim.has_ended(), "it ended before it was killed");
        self.end(at);
        let asleep = self.survivor.chance.one_in(2);
        self.survivor.lines[at].expect_the_end(asleep);
        self.kills += 1;
    }

    /// Ends a victim: mostly by killing it, stopped before or not.
    fn end(&mut self, at: usize) {
        /// Much shorter than any wait for a stopped process.
        const STOP: usize = 5_000;
        let (how, time) = (self.survivor.chance.below(6), self.survivor.chance.below(STOP));
        let time = Duration::from_micros(time as u64);
        if how < 2 {
            let pid = Pid::from_raw(self.survivor.lines[at].victim.pid()).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
            // This thread may have to wait for what the victim was in the middle of.
            let resumes = thread::spawn(move || {
                thread::sleep(time);
                kill_process(pid, if how == 0 { Signal::KILL } else { Signal::CONT }).unwrap();
            });
            self.survivor.work_for(time);
            resumes.join().unwrap();
        }
        let victim = &mut self.survivor.lines[at].victim;
        if how == 2 {
            victim.order(RUN_ANOTHER);
            until("it has become another program, which ended", || victim.has_ended());
        } else {
            victim.kill();
        }
    }

    /// Kills all victims, and counts everything.
    fn take_stock(&mut self) {
        (0..VICTIMS).for_each(|at| self.kill(at));
        // A victim killed while it attaches may get a little further.
        until("nobody is left", || {
            let _swept = open();
            self.survivor.device.shm.others().count() == 0
        });
        self.survivor.nothing_is_left_of_the_dead();
        assert_eq!(Estate::mine(self.survivor.device), self.survivor.estate);
        assert_eq!(audit::held(self.survivor.device), [], "no lock stays taken");
    }

    fn replace(&mut self, at: usize) {
        let anew = self.survivor.chance.one_in(2);
        self.survivor.lines[at].replace(&self.survivor.pd, start(), anew);
    }
}

#[test]
#[ignore = "a process of the storm"]
fn survives() {
    die_with_parent();
    let mut me = Storm { survivor: Survivor::new(VICTIMS, number(SEED, 0), start), kills: 0 };
    let kills = number(KILLS, 0);
    let begun = Instant::now();
    while me.kills < kills {
        let time = Duration::from_micros(me.survivor.chance.below(40_000) as u64);
        me.survivor.work_for(time);
        let at = me.survivor.chance.below(VICTIMS);
        if me.survivor.chance.one_in(8) {
            // Possibly while it attaches; otherwise after messages were exchanged.
        } else if me.survivor.lines[at].mesh().is_none() || !me.survivor.lines[at].has_talked() {
            let deadline = Instant::now() + PATIENCE;
            while me.survivor.lines[at].mesh().is_none() || !me.survivor.lines[at].has_talked() {
                me.survivor.work();
                assert!(
                    Instant::now() < deadline,
                    "nothing comes: {:?}",
                    me.survivor.lines[at].ends
                );
            }
        }
        if me.kills / ROUND < (me.kills + 1) / ROUND {
            me.take_stock();
            (0..VICTIMS).for_each(|at| me.replace(at));
        } else {
            me.kill(at);
            me.survivor.use_device();
            me.survivor.nothing_is_left_of_the_dead();
            me.replace(at);
        }
        say(format!("{} kills in {:?}", me.kills, begun.elapsed()));
    }
    me.take_stock();
}
