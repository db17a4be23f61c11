//! What is done about a process that died: whatever it was in the middle of is repaired, its peers are told,
//! and everything that it had is given back (X3). Any survivor does this, and may die over it: each step can
//! be done again, and the dead one keeps its place until the last is done.
//!
//! 1. Locks that it held are inherited, and what is under them repaired.
//! 2. What it had becomes unreachable, table by table: its queue pairs lose their numbers, what it had taken from shared
//!    receive queues is given back, everybody is told of events and overruns, and every queue pair is run by its process:
//!    the dead, or one that died over this, may have owed somebody just that. Whoever is connected to one of the dead
//!    finds that it is gone, and fails with RETRY_EXC when its timers say so.
//! 3. Once nobody uses anything of it any more, everything that it had is free: keys, queues, channels, memory, and last
//!    its place.
//!
//! All survivors do 1 and 2, each by itself, so that one who is suspended over it keeps nobody waiting; 3 is
//! done by one at a time. Which tables there are, is the device's; what is done about each is [its own](Owners).

use super::Device;
use crate::engine::queue_pair;
use crate::error::{CreateError, RegisterError};
use crate::protocol::lock::Owner;
use crate::shm::Shm;
use crate::shm::owners::Owners;

/// Looks at all other processes, and does what is to be done about those that died. True if there are others left.
pub fn look(device: &Device) -> bool {
    device.shm.tidy();
    queue_pair::tidy(device.engine);
    look_at(device.shm, device.tables())
}

/// The same, of processes that have parts of these tables.
pub fn look_at(shm: &Shm, tables: &[&dyn Owners]) -> bool {
    let is_left = |other: &Owner| shm.is_alive(other.attachment()) || !after(shm, tables, *other);
    shm.others().filter(is_left).count() != 0
}

/// Does what is to be done about a dead process; false if something of it has to stay for now.
fn after(shm: &Shm, tables: &[&dyn Owners], dead: Owner) -> bool {
    tables.iter().for_each(|table| table.inherit(dead));
    // All of them, whatever the first say.
    let is_quiet = tables.iter().fold(true, |is_quiet, table| table.expel(dead) & is_quiet);
    let Some(_guard) = shm.try_lock(shm.frees()) else { return false };
    // Somebody else may have been quicker, and its place may be another's, who lives.
    let is_left = shm.others().any(|other| other == dead);
    if is_left && is_quiet {
        tables.iter().for_each(|table| table.free(dead.attachment()));
        shm.free(dead);
    }
    is_quiet
}

/// Says that there is nothing left of what was asked for.
pub trait IsExhausted {
    /// Whether more of it would have helped.
    fn is_exhausted(&self) -> bool;
}

impl IsExhausted for CreateError {
    fn is_exhausted(&self) -> bool {
        matches!(self, Self::TableFull { .. } | Self::NoMemory { .. })
    }
}

impl IsExhausted for RegisterError {
    fn is_exhausted(&self) -> bool {
        matches!(self, Self::TableFull { .. })
    }
}

/// Makes what `attempt` makes; if there is nothing left for it, of what the dead had, whom nobody may have looked after.
///
/// # Errors
/// Those of the attempt.
pub fn take<T, E: IsExhausted>(
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
