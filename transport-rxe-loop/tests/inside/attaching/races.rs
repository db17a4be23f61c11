//! Tests of many processes that attach while others leave.

use super::*;

const RACERS: usize = 16;

/// Attaches on order, writes to which file, and leaves on order.
pub fn racer(path: &FabricPath) {
    say("ready");
    order();
    attach(path).unwrap();
    say(inode(path));
    order();
}

fn ready(directory: &Directory) -> Vec<Actor> {
    let racers: Vec<_> = (0..RACERS).map(|_| directory.play("racer")).collect();
    racers.iter().for_each(|racer| assert_eq!(racer.hear(), "ready"));
    racers
}

/// The one file to which all are attached.
fn meet(racers: &[Actor], path: &FabricPath) -> u64 {
    let inodes: Vec<_> = racers.iter().map(Actor::number).collect();
    assert!(inodes.iter().all(|&inode| inode == inodes[0] && inode != 0), "{inodes:?}");
    assert_eq!(inode(path), inodes[0], "it is still there");
    inodes[0]
}

/// All attach at once, with space for one file.
pub fn crowd(directory: &Directory) {
    let mut racers = ready(directory);
    racers.iter_mut().for_each(Actor::go);
    meet(&racers, &directory.path());
    racers.into_iter().for_each(Actor::finish);
    assert_eq!(directory.files(), [""; 0]);
}

#[test]
fn x02_all_that_come_while_others_go_end_up_in_one_file_and_leave_nothing() {
    let directory = Directory::new();
    let mut before: Vec<Actor> = Vec::new();
    for round in 0..4 {
        let mut racers = ready(&directory);
        for (index, racer) in racers.iter_mut().enumerate() {
            racer.go();
            // Those of the round before leave meanwhile, in every other round by being killed.
            if let Some(leaver) = before.get_mut(index) {
                if round % 2 == 0 { leaver.kill() } else { leaver.go() }
            }
        }
        let met = meet(&racers, &directory.path());
        for leaver in before.drain(..) {
            leaver.ended();
        }
        assert_eq!(inode(&directory.path()), met, "whoever went");
        assert_eq!(directory.files().len(), 1);
        before = racers;
    }
    before.iter_mut().for_each(Actor::go);
    before.into_iter().for_each(|racer| assert!(racer.ended().success()));
    assert_eq!(directory.files(), [""; 0]);
}

#[test]
fn who_waits_at_the_gate_of_a_file_that_is_removed_makes_a_new_one() {
    static ALONE: Registry = Registry::new();
    let directory = Directory::new();
    let path = directory.path();
    ALONE.attach(&path, &limits(), &FORMAT).unwrap();
    let fd = ALONE.all().next().unwrap().fd().unwrap();
    let before = inode(&path);
    let gate = Gate::pass(fd, Instant::now() + PATIENCE).unwrap();
    let mut racer = directory.play("racer");
    assert_eq!(racer.hear(), "ready");
    racer.go();
    until("it has found the file", || times_open(racer.pid() as u32, before) == 1);
    fs::remove_file(path.file()).unwrap();
    drop(gate);
    let after = racer.number();
    assert!(after != before && after != 0, "{before} {after}");
    assert_eq!(times_open(racer.pid() as u32, before), 0, "it does not keep the old one");
    racer.finish();
}
