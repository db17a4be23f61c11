use super::*;

#[test]
fn x03_a_lock_that_is_not_to_be_had_stays_whose_it_is() {
    let (lock, other, me) = (Lock::new(), AttachmentKey::new(1, 1), AttachmentKey::new(2, 1));
    assert!(lock.try_enter(other));
    assert!(Guard::try_take(&lock, me, |_| false).is_none());
    assert_eq!(lock.holder(), Some(other));
    drop(Guard::try_take(&lock, me, |holder| holder == other).expect("it is dead"));
    assert_eq!(lock.holder(), None);
}

#[test]
fn x03_a_lock_that_somebody_else_inherits_stays_that_ones() {
    let (lock, dead, heir) = (Lock::new(), AttachmentKey::new(1, 1), AttachmentKey::new(3, 1));
    assert!(lock.try_enter(dead));
    let is_late = |holder| lock.inherit(holder, heir);
    assert!(Guard::try_take(&lock, AttachmentKey::new(2, 1), is_late).is_none());
    assert_eq!(lock.holder(), Some(heir));
}

#[test]
fn x07_time_in_which_the_waiter_was_suspended_is_not_waited() {
    let mut patience = Patience::default();
    assert!(!patience.snooze_check_due());
    patience.last = patience.last.and_then(|last| last.checked_sub(2 * Patience::END));
    assert!(patience.snooze_check_due(), "it is time to look at the holder");
    assert!(!patience.is_over());
    for _ in 0..Patience::END.div_duration_f64(Patience::STEP) as u32 {
        patience.last = patience.last.and_then(|last| last.checked_sub(Patience::END));
        let _ = patience.snooze_check_due();
    }
    assert!(patience.is_over(), "it ends all the same");
}
