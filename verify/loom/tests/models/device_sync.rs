//! The operations that hand something over by themselves, each in the smallest use of it: who finds what another
//! has done to a word finds what that one did before.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use transport_rxe_loop::sync::{self, AtomicU32, AtomicU64};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::threads::spawn;

const TORN: &str = "the last word is there before the rest";
const MISCOUNTED: &str = "one of the two did not count";

type Tell<A> = fn(&A);
type IsTold<A> = fn(&A) -> bool;

/// A word, and something that is done before it changes.
#[derive(Default)]
struct Message<A> {
    word: A,
    cell: UnsafeCell<()>,
}

// SAFETY: the cell holds nothing.
unsafe impl<A: Sync> Sync for Message<A> {}

/// One does something, and tells; the other looks at it if it is told.
fn hand_over<A: Default + Send + Sync + 'static>(tell: Tell<A>, is_told: IsTold<A>) {
    let message = Arc::new(Message::<A>::default());
    let other = spawn(&message, move |message| {
        if is_told(&message.word) {
            message.cell.with(|_| ());
        }
    });
    message.cell.with_mut(|_| ());
    tell(&message.word);
    other.join().unwrap();
}

/// It is handed over by `tell` and `is_told`, and if one of them does the same to the word and orders nothing, it
/// is not.
fn hands_over<A: Default + Send + Sync + 'static>(
    name: &str,
    (tell, only_stores): (Tell<A>, Tell<A>),
    (is_told, only_loads): (IsTold<A>, IsTold<A>),
) {
    model(name, move || hand_over(tell, is_told))
        .must_fail_as("what orders the store", UNORDERED, move || hand_over(only_stores, is_told))
        .must_fail_as("what orders the load", UNORDERED, move || hand_over(tell, only_loads));
}

fn store_one(word: &AtomicU64) {
    sync::store(word, 1);
}

fn is_one(word: &AtomicU64) -> bool {
    sync::load(word) == 1
}

#[test]
fn q06_a_fetch_add_that_finds_another_finds_what_was_before_it() {
    let add = |word: &AtomicU64| _ = sync::fetch_add(word, 1);
    let finds = |word: &AtomicU64| sync::fetch_add(word, 2) == 1;
    hands_over("a FETCH_ADD after another", (add, store_one), (finds, is_one));
}

#[test]
fn q06_a_comp_swap_that_finds_another_finds_what_was_before_it() {
    let swap = |word: &AtomicU64| _ = sync::compare_swap(word, 0, 1);
    let swaps = |word: &AtomicU64| sync::compare_swap(word, 1, 2) == 1;
    let compares = |word: &AtomicU64| sync::compare_swap(word, 7, 8) == 1;
    hands_over("a COMP_SWAP after another", (swap, store_one), (swaps, is_one));
    hands_over("one that compares only", (swap, store_one), (compares, is_one));
}

#[test]
fn who_swaps_a_word_or_fails_to_finds_what_was_before_it() {
    let swap = |word: &AtomicU64| _ = sync::cas(word, 0, 1);
    let swaps = |word: &AtomicU64| sync::cas(word, 1, 2).is_ok();
    let compares = |word: &AtomicU64| sync::cas(word, 7, 8) == Err(1);
    hands_over("a word is swapped", (swap, store_one), (swaps, is_one));
    hands_over("a word is not swapped", (swap, store_one), (compares, is_one));
}

#[test]
fn who_raises_a_word_or_need_not_finds_what_was_before_it() {
    let raise = |word: &AtomicU64| sync::fetch_update(word, |_| Some(1));
    let need_not = |word: &AtomicU64| {
        let mut is_raised = false;
        sync::fetch_update(word, |seen| {
            is_raised = seen == 1;
            None
        });
        is_raised
    };
    hands_over("a word is raised", (raise, store_one), (need_not, is_one));
}

#[test]
fn who_acquires_what_was_released_finds_what_was_before_it() {
    let release = |word: &AtomicU64| sync::release(word, 1);
    let acquires = |word: &AtomicU64| sync::acquire(word) == 1;
    hands_over("a word is released", (release, store_one), (acquires, is_one));
}

#[test]
fn who_is_called_finds_what_for() {
    let only_stores = |word: &AtomicU32| sync::store(word, 1);
    let is_called = |word: &AtomicU32| sync::acquire(word) == 1;
    let only_loads = |word: &AtomicU32| sync::load(word) == 1;
    hands_over("a call", (sync::count, only_stores), (is_called, only_loads));
}

/// Two raise a word at once.
fn raise_twice(raise: fn(&AtomicU64)) {
    let word = Arc::new(AtomicU64::new(0));
    let other = spawn(&word, move |word| raise(&word));
    raise(&word);
    other.join().unwrap();
    assert_eq!(sync::load(&*word), 2, "{MISCOUNTED}");
}

#[test]
fn of_two_who_raise_a_word_at_once_both_do() {
    model("two raise a word", || {
        raise_twice(|word| sync::fetch_update(word, |seen| Some(seen + 1)))
    })
    .must_fail_as("the comparison", MISCOUNTED, || {
        raise_twice(|word| sync::release(word, sync::acquire(word) + 1))
    });
}

#[test]
fn who_counts_itself_in_or_out_of_a_stage_tells_what_was_before_it() {
    let enters = |word: &AtomicU32| word_is(word, 1);
    hands_over(
        "a thread begins to use a stage",
        (sync::enter as Tell<AtomicU32>, |word| sync::store(word, 1)),
        (enters, |word| sync::load(word) == 1),
    );
    let leaves = |word: &AtomicU32| word_is(word, u32::MAX);
    hands_over(
        "a thread no longer uses a stage",
        (sync::leave as Tell<AtomicU32>, |word| sync::store(word, u32::MAX)),
        (leaves, |word| sync::load(word) == u32::MAX),
    );
}

fn word_is(word: &AtomicU32, value: u32) -> bool {
    sync::acquire(word) == value
}

/// One writes, the last word last; the other waits for that, and reads.
fn write(before_last: fn(), after_last: fn()) {
    let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let writer = spawn(&words, move |words| {
        sync::store(&words[0], 1);
        before_last();
        sync::store(&words[1], 1);
    });
    if sync::load(&words[1]) == 1 {
        after_last();
        assert_eq!(sync::load(&words[0]), 1, "{TORN}");
    }
    writer.join().unwrap();
}

#[test]
fn q08_the_last_word_of_a_write_is_visible_last() {
    model("a WRITE", || write(sync::write_fence, sync::read_fence))
        .must_fail_as("the fence before the last word", TORN, || write(|| (), sync::read_fence))
        .must_fail_as("the fence after it", TORN, || write(sync::write_fence, || ()));
}
