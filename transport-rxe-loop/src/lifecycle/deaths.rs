//! Recovery from the death of a process: what it was in the middle of is repaired, its peers are notified, and
//! everything that it had is freed (X3). Any survivor does this, and may die doing it: each step can be repeated, and
//! the dead process keeps its entry in the table of attachments until the last step is done.
//!
//! 1. Locks that it held are taken over, and the data under them is repaired.
//! 2. Its entries become unreachable, table by table. Its queue pairs lose their numbers; the receives that it had
//!    taken from shared receive queues are given back; events and overruns that it may have owed are reported again;
//!    and every queue pair is rescheduled, since the dead process, or one that died in this step, may not have
//!    done so. A queue pair that is connected to one of the dead finds that its peer is gone, and fails with
//!    RETRY_EXC when its timers expire.
//! 3. Once none of it is in use any more, everything that it had is freed: keys, queues, channels, memory, and last
//!    its entry.
//!
//! All survivors do steps 1 and 2, each by itself, so that a survivor which is suspended meanwhile delays no other;
//! step 3 is done by one at a time. [`Device`] lists the tables, and each table implements [its own steps](DeathRecovery).

use cq_verbs::setup::Errno;

use super::Device;
use crate::completion::channel::{self, ChannelError};
use crate::engine::queue_pair;
use crate::error::{CreateError, RegisterError};
use crate::protocol::lock::AttachmentKey;
use crate::shm::Shm;
use crate::shm::recovery::DeathRecovery;
use crate::trace;

/// Checks all other processes, and recovers from those that died; closes what it has open of channels that have ended. True
/// if others are left.
pub fn look(device: &Device) -> bool {
    device.shm.tidy();
    queue_pair::tidy(device.engine);
    let others_are_left = look_at(device.shm, &device.tables);
    channel::close_ended(device.completions);
    others_are_left
}

/// As [`look`], for processes that have entries in these tables.
pub fn look_at(shm: &Shm, tables: &[&dyn DeathRecovery]) -> bool {
    let is_left =
        |other: &AttachmentKey| shm.is_alive(other.attachment()) || !after(shm, tables, *other);
    shm.others().filter(is_left).count() != 0
}

/// Recovers from a dead process; false if some of its entries have to stay for now.
fn after(shm: &Shm, tables: &[&dyn DeathRecovery], dead: AttachmentKey) -> bool {
    tables.iter().for_each(|table| table.inherit(dead));
    // All of them, even if the first are still in use.
    let is_quiet = tables.iter().fold(true, |is_quiet, table| table.revoke(dead) & is_quiet);
    let Some(guard) = shm.try_lock(shm.frees()) else { return false };
    // Another survivor may have finished, and the entry may belong to a live process by now.
    let is_left = shm.others().any(|other| other == dead);
    let (is_over, pid) = (is_left && is_quiet, shm.pid(dead.attachment()));
    if is_over {
        tables.iter().for_each(|table| table.free(dead.attachment()));
        shm.free(dead);
    }
    drop(guard);
    if is_over {
        trace::event!(WARN, pid = pid, "process died: freed what it had");
    }
    is_quiet
}

/// Whether an error means that a resource is exhausted.
pub trait IsExhausted {
    /// Whether freeing entries could help.
    fn is_exhausted(&self) -> bool;
}

/// A full table, no space in the fabric, or no memory of the system.
impl IsExhausted for CreateError {
    fn is_exhausted(&self) -> bool {
        self.errno() == Errno::ENOMEM
    }
}

impl IsExhausted for ChannelError {
    fn is_exhausted(&self) -> bool {
        matches!(self, Self::Create(why) if why.is_exhausted())
    }
}

impl IsExhausted for RegisterError {
    fn is_exhausted(&self) -> bool {
        matches!(self, Self::TableFull { .. })
    }
}

/// Makes an attempt. If the resource is exhausted, it recovers from processes that died, and makes another.
///
/// # Errors
/// Those of the second attempt, or of the only one.
pub fn retry_after_recovery<T, E: IsExhausted>(
    device: &Device,
    attempt: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    match attempt() {
        Err(why) if why.is_exhausted() => {
            look(device);
            attempt()
        }
        made => made,
    }
}

#[cfg(test)]
mod tests;
