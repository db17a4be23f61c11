//! Tests of many processes that attach while others leave, or are killed.

use std::io::{Read as _, Write, pipe};
use std::sync::atomic::{AtomicBool, AtomicU64};

use rustix::fs::statvfs;

use super::*;
use crate::inside::actor::few_or;
use crate::inside::chance::Chance;

const RACERS: usize = 16;

/// More than half of the memory of a container, which is 64 MiB.
const LARGE: u64 = 52 << 20;
/// What a file takes beside its bytes: the header of each process that wants to make it.
const BESIDE: u64 = (RACERS as u64) << 12;

/// How often the makers of a fabric are killed.
const KILLS: usize = 300;
/// A fabric that takes some milliseconds to make.
const KILLED_AT: u64 = 12 << 20;

/// Attaches on order, writes to which file, and leaves on order.
pub fn racer(path: &FabricPath) {
    races(path, limits().bytes);
}

/// The same, with a large fabric.
pub fn large_racer(path: &FabricPath) {
    races(path, LARGE);
}

fn races(path: &FabricPath, bytes: u64) {
    say("ready");
    order();
    attach_large(path, bytes).unwrap();
    say(inode(path));
    order();
}

fn attach_large(path: &FabricPath, bytes: u64) -> Result<&'static Attachment, AttachError> {
    REGISTRY.attach(path, &Shape { bytes, ..limits() }, &FORMAT)
}

fn ready(directory: &Directory, part: &str) -> Vec<Actor> {
    let racers: Vec<_> = (0..RACERS).map(|_| directory.play(part)).collect();
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
pub fn crowd(directory: &Directory, part: &str) {
    let mut racers = ready(directory, part);
    racers.iter_mut().for_each(Actor::go);
    meet(&racers, &directory.path());
    racers.into_iter().for_each(Actor::finish);
    assert_eq!(directory.files(), [""; 0]);
}

/// The most bytes that the file system of a directory has in use until `while_it` returns.
fn most_used(directory: &Path, while_it: impl FnOnce()) -> u64 {
    let (is_over, most) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                let stat = statvfs(directory).unwrap();
                most.fetch_max((stat.f_blocks - stat.f_bfree) * stat.f_frsize, Relaxed);
            }
        });
        while_it();
        is_over.store(true, Relaxed);
    });
    most.into_inner()
}

fn is_one_file(used: u64, bytes: u64) {
    assert!(used <= bytes + BESIDE, "{used} bytes were in use for one file of {bytes}");
}

/// All attach at once to a large fabric.
pub fn large_crowd(directory: &Directory) {
    let used = most_used(&directory.0, || crowd(directory, "large racer"));
    is_one_file(used, LARGE);
}

/// A child that attaches, says so in a pipe, and lives until it is killed.
fn fork_attached(path: &FabricPath, mut says: impl Write) -> i32 {
    forks::fork(|| {
        attach_large(path, KILLED_AT).unwrap();
        says.write_all(b"x").unwrap();
        forks::sleeps()
    })
}

/// Makers of a fabric are killed, at any instant. Whoever waits for them makes it, and the last leaves nothing.
pub fn killed_makers(path: &FabricPath) {
    let mut chance = Chance::new(std::process::id().into());
    let used = most_used(path.directory(), || {
        for _ in 0..few_or(KILLS, 20 * KILLS) / 4 {
            let makers = [(); 3].map(|()| fork_attached(path, std::io::sink()));
            let delay = Duration::from_micros(chance.below(15_000) as u64);
            thread::sleep(delay);
            let (mut attached, says) = pipe().unwrap();
            let waits = fork_attached(path, says);
            makers.into_iter().for_each(forks::kill);
            attached.read_exact(&mut [0]).expect("it attaches");
            forks::kill(waits);
            let last = forks::fork(|| attach_large(path, KILLED_AT).is_ok());
            assert_eq!(forks::exit_code(last), 0, "after {delay:?}");
            assert_eq!(files(path.directory()), [""; 0], "after {delay:?}");
        }
    });
    is_one_file(used, KILLED_AT);
}

#[test]
fn x02_all_that_come_while_others_go_end_up_in_one_file_and_leave_nothing() {
    let directory = Directory::new();
    let mut before: Vec<Actor> = Vec::new();
    for round in 0..4 {
        let mut racers = ready(&directory, "racer");
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
