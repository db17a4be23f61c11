//! Budgets of a completion queue that is a plain list.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use cq_verbs::budget::*;
use cq_verbs::device::{Destroy, DeviceCq};
use cq_verbs::setup::{CreateError, InUseError, LimitKind, ModerateError, ResizeError};

use super::tracked::Qp;
use super::*;

/// A completion queue that resizes to a multiple of 4, or not at all.
#[derive(Debug, Default)]
struct List {
    completions: Mutex<Vec<Wc>>,
    resizes: Vec<u32>,
    capacity: u32,
    events: u32,
    is_used: AtomicBool,
}

const TOO_MANY: CreateError = CreateError::TooMany { what: LimitKind::Cqe, asked: 99, max: 32 };

impl PollCq for List {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let mut completions = self.completions.lock().unwrap();
        let count = out.len().min(completions.len());
        out.iter_mut().zip(completions.drain(..count)).for_each(|(out, wc)| *out = wc);
        Ok(count)
    }
}

impl Arm for List {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        assert_eq!(on, Notify::Solicited);
        Ok(Armed::MayHaveMissed)
    }

    fn key(&self) -> CqKey {
        KEY
    }

    fn took_events(&mut self, count: u32) {
        self.events += count;
    }
}

impl Destroy for List {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        if self.is_used.load(SeqCst) {
            Err(InUseError::new(self, "queue", "its users"))
        } else {
            Ok(())
        }
    }
}

impl Capacity for List {
    fn capacity(&self) -> usize {
        self.capacity as usize
    }
}

impl DeviceCq for List {
    type Handle = u32;

    fn handle(&self) -> u32 {
        42
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
        self.resizes.push(capacity);
        if capacity > 32 { Err(TOO_MANY.into()) } else { Ok(capacity.next_multiple_of(4)) }
    }

    fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
        assert_eq!((count, period), (3, 4));
        Err(ModerateError::Unsupported)
    }
}

type Queue = Budgeted<List, Arc<Budget>>;

/// A queue of this capacity, and its budget.
fn queue(capacity: u32) -> (Queue, Arc<Budget>) {
    let queue = Budgeted::with_capacity(List::default(), capacity as usize);
    let budget = queue.budget().clone();
    (queue, budget)
}

/// Stores completions.
fn store(queue: &Queue, count: u64) {
    queue.unbudgeted().completions.lock().unwrap().extend((0..count).map(send));
}

/// Polls with a buffer of two.
fn poll(queue: &mut Queue) -> usize {
    queue.poll_into(&mut [Wc::default(); 2]).unwrap()
}

fn reserve(budget: &Arc<Budget>, entries: u32) -> Reserved<Qp, Arc<Budget>, 1> {
    tracked::reserve(budget, entries).unwrap()
}

#[test]
fn o07_no_more_is_reserved_than_there_is() {
    let (_queue, budget) = queue(10);
    let first = reserve(&budget, 6);
    assert_eq!((first.usable(), budget.available()), ([6], 4));
    let refused = tracked::reserve(&budget, 5).unwrap_err();
    assert_eq!(refused, OverdrawnError { asked: 5, available: 4, pending: false });
    assert_eq!((refused.missing(), budget.available()), (1, 4));
    let _second = reserve(&budget, 4);
    let _none = reserve(&budget, 0);
    assert_eq!(tracked::reserve(&budget, 1).unwrap_err().missing(), 1);
}

#[test]
fn entries_return_once_a_poll_that_began_later_found_the_queue_empty() {
    let (mut queue, budget) = queue(4);
    store(&queue, 3);
    let reservation = reserve(&budget, 3);
    assert_eq!(poll(&mut queue), 2);
    drop(reservation);
    assert_eq!(budget.available(), 1);
    assert_eq!(queue.poll_into(&mut []).unwrap(), 0, "which tells nothing");
    assert_eq!(budget.available(), 1);
    assert_eq!((poll(&mut queue), budget.available()), (1, 4), "fewer than the buffer holds");
    assert_eq!((poll(&mut queue), budget.available()), (0, 4), "once");
    // A poll that fills its buffer may leave something.
    store(&queue, 4);
    drop(reserve(&budget, 4));
    assert_eq!((poll(&mut queue), budget.available()), (2, 0));
    assert_eq!((poll(&mut queue), budget.available()), (2, 0));
    assert_eq!((poll(&mut queue), budget.available()), (0, 4));
    // Each of several counts.
    let (one, other) = (reserve(&budget, 1), reserve(&budget, 2));
    drop(one);
    assert_eq!((poll(&mut queue), budget.available()), (0, 2));
    drop(other);
    assert_eq!((poll(&mut queue), budget.available()), (0, 4));
    // Nothing was reserved, so nothing is waited for.
    drop(reserve(&budget, 0));
    assert_eq!(budget.available(), 4);
}

