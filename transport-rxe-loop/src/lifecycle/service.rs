//! The service thread: runs queue pairs whose requests have waited long enough, or that others rescheduled or handed
//! over; raises events that were delayed; fails queue pairs whose completion queue overran; copies for processes that
//! can't access this one's memory; sends requests for a connection again, and takes those that found no space; and checks
//! whether the other processes live.
//!
//! It is started by the first request that has to wait for a finite time, the first busy queue pair that is handed
//! over, the first completion queue with a channel that is moderated, the first queue pair that is connected to
//! another process', the first that takes datagrams, the first listener, or the first request for a connection that has to be
//! sent again; a process without any of these does not have it. It runs until the process ends, and sleeps while there is nothing to do. While other processes have the fabric open, it
//! checks them at an [interval](WATCH). It blocks all signals, which are the program's to handle. A forked child has
//! no service thread: its handles refuse everything.
//!
//! Each layer keeps its own work for the thread: [alarms](crate::engine::alarms) and [remote
//! requests](crate::engine::remote_requests) for queue pairs, [moderated](crate::completion::moderation) completion
//! queues, [requests](crate::memory::copier) of other processes to copy, and [requests](crate::connections::again) for
//! connections.

use std::time::Duration;

use super::{Device, deaths};
use crate::completion::{channel, moderation};
use crate::engine::{complete, remote_requests, send_queue};
use crate::memory::copier;
use crate::shm::thread;
use crate::sync;

/// The interval between two checks whether the other processes live.
const WATCH: Duration = Duration::from_millis(20);

impl Device {
    /// The loop of the service thread, which never returns.
    pub fn serve(&'static self) {
        let Some(calls) = self.shm.calls() else { return };
        let engine = self.engine;
        // When to check the other processes next.
        let mut watch = None;
        loop {
            // Loaded before the checks below: a call that comes after one of them ends the sleep.
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
            let unsent = self.connections.serve();
            let held = held.map(Duration::from_nanos);
            let limit = self.watch(&mut watch).into_iter().chain(held).chain(unsent).min();
            thread::sleep(calls, seen, limit);
        }
    }

    /// Checks the other processes, if it is time to. Returns how long until the next check or alarm.
    fn watch(&'static self, watch: &mut Option<u64>) -> Option<Duration> {
        let alarms = &self.engine.alarms;
        if self.shm.thread.is_asked_to_watch() {
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
