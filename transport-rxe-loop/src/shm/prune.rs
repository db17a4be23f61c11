//! Removing fabrics that nobody will open again: a program that was killed leaves its own behind, and if
//! its name was made for that one run, nobody comes to replace it. So whoever makes a fabric looks for those
//! of the same user that no process is attached to.

use std::fs;
use std::time::Instant;

use rustix::fd::{AsFd, BorrowedFd};

use super::file::{self, FileId};
use super::header;
use super::liveness::{self, Gate};
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
    if liveness::is_without_us(fd) != Ok(true) {
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
    liveness::anybody(fd) == Ok(false) && header::is_of_this_version(fd)
}

/// Removes a file that nobody uses, if it still has the name. The gate is ours.
fn remove_dead(path: &FabricPath, id: FileId, fd: BorrowedFd<'_>) {
    if is_dead(fd) && file::leads_to(path, id) {
        let _ = file::unlink_fabric(path);
    }
}

#[cfg(test)]
mod tests;
