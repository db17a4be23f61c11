use super::*;
use crate::inside::attaching::{FORMAT, attach, limits};
use crate::inside::prelude::*;

#[test]
fn x02_a_file_that_has_taken_the_name_of_a_dead_one_meanwhile_stays() {
    let directory = Directory::new();
    let path = &directory.path();
    let dead = |path| {
        let file = file::make(path, limits().bytes).unwrap();
        header::write(file.as_fd(), &limits(), &FORMAT).unwrap();
        let id = file::id_of(file.as_fd()).unwrap();
        (file, id)
    };
    let (file, id) = dead(path);
    attach(path).unwrap();
    remove_dead(path, id, file.as_fd());
    assert_eq!(directory.files().len(), 1, "it is another's");
    let used = file::open_found(path).unwrap().unwrap();
    remove_dead(path, file::id_of(used.as_fd()).unwrap(), used.as_fd());
    assert_eq!(directory.files().len(), 1, "it is in use");

    let other = Directory::new();
    let path = &other.path();
    let (file, id) = dead(path);
    assert!(file::link(file.as_fd(), path).unwrap());
    remove_dead(path, id, file.as_fd());
    assert_eq!(other.files(), [""; 0]);
}

#[test]
fn x02_a_file_stays_whose_gate_somebody_is_in() {
    static PRUNES: Registry = Registry::new();
    let directory = Directory::new();
    let path = &directory.path();
    let dead = file::make(path, limits().bytes).unwrap();
    header::write(dead.as_fd(), &limits(), &FORMAT).unwrap();
    assert!(file::link(dead.as_fd(), path).unwrap());
    let guard = PRUNES.lock(Instant::now()).unwrap();
    let gate = Gate::pass(dead.as_fd(), Instant::now()).unwrap();
    remove_unused(&guard, path);
    assert_eq!(directory.files().len(), 1);
    drop(gate);
    remove_unused(&guard, path);
    assert_eq!(directory.files(), [""; 0]);
}
