//! The word that says who a queue pair is, and how (Q1): who sees that it was changed sees what was done before
//! that, and of changes that come at once none is lost.

use cq_core::setup::QpState;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use transport_rxe_loop::protocol::identity::{self, Identity};
use transport_rxe_loop::protocol::number::QpNumber;
use transport_rxe_loop::sync::{self, AtomicU64};
use verify_loom::harness::{UNORDERED, model};
use verify_loom::threads::spawn;

const NUMBER: QpNumber = QpNumber::new(0x1001);
const RTS: Identity = Identity::new(NUMBER, QpState::RTS, 2);
const REVIVED: &str = "it failed, and is not in ERR";

type Change = fn(&AtomicU64);

struct Pair {
    identity: AtomicU64,
    cell: UnsafeCell<()>,
}

// SAFETY: the cell holds nothing.
unsafe impl Sync for Pair {}

impl Pair {
    fn in_rts() -> Arc<Self> {
        let identity = AtomicU64::new(0);
        identity::enter(&identity, NUMBER);
        assert!(identity::change(&identity, identity::read(&identity), QpState::RTS));
        Arc::new(Self { identity, cell: UnsafeCell::new(()) })
    }
}

/// One does something, and changes the queue pair; the other looks at it if it finds that.
fn hand_over(change: Change, finds: fn(&AtomicU64) -> bool) {
    let pair = Pair::in_rts();
    let other = spawn(&pair, move |pair| {
        if finds(&pair.identity) {
            pair.cell.with(|_| ());
        }
    });
    pair.cell.with_mut(|_| ());
    change(&pair.identity);
    other.join().unwrap();
}

fn is_changed(word: &AtomicU64) -> bool {
    identity::read(word) != RTS
}

fn fail(word: &AtomicU64) {
    identity::fail(word, NUMBER);
}

/// Puts it into ERR, and orders nothing.
fn store_only(word: &AtomicU64) {
    let failed = AtomicU64::new(0);
    identity::enter(&failed, NUMBER);
    let _ = identity::change(&failed, identity::read(&failed), QpState::ERR);
    sync::store(word, sync::load(&failed));
}

#[test]
fn q01_who_sees_a_change_sees_what_was_before_it() {
    let changes: [(&str, Change); 6] = [
        ("made anew", |word| identity::enter(word, NUMBER)),
        ("changed", |word| _ = identity::change(word, RTS, QpState::SQD)),
        ("failed", fail),
        ("failed as to its sends", |word| identity::fail_sends(word, NUMBER)),
        ("taken away", identity::vacate),
        ("taken away by its number", |word| _ = identity::vacate_if(word, NUMBER)),
    ];
    for (name, change) in changes {
        model(format!("a queue pair is {name}"), move || hand_over(change, is_changed))
            .must_fail_as("what orders the change", UNORDERED, || {
                hand_over(store_only, is_changed)
            });
    }
}

#[test]
fn q01_who_finds_that_it_can_change_nothing_sees_what_was_before_that() {
    let refused = |word: &AtomicU64| !identity::fail(word, NUMBER);
    model("a queue pair has failed already", move || hand_over(fail, refused)).must_fail_as(
        "what orders the change",
        UNORDERED,
        move || hand_over(store_only, refused),
    );
}

/// One fails it while another changes it.
fn fail_while(change: Change) {
    let pair = Pair::in_rts();
    let other = spawn(&pair, move |pair| change(&pair.identity));
    assert!(identity::fail(&pair.identity, NUMBER), "{REVIVED}");
    other.join().unwrap();
    assert_eq!(identity::read(&pair.identity).state(), QpState::ERR, "{REVIVED}");
}

#[test]
fn q01_what_has_failed_stays_so_whoever_changes_it_at_once() {
    let changes: [(&str, Change); 2] = [
        ("fails its sends", |word| identity::fail_sends(word, NUMBER)),
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
