//! The transport traits and observers for `&mut T`, and with the feature `alloc` for `Box<T>`; those of a queue also for
//! `CompletionQueue<T>`.

use core::task::{Context, Poll, Waker};

use super::{
    Arm, ArmError, Armed, Block, Capacity, CqKey, EventError, Events, Notify, PollCq, PollError,
    RegisterWaker, Woken,
};
use crate::cq::CompletionQueue;
use crate::observe::Observer;
use crate::of_target;

macro_rules! queue {
    ($type:ty, $this:ident => $queue:expr) => {
        impl<T: PollCq + ?Sized> PollCq for $type {
            type Entry = T::Entry;

            of_target! { $queue;
                poll_into(&mut $this, out: &mut [T::Entry]) -> Result<usize, PollError>;
                pop(&mut $this) -> Result<Option<T::Entry>, PollError>;
                holds_more_than(&$this, count: usize) -> bool;
            }
        }

        impl<T: Capacity + ?Sized> Capacity for $type {
            of_target! { $queue; capacity(&$this) -> usize; }
        }

        impl<T: Arm + ?Sized> Arm for $type {
            of_target! { $queue;
                arm(&mut $this, on: Notify) -> Result<Armed, ArmError>;
                key(&$this) -> CqKey;
                took_events(&mut $this, count: u32);
            }
        }
    };
}

macro_rules! lent {
    ($pointer:ty, $this:ident => $target:expr) => {
        queue!($pointer, $this => $target);

        impl<T: Events + ?Sized> Events for $pointer {
            of_target! { $target;
                take_event(&mut $this) -> Result<Option<CqKey>, EventError>;
                forget(&mut $this, key: CqKey);
                serves(&$this, key: CqKey) -> bool;
            }
        }

        impl<T: Block + ?Sized> Block for $pointer {
            type Instant = T::Instant;

            of_target! { $target;
                block(&mut $this, deadline: Option<T::Instant>) -> Result<Woken, EventError>;
            }
        }

        impl<T: RegisterWaker + ?Sized> RegisterWaker for $pointer {
            of_target! { $target;
                register(&mut $this, task: &Waker);
                poll_budget(&mut $this, task: &mut Context<'_>) -> Poll<()>;
                spend_budget(&mut $this, task: &mut Context<'_>);
            }
        }

        impl<E, T: Observer<E> + ?Sized> Observer<E> for $pointer {
            of_target! { $target;
                polled(&mut $this, queue: &dyn PollCq<Entry = E>, asked: usize, batch: &[E]);
                failed(&mut $this, error: PollError);
                armed(&mut $this, armed: Result<Armed, ArmError>);
                took_events(&mut $this, count: u32);
            }
        }
    };
}

queue!(CompletionQueue<T>, self => self.transport);
lent!(&mut T, self => (**self));
#[cfg(feature = "alloc")]
lent!(alloc::boxed::Box<T>, self => (**self));
