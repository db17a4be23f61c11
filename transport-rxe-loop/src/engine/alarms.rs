//! When queue pairs are run by the service thread: those whose requests wait, and those that others were kept by too long.
//!
//! # Alarms
//! A queue pair has one alarm at most: the earliest that was asked for since the last one came.
//!
//! | alarm | the thread | left by |
//! |---|---|---|
//! | none | need not look at the queue pair | the owner of its send queue, whose request waits, to Set |
//! | Set | sleeps no longer than until then | the owner, who has to be back earlier, to Set; the thread once the time has come, to none |
//!
//! Nobody takes an alarm back: it may come when its request has gone on, or its queue pair is another. So
//! the thread concludes nothing from it, but runs the queue pair, like anybody who reschedules it; and who owns
//! the send queue then finds that the time of a [wait](super::retry) is over, or asks for the next alarm.
//!
//! The wait is written before its alarm is set, and the alarm taken after its time, so that who runs the queue pair
//! for it sees both. The alarms are under a mutex. It is taken by owners of send queues, and no send queue, no lock and no
//! system call is waited for under it; polls, pushes and requests that need not wait never see it.
//!
//! # Busy queue pairs
//! Who owns a send queue and finds requests posted faster than it carries them out gives it back with
//! work left, and only then puts the queue pair on a list, from which the thread takes it. In between
//! it is nobody's, and whoever comes does the work. The thread gives it back in the same way,
//! and looks at the alarms first, so that neither keep it from the other for long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::shm::Shm;

/// How long somebody who is suspended is left alone before he is asked again.
const SOON: Duration = Duration::from_millis(50);

/// Which queue pairs to run, and when.
pub struct Alarms {
    shm: &'static Shm,
    epoch: Instant,
    agenda: Mutex<Agenda>,
}

/// Queue pairs are known by their indices here, so that there can't be more alarms than there are of them.
#[derive(Default)]
struct Agenda {
    alarms: BTreeMap<u32, u64>,
    /// The alarms again, by their times.
    order: BTreeSet<(u64, u32)>,
    /// Those that were handed over, each once.
    busy: VecDeque<u32>,
}

impl Alarms {
    /// None yet.
    pub fn new(shm: &'static Shm) -> Self {
        Self { shm, epoch: Instant::now(), agenda: Mutex::default() }
    }

    /// The time, in nanoseconds since the device was opened. It never goes back.
    pub fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Has the queue pair at this index run at `deadline` or soon after, or before.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: it will not be run.
    pub fn wake_at(&self, index: u32, deadline: u64) -> io::Result<()> {
        self.shm.thread().start()?;
        if self.lock().set_alarm(index, deadline) {
            self.shm.call(self.shm.place());
        }
        Ok(())
    }

    /// [`wake_at`](Self::wake_at), soon: somebody is suspended, and nobody reschedules it once that goes on.
    ///
    /// # Errors
    /// As there.
    pub fn wake_soon(&self, index: u32) -> io::Result<()> {
        self.wake_at(index, self.now() + SOON.as_nanos() as u64)
    }

    /// Has the queue pair at this index run by the thread, soon. Its send queue is not the caller's.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: it will not be run.
    pub fn hand_over(&self, index: u32) -> io::Result<()> {
        self.shm.thread().start()?;
        self.lock().add_busy(index);
        self.shm.call(self.shm.place());
        Ok(())
    }

    /// Takes what is to be run now.
    pub fn take(&self) -> Option<u32> {
        self.lock().take(self.now())
    }

    /// The time of the first alarm.
    pub fn next(&self) -> Option<u64> {
        self.lock().next_alarm()
    }

    /// Sets an alarm, without a thread; true if it is the first of all.
    #[cfg(test)]
    pub fn set(&self, index: u32, deadline: u64) -> bool {
        self.lock().set_alarm(index, deadline)
    }

    /// Keeps all others from the alarms, if nobody does.
    #[cfg(test)]
    pub fn keep(&self) -> Option<impl Drop + '_> {
        self.agenda.try_lock().ok()
    }

    fn lock(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Alarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarms").finish_non_exhaustive()
    }
}

impl Agenda {
    /// Sets a queue pair's alarm, unless it is set to an earlier time; true if that is now the first of all.
    fn set_alarm(&mut self, qp: u32, at: u64) -> bool {
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

    fn add_busy(&mut self, qp: u32) {
        if !self.busy.contains(&qp) {
            self.busy.push_back(qp);
        }
    }

    /// Takes what is to be run now: alarms whose time has come before what was handed over.
    fn take(&mut self, now: u64) -> Option<u32> {
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
