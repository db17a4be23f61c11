//! A spin that lasts.

use super::*;

#[test]
fn a_spin_counts_no_further_than_to_the_next_look_at_the_clock() {
    let limit = Duration::from_secs(1 << 20);
    let mut spin = Spin { limit, deadline: None, start: None, rounds: 0 };
    let looks = (0..160).filter(|_| {
        spin.start = None;
        assert!(spin.goes_on());
        assert!(spin.rounds < 16);
        spin.start.is_some()
    });
    assert_eq!(looks.count(), 10);
}
