//! A queue pair that tasks share.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;
use std::sync::Mutex;

use cq_core::wc::Failed;
use tokio::sync::Notify;

use super::driver::{Handle, Memberships, Serve};
use super::for_all::for_all;
use super::request::{Finished, Posted, Token, UnfinishedError};
use super::shared::{Shared, State, Tracked, has_sends};
use crate::device::DeviceQp;
use crate::post::Post;
use crate::setup::{Destination, Endpoint, ModifyError, Port, QpAttr, QpState};
use crate::tracked::{DrainError, TrackedQp};
use crate::wr::{SendFlags, SendWr, Sge};

/// A queue pair on which each task awaits its own requests. Clones share it. `B` is what owns the buffers of its
/// requests. See [the module](super).
///
/// It is destroyed with its last clone; what is outstanding then is [discarded](super::RequestError::Discarded).
///
/// The thread blocks where the device does: the loopback waits up to two seconds for a peer whose process is suspended in
/// the middle of a message, in [`fail`](Self::fail), [`drain`](Self::drain), [`reset`](Self::reset), and where the last
/// clone is dropped.
///
/// # Panics
/// A device that wakes a task within a call, as one in software can, must not be used with an executor that polls within
/// `wake`: a method of the same `TaskQp` that is called then, also by its [`Driver`](super::Driver), panics.
pub struct TaskQp<Q: Post, B> {
    shared: Arc<Shared<Q, B>>,
}

