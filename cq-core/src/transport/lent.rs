//! The transport traits for `&mut T`.

use core::task::Waker;

use super::{
    Arm, ArmError, Armed, AsyncChannel, AsyncEvents, Block, BlockAsync, CqKey, EventError, Events,
    Notify, PollCq, PollError, Post, PostError, Refused, Woken,
};
use crate::async_event::AsyncEvent;
use crate::wc::Wc;
use crate::wr::{RecvWr, SendWr};

impl<T: PollCq + ?Sized> PollCq for &mut T {
    #[inline]
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        (**self).poll(out)
    }

    #[inline]
    fn holds_more_than(&self, count: usize) -> bool {
        (**self).holds_more_than(count)
    }
}

impl<T: Arm + ?Sized> Arm for &mut T {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        (**self).arm(on)
    }

    fn key(&self) -> CqKey {
        (**self).key()
    }

    #[inline]
    fn took_events(&mut self, count: u32) {
        (**self).took_events(count);
    }
}

impl<T: Events + ?Sized> Events for &mut T {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        (**self).take_event()
    }

    fn forget(&mut self, key: CqKey) {
        (**self).forget(key);
    }
}

impl<T: Block + ?Sized> Block for &mut T {
    type Instant = T::Instant;

    fn block(&mut self, deadline: Option<T::Instant>) -> Result<Woken, EventError> {
        (**self).block(deadline)
    }
}

impl<T: AsyncChannel + ?Sized> AsyncChannel for &mut T {
    fn register(&mut self, task: &Waker) {
        (**self).register(task);
    }
}

impl<T: Post + ?Sized> Post for &mut T {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        (**self).post_send(list)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        (**self).post_recv(list)
    }

    fn quiesce(&mut self) -> bool {
        (**self).quiesce()
    }

    #[inline]
    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), Refused> {
        (**self).check_send(wr)
    }

    #[inline]
    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), Refused> {
        (**self).check_recv(wr)
    }
}

impl<T: AsyncEvents + ?Sized> AsyncEvents for &mut T {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        (**self).take_async_event()
    }
}

impl<T: BlockAsync + ?Sized> BlockAsync for &mut T {
    type Instant = T::Instant;

    fn block_async(&mut self, deadline: Option<T::Instant>) -> Result<Woken, EventError> {
        (**self).block_async(deadline)
    }
}
