//! Events of what a process that died or is suspended leaves; the others are in `tests/tracing.rs`.

use tracing::Level;

use crate::completion::lock::give_up;
use crate::inside::prelude::*;
use crate::inside::subscriber::Recorder;

/// What the calls of this thread tell of.
fn recorded(calls: impl FnOnce()) -> &'static Recorder {
    let recorder: &'static Recorder = Box::leak(Box::default());
    tracing::subscriber::with_default(recorder, calls);
    recorder
}

#[test]
fn x03_a_lock_that_is_taken_over_is_told_of_with_the_pid_of_the_dead_process() {
    let device = Fixture::new().device;
    let (shm, lock) = (device.shm, Lock::default());
    let dead = shm.die_at(ANOTHER);
    let recorder = recorded(|| {
        assert!(lock.try_enter(dead));
        drop(shm.lock(&lock, || (), || ()).unwrap());
        assert!(lock.try_enter(dead));
        drop(shm.try_lock(&lock).unwrap());
        drop(shm.try_lock(&lock).unwrap());
        assert!(lock.try_enter(shm.me));
        assert!(shm.try_lock(&lock).is_none(), "its holder is alive");
    });
    let taken = recorder.seen("taking over the lock of a dead process", &[("pid", &0)]);
    assert_eq!(taken.len(), 2, "{taken:?}");
    assert!(taken.iter().all(|seen| seen.level == Level::WARN));
    assert_eq!(shm.pid(shm.attachment()), std::process::id());
}

#[test]
fn o05_a_queue_whose_lock_is_not_to_be_had_is_told_of_once() {
    let Fixture { device, cq, .. } = Fixture::new();
    let index = cq.handle.queue.index;
    let recorder = recorded(|| {
        for _ in 0..2 {
            give_up(device.completions, index, &[], device.engine);
            complete::fail_overran(device.engine);
        }
    });
    let text = "completion queue given up: a suspended process holds its lock";
    assert_eq!(recorder.only(text, &[("cq", &cq.key())]).level, Level::ERROR);
    recorder.only("completion queue overrun", &[("cq", &cq.key())]);
}