impl<Q: DeviceQp, B: Send + 'static> TaskQp<Q, B> {
    /// Shares a queue pair whose completion queues are polled by these drivers: by one if it has the same for sends and
    /// receives, else by both. Without a driver, every request ends with [`NotPolled`](super::RequestError::NotPolled).
    pub fn new(qp: TrackedQp<Q, Token<B>>, drivers: &[&Handle]) -> Self {
        let number = qp.get_ref().number();
        let shared = Arc::new_cyclic(|shared: &Weak<Shared<_, _>>| Shared {
            state: Mutex::new(State { qp, failure: None, is_given_up: false, resets: 0 }),
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
    pub async fn send(&self, wr: SendWr<'_>, buffer: B) -> Result<Finished<B>, UnfinishedError<B>> {
        self.post_send(wr, buffer).await?.await
    }

    /// Posts a receive, and waits until a message has arrived in it.
    ///
    /// # Cancel safety
    /// As that of [`send`](Self::send). A receive that was posted takes the next message in any case.
    ///
    /// # Errors
    /// As those of [`send`](Self::send).
    pub async fn receive(
        &self,
        sges: &[Sge],
        buffer: B,
    ) -> Result<Finished<B>, UnfinishedError<B>> {
        self.post_recv(sges, buffer).await?.await
    }

    /// Posts a send, and waits only while the queue is full. Requests that one task posts one after the other are
    /// executed in this order. The request is signaled.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was posted.
    ///
    /// # Errors
    /// The request was refused, or nobody polls the completion queue.
    /// [`QueueFull`](crate::post::WrError::QueueFull): the queue has no slots at all.
    pub async fn post_send(
        &self,
        wr: SendWr<'_>,
        buffer: B,
    ) -> Result<Posted<B>, UnfinishedError<B>> {
        let post = |qp: &mut Tracked<_, _>, token| qp.post_send(signaled(wr), token);
        self.shared.post(&self.shared.sends, has_sends, buffer, post).await
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
    ) -> Result<Finished<B>, UnfinishedError<B>> {
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
    ) -> Result<Posted<B>, UnfinishedError<B>> {
        let wr = signaled(wr);
        let post = |qp: &mut Tracked<Q, _>, token| qp.post_send_to(destination, wr, token);
        self.shared.post(&self.shared.sends, has_sends, buffer, post).await
    }

    /// Posts a receive, and waits only while the queue is full. Receives that one task posts one after the other take
    /// messages in this order.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing was posted.
    ///
    /// # Errors
    /// As those of [`post_send`](Self::post_send).
    pub async fn post_recv(
        &self,
        sges: &[Sge],
        buffer: B,
    ) -> Result<Posted<B>, UnfinishedError<B>> {
        let has_receives = |qp: &Tracked<_, _>| qp.available_receives() < qp.max_receives();
        let post = |qp: &mut Tracked<_, _>, token| qp.post_recv(sges, token);
        self.shared.post(&self.shared.receives, has_receives, buffer, post).await
    }

    /// Posts a send at once: for requests that belong together, such as a receive for the answer and the question, of
    /// which a future that is dropped between the two would leave the first.
    ///
    /// # Errors
    /// As those of [`post_send`](Self::post_send). [`QueueFull`](crate::post::WrError::QueueFull): no slot is free
    /// now.
    pub fn try_post_send(
        &self,
        wr: SendWr<'_>,
        buffer: B,
    ) -> Result<Posted<B>, UnfinishedError<B>> {
        self.shared.try_post(buffer, |qp, token| qp.post_send(signaled(wr), token))
    }

    /// Posts a receive at once: as [`try_post_send`](Self::try_post_send).
    ///
    /// # Errors
    /// As those of `try_post_send`.
    pub fn try_post_recv(&self, sges: &[Sge], buffer: B) -> Result<Posted<B>, UnfinishedError<B>> {
        self.shared.try_post(buffer, |qp, token| qp.post_recv(sges, token))
    }

    /// The most receives that can be outstanding.
    pub(super) fn max_receives(&self) -> usize {
        self.shared.lock().qp.max_receives()
    }

    /// Why the queue pair has failed: the first failure of a request since RESET that was no flush. Of several tasks that
    /// await requests then, chance decides which one gets it.
    #[must_use]
    pub fn failure(&self) -> Option<Failed> {
        self.shared.lock().failure
    }

    /// Calls `query` with the queue pair: for its endpoint, its state. Other threads that use this `TaskQp` wait meanwhile.
    ///
    /// # Panics
    /// `query` uses this `TaskQp`.
    pub fn query<T>(&self, query: impl FnOnce(&Q) -> T) -> T {
        query(self.shared.lock().qp.get_ref())
    }

    /// Connects to a peer: as [`DeviceQp::connect`].
    ///
    /// # Errors
    /// As those of `DeviceQp::connect`.
    pub fn connect(&self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        self.shared.lock().qp.connect(port, peer)
    }

    /// Activates a UD queue pair: as [`DeviceQp::activate`].
    ///
    /// # Errors
    /// As those of `DeviceQp::activate`.
    pub fn activate(&self, port: &Port, qkey: u32) -> Result<(), ModifyError> {
        self.shared.lock().qp.activate(port, qkey)
    }

    /// Changes state and attributes: as [`DeviceQp::modify`]. To RESET it is [`reset`](Self::reset).
    ///
    /// # Errors
    /// As those of `DeviceQp::modify`.
    pub fn modify(&self, attr: &QpAttr) -> Result<(), ModifyError> {
        match attr.state {
            Some(QpState::RESET) => self.reset(),
            _ => self.shared.lock().qp.modify(attr),
        }
    }

    /// Goes to ERR: outstanding requests fail with WR_FLUSH.
    ///
    /// # Errors
    /// As those of `DeviceQp::modify`.
    pub fn fail(&self) -> Result<(), ModifyError> {
        self.modify(&QpAttr::new().state(QpState::ERR))
    }

    /// Goes to ERR, and waits until everything outstanding was flushed ([Q2](cq_core::contract#q2)): the device uses no buffer
    /// any more. Those who await requests get them back at the same time. It also ends when another task
    /// [resets](Self::reset) the queue pair.
    ///
    /// # Cancel safety
    /// If the future is dropped, the queue pair is in ERR, or stays as it was if the future was never polled. Draining it
    /// again goes on.
    ///
    /// # Errors
    /// The queue pair can't go to ERR, or nobody polls a completion queue any more.
    pub async fn drain(&self) -> Result<(), DrainError> {
        let resets = self.shared.lock().resets;
        loop {
            // It is notified from here on, and so of the last completion, if that comes after the check.
            let idle = self.shared.idle.notified();
            {
                let mut state = self.shared.lock();
                if state.qp.is_idle() || state.resets != resets {
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

    /// Goes to RESET. Outstanding requests are [discarded](super::RequestError::Discarded), and return their buffers.
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
            (state.failure, state.resets) = (None, state.resets + 1);
        }
        // Entries can be used again once the completion queues were polled.
        self.shared.memberships.ask_to_poll();
        // Without the lock: tasks are woken, and buffers that no task waits for are dropped.
        for_all(tokens.into_iter().map(Some).chain([None]), |token| match token {
            Some(token) => token.discard(),
            None => self.shared.wake_all(),
        });
        Ok(())
    }
}

/// Signaled, so that it completes for its task.
fn signaled(wr: SendWr<'_>) -> SendWr<'_> {
    SendWr { flags: wr.flags | SendFlags::SIGNALED, ..wr }
}

impl<Q: Post, B> Clone for TaskQp<Q, B> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

cq_core::debug_of!([Q: Post, B] TaskQp<Q, B> {});
