use super::*;

#[test]
fn what_no_state_is_counts_as_failed() {
    let word = AtomicU64::new(0x1001 << STATE_BITS | 0x77);
    let now = read(&word);
    assert_eq!((now.number(), now.state()), (QpNumber::new(0x1001), QpState::ERR));
    assert!(!fail(&word, QpNumber::new(0x1001)), "it has failed already");
    assert!(change(&word, read(&word), QpState::ERR), "nobody waits for it to be a state");
    let word = word.into_inner();
    assert_eq!(word, 1 << EPOCH_AT | 0x1001 << STATE_BITS | u64::from(QpState::ERR.0));
    let word = AtomicU64::new(0);
    enter(&word, QpNumber::new(0x1001));
    assert!(!fail(&word, QpNumber::new(0x1001)), "it is in RESET");
}

#[test]
fn only_what_sends_goes_to_sqe() {
    for &state in QpState::KNOWN {
        let number = QpNumber::new(0x1001);
        let word = AtomicU64::new(Identity::new(number, state, u32::MAX).0);
        fail_sends(&word, QpNumber::new(0x2001));
        assert_eq!(read(&word).state(), state, "another one is meant");
        fail_sends(&word, QpNumber::new(0x1001));
        let fails = matches!(state, QpState::RTS | QpState::SQD);
        assert_eq!(read(&word).state(), if fails { QpState::SQE } else { state });
    }
}

#[test]
fn a_late_change_does_not_hit_a_successor() {
    let word = AtomicU64::new(0);
    enter(&word, QpNumber::new(0x1001));
    let seen = read(&word);
    enter(&word, QpNumber::new(0x2001));
    assert!(!change(&word, seen, QpState::INIT));
    assert!(!vacate_if(&word, QpNumber::new(0x1001)));
    let next = Identity::new(QpNumber::new(0x2001), QpState::RESET, 2);
    assert_eq!(read(&word), next);
    assert!(vacate_if(&word, QpNumber::new(0x2001)));
    assert_eq!(read(&word), Identity::new(QpNumber::NONE, QpState::RESET, 3));
}

#[test]
fn each_change_begins_an_epoch_and_what_changes_nothing_does_not() {
    let (word, number, another) = (AtomicU64::new(0), QpNumber::new(0x1001), QpNumber::new(0x2001));
    let epoch = || read(&word).epoch();
    enter(&word, number);
    assert!(change(&word, read(&word), QpState::RTS));
    assert_eq!(epoch(), 2);
    changed(&word, number);
    assert_eq!((epoch(), read(&word).state()), (3, QpState::RTS));
    changed(&word, another);
    assert!(!fail(&word, another) && !vacate_if(&word, another));
    assert_eq!(epoch(), 3);
    fail_sends(&word, number);
    assert!(fail(&word, number) && !fail(&word, number));
    assert_eq!(epoch(), 5);
    vacate(&word);
    enter(&word, number);
    assert_eq!(epoch(), 7, "the same number in the same state is not what it was");
}
