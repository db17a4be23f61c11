use super::*;
use crate::inside::prelude::*;

#[test]
fn no_ring_leads_out_of_the_arena() {
    let device = Device::of_tests();
    let shape = RingLayout::of_sends(16, 1, 0);
    let (arena, size) = (device.shm.arena().offset(), device.shm.memory().len());
    let last = size - shape.bytes();
    for inside in [arena, last] {
        assert!(shape.ring(device.shm, inside as u32).is_some());
    }
    for outside in [0, arena - 8, last + 8, size] {
        assert!(shape.ring(device.shm, outside as u32).is_none());
    }
}

#[test]
fn a_ring_says_how_many_requests_it_holds() {
    let device = Device::of_tests();
    let shape = RingLayout::of_sends(16, 1, 0);
    let ring = shape.ring(device.shm, device.shm.arena().offset() as u32).unwrap();
    assert_eq!(format!("{ring:?}"), "Ring { requests: 16, .. }");
}

#[test]
fn x04_positions_that_can_not_be_have_nothing_wait() {
    let device = Device::of_tests();
    let shape = RingLayout::of_sends(16, 1, 0);
    let ring = shape.ring(device.shm, device.shm.arena().offset() as u32).unwrap();
    for next in [0, u64::MAX - 3] {
        for (ahead, any) in [(0, false), (1, true), (16, true), (17, false), (u64::MAX, false)] {
            assert_eq!(
                ring.has_any(Position::new(next), Position::new(next.wrapping_add(ahead))),
                any,
                "{next} {ahead}"
            );
        }
    }
}
