//! Words of the protocols that are not tested beside their module: their states, one after the other.

use crate::protocol::arena::Granules;
use crate::protocol::life::Life;
use crate::protocol::lock::AttachmentId;
use crate::protocol::mode::{CqFlag, Mode};
use crate::protocol::number::QpNumber;
use crate::protocol::sole::SoleProducer;
use crate::sync::AtomicU8;

#[test]
fn granules_are_taken_where_there_are_enough_of_them() {
    let owners = [const { AtomicU8::new(0) }; 4];
    let granules = Granules::new(&owners);
    assert_eq!((granules.take(0, 2, 7), granules.take(0, 3, 8)), (Some(0), None));
    granules.give_back(0, 2);
    assert_eq!(granules.take(0, 3, 8), Some(0));
}

#[test]
fn an_entry_is_freed_by_its_owner_alone() {
    let (life, [one, other]) = (Life::default(), [7, 8].map(AttachmentId::new));
    assert_eq!((life.claim(one), life.claim(other)), (Some(0), None));
    life.end(other);
    assert_eq!(life.holder(), Some((one, 0)));
    life.end(one);
    assert_eq!(life.claim(other), Some(1));
}

#[test]
fn flags_are_of_one_life_of_a_queue() {
    let mode = Mode::default();
    assert!(mode.is_ordinary() && !mode.is_all_in_ring(), "as a forked child finds it");
    mode.begin(false);
    assert!(mode.is_ordinary() && mode.is_all_in_ring());
    mode.set(CqFlag::Moderated, true);
    mode.set(CqFlag::GivenUp, true);
    mode.set(CqFlag::Moderated, false);
    assert!(mode.has(CqFlag::GivenUp) && !mode.has(CqFlag::Moderated) && !mode.is_all_in_ring());
    mode.begin(false);
    mode.set(CqFlag::KnownOpcodes, true);
    assert!(mode.is_ordinary() && mode.is_all_in_ring());
    mode.set(CqFlag::Counted, true);
    assert!(mode.is_ordinary() && !mode.is_all_in_ring());
}

#[test]
fn a_queue_has_one_sole_producer_until_it_is_shared() {
    let (sole, [one, other]) = (SoleProducer::default(), [7, 8].map(QpNumber::new));
    assert!(sole.claim(one) && sole.is(one) && !sole.is(other) && !sole.claim(other));
    assert_eq!((sole.share(), sole.is(one), sole.share()), (Some(one), false, None));
}
