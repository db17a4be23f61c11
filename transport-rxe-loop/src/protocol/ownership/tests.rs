use super::*;

#[test]
fn who_enters_makes_the_owner_look_again() {
    let ownership = Ownership::default();
    assert!(ownership.enter(&InFlight::default()));
    assert!(!ownership.enter(&InFlight::default()), "the owner will look again");
    assert!(!ownership.enter(&InFlight::default()));
    assert!(!ownership.leave(), "rescheduled: still owned");
    assert!(!ownership.enter(&InFlight::default()));
    assert!(!ownership.leave());
    assert!(ownership.leave());
    assert!(ownership.enter(&InFlight::default()));
}

#[test]
fn what_was_seized_is_given_back_to_any_that_entered() {
    let ownership = Ownership::default();
    assert!(ownership.is_free() && ownership.try_seize());
    assert!(!ownership.is_free() && !ownership.try_seize());
    assert!(!ownership.enter(&InFlight::default()));
    ownership.abandon();
    assert!(ownership.is_free());
    assert!(ownership.enter(&InFlight::default()));
    assert!(ownership.leave(), "who tries to seize it does not reschedule");
}

#[test]
fn x04_any_number_is_a_state() {
    let ownership = Ownership(AtomicU32::new(0xdead));
    assert!(!ownership.enter(&InFlight::default()));
    assert!(!ownership.leave());
    assert!(ownership.leave());
}

#[test]
fn who_finds_the_poster_at_work_leaves_the_queue_to_it() {
    let (ownership, marker) = (Ownership::default(), InFlight::default());
    marker.open();
    assert!(!ownership.enter(&marker) && !ownership.enter(&marker));
    assert!(!ownership.is_free() && !ownership.try_seize());
    marker.close();
    assert!(!ownership.enter(&marker), "the thread that posts comes");
    assert!(ownership.enter_to_post());
    assert!(!ownership.enter(&marker) && !ownership.enter_to_post());
    assert!(!ownership.leave(), "rescheduled");
    assert!(ownership.leave() && ownership.enter_to_post());
}
