use super::*;

#[test]
fn x03_a_lock_that_is_not_to_be_had_or_that_another_one_inherits_stays_whose_it_is() {
    let (lock, [me, other, heir]) =
        (Lock::default(), [1, 2, 3].map(|it| AttachmentKey::new(it, 1)));
    assert!(lock.try_enter(other));
    assert!(Guard::try_take(&lock, me, |_| false).is_none());
    assert_eq!(lock.holder(), Some(other));
    assert!(Guard::try_take(&lock, me, |holder| lock.inherit(holder, heir)).is_none());
    assert_eq!(lock.holder(), Some(heir));
    drop(Guard::try_take(&lock, me, |holder| holder == heir).expect("it is dead"));
    assert_eq!(lock.holder(), None);
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
