//! Remote requests: queue pairs that another thread is to run. A process runs its own alone, so others leave it a
//! request; a thread that owns a send queue leaves one for its own process. Each is a bit in the device's memory: see
//! [`requests`](crate::protocol::requests).

use super::Engine;
use crate::protocol::lock::AttachmentId;
use crate::protocol::number::QpIndex;
use crate::protocol::requests::RequestBits;
use crate::shm::table::Entry;

/// Has the queue pair at an index run by its process: soon, but not by this call.
#[cold]
pub fn submit(engine: &'static Engine, index: QpIndex) {
    let Some(attachment) = engine.qps.at(index).life().attachment() else { return };
    requests(engine).leave(index.get());
    if attachment == engine.shm.attachment() {
        engine.reminder.set();
    } else {
        engine.shm.call(attachment);
    }
}

const fn requests(engine: &'static Engine) -> RequestBits<'static> {
    RequestBits::new(engine.requested)
}

/// Has every queue pair run by its process, except those of the process with table entry `dead`.
#[cold]
pub fn submit_all(engine: &'static Engine, dead: AttachmentId) {
    for (index, slot) in engine.qps.all() {
        if slot.life().attachment().is_some_and(|attachment| attachment != dead) {
            requests(engine).leave(index.get());
        }
    }
    // This process, too: its other threads may not check soon.
    engine.shm.call(engine.shm.attachment());
    engine.shm.others().for_each(|other| engine.shm.call(other.attachment()));
}

/// Takes the requests for queue pairs of this process; calls `each` with the index of each.
#[cold]
pub fn take(engine: &'static Engine, mut each: impl FnMut(QpIndex)) {
    let mine = |index| {
        engine
            .qps
            .at(QpIndex::new(index))
            .life()
            .attachment()
            .is_none_or(|attachment| attachment == engine.shm.attachment())
    };
    requests(engine).take(mine, |index| {
        let index = QpIndex::new(index);
        // Its entry may be another process' by now, and the request meant for that one.
        if engine.is_mine(index) {
            each(index);
        } else {
            submit(engine, index);
        }
    });
}

#[cfg(test)]
mod tests;
