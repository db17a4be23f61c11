use std::collections::BTreeSet;

use rustix::io::read;

use super::*;
use crate::fabric::limits::Limits;
use crate::open::OpenOptions;
use crate::protocol::lock::Owner;

#[test]
fn every_source_has_a_number_of_its_own() {
    for index in [0, 1, 1023, INDEX] {
        for source in (0..KINDS).map(|kind| Source::Qp(index, kind)).chain([
            Source::Completion(index),
            Source::Overrun(index),
            Source::Srq(index),
        ]) {
            assert_eq!(Source::from_number(source.to_number()), source);
        }
    }
}

#[test]
fn all_sources_have_nodes_of_their_own() {
    let fabric = Fabric::of_tests();
    let nodes: BTreeSet<_> =
        Source::all(fabric).map(|source| std::ptr::from_ref(source.node(fabric))).collect();
    assert_eq!(nodes.len(), sources(fabric) as usize);
    assert_eq!(Source::all(fabric).count(), nodes.len());
}

#[test]
fn every_number_is_a_source() {
    for number in [1 << 31, u32::MAX, u32::MAX - 1] {
        let source = Source::from_number(number);
        assert_eq!(Source::from_number(source.to_number()), source);
    }
}

/// A place where nobody lives.
const PLACE: u16 = 39;

fn is_readable(bell: &Bell) -> bool {
    bell.block(&mut Some(Duration::ZERO)).unwrap()
}

#[test]
fn x03_the_list_of_a_dead_holder_is_made_anew_and_the_sleeper_woken() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, source) = (Bell::new(fabric).unwrap(), Source::Srq(5));
    bell.attach(source);
    assert!(bell.events().raise(source.to_number()));
    fabric.channel(bell.index).list.clear();
    assert!(fabric.channel(bell.index).lock.try_enter(Owner::new(PLACE, 1)));
    assert!(!is_readable(&bell));
    outwait(fabric, bell.index);
    assert!(is_readable(&bell));
    assert_eq!(fabric.channel(bell.index).lock.holder(), None);
    assert_eq!(bell.take(|source| source), Ok(Some(source)));
}

#[test]
fn x03_the_empty_list_of_a_dead_holder_wakes_nobody() {
    let (_context, fabric) = OpenOptions::new().alone();
    let bell = Bell::new(fabric).unwrap();
    assert!(fabric.channel(bell.index).lock.try_enter(Owner::new(PLACE, 1)));
    outwait(fabric, bell.index);
    assert_eq!(fabric.channel(bell.index).lock.holder(), None);
    assert!(!is_readable(&bell));
}

#[test]
fn x03_the_lock_of_a_dead_one_is_inherited_whatever_is_done_to_its_list() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, source) = (Bell::new(fabric).unwrap(), Source::Srq(5));
    let lock = &fabric.channel(bell.index).lock;
    let die = || assert!(lock.try_enter(Owner::new(PLACE, 1)));
    die();
    bell.attach(source);
    assert_eq!(lock.holder(), None, "it is attached");
    die();
    raise(fabric, source, || true);
    assert_eq!(lock.holder(), None, "it is raised");
    die();
    assert_eq!(bell.take(|source| source), Ok(Some(source)));
    assert_eq!(lock.holder(), None, "it is taken");
    die();
    bell.detach(source);
    assert_eq!(lock.holder(), None, "it is detached");
}

#[test]
fn x03_a_new_channel_has_nothing_of_a_dead_one() {
    let (_context, fabric) =
        OpenOptions::new().limits(Limits { channels: 2, ..Limits::default() }).alone();
    let index = (0..2).find(|&index| fabric.channel(index).life().place().is_none()).unwrap();
    let (lock, source) = (&fabric.channel(index).lock, Source::Srq(5).to_number());
    events(fabric, index).attach(source);
    assert!(events(fabric, index).raise(source));
    assert!(lock.try_enter(Owner::new(PLACE, 1)));
    let bell = Bell::new(fabric).unwrap();
    assert_eq!((bell.index, lock.holder()), (index, None));
    assert!(bell.events().is_empty());
    assert!(!is_readable(&bell));
    assert_eq!(bell.take(|source| source), Ok(None));
}

#[test]
fn nobody_keeps_the_descriptor_of_a_channel_that_has_ended() {
    let (_context, fabric) = OpenOptions::new().alone();
    let bell = Bell::new(fabric).unwrap();
    let fd = Arc::downgrade(&bell.fd);
    drop(bell);
    assert_eq!(fd.strong_count(), 0);
}

#[test]
fn n09_the_descriptor_is_written_for_the_first_of_several_events() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, source) = (Bell::new(fabric).unwrap(), Source::Srq(5));
    bell.attach(source);
    for _ in 0..3 {
        raise(fabric, source, || true);
    }
    assert_eq!(read(&bell.fd, &mut [0; 4]), Ok(1));
}

#[test]
fn x07_where_the_lock_can_not_be_had_the_sleeper_is_woken_and_nothing_added() {
    let (_context, fabric) = OpenOptions::new().alone();
    let bell = Bell::new(fabric).unwrap();
    add(fabric, bell.index, &Err(Stuck), || unreachable!("somebody else has the list"));
    assert!(is_readable(&bell));
}

#[test]
fn n09_the_owner_is_called_to_ring_what_can_not_be_opened() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, source) = (Bell::new(fabric).unwrap(), Source::Srq(5));
    bell.attach(source);
    // As a process finds it that has never rung this one, and may open no more.
    fabric.bells().forget(bell.index);
    remove(fabric, bell.index);
    let calls = &fabric.tables().processes[usize::from(fabric.place())].calls;
    let before = sync::load_u32(calls);
    raise(fabric, source, || true);
    assert!(!is_readable(&bell));
    assert_ne!(sync::load_u32(calls), before);
    let (_, generation) = fabric.channel(bell.index).life().holder().unwrap();
    fabric.bells().keep(bell.index, generation, Arc::clone(&bell.fd));
    ring_unheard(fabric);
    assert!(is_readable(&bell));
}

#[test]
fn n09_what_another_process_could_not_ring_is_rung_once() {
    let (_context, fabric) = OpenOptions::new().alone();
    let (bell, other) = (Bell::new(fabric).unwrap(), Bell::new(fabric).unwrap());
    sync::release(&fabric.channel(bell.index).unheard, 1);
    ring_unheard(fabric);
    assert!(is_readable(&bell) && !is_readable(&other));
    fifo::empty(&bell.fd);
    ring_unheard(fabric);
    assert!(!is_readable(&bell));
}

#[test]
fn a_channel_without_a_descriptor_takes_no_place() {
    let (_context, fabric) =
        OpenOptions::new().limits(Limits { channels: 2, ..Limits::default() }).alone();
    let index = (0..2).find(|&index| fabric.channel(index).life().place().is_none()).unwrap();
    // What is no FIFO, and can't be removed as one is.
    let path = fabric.path().bell(index);
    std::fs::create_dir(&path).unwrap();
    for _ in 0..2 {
        let refused = Bell::new(fabric).map(|_| ());
        assert!(matches!(refused, Err(CreateError::NoDescriptor { .. })), "{refused:?}");
    }
    std::fs::remove_dir(&path).unwrap();
    Bell::new(fabric).unwrap();
}
