//! The requests of a send queue.

mod completed;

use core::ops::ControlFlow;

use cq_core::cq::CompletionQueue;
use cq_core::wc::{Failed, Wc};

#[cfg(target_has_atomic = "32")]
pub(crate) use self::completed::Covered;
use self::completed::Outcome;
pub use self::completed::Retired;
use super::reap::{ReapError, Reaped, post_or_reap};
use super::{
    Array, Direction, Exhausted, Generation, Items, NotPostedError, Posted, Storage, full,
    posted_alone,
};
use crate::polling::PollWc;
#[cfg(target_has_atomic = "32")]
use crate::post::WrError;
use crate::post::{Post, PostError};
use crate::wr::{SendFlags, SendWr};

/// The requests that are outstanding on a send queue, each with a token. Where it keeps the tokens, `L`, is the `Heap`, or
/// without the feature `alloc` an [`Array`].
///
/// See [the module](crate::ledger) for an example.
///
/// On the heap, for a queue pair of a device:
/// ```
/// use cq_verbs::device::DeviceQp;
/// use cq_verbs::ledger::{Generation, NotPostedError, Sends};
/// use cq_verbs::wr::SendWr;
///
/// fn greet<Q: DeviceQp>(qp: &mut Q) -> Result<Sends<&'static str>, NotPostedError<&'static str>> {
///     let mut sends = Sends::with_capacity(Generation::unique(), qp.caps().max_send_wr as usize);
///     sends.post(qp, SendWr::send_inline(0, b"hello"), "the greeting")?;
///     assert_eq!(sends.outstanding(), 1);
///     Ok(sends)
/// }
/// ```
#[derive(Debug)]
pub struct Sends<
    T,
    #[cfg(feature = "alloc")] L: Storage = super::Heap,
    #[cfg(not(feature = "alloc"))] L: Storage,
> {
    /// A ring. Outstanding requests have a token, except a marker and those whose closure panicked.
    tokens: Items<Option<T>, L>,
    /// Index of the oldest outstanding request, and its number among all of this generation, modulo 2³².
    oldest: usize,
    number: u32,
    outstanding: usize,
    /// How many of the oldest requests have completed, and how many of these have failed.
    completed: usize,
    failed: usize,
    /// How they have failed; SUCCESS for all others.
    outcomes: Items<Outcome, L>,
    /// The number of the queue pair, once a request has failed.
    qp_num: u32,
    limit: usize,
    /// The most requests from one signaled one to the next: half as many.
    interval: usize,
    /// The number of requests since the last signaled one.
    unsignaled: usize,
    generation: Generation,
}

/// A send request that has completed.
///
/// ```
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_verbs::ledger::Sent;
///
/// /// What is to be said of a request.
/// fn report(sent: &Sent<&str>) -> String {
///     match sent.result {
///         Ok(()) => format!("{} is sent", sent.token),
///         Err(failed) => format!("{}: {}", sent.token, failed.status()),
///     }
/// }
/// let wc = Wc::new(1, WcStatus::RETRY_EXC_ERR, 5);
/// let sent = Sent { token: "the reply", result: wc.result().map(drop) };
/// assert_eq!(report(&sent), "the reply: transport retry counter exceeded");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sent<T> {
    /// The token that it was posted with.
    pub token: T,
    /// Whether it succeeded.
    pub result: Result<(), Failed>,
}

impl<T, const N: usize> Sends<T, Array<N>> {
    /// A ledger without requests in an array, for a queue pair whose `max_send_wr` is at least `N` or the
    /// [limit](Self::set_limit). All requests of the queue must be posted through it.
    #[must_use]
    pub fn fixed(generation: Generation) -> Self {
        Self::sized(generation, N)
    }
}

impl<T, L: Storage> Sends<T, L> {
    /// A ledger for so many requests, or as many as its array has.
    pub(crate) fn sized(generation: Generation, count: usize) -> Self {
        let limit = count.min(L::MOST as usize);
        Self {
            tokens: Items::make(count, |_| None),
            oldest: 0,
            number: 0,
            outstanding: 0,
            completed: 0,
            failed: 0,
            outcomes: Items::make(count, |_| Outcome::SUCCESS),
            qp_num: 0,
            limit,
            interval: limit / 2,
            unsignaled: 0,
            generation,
        }
    }

