use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::*;
use crate::inside::attaching::{FORMAT, attached, limits};
use crate::inside::prelude::*;
use crate::shm::attachment::leave_one;

#[test]
fn x07_threads_that_open_at_once_make_their_device_one_after_the_other() {
    let (directory, here) = attached();
    let failed = || AttachError::Busy { path: directory.path().file() };
    let released = AtomicBool::new(false);
    let guard = REGISTRY.lock(Instant::now() + PATIENCE).unwrap();
    let makes = || {
        assert!(released.load(SeqCst), "another thread is at it");
        Err::<u32, _>(failed())
    };
    let other = waits(
        || here.device(makes),
        || {
            released.store(true, SeqCst);
            drop(guard);
        },
    );
    assert_eq!(other.unwrap_err(), failed());
}

/// An attempt of a program that has kept no file yet.
fn attempt<'a>(registry: &'static Registry, path: &'a FabricPath) -> Attempt<'a> {
    let guard = registry.lock(Instant::now() + PATIENCE).unwrap();
    let shape = limits().in_force(&FORMAT).unwrap();
    let wait = Box::leak(Box::new(Wait::from(Instant::now())));
    Attempt { guard, path, shape, format: &FORMAT, wait }
}

#[test]
fn x07_who_waits_at_a_gate_keeps_no_thread_from_another_fabric() {
    static TWO: Registry = Registry::new();
    let ((directory, here), another) = (attached(), Directory::new());
    let attach = |to: &Directory| TWO.attach(&to.path(), &limits(), &FORMAT).map(drop);
    let file = file::open_found(&directory.path()).unwrap().unwrap();
    let gate = Gate::pass(file.as_fd(), Instant::now()).unwrap().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| attach(&directory));
        until("it has come to the gate", || TWO.all().any(|kept| kept.id() == here.id));
        attach(&another).unwrap();
        assert!(!waiting.is_finished(), "it was to wait");
        drop(gate);
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn x02_who_comes_second_with_a_new_file_keeps_nothing_of_it() {
    static SECOND: Registry = Registry::new();
    let (directory, _) = attached();
    // As if the other process had created its file after this one found none.
    assert!(attempt(&SECOND, &directory.path()).create().unwrap().is_none());
    assert!(SECOND.all().next().unwrap().fd().is_none());
    assert_eq!(directory.files().len(), 1);
}

#[test]
fn x02_who_finds_its_number_to_be_another_fabric_s_attaches_to_neither() {
    static CARELESS: Registry = Registry::new();
    let ((directory, _), (another, _)) = (attached(), attached());
    let (path, other) = (&directory.path(), &another.path());
    let attempt = attempt(&CARELESS, path);
    // As if the program closed the device's descriptor, and another thread opened the other file.
    let lose = |kept: &'static Kept| {
        kept.descriptor().set(file::open_found(other).unwrap().unwrap());
        kept.fd().unwrap()
    };
    let found = attempt.keep(file::open_found(path).unwrap().unwrap()).unwrap();
    assert!(attempt.join(found, lose(found)).unwrap().is_none());
    // No process is attached to that file, and one to this file.
    let dead = file::make(other, limits().bytes).unwrap();
    found.descriptor().set(dead);
    assert!(attempt.enter(found).unwrap().is_none());
    assert_eq!(directory.files().len(), 1, "it was not asked about this one");
    file::unlink_fabric(path).unwrap();
    let made = attempt.keep(file::make(path, limits().bytes).unwrap()).unwrap();
    lose(made);
    assert!(attempt.link(made).unwrap().is_none());
    assert_eq!(directory.files(), [""; 0]);
}

#[test]
fn x02_who_leaves_and_finds_its_number_to_be_another_file_s_removes_nothing() {
    static LEAVES: Registry = Registry::new();
    let (directory, _) = attached();
    let path = &directory.path();
    let here = LEAVES.attach(path, &limits(), &FORMAT).unwrap();
    // No process is attached to that file.
    here.fd.set(file::make(path, limits().bytes).unwrap());
    leave_one(here, here.fd.get().unwrap());
    assert_eq!(directory.files().len(), 1);
}

#[test]
fn x07_a_process_waits_at_a_gate_for_as_long_as_the_file_grows() {
    static WAITS: Registry = Registry::new();
    let directory = Directory::new();
    let path = &directory.path();
    let made = || attempt(&WAITS, path).keep(file::make(path, 1).unwrap()).unwrap();
    let (file, other) = (made(), made());
    let wait = Wait::from(Instant::now());
    let moves = |file, len| {
        let before = wait.deadline.replace(wait.deadline.get() - PATIENCE);
        wait.at(file, len);
        wait.deadline.get() >= before
    };
    let grows = [(file, 1), (file, 1), (file, 0), (file, 2), (other, 1), (other, 1)];
    let moved = grows.map(|(file, len)| moves(file, len));
    assert_eq!(moved, [true, false, false, true, true, false]);
}
