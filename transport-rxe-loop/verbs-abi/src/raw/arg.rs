//! The arguments of a call from C that are pointers.
//!
//! A pointer becomes one of these types by [`Argument::of_c`], whose caller guarantees what the manual page of the function
//! requires of a program: each pointer is null, or points to what the page says, which nothing else changes during the
//! call, and which may be written where the page says so. The methods rely on that guarantee, and what they return
//! borrows C's memory. Null is EINVAL.

mod requests;

use std::iter;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::slice;

use cq_verbs::setup::{Access, RegisterError};
use transport_rxe_loop::{MemoryRegion, ProtectionDomain};

pub use self::requests::{Gathered, Linked};
use crate::errno::Errno;
use crate::sys::*;

/// The maximum of inline bytes of any queue pair.
pub const MAX_INLINE: usize = 256;

/// An argument of a function that C calls.
pub trait Argument<Raw> {
    /// The argument that C passed.
    ///
    /// # Safety
    /// The pointer is as the manual page of the function requires (see the [module](self)).
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
    /// A value that the call reads.
    In(*const);
    /// A value that the call reads and changes.
    InOut(*mut);
    /// A buffer for a result, which may be uninitialized.
    Out(*mut);
    /// A list of work requests.
    #[derive(Clone, Copy)]
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

/// For handles, which are only looked up.
impl<T> Argument<*mut T> for *const T {
    #[inline(always)]
    unsafe fn of_c(raw: *mut T) -> Self {
        raw
    }
}

impl<'a, T> In<'a, T> {
    /// The value, if the program passed one.
    pub fn optional(self) -> Option<&'a T> {
        self.given().ok()
    }

    /// The value.
    ///
    /// # Errors
    /// EINVAL: the pointer is null.
    pub fn given(&self) -> Result<&'a T, Errno> {
        // SAFETY: null or a valid value, by `of_c`.
        unsafe { self.0.as_ref() }.ok_or(Errno::INVAL)
    }
}

impl<'a, T> InOut<'a, T> {
    /// The value.
    ///
    /// # Errors
    /// EINVAL: the pointer is null.
    pub fn changed(self) -> Result<&'a mut T, Errno> {
        // SAFETY: null or a value that may be changed, by `of_c`; `self` is not `Copy`, so this reference is the only one.
        unsafe { self.0.as_mut() }.ok_or(Errno::INVAL)
    }
}

impl<T> Out<'_, T> {
    /// Whether the program passed a buffer.
    ///
    /// # Errors
    /// EINVAL: the pointer is null.
    pub fn check(&self) -> Result<(), Errno> {
        if self.0.is_null() { Err(Errno::INVAL) } else { Ok(()) }
    }

    /// Writes the result. The previous content is not read.
    ///
    /// # Errors
    /// EINVAL: the pointer is null.
    #[inline]
    pub fn put(self, value: T) -> Result<(), Errno> {
        self.check()?;
        // SAFETY: not null, so a buffer for a `T`, by `of_c`.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes a structure of which the program's header has `size` bytes: its beginning, or all of it and zeros.
    ///
    /// # Errors
    /// EINVAL: the pointer is null.
    pub fn put_sized(self, size: usize, value: &T) -> Result<(), Errno> {
        self.check()?;
        let (known, to) = (size.min(size_of::<T>()), self.0.cast::<u8>());
        // SAFETY: the buffer has `size` bytes, by `of_c`, and the value at least `known`.
        unsafe {
            to.copy_from_nonoverlapping((&raw const *value).cast(), known);
            to.add(known).write_bytes(0, size - known);
        }
        Ok(())
    }

    /// Writes structures one behind the other, each as [`put_sized`](Self::put_sized) does. The buffer has place for
    /// them.
    ///
    /// # Errors
    /// EINVAL: the pointer is null.
    pub fn put_all(self, size: usize, values: &[T]) -> Result<(), Errno> {
        self.check()?;
        for (nth, value) in values.iter().enumerate() {
            // Within the buffer, which has `size` bytes for each of them, by `of_c`.
            Self(self.0.wrapping_byte_add(nth * size), PhantomData).put_sized(size, value)?;
        }
        Ok(())
    }
}

