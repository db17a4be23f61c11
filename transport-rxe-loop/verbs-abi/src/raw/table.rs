//! Where the C structures of objects live, each with the Rust object behind it.
//!
//! A slot stays where it is for the rest of the process, and is used again, but not soon. So whatever pointer a
//! program hands in, it is judged by its address before anything is read through it; and one that was destroyed is
//! found to be so (Q11), as long as nothing new is in its place.
//!
//! ```text
//!   pointer --find--> slot --with--> object      EINVAL: null
//!                                                ENOENT: no such slot, another handle or context, empty
//!                                                ENODEV: no such slot, in a forked child
//! ```

use std::cell::UnsafeCell;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use cq_verbs::async_event::Element;
use rustix_futex_sync::Mutex;

use super::child::{self, Alone, Renewed};
use crate::errno::Errno;
use crate::side::Side;
use crate::sys::*;

/// Slots of the first chunk; each further chunk has twice as many.
const FIRST: usize = 64;
/// How many slots rest before one is used again: who destroys an object twice, or late, destroys no other's.
const RESTING: usize = 64;
/// How many chunks there can be.
const CHUNKS: usize = 11;

/// A kind of object.
pub trait Kind: Send + Sized + 'static {
    /// The C structure, with what lies around what programs see of it.
    type Public;
    /// What programs have a pointer to: a part of that. It begins with a pointer to what it belongs to: an object
    /// to its context, a context to its device.
    type Face;
    /// Where in [`Public`](Self::Public) it begins.
    const FACE: usize = 0;
    /// Where in [`Public`](Self::Public) its handle is, an `u32`, if it has one.
    const HANDLE: Option<usize>;
    /// Whether that pointer stays what it was given: that of an identifier of connections becomes its context later.
    const STAYS: bool = true;

    /// What events name this one by, if they do.
    fn key(&self) -> Option<Key> {
        None
    }
}

/// How events name an object: the number of the opening that it was made through, and its element, whose numbers are unique
/// in one fabric only.
pub type Key = (u64, Element);

/// A type of which every bit pattern is a valid value, and which owns nothing.
///
/// # Safety
/// Both hold for the type.
pub unsafe trait Plain: Copy {}

/// Declares such types.
macro_rules! plain {
    ($(unsafe $type:ty),+) => {
        $(
            // SAFETY: said where the type is listed.
            unsafe impl Plain for $type {}
        )+
    };
}

// SAFETY: integers, and structures of integers, in which flags keep unknown bits: every bit pattern is valid.
plain! {
    unsafe u8, unsafe u16, unsafe [u64; 2], unsafe u32, unsafe u64, unsafe c_int, unsafe usize,
    unsafe ibv_wc, unsafe ibv_wc_status, unsafe ibv_wc_opcode
}

// SAFETY: a raw pointer: every bit pattern is valid.
unsafe impl<T> Plain for *mut T {}

/// The place of an object.
pub struct Slot<T: Kind> {
    /// C's to read and write; zeroed until it is first used.
    public: UnsafeCell<MaybeUninit<T::Public>>,
    side: Side,
    object: Mutex<Option<T>>,
    index: u32,
    /// Where what it belongs to is; written before C gets a pointer to it.
    owner: AtomicUsize,
}

// SAFETY: `public` is only handed out as a pointer; what is read and written through it is raw memory that C
// shares with us. Everything else is `Sync` by itself.
unsafe impl<T: Kind> Sync for Slot<T> {}
// SAFETY: as above: no part of it belongs to a thread.
unsafe impl<T: Kind> Send for Slot<T> {}

/// All objects of a kind that this process has made; a forked child begins with none, whatever locks other
/// threads of its parent held.
pub struct Table<T: Kind>(Renewed<Places<T>>);

/// Where they are.
struct Places<T: Kind> {
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    unused: Mutex<Unused>,
    /// Those that events name. Locked while an event is counted for an object, and while an object that goes is taken out:
    /// no event is counted that its `destroy` does not wait for (N7).
    by_key: Mutex<HashMap<Key, &'static Slot<T>, BuildHasherDefault<DefaultHasher>>>,
}

/// Which slots hold nothing.
struct Unused {
    /// Those that were used before, longest ago first.
    again: VecDeque<u32>,
    /// The first that never was.
    next: u32,
}