#[test]
fn what_a_reset_discarded_can_be_used_again_once_the_queue_was_empty() {
    let (mut queue, budget) = queue(8);
    let (mut one, mut other) = (reserve(&budget, 4), reserve(&budget, 4));
    let to_reset = |_: &mut Qp| Ok::<_, ()>(());
    store(&queue, 4);
    assert_eq!((one.reset([3], |_| Err(7)), one.usable()), (Err(7), [4]), "it is not in RESET");
    one.reset([3], to_reset).unwrap();
    assert_eq!((one.usable()[0], other.usable()[0]), (1, 4));
    assert_eq!((poll(&mut queue), one.usable()[0]), (2, 1));
    one.reset([2], to_reset).unwrap();
    assert_eq!(one.usable()[0], 0, "more than it has, as one more went to RESET");
    other.reset([4], to_reset).unwrap();
    assert_eq!(other.usable()[0], 0);
    other.reset([0], to_reset).unwrap();
    assert_eq!((poll(&mut queue), one.usable()[0], other.usable()[0]), (2, 0, 0));
    assert_eq!((poll(&mut queue), one.usable()[0], other.usable()[0]), (0, 4, 4));
    // One discards after the queue was empty: an answer that is older says nothing.
    one.reset([1], to_reset).unwrap();
    assert_eq!(one.usable()[0], 3);
    other.reset([0], to_reset).unwrap();
    assert_eq!(other.usable()[0], 4, "nothing was discarded");
    assert_eq!((poll(&mut queue), one.usable()[0]), (0, 4));
    // The first of two was answered before the second.
    one.reset([2], to_reset).unwrap();
    assert_eq!(poll(&mut queue), 0);
    one.reset([1], to_reset).unwrap();
    assert_eq!(one.usable()[0], 3);
    drop(one);
    assert_eq!((poll(&mut queue), budget.available()), (0, 4), "all four of it");
}

#[test]
fn q12_a_queue_is_not_resized_below_what_is_reserved() {
    let (mut queue, budget) = queue(16);
    let reservation = reserve(&budget, 9);
    let refused = queue.resize(8).unwrap_err();
    assert_eq!(refused, ResizeError::Reserved { reserved: 9, asked: 8 });
    assert_eq!(
        (queue.unbudgeted().resizes.len(), queue.capacity(), budget.available()),
        (0, 16, 7)
    );
    // The device gives 12.
    assert_eq!(queue.resize(9), Ok(12));
    assert_eq!((queue.capacity(), budget.available()), (12, 3));
    // It can't, and nothing has changed.
    assert_eq!(queue.resize(33), Err(TOO_MANY.into()));
    assert_eq!((queue.capacity(), budget.available()), (12, 3));
    assert_eq!(queue.resize(20), Ok(20));
    assert_eq!((queue.capacity(), budget.available()), (20, 11));
    // What is not free again counts as reserved.
    drop(reservation);
    assert_eq!(queue.resize(4), Err(ResizeError::Reserved { reserved: 9, asked: 4 }));
    assert_eq!(poll(&mut queue), 0);
    assert_eq!(queue.resize(4), Ok(4));
    assert_eq!((queue.capacity(), budget.available()), (4, 4));
    assert_eq!(queue.unbudgeted().resizes, [9, 33, 20, 4]);
}

#[test]
fn what_the_queue_can_never_hold_is_not_pending() {
    let (mut queue, budget) = queue(8);
    let given_back = || drop(reserve(&budget, 8));
    let refused = |asked| tracked::reserve(&budget, asked).unwrap_err();
    given_back();
    assert_eq!(refused(8), OverdrawnError { asked: 8, available: 0, pending: true });
    assert_eq!(refused(9), OverdrawnError { asked: 9, available: 0, pending: false });
    // It holds more, and then fewer.
    assert_eq!(queue.resize(12), Ok(12));
    assert!(refused(12).pending && !refused(13).pending);
    assert_eq!(poll(&mut queue), 0);
    assert_eq!(queue.resize(4), Ok(4));
    drop(reserve(&budget, 4));
    assert!(refused(4).pending && !refused(5).pending);
}

/// Runs what panics.
fn panics<T>(run: impl FnOnce() -> T) {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).err().expect("a panic");
}

#[test]
fn q12_a_panic_while_the_queue_is_resized_costs_no_entry() {
    let (mut queue, budget) = queue(64);
    for capacity in [16, 64, 99] {
        panics(|| queue.resize_by(capacity, |_| -> Result<u32, ()> { panic!("as planned") }));
        assert_eq!((queue.capacity(), budget.available()), (64, 64));
    }
    assert_eq!(queue.resize_by(16, |_| Ok::<_, ()>(16)), Ok(Ok(16)));
    assert_eq!((queue.capacity(), budget.available()), (16, 16));
}

