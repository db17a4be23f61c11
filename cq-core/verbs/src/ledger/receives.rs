//! The requests of a receive queue, its own or a shared one.

use core::slice;

use cq_core::wc::{Completed, Failed, Wc};

use super::{
    Array, Direction, Exhausted, Generation, Items, NotPostedError, Posted, Storage, full,
    posted_alone,
};
use crate::post::{Post, PostError, WrError};
use crate::wr::{RecvWr, Sge};

/// The receives that are outstanding on a receive queue, each with a token. Where it keeps the tokens, `L`, is the `Heap`,
/// or without the feature `alloc` an [`Array`]. See [the module](super).
///
/// It serves a queue pair's own receive queue and a shared one, whose receives complete in another order than they were
/// posted in ([C10](cq_core::contract#c10)).
///
/// ```
/// use cq_core::transport::CqKey;
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_testing::fake::{Call, Script};
/// use cq_verbs::ledger::{Generation, Receives};
///
/// // A queue pair: here a script.
/// let qp = &mut &Script::<32>::new(CqKey { index: 0, generation: 1 });
/// let mut receives = Receives::with_capacity(Generation::new(1), 4);
/// receives.post(qp, &[], "a")?;
/// let Call::Recv { wr_id, .. } = qp.calls()[0] else { unreachable!() };
/// let completion = Wc::new(wr_id, WcStatus::SUCCESS, 5);
/// assert_eq!(receives.retire(&completion).map(|received| received.token), Some("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Receives<
    T,
    #[cfg(feature = "alloc")] L: Storage = super::Heap,
    #[cfg(not(feature = "alloc"))] L: Storage,
> {
    /// Outstanding receives have a token, except those whose closure panicked.
    tokens: Items<Option<T>, L>,
    slots: Items<Slot, L>,
    /// The first and the last of the free slots, if any: all that are not outstanding. They are used in turn, so that
    /// numbers repeat late.
    free: usize,
    last_free: usize,
    outstanding: usize,
    limit: usize,
    generation: Generation,
}

/// A place for a receive.
struct Slot {
    /// How often it was posted and retired, modulo 2³²: odd while its receive is outstanding.
    turn: u32,
    /// The next free slot, if it is free, but not the last one.
    next: u32,
}

impl Slot {
    /// The slot with this index, while all are free.
    const fn free(index: usize) -> Self {
        Self { turn: 0, next: index as u32 + 1 }
    }
}

/// A receive that has completed.
///
/// ```
/// use cq_core::wc::{Wc, WcStatus};
/// use cq_verbs::ledger::Received;
///
/// /// The bytes of a message, in the buffer that is the token.
/// fn message(received: Received<'_, Vec<u8>>) -> Option<Vec<u8>> {
///     let length = received.result.ok()?.byte_len();
///     Some(received.token[..length as usize].to_vec())
/// }
/// let wc = Wc::new(1, WcStatus::SUCCESS, 5).with_byte_len(2);
/// assert_eq!(message(Received { token: b"hi....".to_vec(), result: wc.result() }), Some(b"hi".to_vec()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Received<'w, T> {
    /// The token that it was posted with.
    pub token: T,
    /// What was received, or the failure.
    pub result: Result<Completed<'w>, Failed>,
}

impl<T, const N: usize> Receives<T, Array<N>> {
    /// A ledger without receives in an array, for a queue whose `max_recv_wr` or `max_wr` is at least `N` or the
    /// [limit](Self::set_limit). All receives of the queue must be posted through it.
    #[must_use]
    pub fn fixed(generation: Generation) -> Self {
        Self::sized(generation, N)
    }
}

impl<T, L: Storage> Receives<T, L> {
    /// A ledger for so many receives, or as many as its array has.
    pub(crate) fn sized(generation: Generation, count: usize) -> Self {
        let (tokens, slots) = (Items::make(count, |_| None), Items::make(count, Slot::free));
        let (last_free, limit) = (slots.len().saturating_sub(1), count.min(L::MOST as usize));
        Self { tokens, slots, free: 0, last_free, outstanding: 0, limit, generation }
    }

    /// The bits of a request's number that are the index of its slot. The others count how often the slot was posted and
    /// retired, so that a completion which is given twice retires nothing the second time.
    fn index_bits(&self) -> u32 {
        usize::BITS - self.slots.len().saturating_sub(1).leading_zeros()
    }

