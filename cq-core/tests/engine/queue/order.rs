//! Wrap-around, kept tails, and harmlessness of foreign words and bytes (P1, P2, X4).

use super::*;

fn wc(number: u64) -> Wc {
    Wc::new(number, WcStatus(number as u32), !number as u32).with_path(1, 2, 3, number as u8)
}

#[test]
#[cfg_attr(miri, ignore = "196,608 rounds take Miri an hour")]
fn every_generation_is_passed_without_a_false_entry() {
    macro_rules! passes {
        ($sides:expr) => {
            match ($sides, [Wc::default(); 2]) {
                ((mut producer, mut consumer), mut out) => {
                    for number in 0..3 << 16 {
                        assert_eq!(
                            consumer.poll_into(&mut out),
                            Ok(0),
                            "a false entry before {number}"
                        );
                        producer.push(&wc(number)).unwrap();
                        assert_eq!(consumer.poll_into(&mut out), Ok(1));
                        assert_eq!(out[0], wc(number));
                    }
                }
            }
        };
    }
    passes!(SoftCq::<1>::new().split());
    passes!(Parts::new(1).sides(0));
}

#[test]
fn a_tail_is_kept_in_two_words() {
    let parts = Parts::new(4);
    let (mut producer, mut consumer) = parts.sides(7);
    assert_eq!(producer.tail(), Tail::at(7));
    (0..4).for_each(|number| producer.push(&send(number)).unwrap());
    assert_eq!(producer.tail().to_words(), [11, 11], "position, and up to where there is room");
    consumer.poll_into(&mut [Wc::default(); 2]).unwrap();
    producer.push(&send(4)).unwrap();
    assert_eq!(producer.tail().to_words(), [12, 13], "the room was looked at once, for both");
    assert_eq!(Tail::from_words([3, 5]).to_words(), [3, 5]);
    assert_eq!(Tail::at(3).to_words(), [3, 3]);
}

#[test]
fn x04_foreign_tails_do_no_harm() {
    let parts = Parts::new(8);
    for words in [[0; 2], [Position::MAX; 2], [5, 1 << 31], [1 << 20, 3], [7, 14], [7, 15], [7, 16]]
    {
        let mut producer = parts.producer(Tail::from_words(words));
        let stored = (0..20).take_while(|number| producer.push(&wc(*number)).is_ok()).count();
        assert!(stored <= 16, "what the words claim, and what is looked at then");
        assert_eq!(producer.tail().position(), words[0].wrapping_add(stored as Position));
    }
}

#[test]
fn x04_a_foreign_head_makes_the_ring_look_full_and_overwrites_nothing() {
    for distance in [5, 1 << 20, 1 << 31] {
        let parts = Parts::new(4);
        let mut producer = parts.producer(Tail::at(0));
        (0..4).for_each(|number| producer.push(&send(number)).unwrap());
        // Stores a head that nobody would write.
        let _foreign = parts.consumer((4 as Position).wrapping_sub(distance));
        assert_eq!(producer.push(&send(4)), Err(PushError::Full));
        assert_eq!(
            (producer.len(), producer.available(), producer.measure_high_water()),
            (4, 0, 4)
        );
        assert_eq!(drain(&mut parts.consumer(0)), Ok(vec![0, 1, 2, 3]));
    }
}

#[test]
fn p01_the_slot_of_a_position_is_where_its_completion_is() {
    let parts = Parts::new(4);
    for position in [0, 1, 3, 4, 7, Position::MAX] {
        let slot = &parts.slots[position as usize % 4];
        assert!(std::ptr::eq(parts.queue().slot(position), slot), "{position}");
    }
}
