use crate::inside::prelude::*;

#[test]
fn q12_the_memory_of_the_queue_is_the_new_one_s_and_the_old_one_s_is_free() {
    let Fixture { device, mut cq, .. } = Fixture::new();
    let taken = || device.shm.arena.holders().count();
    let mut resized = |capacity| {
        cq.resize(capacity).unwrap();
        taken()
    };
    let [small, large, small_again, large_again] = [16, 1000, 16, 1000].map(&mut resized);
    assert!(large > small);
    assert_eq!((small_again, large_again), (small, large));
    drop(cq);
    assert!(taken() < small);
}
