//! A queue pair and its ledgers.

use core::mem;
use core::ops::ControlFlow;

use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;

use super::Unlimited;
use super::credit::Credit;
use super::left::Left;
use crate::device::QueuePair;
use crate::ledger::{
    Generation, NotPosted, ReapError, Reaped, Received, Receives, Sends, Sent, post_or_reap,
};
use crate::polling::PollWc;
use crate::post::{Post, PostError, Refused};
use crate::setup::{Destination, Endpoint, ModifyError, Port, QpAttr, QpState};
use crate::wr::{RecvWr, SendWr, Sge};

/// A queue pair whose requests carry tokens, of type `S` for sends and `R` for receives, of which at most `SENDS` and
/// `RECEIVES` are outstanding. See [the module](super).
///
/// With a shared receive queue, which has [its own](super::TrackedSrq), `RECEIVES` is 0.
///
/// Dropping destroys the queue pair, then drops the tokens of outstanding requests, and gives back what is reserved. If the
/// device [can't end](Post::quiesce) the use of their buffers, as the loopback while a peer's process is suspended in the
/// middle of a message, it leaks the tokens and keeps the reservations for ever.
#[derive(Debug)]
pub struct TrackedQp<Q, S, R, const SENDS: usize, const RECEIVES: usize, C = Unlimited>
where
    Q: Post,
    C: Credit,
{
    // Destroyed first, so that nothing completes any more when the reservations are dropped.
    pub(super) qp: Q,
    pub(super) sends: Sends<S, SENDS>,
    pub(super) receives: Receives<R, RECEIVES>,
    pub(super) left: Left<RECEIVES>,
    send_credit: C,
    recv_credit: C,
}

