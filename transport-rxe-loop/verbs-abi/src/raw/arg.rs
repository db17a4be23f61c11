//! What C hands in and wants back by pointer: null is EINVAL.
//!
//! A pointer is one of these types from the moment that it comes in, by [`Argument::of_c`]. Whoever calls that has C's word:
//! each pointer is null, or to what the function's manual page says; nobody changes that during the call, and it may be
//! written where that page says so. All methods rely on it, and what they return refers to what C has.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::{iter, slice};

use cq_core::setup::{Access, RegisterError};
use heapless::Vec;
use transport_rxe_loop::{MemoryRegion, ProtectionDomain};

use crate::errno::Errno;
use crate::sys::{ibv_data_buf, ibv_grh, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_wc, ibv_wc_fields};

/// Inline bytes that any queue pair takes at most.
pub const MAX_INLINE: usize = 256;

/// An argument of a function that C calls.
pub trait Argument<Raw> {
    /// What C hands over.
    ///
    /// # Safety
    /// C's word, as above.
    unsafe fn of_c(raw: Raw) -> Self;
}

/// Numbers, and handles, which are only looked up.
impl<T> Argument<T> for T {
    #[inline(always)]
    unsafe fn of_c(raw: T) -> T {
        raw
    }
}

/// Declares arguments that are a pointer.
macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident($($pointer:tt)+);)+) => {
        $(
            $(#[$doc])*
            pub struct $name<'a, T>($($pointer)+ T, PhantomData<&'a T>);

            impl<T> Argument<$($pointer)+ T> for $name<'_, T> {
                #[inline(always)]
                unsafe fn of_c(raw: $($pointer)+ T) -> Self {
                    Self(raw, PhantomData)
                }
            }
        )+
    };
}

arguments! {
    /// A value to be read.
    In(*const);
    /// A value to be read and changed.
    InOut(*mut);
    /// Room for a value, which may never have been written.
    Out(*mut);
    /// A list of work requests.
    List(*mut);
    /// An array, of as many as another argument says.
    Array(*const);
}

impl<T> Argument<*mut T> for In<'_, T> {
    #[inline(always)]
    unsafe fn of_c(raw: *mut T) -> Self {
        Self(raw, PhantomData)
    }
}

/// As bytes, which need no alignment.
impl Argument<*mut ibv_grh> for In<'_, [u8; size_of::<ibv_grh>()]> {
    #[inline(always)]
    unsafe fn of_c(raw: *mut ibv_grh) -> Self {
        Self(raw.cast(), PhantomData)
    }
}

/// For what is only looked up.
impl<T> Argument<*mut T> for *const T {
    #[inline(always)]
    unsafe fn of_c(raw: *mut T) -> Self {
        raw
    }
}

impl<'a, T> In<'a, T> {
    /// The value.
    ///
    /// # Errors
    /// EINVAL: there is none.
    pub fn given(self) -> Result<&'a T, Errno> {
        // SAFETY: C's word.
        unsafe { self.0.as_ref() }.ok_or(Errno::INVAL)
    }
}

impl<'a, T> InOut<'a, T> {
    /// The value.
    ///
    /// # Errors
    /// EINVAL: there is none.
    pub fn changed(self) -> Result<&'a mut T, Errno> {
        // SAFETY: C's word; there is one such reference, since this is not `Copy`.
        unsafe { self.0.as_mut() }.ok_or(Errno::INVAL)
    }
}

impl<T> Out<'_, T> {
    /// Whether there is room.
    ///
    /// # Errors
    /// EINVAL: there is none.
    pub fn check(&self) -> Result<(), Errno> {
        if self.0.is_null() { Err(Errno::INVAL) } else { Ok(()) }
    }

    /// Puts a value where C wants it. What was there is not looked at.
    ///
    /// # Errors
    /// EINVAL: there is no room.
    #[inline]
    pub fn put(self, value: T) -> Result<(), Errno> {
        self.check()?;
        // SAFETY: C's word.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Puts a structure where C wants it, or the beginning of it, or more than it has, which is 0: C says that there is
    /// room for `size` bytes.
    ///
    /// # Errors
    /// EINVAL: there is no room.
    pub fn put_sized(self, size: usize, value: &T) -> Result<(), Errno> {
        self.check()?;
        let (known, to) = (size.min(size_of::<T>()), self.0.cast::<u8>());
        // SAFETY: C's word, and `known` bytes of the value.
        unsafe {
            to.copy_from_nonoverlapping((&raw const *value).cast(), known);
            to.add(known).write_bytes(0, size - known);
        }
        Ok(())
    }
}

