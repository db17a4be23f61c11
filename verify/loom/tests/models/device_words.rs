//! The operations that hand something over by one word, each in the smallest use of it: who finds what another has done to
//! the word finds what that one did before, and of changes that come at once none is lost. The word may be anything (Q6,
//! Q8), say who a queue pair is, and how (Q1), or who has an entry of a table (X3).

use std::sync::Arc;

use cq_verbs::setup::QpState;
use transport_rxe_loop::protocol::identity::{self, Identity};
use transport_rxe_loop::protocol::life::Life;
use transport_rxe_loop::protocol::lock::AttachmentId;
use transport_rxe_loop::protocol::number::QpNumber;
use transport_rxe_loop::sync::{self, AtomicU32, AtomicU64};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::threads::{Watched, spawn};

const TORN: &str = "the last word is there before the rest";
const MISCOUNTED: &str = "one of the two did not count";
const REVIVED: &str = "it failed, and is not in ERR";

type Tell<A> = fn(&A);
type IsTold<A> = fn(&A) -> bool;

/// A word, and something that is done before it changes.
struct Message<A> {
    word: A,
    before: Watched,
}

/// One does something, and tells; the other looks at it if it is told.
fn hand_over<A: Send + Sync + 'static>(
    word: A,
    tells_first: bool,
    tell: Tell<A>,
    is_told: IsTold<A>,
) {
    let message = Arc::new(Message { word, before: Watched::default() });
    let other = spawn(&message, move |message| {
        if is_told(&message.word) {
            message.before.read();
        }
    });
    if tells_first {
        tell(&message.word);
    }
    message.before.write();
    if !tells_first {
        tell(&message.word);
    }
    other.join().unwrap();
}

/// In each case it is handed over by the one and the other operation. It is not, if that is done first; nor if one of them
/// does the same to the word and orders nothing, as `only_stores` or `only_loads`.
fn hands_over<A: Send + Sync + 'static>(
    new: fn() -> A,
    only_stores: Option<Tell<A>>,
    only_loads: Option<IsTold<A>>,
    cases: &[(&str, Tell<A>, IsTold<A>)],
) {
    for &(name, tell, is_told) in cases {
        let run = move |first, tell, is_told| move || hand_over(new(), first, tell, is_told);
        let model = model(name, run(false, tell, is_told));
        model.must_fail_as("telling last", UNORDERED, run(true, tell, is_told));
        if let Some(only_stores) = only_stores {
            let plain = run(false, only_stores, is_told);
            model.must_fail_as("what orders the store", UNORDERED, plain);
        }
        if let Some(only_loads) = only_loads {
            model.must_fail_as("what orders the load", UNORDERED, run(false, tell, only_loads));
        }
    }
}

#[test]
fn q06_who_finds_what_another_did_to_a_word_finds_what_was_before_it() {
    let swap = |word: &AtomicU64| _ = sync::compare_swap(word, 0, 1);
    let cas = |word: &AtomicU64| _ = sync::cas(word, 0, 1);
    hands_over(
        || AtomicU64::new(0),
        Some(|word| sync::store(word, 1)),
        Some(|word| sync::load(word) == 1),
        &[
            (
                "a FETCH_ADD after another",
                |word| _ = sync::fetch_add(word, 1),
                |word| sync::fetch_add(word, 2) == 1,
            ),
            ("a COMP_SWAP after another", swap, |word| sync::compare_swap(word, 1, 2) == 1),
            ("one that compares only", swap, |word| sync::compare_swap(word, 7, 8) == 1),
            ("a word is swapped", cas, |word| sync::cas(word, 1, 2).is_ok()),
            ("a word is not swapped", cas, |word| sync::cas(word, 7, 8) == Err(1)),
            (
                "a word is raised",
                |word| sync::fetch_update(word, |_| Some(1)),
                |word| {
                    let mut is_raised = false;
                    sync::fetch_update(word, |seen| {
                        is_raised = seen == 1;
                        None
                    });
                    is_raised
                },
            ),
            ("a word is released", |word| sync::release(word, 1), |word| sync::acquire(word) == 1),
        ],
    );
}

#[test]
fn who_counts_in_or_out_of_something_tells_what_was_before_it() {
    hands_over(
        || AtomicU32::new(0),
        Some(|word| sync::store(word, 1)),
        Some(|word| sync::load(word) == 1),
        &[
            ("a call", sync::count, |word| sync::acquire(word) == 1),
            ("a thread begins to use a stage", sync::enter, |word| sync::acquire(word) == 1),
        ],
    );
    hands_over(
        || AtomicU32::new(2),
        Some(|word| sync::store(word, 1)),
        Some(|word| sync::load(word) == 1),
        &[("a thread no longer uses a stage", sync::leave, |word| sync::acquire(word) == 1)],
    );
}

