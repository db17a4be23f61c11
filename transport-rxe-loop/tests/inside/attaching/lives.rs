//! Tests of liveness.

#![allow(unsafe_code)]

use std::os::fd::AsRawFd;

use super::*;
use crate::shm::unshared::Opened;
use crate::shm::{file, header};
use crate::sync::store;

/// Attaches, writes its owner, and stays until it may end.
pub fn user(path: &FabricPath) {
    say(attach(path).unwrap().owner);
    order();
}

/// Ends only the thread that it runs in.
extern "C" fn end_thread(_: libc::c_int) {
    // SAFETY: the thread waits for this one, and nobody waits for it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Continues after its first thread has ended.
pub fn first_thread(path: &FabricPath) {
    let pid = std::process::id() as i32;
    // SAFETY: the handler makes one system call; the first thread's id is the process's.
    unsafe {
        libc::signal(libc::SIGUSR1, end_thread as *const () as usize);
        assert_eq!(libc::syscall(libc::SYS_tgkill, pid, pid, libc::SIGUSR1), 0);
    }
    user(path);
}

/// Loses the descriptor, as in a program that closes all descriptors and opens something else. Returns its number.
fn lose_descriptor() -> i32 {
    let fd = fd();
    let other = File::options().read(true).write(true).open("/dev/null").unwrap();
    // SAFETY: it changes which file a number names, and no memory; the new one is open.
    assert!(unsafe { libc::dup2(other.as_raw_fd(), fd.as_raw_fd()) } >= 0);
    fd.as_raw_fd()
}

/// Loses the descriptor, and continues.
pub fn careless(path: &FabricPath) {
    let here = attach(path).unwrap();
    let dead = |_: BorrowedFd<'_>| {
        lose_descriptor();
        Ok(Liveness::Dead)
    };
    assert_eq!(here.ask(dead), ALIVE, "it was not asked about the file");
    say(here.owner);
    order();
    assert_eq!(here.alive(0), Liveness::Dead, "it finds the dead");
    let is_dead = |owner| here.alive(owner) == Liveness::Dead;
    assert!(!here.owners().any(is_dead));
    here.tidy();
    say("tidy");
    order();
}

/// Loses the descriptor, and ends without having checked the others.
pub fn careless_to_the_end(path: &FabricPath) {
    let here = attach(path).unwrap();
    lose_descriptor();
    say(here.owner);
    order();
}

/// Loses the descriptor when the file no longer has a name.
pub fn careless_without_a_file(path: &FabricPath) {
    let here = attach(path).unwrap();
    fs::remove_file(path.file()).unwrap();
    lose_descriptor();
    here.tidy();
    for owner in here.owners().chain([0]) {
        assert_eq!(here.alive(owner), ALIVE, "nobody is dead for that");
    }
    // The name belongs to another file by now.
    write_own(path, "x");
    assert_eq!(here.alive(0), ALIVE);
    say(here.owner);
    order();
}

/// Loses the descriptor, and forks.
pub fn careless_parent(path: &FabricPath) {
    attach(path).unwrap();
    let fd = lose_descriptor();
    // SAFETY: a query about a number.
    let pid = forks::fork(|| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0);
    assert_eq!(forks::exit_code(pid), 0, "the child has what the program opened");
}

/// Stays in the gate.
pub fn gatekeeper(path: &FabricPath) {
    let here = attach(path).unwrap();
    let _gate = Gate::pass(fd(), Instant::now() + PATIENCE).unwrap().unwrap();
    say(here.owner);
    order();
}

fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn a_process_is_alive_to_itself_and_who_never_was_is_dead() {
    let (directory, here) = attached();
    assert!(std::ptr::eq(directory.attach(), here));
    assert_eq!(here.owners().count(), 1, "it attaches once");
    let own = here.owner;
    assert_eq!(here.alive(own), me());
    let out = limits().processes + 1;
    let others = [0, 1, own + 1, own + (1 << 16), out, own + out, 255, 0xffff, own | 0xffff];
    for owner in others.into_iter().chain([u32::MAX]) {
        assert_eq!(here.alive(owner), Liveness::Dead, "{owner}");
    }
}

