//! The service thread: one of a process for each fabric. It runs queue pairs when their requests have waited
//! long enough, or others left them to it, carries on where another thread should not be kept, raises events
//! that were held back, copies for processes that can't reach this one's memory, and looks whether the others
//! live.
//!
//! The first request that has to wait for a finite time starts it, the first busy queue pair that is handed
//! over, the first completion queue with a channel that is moderated, or the first queue pair that is connected
//! to another process'; a process in which nothing of that happens never has it. From then on it is there until
//! the process ends, and sleeps while there is nothing to do. As long as other processes have the fabric open, it
//! looks after them at an [interval](WATCH). It blocks all signals: those of the process are its program's. A forked
//! child has none, and needs none: its handles reach nothing.
//!
//! Whoever has something for it counts the word of the process' slot, and wakes it. It reads that word before
//! it looks, and sleeps only while it is the same: nothing comes unseen in between.
//!
//! # Alarms
//! A queue pair has one alarm at most: the earliest that was asked for since the last one came.
//!
//! | alarm | the thread | left by |
//! |---|---|---|
//! | none | need not look at the queue pair | the holder of its turn, whose request waits, to Set |
//! | Set | sleeps no longer than until then | the holder, who has to be back earlier, to Set; the thread once the time has come, to none |
//!
//! Nobody takes an alarm back: it may come when its request has gone on, or its queue pair is another. So
//! the thread concludes nothing from it, but runs the queue pair, like anybody who kicks; and who holds
//! the turn then finds that the time of a [wait](crate::engine::retry) is over, or asks for the next alarm.
//!
//! The wait is written before its alarm is set, and the alarm taken after its time, so that whoever is kicked
//! for it sees both. The alarms are under a mutex. It is taken under turns, and no turn, no lock and no system
//! call but starting the thread comes under it; polls, pushes and requests that need not wait never see it.
//!
//! # Events that are held back
//! Of each [moderated](crate::protocol::moderation) completion queue of the process the thread looks whether
//! its event has waited long enough, and sleeps no longer than until then.
//!
//! # Busy queue pairs
//! Who holds a turn and finds requests posted faster than it carries them out gives the turn back with
//! work left, and only then puts the queue pair on a list, from which the thread takes it. In between
//! it is nobody's, and whoever enters does the work. The thread gives it back in the same way,
//! and looks at the alarms first, so that neither keep it from the other for long.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::completion::channel;
use crate::completion::moderation;
use crate::engine::remote_requests;
use crate::engine::send_queue;
use crate::fabric::Fabric;
use crate::layout::ProcessSlot;
use crate::lifecycle::deaths;
use crate::memory::{copier, reach};
use crate::shm::thread;
use crate::sync;

/// How often it looks whether the other processes live.
const WATCH: Duration = Duration::from_millis(20);
/// How long somebody who is suspended is left alone before he is asked again.
const SOON: Duration = Duration::from_millis(50);

/// What the service thread and those who need it share.
pub struct Service {
    epoch: Instant,
    agenda: Mutex<Agenda>,
}

impl Service {
    /// One without its thread.
    pub fn new() -> Self {
        Self { epoch: Instant::now(), agenda: Mutex::default() }
    }

    /// The time, in nanoseconds since the device was opened. It never goes back.
    pub fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Has the queue pair with this number run at `deadline` or soon after, or before.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: it will not be run.
    pub fn wake_at(&self, fabric: &'static Fabric, number: u32, deadline: u64) -> io::Result<()> {
        let index = fabric.tables().qps.index(number);
        if self.started(fabric)?.set_alarm(index, deadline) {
            fabric.call(fabric.place());
        }
        Ok(())
    }

    /// [`wake_at`](Self::wake_at), soon: somebody is suspended, and nobody kicks once that goes on.
    ///
    /// # Errors
    /// As there.
    pub fn wake_soon(&self, fabric: &'static Fabric, number: u32) -> io::Result<()> {
        self.wake_at(fabric, number, self.now() + SOON.as_nanos() as u64)
    }

    /// Has the queue pair with this number run by the thread, soon. Not under its turn.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: it will not be run.
    pub fn hand_over(&self, fabric: &'static Fabric, number: u32) -> io::Result<()> {
        self.started(fabric)?.add_busy(fabric.tables().qps.index(number));
        fabric.call(fabric.place());
        Ok(())
    }

