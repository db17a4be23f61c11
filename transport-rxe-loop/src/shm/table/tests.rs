use super::*;
use crate::engine::identity::number;
use crate::inside::prelude::*;
use crate::protocol::life::{LAST_GENERATION, after};
use crate::protocol::number::RegionIndex;

#[test]
fn q10_the_key_of_what_was_there_last_is_not_that_of_the_next_one_when_generations_begin_anew() {
    let (context, device) = OpenOptions::new().alone();
    // As if each other entry had used all its generations.
    for (_, slot) in device.memory.mrs.all() {
        slot.life().set_last_generation();
    }
    let pd = context.alloc_pd().unwrap();
    let key = || {
        device.memory.mrs.go_on_at(RegionIndex::new(5));
        pd.allocate(8, cq_verbs::setup::Access::empty()).unwrap().lkey()
    };
    let keys = [(); 3].map(|()| key());
    assert_eq!(keys.map(|key| key >> 8), [5; 3]);
    assert!(keys[0] != keys[1] && keys[1] != keys[2], "{keys:#x?}");
}

#[test]
fn no_number_is_that_of_the_one_before_it_in_a_table_of_any_size() {
    for index_bits in 0..=16 {
        for generation in [0, 1, 2, LAST_GENERATION - 1, LAST_GENERATION] {
            for first in [0, 1, 0x12_3456, (1 << 24) - 1] {
                let number = |nth| number(0, index_bits, nth, first);
                let [this, next] = [generation, after(generation)].map(number);
                assert_ne!(this, next, "{index_bits} bits, after {generation}");
                assert!((1 << index_bits..1 << 24).contains(&this), "{this:#x}");
            }
        }
    }
}

#[test]
fn each_table_counts_what_is_claimed_of_it() {
    let (_context, device) = OpenOptions::new().alone();
    let (engine, completions) = (device.engine, device.completions);
    let counts = || {
        let next = [engine.qps.next, device.memory.mrs.next, completions.cqs.next];
        let rest = [engine.srqs.next, completions.channels.next];
        [next.map(sync::load).as_slice(), &rest.map(sync::load)].concat()
    };
    let mut expected = counts();
    let place = device.shm.attachment();
    let (index, _) = engine.qps.claim(place).unwrap();
    engine.qps.at(index).life().end(place);
    expected[0] += 1;
    assert_eq!(counts(), expected);
}
