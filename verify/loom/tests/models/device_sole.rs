//! The only producer of a completion queue pushes without the lock, while another one begins to use the queue: no two push at
//! once, and nothing is lost (C8).

use std::sync::Arc;

use cq_core::queue::{Entry, NoChannel};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use loom::cell::UnsafeCell;
use loom::thread;
use transport_rxe_loop::protocol::fanin::Fanin;
use transport_rxe_loop::protocol::in_flight::ChangeFence;
use transport_rxe_loop::protocol::lock::AttachmentKey;
use transport_rxe_loop::protocol::number::QpNumber;
use transport_rxe_loop::protocol::sole::SoleProducer;
use transport_rxe_loop::sync::Site;
use verify_loom::harness::{UNORDERED, model};
use verify_loom::initiator::{Care, Initiator};
use verify_loom::queue::{Queue, numbered};
use verify_loom::threads::spawn;

const ALONE: QpNumber = QpNumber::new(7);

/// A completion queue, and the words of the queue pair that is alone at first.
struct Cq {
    fanin: Fanin,
    queue: Arc<Queue>,
    sole: SoleProducer,
    initiator: Initiator,
    /// What loom watches: who pushes.
    pushing: UnsafeCell<()>,
}

// SAFETY: loom watches each access to the cell, which holds nothing.
unsafe impl Sync for Cq {}

impl Cq {
    fn new() -> Arc<Self> {
        let sole = SoleProducer::default();
        assert!(sole.claim(ALONE));
        let (fanin, initiator) = Default::default();
        Arc::new(Self {
            fanin,
            queue: Queue::new(4),
            sole,
            initiator,
            pushing: UnsafeCell::new(()),
        })
    }

    fn push(&self, number: u64) {
        self.pushing.with_mut(|_| ());
        let entry = Entry { wc: numbered(number), ..Entry::default() };
        self.fanin.push(&mut self.queue.open(), NoChannel, &entry, |_| ()).unwrap();
    }

    fn push_locked(&self, number: u64, who: u16) {
        while !self.fanin.lock.try_enter(AttachmentKey::new(who, 1)) {
            thread::yield_now();
        }
        self.push(number);
        self.fanin.lock.leave();
    }

    /// The queue pair that is alone at first carries out a request.
    fn carry_out(&self, number: u64) {
        let copy = || {
            if self.sole.is(ALONE) {
                self.push(number);
            } else {
                self.push_locked(number, 0);
            }
        };
        assert!(self.initiator.post(Care::Looks, copy, || ()));
    }

    /// Another one begins to use the queue, and pushes.
    fn join(&self, waits: bool) {
        if self.sole.share().is_some() && waits {
            assert!(ChangeFence::after_change().wait(&self.initiator.ownership, || {
                thread::yield_now();
                true
            }));
        }
        self.push_locked(100, 1);
    }
}

fn join_while_it_sends(times: u64, waits: bool) {
    let cq = Cq::new();
    let other = spawn(&cq, move |cq| cq.join(waits));
    (0..times).for_each(|number| cq.carry_out(number));
    other.join().unwrap();
    let mut wcs = [Wc::default(); 4];
    assert_eq!(cq.queue.consumer(0).poll(&mut wcs), Ok(times as usize + 1), "one was lost");
}

#[test]
fn c08_the_only_producer_is_waited_for_by_the_next() {
    model("a queue pair joins while another one sends", || join_while_it_sends(1, true))
        .must_fail_without(Site::OpenFence, UNORDERED)
        .must_fail_without(Site::ChangeFence, UNORDERED)
        .must_fail_without(Site::SeeClosed, UNORDERED)
        .must_fail_as("the wait", UNORDERED, || join_while_it_sends(1, false));
    model("a queue pair joins while another one sends twice", || join_while_it_sends(2, true))
        .must_fail_without(Site::OpenFence, UNORDERED)
        .must_fail_without(Site::SeeClosed, UNORDERED);
}
