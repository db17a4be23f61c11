//! A queue pair and its ledgers.

use core::mem;
use core::ops::ControlFlow;

use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;

use super::ledgers::{Fixed, Ledgers};
use super::left::Left;
use crate::budget::Reservation;
use crate::device::DeviceQp;
use crate::ledger::{
    Generation, NotPostedError, ReapError, Reaped, Received, Receives, Sends, Sent, Storage,
    post_or_reap,
};
use crate::polling::PollWc;
use crate::post::{Post, PostError, WrError};
use crate::setup::{Destination, Endpoint, ModifyError, Port, QpAttr, QpState};
use crate::wr::{RecvWr, SendWr, Sge};

/// A queue pair whose requests carry tokens, of type `S` for sends and `R` for receives. How many may be outstanding is
/// chosen when it is created. See [the module](super).
///
/// Its ledgers are on the `Heap`, or without the feature `alloc` in itself: `L` is [`Fixed`] then. With a shared receive
/// queue, which has [its own](super::TrackedSrq), it has no receives.
///
/// Dropping destroys the queue pair, then drops the tokens of outstanding requests, and gives back what is reserved. If the
/// device [can't end](Post::quiesce) the use of their buffers, as the loopback while a peer's process is suspended in the
/// middle of a message, it leaks the tokens and keeps the reservations permanently.
///
/// ```
/// use cq_core::transport::CqKey;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::fake::{Call, Script};
/// use cq_verbs::tracked::{Done, TrackedQp};
/// use cq_verbs::wr::SendWr;
///
/// // A queue pair: here a script. On a device: `TrackedQp::create`.
/// let script = Script::<8>::new(CqKey { index: 0, generation: 1 });
/// let mut qp = TrackedQp::<_, &str>::with_capacity(&script, 4, 4);
/// qp.post_send(SendWr::send_inline(0, b"ping"), "the question")?;
/// let Call::Send { wr_id, .. } = script.calls()[0] else { unreachable!() };
/// let wc = Wc::new(wr_id, WcStatus::SUCCESS, 5);
/// assert!(matches!(qp.retire_next(&wc), Some(Done::Sent(sent)) if sent.token == "the question"));
/// assert_eq!(qp.sends_outstanding(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TrackedQp<
    Q,
    S,
    #[cfg(feature = "alloc")] R = S,
    #[cfg(feature = "alloc")] L = crate::ledger::Heap,
    #[cfg(not(feature = "alloc"))] R,
    #[cfg(not(feature = "alloc"))] L,
> where
    Q: Post,
    L: Ledgers,
{
    // Destroyed first, so that nothing completes any more when the reservations are dropped.
    pub(super) qp: Q,
    pub(super) sends: Sends<S, L::Sends>,
    pub(super) receives: Receives<R, L::Receives>,
    pub(super) left: Left<L::Receives>,
    send_credit: Reservation<L::Budget>,
    recv_credit: Reservation<L::Budget>,
}

/// A request that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Done<'w, S, R> {
    /// A send.
    Sent(Sent<S>),
    /// A receive.
    Received(Received<'w, R>),
}

impl<Q: Post, S, R, const N: usize, const M: usize> TrackedQp<Q, S, R, Fixed<N, M>> {
    /// Keeps the ledgers of a queue pair on which nothing is outstanding, and which has at least these capacities. Its
    /// completion queues can overrun.
    #[must_use]
    pub fn fixed(qp: Q) -> Self {
        Self::without_budget(qp, u32::MAX, u32::MAX)
    }
}

impl<Q: Post, S, R, L: Ledgers> TrackedQp<Q, S, R, L> {
    pub(super) fn without_budget(qp: Q, sends: u32, receives: u32) -> Self {
        let most = [sends.min(L::Sends::MOST), receives.min(L::Receives::MOST)];
        Self::with(qp, most.map(Reservation::of_none))
    }

    /// It uses no more entries of the completion queue of its sends than the first has reserved there, and of that of its
    /// receives no more than the second.
    pub(super) fn with(qp: Q, [send_credit, recv_credit]: [Reservation<L::Budget>; 2]) -> Self {
        let receives = recv_credit.entries() as usize;
        Self {
            qp,
            sends: Sends::sized(Generation::unique(), send_credit.entries() as usize),
            receives: Receives::sized(Generation::unique(), receives),
            left: Left::new(receives),
            send_credit,
            recv_credit,
        }
    }

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
    #[must_use]
    pub fn available_sends(&self) -> usize {
        (self.send_credit.usable() as usize).saturating_sub(self.sends_outstanding())
    }

    /// How many receives can be posted now.
    #[must_use]
    pub fn available_receives(&self) -> usize {
        (self.recv_credit.usable() as usize).saturating_sub(self.receives_outstanding())
    }

    /// The most sends that can be outstanding. After a [reset](Self::reset) they are fewer for a while.
    #[must_use]
    pub const fn max_sends(&self) -> usize {
        self.send_credit.entries() as usize
    }

