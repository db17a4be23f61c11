//! Removing fabrics that nobody will open again: a program that was killed leaves its own behind, and if
//! its name was made for that one run, nobody comes to replace it. So whoever makes a fabric looks for those
//! of the same user that no process is attached to.

use std::fs;
use std::time::Instant;

use rustix::fd::{AsFd, BorrowedFd};

use super::alive::{self, Gate};
use super::file::{self, FileId};
use super::header;
use super::name::FabricPath;
use super::registry::Guard;

/// Removes all others of this user, in the same directory, that nobody uses. What can't be removed stays.
pub fn prune(guard: &Guard, beside: &FabricPath) {
    let Ok(entries) = fs::read_dir(beside.directory()) else { return };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    for other in names.filter_map(|name| beside.other(&name)) {
        remove_unused(guard, &other);
    }
}

fn remove_unused(guard: &Guard, path: &FabricPath) -> Option<()> {
    let id = file::find(path).ok()??;
    if guard.find(id).is_some() {
        return None;
    }
    let file = file::open_found(path).ok()??;
    let fd = file.as_fd();
    let id = file::id_of(fd).ok()?;
    // Where another copy of this library in this process has it, its name would go with the descriptor: that is kept,
    // and found the next time.
    if alive::is_without_us(fd) != Ok(true) {
        guard.keep(file, id);
        return None;
    }
    // Nobody is kept out of a file that is in use; and who is in the gate uses it.
    if is_dead(fd) {
        let _gate = Gate::pass(fd, Instant::now()).ok()??;
        remove_dead(path, id, fd);
    }
    Some(())
}

/// Whether nobody uses a file. Another version may tell in other ways who is alive.
fn is_dead(fd: BorrowedFd<'_>) -> bool {
    alive::anybody(fd) == Ok(false) && header::is_of_this_version(fd)
}

/// Removes a file that nobody uses, if it still has the name. The gate is ours.
fn remove_dead(path: &FabricPath, id: FileId, fd: BorrowedFd<'_>) {
    if is_dead(fd) && file::leads_to(path, id) {
        let _ = file::unlink_fabric(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::file_tests::{Directory, FORMAT, attach, limits};
    use crate::fabric::registry::Registry;

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
}
