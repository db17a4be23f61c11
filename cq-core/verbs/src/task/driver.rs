//! The task that polls a completion queue for others.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::mem;
use core::pin::pin;
use core::task::Poll;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::transport::{Events, RegisterWaker};
use cq_core::wc::Wc;
use tokio::sync::Notify;
use tokio::task::coop::unconstrained;
use tokio::task::yield_now;

use super::channel::TaskChannel;
use super::for_all::for_all;
use crate::budget::{Budget, Budgeted, BudgetedHandle};
use crate::device::{Device, DeviceCq};
use crate::polling::ArmWc;
use crate::setup::{CreateError, DeviceError, Errno};

const BATCH: usize = 32;

/// Polls a completion queue, and passes each completion to the queue pair that it is of. See [the module](super).
///
/// One driver serves all connections of a process: they share the device, protection domain, port,
/// [`queue`](Self::queue) and [`handle`](Self::handle), as in an `Arc` ([example](crate::guide::tasks)).
///
/// Completions of queue pairs that are no [`TaskQp`](super::TaskQp) of this driver are discarded, those of shared receive
/// queues among them.
///
/// If it is dropped or ends, the requests that are outstanding on its queue pairs end with
/// [`NotPolled`](super::RequestError::NotPolled).
///
/// ```
/// use std::error::Error;
/// use std::os::fd::AsFd;
///
/// use cq_verbs::device::Device;
/// use cq_verbs::task::{Driver, TaskQp};
///
/// async fn create<D: Device<Channel: AsFd>>(device: &D) -> Result<TaskQp<D::Qp, Vec<u8>>, Box<dyn Error>> {
///     let driver = Driver::open(device, 32)?;
///     let (queue, handle) = (driver.queue(), driver.handle());
///     tokio::spawn(driver.run());
///     Ok(TaskQp::create(&device.alloc_pd()?, &queue, &handle, 16, 16).await?)
/// }
/// ```
#[derive(Debug)]
pub struct Driver<T, E> {
    cq: CompletionQueue<T>,
    events: E,
    /// Whether an empty poll is asked for.
    is_asked: bool,
    members: Members,
}

/// What a driver has ended with.
///
/// ```
/// use std::os::fd::AsFd;
///
/// use cq_verbs::device::Device;
/// use cq_verbs::setup::CreateError;
/// use cq_verbs::task::{Driver, Ended};
///
/// async fn run<D: Device<Channel: AsFd>>(device: &D) -> Result<(), CreateError> {
///     let Ended { why, cq } = Driver::open(device, 32)?.run().await;
///     eprintln!("the queue can't be polled any more: {why}");
///     drop(cq); // once the device's events were read
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Ended<T> {
    /// Why the queue can't be polled any more.
    pub why: WaitError,
    /// The queue. Keep it as long as the [device's events](super::DeviceEvents) are read: when it is dropped, its CQ_ERR is
    /// lost if it was not taken yet.
    pub cq: CompletionQueue<T>,
}

/// A driver, as [queue pairs](super::TaskQp::new) are created for it.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Table>);

/// The queue pairs of a driver.
#[derive(Default)]
struct Table {
    state: Mutex<State>,
    /// The queue is to be polled, though no event is raised.
    asked: Notify,
    /// It was asked for, and the queue was found empty; or the driver has ended.
    settled: Notify,
}

#[derive(Default)]
struct State {
    members: HashMap<u32, Weak<dyn Serve>>,
    /// Whether the driver has ended.
    is_over: bool,
}

/// What a driver does with a queue pair.
pub(super) trait Serve: Send + Sync {
    /// Retires what a completion covers, and answers its task.
    fn complete(&self, wc: &Wc);

    /// Lets all tasks try again that wait for a slot.
    fn wake(&self);

    /// The completion queue is not polled any more.
    fn give_up(&self);
}

impl<T: DeviceCq, C: Events> Driver<Budgeted<T, Arc<Budget>>, TaskChannel<C>> {
    /// Creates a completion queue with this many entries, a channel for it, and its driver.
    ///
    /// # Errors
    /// As those of [`create_channel`](Device::create_channel) and [`create_cq`](Device::create_cq), or the runtime can't
    /// wait for the channel's descriptor.
    ///
    /// # Panics
    /// The caller is not in a runtime of tokio, or in one without I/O.
    pub fn open<D>(device: &D, entries: u32) -> Result<Self, CreateError>
    where
        D: Device<Cq = T, Channel = C>,
        C: AsFd,
    {
        let channel = device.create_channel()?;
        let cq = device.cq(entries).channel(&channel).create()?;
        let channel = TaskChannel::new(channel).map_err(|error| {
            let errno = Errno(error.raw_os_error().unwrap_or_default());
            let text = "the channel's descriptor can't be awaited ({errno}): close some, or raise the limit (`ulimit -n`)";
            DeviceError::new(text, errno)
        })?;
        Ok(Self::new(CompletionQueue::new(Budgeted::new(cq)), channel))
    }

