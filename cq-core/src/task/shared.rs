//! What the clones of a queue pair share, and the driver's side of it.

use core::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::driver::{Memberships, Serve};
use super::request::{Request, RequestError, Token, Unfinished};
use crate::ledger::NotPosted;
use crate::tracked::{Credit, Done, TrackedQp};
use crate::transport::{Post, Refused};
use crate::wc::{Failed, Wc, WcStatus};

/// The queue pair and its ledgers.
pub type Tracked<Q, B, const SENDS: usize, const RECEIVES: usize, C> =
    TrackedQp<Q, Token<B>, Token<B>, SENDS, RECEIVES, C>;

pub struct Shared<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> {
    pub state: Mutex<State<Q, B, SENDS, RECEIVES, C>>,
    /// A send, and a receive, can be posted again.
    pub sends: Notify,
    pub receives: Notify,
    /// Nothing is outstanding, or nobody polls any more.
    pub idle: Notify,
    // Dropped last: the drivers then poll for what the reservations give back.
    pub memberships: Memberships,
}

pub struct State<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> {
    pub qp: Tracked<Q, B, SENDS, RECEIVES, C>,
    /// The first failure since RESET that was no flush.
    pub failure: Option<Failed>,
    /// Whether one of its completion queues is not polled any more.
    pub is_given_up: bool,
}

/// Whether slots of the send queue are in use.
pub fn has_sends<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit>(
    qp: &mut Tracked<Q, B, SENDS, RECEIVES, C>,
) -> bool {
    qp.free_sends() < qp.max_sends()
}

impl<Q, B, const SENDS: usize, const RECEIVES: usize, C> Shared<Q, B, SENDS, RECEIVES, C>
where
    Q: Post,
    C: Credit,
{
    pub fn lock(&self) -> MutexGuard<'_, State<Q, B, SENDS, RECEIVES, C>> {
        // A panic of a device leaves the ledgers consistent, and no other code runs under the lock but `with`, which only
        // reads.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts by `post`.
    pub fn try_post(
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
    pub async fn post(
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
pub type Posted<B> = Result<(), NotPosted<Token<B>>>;

impl<Q: Post, B, const SENDS: usize, const RECEIVES: usize, C: Credit> Drop
    for Shared<Q, B, SENDS, RECEIVES, C>
{
    fn drop(&mut self) {
        let State { qp, .. } = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The queue pair, which is dropped next, frees the buffers, or keeps them where the device may still use them.
        let (sends, receives) = qp.tokens_mut();
        sends.chain(receives).for_each(|token| token.give_up(RequestError::Discarded));
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
