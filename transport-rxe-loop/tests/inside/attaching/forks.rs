//! Tests of processes that fork.

#![allow(unsafe_code)]

use std::io::{Read as _, Write as _, pipe};
use std::os::fd::AsRawFd;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, kill_process, setrlimit};

use super::*;
use crate::shm::fork::watch;
use crate::shm::{file, guard_page};
use crate::sync::{AtomicU32 as Word, load, store};

/// Forks; the result of `child` is its exit code.
pub fn fork(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the C library makes its allocator usable in the child, which uses nothing else that another thread
    // could have been in the middle of.
    match unsafe { libc::fork() } {
        0 => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: ends the child like a program, with its exit handlers.
            unsafe { libc::exit(i32::from(!matches!(code, Ok(true)))) }
        }
        pid => pid,
    }
}

/// A child that lives until it is killed.
fn fork_for_long() -> i32 {
    fork(|| sleeps())
}

/// Sleeps until this process is killed.
pub fn sleeps() -> ! {
    loop {
        thread::sleep(PATIENCE);
    }
}

/// Kills a child, and waits for its end.
pub fn kill(child: i32) {
    end(Pid::from_raw(child).unwrap());
    assert_eq!(exit_code(child), -1);
}

/// Waits for a child, as long as it may take.
pub fn exit_code(pid: i32) -> i32 {
    let mut status = 0;
    until("the child ends", || {
        // SAFETY: writes one number.
        unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) == pid }
    });
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
}

fn word(of: &'static Attachment) -> &'static Word {
    of.memory.at(8192).unwrap()
}

/// Inherited handles reach nothing, and the child can attach again.
fn child_is_its_own(here: &'static Attachment) -> bool {
    assert!(!here.is_ours());
    assert_eq!(load(word(here)), 0);
    store(word(here), 77);
    assert_eq!(here.alive(here.owner), ALIVE);
    assert_eq!(REGISTRY.all().count(), 0);
    let anew = attach(&here.path).unwrap();
    assert!(anew.is_ours());
    assert_ne!(anew.owner, here.owner);
    assert_eq!(load(word(anew)), 5);
    store(word(anew), 6);
    // SAFETY: a call without arguments.
    let parent = unsafe { libc::getppid() };
    assert_eq!(anew.alive(here.owner), alive(parent));
    // Although its descriptor is open again, with the same number.
    assert_eq!(anew.alive(0), Liveness::Dead);
    assert_eq!(here.alive(0), ALIVE, "what is inherited says nothing");
    true
}

/// Children must not draw the same addresses, whatever random state they inherit from this thread.
fn address_that_a_child_draws() -> [u8; 8] {
    let (mut drawn, mut draws) = pipe().unwrap();
    let child = fork(move || draws.write_all(&guard_page::drawn(0).to_ne_bytes()).is_ok());
    assert_eq!(exit_code(child), 0);
    let mut address = [0; 8];
    drawn.read_exact(&mut address).unwrap();
    address
}

pub fn parent(path: &FabricPath) {
    let here = attach(path).unwrap();
    store(word(here), 5);
    let pid = fork(|| child_is_its_own(here));
    assert_eq!(exit_code(pid), 0);
    assert!(here.is_ours());
    assert_eq!(load(word(here)), 6);
    let child = here.owners().find(|&owner| owner != here.owner).unwrap();
    assert_eq!(here.alive(child), Liveness::Dead);
    assert_eq!(files(path.directory()).len(), 1, "the child's end removed nothing");
    let [first, second] = [(); 2].map(|()| address_that_a_child_draws());
    assert_ne!(first, second, "one of them may have the other's number next");
}

#[test]
fn x07_a_forked_child_is_another_process_and_harms_nothing() {
    let directory = Directory::new();
    directory.plays_to_the_end("parent");
    assert_eq!(directory.files(), [""; 0]);
}

/// Kills a process that says its owner and then the number of its child, which lives on: it holds nothing of its
/// parent's attachment.
fn dies_before_its_child(part: &str) -> (Directory, u32, Pid) {
    let (directory, here) = attached();
    let (mut actor, owner) = directory.attached(part);
    let child = Pid::from_raw(actor.number() as i32).unwrap();
    assert_eq!(here.alive(owner), alive(actor.pid()));
    actor.kill();
    is_dead_soon(here, owner);
    (directory, owner, child)
}

/// Ends a child that lives to be killed.
fn end(child: Pid) {
    kill_process(child, Signal::KILL).expect("the child lives");
}

/// Forks while it holds the gate, and leaves the child to be killed.
pub fn parent_of_a_survivor(path: &FabricPath) {
    let here = attach(path).unwrap();
    let _gate = Gate::pass(fd(), Instant::now() + PATIENCE).unwrap().unwrap();
    let pid = fork_for_long();
    say(here.owner);
    say(pid);
    order();
}

#[test]
fn x03_a_forked_child_holds_neither_its_parents_attachment_nor_the_gate() {
    let (directory, owner, child) = dies_before_its_child("parent of a survivor");
    let (next, other) = directory.user();
    assert_ne!(other, owner, "the gate is free");
    end(child);
    next.finish();
}

/// Makes a child without the C library's fork, whose handlers do not run, and leaves it to be killed.
pub fn bare_parent(path: &FabricPath) {
    let here = attach(path).unwrap();
    // SAFETY: as `fork`, of a child that only sleeps.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child == 0 {
        loop {
            thread::sleep(PATIENCE);
        }
    }
    say(here.owner);
    say(child);
    order();
}