#[test]
fn x03_a_killed_process_is_dead_before_it_is_reaped_and_keeps_its_attachment_until_freed() {
    let (directory, here) = attached();
    let (mut actor, owner) = directory.user();
    actor.signal(Signal::STOP);
    until("it is stopped", || actor.is_stopped());
    assert_eq!(here.alive(owner), alive(actor.pid()));
    actor.kill();
    let is_dead = || here.alive(owner) == Liveness::Dead;
    until("it is dead, though a zombie", || is_dead() && state(actor.pid()) == Some('Z'));
    let (next, other) = directory.user();
    assert_ne!(other as u16, owner as u16, "its place is not taken before it is freed");
    assert_eq!(here.alive(owner), Liveness::Dead);
    here.free(owner);
    let (last, heir) = directory.user();
    assert_eq!(heir as u16, owner as u16);
    assert_eq!(here.alive(heir), alive(last.pid()));
    assert_eq!(here.alive(owner), Liveness::Dead, "whoever has its place now");
    next.finish();
    last.finish();
}

#[test]
fn a_process_whose_first_thread_ended_makes_a_fabric_and_is_alive() {
    let directory = Directory::new();
    let (mut actor, owner) = directory.attached("first thread");
    assert_eq!(directory.files().len(), 1);
    let here = directory.attach();
    until("its first thread has ended", || state(actor.pid()) == Some('Z'));
    assert_eq!(here.alive(owner), alive(actor.pid()));
    actor.kill();
    is_dead_soon(here, owner);
}

/// Continues as the first process of its own pid namespace.
pub fn apart(path: &FabricPath) {
    // SAFETY: affects only the pids of processes that this one starts.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0);
    let pid = forks::fork(|| {
        let here = attach(path).unwrap();
        assert_eq!(here.alive(here.owner), alive(1));
        let outside = here.owners().find(|&owner| owner != here.owner).unwrap();
        assert_eq!(here.alive(outside), ALIVE, "it has no number here");
        say(format!("owner {}", here.owner));
        order();
        true
    });
    say(pid);
    assert_eq!(forks::exit_code(pid), 0);
}

#[test]
#[ignore = "needs root"]
fn a_process_of_another_namespace_is_alive_and_has_the_number_that_it_has_here() {
    let (directory, here) = attached();
    let mut actor = directory.play("apart");
    let mut said = [actor.hear(), actor.hear()];
    said.sort();
    let [pid, owner] = said.map(|said| said.trim_start_matches("owner ").parse().unwrap());
    let owner = owner as u32;
    assert_eq!(here.alive(owner), alive(pid));
    actor.go();
    assert_eq!(actor.hear(), "done");
    assert_eq!(here.alive(owner), Liveness::Dead);
}

#[test]
fn x03_who_loses_its_descriptor_lives_and_finds_the_dead() {
    let (directory, here) = attached();
    let (mut actor, owner) = directory.attached("careless");
    assert_eq!(here.alive(owner), ALIVE);
    actor.go();
    assert_eq!(actor.hear(), "tidy");
    assert_eq!(here.alive(owner), alive(actor.pid()));
    actor.kill();
    is_dead_soon(here, owner);
}

#[test]
fn x02_who_lost_its_descriptor_removes_the_file_as_it_ends() {
    for part in ["careless", "careless to the end"] {
        let directory = Directory::new();
        let (mut actor, _) = directory.attached(part);
        if part == "careless" {
            actor.go();
            assert_eq!(actor.hear(), "tidy");
        }
        assert_eq!(directory.files().len(), 1);
        actor.finish();
        assert_eq!(directory.files(), [""; 0], "{part}");
    }
}

#[test]
fn x03_who_can_not_ask_takes_nobody_for_dead_and_lives() {
    let (directory, here) = attached();
    let (actor, owner) = directory.attached("careless without a file");
    assert_eq!(here.alive(owner), ALIVE);
    actor.finish();
    is_dead_soon(here, owner);
    assert_eq!(directory.files().len(), 1, "it does not remove what it can't ask about");
}

