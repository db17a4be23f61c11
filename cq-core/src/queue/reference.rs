//! A reference to a queue's memory, which a side of the queue may own.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

/// A reference to a queue's memory. Unlike `&T`, it may be moved while the memory is freed, so that a side can own the
/// storage that it refers to.
pub struct Ref<'a, T: ?Sized>(NonNull<T>, PhantomData<&'a T>);

impl<T: ?Sized> Ref<'_, T> {
    /// # Safety
    /// The value is alive, and not borrowed mutably, whenever this or a copy of it is dereferenced, and for as long as
    /// the reference obtained is in use.
    pub(crate) const unsafe fn kept(value: NonNull<T>) -> Self {
        Self(value, PhantomData)
    }
}

impl<'a, T> Ref<'a, T> {
    /// Whether both refer to the same value.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// The value, or the structure that it is the first field of.
    ///
    /// # Safety
    /// This was made from a `&'a mut U`, or by a cast of one. Neither a copy of it nor a reference obtained from one is used
    /// any more.
    pub(crate) const unsafe fn into_mut<U>(self) -> &'a mut U {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.cast().as_mut() }
    }

    /// The value that lies so many values behind this one.
    ///
    /// # Safety
    /// It is in the array that this was made from a reference to.
    #[inline(always)]
    pub(super) const unsafe fn after(self, count: usize) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { self.0.add(count) }, PhantomData)
    }

    /// So many values, of which the first one lies `first` values behind this one.
    ///
    /// # Safety
    /// As of [`after`](Self::after), for all of them.
    #[inline(always)]
    pub(super) const unsafe fn run<'s>(self, first: usize, count: usize) -> &'s [T]
    where
        'a: 's,
    {
        // SAFETY: guaranteed by the caller. They live as long as this one.
        unsafe { core::slice::from_raw_parts(self.0.add(first).as_ptr(), count) }
    }

    /// A part of the value.
    pub(super) fn part<U>(self, of: impl for<'x> FnOnce(&'x T) -> &'x U) -> Ref<'a, U> {
        Ref(NonNull::from(of(&self)), PhantomData)
    }
}

impl<'a, T: ?Sized> From<&'a T> for Ref<'a, T> {
    fn from(value: &'a T) -> Self {
        Self(NonNull::from(value), PhantomData)
    }
}

impl<'a, T> Ref<'a, [T]> {
    /// The first of the values; the others are found behind it.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub(super) const unsafe fn first(self) -> Ref<'a, T> {
        Ref(self.0.cast(), PhantomData)
    }
}

crate::copied!([T: ?Sized] Ref<'_, T>);

impl<T: ?Sized> Deref for Ref<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: it was made from a reference that lives for `'a`, or by `kept`, whose caller keeps the value alive.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

// SAFETY: it gives shared access only, as `&T` does, and `T` is `Sync`.
unsafe impl<T: ?Sized + Sync> Send for Ref<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: ?Sized + Sync> Sync for Ref<'_, T> {}
