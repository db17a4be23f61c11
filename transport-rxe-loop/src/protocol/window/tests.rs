use super::*;

#[test]
fn any_count_is_open_or_closed() {
    for start in [0, 1, 7, u64::MAX - 1, u64::MAX] {
        let copying = Copying(AtomicU64::new(start));
        let shut = Shut::after_change();
        assert_eq!(shut.is_open(&copying), start % 2 == 1);
        copying.open();
        assert!(shut.is_open(&copying));
        copying.close();
        assert!(!shut.is_open(&copying));
    }
}

#[test]
fn who_waits_goes_on_once_the_window_was_closed_though_it_is_open_again() {
    let copying = Copying::default();
    copying.open();
    let mut waited = 0;
    let closed = Shut::after_change().wait(&copying, || {
        waited += 1;
        if waited == 3 {
            copying.close();
            copying.open();
        }
        true
    });
    assert!(closed);
    assert_eq!(waited, 3);
}
