use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;
use crate::inside::prelude::*;

/// A file, and another opening of it, with locks of its own.
fn opened_twice() -> (OwnedFd, File) {
    let file = memfd_create("alive", MemfdFlags::CLOEXEC).unwrap();
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    let other = File::options().read(true).write(true).open(again).unwrap();
    (file, other)
}

#[test]
fn x07_who_finds_the_gate_shut_gives_up_at_its_deadline() {
    let (file, other) = opened_twice();
    let gate = Gate::pass(other.as_fd(), Instant::now()).unwrap().unwrap();
    let pass = || Gate::pass(file.as_fd(), Instant::now()).map(|gate| gate.is_some());
    assert_eq!(before(|| drop(gate), pass), Some(Ok(false)));
    assert_eq!(pass(), Ok(true));
}

#[test]
fn x03_the_holder_of_an_index_is_found_in_each_of_its_generations() {
    for generation in [0, 1, 0xffff] {
        for index in [0, 7, MAX_PROCESSES - 1] {
            let (file, other) = opened_twice();
            let owner = generation << 16 | (index + 1);
            assert_eq!(hold(other.as_fd(), owner), Ok(true));
            assert_eq!(ask(file.as_fd(), owner), Ok(Liveness::Alive { pid: None }));
            assert_eq!(name(other.as_fd(), owner), Ok(true));
            let asked = [owner - 1, owner, owner + 1].map(|owner| ask(file.as_fd(), owner));
            let pid = Some(std::process::id() as i32);
            let (dead, alive) = (Ok(Liveness::Dead), Ok(Liveness::Alive { pid }));
            assert_eq!(asked, [dead, alive, dead], "{generation} {index}");
            let place = |index| ask_index(file.as_fd(), index);
            assert_eq!((place(index), place(index + 1)), (alive, dead), "{generation}");
            assert!(index == 0 || place(index - 1) == dead, "{generation} {index}");
            assert_eq!(anybody(file.as_fd()), Ok(true), "{generation} {index}");
        }
    }
}

#[test]
fn x04_a_process_finds_itself_among_others_that_the_system_names_first() {
    const OTHER: u32 = 100;
    for us in [OTHER - 50, OTHER + 50] {
        let (file, other) = opened_twice();
        // Of several conflicting locks the system reports the one made first.
        let mut lock = range(name_of(byte(OTHER)), libc::F_WRLCK);
        fcntl(other.as_fd(), libc::F_OFD_SETLK, &mut lock).unwrap();
        assert_eq!(anybody(file.as_fd()), Ok(false), "a name is nobody");
        assert_eq!(is_without_us(file.as_fd()), Ok(true));
        assert_eq!(name(file.as_fd(), us), Ok(true));
        assert_eq!(is_without_us(file.as_fd()), Ok(false), "{us}");
    }
}

#[test]
fn x04_a_lock_without_end_is_looked_at_once() {
    let (file, other) = opened_twice();
    let set = |kind| {
        let mut lock = range(name_of(byte(100)), kind);
        lock.l_len = 0;
        fcntl(other.as_fd(), libc::F_OFD_SETLK, &mut lock).unwrap();
    };
    set(libc::F_WRLCK);
    let asked = before(|| set(libc::F_UNLCK), || is_without_us(file.as_fd()));
    assert_eq!(asked, Some(Ok(true)));
}
