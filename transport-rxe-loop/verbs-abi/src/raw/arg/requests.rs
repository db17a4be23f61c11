//! Lists of work requests, their SGEs, and inline data.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ops::Deref;
use std::{iter, ptr, slice};

use heapless::Vec;

use super::{Array, List, MAX_INLINE};
use crate::errno::Errno;
use crate::sys::*;

/// A work request, which is linked to the next of its list.
pub trait Linked {
    /// The next one; null after the last.
    fn next(&self) -> *mut Self;

    /// Where its SGEs are, and how many.
    fn sg_list(&self) -> (*const ibv_sge, c_int);
}

impl Linked for ibv_send_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn sg_list(&self) -> (*const ibv_sge, c_int) {
        (self.sg_list, self.num_sge)
    }
}

impl Linked for ibv_recv_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn sg_list(&self) -> (*const ibv_sge, c_int) {
        (self.sg_list, self.num_sge)
    }
}

impl<W> Clone for List<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for List<'_, W> {}

/// A work request of a list, with its SGEs.
pub struct Request<'a, W>(&'a W);

impl<'a, W: Linked> List<'a, W> {
    /// The first request.
    ///
    /// # Errors
    /// EINVAL: the list is empty.
    #[inline]
    pub fn first(self) -> Result<Request<'a, W>, Errno> {
        // SAFETY: null or a valid request, by `of_c`, or as the link of one.
        unsafe { self.0.as_ref() }.map(Request).ok_or(Errno::INVAL)
    }

    /// Whether the list is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0.is_null()
    }

    /// The list without its first `count` requests.
    pub fn after(self, count: usize) -> Self {
        (0..count).fold(self, |list, _| list.first().map_or(list, |first| first.next()))
    }

    /// The address of the first request.
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
    /// The list after it.
    #[inline]
    pub fn next(&self) -> List<'a, W> {
        List(self.0.next(), PhantomData)
    }

    /// Its SGEs, as [`Array::sges`].
    #[inline]
    pub fn sges(&self, max: u32) -> Result<Sges<'a>, Errno> {
        let (first, count) = self.0.sg_list();
        Array(first, PhantomData).sges(count, max)
    }
}

/// A list of SGEs.
#[derive(Clone, Copy)]
pub struct Sges<'a>(&'a [ibv_sge]);

impl<'a> Array<'a, ibv_sge> {
    /// The list of `count` SGEs, which the program passed along with it; `max` is the capacity of the queue.
    ///
    /// # Errors
    /// EINVAL: the count is negative or exceeds the capacity, or the list is null.
    #[inline]
    pub fn sges(self, count: impl TryInto<u32>, max: u32) -> Result<Sges<'a>, Errno> {
        match count.try_into() {
            Ok(0) => Ok(Sges(&[])),
            Ok(count) if count <= max && !self.0.is_null() => {
                // SAFETY: not null, so `count` SGEs, by `of_c`.
                Ok(Sges(unsafe { slice::from_raw_parts(self.0, count as usize) }))
            }
            _ => Err(Errno::INVAL),
        }
    }
}

impl<'a> Sges<'a> {
    /// The SGEs themselves.
    #[inline]
    pub const fn list(self) -> &'a [ibv_sge] {
        self.0
    }

    /// The bytes of the first SGE, as inline data.
    ///
    /// # Errors
    /// EINVAL: its address is null, or it is longer than any queue pair allows.
    #[inline]
    pub fn first_bytes(self) -> Result<&'a [u8], Errno> {
        self.0.first().map_or(Ok(&[]), |sge| Bytes::of_sge(sge).get())
    }

    /// The bytes of all SGEs, as inline data.
    ///
    /// # Errors
    /// EINVAL: an address is null, or there are more bytes than any queue pair allows.
    #[inline(never)]
    pub fn gather(self) -> Result<Gathered, Errno> {
        gather(self.0.iter().map(Bytes::of_sge))
    }
}

impl Array<'_, ibv_data_buf> {
    /// The bytes of `count` buffers, as inline data.
    ///
    /// # Errors
    /// EINVAL: the list is null; and those of [`Sges::gather`].
    pub fn gather(self, count: usize) -> Result<Gathered, Errno> {
        if self.0.is_null() && count > 0 {
            return Err(Errno::INVAL);
        }
        // SAFETY: `count` buffers, by `of_c`.
        gather((0..count).map(|at| unsafe { &*self.0.add(at) }).map(|buffer| {
            let first = buffer.addr.cast_const().cast();
            Bytes { first, length: buffer.length, of: PhantomData }
        }))
    }
}

/// Inline data, gathered from several buffers.
pub type Gathered = Vec<u8, MAX_INLINE>;

/// A copy of `length` bytes at this address, which `of_c` was given.
pub(super) fn copy(first: *const u8, length: usize) -> Result<Gathered, Errno> {
    gather(iter::once(Bytes { first, length, of: PhantomData }))
}

fn gather<'a>(buffers: impl Iterator<Item = Bytes<'a>>) -> Result<Gathered, Errno> {
    let mut all = Vec::new();
    for bytes in buffers {
        all.extend_from_slice(bytes.get()?).map_err(|_| Errno::INVAL)?;
    }
    Ok(all)
}

/// A range of memory of the program.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    first: *const u8,
    length: usize,
    of: PhantomData<&'a [u8]>,
}

impl Bytes<'_> {
    fn of_sge(sge: &ibv_sge) -> Self {
        let first = ptr::with_exposed_provenance(sge.addr as usize);
        Self { first, length: sge.length as usize, of: PhantomData }
    }
}

impl<'a> Bytes<'a> {
    /// The bytes.
    ///
    /// # Errors
    /// EINVAL: the address is null, or there are more than any queue pair allows inline.
    #[inline]
    fn get(self) -> Result<&'a [u8], Errno> {
        match (self.first.is_null(), self.length) {
            (_, 0) => Ok(&[]),
            (false, 1..=MAX_INLINE) => {
                // SAFETY: not null, so memory that may be read, by `of_c` of what has its address.
                Ok(unsafe { slice::from_raw_parts(self.first, self.length) })
            }
            _ => Err(Errno::INVAL),
        }
    }
}
