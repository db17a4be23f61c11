//! Lists of work requests, their SGEs, and inline data.

use std::marker::PhantomData;
use std::{ptr, slice};

use heapless::Vec;

use super::{Array, List, MAX_INLINE};
use crate::errno::Errno;
use crate::sys::*;

/// A work request, which is linked to the next of its list.
pub trait Linked: Copy {
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

impl<'a, W: Linked> List<'a, W> {
    /// The first request.
    ///
    /// # Errors
    /// EINVAL: the list is empty.
    #[inline]
    pub fn first(self) -> Result<&'a W, Errno> {
        // SAFETY: null or a valid request, by `of_c`, or as the link of one.
        unsafe { self.0.as_ref() }.ok_or(Errno::INVAL)
    }

    /// The SGEs of the first request, as [`Array::sges`].
    #[inline]
    pub fn sges(self, max: u32) -> Result<Sges<'a>, Errno> {
        let (first, count) = self.first()?.sg_list();
        Array(first, PhantomData).sges(count, max)
    }

    /// The list after the first request.
    #[inline]
    pub fn next(self) -> Self {
        self.first().map_or(self, |first| Self(first.next(), PhantomData))
    }

    /// Whether the list is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0.is_null()
    }

    /// The list without its first `count` requests.
    pub fn after(self, count: usize) -> Self {
        (0..count).fold(self, |list, _| list.next())
    }

    /// The address of the first request.
    #[inline]
    pub const fn pointer(self) -> *mut W {
        self.0
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
        // SAFETY: null or memory that may be read, by `of_c` of the list.
        self.0.first().map_or(Ok(&[]), |sge| unsafe { bytes(range(sge)) })
    }

    /// The bytes of all SGEs, as inline data.
    ///
    /// # Errors
    /// EINVAL: an address is null, or there are more bytes than any queue pair allows.
    #[inline(never)]
    pub fn gather(self) -> Result<Gathered, Errno> {
        // SAFETY: null or memory that may be read, by `of_c` of the list.
        unsafe { gather(self.0.iter().map(range)) }
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
        // SAFETY: `count` buffers, by `of_c`, each null or of memory that may be read.
        unsafe {
            let buffers = (0..count).map(|at| &*self.0.add(at));
            gather(buffers.map(|buffer| (buffer.addr.cast_const().cast(), buffer.length)))
        }
    }
}

/// Inline data, gathered from several buffers.
pub type Gathered = Vec<u8, MAX_INLINE>;

/// A range of memory of the program: where it begins, and how long it is.
pub(super) type Range = (*const u8, usize);

fn range(sge: &ibv_sge) -> Range {
    (ptr::with_exposed_provenance(sge.addr as usize), sge.length as usize)
}

/// The bytes of all ranges.
///
/// # Safety
/// Each is as for [`bytes`].
pub(super) unsafe fn gather(ranges: impl Iterator<Item = Range>) -> Result<Gathered, Errno> {
    let mut all = Vec::new();
    for range in ranges {
        // SAFETY: as the caller says.
        all.extend_from_slice(unsafe { bytes(range) }?).map_err(|_| Errno::INVAL)?;
    }
    Ok(all)
}

/// The bytes of a range.
///
/// # Safety
/// Its address is null, or it is memory that may be read as long as `'a`.
///
/// # Errors
/// EINVAL: the address is null, or there are more than any queue pair allows inline.
#[inline]
unsafe fn bytes<'a>((first, length): Range) -> Result<&'a [u8], Errno> {
    match (first.is_null(), length) {
        (_, 0) => Ok(&[]),
        // SAFETY: not null, so memory that may be read.
        (false, 1..=MAX_INLINE) => Ok(unsafe { slice::from_raw_parts(first, length) }),
        _ => Err(Errno::INVAL),
    }
}
