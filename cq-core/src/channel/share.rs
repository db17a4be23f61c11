//! What a side has of a channel that it borrows. Shares are counted, so that the last two can give the channel back.
#![allow(unsafe_code)]

use core::ops::Deref;
use core::{fmt, mem};

use crate::queue::Ref;
use crate::sync::{self, AtomicU32};

/// A channel that counts its shares.
#[doc(hidden)]
pub trait Counted: Send + Sync {
    /// The count.
    fn shares(&self) -> &AtomicU32;
}

/// A side's share of a channel in a static or on a stack.
pub struct Share<'a, T: Counted>(Ref<'a, T>);

impl<'a, T: Counted> Share<'a, T> {
    /// The first two shares, which are all that there are.
    pub(super) fn pair(channel: &'a mut T) -> (Self, Self) {
        sync::store_u32(channel.shares(), 2);
        let channel = Ref::from(channel);
        (Self(channel), Self(channel))
    }

    /// Whether these two are all the shares of one channel.
    pub(super) fn is_pair(&self, other: &Self) -> bool {
        self.0.is(&other.0) && sync::load_u32(self.shares()) == 2
    }

    /// The channel.
    ///
    /// # Panics
    /// There is another share.
    pub(super) fn into_mut(self) -> &'a mut T {
        let channel = self.0;
        mem::forget(self);
        assert!(sync::leave(channel.shares()), "the channel is shared");
        // SAFETY: every share is made by `pair`, from a `&'a mut T`, or is a clone of such a one. Each is counted until it is
        // dropped, if it ever is, and this one was the last: a count that is saturated stays so. What the others did is
        // visible (`leave`). They gave out no reference that outlives them.
        unsafe { channel.into_mut() }
    }
}

impl<T: Counted> Deref for Share<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(target_has_atomic = "32")]
impl<T: Counted> Clone for Share<'_, T> {
    fn clone(&self) -> Self {
        sync::join(self.shares());
        Self(self.0)
    }
}

impl<T: Counted> Drop for Share<'_, T> {
    fn drop(&mut self) {
        sync::leave(self.shares());
    }
}

impl<T: Counted + fmt::Debug> fmt::Debug for Share<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
