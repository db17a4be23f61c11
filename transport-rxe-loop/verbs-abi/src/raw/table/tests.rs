//! Slots, by their addresses.

use std::ptr;

use super::*;

impl<T: Kind> Table<T> {
    /// How many slots hold something.
    pub fn used(&'static self) -> usize {
        let unused = self.0.get().unused.lock();
        unused.next as usize - unused.again.len()
    }
}

#[repr(C)]
struct Public {
    before: u64,
    seen: u64,
    handle: u32,
}

struct Object(u64);

impl Kind for Object {
    type Public = Public;
    type Face = u64;
    const FACE: usize = std::mem::offset_of!(Public, seen);
    const HANDLE: Option<usize> = Some(std::mem::offset_of!(Public, handle));
}

fn public(handle: u32) -> Public {
    Public { before: 1, seen: 2, handle }
}

#[test]
fn every_object_has_a_place_that_is_found_by_its_address() {
    static TABLE: Table<Object> = Table::new();
    let slots: Vec<_> = (0..1000).map(|n| TABLE.insert(Object(n), public).unwrap()).collect();
    for (n, slot) in slots.iter().enumerate() {
        let found = TABLE.find(slot.face()).unwrap();
        assert_eq!(found.with(|object| object.0), Ok(n as u64));
    }
}

#[test]
fn q11_what_is_not_an_object_is_told() {
    static TABLE: Table<Object> = Table::new();
    let face = TABLE.insert(Object(1), public).unwrap().face();
    let elsewhere = 0;
    let wrong = [&raw const elsewhere, face.wrapping_byte_add(1), face.wrapping_sub(1)];
    for pointer in wrong {
        assert_eq!(TABLE.find(pointer).err(), Some(Errno::NOENT));
    }
    assert_eq!(TABLE.find(ptr::null()).err(), Some(Errno::INVAL));
    // A slot that was never used has a handle of 0, which is another's.
    let unused = face.wrapping_byte_add(size_of::<Slot<Object>>());
    assert_eq!(TABLE.find(unused).err(), Some(Errno::NOENT));
    assert!(TABLE.find(face).is_ok());
}

#[test]
fn there_is_a_most_and_then_no_memory() {
    static TABLE: Table<Object> = Table::new();
    for n in 0..Table::<Object>::MAX {
        assert!(TABLE.insert(Object(n.into()), public).is_ok());
    }
    assert_eq!(TABLE.insert(Object(0), public).err(), Some(Errno::NOMEM));
}

#[test]
fn q11_what_is_destroyed_is_gone_and_its_place_is_used_again_later() {
    static TABLE: Table<Object> = Table::new();
    let face = TABLE.insert(Object(1), public).unwrap().face();
    assert_eq!(TABLE.destroy(face, |_| Ok(())), Ok(()));
    for n in 0..RESTING {
        let other = TABLE.insert(Object(n as u64), public).unwrap().face();
        assert_ne!(other, face);
        assert_eq!(TABLE.destroy(face, |_| Ok(())), Err(Errno::NOENT));
        assert_eq!(TABLE.destroy(other, |_| Ok(())), Ok(()));
    }
    assert_eq!(TABLE.insert(Object(2), public).unwrap().face(), face);
}

#[test]
fn the_last_place_is_used_again_at_once() {
    let mut unused = Unused { again: VecDeque::from([7]), next: 9 };
    assert_eq!([unused.take(10), unused.take(10), unused.take(10)], [Some(9), Some(7), None]);
}