/// A request that has completed.
#[derive(Clone, Copy, Debug)]
pub enum Done<'w, S, R> {
    /// A send.
    Sent(Sent<S>),
    /// A receive.
    Received(Received<'w, R>),
}

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize> TrackedQp<Q, S, R, SENDS, RECEIVES> {
    /// Keeps the ledgers of a queue pair on which nothing is outstanding. Its completion queues can overrun.
    #[must_use]
    pub fn new(qp: Q) -> Self {
        Self::with(qp, Unlimited, Unlimited)
    }
}

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit>
    TrackedQp<Q, S, R, SENDS, RECEIVES, C>
{
    /// Keeps the ledgers of a queue pair on which nothing is outstanding. It uses no more entries of the completion
    /// queue of its sends than `sends` has reserved there, and of that of its receives no more than `receives`.
    pub(super) fn with(qp: Q, sends: C, receives: C) -> Self {
        Self {
            qp,
            sends: Sends::new(Generation::unique()),
            receives: Receives::new(Generation::unique()),
            left: Left::new(),
            send_credit: sends,
            recv_credit: receives,
        }
    }
}

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit>
    TrackedQp<Q, S, R, SENDS, RECEIVES, C>
{
    /// Returns the queue pair. What is posted or modified by another way is not accounted for.
    pub const fn get_ref(&self) -> &Q {
        &self.qp
    }

    /// How many sends are outstanding.
    #[must_use]
    pub const fn sends_outstanding(&self) -> usize {
        self.sends.outstanding()
    }

    /// How many receives are outstanding.
    #[must_use]
    pub const fn receives_outstanding(&self) -> usize {
        self.receives.outstanding()
    }

    /// How many sends can be posted now.
    pub fn free_sends(&mut self) -> usize {
        self.limit_sends().0.free()
    }

    /// How many receives can be posted now.
    pub fn free_receives(&mut self) -> usize {
        self.limit_receives().0.free()
    }

    /// The most sends that can be outstanding. After a [reset](Self::reset) they are fewer for a while.
    #[must_use]
    pub fn max_sends(&self) -> usize {
        SENDS.min(self.send_credit.entries())
    }

    /// The most receives that can be outstanding. After a [reset](Self::reset) they are fewer for a while.
    #[must_use]
    pub fn max_receives(&self) -> usize {
        RECEIVES.min(self.recv_credit.entries())
    }

    /// The tokens of all outstanding requests, sends first, in no particular order.
    pub fn tokens_mut(&mut self) -> (impl Iterator<Item = &mut S>, impl Iterator<Item = &mut R>) {
        (self.sends.tokens_mut(), self.receives.tokens_mut())
    }

    /// Whether nothing is outstanding.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.sends_outstanding() == 0 && self.receives_outstanding() == 0
    }

    /// Goes to RESET by `reset`: see [`reset`](Self::reset). For a queue pair without the traits of
    /// [`device`](crate::device), such as that of a firmware's own device.
    ///
    /// # Errors
    /// That of `reset`. Nothing was discarded.
    pub fn reset_by<E>(
        &mut self,
        reset: impl FnOnce(&mut Q) -> Result<(), E>,
        sent: impl FnMut(S),
        received: impl FnMut(R),
    ) -> Result<(), E> {
        reset(&mut self.qp)?;
        self.send_credit.discard(self.sends.outstanding());
        self.recv_credit.discard(self.receives.outstanding());
        // Both ledgers are in order before the caller's code runs. If that panics, the other tokens are dropped.
        let given_up = self.sends.give_up(Generation::unique());
        self.receives.give_up(Generation::unique());
        self.left.clear();
        let (mut sends, mut receives) = (self.sends.discard(given_up), self.receives.discard());
        sends.by_ref().for_each(sent);
        receives.by_ref().for_each(received);
        Ok(())
    }

    /// Limits the sends to what may be outstanding now. Returns what posts them: their ledger, and the queue pair.
    fn limit_sends(&mut self) -> (&mut Sends<S, SENDS>, &mut Q) {
        self.sends.set_limit(self.send_credit.usable());
        (&mut self.sends, &mut self.qp)
    }

    /// The same, of receives.
    fn limit_receives(&mut self) -> (&mut Receives<R, RECEIVES>, &mut Q) {
        self.receives.set_limit(self.recv_credit.usable());
        (&mut self.receives, &mut self.qp)
    }
}

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit>
    TrackedQp<Q, S, R, SENDS, RECEIVES, C>
{
    /// Posts a send with a token: as [`Sends::post`].
    ///
    /// # Errors
    /// The request was refused. [`Refused::QueueFull`]: as many as may be are
    /// outstanding; poll, and retire.
    pub fn post_send(&mut self, wr: SendWr<'_>, token: S) -> Result<(), NotPosted<S>> {
        let (sends, qp) = self.limit_sends();
        sends.post(qp, wr, token)
    }

    /// Posts a send. While as many as may be are outstanding, polls: as [`Sends::post_or_reap`].
    ///
    /// # Errors
    /// The request was refused, the completion queue failed, or `reaped` ended the wait. The token is returned.
    pub fn post_send_or_reap<T: PollWc>(
        &mut self,
        wr: SendWr<'_>,
        token: S,
        cq: &mut CompletionQueue<T>,
        buffer: &mut [Wc],
        reaped: impl FnMut(Reaped<'_, Done<'_, S, R>>) -> ControlFlow<()>,
    ) -> Result<(), NotPosted<S, ReapError>> {
        let post = |qp: &mut Self, token| qp.post_send(wr, token);
        post_or_reap(self, token, cq, buffer, post, reaped)
    }

    /// Posts a list of sends: as [`Sends::post_list`].
    ///
    /// # Errors
    /// A request was refused ([Q4](cq_core::contract#q4)). Those before it are posted.
    pub fn post_sends(
        &mut self,
        list: &mut [SendWr<'_>],
        token: impl FnMut(usize) -> S,
    ) -> Result<(), PostError> {
        let (sends, qp) = self.limit_sends();
        sends.post_list(qp, list, token)
    }

    /// Posts a receive with a token: as [`Receives::post`].
    ///
    /// # Errors
    /// The receive was refused. [`Refused::QueueFull`]: as many as may be are
    /// outstanding; poll, and retire.
    pub fn post_recv(&mut self, sges: &[Sge], token: R) -> Result<(), NotPosted<R>> {
        let (receives, qp) = self.limit_receives();
        receives.post(qp, sges, token)
    }

    /// Posts a list of receives: as [`Receives::post_list`].
    ///
    /// # Errors
    /// A receive was refused ([Q4](cq_core::contract#q4)). Those before it are posted.
    pub fn post_recvs(
        &mut self,
        list: &mut [RecvWr<'_>],
        token: impl FnMut(usize) -> R,
    ) -> Result<(), PostError> {
        let (receives, qp) = self.limit_receives();
        receives.post_list(qp, list, token)
    }

    /// Posts `count` receives of one buffer each: as [`Receives::fill`].
    ///
    /// # Errors
    /// A receive was refused. Those before it are posted.
    pub fn fill_receives(
        &mut self,
        count: usize,
        sge: impl FnMut(usize) -> Sge,
        token: impl FnMut(usize) -> R,
    ) -> Result<(), PostError> {
        let (receives, qp) = self.limit_receives();
        receives.fill(qp, count, sge, token)
    }
}

impl<Q: QueuePair, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit>
    TrackedQp<Q, S, R, SENDS, RECEIVES, C>
{
    /// Posts a datagram to a destination, with a token: as [`post_send`](Self::post_send).
    ///
    /// # Errors
    /// As those of `post_send`.
    pub fn post_send_to(
        &mut self,
        destination: &Destination<'_, Q::Ah>,
        wr: SendWr<'_>,
        token: S,
    ) -> Result<(), NotPosted<S>> {
        let (sends, qp) = self.limit_sends();
        sends.post(&mut qp.to(destination), wr, token)
    }

    /// Connects to a peer: as [`QueuePair::connect`].
    ///
    /// # Errors
    /// As those of `QueuePair::connect`.
    pub fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        self.qp.connect(port, peer)
    }

    /// Activates a UD queue pair: as [`QueuePair::activate`].
    ///
    /// # Errors
    /// As those of `QueuePair::activate`.
    pub fn activate(&mut self, port: &Port, qkey: u32) -> Result<(), ModifyError> {
        self.qp.activate(port, qkey)
    }

    /// Goes to ERR: everything outstanding is flushed ([Q2](cq_core::contract#q2)). An unsignaled send that was executed
    /// before is not: if the last one is unsignaled, an empty send is posted behind it, without a token, whose completion
    /// covers it. So after this call everything outstanding is retired by completions.
    ///
    /// # Errors
    /// The queue pair is in RESET, where nothing is outstanding, or the device refused. [`FailError::Marker`]: it goes to
    /// ERR, but refuses the empty send; a UD queue pair does.
    pub fn fail(&mut self) -> Result<(), FailError> {
        self.qp.modify(&QpAttr::to(QpState::ERR))?;
        Ok(self.sends.post_marker(&mut self.qp)?)
    }

    /// Changes state and attributes. If the new state is RESET, the tokens of outstanding requests are dropped; otherwise
    /// as [`QueuePair::modify`]. See [`reset`](Self::reset) and [`fail`](Self::fail).
    ///
    /// # Errors
    /// As those of [`QueuePair::modify`].
    pub fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        match attr.state {
            Some(QpState::RESET) => self.reset_by(|qp| qp.modify(attr), |_| (), |_| ()),
            _ => self.qp.modify(attr),
        }
    }

    /// Goes to RESET. Outstanding requests do not complete: their tokens are passed to `sent` and `received`, and dropped if
    /// one of these panics. What they have reserved can be used again once a poll has found the completion queues empty.
    /// Then the queue pair can connect again, to a peer that was restarted, for example.
    ///
    /// # Errors
    /// The device refused. Nothing was discarded.
    pub fn reset(
        &mut self,
        sent: impl FnMut(S),
        received: impl FnMut(R),
    ) -> Result<(), ModifyError> {
        self.reset_by(|qp| qp.modify(&QpAttr::to(QpState::RESET)), sent, received)
    }
}

/// Why a queue pair could not go to ERR so that everything outstanding completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FailError {
    /// It could not go to ERR.
    #[error("the queue pair can't go to ERR, which flushes its requests")]
    Modify(#[from] ModifyError),
    /// It refused an empty send: the last sends may not complete.
    #[error(
        "the queue pair refuses an empty send behind unsignaled ones, so nothing tells that they are done: signal the last one"
    )]
    Marker(#[from] Refused),
}

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit> Drop
    for TrackedQp<Q, S, R, SENDS, RECEIVES, C>
{
    fn drop(&mut self) {
        if !self.is_idle() && !self.qp.quiesce() {
            self.send_credit.keep();
            self.recv_credit.keep();
            self.sends.tokens().for_each(mem::forget);
            self.receives.tokens().for_each(mem::forget);
        }
    }
}
