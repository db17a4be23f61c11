use crate::inside::prelude::*;

#[test]
fn q12_the_memory_of_the_queue_is_the_new_one_s_and_the_old_one_s_is_free() {
    let (context, device) = OpenOptions::new().alone();
    let taken = || device.shm.arena().holders().count();
    let mut cq = context.create_cq(16, None).unwrap();
    let small = taken();
    cq.resize(1000).unwrap();
    let large = taken();
    assert!(large > small);
    cq.resize(16).unwrap();
    assert_eq!(taken(), small);
    cq.resize(1000).unwrap();
    assert_eq!(taken(), large);
    drop(cq);
    assert!(taken() < small);
}
