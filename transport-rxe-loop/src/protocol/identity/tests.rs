use super::*;

#[test]
fn what_no_state_is_counts_as_failed() {
    let word = AtomicU32::new(0x1001 << STATE_BITS | 0x77);
    assert_eq!(read(&word), Identity { number: QpNumber::new(0x1001), state: QpState::Err });
    assert!(!fail(&word, QpNumber::new(0x1001)), "it has failed already");
    assert!(change(&word, read(&word), QpState::Err), "nobody waits for it to be a state");
    assert_eq!(word.into_inner(), 0x1001 << STATE_BITS | QpState::Err as u32);
    let word = AtomicU32::new(0);
    enter(&word, QpNumber::new(0x1001));
    assert!(!fail(&word, QpNumber::new(0x1001)), "it is in RESET");
}

#[test]
fn only_what_sends_goes_to_sqe() {
    for state in QpState::ALL {
        let word = AtomicU32::new(Identity { number: QpNumber::new(0x1001), state }.to_word());
        fail_sends(&word, QpNumber::new(0x2001));
        assert_eq!(read(&word).state, state, "another one is meant");
        fail_sends(&word, QpNumber::new(0x1001));
        let fails = matches!(state, QpState::Rts | QpState::Sqd);
        assert_eq!(read(&word).state, if fails { QpState::Sqe } else { state });
    }
}

#[test]
fn a_late_change_does_not_hit_a_successor() {
    let word = AtomicU32::new(0);
    enter(&word, QpNumber::new(0x1001));
    let seen = read(&word);
    enter(&word, QpNumber::new(0x2001));
    assert!(!change(&word, seen, QpState::Init));
    assert!(!vacate_if(&word, QpNumber::new(0x1001)));
    assert_eq!(read(&word), Identity { number: QpNumber::new(0x2001), state: QpState::Reset });
    assert!(vacate_if(&word, QpNumber::new(0x2001)));
    assert_eq!(word.into_inner(), 0);
}
