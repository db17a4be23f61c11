//! The service thread: one of a process, which runs queue pairs when their requests have waited long
//! enough.
//!
//! The first request that has to wait for a finite time starts it; a process in which nothing does never
//! has it. From then on it is there until the process ends, and sleeps until the next alarm. A child that
//! was forked does not have it, so that nothing ends a wait there.
//!
//! # Alarms
//! A queue pair has one alarm at most, that of the latest wait which ends. It may be late, since its request has
//! gone on, or its queue pair is another: the thread does not look. It takes an alarm that is due off the
//! list and runs the queue pair like anybody who kicks; [who holds the turn](crate::retry) then
//! finds a request whose time is over, or none.
//!
//! | alarm | state | left by |
//! |---|---|---|
//! | none | nothing to be woken for | the holder of the turn, who has written a wait, to Set |
//! | Set | the thread sleeps no longer than until then | the holder with a later wait, to Set; the thread once the time has come, to none |
//!
//! The list is under a mutex, which the thread drops to run a queue pair, and holds, as condition variables
//! do, up to the moment it sleeps: so an alarm is seen before the sleep, or ends it. Who sets an alarm holds a
//! turn; nobody enters a turn, pushes or polls under the mutex. The wait is written before the alarm
//! is set, and an alarm taken off the list after its time: whoever is kicked by it sees the wait, and the
//! time as over.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::execute;
use crate::fabric::Fabric;
use crate::layout::MAX_QP;

/// What the service thread and those who set alarms share.
pub struct Service {
    epoch: Instant,
    alarms: Mutex<Alarms>,
    /// There is an alarm before all others.
    earlier: Condvar,
}

impl Service {
    /// One without its thread.
    pub fn new() -> Self {
        Self { epoch: Instant::now(), alarms: Mutex::default(), earlier: Condvar::new() }
    }

    /// The time, in nanoseconds since the device was opened. It never goes back.
    pub fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Has the queue pair with this number run at `deadline` or soon after, instead of when it was to be run
    /// before.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: it will not be run.
    pub fn wake_at(
        &self,
        fabric: &'static Fabric,
        number: u32,
        deadline: u64,
    ) -> Result<(), io::Error> {
        let mut alarms = self.lock();
        if !alarms.served {
            let thread = thread::Builder::new().name("rxe-loop timers".to_owned());
            thread.spawn(move || fabric.service().serve(fabric))?;
            alarms.served = true;
        }
        if alarms.set(number % MAX_QP as u32, deadline) {
            self.earlier.notify_one();
        }
        Ok(())
    }

    fn serve(&self, fabric: &'static Fabric) {
        let mut alarms = self.lock();
        loop {
            if let Some(qp) = alarms.take_due(self.now()) {
                drop(alarms);
                execute::run(fabric, qp);
                alarms = self.lock();
                continue;
            }
            alarms = match alarms.next() {
                Some(next) => {
                    let left = Duration::from_nanos(next.saturating_sub(self.now()));
                    let woken = self.earlier.wait_timeout(alarms, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.earlier.wait(alarms).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// Which queue pairs to run when: by index, one time for each.
#[derive(Default)]
struct Alarms {
    /// Whether the thread is there.
    served: bool,
    times: BTreeMap<u32, u64>,
    order: BTreeSet<(u64, u32)>,
}

impl Alarms {
    /// Sets a queue pair's alarm; true if that is now the first of all.
    fn set(&mut self, qp: u32, at: u64) -> bool {
        if let Some(before) = self.times.insert(qp, at) {
            self.order.remove(&(before, qp));
        }
        self.order.insert((at, qp));
        self.order.first() == Some(&(at, qp))
    }

    /// Takes the first alarm, if its time has come: whose it was.
    fn take_due(&mut self, now: u64) -> Option<u32> {
        let &(at, qp) = self.order.first()?;
        if at > now {
            return None;
        }
        self.order.pop_first();
        self.times.remove(&qp);
        Some(qp)
    }

    /// The time of the first alarm.
    fn next(&self) -> Option<u64> {
        self.order.first().map(|&(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_taken_in_their_order_once_their_time_has_come() {
        let mut alarms = Alarms::default();
        assert_eq!((alarms.next(), alarms.take_due(u64::MAX)), (None, None));
        assert!(alarms.set(1, 20));
        assert!(!alarms.set(2, 30));
        assert!(alarms.set(3, 10));
        assert_eq!((alarms.next(), alarms.take_due(9)), (Some(10), None));
        assert_eq!(alarms.take_due(10), Some(3));
        assert_eq!(alarms.take_due(25), Some(1));
        assert_eq!(alarms.take_due(25), None);
        assert_eq!((alarms.next(), alarms.take_due(u64::MAX)), (Some(30), Some(2)));
        assert_eq!(alarms.next(), None);
    }

    #[test]
    fn a_queue_pair_has_one_alarm() {
        let mut alarms = Alarms::default();
        alarms.set(1, 10);
        assert!(alarms.set(1, 20), "the first of all, being the only one");
        assert_eq!((alarms.next(), alarms.take_due(10)), (Some(20), None));
        assert_eq!((alarms.take_due(20), alarms.take_due(u64::MAX)), (Some(1), None));
    }

    #[test]
    fn every_queue_pair_can_have_an_alarm() {
        let mut alarms = Alarms::default();
        for qp in 0..MAX_QP as u32 {
            alarms.set(qp, u64::from(qp % 7));
        }
        let taken: BTreeSet<_> = std::iter::from_fn(|| alarms.take_due(6)).collect();
        assert_eq!(taken.len(), MAX_QP);
    }
}
