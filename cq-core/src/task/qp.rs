//! A queue pair that tasks share.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;
use core::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::driver::{Handle, Memberships, Serve};
use super::request::{Finished, Request, RequestError, Token, Unfinished};
use crate::device::QueuePair;
use crate::ledger::NotPosted;
use crate::setup::{Destination, Endpoint, ModifyError, Port, QpAttr, QpState};
use crate::tracked::{Credit, Done, DrainError, TrackedQp, Unlimited};
use crate::transport::Refused;
use crate::wc::Wc;
use crate::wr::{SendFlags, SendWr, Sge};

/// A queue pair on which each task awaits its own requests. Clones share it. `B` is what owns the buffers of its
/// requests. See [the module](super).
///
/// It is destroyed with its last clone; what is outstanding then is [discarded](RequestError::Discarded).
pub struct TaskQp<Q, B, const SENDS: usize, const RECEIVES: usize, C = Unlimited> {
    shared: Arc<Shared<Q, B, SENDS, RECEIVES, C>>,
}

/// The queue pair and its ledgers.
type Tracked<Q, B, const SENDS: usize, const RECEIVES: usize, C> =
    TrackedQp<Q, Token<B>, Token<B>, SENDS, RECEIVES, C>;

struct Shared<Q, B, const SENDS: usize, const RECEIVES: usize, C> {
    state: Mutex<State<Q, B, SENDS, RECEIVES, C>>,
    /// A send, and a receive, can be posted again.
    sends: Notify,
    receives: Notify,
    /// Nothing is outstanding, or nobody polls any more.
    idle: Notify,
    // Dropped last: the drivers then poll for what the reservations give back.
    memberships: Memberships,
}

struct State<Q, B, const SENDS: usize, const RECEIVES: usize, C> {
    qp: Tracked<Q, B, SENDS, RECEIVES, C>,
    /// Whether one of its completion queues is not polled any more.
    is_given_up: bool,
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
            state: Mutex::new(State { qp, is_given_up: false }),
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
    /// executed in this order.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was posted.
    ///
    /// # Errors
    /// The request was refused, or nobody polls the completion queue. [`Refused::QueueFull`]: the queue has no slots at
    /// all.
    pub async fn post_send(&self, wr: SendWr<'_>, buffer: B) -> Result<Request<B>, Unfinished<B>> {
        let wr = signaled(wr);
        self.shared.post_send(buffer, |qp, token| qp.post_send(wr, token)).await
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
        self.shared.post_send(buffer, |qp, token| qp.post_send_to(destination, wr, token)).await
    }

    /// Posts a receive, and waits only while the queue is full.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was posted.
    ///
    /// # Errors
    /// As those of [`post_send`](Self::post_send).
    pub async fn post_recv(&self, sges: &[Sge], buffer: B) -> Result<Request<B>, Unfinished<B>> {
        self.shared
            .post(&self.shared.receives, buffer, |qp, token| {
                let posted = qp.post_recv(sges, token);
                let may_wait = qp.free_receives() < qp.max_receives();
                (posted, may_wait)
            })
            .await
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
        let mut has_failed = false;
        loop {
            // Registered before the look, so that the last completion is noticed.
            let mut idle = pin!(self.shared.idle.notified());
            idle.as_mut().enable();
            {
                let mut state = self.shared.lock();
                if state.qp.is_idle() {
                    return Ok(());
                }
                if state.is_given_up {
                    return Err(DrainError::NotPolled);
                }
                if !has_failed {
                    state.qp.fail()?;
                    has_failed = true;
                }
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
        self.shared.lock().qp.reset(keep, keep)?;
        // Without the lock: a buffer that nobody waits for is dropped, whatever that does.
        tokens.into_iter().for_each(Token::discard);
        // Entries can be used again once the completion queues were polled.
        self.shared.memberships.ask_to_poll();
        Ok(())
    }
}

/// Signaled, so that it completes for its task.
fn signaled(wr: SendWr<'_>) -> SendWr<'_> {
    SendWr { flags: wr.flags | SendFlags::SIGNALED, ..wr }
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> Shared<Q, B, SENDS, RECEIVES, C>
where
    C: Credit,
{
    fn lock(&self) -> MutexGuard<'_, State<Q, B, SENDS, RECEIVES, C>> {
        // A panic of a device leaves the ledgers consistent, and no other code runs under the lock but `with`, which only
        // reads.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post_send(
        &self,
        buffer: B,
        mut post: impl FnMut(
            &mut Tracked<Q, B, SENDS, RECEIVES, C>,
            Token<B>,
        ) -> Result<(), NotPosted<Token<B>>>,
    ) -> Result<Request<B>, Unfinished<B>> {
        self.post(&self.sends, buffer, |qp, token| {
            let posted = post(qp, token);
            let may_wait = qp.free_sends() < qp.max_sends();
            (posted, may_wait)
        })
        .await
    }

    /// Posts by `post`, which also returns whether it is worth waiting for a slot. Waits for `freed` while the queue is
    /// full.
    async fn post(
        &self,
        freed: &Notify,
        buffer: B,
        mut post: impl FnMut(
            &mut Tracked<Q, B, SENDS, RECEIVES, C>,
            Token<B>,
        ) -> (Result<(), NotPosted<Token<B>>>, bool),
    ) -> Result<Request<B>, Unfinished<B>> {
        let (mut token, request) = Token::new(buffer);
        loop {
            // Registered before the attempt, so that a slot that is freed after it is noticed.
            let mut freed = pin!(freed.notified());
            freed.as_mut().enable();
            {
                let mut state = self.lock();
                if state.is_given_up {
                    return Err(token.not_posted(RequestError::NotPolled));
                }
                match post(&mut state.qp, token) {
                    (Ok(()), _) => return Ok(request),
                    (Err(NotPosted { token: back, why: Refused::QueueFull }), true) => token = back,
                    (Err(NotPosted { token, why }), _) => return Err(token.not_posted(why.into())),
                }
            }
            freed.await;
        }
    }
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> Serve for Shared<Q, B, SENDS, RECEIVES, C>
where
    Q: Send,
    B: Send,
    C: Credit + Send,
{
    fn complete(&self, wc: &Wc) {
        loop {
            // The lock is released before the task is told: a buffer that nobody waits for is dropped then, whatever that
            // does.
            let (done, is_idle) = {
                let mut state = self.lock();
                (state.qp.retire_next(wc), state.qp.is_idle())
            };
            if is_idle {
                self.idle.notify_waiters();
            }
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
        sends.chain(receives).for_each(Token::give_up);
        drop(state);
        self.wake();
        self.idle.notify_waiters();
    }
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> Clone
    for TaskQp<Q, B, SENDS, RECEIVES, C>
{
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> fmt::Debug
    for TaskQp<Q, B, SENDS, RECEIVES, C>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskQp").finish_non_exhaustive()
    }
}
