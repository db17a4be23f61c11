//! Position arithmetic at every wrap, for rings of 1 to 2¹⁶ slots: where an entry is, when it counts as published, how many
//! slots are free, when they are released (P1, O1, S1). Judged in integers that do not wrap.

use super::*;

/// A ring, and a place before one of its wraps.
#[derive(Clone, Copy, Debug)]
struct Shape {
    storage: u32,
    promised: u32,
    is_exact: bool,
    start: Position,
}

impl Shape {
    fn parts(&self) -> Parts {
        let parts = Parts::promising(self.promised, self.storage as usize);
        Parts { is_exact: self.is_exact, ..parts }
    }

    /// How many unreleased entries fill it.
    fn limit(&self) -> u64 {
        (if self.is_exact { self.promised } else { self.storage }).into()
    }

    /// How many polled entries may stay unreleased: what is not promised, up to a quarter.
    fn lag(&self) -> u64 {
        let quarter = if size_of::<Position>() < 8 { 0 } else { self.limit() / 4 };
        (self.limit() - u64::from(self.promised)).min(quarter)
    }

    /// The position so many entries after the start.
    fn at(&self, entries: u64) -> Position {
        (u128::from(self.start) + u128::from(entries)) as Position
    }
}

/// A little before the wrap of an index, of a generation, or of a word that holds a position or a part of it.
fn shapes() -> impl Strategy<Value = Shape> {
    let size = (0_u32..=if cfg!(miri) { 6 } else { 16 }).prop_map(|log2| 1_u32 << log2);
    let size = size.prop_flat_map(|storage| (Just(storage), 1..=storage, 0..=2 * storage));
    (size, any::<bool>(), 0_usize..8).prop_map(|((storage, promised, before), is_exact, wrap)| {
        let round = u128::from(storage);
        let wraps = [round, round << 15, round << 16, 1 << 16, 1 << 31, 1 << 32, 1 << 63, 1 << 64];
        let start = wraps[wrap].wrapping_sub(before.into()) as Position;
        Shape { storage, promised, is_exact, start }
    })
}

/// In how many rounds more a position is looked at: at most those of all generations, twice.
fn rounds() -> impl Strategy<Value = u64> {
    let one_bit = (0_u32..17).prop_map(|bit| 1_u64 << bit);
    prop_oneof![one_bit, (1 << 15) - 2..(1 << 15) + 3_u64, 1..(1 << 16) + 1_u64]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s01_what_is_free_is_known_at_every_wrap(shape in shapes(), part in 0.0..=1.0_f64) {
        let (parts, limit) = (shape.parts(), shape.limit());
        let unpolled = (part * limit as f64) as u64;
        let _consumer = parts.consumer(shape.start);
        let mut producer = parts.producer(Tail::at(shape.at(unpolled)));
        prop_assert_eq!(producer.available() as u64, limit - unpolled);
        prop_assert_eq!(producer.push(&send(0)).is_ok(), unpolled < limit);
        let stored = u64::from(unpolled < limit);
        prop_assert_eq!(producer.tail().position(), shape.at(unpolled + stored));
    }

    /// As another process may have left them.
    #[test]
    fn x04_a_tail_that_knows_of_more_than_there_is_knows_of_nothing(
        shape in shapes(), claimed in prop_oneof![0..3_u64, 0..1_u64 << 18, any::<u64>()],
    ) {
        let (parts, claimed) = (shape.parts(), claimed as Position);
        let tail = Tail::from_words([shape.start, shape.start.wrapping_add(claimed)]);
        let stored = parts.queue().store_at(tail, &send(0)).is_some();
        prop_assert_eq!(stored, (1..=Position::from(shape.storage)).contains(&claimed));
    }

    #[test]
    fn p01_an_entry_is_published_for_one_round_of_all_generations(
        shape in shapes(), entry in any::<u32>(), rounds in rounds(),
    ) {
        let (parts, entry) = (shape.parts(), u64::from(entry % shape.storage));
        let position = shape.at(entry);
        let tail = Tail::from_words([position, position.wrapping_add(1)]);
        prop_assert!(parts.queue().store_at(tail, &send(7)).is_some());
        let index = (u128::from(shape.start) + u128::from(entry)) % u128::from(shape.storage);
        let is_there = std::ptr::eq(parts.queue().slot(position), &parts.slots[index as usize]);
        prop_assert!(is_there, "slot {index}");
        let found = |position| parts.consumer(position).poll_into(&mut [Wc::default()]);
        prop_assert_eq!(found(position), Ok(1));
        if shape.storage > 1 {
            prop_assert_eq!(found(position.wrapping_add(1)), Ok(0), "never written");
        }
        let away = rounds.wrapping_mul(shape.storage.into()) as Position;
        for other in [position.wrapping_add(away), position.wrapping_sub(away)] {
            prop_assert_eq!(found(other), Ok(usize::from(rounds % (1 << 15) == 0)));
        }
    }

    #[test]
    fn p01_o01_entries_come_in_order_and_slots_are_released_in_time(
        shape in shapes(), steps in prop::collection::vec((0.0..=1.2_f64, 0.0..=1.0_f64), 1..6),
    ) {
        let (parts, limit) = (shape.parts(), shape.limit());
        let (mut producer, mut consumer) = parts.sides(shape.start);
        let mut out = vec![Wc::default(); shape.storage as usize];
        let (mut pushed, mut polled, mut released) = (0, 0, 0);
        for (pushes, polls) in steps {
            for _ in 0..(pushes * limit as f64) as u64 {
                let has_space = pushed - released < limit;
                prop_assert_eq!(producer.push(&send(pushed)).is_ok(), has_space);
                pushed += u64::from(has_space);
            }
            let most = (polls * f64::from(shape.storage)) as usize;
            let count = consumer.poll_into(&mut out[..most]).unwrap() as u64;
            prop_assert_eq!(count, (pushed - polled).min(most as u64));
            let polled_now = out.iter().map(Wc::wr_id).take(count as usize);
            prop_assert!(polled_now.eq(polled..polled + count));
            polled += count;
            if polled - released > shape.lag() {
                released = polled;
            }
            prop_assert_eq!(parts.control.released(), shape.at(released));
        }
        prop_assert_eq!(producer.tail().position(), shape.at(pushed));
        prop_assert_eq!(consumer.position(), shape.at(polled));
    }
}
