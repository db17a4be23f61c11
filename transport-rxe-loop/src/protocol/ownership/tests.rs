use super::*;

#[test]
fn who_enters_makes_the_owner_look_again() {
    let ownership = Ownership::default();
    assert!(ownership.enter());
    assert!(!ownership.enter(), "the owner will look again");
    assert!(!ownership.enter());
    assert!(!ownership.leave(), "rescheduled: still owned");
    assert!(!ownership.enter());
    assert!(!ownership.leave());
    assert!(ownership.leave());
    assert!(ownership.enter());
}

#[test]
fn what_was_seized_is_given_back_to_any_that_entered() {
    let ownership = Ownership::default();
    assert!(ownership.is_free() && ownership.try_seize());
    assert!(!ownership.is_free() && !ownership.try_seize());
    assert!(!ownership.enter());
    ownership.abandon();
    assert!(ownership.is_free());
    assert!(ownership.enter());
    assert!(ownership.leave(), "who tries to seize it does not reschedule");
}

#[test]
fn x04_any_number_is_a_state() {
    let ownership = Ownership(AtomicU32::new(0xdead));
    assert!(!ownership.enter());
    assert!(!ownership.leave());
    assert!(ownership.leave());
}