/// Room for completions.
pub struct Room<'a>(NonNull<ibv_wc>, usize, PhantomData<&'a mut ibv_wc>);

impl<'a> Out<'a, ibv_wc_fields> {
    /// Room for so many, as C says.
    ///
    /// # Errors
    /// EINVAL: there can't be.
    #[inline]
    pub fn room(self, count: usize) -> Result<Room<'a>, Errno> {
        let first = NonNull::new(self.0.cast::<ibv_wc>()).filter(|first| first.is_aligned());
        Ok(Room(first.ok_or(Errno::INVAL)?, count, PhantomData))
    }
}

impl Room<'_> {
    /// For how many there is room.
    #[inline]
    pub const fn count(&self) -> usize {
        self.1
    }

    /// Room for `count` of them from the one at `from` on. C is relied upon only as far as completions are written.
    #[inline]
    pub fn part(&mut self, from: usize, count: usize) -> &mut [ibv_wc] {
        assert!(from <= self.1 && count <= self.1 - from);
        // SAFETY: C's word: there is so much room. What C has not written there are some bytes, and any bytes are an
        // `ibv_wc`.
        unsafe { slice::from_raw_parts_mut(self.0.add(from).as_ptr(), count) }
    }
}

/// A request that stands in a list.
pub trait Linked {
    /// The one behind it.
    fn next(&self) -> *mut Self;
}

impl Linked for ibv_send_wr {
    fn next(&self) -> *mut Self {
        self.next
    }
}

impl Linked for ibv_recv_wr {
    fn next(&self) -> *mut Self {
        self.next
    }
}

impl<W> Clone for List<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for List<'_, W> {}

/// A request of C's, with what belongs to it.
pub struct Request<'a, W>(&'a W);

impl<'a, W: Linked> List<'a, W> {
    /// The first request.
    ///
    /// # Errors
    /// EINVAL: there is none.
    #[inline]
    pub fn first(self) -> Result<Request<'a, W>, Errno> {
        // SAFETY: C's word.
        unsafe { self.0.as_ref() }.map(Request).ok_or(Errno::INVAL)
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0.is_null()
    }

    /// The list behind so many requests, or its end.
    pub fn after(self, count: usize) -> Self {
        (0..count).fold(self, |list, _| list.first().map_or(list, |first| first.next()))
    }

    /// Where the first request is.
    #[inline]
    pub const fn pointer(self) -> *mut W {
        self.0
    }
}

impl<W> Deref for Request<'_, W> {
    type Target = W;

    #[inline]
    fn deref(&self) -> &W {
        self.0
    }
}

impl<'a, W: Linked> Request<'a, W> {
    /// The list behind it.
    #[inline]
    pub fn next(&self) -> List<'a, W> {
        List(self.0.next(), PhantomData)
    }
}

impl<'a> Request<'a, ibv_send_wr> {
    /// Its SGEs, as [`Array::pieces`].
    #[inline]
    pub fn pieces(&self, max: u32) -> Result<Pieces<'a>, Errno> {
        Array(self.0.sg_list.cast_const(), PhantomData).pieces(self.0.num_sge, max)
    }
}

impl<'a> Request<'a, ibv_recv_wr> {
    /// Its SGEs, as [`Array::pieces`].
    #[inline]
    pub fn pieces(&self, max: u32) -> Result<Pieces<'a>, Errno> {
        Array(self.0.sg_list.cast_const(), PhantomData).pieces(self.0.num_sge, max)
    }
}

/// SGEs of the program's memory.
#[derive(Clone, Copy)]
pub struct Pieces<'a>(&'a [ibv_sge]);

impl<'a> Array<'a, ibv_sge> {
    /// So many SGEs.
    ///
    /// # Errors
    /// EINVAL: they are fewer than none, more than the queue takes, or there is no list.
    #[inline]
    pub fn pieces(self, count: impl TryInto<u32>, max: u32) -> Result<Pieces<'a>, Errno> {
        match count.try_into() {
            Ok(0) => Ok(Pieces(&[])),
            // More are not looked at: the device would refuse them.
            Ok(count) if count <= max && !self.0.is_null() => {
                // SAFETY: C's word.
                Ok(Pieces(unsafe { slice::from_raw_parts(self.0, count as usize) }))
            }
            _ => Err(Errno::INVAL),
        }
    }
}

