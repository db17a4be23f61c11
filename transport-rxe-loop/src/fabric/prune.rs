//! Removing fabrics that nobody will open again: a program that was killed leaves its own behind, and if
//! its name was made for that one run, nobody comes to replace it. So whoever makes a fabric looks for those
//! of the same user that no process is attached to.

use std::fs;
use std::time::Instant;

use rustix::fd::AsFd;

use super::alive::{self, Gate};
use super::attach::discard;
use super::file;
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
    let fd = file::open_found(path).ok()??;
    let opened = file::id_of(fd.as_fd()).ok()?;
    let kept = guard.keep(fd, opened);
    let fd = kept.fd().filter(|_| opened == id)?;
    // Somebody in the gate uses it.
    let gate = Gate::pass(fd, Instant::now()).ok()??;
    // Another version may tell in other ways who is alive.
    let is_dead = alive::anybody(fd) == Ok(false) && header::is_of_this_version(fd);
    if is_dead && file::leads_to(path, id) {
        let _ = file::unlink_fabric(path);
    }
    discard(kept, gate);
    Some(())
}