/// It can't be cloned.
struct Single(Arc<Budget>);

impl std::ops::Deref for Single {
    type Target = Budget;

    fn deref(&self) -> &Budget {
        &self.0
    }
}

impl Clone for Single {
    fn clone(&self) -> Self {
        panic!("as planned")
    }
}

#[test]
fn a_panic_while_entries_are_reserved_costs_none() {
    let (_queue, budget) = queue(4);
    panics(|| Reserved::create([(&Single(budget.clone()), 4)], || Ok::<_, ()>(Qp::default())));
    assert_eq!(budget.available(), 4);
}

#[test]
fn a_device_that_can_not_shrink_gives_everything_back() {
    let (mut queue, budget) = queue(40);
    assert_eq!(queue.resize(36), Err(TOO_MANY.into()));
    assert_eq!((queue.capacity(), budget.available()), (40, 40));
}

#[test]
fn a_budgeted_queue_is_otherwise_that_of_the_transport() {
    let (mut queue, _) = queue(4);
    assert_eq!(queue.arm(Notify::Solicited), Ok(Armed::MayHaveMissed));
    assert_eq!(queue.key(), KEY);
    assert_eq!(
        [queue.handle(), DeviceCq::handle(&queue)].map(|handle| *handle.unbudgeted()),
        [42; 2]
    );
    assert_eq!(queue.handle().budget().available(), 4);
    queue.took_events(2);
    assert_eq!(queue.unbudgeted().events, 2);
    assert_eq!(queue.moderate(3, 4), Err(ModerateError::Unsupported));
    let cq = CompletionQueue::new(queue);
    assert_eq!(cq.capacity(), 4);
    cq.get_ref().unbudgeted().is_used.store(true, SeqCst);
    let in_use = cq.into_inner().destroy().unwrap_err();
    assert_eq!(in_use.to_string(), "the queue is still in use: destroy its users first");
    in_use.handle.unbudgeted().is_used.store(false, SeqCst);
    in_use.handle.destroy().unwrap();
    let (queue, _) = self::queue(4);
    store(&queue, 3);
    assert_eq!(queue.into_inner().completions.lock().unwrap().len(), 3);
    // A device knows its capacity.
    assert_eq!(Budgeted::new(List { capacity: 9, ..List::default() }).budget().available(), 9);
    // A failed poll is no empty one.
    let script = Script::<4>::new(KEY).on_poll(Err(PollError::Failed));
    let mut queue = Budgeted::with_capacity(&script, 4);
    drop(reserve(queue.budget(), 4));
    assert_eq!(queue.poll_into(&mut [Wc::default(); 2]), Err(PollError::Failed));
    assert_eq!(queue.budget().available(), 0);
}

#[test]
fn a_budget_needs_no_allocation() {
    let mut storage = Budget::default();
    for capacity in [3, 2] {
        let mut queue = Budgeted::new_in(List::default(), capacity as usize, &mut storage);
        let budget: &Budget = queue.budget();
        assert_eq!(budget.available(), capacity);
        let create = || Ok::<_, ()>(Qp::default());
        drop(Reserved::create([(&budget, 2)], create).unwrap());
        assert_eq!(queue.budget().available(), capacity - 2);
        queue.poll_into(&mut [Wc::default()]).unwrap();
        drop(Reserved::create([(queue.budget(), capacity - 1)], create).unwrap());
        assert_eq!(queue.budget().available(), 1, "which the next one forgets");
    }
}

#[test]
fn o07_entries_are_free_only_after_their_queue_pair_has_ended() {
    let ((mut queue, budget), (_other, other)) = (queue(8), queue(3));
    let queues = [(&budget, 4), (&other, 3)];
    assert_eq!(Reserved::create(queues, || Err::<Qp, _>(5)).unwrap().unwrap_err(), 5);
    assert_eq!((budget.available(), other.available()), (8, 3), "no request has used them");
    let qp = Qp::default();
    let mut reserved = Reserved::create(queues, || Ok::<_, ()>(qp.clone())).unwrap().unwrap();
    assert_eq!((reserved.usable(), budget.available(), other.available()), ([4, 3], 4, 0));
    reserved.get_mut().post_recv(&[RecvWr::new(1, &[])]).unwrap();
    assert_eq!(reserved.get_ref().with(|pair| pair.receives.len()), 1);
    drop(reserved);
    assert_eq!((budget.available(), poll(&mut queue), budget.available()), (4, 0, 8));
    // What the device may still complete has its entries for ever.
    qp.with(|pair| pair.is_used = true);
    drop(Reserved::create([(&budget, 5)], || Ok::<_, ()>(qp)).unwrap());
    assert_eq!((poll(&mut queue), budget.available()), (0, 3));
}
