//! A queue pair that tasks share.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::ops::Deref;
use core::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::driver::{Handle, Memberships, Serve};
use super::request::{Finished, Request, RequestError, Token, Unfinished};
use crate::budget::{Budget, BudgetedHandle, Overdrawn, Reservation};
use crate::device::{Device, ProtectionDomain, QueuePair};
use crate::ledger::NotPosted;
use crate::setup::{Destination, Endpoint, ModifyError, Port, QpAttr, QpState};
use crate::tracked::{
    CqHandle, CreateTrackedError, Credit, Done, DrainError, TrackedQp, Unlimited,
};
use crate::transport::{Post, Refused};
use crate::wc::{Failed, Wc, WcStatus};
use crate::wr::{SendFlags, SendWr, Sge};

/// A queue pair on which each task awaits its own requests. Clones share it. `B` is what owns the buffers of its
/// requests. See [the module](super).
///
/// It is destroyed with its last clone; what is outstanding then is [discarded](RequestError::Discarded).
///
/// The thread blocks where the device does: the loopback waits up to two seconds for a peer whose process is suspended in
/// the middle of a message, in [`fail`](Self::fail), [`drain`](Self::drain), [`reset`](Self::reset), and where the last
/// clone is dropped.
pub struct TaskQp<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit = Unlimited> {
    shared: Arc<Shared<Q, B, SENDS, RECEIVES, C>>,
}

/// The queue pair and its ledgers.
type Tracked<Q, B, const SENDS: usize, const RECEIVES: usize, C> =
    TrackedQp<Q, Token<B>, Token<B>, SENDS, RECEIVES, C>;

struct Shared<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> {
    state: Mutex<State<Q, B, SENDS, RECEIVES, C>>,
    /// A send, and a receive, can be posted again.
    sends: Notify,
    receives: Notify,
    /// Nothing is outstanding, or nobody polls any more.
    idle: Notify,
    // Dropped last: the drivers then poll for what the reservations give back.
    memberships: Memberships,
}

