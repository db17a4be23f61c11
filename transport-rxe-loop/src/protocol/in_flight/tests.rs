use super::*;

#[test]
fn any_count_is_open_or_closed_and_who_waits_goes_on_once_it_has_changed() {
    for start in [0, 1, 7, u64::MAX - 1, u64::MAX] {
        let in_flight = InFlight(AtomicU64::new(start));
        let fence = ChangeFence::after_change();
        assert_eq!(fence.is_open(&in_flight), start % 2 == 1);
        in_flight.open();
        assert!(fence.is_open(&in_flight));
        let mut waited = 0;
        assert!(fence.wait(&in_flight, || {
            waited += 1;
            if waited == 3 {
                in_flight.close();
                in_flight.open();
            }
            true
        }));
        assert_eq!(waited, 3);
        in_flight.close();
        assert!(!fence.is_open(&in_flight));
    }
}

#[test]
fn x04_markers_that_another_process_has_set_are_cleared_by_an_owner_that_copies_nothing() {
    let markers = SharedMarkers::default();
    let are_open = || markers.are_open(&ChangeFence::after_change());
    for (one, other) in [(&markers.poster, &markers.owner), (&markers.owner, &markers.poster)] {
        one.open_first();
        assert!(are_open() && one.is_open() && !other.is_open());
        assert!(!markers.wait(&ChangeFence::after_change(), || false));
        markers.correct();
        assert!(!are_open() && !one.is_open());
        markers.correct();
        assert!(markers.wait(&ChangeFence::after_change(), || false));
    }
}
