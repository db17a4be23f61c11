use super::*;

const CAPACITY: u32 = 2;

fn at(position: u64) -> Receives {
    let receives = Receives::default();
    sync::store(&receives.posted.position, position);
    sync::store(&receives.completed.0, position);
    receives
}

/// As a thread that posts judges it.
fn has_free_slot(receives: &Receives) -> bool {
    receives.posted().since(receives.completed_acquire()) < CAPACITY.into()
}

#[test]
fn q05_a_queue_is_full_until_its_oldest_receive_completes() {
    for start in [0, (1 << 31) - 2, (1 << 32) - 1, u64::MAX - 1] {
        let receives = at(start);
        assert!(!receives.post(Position::new(start.wrapping_add(2))));
        assert!(!has_free_slot(&receives));
        assert_eq!(receives.left(CAPACITY).count(), 2);
        receives.settle(tag::of_recv(Position::new(start.wrapping_add(1))), CAPACITY);
        receives.settle(tag::of_recv(Position::new(start.wrapping_add(1))), CAPACITY);
        assert_eq!(receives.completed(), Position::new(start.wrapping_add(1)));
        assert!(has_free_slot(&receives));
        assert!(receives.left(CAPACITY).eq([Position::new(start.wrapping_add(1))]));
    }
}

#[test]
fn an_emptied_queue_has_nothing_whatever_its_taker_knew() {
    let (receives, mut cached_posted) = (at(0), Position::default());
    assert!(!receives.post(Position::new(2)));
    assert!(receives.has(Position::new(0), &mut cached_posted, CAPACITY));
    receives.empty();
    assert_eq!(receives.left(CAPACITY).count(), 0);
    assert!(!receives.has_or_starve(receives.completed(), &mut cached_posted, CAPACITY));
    assert!(receives.post(Position::new(3)), "the peer is starved");
    assert!(!receives.post(Position::new(4)), "it is told once");
}

#[test]
fn positions_that_cannot_be_lead_nowhere() {
    let (receives, mut cached_posted) = (at(0), Position::default());
    for posted in [3, 1 << 40, u64::MAX] {
        sync::store(&receives.posted.position, posted);
        assert!(!receives.has(Position::new(0), &mut cached_posted, CAPACITY));
        assert_eq!(receives.left(CAPACITY).count(), 0);
        assert!(!has_free_slot(&receives));
    }
    for strange in [0, 3, u32::MAX >> 1, u32::MAX] {
        receives.settle(strange, CAPACITY);
        assert_eq!(receives.completed(), Position::new(0));
    }
}