struct State<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> {
    qp: Tracked<Q, B, SENDS, RECEIVES, C>,
    /// The first failure since RESET that was no flush.
    failure: Option<Failed>,
    /// Whether one of its completion queues is not polled any more.
    is_given_up: bool,
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, O>
    TaskQp<Q, B, SENDS, RECEIVES, Reservation<O>>
where
    Q: QueuePair,
    B: Send + 'static,
    O: Deref<Target = Budget> + Clone + Send + 'static,
{
    /// How many entries of the completion queue it reserves.
    pub const ENTRIES: u32 =
        TrackedQp::<Q, Token<B>, Token<B>, SENDS, RECEIVES, Reservation<O>>::ENTRIES;

    /// Creates a queue pair for a completion queue that this driver polls: as [`TrackedQp::create`], so that up to 64 bytes
    /// are sent inline ([`QpCaps::USUAL`](crate::setup::QpCaps::USUAL)). If entries were given back that are not free yet,
    /// it waits for them.
    ///
    /// For other capacities, [`TrackedQp::create_with`] creates what [`new`](Self::new) shares:
    ///
    /// ```
    /// # use cq_core::budget::{Budgeted, Entries};
    /// # use cq_core::device::Device;
    /// # use cq_core::task::{Channel, Driver, Slot, TaskQp};
    /// # use cq_core::tracked::{CreateTrackedError, TrackedQp};
    /// # type Qp<D> = TaskQp<<D as Device>::Qp, Slot<<D as Device>::Memory>, 8, 8, Entries>;
    /// # type Polling<D> = Driver<Budgeted<<D as Device>::Cq, std::sync::Arc<cq_core::budget::Budget>>, Channel<<D as Device>::Channel>>;
    /// # fn create<D: Device>(pd: &D::Pd, driver: &Polling<D>) -> Result<Qp<D>, CreateTrackedError> {
    /// let (queue, handle) = (driver.queue(), driver.handle());
    /// let qp = TrackedQp::create_with(pd, [&queue, &queue], |init| init.caps.max_inline = 256)?;
    /// Ok(TaskQp::new(qp, &[&handle]))
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was created.
    ///
    /// # Errors
    /// The completion queue has fewer entries free, or the device refused. Nothing was reserved.
    pub async fn create<P>(
        pd: &P,
        cq: &BudgetedHandle<CqHandle<P>, O>,
        driver: &Handle,
    ) -> Result<Self, CreateTrackedError>
    where
        P: ProtectionDomain<Device: Device<Qp = Q>>,
    {
        loop {
            match TrackedQp::create(pd, cq) {
                Err(CreateTrackedError::Overdrawn(Overdrawn { pending: true, .. }))
                    if driver.settle().await => {}
                created => return Ok(Self::new(created?, &[driver])),
            }
        }
    }
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> TaskQp<Q, B, SENDS, RECEIVES, C>
where
    Q: QueuePair,
    B: Send + 'static,
    C: Credit + Send + 'static,
{
    /// Shares a queue pair whose completion queues are polled by these drivers: by one if it has the same for sends and
    /// receives, else by both. Without a driver, every request ends with [`NotPolled`](RequestError::NotPolled).
    pub fn new(
        qp: TrackedQp<Q, Token<B>, Token<B>, SENDS, RECEIVES, C>,
        drivers: &[&Handle],
    ) -> Self {
        let number = qp.get_ref().number();
        let shared = Arc::new_cyclic(|shared: &Weak<Shared<_, _, SENDS, RECEIVES, _>>| Shared {
            state: Mutex::new(State { qp, failure: None, is_given_up: false }),
            sends: Notify::new(),
            receives: Notify::new(),
            idle: Notify::new(),
            memberships: Memberships::new(number, shared.clone(), drivers),
        });
        if shared.memberships.is_over() {
            shared.give_up();
        }
        Self { shared }
    }

    /// Sends, and waits until the request has completed. The request is signaled.
    ///
    /// # Cancel safety
    /// If the future is dropped, the request may be posted or not; if it is, the device executes it, and the buffer stays
    /// with the queue pair until then.
    ///
    /// # Errors
    /// The request was refused, failed or was discarded, or nobody polls the completion queue.
    pub async fn send(&self, wr: SendWr<'_>, buffer: B) -> Result<Finished<B>, Unfinished<B>> {
        self.post_send(wr, buffer).await?.await
    }

    /// Posts a receive, and waits until a message has arrived in it.
    ///
    /// # Cancel safety
    /// As that of [`send`](Self::send). A receive that was posted takes the next message in any case.
    ///
    /// # Errors
    /// As those of [`send`](Self::send).
    pub async fn receive(&self, sges: &[Sge], buffer: B) -> Result<Finished<B>, Unfinished<B>> {
        self.post_recv(sges, buffer).await?.await
    }

    /// Posts a send, and waits only while the queue is full. Requests that one task posts one after the other are
    /// executed in this order. The request is signaled.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was posted.
    ///
    /// # Errors
    /// The request was refused, or nobody polls the completion queue. [`Refused::QueueFull`]: the queue has no slots at
    /// all.
    pub async fn post_send(&self, wr: SendWr<'_>, buffer: B) -> Result<Request<B>, Unfinished<B>> {
        let wr = signaled(wr);
        self.shared
            .post(&self.shared.sends, has_sends, buffer, |qp, token| qp.post_send(wr, token))
            .await
    }

    /// Sends a datagram, and waits until the request has completed: as [`send`](Self::send).
    ///
    /// # Cancel safety
    /// As that of `send`.
    ///
    /// # Errors
    /// As those of `send`.
    pub async fn send_to(
        &self,
        destination: &Destination<'_, Q::Ah>,
        wr: SendWr<'_>,
        buffer: B,
    ) -> Result<Finished<B>, Unfinished<B>> {
        self.post_send_to(destination, wr, buffer).await?.await
    }

    /// Posts a datagram to a destination: as [`post_send`](Self::post_send).
    ///
    /// # Cancel safety
    /// As that of `post_send`.
    ///
    /// # Errors
    /// As those of `post_send`.
    pub async fn post_send_to(
        &self,
        destination: &Destination<'_, Q::Ah>,
        wr: SendWr<'_>,
        buffer: B,
    ) -> Result<Request<B>, Unfinished<B>> {
        let wr = signaled(wr);
        self.shared
            .post(&self.shared.sends, has_sends, buffer, |qp, token| {
                qp.post_send_to(destination, wr, token)
            })
            .await
    }

    /// Posts a receive, and waits only while the queue is full. Receives that one task posts one after the other take
    /// messages in this order.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was posted.
    ///
    /// # Errors
    /// As those of [`post_send`](Self::post_send).
    pub async fn post_recv(&self, sges: &[Sge], buffer: B) -> Result<Request<B>, Unfinished<B>> {
        let has_receives =
            |qp: &mut Tracked<_, _, SENDS, RECEIVES, _>| qp.free_receives() < qp.max_receives();
        self.shared
            .post(&self.shared.receives, has_receives, buffer, |qp, token| {
                qp.post_recv(sges, token)
            })
            .await
    }

    /// Posts a send at once: for requests that belong together, such as a receive for the answer and the question, of
    /// which a future that is dropped between the two would leave the first.
    ///
    /// # Errors
    /// As those of [`post_send`](Self::post_send). [`Refused::QueueFull`]: no slot is free now.
    pub fn try_post_send(&self, wr: SendWr<'_>, buffer: B) -> Result<Request<B>, Unfinished<B>> {
        let wr = signaled(wr);
        self.shared.try_post(buffer, |qp, token| qp.post_send(wr, token))
    }

    /// Posts a receive at once: as [`try_post_send`](Self::try_post_send).
    ///
    /// # Errors
    /// As those of `try_post_send`.
    pub fn try_post_recv(&self, sges: &[Sge], buffer: B) -> Result<Request<B>, Unfinished<B>> {
        self.shared.try_post(buffer, |qp, token| qp.post_recv(sges, token))
    }

    /// Why the queue pair has failed: the first failure of a request since RESET that was no flush. Of several tasks that
    /// await requests then, chance decides which one gets it.
    #[must_use]
    pub fn failure(&self) -> Option<Failed> {
        self.shared.lock().failure
    }

    /// Calls `query` with the queue pair: for its endpoint, its state. Other tasks wait meanwhile, and `query` must not use
    /// this `TaskQp`.
    pub fn with<T>(&self, query: impl FnOnce(&Q) -> T) -> T {
        query(self.shared.lock().qp.get_ref())
    }

    /// Connects to a peer: as [`QueuePair::connect`].
    ///
    /// # Errors
    /// As those of `QueuePair::connect`.
    pub fn connect(&self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        self.shared.lock().qp.connect(port, peer)
    }

    /// Activates a UD queue pair: as [`QueuePair::activate`].
    ///
    /// # Errors
    /// As those of `QueuePair::activate`.
    pub fn activate(&self, port: &Port, qkey: u32) -> Result<(), ModifyError> {
        self.shared.lock().qp.activate(port, qkey)
    }

    /// Changes state and attributes: as [`QueuePair::modify`]. To RESET it is [`reset`](Self::reset).
    ///
    /// # Errors
    /// As those of `QueuePair::modify`.
    pub fn modify(&self, attr: &QpAttr) -> Result<(), ModifyError> {
        match attr.state {
            Some(QpState::RESET) => self.reset(),
            _ => self.shared.lock().qp.modify(attr),
        }
    }

    /// Goes to ERR: outstanding requests fail with WR_FLUSH.
    ///
    /// # Errors
    /// As those of `QueuePair::modify`.
    pub fn fail(&self) -> Result<(), ModifyError> {
        self.modify(&QpAttr::to(QpState::ERR))
    }

    /// Goes to ERR, and waits until everything outstanding was flushed ([Q2](crate::contract#q2)): the device uses no buffer
    /// any more. Those who await requests get them back at the same time.
    ///
    /// # Cancel safety
    /// If the future is dropped, the queue pair is in ERR, or stays as it was if the future was never polled. Draining it
    /// again goes on.
    ///
    /// # Errors
    /// The queue pair can't go to ERR, or nobody polls a completion queue any more.
    pub async fn drain(&self) -> Result<(), DrainError> {
        loop {
            // It is told from here on, and so of the last completion, if that comes after the look.
            let idle = self.shared.idle.notified();
            {
                let mut state = self.shared.lock();
                if state.qp.is_idle() {
                    return Ok(());
                }
                if state.is_given_up {
                    return Err(DrainError::NotPolled);
                }
                state.qp.fail()?;
            }
            idle.await;
        }
    }

    /// Goes to RESET. Outstanding requests are [discarded](RequestError::Discarded), and return their buffers.
    ///
    /// # Errors
    /// The device refused. Nothing was discarded.
    pub fn reset(&self) -> Result<(), ModifyError> {
        let mut tokens = Vec::new();
        let tokens_of = RefCell::new(&mut tokens);
        let keep = |token| tokens_of.borrow_mut().push(token);
        {
            let mut state = self.shared.lock();
            state.qp.reset(keep, keep)?;
            state.failure = None;
        }
        // Without the lock: a buffer that nobody waits for is dropped, whatever that does.
        tokens.into_iter().for_each(Token::discard);
        // Entries can be used again once the completion queues were polled.
        self.shared.memberships.ask_to_poll();
        Ok(())
    }
}

/// Whether slots of the send queue are in use.
fn has_sends<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit>(
    qp: &mut Tracked<Q, B, SENDS, RECEIVES, C>,
) -> bool {
    qp.free_sends() < qp.max_sends()
}

/// Signaled, so that it completes for its task.
fn signaled(wr: SendWr<'_>) -> SendWr<'_> {
    SendWr { flags: wr.flags | SendFlags::SIGNALED, ..wr }
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> Shared<Q, B, SENDS, RECEIVES, C>
where
    Q: Post,
    C: Credit,
{
    fn lock(&self) -> MutexGuard<'_, State<Q, B, SENDS, RECEIVES, C>> {
        // A panic of a device leaves the ledgers consistent, and no other code runs under the lock but `with`, which only
        // reads.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts by `post`.
    fn try_post(
        &self,
        buffer: B,
        post: impl FnOnce(&mut Tracked<Q, B, SENDS, RECEIVES, C>, Token<B>) -> Posted<B>,
    ) -> Result<Request<B>, Unfinished<B>> {
        let (token, request) = Token::new(buffer);
        let mut state = self.lock();
        if state.is_given_up {
            return Err(token.not_posted(RequestError::NotPolled));
        }
        match post(&mut state.qp, token) {
            Ok(()) => Ok(request),
            Err(NotPosted { token, why }) => Err(token.not_posted(why.into())),
        }
    }

    /// The same. While the queue is full, and its slots are in use, waits for `freed`.
    async fn post(
        &self,
        freed: &Notify,
        is_used: impl Fn(&mut Tracked<Q, B, SENDS, RECEIVES, C>) -> bool,
        mut buffer: B,
        mut post: impl FnMut(&mut Tracked<Q, B, SENDS, RECEIVES, C>, Token<B>) -> Posted<B>,
    ) -> Result<Request<B>, Unfinished<B>> {
        loop {
            // Registered before the attempt, so that a slot that is freed after it is noticed.
            let mut freed = pin!(freed.notified());
            freed.as_mut().enable();
            let mut waits = false;
            let posted = self.try_post(buffer, |qp, token| {
                let posted = post(qp, token);
                let is_full = matches!(posted, Err(NotPosted { why: Refused::QueueFull, .. }));
                waits = is_full && is_used(qp);
                posted
            });
            match posted {
                Err(Unfinished { buffer: Some(back), .. }) if waits => buffer = back,
                posted => return posted,
            }
            freed.await;
        }
    }
}

/// How an attempt to post has ended.
type Posted<B> = Result<(), NotPosted<Token<B>>>;

impl<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> Drop
    for Shared<Q, B, SENDS, RECEIVES, C>
{
    fn drop(&mut self) {
        let State { qp, .. } = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if qp.quiesce() {
            // A token that is dropped tells its task.
            qp.discard(drop, drop);
        } else {
            let (sends, receives) = qp.tokens_mut();
            sends.chain(receives).for_each(|token| token.give_up(RequestError::Discarded));
        }
    }
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> Serve for Shared<Q, B, SENDS, RECEIVES, C>
where
    Q: Post + Send,
    B: Send,
    C: Credit + Send,
{
    fn complete(&self, wc: &Wc) {
        loop {
            // The lock is released before the task is told: a buffer that nobody waits for is dropped then, whatever that
            // does.
            let (done, is_idle) = {
                let mut state = self.lock();
                let done = state.qp.retire_next(wc);
                if done.is_some() && wc.status() != WcStatus::WR_FLUSH_ERR {
                    state.failure = state.failure.or(wc.result().err());
                }
                (done, state.qp.is_idle())
            };
            match done {
                Some(Done::Sent(sent)) => {
                    self.sends.notify_one();
                    sent.token.complete(wc, sent.result);
                }
                Some(Done::Received(received)) => {
                    self.receives.notify_one();
                    received.token.complete(wc, received.result.map(|_| ()));
                }
                None => return,
            }
            if is_idle {
                self.idle.notify_waiters();
            }
        }
    }

    fn wake(&self) {
        self.sends.notify_waiters();
        self.receives.notify_waiters();
    }

    fn give_up(&self) {
        let mut state = self.lock();
        state.is_given_up = true;
        let (sends, receives) = state.qp.tokens_mut();
        sends.chain(receives).for_each(|token| token.give_up(RequestError::NotPolled));
        drop(state);
        self.wake();
        self.idle.notify_waiters();
    }
}

impl<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> Clone
    for TaskQp<Q, B, SENDS, RECEIVES, C>
{
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> fmt::Debug
    for TaskQp<Q, B, SENDS, RECEIVES, C>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskQp").finish_non_exhaustive()
    }
}