    /// How many requests are outstanding: posted, and not retired.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// How many more can be posted.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.limit.saturating_sub(self.outstanding)
    }

    /// Allows at most `limit` requests to be outstanding, and never more than its capacity. If more are already, posts are
    /// refused until enough of them are retired. Lower it only while the last request is signaled: otherwise nothing may be
    /// left that completes.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(self.tokens.len());
        self.interval = self.limit / 2;
    }

    /// Whether the next request will be signaled even if the caller does not ask for it.
    #[must_use]
    pub const fn must_signal(&self) -> bool {
        self.must_signal_at(self.outstanding, self.unsignaled)
    }

    /// With so many outstanding, of which so many follow the last signaled one.
    const fn must_signal_at(&self, outstanding: usize, unsignaled: usize) -> bool {
        unsignaled + 1 >= self.interval || self.limit.saturating_sub(outstanding) <= 1
    }

    /// Posts a request with a token. Its `wr_id` is replaced. If it is unsignaled, the ledger signals it where
    /// [necessary](Self::must_signal).
    ///
    /// # Errors
    /// The request was refused. [`QueueFull`](crate::post::WrError::QueueFull): the ledger is full, or the queue is. A
    /// request that the queue pair would [never take](Post::check_send) is refused for that reason, also while the ledger is
    /// full.
    #[inline(always)]
    pub fn post<P>(&mut self, qp: &mut P, wr: SendWr<'_>, token: T) -> Result<(), NotPostedError<T>>
    where
        P: Post + ?Sized,
    {
        if self.available() == 0 {
            return Err(NotPostedError { token, why: full(qp.check_send(&wr)) });
        }
        let mut list = [wr];
        self.prepare(&mut list);
        if let Err(why) = posted_alone(qp.post_send(&list)) {
            return Err(NotPostedError { token, why });
        }
        let index = self.index(self.outstanding);
        self.note(&list);
        self.tokens[index] = Some(token);
        Ok(())
    }

    /// Posts a list, in order. `token` is called for each request that was posted, with its index in the list. The
    /// requests' `wr_id` are replaced.
    ///
    /// # Errors
    /// A request was refused ([Q4](cq_core::contract#q4)). Those before it are posted; it and those after it are not, and
    /// no token was asked for.
    pub fn post_list<P: Post + ?Sized>(
        &mut self,
        qp: &mut P,
        list: &mut [SendWr<'_>],
        mut token: impl FnMut(usize) -> T,
    ) -> Result<(), PostError> {
        let (list, rest) = list.split_at_mut(self.available().min(list.len()));
        self.prepare(list);
        let posted = Posted::of(list, |list| qp.post_send(list));
        let before = self.outstanding;
        // All are counted before the caller's code runs, which may panic.
        self.note(&list[..posted.count]);
        for nth in 0..posted.count {
            let index = self.index(before + nth);
            self.tokens[index] = Some(token(nth));
        }
        posted.before(rest.first().map(|wr| qp.check_send(wr)))
    }

    /// Posts an empty signaled send without a token, if the last request that is outstanding is unsignaled. Its completion
    /// covers that one: the flushed one, in ERR.
    #[cfg(target_has_atomic = "32")]
    pub(crate) fn post_marker<P: Post + ?Sized>(&mut self, qp: &mut P) -> Result<(), WrError> {
        // There is a free slot: the request that fills a ledger is signaled.
        if self.unsignaled == 0 {
            return Ok(());
        }
        let mut list = [SendWr::send(0, &[])];
        self.prepare(&mut list);
        posted_alone(qp.post_send(&list))?;
        self.note(&list);
        Ok(())
    }

    /// Posts a request. While the queue is full, polls `cq` into `buffer` and passes on what it finds, in the queue's
    /// order. `reaped` ends the wait by `Break`, after the whole batch is passed on.
    ///
    /// Retire every completion that was polled before calling this: it waits for slots that those may free. If `reaped`
    /// panics, the completions of this ledger stay, as those that `retire` leaves; others that were polled are lost.
    ///
    /// # Errors
    /// The request was refused, the completion queue failed, or `reaped` ended the wait. The token is returned.
    pub fn post_or_reap<P: Post + ?Sized, C: PollWc>(
        &mut self,
        qp: &mut P,
        wr: SendWr<'_>,
        token: T,
        cq: &mut CompletionQueue<C>,
        buffer: &mut [Wc],
        reaped: impl FnMut(Reaped<'_, Sent<T>>) -> ControlFlow<()>,
    ) -> Result<(), NotPostedError<T, ReapError>> {
        let post = |sends: &mut Self, token| sends.post(qp, wr, token);
        post_or_reap(self, token, cq, buffer, post, reaped)
    }

    /// How many requests the completion covers that are not retired: 0 if it is of another ledger.
    #[must_use]
    pub fn covered(&self, wc: &Wc) -> usize {
        let number = self.generation.number_of(Direction::Send, wc);
        let position = number.map(|number| number.wrapping_sub(self.number) as usize);
        position.filter(|position| *position < self.outstanding).map_or(0, |position| position + 1)
    }

    /// Gives up all outstanding requests, oldest first, because their queue pair went to RESET: they do not complete, and
    /// what was not yet polled of them will retire nothing. Continues with another generation. If `discarded` panics, the
    /// other tokens are dropped.
    pub fn restart(&mut self, generation: Generation, discarded: impl FnMut(T)) {
        let given_up = self.give_up(generation);
        self.discard(given_up).for_each(discarded);
    }

    /// The first half of [`restart`](Self::restart), which runs no code of the caller. Returns where the tokens are.
    pub(crate) fn give_up(&mut self, generation: Generation) -> GivenUp {
        let given_up = GivenUp { first: self.oldest, count: self.outstanding };
        (self.oldest, self.outstanding) = (self.index(self.outstanding), 0);
        (self.number, self.unsignaled, self.generation) = (0, 0, generation);
        (self.completed, self.failed) = (0, 0);
        self.outcomes.fill(Outcome::SUCCESS);
        given_up
    }

    /// The second half.
    pub(crate) fn discard(&mut self, given_up: GivenUp) -> impl Iterator<Item = T> {
        let GivenUp { first, count } = given_up;
        let (tokens, len) = (&mut self.tokens, self.outcomes.len());
        Exhausted((0..count).filter_map(move |nth| tokens[wrapped(first + nth, len)].take()))
    }

    /// Takes the tokens of all outstanding requests, which stay outstanding.
    #[cfg(target_has_atomic = "32")]
    pub(crate) fn tokens(&mut self) -> impl Iterator<Item = T> {
        self.tokens.iter_mut().filter_map(Option::take)
    }

    /// The tokens of all outstanding requests, in no particular order.
    pub fn tokens_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.tokens.iter_mut().flatten()
    }

    /// The index of the request that is posted after `outstanding` others.
    fn index(&self, outstanding: usize) -> usize {
        wrapped(self.oldest + outstanding, self.tokens.len())
    }

    /// Gives the requests their `wr_id` and their signals. There is a free slot for each.
    fn prepare(&self, list: &mut [SendWr<'_>]) {
        let mut unsignaled = self.unsignaled;
        for (nth, wr) in list.iter_mut().enumerate() {
            let outstanding = self.outstanding + nth;
            let number = self.number.wrapping_add(outstanding as u32);
            wr.wr_id = self.generation.wr_id(Direction::Send, number);
            if self.must_signal_at(outstanding, unsignaled) {
                wr.flags |= SendFlags::SIGNALED;
            }
            unsignaled = after(unsignaled, wr);
        }
    }

    /// Counts requests that were posted.
    fn note(&mut self, posted: &[SendWr<'_>]) {
        self.outstanding += posted.len();
        self.unsignaled = posted.iter().fold(self.unsignaled, after);
    }

    /// Retires the oldest request. Returns its token, if it has one.
    #[inline(always)]
    fn take_oldest(&mut self) -> Option<T> {
        let token = self.tokens[self.oldest].take();
        self.oldest = self.index(1);
        self.number = self.number.wrapping_add(1);
        self.outstanding -= 1;
        self.unsignaled = self.unsignaled.min(self.outstanding);
        token
    }
}

/// Where the tokens of requests are that were given up.
pub(crate) struct GivenUp {
    first: usize,
    count: usize,
}

/// The index in a ring of this length, of one less than twice that.
const fn wrapped(index: usize, len: usize) -> usize {
    if index < len { index } else { index - len }
}

/// How many requests follow the last signaled one, once `wr` is posted.
fn after(unsignaled: usize, wr: &SendWr<'_>) -> usize {
    if wr.flags.contains(SendFlags::SIGNALED) { 0 } else { unsignaled + 1 }
}

#[cfg(test)]
mod tests;