impl<'a> Pieces<'a> {
    /// The SGEs themselves.
    #[inline]
    pub const fn list(self) -> &'a [ibv_sge] {
        self.0
    }

    /// The bytes of the first SGE, to be copied at once.
    ///
    /// # Errors
    /// EINVAL: they would begin at null, or are more than any queue pair takes inline.
    #[inline]
    pub fn first_bytes(self) -> Result<&'a [u8], Errno> {
        self.0.first().map_or(Ok(&[]), |piece| Bytes::of_piece(piece).bytes())
    }

    /// The bytes of all of them.
    ///
    /// # Errors
    /// EINVAL: they are more than any queue pair takes, or would begin at null.
    #[inline(never)]
    pub fn gather(self) -> Result<Gathered, Errno> {
        gather(self.0.iter().map(Bytes::of_piece))
    }
}

impl Array<'_, ibv_data_buf> {
    /// The bytes of so many places.
    ///
    /// # Errors
    /// EINVAL: there is no list, or as of [`Pieces::gather`].
    pub fn gather(self, count: usize) -> Result<Gathered, Errno> {
        if self.0.is_null() && count > 0 {
            return Err(Errno::INVAL);
        }
        // SAFETY: C's word: so many places.
        gather((0..count).map(|at| unsafe { &*self.0.add(at) }).map(|place| {
            let first = place.addr.cast_const().cast();
            Bytes { first, length: place.length, of: PhantomData }
        }))
    }
}

/// Inline bytes from several places, one after another.
pub type Gathered = Vec<u8, MAX_INLINE>;

fn gather<'a>(places: impl Iterator<Item = Bytes<'a>>) -> Result<Gathered, Errno> {
    let mut all = Vec::new();
    for place in places {
        all.extend_from_slice(place.bytes()?).map_err(|_| Errno::INVAL)?;
    }
    Ok(all)
}

/// Bytes of the program.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    first: *const u8,
    length: usize,
    of: PhantomData<&'a [u8]>,
}

impl Bytes<'_> {
    fn of_piece(piece: &ibv_sge) -> Self {
        let first = ptr::with_exposed_provenance(piece.addr as usize);
        Self { first, length: piece.length as usize, of: PhantomData }
    }
}

impl<'a> Bytes<'a> {
    /// What is there, to be copied into a request.
    ///
    /// # Errors
    /// EINVAL: it would begin at null, or is more than any queue pair takes inline.
    #[inline]
    fn bytes(self) -> Result<&'a [u8], Errno> {
        match (self.first.is_null(), self.length) {
            (_, 0) => Ok(&[]),
            (false, 1..=MAX_INLINE) => {
                // SAFETY: C's word.
                Ok(unsafe { slice::from_raw_parts(self.first, self.length) })
            }
            _ => Err(Errno::INVAL),
        }
    }
}

/// The beginning of memory that the program uses as the function says.
#[derive(Clone, Copy)]
pub struct Memory(*mut c_void);

impl Argument<*mut c_void> for Memory {
    unsafe fn of_c(raw: *mut c_void) -> Self {
        Self(raw)
    }
}

impl Argument<*const c_void> for Memory {
    unsafe fn of_c(raw: *const c_void) -> Self {
        Self(raw.cast_mut())
    }
}

impl Memory {
    /// As a pointer.
    pub const fn pointer(self) -> *mut c_void {
        self.0
    }

    /// So many bytes from there on, as of [`Pieces::gather`].
    pub fn copy(self, length: usize) -> Result<Gathered, Errno> {
        gather(iter::once(Bytes { first: self.0.cast(), length, of: PhantomData }))
    }

    /// Registers so many bytes, which are there and may be used so.
    ///
    /// # Errors
    /// Why the device refuses.
    pub fn register(
        self,
        domain: &ProtectionDomain,
        length: usize,
        access: Access,
    ) -> Result<MemoryRegion, RegisterError> {
        // SAFETY: that the memory stays, and that the program takes what happens to it for a device's doing, is what
        // registering asks of it.
        unsafe { domain.register(self.0.cast(), length, access) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_header_has_more_is_0() {
        let mut room = [7_u32; 4];
        // SAFETY: there is room for four numbers, of which the first is the value.
        let out = unsafe { Out::of_c(room.as_mut_ptr()) };
        out.put_sized(12, &5).unwrap();
        assert_eq!(room, [5, 0, 0, 7]);
    }
}