/// Forks while another thread holds the registry.
pub fn parent_in_the_middle(path: &FabricPath) {
    let here = attach(path).unwrap();
    let held = REGISTRY.lock(Instant::now() + PATIENCE).unwrap();
    let pid = thread::scope(|scope| {
        let forker =
            scope.spawn(|| fork(|| attach(path).is_ok_and(|anew| anew.owner != here.owner)));
        forker.join().unwrap()
    });
    assert_eq!(exit_code(pid), 0);
    drop(held);
}

#[test]
fn x07_a_child_forked_while_another_thread_attached_can_attach() {
    Directory::new().plays_to_the_end("parent in the middle");
}

/// Another thread forks while this one attaches, with the lock of its owner held by a descriptor. Steps exist only with debug
/// assertions.
#[cfg(debug_assertions)]
pub fn parent_that_attaches(path: &FabricPath) {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::thread::JoinHandle;

    use rustix::thread::gettid;

    use crate::inside::actor::has_to_wait;
    use crate::protocol::steps;

    static CHILD: Mutex<Option<JoinHandle<i32>>> = Mutex::new(None);
    steps::hook(|step| {
        if step == Step::Locked {
            let (teller, told) = channel();
            let forks = thread::spawn(move || {
                teller.send(gettid()).unwrap();
                fork_for_long()
            });
            has_to_wait(told.recv().unwrap(), || forks.is_finished());
            *CHILD.lock().unwrap() = Some(forks);
        }
    });
    let here = attach(path).unwrap();
    say(here.owner);
    say(CHILD.lock().unwrap().take().unwrap().join().unwrap());
    order();
}

#[test]
fn x03_a_child_that_inherits_everything_or_meanwhile_does_not_hold_its_parents_attachment() {
    for part in [
        "bare parent",
        #[cfg(debug_assertions)]
        "parent that attaches",
    ] {
        let (_directory, _, child) = dies_before_its_child(part);
        end(child);
    }
}

/// Forks between opening the file and keeping it, and is killed while it holds the gate.
pub fn parent_that_opens(path: &FabricPath) {
    let guard = REGISTRY.lock(Instant::now() + PATIENCE).unwrap();
    watch(&guard).unwrap();
    let file = file::open_found(path).unwrap().unwrap();
    let child = fork(|| {
        // It gets the number of the descriptor that the child closed.
        let its_own = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: a query about a number.
        exit_code(fork(|| unsafe { libc::fcntl(its_own.as_raw_fd(), libc::F_GETFD) } >= 0)) == 0
    });
    assert_eq!(exit_code(child), 0, "what it opens is its children's");
    let child = fork_for_long();
    let kept = guard.keep(file, file::find(path).unwrap().unwrap());
    let _gate = Gate::pass(kept.fd().unwrap(), Instant::now() + PATIENCE).unwrap().unwrap();
    say(child);
    order();
}

#[test]
fn x03_a_child_forked_while_its_parent_opened_the_file_does_not_keep_the_gate_shut() {
    let directory = Directory::new();
    let (user, _) = directory.user();
    let mut actor = directory.play("parent that opens");
    let child = Pid::from_raw(actor.number() as i32).unwrap();
    actor.kill();
    let here = attach(&directory.path());
    end(child);
    assert_eq!(here.unwrap().owners().count(), 2);
    user.finish();
}

/// Forks where the system refuses all mappings.
pub fn parent_that_maps_nothing(path: &FabricPath) {
    let here = attach(path).unwrap();
    let (memory, core) = (getrlimit(Resource::As), getrlimit(Resource::Core));
    setrlimit(Resource::Core, Rlimit { current: Some(0), ..core }).unwrap();
    setrlimit(Resource::As, Rlimit { current: Some(1), ..memory }).unwrap();
    let pid = fork(|| {
        store(word(here), 77);
        true
    });
    setrlimit(Resource::As, memory).unwrap();
    assert!(pid > 0, "it forks");
    assert_eq!((exit_code(pid), load(word(here))), (-1, 0), "the child ends before it runs");
}

#[test]
fn x07_a_forked_child_that_could_reach_the_memory_of_its_parent_is_ended() {
    Directory::new().plays_to_the_end("parent that maps nothing");
}