    /// The most receives that can be outstanding. After a [reset](Self::reset) they are fewer for a while.
    #[must_use]
    pub const fn max_receives(&self) -> usize {
        self.recv_credit.entries() as usize
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
        self.send_credit.discard(self.sends.outstanding() as u32);
        self.recv_credit.discard(self.receives.outstanding() as u32);
        self.set_limits();
        // Both ledgers are in order before the caller's code runs. If that panics, the other tokens are dropped.
        let given_up = self.sends.give_up(Generation::unique());
        self.receives.give_up(Generation::unique());
        self.left.clear();
        let (mut sends, mut receives) = (self.sends.discard(given_up), self.receives.discard());
        sends.by_ref().for_each(sent);
        receives.by_ref().for_each(received);
        Ok(())
    }

    /// Sees to it that so many can be posted, unless they are more than may be.
    #[inline(always)]
    fn allow(&mut self, sends: usize, receives: usize) {
        if self.sends.available() < sends || self.receives.available() < receives {
            self.set_limits();
        }
    }

    /// Limits the requests to what may be outstanding now. After RESET the limits are lower, until one is reached and the
    /// entries can be used again.
    #[cold]
    fn set_limits(&mut self) {
        self.sends.set_limit(self.send_credit.refresh() as usize);
        self.receives.set_limit(self.recv_credit.refresh() as usize);
    }

    /// Posts a send with a token: as [`Sends::post`].
    ///
    /// # Errors
    /// The request was refused. [`WrError::QueueFull`]: as many as may be are
    /// outstanding; poll, and retire.
    pub fn post_send(&mut self, wr: SendWr<'_>, token: S) -> Result<(), NotPostedError<S>> {
        self.allow(1, 0);
        self.sends.post(&mut self.qp, wr, token)
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
    ) -> Result<(), NotPostedError<S, ReapError>> {
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
        self.allow(list.len(), 0);
        self.sends.post_list(&mut self.qp, list, token)
    }

    /// Posts a receive with a token: as [`Receives::post`].
    ///
    /// # Errors
    /// The receive was refused. [`WrError::QueueFull`]: as many as may be are
    /// outstanding; poll, and retire.
    pub fn post_recv(&mut self, sges: &[Sge], token: R) -> Result<(), NotPostedError<R>> {
        self.allow(0, 1);
        self.receives.post(&mut self.qp, sges, token)
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
        self.allow(0, list.len());
        self.receives.post_list(&mut self.qp, list, token)
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
        self.allow(0, count);
        self.receives.fill(&mut self.qp, count, sge, token)
    }
}

impl<Q: DeviceQp, S, R, L: Ledgers> TrackedQp<Q, S, R, L> {
    /// Posts a datagram to a destination, with a token: as [`post_send`](Self::post_send).
    ///
    /// # Errors
    /// As those of `post_send`.
    pub fn post_send_to(
        &mut self,
        destination: &Destination<'_, Q::Ah>,
        wr: SendWr<'_>,
        token: S,
    ) -> Result<(), NotPostedError<S>> {
        self.allow(1, 0);
        self.sends.post(&mut self.qp.to(destination), wr, token)
    }

    /// Connects to a peer: as [`DeviceQp::connect`].
    ///
    /// # Errors
    /// As those of `DeviceQp::connect`.
    pub fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        self.qp.connect(port, peer)
    }

    /// Activates a UD queue pair: as [`DeviceQp::activate`].
    ///
    /// # Errors
    /// As those of `DeviceQp::activate`.
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
        self.qp.modify(&QpAttr::new().state(QpState::ERR))?;
        Ok(self.sends.post_marker(&mut self.qp)?)
    }

    /// Changes state and attributes. If the new state is RESET, the tokens of outstanding requests are dropped; otherwise
    /// as [`DeviceQp::modify`]. See [`reset`](Self::reset) and [`fail`](Self::fail).
    ///
    /// # Errors
    /// As those of [`DeviceQp::modify`].
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
        self.reset_by(|qp| qp.modify(&QpAttr::new().state(QpState::RESET)), sent, received)
    }
}

/// Why a queue pair could not go to ERR so that everything outstanding completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum FailError {
    /// It could not go to ERR.
    #[error("the queue pair can't go to ERR, which flushes its requests")]
    Modify(#[from] ModifyError),
    /// It refused an empty send: the last sends may not complete.
    #[error(
        "the queue pair refuses an empty send behind unsignaled ones, so nothing tells that they are done: signal the last one"
    )]
    Marker(#[from] WrError),
}

impl<Q: Post, S, R, L: Ledgers> Drop for TrackedQp<Q, S, R, L> {
    fn drop(&mut self) {
        if !self.is_idle() && !self.qp.quiesce() {
            self.send_credit.keep();
            self.recv_credit.keep();
            self.sends.tokens().for_each(mem::forget);
            self.receives.tokens().for_each(mem::forget);
        }
    }
}