    /// What [queue pairs](super::TaskQp::create) and shared receive queues are created with, beside
    /// [`handle`](Self::handle).
    #[must_use]
    pub fn queue(&self) -> BudgetedHandle<T::Handle, Arc<Budget>> {
        self.cq.get_ref().handle()
    }
}

impl Handle {
    /// Waits until the driver has found the queue empty: then entries that were given back are free, unless that was just
    /// before. Call it again while they are [pending](crate::budget::OverdrawnError::pending). Returns false if the driver has
    /// ended.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn settle(&self) -> bool {
        let Self(table) = self;
        // From here on it is told.
        let settled = table.settled.notified();
        if table.lock().is_over {
            return false;
        }
        table.asked.notify_one();
        settled.await;
        !table.lock().is_over
    }
}

impl<T: ArmWc, E: RegisterWaker> Driver<T, E> {
    /// A driver of this queue. `events` must serve this queue only.
    #[must_use]
    pub fn new(cq: CompletionQueue<T>, events: E) -> Self {
        Self { cq, events, is_asked: false, members: Members(Arc::default()) }
    }

    /// What queue pairs are created with.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.members.0))
    }

    /// The queue.
    pub const fn cq(&self) -> &CompletionQueue<T> {
        &self.cq
    }

    /// Polls until the queue fails or ends. It does not end when the last queue pair is gone: a program that is done drops
    /// the future, or aborts its task.
    ///
    /// # Cancel safety
    /// If the future is dropped, so is the driver.
    pub async fn run(mut self) -> Ended<T> {
        loop {
            if let Err(why) = self.step().await {
                return Ended { why, cq: self.cq };
            }
        }
    }

    /// Waits for completions, passes them on, and lets other tasks run.
    async fn step(&mut self) -> Result<(), WaitError> {
        let Self { cq, events, is_asked, members: Members(table) } = self;
        let mut buffer = [Wc::default(); BATCH];
        let count = {
            let mut asked = pin!(table.asked.notified());
            // It lets others run after each batch. Within a task's budget, it would not know whether the queue was polled.
            let mut batch = pin!(unconstrained(cq.next_batch(&mut buffer, events)));
            poll_fn(|task| {
                while asked.as_mut().poll(task).is_ready() {
                    *is_asked = true;
                    asked.set(table.asked.notified());
                }
                let batch = batch.as_mut().poll(task).map_ok(<[Wc]>::len);
                // The queue was empty after it was asked: the poll returned less than it could.
                let is_full = matches!(batch, Poll::Ready(Ok(BATCH)));
                if !is_full && mem::take(is_asked) {
                    table.wake();
                }
                batch
            })
            .await?
        };
        table.complete(&buffer[..count]);
        yield_now().await;
        Ok(())
    }
}

/// The driver's side of the table.
#[derive(Debug)]
struct Members(Arc<Table>);

impl Drop for Members {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.settled.notify_waiters();
        self.0.each(|member| member.give_up());
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics is called under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on completions, in their order.
    fn complete(&self, batch: &[Wc]) {
        for run in batch.chunk_by(|one, next| one.qp_num() == next.qp_num()) {
            let member = self.lock().members.get(&run[0].qp_num()).and_then(Weak::upgrade);
            // Others are of queue pairs that were destroyed.
            if let Some(member) = member {
                run.iter().for_each(|wc| member.complete(wc));
            }
        }
    }

    fn wake(&self) {
        self.settled.notify_waiters();
        self.each(|member| member.wake());
    }

    /// Calls `each` without the lock: the last owner of a queue pair may be here.
    fn each(&self, each: impl FnMut(Arc<dyn Serve>)) {
        let members: Vec<_> = self.lock().members.values().filter_map(Weak::upgrade).collect();
        for_all(members, each);
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("queue_pairs", &self.lock().members.len())
            .finish_non_exhaustive()
    }
}

/// A queue pair's entries in the tables of its drivers. Dropping removes them, and asks the drivers to poll.
pub(super) struct Memberships {
    number: u32,
    member: Weak<dyn Serve>,
    drivers: Vec<Arc<Table>>,
}

impl Memberships {
    pub(super) fn new(number: u32, member: Weak<dyn Serve>, drivers: &[&Handle]) -> Self {
        let drivers: Vec<_> = drivers.iter().map(|Handle(table)| Arc::clone(table)).collect();
        for table in &drivers {
            table.lock().members.insert(number, Weak::clone(&member));
        }
        Self { number, member, drivers }
    }

    /// Whether a driver has ended, or there is none.
    pub(super) fn is_over(&self) -> bool {
        self.drivers.is_empty() || self.drivers.iter().any(|table| table.lock().is_over)
    }

    pub(super) fn ask_to_poll(&self) {
        self.drivers.iter().for_each(|table| table.asked.notify_one());
    }
}

impl Drop for Memberships {
    fn drop(&mut self) {
        let Self { number, member, drivers } = self;
        for table in &*drivers {
            let mut state = table.lock();
            // The number may be another queue pair's by now.
            if state.members.get(number).is_some_and(|it| Weak::ptr_eq(it, member)) {
                state.members.remove(number);
            }
        }
        self.ask_to_poll();
    }
}
