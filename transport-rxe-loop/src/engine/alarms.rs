//! Alarms: the queue pairs that the service thread runs, and when. They are those whose requests wait, and busy ones
//! that were handed over to it.
//!
//! # Alarms
//! A queue pair has at most one alarm: the earliest that was set since the last one expired.
//!
//! | alarm | the thread | left by |
//! |---|---|---|
//! | none | need not look at the queue pair | the owner of its send queue, whose request waits, to Set |
//! | Set | sleeps no longer than until then | the owner, for an earlier time, to Set; the thread at that time, to none |
//!
//! An alarm is not cancelled: it may expire when its request has gone on, or when the entry has another queue pair. So
//! the thread just runs the queue pair, as rescheduling does, and the owner of the send queue finds that the time of a
//! [wait](super::retry) is over, or sets the next alarm.
//!
//! A wait is written before its alarm is set, and the alarm taken after it expires, so a thread that runs the queue
//! pair for it sees both. The alarms are under a mutex. Owners of send queues take it; no send queue, lock or system
//! call is waited for under it. Polls, pushes and requests that need not wait do not touch it.
//!
//! # Busy queue pairs
//! A thread that owns a send queue to which requests are posted faster than it carries them out gives it back with work
//! left, and only then lists the queue pair here, for the service thread. In between it has no owner, and any thread
//! may do the work. The service thread gives it back in the same way, and takes expired alarms first, so neither delays
//! the other for long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::protocol::number::QpIndex;
use crate::shm::Shm;
use crate::shm::system::SystemError;
use crate::sync;

/// The delay before a suspended process is tried again.
const SOON: Duration = Duration::from_millis(50);

/// Which queue pairs to run, and when.
#[derive(Debug)]
pub struct Alarms {
    shm: &'static Shm,
    epoch: Instant,
    agenda: Mutex<Agenda>,
}

/// By the indices of queue pairs, so that there are no more alarms than queue pairs.
#[derive(Debug, Default)]
struct Agenda {
    alarms: BTreeMap<QpIndex, u64>,
    /// The same alarms, ordered by time.
    order: BTreeSet<(u64, QpIndex)>,
    /// Busy queue pairs that were handed over, each once.
    busy: VecDeque<QpIndex>,
}

impl Alarms {
    /// No alarms.
    pub fn new(shm: &'static Shm) -> Self {
        Self { shm, epoch: Instant::now(), agenda: Mutex::default() }
    }

    /// The time in nanoseconds since the device was opened. It is monotonic.
    pub fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Has the queue pair at this index run at `deadline` or soon after, or before.
    ///
    /// # Errors
    /// The service thread is not running, and the system refuses one: the queue pair will not be run.
    pub fn wake_at(&self, index: QpIndex, deadline: u64) -> Result<(), SystemError> {
        self.shm.thread.start()?;
        if sync::lock(&self.agenda).set_alarm(index, deadline) {
            self.shm.call(self.shm.attachment());
        }
        Ok(())
    }

    /// [`wake_at`](Self::wake_at), soon: a process is suspended, and will not reschedule the queue pair when it
    /// resumes.
    ///
    /// # Errors
    /// As for [`wake_at`](Self::wake_at).
    pub fn wake_soon(&self, index: QpIndex) -> Result<(), SystemError> {
        self.wake_at(index, self.now() + SOON.as_nanos() as u64)
    }

    /// Has the service thread run the queue pair at this index soon. The caller does not own its send queue.
    ///
    /// # Errors
    /// As for [`wake_at`](Self::wake_at).
    pub fn hand_over(&self, index: QpIndex) -> Result<(), SystemError> {
        self.shm.thread.start()?;
        sync::lock(&self.agenda).add_busy(index);
        self.shm.call(self.shm.attachment());
        Ok(())
    }

    /// Takes a queue pair that is to be run now.
    pub fn take(&self) -> Option<QpIndex> {
        sync::lock(&self.agenda).take(self.now())
    }

    /// The time of the first alarm.
    pub fn next(&self) -> Option<u64> {
        sync::lock(&self.agenda).next_alarm()
    }

    /// Sets an alarm, without a thread; true if it is the first of all.
    #[cfg(test)]
    pub fn set(&self, index: QpIndex, deadline: u64) -> bool {
        sync::lock(&self.agenda).set_alarm(index, deadline)
    }

    /// Locks the alarms, if no other thread has.
    #[cfg(test)]
    pub fn keep(&self) -> Option<impl Drop + '_> {
        self.agenda.try_lock().ok()
    }
}

impl Agenda {
    /// Sets a queue pair's alarm, unless it has an earlier one; true if it is now the first of all.
    fn set_alarm(&mut self, qp: QpIndex, at: u64) -> bool {
        if let Some(&before) = self.alarms.get(&qp) {
            if before <= at {
                return false;
            }
            self.order.remove(&(before, qp));
        }
        self.alarms.insert(qp, at);
        self.order.insert((at, qp));
        self.order.first() == Some(&(at, qp))
    }

    /// The time of the first alarm.
    fn next_alarm(&self) -> Option<u64> {
        self.order.first().map(|&(at, _)| at)
    }

    fn add_busy(&mut self, qp: QpIndex) {
        if !self.busy.contains(&qp) {
            self.busy.push_back(qp);
        }
    }

    /// Takes a queue pair that is to be run now: expired alarms before busy queue pairs.
    fn take(&mut self, now: u64) -> Option<QpIndex> {
        match self.order.first() {
            Some(&(at, qp)) if at <= now => {
                self.order.pop_first();
                self.alarms.remove(&qp);
                Some(qp)
            }
            _ => self.busy.pop_front(),
        }
    }
}

#[cfg(test)]
mod tests;
