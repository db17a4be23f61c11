use super::*;
use crate::inside::prelude::*;

#[test]
fn q10_the_marker_is_set_from_entering_or_opening_to_closing_or_leaving() {
    let ownership = Ownership::default();
    let is_open = || ChangeFence::after_change().is_open(&ownership);
    assert!(ownership.try_enter_to_copy() && is_open());
    assert!(!ownership.is_free() && !ownership.try_enter_to_copy() && !ownership.try_seize());
    assert!(is_open(), "another thread changes nothing");
    assert!(ownership.leave() && !is_open() && ownership.is_free());
    assert!(ownership.enter() && !is_open());
    assert!(!ownership.try_enter_to_copy() && !is_open(), "it is not rescheduled");
    ownership.open();
    assert!(is_open());
    ownership.close();
    assert!(!is_open() && !ownership.is_free());
    ownership.open();
    assert!(!ownership.enter() && is_open());
    assert!(!ownership.leave() && !is_open(), "it is still owned");
    assert!(ownership.leave() && ownership.is_free());
}

#[test]
fn q10_who_waits_tells_copies_apart_but_not_who_was_rescheduled_during_one() {
    let ownership = Ownership::default();
    let mut waited = 0;
    assert!(ownership.try_enter_to_copy());
    let is_over = ChangeFence::after_change().wait(&ownership, || {
        waited += 1;
        match waited {
            1 => assert!(!ownership.enter()),
            2 => {
                assert!(!ownership.leave());
                ownership.open();
            }
            _ => {}
        }
        waited < 4
    });
    assert!(is_over && waited == 2);
}
