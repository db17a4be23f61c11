//! Many take the receives of a queue pair for datagrams, one after the other, under a lock. Each receive
//! completes once, in order, and none is left behind when the queue pair fails (Q2, C8, C10). When RESET is over,
//! none completes any more.

use cq_verbs::setup::QpState;

use std::sync::Arc;

use loom::thread;
use transport_rxe_loop::protocol::in_flight::ChangeFence;
use transport_rxe_loop::protocol::lock::{AttachmentKey, Lock};
use transport_rxe_loop::protocol::number::Position;
use transport_rxe_loop::sync::{self, Site};
use verify_loom::harness::model;
use verify_loom::mortal::Mortal;
use verify_loom::receiver::{LATE, LEFT, ORDER, Receiver};
use verify_loom::threads::spawn;

/// All threads are of one process.
const ME: AttachmentKey = AttachmentKey::new(1, 1);

/// What senders leave out, in a control.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Taking the lock.
    Lock,
    /// Looking whether the queue pair has failed, after the lock was left.
    LastLook,
}

/// A queue pair for datagrams.
struct Target {
    target: Receiver,
    receive_lock: Lock,
    /// Those who wait for that.
    waiting: Mortal,
}

/// The lock is taken by who asked whether it is free.
struct Alone<'t>(&'t Target);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.waiting.leave(&self.0.receive_lock);
    }
}

impl Target {
    /// In RTS, with so many receives.
    fn with_receives(count: u64) -> Arc<Self> {
        let target = Receiver::with_receives(count);
        Arc::new(Self { target, receive_lock: Lock::default(), waiting: Mortal::default() })
    }

    /// Somebody brings a datagram.
    fn take(&self, without: Without) {
        if without != Without::Lock {
            let _never_inherited = self.waiting.enter(&self.receive_lock, ME);
        }
        self.target.take(&mut Position::default());
        if without != Without::Lock {
            self.waiting.leave(&self.receive_lock);
        }
        sync::full_fence_at(Site::LeaveFence);
        if without != Without::LastLook && self.target.is(QpState::ERR) {
            self.flush();
        }
    }

    /// What who wakes it has done: run it, in ERR.
    fn flush(&self) {
        self.target.flush(|| {
            let _shut = ChangeFence::after_change();
            self.receive_lock.try_enter(ME).then(|| Alone(self))
        });
    }

    fn fail(&self) {
        self.target.fail();
        self.flush();
    }
}

/// So many send a datagram each, to a target with one receive more.
fn send(target: &Arc<Target>, senders: usize, without: Without) -> Vec<thread::JoinHandle<()>> {
    let send = |_| spawn(target, move |target| target.take(without));
    (0..senders).map(send).collect()
}

fn fail_while_sending(senders: usize, without: Without) {
    let target = Target::with_receives(senders as u64 + 1);
    let senders = send(&target, senders, without);
    target.fail();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    target.target.expect_all();
}

#[test]
fn q02_who_takes_datagrams_and_fails_is_flushed_behind_the_receive_in_flight() {
    for senders in [1, 2] {
        let run = move |without| fail_while_sending(senders, without);
        let name = format!("a queue pair fails while {senders} datagrams come");
        model(name, move || run(Without::Nothing))
            .must_fail_without([Site::LeaveFence, Site::ChangeFence], LEFT)
            .must_fail_as("the lock", ORDER, move || run(Without::Lock))
            .must_fail_as("the last look", LEFT, move || run(Without::LastLook));
    }
}

/// The owner empties its queue pair, and makes it anew, while somebody sends.
fn reset(waits: bool) {
    let target = Target::with_receives(2);
    let senders = send(&target, 1, Without::Nothing);
    target.target.enter();
    if waits {
        let _never_inherited = target.waiting.enter(&target.receive_lock, ME);
        target.waiting.leave(&target.receive_lock);
    }
    let before = target.target.empty();
    target.target.leave_reset(QpState::RTS);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    target.target.expect_none_since(before);
}

#[test]
fn q01_no_receive_completes_after_reset_whoever_sends() {
    model("RESET while a datagram comes", || reset(true)).must_fail_as(
        "taking the lock once",
        LATE,
        || reset(false),
    );
}
