use super::*;
use crate::inside::prelude::*;

#[test]
fn x04_a_ring_leads_neither_out_of_the_arena_nor_past_its_requests() {
    let Device { shm, .. } = Fixture::new().device;
    let shape = RingLayout::of_sends(16, 1, 0);
    let (arena, size) = (shm.arena.offset(), shm.memory().len());
    let last = size - shape.bytes();
    for (at, inside) in [
        (arena, true),
        (last, true),
        (0, false),
        (arena - 8, false),
        (last + 8, false),
        (size, false),
    ] {
        assert_eq!(shape.ring(shm, at as u32).is_some(), inside, "{at}");
    }
    let ring = shape.ring(shm, arena as u32).unwrap();
    assert_eq!(format!("{ring:?}"), "Ring { requests: 16, .. }");
    for next in [0, u64::MAX - 3] {
        for (ahead, any) in [(0, false), (1, true), (16, true), (17, false), (u64::MAX, false)] {
            let [next, posted] = [next, next.wrapping_add(ahead)].map(Position::new);
            assert_eq!(ring.has_any(next, posted), any, "{next:?} {ahead}");
        }
    }
}