#[test]
fn x07_a_forked_child_closes_nothing_that_the_program_opened() {
    Directory::new().plays_to_the_end("careless parent");
}

#[test]
fn x07_a_gate_that_is_never_left_is_an_error_and_a_dead_gatekeeper_is_none() {
    let directory = Directory::new();
    let (mut actor, _) = directory.attached("gatekeeper");
    let busy = AttachError::Busy { path: directory.path().file() };
    assert_eq!(attach(&directory.path()).unwrap_err(), busy);
    actor.kill();
    actor.ended();
    let here = directory.attach();
    assert!(here.owners().eq([here.owner]), "a new file, since it was the last");
}

#[test]
fn a_full_fabric_is_an_error_until_a_dead_process_is_recovered() {
    static OTHER: Registry = Registry::new();
    let directory = Directory::new();
    let two = Shape { processes: 2, ..limits() };
    let here = REGISTRY.attach(&directory.path(), &two, &FORMAT).unwrap();
    let (mut actor, owner) = directory.user();
    assert_eq!(here.shape.processes, 2);
    let full = AttachError::TooManyProcesses { path: directory.path().file(), max: 2 };
    let again = || OTHER.attach(&directory.path(), &limits(), &FORMAT);
    assert_eq!(again().unwrap_err(), full);
    actor.kill();
    actor.ended();
    assert_eq!(again().unwrap_err(), full);
    let heir = waits(|| again().unwrap().owner, || here.free(owner));
    assert_eq!(heir as u16, owner as u16, "it waits for the survivors a little");
}

#[test]
fn x04_corrupted_words_of_processes_take_no_attachment() {
    static OTHER: Registry = Registry::new();
    let directory = Directory::new();
    let (actor, owner) = directory.user();
    let max = limits().processes;
    let words =
        |value: u32| scribble(&directory.path(), 1024, &value.to_ne_bytes().repeat(max as usize));
    words(u32::MAX);
    let full = AttachError::TooManyProcesses { path: directory.path().file(), max };
    assert_eq!(attach(&directory.path()).unwrap_err(), full);
    words(0);
    let here = directory.attach();
    assert_ne!(here.owner as u16, owner as u16, "the lock on its byte tells that it is taken");
    for value in [0, u32::MAX, 0] {
        // Through the mapping: closing the file would drop this process's own locks.
        header::claims(here.memory, &here.shape).iter().for_each(|word| store(word, value));
        assert_eq!(here.alive(owner), alive(actor.pid()));
    }
    let there = OTHER.attach(&directory.path(), &limits(), &FORMAT).unwrap();
    assert_ne!(there.owner as u16, here.owner as u16, "nor another copy's");
    actor.finish();
}

#[test]
fn x02_a_number_that_is_another_file_s_by_now_says_nothing_of_a_fabric_that_others_use() {
    let directory = Directory::new();
    let (user, _) = directory.user();
    let path = directory.path();
    let id = file::find(&path).unwrap().unwrap();
    // As if the program closed a descriptor kept without being attached, and opened its own file.
    let guard = REGISTRY.lock(Instant::now() + PATIENCE).unwrap();
    let other = Opened::by(|| Ok(File::open(path.directory()).unwrap().into())).unwrap();
    guard.keep(other, id);
    drop(guard);
    let here = directory.attach();
    assert_eq!(file::find(&path).unwrap(), Some(id), "it is still there");
    assert_eq!(here.owners().count(), 2);
    user.finish();
}

#[test]
fn x07_what_another_copy_in_this_process_uses_is_kept_open_once_however_many_fabrics_are_made() {
    static OTHER: Registry = Registry::new();
    let (directory, here) = attached();
    for name in ["a", "b", "c"] {
        OTHER.attach(&directory.named(name), &limits(), &FORMAT).unwrap();
    }
    let id = file::find(&here.path).unwrap().unwrap();
    assert_eq!(OTHER.all().filter(|kept| kept.id() == id).count(), 1);
    // Closing the descriptor would have dropped the name lock.
    assert_eq!(here.alive(here.owner), me());
}