impl Unused {
    /// Takes one of `max`.
    fn take(&mut self, max: u32) -> Option<u32> {
        if self.again.len() > RESTING || self.next == max {
            return self.again.pop_front();
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

impl<T: Kind> Places<T> {
    const fn none() -> Self {
        let unused = Unused { again: VecDeque::new(), next: 0 };
        let by_key = Mutex::new(HashMap::with_hasher(BuildHasherDefault::new()));
        Self { chunks: [const { OnceLock::new() }; CHUNKS], unused: Mutex::new(unused), by_key }
    }
}

impl<T: Kind> Table<T> {
    /// How many there can be at a time.
    pub const MAX: u32 = (FIRST * ((1 << CHUNKS) - 1)) as u32;

    /// An empty one.
    pub const fn new() -> Self {
        Self(Renewed::new(Places::none()))
    }

    /// Forgets all objects, which stay in memory, and whatever locks they had.
    pub fn forget_all(&'static self, alone: &Alone) {
        self.0.renew(alone, Places::none());
    }

    /// Gives an object a place. What C sees of it is made with the handle that it gets.
    ///
    /// # Errors
    /// ENOMEM: every index is taken.
    pub fn insert(
        &'static self,
        object: T,
        public: impl FnOnce(u32) -> T::Public,
    ) -> Result<&'static Slot<T>, Errno> {
        #[cfg(test)]
        crate::test::fault::pass()?;
        let places = self.0.get();
        let index = places.unused.lock().take(Self::MAX).ok_or(Errno::NOMEM)?;
        let (chunk, at) = chunk_of(index);
        let slots = places.chunks[chunk].get_or_init(|| chunk_at(chunk));
        let slot = slots.get(at).ok_or(Errno::NOMEM)?;
        // SAFETY: the index is this call's alone, so nobody else writes here. Through a pointer to an object that was there
        // before, `find` may read the handle and the owner meanwhile: volatile, as this is, and it only compares them.
        unsafe { slot.public().write_volatile(public(index)) };
        // Relaxed: a thread that has the new pointer got it after this; one with an old pointer finds no object yet.
        slot.owner.store(slot.claimed_owner(), Ordering::Relaxed);
        let key = object.key();
        *slot.object.lock() = Some(object);
        if let Some(key) = key {
            places.by_key.lock().insert(key, slot);
        }
        Ok(slot)
    }

    /// The object that an event names, once `take` has counted that; `None` if it has gone.
    pub fn event(&'static self, key: &Key, take: impl FnOnce(&Side)) -> Option<&'static Slot<T>> {
        let by_key = self.0.get().by_key.lock();
        let slot = *by_key.get(key)?;
        take(slot.side());
        Some(slot)
    }

    /// The slot behind a pointer that C hands in, which may be anything.
    ///
    /// # Errors
    /// EINVAL: it is null. ENOENT: there is no slot, or its handle or context is not what it was given. ENODEV:
    /// there is no slot, and this is a forked child, whose parent may have it.
    #[inline]
    pub fn find(&'static self, face: *const T::Face) -> Result<&'static Slot<T>, Errno> {
        let slot = self.named(face)?;
        let is_as_given = slot.handle() == slot.index
            && slot.claimed_owner() == slot.owner.load(Ordering::Relaxed);
        if is_as_given { Ok(slot) } else { Err(Errno::NOENT) }
    }

    /// The slot behind a pointer in a request, by its address alone: what C wrote there is not judged, as no
    /// device looks at it.
    ///
    /// # Errors
    /// EINVAL: it is null. ENOENT, ENODEV: there is no slot, as for [`find`](Self::find).
    #[inline]
    pub fn named(&'static self, face: *const T::Face) -> Result<&'static Slot<T>, Errno> {
        let slot = self.at(face.addr().wrapping_sub(T::FACE));
        slot.ok_or_else(|| if face.is_null() { Errno::INVAL } else { child::nothing_there() })
    }

    /// The slot whose public part begins at this address.
    #[inline]
    fn at(&'static self, address: usize) -> Option<&'static Slot<T>> {
        // Most programs never have more.
        let first = self.0.get().chunks[0].get().and_then(|slots| slot_at(slots, address));
        first.or_else(|| self.at_in_others(address))
    }

    #[inline(never)]
    fn at_in_others(&'static self, address: usize) -> Option<&'static Slot<T>> {
        // The first of a chunk may come before the last of the one before.
        let others = self.0.get().chunks[1..].iter().filter_map(OnceLock::get);
        others.filter_map(|slots| slot_at(slots, address)).next()
    }

    /// [Finds](Self::find) an object and ends it, unless `end` hands it back; then waits until its events are
    /// acknowledged, and gives its place back.
    ///
    /// # Errors
    /// As for `find`. ENOENT: there is none any more. Why `end` handed it back.
    pub fn destroy(
        &'static self,
        face: *const T::Face,
        end: impl FnOnce(T) -> Result<(), (T, Errno)>,
    ) -> Result<(), Errno> {
        let slot = self.find(face)?;
        let mut place = slot.object.lock();
        let object = place.take().ok_or(Errno::NOENT)?;
        let key = object.key();
        if let Err((object, why)) = end(object) {
            *place = Some(object);
            return Err(why);
        }
        drop(place);
        self.give_back(slot, key);
        Ok(())
    }

    /// [Destroys](Self::destroy) an object that can always go: it is dropped, without its lock, since that may wait for
    /// copies of other processes.
    ///
    /// # Errors
    /// As for `find`. ENOENT: there is none any more.
    pub fn remove(&'static self, face: *const T::Face) -> Result<(), Errno> {
        let slot = self.find(face)?;
        let object = slot.object.lock().take().ok_or(Errno::NOENT)?;
        let key = object.key();
        drop(object);
        self.give_back(slot, key);
        Ok(())
    }

    /// Waits until the events of an object that has ended are acknowledged, and gives its place back.
    fn give_back(&'static self, slot: &'static Slot<T>, key: Option<Key>) {
        let places = self.0.get();
        if let Some(key) = key {
            places.by_key.lock().remove(&key);
        }
        slot.side().end();
        places.unused.lock().again.push_back(slot.index);
    }
}

impl<T: Kind> Slot<T> {
    fn new(index: u32) -> Self {
        Self {
            public: UnsafeCell::new(MaybeUninit::zeroed()),
            side: Side::default(),
            object: Mutex::new(None),
            index,
            owner: AtomicUsize::new(0),
        }
    }

    /// The C structure with what is around it. It is never freed; C may write it at any time.
    #[inline]
    pub const fn public(&self) -> *mut T::Public {
        self.public.get().cast()
    }

    /// What C has a pointer to.
    #[inline]
    pub const fn face(&self) -> *mut T::Face {
        self.public().wrapping_byte_add(T::FACE).cast()
    }

    /// The address of a field of the C structure, at this offset: inside of it, and aligned.
    #[inline]
    fn field<V>(&self, offset: usize) -> *mut V {
        const { assert!(align_of::<V>() <= align_of::<T::Public>()) };
        assert!(
            offset + size_of::<V>() <= size_of::<T::Public>()
                && offset.is_multiple_of(align_of::<V>())
        );
        self.public().wrapping_byte_add(offset).cast()
    }

    /// Reads a field of the C structure, at this offset. C may have written any value there.
    #[inline]
    pub fn load<V: Plain>(&self, offset: usize) -> V {
        // SAFETY: a field of the public part, which is initialized (zeroed at least) and never freed; every value of a
        // `Plain` type is valid. Volatile, because C may write it meanwhile.
        unsafe { self.field::<V>(offset).read_volatile() }
    }

    /// Writes a field of the C structure, at this offset.
    #[inline]
    pub fn store<V: Plain>(&self, offset: usize, value: V) {
        // SAFETY: as above; no code here relies on the field's value.
        unsafe { self.field::<V>(offset).write_volatile(value) };
    }

    /// Adds to a number in the C structure, at this offset.
    pub fn change(&self, offset: usize, by: c_int) {
        // SAFETY: as above.
        let number = unsafe { AtomicI32::from_ptr(self.field(offset)) };
        // Relaxed: a count that C reads, which orders nothing.
        number.fetch_add(by, Ordering::Relaxed);
    }

    /// What is not behind the lock, and stays after the object's end.
    #[inline]
    pub const fn side(&self) -> &Side {
        &self.side
    }

    /// What C's structure says that the handle is.
    #[inline]
    fn handle(&self) -> u32 {
        T::HANDLE.map_or(self.index, |at| self.load(at))
    }

    /// What C's structure says that it belongs to.
    #[inline]
    fn claimed_owner(&self) -> usize {
        // What programs see begins with a pointer.
        if T::STAYS { self.load(T::FACE) } else { 0 }
    }

    /// Works with the object, alone.
    ///
    /// # Errors
    /// ENOENT: there is none any more.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Result<R, Errno> {
        self.object.lock().as_mut().map(work).ok_or(Errno::NOENT)
    }
}

/// The slot of a chunk whose public part begins at this address.
#[inline]
fn slot_at<T: Kind>(slots: &'static [Slot<T>], address: usize) -> Option<&'static Slot<T>> {
    let first = slots.as_ptr().addr() + std::mem::offset_of!(Slot<T>, public);
    let from_first = address.wrapping_sub(first);
    let is_one = from_first.is_multiple_of(size_of::<Slot<T>>());
    slots.get(from_first / size_of::<Slot<T>>()).filter(|_| is_one)
}

/// Which chunk an index is in, and where there.
const fn chunk_of(index: u32) -> (usize, usize) {
    let chunk = (index as usize / FIRST + 1).ilog2() as usize;
    (chunk, index as usize - FIRST * ((1 << chunk) - 1))
}

fn chunk_at<T: Kind>(chunk: usize) -> Box<[Slot<T>]> {
    let first = FIRST * ((1 << chunk) - 1);
    (first..first + (FIRST << chunk)).map(|index| Slot::new(index as u32)).collect()
}

#[cfg(test)]
mod tests;
