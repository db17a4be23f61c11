//! Slots of a send queue: one comes back with the completion that covers it, and the thread that posts then writes its
//! request where the owner of the send queue has read the last one (Q5).

use std::sync::Arc;

use cq_core::queue::{Tagged, Tail};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use loom::thread;
use transport_rxe_loop::protocol::number::Position;
use transport_rxe_loop::protocol::send_slots::{FreeSlots, Polled, SendSlots};
use transport_rxe_loop::sync::{AtomicU64, Site};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::queue::{Queue, numbered};
use verify_loom::threads::{Watched, spawn};

const CAPACITY: u32 = 2;
const FULL: &str = "a completion was polled, and no slot came back";

/// A send queue with two requests, and the completion queue of its sends.
struct Sends {
    words: [AtomicU64; CAPACITY as usize],
    requests: [Watched; CAPACITY as usize],
    cq: Arc<Queue>,
    polled: Polled,
}

impl Sends {
    /// Both requests are posted.
    fn posted() -> Arc<Self> {
        let sends = Self {
            words: Default::default(),
            requests: Default::default(),
            cq: Queue::new(CAPACITY),
            polled: Polled::default(),
        };
        (0..2).for_each(|position| sends.slots().pending(Position::new(position)));
        Arc::new(sends)
    }

    const fn slots(&self) -> SendSlots<'_> {
        SendSlots(&self.words)
    }

    /// Carries out both, of which only the second is signaled.
    fn carry_out(&self, places_first: bool) {
        self.requests.iter().for_each(|request| request.read());
        let (slots, [first, second]) = (self.slots(), [0, 1].map(Position::new));
        slots.unsignaled(first);
        if places_first {
            slots.completes_at(second, 0);
        }
        let entry = Tagged { wc: numbered(1), ..Tagged::default() };
        self.cq.producer(Tail::at(0)).push(&entry).unwrap();
        slots.completes_at(second, 0);
    }

    /// Polls until there was the completion.
    fn poll(&self) {
        let mut consumer = self.cq.consumer(0);
        while consumer.poll_into(&mut [Wc::default(); 2]) == Ok(0) {
            thread::yield_now();
        }
        self.polled.count(consumer.position());
    }

    /// Posts two more, if slots are seen to be free.
    fn post(&self, free: &mut FreeSlots) -> bool {
        let third = Position::new(2);
        free.look(&self.slots(), third, self.polled.seen());
        let both = free.has_one(third.next(), CAPACITY);
        assert_eq!(free.has_one(third, CAPACITY), both, "the first came back without the second");
        if both {
            self.requests.iter().for_each(|request| request.write());
        }
        both
    }
}

/// One thread carries the requests out, another one polls.
fn post_while_polling(places_first: bool) {
    let sends = Sends::posted();
    let owner = spawn(&sends, move |sends| sends.carry_out(places_first));
    let poller = spawn(&sends, |sends| sends.poll());
    let mut free = FreeSlots::all(Position::default());
    let has_posted = sends.post(&mut free);
    poller.join().unwrap();
    assert!(has_posted || sends.post(&mut free), "{FULL}");
    owner.join().unwrap();
}

#[test]
fn q05_a_slot_comes_back_once_the_completion_that_covers_it_is_polled() {
    model("a thread posts while another polls", || post_while_polling(true))
        .must_fail_without([Site::CountPolled, Site::SeePolled], UNORDERED)
        .must_fail_as("placing a completion before it is published", FULL, || {
            post_while_polling(false)
        });
}