    /// Has the thread look at the events that this completion queue of the process holds back.
    ///
    /// # Errors
    /// The thread is not there yet, and the system refuses one: they would be held back for ever.
    pub fn moderates(&self, fabric: &'static Fabric, cq: u32) -> io::Result<()> {
        self.started(fabric)?.moderated.insert(cq);
        Ok(())
    }

    /// This completion queue is no more.
    pub fn forgets(&self, cq: u32) {
        self.lock().moderated.remove(&cq);
    }

    /// Whether the thread looks at the events that this completion queue holds back.
    #[cfg(test)]
    pub fn looks_at(&self, cq: u32) -> bool {
        self.lock().moderated.contains(&cq)
    }

    /// Keeps all others from what the thread is told, if nobody does.
    #[cfg(test)]
    pub fn keep(&self) -> Option<impl Drop + '_> {
        self.agenda.try_lock().ok()
    }

    /// Sees to it that there is the thread, and that it watches over the other processes.
    ///
    /// # Errors
    /// The system refuses one.
    pub fn watch(&self, fabric: &'static Fabric) -> io::Result<()> {
        self.started(fabric)?.watch = Some(self.now());
        fabric.call(fabric.place());
        Ok(())
    }

    /// Wakes the service thread of a process.
    pub fn wake(process: &ProcessSlot) {
        sync::count(&process.calls);
        // Nobody may be asleep, and whoever is can't be told that this failed.
        let _ = futex::wake(&process.calls, futex::Flags::empty(), 1);
    }

    /// Sees to it that there is the thread.
    fn started(&self, fabric: &'static Fabric) -> io::Result<MutexGuard<'_, Agenda>> {
        let mut agenda = self.lock();
        if !agenda.served {
            thread::spawn_deaf("rxe-loop", move || fabric.service().serve(fabric))?;
            agenda.served = true;
        }
        Ok(agenda)
    }

    fn serve(&self, fabric: &'static Fabric) {
        let Some(process) = fabric.tables().processes.get(usize::from(fabric.place())) else {
            return;
        };
        let calls = &process.calls;
        loop {
            // Before the looks: who calls after one ends the sleep.
            let seen = sync::acquire(calls);
            remote_requests::take(fabric, |qp| send_queue::run(fabric, qp));
            copier::serve(fabric);
            channel::ring_unheard(fabric);
            let held = self.look_at_events(fabric);
            let taken = self.lock().take(self.now());
            if let Some(qp) = taken {
                send_queue::run(fabric, qp);
                continue;
            }
            let left = self.look(fabric).into_iter().chain(held).min();
            let limit = left.and_then(|left| Timespec::try_from(left).ok());
            let _ = futex::wait(calls, futex::Flags::empty(), seen, limit.as_ref());
        }
    }

    /// Raises the events that were held back long enough; says how long none of them will have been.
    fn look_at_events(&self, fabric: &'static Fabric) -> Option<Duration> {
        // Most processes have none, and pay nothing for it.
        let moderated: Vec<_> = self.lock().moderated.iter().copied().collect();
        let left = moderated.into_iter().filter_map(|cq| moderation::look(fabric, cq)).min()?;
        Some(Duration::from_nanos(left))
    }

    /// Looks after the other processes, if it is time to; says how long there is nothing to do.
    fn look(&self, fabric: &'static Fabric) -> Option<Duration> {
        let due = self.lock().watch.filter(|&at| at <= self.now());
        if due.is_some() {
            let (others, left) = (deaths::look(fabric), reach::tidy(fabric));
            let next = (others || left).then(|| self.now() + WATCH.as_nanos() as u64);
            let mut agenda = self.lock();
            // Somebody may have come meanwhile, and asked for another look.
            if agenda.watch == due {
                agenda.watch = next;
            }
        }
        let agenda = self.lock();
        let next = agenda.next_alarm().into_iter().chain(agenda.watch).min()?;
        Some(Duration::from_nanos(next.saturating_sub(self.now())))
    }

    fn lock(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// Which queue pairs to run, and when, and which completion queues to look at. They are known by their places here, so that there can't be more
/// alarms than places.
#[derive(Default)]
struct Agenda {
    /// Whether the thread is there.
    served: bool,
    /// When to look after the other processes.
    watch: Option<u64>,
    alarms: BTreeMap<u32, u64>,
    /// The alarms again, by their times.
    order: BTreeSet<(u64, u32)>,
    /// Those that were handed over, each once.
    busy: VecDeque<u32>,
    /// Completion queues that may hold events back.
    moderated: BTreeSet<u32>,
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
