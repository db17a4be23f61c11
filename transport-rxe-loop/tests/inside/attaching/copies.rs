//! Tests of two copies of the library in one process: two registries, each with its own descriptors.

use super::*;
use crate::shm::attachment::leave;

static OTHER: Registry = Registry::new();

#[test]
fn x01_two_copies_in_one_process_have_an_attachment_each() {
    let (directory, here) = attached();
    let there = OTHER.attach(&directory.path(), &limits(), &FORMAT).unwrap();
    assert_ne!(here.owner, there.owner);
    // Attaching closed a descriptor of the file.
    assert_eq!(there.alive(here.owner), ALIVE);
    here.tidy();
    for (asked, owner) in [(here, there.owner), (there, here.owner), (here, here.owner)] {
        assert_eq!(asked.alive(owner), me());
    }
    let (actor, owner) = directory.user();
    assert!(![here.owner, there.owner].contains(&owner));
    actor.finish();
    assert_eq!(directory.files().len(), 1);
}

/// At the end both copies leave: this one by itself, the other by order.
pub fn two_copies(path: &FabricPath) {
    attach(path).unwrap();
    OTHER.attach(path, &limits(), &FORMAT).unwrap();
    leave(&OTHER, Instant::now() + PATIENCE);
    say(files(path.directory()).len());
}

#[test]
fn x02_the_last_copy_in_the_last_process_removes_the_file() {
    let directory = Directory::new();
    let actor = directory.play("two copies");
    assert_eq!(actor.hear(), "1", "the other copy still uses it");
    assert!(actor.ended().success());
    assert_eq!(directory.files(), [""; 0]);
}
