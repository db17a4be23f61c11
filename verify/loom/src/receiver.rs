//! A queue pair whose receives are taken by somebody else, and what has completed of them, in order.

use cq_verbs::setup::QpState;

use std::sync::Mutex;

use loom::sync::Mutex as LoomMutex;
use transport_rxe_loop::protocol::identity;
use transport_rxe_loop::protocol::number::{Position, QpNumber};
use transport_rxe_loop::protocol::receives::Receives;
use transport_rxe_loop::protocol::tag;
use transport_rxe_loop::sync::AtomicU64;

/// What a model fails with where a receive completes twice, or before another.
pub const ORDER: &str = "doubled, or out of order";
/// What it fails with where one never completes.
pub const LEFT: &str = "left behind";
/// What it fails with where one completes that RESET had forgotten.
pub const LATE: &str = "a receive of before RESET";

const CAPACITY: u32 = 4;
const NUMBER: QpNumber = QpNumber::new(0x1001);

/// How a receive completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Received,
    Flushed,
}

/// The queue pair.
pub struct Receiver {
    identity: AtomicU64,
    receives: Receives,
    turn: LoomMutex<()>,
    /// The lock of the completion queue.
    lock: LoomMutex<()>,
    /// Loom does not see it.
    completions: Mutex<Vec<How>>,
}

impl Receiver {
    /// In RTS, with so many receives.
    pub fn with_receives(count: u64) -> Self {
        let receiver = Self {
            identity: AtomicU64::new(0),
            receives: Receives::default(),
            turn: LoomMutex::new(()),
            lock: LoomMutex::new(()),
            completions: Mutex::default(),
        };
        receiver.enter();
        receiver.leave_reset(QpState::RTS);
        assert!(!receiver.post(count));
        receiver
    }

    /// Whether it is in this state.
    pub fn is(&self, state: QpState) -> bool {
        identity::read(&self.identity).state() == state
    }

    /// Posts receives up to a position; true if somebody is starved.
    pub fn post(&self, end: u64) -> bool {
        self.receives.post(Position::new(end))
    }

    /// Somebody takes the next receive, if it is in RTS and there is one.
    pub fn take(&self, cached_posted: &mut Position) {
        if self.is(QpState::RTS) {
            let position = self.receives.completed();
            if self.receives.has(position, cached_posted, CAPACITY) {
                self.push(position.get(), How::Received);
            }
        }
    }

    /// Goes to ERR; flushing is another matter.
    pub fn fail(&self) {
        assert!(identity::fail(&self.identity, NUMBER));
    }

    /// Under its turn: what who wakes it has done, in ERR, where `alone` makes sure that nobody takes a receive.
    pub fn flush<G>(&self, alone: impl FnOnce() -> Option<G>) {
        let _turn = self.turn.lock().unwrap();
        if !self.is(QpState::ERR) {
            return;
        }
        let Some(_alone) = alone() else { return };
        for position in self.receives.left(CAPACITY) {
            self.push(position.get(), How::Flushed);
        }
    }

    /// Goes to RESET; nothing is emptied yet.
    pub fn enter(&self) {
        identity::enter(&self.identity, NUMBER);
    }

    /// Empties it, once nobody takes a receive any more; says how much has completed until then.
    pub fn empty(&self) -> usize {
        let _guard = self.lock.lock().unwrap();
        self.receives.empty();
        self.completions.lock().unwrap().len()
    }

    /// Goes from RESET to another state.
    pub fn leave_reset(&self, state: QpState) {
        let reset = identity::read(&self.identity);
        assert!(identity::change(&self.identity, reset, state));
    }

    /// Everything that was posted has completed, and nothing was received after the first that was flushed.
    pub fn expect_all(&self) {
        let completions = self.completions.lock().unwrap();
        assert_eq!(completions.len() as u64, self.receives.posted().get(), "{LEFT}");
        assert!(completions.iter().map(|&how| how == How::Flushed).is_sorted(), "{ORDER}");
    }

    /// Nothing has completed since `before` had, and nothing is left.
    pub fn expect_none_since(&self, before: usize) {
        assert_eq!(self.completions.lock().unwrap().len(), before, "{LATE}");
        assert_eq!(self.receives.left(CAPACITY).count(), 0);
    }

    fn push(&self, position: u64, how: How) {
        let _guard = self.lock.lock().unwrap();
        let mut completions = self.completions.lock().unwrap();
        assert_eq!(completions.len() as u64, position, "{ORDER}");
        completions.push(how);
        self.receives.settle(tag::of_recv(Position::new(position + 1)), CAPACITY);
    }
}
