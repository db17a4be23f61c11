use super::*;
use crate::inside::attaching::{FORMAT, attach, limits};
use crate::inside::prelude::*;
use crate::shm::unshared::Opened;

/// A file of a process that died, which has no name yet.
fn dead(path: &FabricPath) -> Opened {
    let file = file::make(path, limits().bytes).unwrap();
    header::write(file.as_fd(), &limits(), &FORMAT).unwrap();
    file
}

/// As who has found it by its name.
fn removes(path: &FabricPath, file: &Opened) {
    remove_dead(path, file::id_of(file.as_fd()).unwrap(), file.as_fd());
}

#[test]
fn x02_a_file_that_has_taken_the_name_of_a_dead_one_meanwhile_stays() {
    let directory = Directory::new();
    let path = &directory.path();
    let file = dead(path);
    attach(path).unwrap();
    removes(path, &file);
    assert_eq!(directory.files().len(), 1, "it is another's");
    removes(path, &file::open_found(path).unwrap().unwrap());
    assert_eq!(directory.files().len(), 1, "it is in use");

    let other = Directory::new();
    let path = &other.path();
    let file = dead(path);
    assert!(file::link(file.as_fd(), path).unwrap());
    removes(path, &file);
    assert_eq!(other.files(), [""; 0]);
}

#[test]
fn x02_a_file_stays_whose_gate_somebody_is_in() {
    static PRUNES: Registry = Registry::new();
    let directory = Directory::new();
    let path = &directory.path();
    let dead = dead(path);
    assert!(file::link(dead.as_fd(), path).unwrap());
    let guard = PRUNES.lock(Instant::now()).unwrap();
    let gate = Gate::pass(dead.as_fd(), Instant::now()).unwrap();
    remove_unused(&guard, path);
    assert_eq!(directory.files().len(), 1);
    drop(gate);
    remove_unused(&guard, path);
    assert_eq!(directory.files(), [""; 0]);
}
