//! The transport traits for `&mut T`, and with the feature `alloc` for `Box<T>`.

use core::task::{Context, Poll, Waker};

use super::{
    Arm, ArmError, Armed, AsyncChannel, Block, Capacity, CqKey, EventError, Events, Notify, PollCq,
    PollError, Woken,
};

macro_rules! lent {
    ($pointer:ty) => {
        impl<T: PollCq + ?Sized> PollCq for $pointer {
            type Entry = T::Entry;

            #[inline]
            fn poll(&mut self, out: &mut [T::Entry]) -> Result<usize, PollError> {
                (**self).poll(out)
            }

            #[inline]
            fn holds_more_than(&self, count: usize) -> bool {
                (**self).holds_more_than(count)
            }
        }

        impl<T: Capacity + ?Sized> Capacity for $pointer {
            fn capacity(&self) -> u32 {
                (**self).capacity()
            }
        }

        impl<T: Arm + ?Sized> Arm for $pointer {
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

        impl<T: Events + ?Sized> Events for $pointer {
            fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
                (**self).take_event()
            }

            fn forget(&mut self, key: CqKey) {
                (**self).forget(key);
            }

            fn serves(&self, key: CqKey) -> bool {
                (**self).serves(key)
            }
        }

        impl<T: Block + ?Sized> Block for $pointer {
            type Instant = T::Instant;

            fn block(&mut self, deadline: Option<T::Instant>) -> Result<Woken, EventError> {
                (**self).block(deadline)
            }
        }

        impl<T: AsyncChannel + ?Sized> AsyncChannel for $pointer {
            fn register(&mut self, task: &Waker) {
                (**self).register(task);
            }

            fn poll_budget(&mut self, task: &mut Context<'_>) -> Poll<()> {
                (**self).poll_budget(task)
            }

            fn spend_budget(&mut self, task: &mut Context<'_>) {
                (**self).spend_budget(task);
            }
        }
    };
}

lent!(&mut T);
#[cfg(feature = "alloc")]
lent!(alloc::boxed::Box<T>);
