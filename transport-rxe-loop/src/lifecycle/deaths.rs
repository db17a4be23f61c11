//! What is done about a process that died: whatever it was in the middle of is repaired, its peers are told,
//! and everything that it had is given back (X3). Any survivor does this, and may die over it: each step can
//! be done again, and the dead one keeps its place until the last is done.
//!
//! 1. Locks that it held are inherited, and what is under them repaired.
//! 2. Its queue pairs lose their numbers. What it had taken from shared receive queues is given back.
//! 3. Everybody is told of events and overruns, and every queue pair is run by its process: the dead, or a
//!    sweeper that died over this, may have owed somebody just that. Whoever is connected to one of the dead
//!    finds that it is gone, and fails with RETRY_EXC when its timers say so.
//! 4. Once nobody is in the middle of a request for one of its queue pairs, everything that it had is free:
//!    keys, queues, channels, memory, and last its place.
//!
//! All survivors do 1 to 3, each by itself, so that one who is suspended over it keeps nobody waiting; 4 is
//! done by one at a time.

use crate::completion::channel;
use crate::completion::push;
use crate::engine::identity;
use crate::engine::in_flight;
use crate::engine::queue_pair;
use crate::engine::remote_requests;
use crate::engine::shared_receives;
use crate::fabric::Fabric;
use crate::layout::{Entry, QpSlot};
use crate::memory::{copier, reach};
use crate::protocol::lock::Owner;
use crate::protocol::steps::{self, Step};
use crate::sync;

/// Looks at all other processes, and sweeps up after those that died. True if there are others left.
pub fn look(fabric: &'static Fabric) -> bool {
    fabric.tidy();
    queue_pair::tidy(fabric);
    fabric.others().filter(|&other| fabric.is_alive(other.place()) || !after(fabric, other)).count()
        != 0
}

/// Takes what `attempt` takes; if there is none, what the dead had, whom nobody may have looked after.
pub fn take<T>(fabric: &'static Fabric, attempt: impl Fn() -> Option<T>) -> Option<T> {
    attempt().or_else(|| {
        look(fabric);
        attempt()
    })
}

/// Sweeps up after a dead process; false if something of it has to stay for now.
fn after(fabric: &'static Fabric, dead: Owner) -> bool {
    inherit(fabric, dead);
    let is_quiet = expel(fabric, dead) & shared_receives::sweep(fabric, dead.place());
    (0..fabric.tables().cqs.len()).for_each(|index| push::tell(fabric, index));
    channel::remark(fabric);
    remote_requests::leave_all(fabric, dead.place());
    let Some(_guard) = fabric.try_lock(&fabric.tables().common.sweep) else { return false };
    // Somebody else may have been quicker, and its place may be another's, who lives.
    let is_left = fabric.others().any(|other| other == dead);
    if is_left && is_quiet {
        free(fabric, dead.place());
        fabric.free(dead);
    }
    is_quiet
}

fn inherit(fabric: &'static Fabric, dead: Owner) {
    let tables = fabric.tables();
    for (slot, index) in tables.cqs.all().iter().zip(0..) {
        if slot.fanin.lock.holder() == Some(dead) {
            push::outwait_push(fabric, index);
        }
    }
    for slot in tables.qps.all() {
        if slot.taking.holder() == Some(dead) {
            // Where it can't be had, somebody else has inherited it.
            drop(in_flight::take_receives(fabric, slot));
        }
    }
    let pools = tables.srqs.all().iter().map(|slot| slot.pool.lock());
    let rest = tables.common.stripes.iter().chain([&tables.common.arena]).chain(pools);
    rest.filter(|lock| lock.holder() == Some(dead)).for_each(|lock| drop(fabric.try_lock(lock)));
}

/// Takes its queue pairs their numbers; false while somebody is in the middle of a request for one of them.
///
/// Who falls asleep over this may find its place and theirs taken by others, later: it looks at the numbers
/// before it finds that the place is still the dead one's, and takes no other.
fn expel(fabric: &'static Fabric, dead: Owner) -> bool {
    let mut is_quiet = true;
    for (index, slot) in fabric.tables().qps.all_of(dead.place()) {
        let number = identity::read(slot).number;
        if !fabric.others().any(|other| other == dead) {
            return false;
        }
        if number != 0 {
            // Or another survivor has. Who is connected to it is run with all others, after this.
            identity::vacate_if(slot, number);
        }
        is_quiet &= !in_flight::is_open_for(fabric, index);
    }
    is_quiet
}

fn free(fabric: &'static Fabric, place: u16) {
    let tables = fabric.tables();
    for (index, slot) in tables.mrs.all_of(place) {
        reach::bury(fabric, index);
        steps::done(Step::Swept);
        slot.life().end(place);
    }
    copier::sweep(fabric, place);
    for (index, slot) in tables.qps.all_of(place) {
        forget(slot);
        sync::store(fabric.dest(index), 0);
        steps::done(Step::Swept);
        slot.life().end(place);
    }
    for (_, slot) in tables.cqs.all_of(place) {
        slot.fanin.end();
        slot.completion.forget();
        slot.overrun.forget();
        steps::done(Step::Swept);
        slot.life().end(place);
    }
    for (_, slot) in tables.srqs.all_of(place) {
        sync::release(&slot.number, 0);
        slot.limit.forget();
        steps::done(Step::Swept);
        slot.life().end(place);
    }
    for (index, slot) in tables.channels.all_of(place) {
        channel::remove(fabric, index);
        steps::done(Step::Swept);
        slot.life().end(place);
    }
    tables.arena.sweep(place);
    steps::done(Step::Swept);
}

/// Leaves the place of a queue pair as the next one expects it.
fn forget(slot: &QpSlot) {
    slot.events.iter().for_each(|node| node.forget());
    slot.send.copying.close();
    slot.recv.empty();
    let posted = sync::load(&slot.send.posted);
    sync::store(&slot.send.done, posted);
    sync::store(&slot.retired.0, posted);
}

#[cfg(test)]
mod tests;