/// Two change a word at once.
fn change_at_once(word: AtomicU64, changes: [Tell<AtomicU64>; 2]) -> u64 {
    let word = Arc::new(word);
    let other = spawn(&word, move |word| changes[0](&word));
    changes[1](&word);
    other.join().unwrap();
    sync::load(&*word)
}

#[test]
fn of_two_who_raise_a_word_at_once_both_do() {
    let raise_twice = |raise| {
        assert_eq!(change_at_once(AtomicU64::new(0), [raise; 2]), 2, "{MISCOUNTED}");
    };
    model("two raise a word", move || {
        raise_twice(|word| sync::fetch_update(word, |seen| Some(seen + 1)))
    })
    .must_fail_as("the comparison", MISCOUNTED, move || {
        raise_twice(|word| sync::release(word, sync::acquire(word) + 1))
    });
}

const NUMBER: QpNumber = QpNumber::new(0x1001);
const RTS: Identity = Identity::new(NUMBER, QpState::RTS, 2);

/// The identity of a queue pair in this state.
fn queue_pair(state: QpState) -> AtomicU64 {
    let word = AtomicU64::new(0);
    identity::enter(&word, NUMBER);
    assert!(identity::change(&word, identity::read(&word), state));
    word
}

/// Puts it into ERR, and orders nothing.
fn fail_unordered(word: &AtomicU64) {
    sync::store(word, sync::load(&queue_pair(QpState::ERR)));
}

#[test]
fn q01_who_sees_a_change_or_can_change_nothing_sees_what_was_before_it() {
    let fail: Tell<AtomicU64> = |word| _ = identity::fail(word, NUMBER);
    let is_changed: IsTold<AtomicU64> = |word| identity::read(word) != RTS;
    hands_over(
        || queue_pair(QpState::RTS),
        Some(fail_unordered),
        None,
        &[
            ("made anew", |word| identity::enter(word, NUMBER), is_changed),
            ("changed", |word| _ = identity::change(word, RTS, QpState::SQD), is_changed),
            ("failed", fail, is_changed),
            ("failed as to its sends", |word| _ = identity::fail_sends(word, NUMBER), is_changed),
            ("taken away", identity::vacate, is_changed),
            ("taken away by number", |word| _ = identity::vacate_if(word, NUMBER), is_changed),
            ("failed already", fail, |word| !identity::fail(word, NUMBER)),
        ],
    );
}

/// One fails a queue pair while another changes it.
fn fail_while(change: Tell<AtomicU64>) {
    let fail: Tell<AtomicU64> = |word| assert!(identity::fail(word, NUMBER), "{REVIVED}");
    let word = AtomicU64::new(change_at_once(queue_pair(QpState::RTS), [change, fail]));
    assert_eq!(identity::read(&word).state(), QpState::ERR, "{REVIVED}");
}

#[test]
fn q01_what_has_failed_stays_so_whoever_changes_it_at_once() {
    let changes: [(&str, Tell<AtomicU64>); 2] = [
        ("fails its sends", |word| _ = identity::fail_sends(word, NUMBER)),
        ("drains it", |word| _ = identity::change(word, RTS, QpState::SQD)),
    ];
    for (name, change) in changes {
        model(format!("a queue pair fails while somebody {name}"), move || fail_while(change))
            .must_fail_as("the comparison", REVIVED, || {
                fail_while(|word| {
                    if identity::read(word) == RTS {
                        identity::enter(word, NUMBER);
                    }
                });
            });
    }
}

const ONE: AttachmentId = AttachmentId::new(0);
const OTHER: AttachmentId = AttachmentId::new(254 - 1);

#[test]
fn x03_who_claims_an_entry_comes_after_who_had_it() {
    let claimed = || {
        let life = Life::default();
        assert_eq!(life.claim(ONE), Some(0));
        life
    };
    let end: Tell<Life> = |life| {
        life.end(ONE);
        assert_ne!(life.attachment(), Some(ONE));
    };
    let claim: IsTold<Life> = |life| {
        let generation = life.claim(OTHER);
        assert!(generation.is_none_or(|it| it == 1), "another life");
        assert!(generation.is_none() || life.attachment() == Some(OTHER), "another has it");
        generation.is_some()
    };
    hands_over(claimed, None, None, &[("an entry is handed over", end, claim)]);
}

#[test]
fn x03_of_two_that_claim_an_entry_one_has_it() {
    model("two claim an entry", || {
        let life = Arc::new(Life::default());
        let other = spawn(&life, |life| life.claim(OTHER));
        let claimed = [life.claim(ONE), other.join().unwrap()];
        assert!(matches!(claimed, [Some(0), None] | [None, Some(0)]), "{claimed:?}");
    });
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
