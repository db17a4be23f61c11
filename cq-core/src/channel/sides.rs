//! The two sides of a channel of one queue: they own it, or they borrow it and can give it back.
#![allow(unsafe_code)]

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem;
use core::ops::Deref;
use core::ptr::NonNull;

use super::flag::Flag;
use crate::queue::{Ref, ReuniteError};
#[cfg(target_has_atomic = "32")]
use crate::queue::{SplitSignal, Token};
use crate::sync;
use crate::transport::{CqKey, EventError, Events, Signal};

/// A flag, and what else an event does.
#[doc(hidden)]
pub trait FlagChannel: Send + Sync {
    /// The flag, always the same.
    fn flag(&self) -> &Flag;

    /// An event was raised.
    fn wake(&self) {}

    /// The receiver is gone.
    fn forsake(&self) {}
}

/// A side's share of a channel in a static or on a stack. They are counted.
#[derive(Debug)]
pub struct Share<'a, T: FlagChannel>(Ref<'a, T>);

impl<T: FlagChannel> Deref for Share<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(target_has_atomic = "32")]
impl<T: FlagChannel> Clone for Share<'_, T> {
    fn clone(&self) -> Self {
        sync::join(&self.flag().shares);
        Self(self.0)
    }
}

impl<T: FlagChannel> Drop for Share<'_, T> {
    fn drop(&mut self) {
        sync::leave(&self.flag().shares);
    }
}

/// The producer's side, for one queue, and one thread or one interrupt handler. It is not `Sync`, and can't be cloned: the
/// engine copies it for the queue's other sides.
///
/// ```compile_fail,E0599
/// let mut flag = cq_core::channel::flag::Flag::new();
/// let (raiser, _events) = flag.split();
/// let another = raiser.clone();
/// ```
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<cq_core::channel::flag::Raiser<'_>>();
/// ```
#[derive(Debug)]
pub struct Raiser<C> {
    channel: C,
    one_thread: PhantomData<Cell<()>>,
}

impl<'a, T: FlagChannel> Raiser<Share<'a, T>> {
    /// The channel of these two sides, which can be split again. `SoftCq::reunite` gives the raiser of a queue back.
    ///
    /// # Errors
    /// They are the sides of two channels, or a queue has a copy of the raiser. Both are returned.
    pub fn reunite(
        self,
        receiver: Receiver<Share<'a, T>>,
    ) -> Result<&'a mut T, ReuniteError<Self, Receiver<Share<'a, T>>>> {
        let (channel, other) = (&self.channel, &receiver.channel);
        if !channel.0.is(&other.0) || sync::load_u32(&channel.flag().shares) != 2 {
            return Err(ReuniteError(self, receiver));
        }
        drop(receiver);
        let channel = self.channel.0;
        mem::forget(self);
        assert!(sync::leave(&channel.flag().shares), "these were all");
        // SAFETY: shares are made by `split`, from a `&'a mut T`, or are copies of such ones. Each is counted until it is
        // dropped, if it ever is, and this one was the last: a count that is saturated stays so. What the others did is
        // visible (`leave`). They gave out no reference that outlives them.
        Ok(unsafe { channel.into_mut() })
    }
}

impl<C: Deref<Target: FlagChannel>> Signal for Raiser<C> {
    fn key(&self) -> CqKey {
        self.channel.flag().key()
    }

    #[inline]
    fn raise(&self) {
        sync::count_event(&self.channel.flag().raised);
        self.channel.wake();
    }
}

#[cfg(target_has_atomic = "32")]
impl<C: Deref<Target: FlagChannel> + Clone> SplitSignal for Raiser<C> {
    fn copy(&self, _: &Token) -> Self {
        Self { channel: self.channel.clone(), one_thread: PhantomData }
    }
}

/// The consumer's side, for one thread or task.
#[derive(Debug)]
pub struct Receiver<C: Deref<Target: FlagChannel>> {
    pub(super) channel: C,
    /// The count when an event was last taken.
    taken: u32,
}

impl<C: Deref<Target: FlagChannel>> Receiver<C> {
    /// Whether there is an event to take.
    ///
    /// # Staleness
    /// An event may be raised at any time. One that is pending stays so until it is taken.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.channel.flag().count() != self.taken
    }
}

impl<C: Deref<Target: FlagChannel>> Events for Receiver<C> {
    #[inline]
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let flag = self.channel.flag();
        let before = mem::replace(&mut self.taken, flag.count());
        Ok((self.taken != before).then(|| flag.key()))
    }

    fn forget(&mut self, key: CqKey) {
        if self.serves(key) {
            self.taken = self.channel.flag().count();
        }
    }

    fn serves(&self, key: CqKey) -> bool {
        key == self.channel.flag().key()
    }
}

impl<C: Deref<Target: FlagChannel>> Drop for Receiver<C> {
    fn drop(&mut self) {
        self.channel.forsake();
    }
}

/// The sides of a channel that was just made, or that is borrowed.
pub(super) fn sides<C: Deref<Target: FlagChannel>>(
    channel: C,
    other: C,
) -> (Raiser<C>, Receiver<C>) {
    let taken = other.flag().count();
    (Raiser { channel, one_thread: PhantomData }, Receiver { channel: other, taken })
}

/// The sides that borrow a channel. Unread events are discarded.
pub(super) fn split<T: FlagChannel>(
    channel: &mut T,
) -> (Raiser<Share<'_, T>>, Receiver<Share<'_, T>>) {
    channel.forsake(); // a receiver that was leaked
    sync::store_u32(&channel.flag().shares, 2);
    // SAFETY: it is borrowed for as long as the shares live.
    let channel = unsafe { Ref::kept(NonNull::from(channel)) };
    sides(Share(channel), Share(channel))
}