/// A buffer for completions.
pub struct WcBuffer<'a>(NonNull<ibv_wc>, usize, PhantomData<&'a mut ibv_wc>);

impl<'a> Out<'a, ibv_wc_fields> {
    /// The buffer of this capacity, which the program passed along with it.
    ///
    /// # Errors
    /// EINVAL: the pointer is null or misaligned.
    #[inline]
    pub fn buffer(self, capacity: usize) -> Result<WcBuffer<'a>, Errno> {
        let first = NonNull::new(self.0.cast::<ibv_wc>()).filter(|first| first.is_aligned());
        Ok(WcBuffer(first.ok_or(Errno::INVAL)?, capacity, PhantomData))
    }
}

impl WcBuffer<'_> {
    /// How many completions it holds.
    #[inline]
    pub const fn capacity(&self) -> usize {
        self.1
    }

    /// `count` entries from this index on. Of a buffer that is shorter than the program says, only the entries that
    /// completions are written to are accessed.
    #[inline]
    pub fn part(&mut self, from: usize, count: usize) -> &mut [ibv_wc] {
        assert!(from <= self.1 && count <= self.1 - from);
        // SAFETY: the buffer holds so many entries, by `of_c`. It is memory of C, whose bytes have values, and every
        // value is an `ibv_wc`.
        unsafe { slice::from_raw_parts_mut(self.0.add(from).as_ptr(), count) }
    }
}

/// The address of memory that the function accesses as its manual page says.
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

    /// A copy of `length` bytes, with the errors of [`Sges::gather`](requests::Sges::gather).
    pub fn copy(self, length: usize) -> Result<Gathered, Errno> {
        // SAFETY: null or memory that may be read, by `of_c`.
        unsafe { requests::gather(iter::once((self.0.cast_const().cast(), length))) }
    }

    /// Registers `length` bytes.
    ///
    /// # Errors
    /// As for [`ProtectionDomain::register`].
    pub fn register(
        self,
        domain: &ProtectionDomain,
        length: usize,
        access: Access,
    ) -> Result<MemoryRegion, RegisterError> {
        // SAFETY: the manual page requires the same of the program: the memory stays mapped while it is registered, and
        // the device may access it at any time.
        unsafe { domain.register(self.0.cast(), length, access) }
    }
}

/// What `ibv_reg_mr_ex(3)` is to register.
pub struct Wanted {
    pub mask: u64,
    pub memory: Memory,
    pub length: usize,
    pub iova: Option<u64>,
    pub access: c_uint,
    pub buf: Option<*mut ibv_buf>,
}

impl In<'_, ibv_mr_init_attr> {
    /// The attributes that the mask names.
    ///
    /// # Errors
    /// EINVAL: the pointer is null.
    pub fn wanted(self) -> Result<Wanted, Errno> {
        let &ibv_mr_init_attr { length, access, comp_mask: mask, iova, addr, .. } = self.given()?;
        let has = |attribute| mask & attribute != 0;
        let with_buf = self.0.cast::<ibv_mr_init_attr_and_buf>();
        // SAFETY: the header of a program that sets this has the buffer, by `of_c`.
        let buf = has(IBV_REG_MR_MASK_BUF).then(|| unsafe { (&raw const (*with_buf).buf).read() });
        let iova = has(IBV_REG_MR_MASK_IOVA).then_some(iova);
        let (memory, access) = (Memory(addr), access.cast_unsigned());
        Ok(Wanted { mask, memory, length, iova, access, buf })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_header_adds_is_0() {
        let mut buffer = [7_u32; 4];
        // SAFETY: the buffer holds four numbers, of which the first is the value.
        let out = unsafe { Out::of_c(buffer.as_mut_ptr()) };
        out.put_sized(12, &5).unwrap();
        assert_eq!(buffer, [5, 0, 0, 7]);
    }

    #[test]
    fn structures_are_as_far_apart_as_the_program_says() {
        let mut buffer = [7_u32; 6];
        // SAFETY: the buffer holds three structures of eight bytes, of which two are written.
        let out = unsafe { Out::of_c(buffer.as_mut_ptr()) };
        out.put_all(8, &[5, 6]).unwrap();
        assert_eq!(buffer, [5, 0, 6, 0, 7, 7]);
    }
}