    /// How many receives are outstanding: posted, and not retired.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// How many more can be posted.
    #[must_use]
    pub const fn available(&self) -> usize {
        self.limit.saturating_sub(self.outstanding)
    }

    /// Allows at most `limit` receives to be outstanding, and never more than its capacity. If more are already, posts are
    /// refused until enough of them are retired.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(self.slots.len());
    }

    /// Posts a receive with a token.
    ///
    /// # Errors
    /// The receive was refused. [`WrError::QueueFull`]: the ledger is full, or the queue is. A receive that the queue pair
    /// would [never take](Post::check_recv) is refused for that reason, also while the ledger is full.
    pub fn post<P>(&mut self, qp: &mut P, sges: &[Sge], token: T) -> Result<(), NotPostedError<T>>
    where
        P: Post + ?Sized,
    {
        if self.available() == 0 {
            return Err(NotPostedError { token, why: full(qp.check_recv(&RecvWr::new(0, sges))) });
        }
        self.post_by(sges, token, |list| qp.post_recv(list))
    }

    /// [`post`](Self::post) by this closure, for a shared receive queue: `|list| srq.post_recv(list)`.
    ///
    /// # Errors
    /// As those of `post`.
    pub fn post_by(
        &mut self,
        sges: &[Sge],
        token: T,
        post: impl FnOnce(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Result<(), NotPostedError<T>> {
        if self.available() == 0 {
            return Err(NotPostedError { token, why: WrError::QueueFull });
        }
        let wr_id = self.wr_id(self.free);
        if let Err(why) = posted_alone(post(&[RecvWr::new(wr_id, sges)])) {
            return Err(NotPostedError { token, why });
        }
        let index = self.note();
        self.tokens[index] = Some(token);
        Ok(())
    }

    /// Posts a list, in order. `token` is called for each receive that was posted, with its index in the list. The
    /// receives' `wr_id` are replaced.
    ///
    /// # Errors
    /// A receive was refused ([Q4](cq_core::contract#q4)). Those before it are posted; it and those after it are not, and
    /// no token was asked for.
    pub fn post_list<P: Post + ?Sized>(
        &mut self,
        qp: &mut P,
        list: &mut [RecvWr<'_>],
        token: impl FnMut(usize) -> T,
    ) -> Result<(), PostError> {
        let (list, rest) = list.split_at_mut(self.available().min(list.len()));
        let posted = self.post_fitting(list, token, |list| qp.post_recv(list));
        posted.before(rest.first().map(|wr| qp.check_recv(wr)))
    }

    /// [`post_list`](Self::post_list) by this closure, for a shared receive queue.
    ///
    /// # Errors
    /// As those of `post_list`.
    pub fn post_list_by(
        &mut self,
        list: &mut [RecvWr<'_>],
        token: impl FnMut(usize) -> T,
        post: impl FnOnce(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let (list, rest) = list.split_at_mut(self.available().min(list.len()));
        self.post_fitting(list, token, post).before((!rest.is_empty()).then_some(Ok(())))
    }

    /// Posts a list for which there are free slots.
    fn post_fitting(
        &mut self,
        list: &mut [RecvWr<'_>],
        mut token: impl FnMut(usize) -> T,
        post: impl FnOnce(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Posted {
        let mut free = self.free;
        for wr in &mut *list {
            wr.wr_id = self.wr_id(free);
            free = self.after(free);
        }
        let (posted, mut index) = (Posted::of(list, post), self.free);
        // All are counted before the caller's code runs, which may panic. The slots remain linked in their order.
        for _ in 0..posted.count {
            self.note();
        }
        for nth in 0..posted.count {
            self.tokens[index] = Some(token(nth));
            index = self.after(index);
        }
        posted
    }

    /// Posts `count` receives of one buffer each, up to 32 at a time: in a device, posting many at once costs less than one
    /// by one. `sge` and `token` are called with the number of the receive; `token` for those only that were posted.
    ///
    /// # Errors
    /// A receive was refused. Those before it are posted.
    pub fn fill<P: Post + ?Sized>(
        &mut self,
        qp: &mut P,
        count: usize,
        sge: impl FnMut(usize) -> Sge,
        token: impl FnMut(usize) -> T,
    ) -> Result<(), PostError> {
        self.fill_by(count, sge, token, |list| qp.post_recv(list))
    }

    /// [`fill`](Self::fill) by this closure, for a shared receive queue.
    ///
    /// # Errors
    /// As those of `fill`.
    pub fn fill_by(
        &mut self,
        count: usize,
        mut sge: impl FnMut(usize) -> Sge,
        mut token: impl FnMut(usize) -> T,
        mut post: impl FnMut(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        const MOST: usize = 32;
        let mut done = 0;
        while done < count {
            let many = (count - done).min(MOST);
            let mut sges = [Sge::default(); MOST];
            sges[..many].iter_mut().zip(done..).for_each(|(to, nth)| *to = sge(nth));
            let mut list = sges.each_ref().map(|sge| RecvWr::new(0, slice::from_ref(sge)));
            self.post_list_by(&mut list[..many], |nth| token(done + nth), &mut post)
                .map_err(|error| PostError { posted: done + error.posted, ..error })?;
            done += many;
        }
        Ok(())
    }

    /// Retires the receive that has completed. `None` if the completion is not of this ledger, or was given to it
    /// already.
    pub fn retire<'w>(&mut self, wc: &'w Wc) -> Option<Received<'w, T>> {
        let index = self.slot_of(wc)?;
        self.slots[index].turn = self.slots[index].turn.wrapping_add(1);
        if self.outstanding == self.slots.len() {
            self.free = index;
        } else {
            self.slots[self.last_free].next = index as u32;
        }
        self.last_free = index;
        self.outstanding -= 1;
        Some(Received { token: self.tokens[index].take()?, result: wc.result() })
    }

    /// The slot of an outstanding receive that this is the completion of.
    #[inline]
    pub(crate) fn slot_of(&self, wc: &Wc) -> Option<usize> {
        let number = self.generation.number_of(Direction::Receive, wc)?;
        let index = (number & ((1 << self.index_bits()) - 1)) as usize;
        let is_outstanding = self.slots.get(index)?.turn & 1 == 1;
        (is_outstanding && self.wr_id(index) == wc.wr_id()).then_some(index)
    }

    /// Gives up all outstanding receives, because their queue went to RESET: they do not complete, and what was not yet
    /// polled of them will retire nothing. Continues with another generation. If `discarded` panics, the other tokens are
    /// dropped.
    pub fn restart(&mut self, generation: Generation, discarded: impl FnMut(T)) {
        self.give_up(generation);
        self.discard().for_each(discarded);
    }

    /// The first half of [`restart`](Self::restart), which runs no code of the caller.
    pub(crate) fn give_up(&mut self, generation: Generation) {
        (self.outstanding, self.generation) = (0, generation);
        (self.free, self.last_free) = (0, self.slots.len().saturating_sub(1));
        self.slots.iter_mut().enumerate().for_each(|(index, slot)| *slot = Slot::free(index));
    }

    /// The second half, before anything is posted.
    pub(crate) fn discard(&mut self) -> impl Iterator<Item = T> {
        Exhausted(self.tokens())
    }

    /// The free slot behind this one.
    fn after(&self, index: usize) -> usize {
        self.slots[index].next as usize
    }

    /// The `wr_id` of the receive that is outstanding in this slot, or will be posted there next.
    fn wr_id(&self, index: usize) -> u64 {
        let turn = self.slots[index].turn | 1;
        let number = turn << self.index_bits() | index as u32;
        self.generation.wr_id(Direction::Receive, number)
    }

    /// Takes the tokens of all outstanding receives, which stay outstanding.
    pub(crate) fn tokens(&mut self) -> impl Iterator<Item = T> {
        self.tokens.iter_mut().filter_map(Option::take)
    }

    /// The tokens of all outstanding receives, in no particular order.
    pub fn tokens_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.tokens.iter_mut().flatten()
    }

    /// Counts a receive that was posted, in the first free slot. Returns the slot.
    fn note(&mut self) -> usize {
        let index = self.free;
        self.free = self.after(index);
        self.slots[index].turn |= 1;
        self.outstanding += 1;
        index
    }
}

#[cfg(test)]
mod tests;
