//! Many processes that come while others go.

use super::*;

const RACERS: usize = 16;

/// Attaches when it is told to, says to which file, and goes when it is told to.
pub fn racer(path: &FabricPath) {
    say("ready");
    wait();
    attach(path).unwrap();
    say(inode(path));
    wait();
}

fn ready(directory: &Directory) -> Vec<Actor> {
    let racers: Vec<_> = (0..RACERS).map(|_| Actor::play("racer", directory)).collect();
    racers.iter().for_each(|racer| assert_eq!(racer.hear(), "ready"));
    racers
}

#[test]
fn x02_all_that_come_while_others_go_end_up_in_one_file_and_leave_nothing() {
    let directory = Directory::new();
    let mut before: Vec<Actor> = Vec::new();
    for round in 0..4 {
        let mut racers = ready(&directory);
        for (index, racer) in racers.iter_mut().enumerate() {
            racer.go();
            // Those of the round before go meanwhile, in every other round by being killed.
            if let Some(leaver) = before.get_mut(index) {
                if round % 2 == 0 { leaver.kill() } else { leaver.go() }
            }
        }
        let inodes: Vec<_> = racers.iter().map(Actor::number).collect();
        assert!(inodes.iter().all(|&inode| inode == inodes[0] && inode != 0), "{inodes:?}");
        for leaver in before.drain(..) {
            leaver.ended();
        }
        assert_eq!(inode(&directory.path()), inodes[0], "it is still there");
        assert_eq!(directory.files().len(), 1);
        before = racers;
    }
    before.iter_mut().for_each(Actor::go);
    before.into_iter().for_each(|racer| assert!(racer.ended().success()));
    assert_eq!(directory.files(), [""; 0]);
}
