//! Tags that a raw queue keeps beside its completions, and how polling hands them out (P1, P2, O7).

use super::*;

#[test]
fn p01_what_is_pushed_while_handing_out_leaves_no_gap() {
    for before in [1, 33, 31, 32, 64, 65].into_iter().take(if cfg!(miri) { 2 } else { 6 }) {
        let parts = Parts::new(256);
        let (mut producer, mut consumer) = parts.sides(256 * before as Position);
        (0..before).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
        let (mut out, mut pushed, mut polled) = (vec![Wc::default(); 100], before, 0);
        while polled < 200 {
            let count = consumer.poll_with(&mut out, |_, _| {
                producer.push(&send(pushed)).unwrap();
                pushed += 1;
            });
            for wc in &out[..count.unwrap()] {
                assert_eq!(wc.wr_id(), polled, "{before} before");
                polled += 1;
            }
        }
    }
}

#[test]
fn o07_what_is_handed_out_can_be_replaced_at_once_in_a_full_queue() {
    for storage in [1, 2, 32, 64, 128].into_iter().take(if cfg!(miri) { 3 } else { 5 }) {
        let parts = Parts::tagged(storage);
        let (mut producer, mut consumer) = parts.sides(0);
        (0..storage as u64).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
        let (mut out, mut pushed) = (vec![Wc::default(); storage], storage as u64);
        for _ in 0..5 {
            let count = consumer.poll_with(&mut out, |_, _| {
                producer.push(&send(pushed)).expect("a completion gave its slot back");
                pushed += 1;
            });
            assert!(count.unwrap() > 0);
        }
    }
}

#[test]
fn p02_a_panic_while_handing_out_delivers_nothing_twice() {
    let parts = Parts::new(4);
    let (mut producer, mut consumer) = parts.sides(0);
    (0..3).for_each(|wr_id| producer.push(&send(wr_id)).unwrap());
    let mut out = [Wc::default(); 2];
    let poll = AssertUnwindSafe(|| consumer.poll_with(&mut out, |_, _| panic!("as it should")));
    assert!(catch_unwind(poll).is_err());
    assert_eq!(consumer.position(), 2);
    assert_eq!(drain(&mut consumer), Ok(vec![2]));
    assert_eq!(consumer.poll_into(&mut out), Ok(0));
    let mut next = parts.producer(Tail::at(3));
    let full = BatchError { stored: 4, why: PushError::Full };
    assert_eq!(next.push_batch(&[send(3); 5]), Err(full), "all was given back");
}
