//! Removing abandoned fabrics: a program that was killed leaves its fabric's file behind, and a name made for one run
//! is never opened again. So a process that creates a fabric removes those of the same user to which no process is
//! attached.

use std::time::Instant;

use rustix::fd::{AsFd, BorrowedFd};

use super::error::AttachError;
use super::file::{self, FileId};
use super::header;
use super::liveness::{self, Gate};
use super::name::FabricPath;
use super::registry::Guard;
use crate::trace;

/// Removes all other fabrics of this user, in the same directory, that are unused. What cannot be removed stays.
pub fn prune(guard: &Guard, beside: &FabricPath) {
    for other in file::names_in(beside.directory()).filter_map(|name| beside.other(&name)) {
        if remove_unused(guard, &other) == Some(true) {
            trace::event!(DEBUG, fabric = other.file_name(), "unused fabric removed");
        }
    }
}

/// Whether it was unused, and is removed; `None` if that is not known.
fn remove_unused(guard: &Guard, path: &FabricPath) -> Option<bool> {
    let id = file::find(path).ok()??;
    if guard.find(id).is_some() {
        return None;
    }
    let file = file::open_found(path).ok()??;
    let fd = file.as_fd();
    let id = file::id_of(fd).ok()?;
    // If another copy of this library in this process has the file open, closing our descriptor would drop the lock of
    // its name: so the descriptor is kept, and found the next time.
    if liveness::is_without_us(fd) != Ok(true) {
        guard.keep(file, id);
        return None;
    }
    // The gate is not taken from a file in use; and a process behind the gate uses it.
    if is_dead(fd) {
        let _gate = Gate::pass(fd, Instant::now()).ok()??;
        return Some(remove_dead(path, id, fd));
    }
    Some(false)
}

/// Whether a file is unused. Another version may determine liveness in other ways.
fn is_dead(fd: BorrowedFd<'_>) -> bool {
    liveness::anybody(fd) == Ok(false) && header::is_of_this_version(fd)
}

/// Removes a file that is unused, if it still has the name; whether it did. The caller holds the gate.
fn remove_dead(path: &FabricPath, id: FileId, fd: BorrowedFd<'_>) -> bool {
    is_dead(fd) && file::leads_to(path, id) && remove(path, fd).is_ok()
}

/// Removes a fabric's file to which no process is attached, and frees its bytes even if others have it open. The caller
/// holds its gate.
///
/// # Errors
/// The system's error.
pub fn remove(path: &FabricPath, fd: BorrowedFd<'_>) -> Result<(), AttachError> {
    // First, since another process makes the next file as soon as this one is gone. Processes of another version may use
    // it without being attached in this way.
    if header::is_of_this_version(fd) {
        file::free(fd);
    }
    file::unlink_fabric(path)
}

#[cfg(test)]
mod tests;
