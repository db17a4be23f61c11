//! Where a ledger keeps what it knows of its requests.

use core::ops::{Deref, DerefMut};
use core::{array, fmt};

/// The most requests of a ledger.
pub(super) const MOST: u32 = 1 << 20;

/// Where a ledger keeps what it knows of its requests: on the `Heap`, for as many as are asked for when it is created, or in
/// an [`Array`]. It can't be implemented elsewhere.
pub trait Storage: sealed::Sealed {
    /// The most requests.
    const MOST: u32;

    /// The memory for an item of each request.
    type Of<T>: AsRef<[T]> + AsMut<[T]>;

    /// Makes `count` items, or as many as an array has.
    fn make<T>(count: usize, item: impl FnMut(usize) -> T) -> Self::Of<T>;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// In the ledger itself, for at most `N` requests: without an allocator.
#[derive(Debug)]
pub enum Array<const N: usize> {}

impl<const N: usize> sealed::Sealed for Array<N> {}

impl<const N: usize> Storage for Array<N> {
    const MOST: u32 = {
        assert!(N <= MOST as usize, "a ledger holds up to 2^20 requests");
        N as u32
    };

    type Of<T> = [T; N];

    fn make<T>(_count: usize, item: impl FnMut(usize) -> T) -> [T; N] {
        array::from_fn(item)
    }
}

/// The items of a ledger.
pub(crate) struct Items<T, L: Storage>(pub L::Of<T>);

impl<T, L: Storage> Items<T, L> {
    /// Makes `count` items, or as many as an array has.
    pub fn make(count: usize, item: impl FnMut(usize) -> T) -> Self {
        Self(L::make(count, item))
    }
}

impl<T, L: Storage> Deref for Items<T, L> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.0.as_ref()
    }
}

impl<T, L: Storage> DerefMut for Items<T, L> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_mut()
    }
}

impl<T, L: Storage> fmt::Debug for Items<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[_; {}]", self.len())
    }
}
