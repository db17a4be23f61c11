//! The service thread: runs queue pairs when their requests have waited
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
//! What it is to do, each layer keeps itself: [alarms](crate::engine::alarms) and
//! [requests](crate::engine::remote_requests) to run queue pairs, [moderated](crate::completion::moderation) completion
//! queues, and what other processes [ask](crate::memory::copier) for.

use std::time::Duration;

use super::{Device, deaths};
use crate::completion::{channel, moderation};
use crate::engine::{complete, remote_requests, send_queue};
use crate::memory::copier;
use crate::shm::thread;
use crate::sync;

/// How often it looks whether the other processes live.
const WATCH: Duration = Duration::from_millis(20);

impl Device {
    /// What the service thread does, without an end.
    pub fn serve(&'static self) {
        let Some(calls) = self.shm.calls() else { return };
        let engine = self.engine;
        // When to look after the other processes.
        let mut watch = None;
        loop {
            // Before the looks: who calls after one ends the sleep.
            let seen = sync::acquire(calls);
            remote_requests::take(engine, |qp| send_queue::run(engine, qp));
            copier::serve(self.memory);
            channel::signal_pending(self.completions);
            let held = moderation::look_at_all(self.completions, engine);
            complete::fail_overran(engine);
            if let Some(qp) = engine.alarms.take() {
                send_queue::run(engine, qp);
                continue;
            }
            let limit =
                self.watch(&mut watch).into_iter().chain(held.map(Duration::from_nanos)).min();
            thread::sleep(calls, seen, limit);
        }
    }

    /// Looks after the other processes, if it is time to; says how long there is nothing to do.
    fn watch(&'static self, watch: &mut Option<u64>) -> Option<Duration> {
        let alarms = &self.engine.alarms;
        if self.shm.thread().is_asked_to_watch() {
            *watch = Some(alarms.now());
        }
        if watch.is_some_and(|at| at <= alarms.now()) {
            let (others, left) = (deaths::look(self), self.memory.tidy());
            *watch = (others || left).then(|| alarms.now() + WATCH.as_nanos() as u64);
        }
        let next = alarms.next().into_iter().chain(*watch).min()?;
        Some(Duration::from_nanos(next.saturating_sub(alarms.now())))
    }
}

#[cfg(test)]
mod tests;
