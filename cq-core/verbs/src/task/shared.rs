//! What the clones of a queue pair share, and the driver's side of it.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::{Deref, DerefMut};
use core::pin::pin;
use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread_local;

use cq_core::wc::{Failed, Wc, WcStatus};
use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

use super::driver::{Memberships, Serve};
use super::for_all::for_all;
use super::request::{Posted, RequestError, Token, UnfinishedError};
use crate::ledger::NotPostedError;
use crate::post::{Post, WrError};
use crate::tracked::{Done, TrackedQp};

/// The queue pair and its ledgers.
pub type Tracked<Q, B> = TrackedQp<Q, Token<B>>;

pub struct Shared<Q: Post, B> {
    pub state: Mutex<State<Q, B>>,
    /// A send, and a receive, can be posted again.
    pub sends: Notify,
    pub receives: Notify,
    /// Nothing is outstanding, or nobody polls any more.
    pub idle: Notify,
    // Dropped last: the drivers then poll for what the reservations give back.
    pub memberships: Memberships,
}

pub struct State<Q: Post, B> {
    pub qp: Tracked<Q, B>,
    /// The first failure since RESET that was no flush.
    pub failure: Option<Failed>,
    /// Whether one of its completion queues is not polled any more.
    pub is_given_up: bool,
    /// How often it went to RESET.
    pub resets: u64,
}

/// The locked state.
pub struct Locked<'s, S> {
    state: MutexGuard<'s, S>,
    _held: Held,
}

impl<S> Deref for Locked<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S> DerefMut for Locked<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.state
    }
}

thread_local! {
    /// The queue pairs that this thread has locked, the last one last.
    static HELD: RefCell<Vec<*const ()>> = const { RefCell::new(Vec::new()) };
}

/// An entry of [`HELD`], so that a thread that would wait for itself panics instead. A thread that ends has none any more.
struct Held;

impl Held {
    fn new(queue_pair: *const ()) -> Self {
        let is_held = HELD.try_with(|held| {
            let is_held = held.borrow().contains(&queue_pair);
            held.borrow_mut().push(queue_pair);
            is_held
        });
        let held = Self;
        assert!(
            !is_held.unwrap_or(false),
            "a query or a device's call uses the `TaskQp` that it is made by"
        );
        held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        _ = HELD.try_with(|held| held.borrow_mut().pop());
    }
}

/// Whether slots of the send queue are in use.
pub fn has_sends<Q: Post, B>(qp: &Tracked<Q, B>) -> bool {
    qp.available_sends() < qp.max_sends()
}

impl<Q: Post, B> Shared<Q, B> {
    /// Locks the queue pair. Under the lock run the device's calls and a query: no wakers, and nothing that drops a buffer.
    pub fn lock(&self) -> Locked<'_, State<Q, B>> {
        let held = Held::new(ptr::from_ref(self).cast());
        // A panic of a device leaves the ledgers consistent, and a query only reads.
        Locked { state: self.state.lock().unwrap_or_else(PoisonError::into_inner), _held: held }
    }

    /// Posts by `post`.
    pub fn try_post(
        &self,
        buffer: B,
        post: impl FnOnce(&mut Tracked<Q, B>, Token<B>) -> Attempt<B>,
    ) -> Result<Posted<B>, UnfinishedError<B>> {
        let (token, request) = Token::new(buffer);
        let mut state = self.lock();
        if state.is_given_up {
            return Err(token.not_posted(RequestError::NotPolled));
        }
        match post(&mut state.qp, token) {
            Ok(()) => Ok(request),
            Err(NotPostedError { token, why }) => Err(token.not_posted(why.into())),
        }
    }

    /// The same. While the queue is full, and its slots are in use, waits for `freed`. A task that never has to wait lets
    /// others run all the same, when its budget is used up.
    pub async fn post(
        &self,
        freed: &Notify,
        is_used: impl Fn(&Tracked<Q, B>) -> bool,
        mut buffer: B,
        mut post: impl FnMut(&mut Tracked<Q, B>, Token<B>) -> Attempt<B>,
    ) -> Result<Posted<B>, UnfinishedError<B>> {
        consume_budget().await;
        let mut wakeup = WakeUp { freed, is_unused: false };
        loop {
            // Registered before the attempt, so that a slot that is freed after it is noticed.
            let mut freed = pin!(freed.notified());
            wakeup.is_unused |= freed.as_mut().enable();
            let mut waits = false;
            let posted = self.try_post(buffer, |qp, token| {
                let posted = post(qp, token);
                let is_full = matches!(posted, Err(NotPostedError { why: WrError::QueueFull, .. }));
                waits = is_full && is_used(qp);
                posted
            });
            wakeup.is_unused &= posted.is_err() && !waits;
            match posted {
                Err(UnfinishedError { buffer: Some(back), .. }) if waits => buffer = back,
                posted => return posted,
            }
            freed.await;
            wakeup.is_unused = true;
        }
    }

    /// Wakes all tasks that wait for a slot, or until nothing is outstanding.
    pub fn wake_all(&self) {
        self.wake_posters();
        self.idle.notify_waiters();
    }

    fn wake_posters(&self) {
        self.sends.notify_waiters();
        self.receives.notify_waiters();
    }
}

/// The wake-up for a slot that was freed. A task that ends without using the slot passes it on to the next one that waits.
struct WakeUp<'n> {
    freed: &'n Notify,
    is_unused: bool,
}

impl Drop for WakeUp<'_> {
    fn drop(&mut self) {
        if self.is_unused {
            self.freed.notify_one();
        }
    }
}

/// How an attempt to post has ended.
pub type Attempt<B> = Result<(), NotPostedError<Token<B>>>;

impl<Q: Post, B> Drop for Shared<Q, B> {
    fn drop(&mut self) {
        let State { qp, .. } = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // The queue pair, which is dropped next, frees the buffers, or keeps them where the device may still use them.
        let (sends, receives) = qp.tokens_mut();
        // Also those whose buffers are kept: without its sender, a request is discarded.
        for_all(sends.chain(receives), |token| drop(token.give_up()));
    }
}

impl<Q: Post + Send, B: Send> Serve for Shared<Q, B> {
    fn complete(&self, wc: &Wc) {
        loop {
            let (done, is_idle) = {
                let mut state = self.lock();
                let done = state.qp.retire_next(wc);
                if done.is_some() && wc.status() != WcStatus::WR_FLUSH_ERR {
                    state.failure = state.failure.or(wc.result().err());
                }
                (done, state.qp.is_idle())
            };
            let (freed, token, result) = match done {
                Some(Done::Sent(sent)) => (&self.sends, sent.token, sent.result),
                Some(Done::Received(received)) => {
                    (&self.receives, received.token, received.result.map(|_| ()))
                }
                None => return,
            };
            // Without the lock: tasks are woken, and a buffer that no task waits for is dropped.
            for_all([Some(token), None, None].into_iter().enumerate(), |step| match step {
                (_, Some(token)) => token.complete(wc, result),
                (1, None) => freed.notify_one(),
                _ if is_idle => self.idle.notify_waiters(),
                _ => {}
            });
        }
    }

    fn wake(&self) {
        self.wake_posters();
    }

    fn give_up(&self) {
        let tasks: Vec<_> = {
            let mut state = self.lock();
            state.is_given_up = true;
            let (sends, receives) = state.qp.tokens_mut();
            sends.chain(receives).filter_map(Token::give_up).collect()
        };
        for_all(tasks.into_iter().map(Some).chain([None]), |task| match task {
            Some(task) => task.end(RequestError::NotPolled),
            None => self.wake_all(),
        });
    }
}
